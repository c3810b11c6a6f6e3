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

/* Floats below 32 bits: the exponent of the smallest normal number, the largest code, the one for what is out of range
 * and that of NaN, both without the sign; FNUZ has one NaN, and no negative zero. */
typedef struct {
    int bits, mantissa, lowest;
    u32 largest, over, nan;
    int one_nan;
} Small;
static const Small FP8[2] = {{8, 3, -6, 0x7E, 0x7F, 0x7F, 0}, {8, 3, -7, 0x7F, 0x80, 0x80, 1}}; /* OCP, FNUZ */
static const Small BF8[2] = {{8, 2, -14, 0x7B, 0x7C, 0x7E, 0}, {8, 2, -15, 0x7F, 0x80, 0x80, 1}};
static const Small BF16 = {16, 7, -126, 0x7F7F, 0x7F80, 0x7FC0, 0}, F16 = {16, 10, -14, 0x7BFF, 0x7C00, 0x7E00, 0};

static u32 small_code(double x, const Small *form)
{
    u32 sign = (u32)(signbit(x) != 0) << (form->bits - 1), code = form->over;
    if (x != x) {
        code = form->nan;
    } else if (isfinite(x)) {
        int power;
        double size = frexp(fabs(x), &power);
        power = size > 0 && power - 1 > form->lowest ? power - 1 : form->lowest;
        double steps = nearbyint(ldexp(fabs(x), form->mantissa - power));
        double whole = ldexp((double)(power - form->lowest), form->mantissa) + steps;
        code = whole > form->largest ? form->over : (u32)whole;
    }
    return form->one_nan && (code == form->nan || code == 0) ? code : code | sign;
}

/* Two codes of 8 bits to the half of a register that op_sel chooses; the other one stays. */
static int32_t to_pair(Wave *wave, const Op *op, const Small *form)
{
    u32 r0[LANES], r1[LANES], out[LANES];
    const u32 *s0 = source(wave, op, 0, 1, SINGLE, r0), *s1 = source(wave, op, 1, 2, SINGLE, r1);
    LANES_DO(out[lane] = small_code(as_float(s0[lane]), form) | small_code(as_float(s1[lane]), form) << 8)
    put_result(wave, op, out, 1, 1);
    return GO_ON;
}
static int32_t pk_fp8(Wave *wave, const Op *op) { return to_pair(wave, op, &FP8[op->fnuz != 0]); }
static int32_t pk_bf8(Wave *wave, const Op *op) { return to_pair(wave, op, &BF8[op->fnuz != 0]); }

/* Two codes of 8 bits, of the half that op_sel chooses, times a power of two: the exponent of a float32. */
static int32_t from_pair(Wave *wave, const Op *op, int bf8, const Small *form)
{
    u32 r0[LANES], r1[LANES], out[LANES];
    const double *values = float8_values(bf8, op->fnuz);
    const u32 *s0 = source(wave, op, 0, 1, WORD, r0), *s1 = source(wave, op, 1, 2, WORD, r1);
    int shift = op->op_sel & 1 ? 16 : 0;
    for (int lane = 0; lane < LANES; lane++) {
        int power = (int)(s1[lane] >> 23 & 0xFF);
        u32 codes[2];
        for (int each = 0; each < 2; each++) {
            double value = values[s0[lane] >> (shift + 8 * each) & 0xFF];
            value = power == 255 ? copysign(NAN, value) : ldexp(value, power - 127);
            codes[each] = small_code(value, form);
        }
        out[lane] = codes[0] | codes[1] << 16;
    }
    put_words(wave, op->o[0].first, out);
    return GO_ON;
}
static int32_t scaled_bf16_fp8(Wave *wave, const Op *op) { return from_pair(wave, op, 0, &BF16); }
static int32_t scaled_bf16_bf8(Wave *wave, const Op *op) { return from_pair(wave, op, 1, &BF16); }
static int32_t scaled_f16_fp8(Wave *wave, const Op *op) { return from_pair(wave, op, 0, &F16); }
static int32_t scaled_f16_bf8(Wave *wave, const Op *op) { return from_pair(wave, op, 1, &F16); }

/* One byte of the third source becomes the number, to the nearest even. */
static int32_t pk_u8(Wave *wave, const Op *op)
{
    u32 r0[LANES], r1[LANES], r2[LANES], out[LANES];
    const u32 *s0 = source(wave, op, 0, 1, SINGLE, r0), *s1 = source(wave, op, 1, 2, WORD, r1);
    const u32 *s2 = source(wave, op, 2, 3, WORD, r2);
    LANES_DO(u32 shift = 8 * (s1[lane] & 3); double x = nearbyint((double)as_float(s0[lane]));
             out[lane] = (s2[lane] & ~(0xFFu << shift)) | short_of(x, 0, 255) << shift)
    put_words(wave, op->o[0].first, out);
    return GO_ON;
}

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
    {"v_cvt_pk_fp8_f32", pk_fp8, M_SIGNS | M_OP_SEL}, {"v_cvt_pk_bf8_f32", pk_bf8, M_SIGNS | M_OP_SEL},
    {"v_cvt_scalef32_pk_bf16_fp8", scaled_bf16_fp8, M_OP_SEL}, {"v_cvt_scalef32_pk_f16_fp8", scaled_f16_fp8, M_OP_SEL},
    {"v_cvt_scalef32_pk_bf16_bf8", scaled_bf16_bf8, M_OP_SEL}, {"v_cvt_scalef32_pk_f16_bf8", scaled_f16_bf8, M_OP_SEL},
    {"v_cvt_pk_u8_f32", pk_u8, M_SIGNS}, {"v_pack_b32_f16", pack_b32_f16, M_SIGNS | M_OP_SEL}, {"v_cvt_f64_u32", f64_u32, 0}, {"v_cvt_f64_i32", f64_i32, 0},
    {"v_cvt_f64_f32", f64_f32, M_SIGNS}, {"v_cvt_u32_f64", u32_f64, M_SIGNS}, {"v_cvt_i32_f64", i32_f64, M_SIGNS},
    {"v_cvt_f32_f64", f32_f64, M_SIGNS}, {0, 0, 0},
};
