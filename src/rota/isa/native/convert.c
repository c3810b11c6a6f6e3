/* Conversions between number formats. */
#include "lanes.h"

#define FROM(NAME, K, TYPE, READ, HALF_RESULT, EXPRESSION)                                                            \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 r0[LANES], out[LANES];                                                                                    \
        const u32 *s0 = source(wave, op, 0, 1, K, r0);                                                                \
        LANES_DO(TYPE x = READ(s0[lane]); out[lane] = (u32)(EXPRESSION)) put_result(wave, op, out, HALF_RESULT, 0);   \
        return GO_ON;                                                                                                 \
    }
#define PAIR(NAME, EXPRESSION)                                                                                        \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 r0[LANES], r1[LANES], out[LANES];                                                                         \
        const u32 *s0 = source(wave, op, 0, 1, SINGLE, r0), *s1 = source(wave, op, 1, 2, SINGLE, r1);                 \
        LANES_DO(float x = as_float(s0[lane]); float y = as_float(s1[lane]); out[lane] = (EXPRESSION))                \
        put_result(wave, op, out, 0, 0);                                                                              \
        return GO_ON;                                                                                                 \
    }
static inline u32 to_unsigned(double x) { return x >= 4294967295.0 ? ~0u : x > 0 ? (u32)x : 0; }
static inline u32 to_signed(double x)
{
    return x >= 2147483647.0 ? 0x7FFFFFFF : x <= -2147483648.0 ? 0x80000000 : x == x ? (u32)(i32)x : 0;
}
static inline u32 short_of(double x, double low, double high)
{
    return x != x ? 0 : (u32)(i32)(x < low ? low : x > high ? high : x);
}
static inline u32 bf16(float x)
{
    u32 bits = as_bits(x);
    return x != x ? 0x7FC0 | (bits >> 16 & 0x8000) : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
static u32 half_towards_zero(float x)
{
    u32 half = float_to_half(x);
    return fabsf(half_to_float(half)) > fabsf(x) ? half - 1 : half;
}
static inline float same(u32 bits) { return as_float(bits); }
static inline float clamp_to(const Op *op, float x) { return clamped(op, x); }

FROM(f32_u32, WORD, u32, , 0, as_bits(clamp_to(op, (float)x)))
FROM(f32_i32, WORD, i32, (i32), 0, as_bits(clamp_to(op, (float)x)))
FROM(u32_f32, SINGLE, float, same, 0, to_unsigned(x))
FROM(i32_f32, SINGLE, float, same, 0, to_signed(x))
FROM(flr_i32_f32, SINGLE, float, same, 0, to_signed(floor((double)x)))
FROM(f32_f16, HALF, float, half_to_float, 0, as_bits(clamp_to(op, x)))
FROM(f16_f32, SINGLE, float, same, 1, float_to_half(clamp_to(op, x)))
FROM(f16_u16, SHORT, u32, , 1, float_to_half((float)x))
FROM(f16_i16, SHORT, i32, (int16_t), 1, float_to_half((float)x))
FROM(u16_f16, HALF, float, half_to_float, 0, short_of(x, 0, 65535) | 0xFFFF0000)
FROM(i16_f16, HALF, float, half_to_float, 0, short_of(x, -32768, 32767) | 0xFFFF0000)
FROM(f32_bf16, SHORT, u32, , 0, x << 16)
FROM(ubyte0, WORD, u32, , 0, as_bits((float)(x & 0xFF)))
FROM(ubyte1, WORD, u32, , 0, as_bits((float)(x >> 8 & 0xFF)))
FROM(ubyte2, WORD, u32, , 0, as_bits((float)(x >> 16 & 0xFF)))
FROM(ubyte3, WORD, u32, , 0, as_bits((float)(x >> 24)))
PAIR(pkrtz, half_towards_zero(x) | half_towards_zero(y) << 16)
PAIR(pk_bf16, bf16(x) | bf16(y) << 16)
PAIR(pk_f16, float_to_half(x) | float_to_half(y) << 16)

static int32_t pack_b32_f16(Wave *wave, const Op *op)
{
    u32 r0[LANES], r1[LANES], out[LANES];
    const u32 *s0 = source(wave, op, 0, 1, HALF, r0), *s1 = source(wave, op, 1, 2, HALF, r1);
    LANES_DO(out[lane] = s0[lane] | s1[lane] << 16)
    put_words(wave, op->o[0].first, out);
    return GO_ON;
}

#define TO_DOUBLE(NAME, K, EXPRESSION)                                                                                \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 r0[LANES];                                                                                                \
        u64 out[LANES];                                                                                               \
        const u32 *s0 = source(wave, op, 0, 1, K, r0);                                                                \
        LANES_DO(u32 a = s0[lane]; out[lane] = as_bits64(EXPRESSION)) put_pairs(wave, op, out);                       \
        return GO_ON;                                                                                                 \
    }
#define FROM_DOUBLE(NAME, EXPRESSION)                                                                                 \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u64 room[LANES];                                                                                              \
        u32 out[LANES];                                                                                               \
        doubles_of(wave, &op->o[1], room, 1);                                                                         \
        LANES_DO(double x = as_double(room[lane]); out[lane] = (EXPRESSION)) put_words(wave, op->o[0].first, out);    \
        return GO_ON;                                                                                                 \
    }
TO_DOUBLE(f64_u32, WORD, (double)a)
TO_DOUBLE(f64_i32, WORD, (double)(i32)a)
TO_DOUBLE(f64_f32, SINGLE, (double)as_float(a))
FROM_DOUBLE(u32_f64, to_unsigned(x))
FROM_DOUBLE(i32_f64, to_signed(x))
FROM_DOUBLE(f32_f64, as_bits((float)x))

#define ANYWHERE (M_SDWA | M_DPP | M_SIGNS)
const Opcode CONVERT_OPCODES[] = {
    {"v_cvt_f32_u32", f32_u32, M_SDWA | M_DPP | M_CLAMP}, {"v_cvt_f32_i32", f32_i32, M_SDWA | M_DPP | M_CLAMP},
    {"v_cvt_u32_f32", u32_f32, ANYWHERE}, {"v_cvt_i32_f32", i32_f32, ANYWHERE},
    {"v_cvt_flr_i32_f32", flr_i32_f32, ANYWHERE}, {"v_cvt_f32_f16", f32_f16, ANYWHERE | M_CLAMP},
    {"v_cvt_f16_f32", f16_f32, ANYWHERE}, {"v_cvt_f16_u16", f16_u16, M_SDWA | M_DPP},
    {"v_cvt_f16_i16", f16_i16, M_SDWA | M_DPP}, {"v_cvt_u16_f16", u16_f16, M_SIGNS}, {"v_cvt_i16_f16", i16_f16, M_SIGNS},
    {"v_cvt_f32_bf16", f32_bf16, M_SDWA | M_DPP}, {"v_cvt_f32_ubyte0", ubyte0, 0}, {"v_cvt_f32_ubyte1", ubyte1, 0},
    {"v_cvt_f32_ubyte2", ubyte2, 0}, {"v_cvt_f32_ubyte3", ubyte3, 0}, {"v_cvt_pkrtz_f16_f32", pkrtz, M_SIGNS},
    {"v_cvt_pk_bf16_f32", pk_bf16, M_SIGNS}, {"v_cvt_pk_f16_f32", pk_f16, M_SIGNS},
    {"v_pack_b32_f16", pack_b32_f16, M_SIGNS | M_OP_SEL}, {"v_cvt_f64_u32", f64_u32, 0}, {"v_cvt_f64_i32", f64_i32, 0},
    {"v_cvt_f64_f32", f64_f32, M_SIGNS}, {"v_cvt_u32_f64", u32_f64, M_SIGNS}, {"v_cvt_i32_f64", i32_f64, M_SIGNS},
    {"v_cvt_f32_f64", f32_f64, M_SIGNS}, {0, 0, 0},
};
