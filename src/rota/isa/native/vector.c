/* VALU instructions, a function of 64 lanes each. */
#include <math.h>

#include "lanes.h"

static void placed(Wave *wave, const Op *op, u32 *values)
{
    int chosen = op->dst_sel;
    if (chosen != WHOLE_DWORD) {
        int bits = chosen < 4 ? 8 : 16, shift = chosen < 4 ? 8 * chosen : 16 * (chosen - 4);
        u32 mask = (1u << bits) - 1, keep = op->dst_unused == 2 ? ~(mask << shift) : 0;
        const u32 *old = wave->v[op->o[0].first];
        for (int lane = 0; lane < LANES; lane++)
            values[lane] = (values[lane] & mask) << shift | (old[lane] & keep);
    }
    put_words(wave, op->o[0].first, values);
}

static void clamped(const Op *op, u32 *values)
{
    if (op->clamp)
        for (int lane = 0; lane < LANES; lane++) {
            float value = as_float(values[lane]);
            values[lane] = as_bits(value < 0 ? 0.0f : value > 1 ? 1.0f : value);
        }
}

static void put_pairs(Wave *wave, const Op *op, const u64 *values)
{
    u32 low[LANES], high[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        low[lane] = (u32)values[lane];
        high[lane] = (u32)(values[lane] >> 32);
    }
    put_words(wave, op->o[0].first, low);
    put_words(wave, op->o[0].first + 1, high);
}

/* Integers: a, b, c are unsigned; a result is 32 bits. */
#define WORD_1(NAME, EXPRESSION)                                                                                      \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 out[LANES];                                                                                               \
        SOURCES_1(words_of) LANES_DO(u32 a = s0[lane]; out[lane] = (u32)(EXPRESSION)) placed(wave, op, out);          \
        return GO_ON;                                                                                                 \
    }
#define WORD_2(NAME, EXPRESSION)                                                                                      \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 out[LANES];                                                                                               \
        SOURCES_2(words_of)                                                                                           \
        LANES_DO(u32 a = s0[lane]; u32 b = s1[lane]; out[lane] = (u32)(EXPRESSION)) placed(wave, op, out);            \
        return GO_ON;                                                                                                 \
    }
#define WORD_3(NAME, EXPRESSION)                                                                                      \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 out[LANES];                                                                                               \
        SOURCES_3(words_of)                                                                                           \
        LANES_DO(u32 a = s0[lane]; u32 b = s1[lane]; u32 c = s2[lane]; out[lane] = (u32)(EXPRESSION))                 \
        placed(wave, op, out);                                                                                        \
        return GO_ON;                                                                                                 \
    }
/* Floats: x, y, z are float32; the result is an expression of bits, clamped if the instruction asks for it. */
#define FLOAT_1(NAME, EXPRESSION)                                                                                     \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 out[LANES];                                                                                               \
        SOURCES_1(floats_of) LANES_DO(float x = as_float(s0[lane]); out[lane] = (EXPRESSION)) clamped(op, out);       \
        placed(wave, op, out);                                                                                        \
        return GO_ON;                                                                                                 \
    }
#define FLOAT_2(NAME, EXPRESSION)                                                                                     \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 out[LANES];                                                                                               \
        SOURCES_2(floats_of)                                                                                          \
        LANES_DO(float x = as_float(s0[lane]); float y = as_float(s1[lane]); out[lane] = (EXPRESSION))                \
        clamped(op, out);                                                                                             \
        placed(wave, op, out);                                                                                        \
        return GO_ON;                                                                                                 \
    }
#define FLOAT_3(NAME, EXPRESSION)                                                                                     \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 out[LANES];                                                                                               \
        SOURCES_3(floats_of)                                                                                          \
        LANES_DO(float x = as_float(s0[lane]); float y = as_float(s1[lane]); float z = as_float(s2[lane]);            \
                 out[lane] = (EXPRESSION))                                                                            \
        clamped(op, out);                                                                                             \
        placed(wave, op, out);                                                                                        \
        return GO_ON;                                                                                                 \
    }
/* Pairs of registers: p is the source of 64 bits, a the shift amount. */
#define SHIFT_64(NAME, EXPRESSION)                                                                                    \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 r0[LANES];                                                                                                \
        u64 r1[LANES], out[LANES];                                                                                    \
        const u32 *s0 = words_of(wave, &op->o[1], r0);                                                                \
        const u64 *s1 = doubles_of(wave, &op->o[2], r1, 0);                                                           \
        LANES_DO(u32 a = s0[lane] & 63; u64 p = s1[lane]; out[lane] = (u64)(EXPRESSION)) put_pairs(wave, op, out);    \
        return GO_ON;                                                                                                 \
    }

static inline i32 signed24(u32 a) { return (i32)(a << 8) >> 8; }
static inline u32 field(u32 a, u32 b, u32 c) { return a >> (b & 31) & ((1u << (c & 31)) - 1); }
static inline u32 signed_field(u32 a, u32 b, u32 c)
{
    u32 size = c & 31, sign = size ? 1u << (size - 1) : 0;
    return (field(a, b, c) ^ sign) - sign;
}
static inline u32 joined(u32 a, u32 b, u32 shift) { return (u32)(((u64)a << 32 | b) >> shift); }
static u32 permuted(u32 a, u32 b, u32 selector)
{
    u64 both = (u64)a << 32 | b;
    u32 out = 0;
    for (int place = 0; place < 4; place++) {
        u32 chosen = selector >> 8 * place & 0xFF, octet;
        if (chosen < 8)
            octet = both >> 8 * chosen & 0xFF;
        else if (chosen < 12)
            octet = both >> (16 * (chosen & 3) + 15) & 1 ? 0xFF : 0;
        else
            octet = chosen == 12 ? 0 : 0xFF;
        out |= octet << 8 * place;
    }
    return out;
}
static inline u32 reversed(u32 a)
{
    a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
    a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
    a = (a >> 4 & 0x0F0F0F0F) | (a & 0x0F0F0F0F) << 4;
    return __builtin_bswap32(a);
}
static inline u32 to_unsigned(float x) { return x >= 4294967296.0f ? ~0u : x > 0 ? (u32)x : 0; }
static inline u32 to_signed(float x)
{
    return x >= 2147483648.0f ? 0x7FFFFFFF : x < -2147483648.0f ? 0x80000000 : x == x ? (u32)(i32)x : 0;
}
static inline u32 bf16(float x)
{
    u32 bits = as_bits(x);
    return x != x ? bits >> 16 | 0x40 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
static u32 half_towards_zero(float x)
{
    u32 half = float_to_half(x);
    return fabsf(half_to_float(half)) > fabsf(x) ? half - 1 : half;
}
static inline float fused(float x, float y, float z) { return (float)((double)x * y + z); }
static inline float larger(float x, float y) { return x > y || y != y ? x : y; }
static inline float smaller(float x, float y) { return x < y || y != y ? x : y; }

WORD_1(mov, a)
WORD_1(not, ~a)
WORD_1(bfrev, reversed(a))
WORD_2(bcnt, __builtin_popcount(a) + b)
WORD_2(add_u16, (a + b) & 0xFFFF)
WORD_2(sub_u16, (a - b) & 0xFFFF)
WORD_2(mul_lo_u16, (a * b) & 0xFFFF)
WORD_2(lshlrev_b16, b << (a & 15) & 0xFFFF)
WORD_2(lshrrev_b16, (b & 0xFFFF) >> (a & 15))
WORD_2(add_u32, a + b)
WORD_2(sub_u32, a - b)
WORD_2(subrev_u32, b - a)
WORD_2(mul_lo_u32, a *b)
WORD_2(mul_hi_u32, (u64)a *b >> 32)
WORD_2(mul_hi_i32, (i64)(i32)a *(i32)b >> 32)
WORD_2(mul_u32_u24, (a & 0xFFFFFF) * (b & 0xFFFFFF))
WORD_2(mul_i32_i24, (i64)signed24(a) * signed24(b))
WORD_3(mad_u32_u24, (a & 0xFFFFFF) * (b & 0xFFFFFF) + c)
WORD_3(mad_i32_i24, (u32)((i64)signed24(a) * signed24(b)) + c)
WORD_2(lshlrev_b32, b << (a & 31))
WORD_2(lshrrev_b32, b >> (a & 31))
WORD_2(ashrrev_i32, (i32)b >> (a & 31))
SHIFT_64(lshlrev_b64, p << a)
SHIFT_64(lshrrev_b64, p >> a)
SHIFT_64(ashrrev_i64, (i64)p >> a)
WORD_2(and_b32, a &b)
WORD_2(or_b32, a | b)
WORD_2(xor_b32, a ^ b)
WORD_2(xnor_b32, ~(a ^ b))
WORD_2(min_u32, a < b ? a : b)
WORD_2(max_u32, a > b ? a : b)
WORD_2(min_i32, (i32)a < (i32)b ? a : b)
WORD_2(max_i32, (i32)a > (i32)b ? a : b)
WORD_3(add3_u32, a + b + c)
WORD_3(lshl_add_u32, (a << (b & 31)) + c)
WORD_3(add_lshl_u32, (a + b) << (c & 31))
WORD_3(lshl_or_b32, a << (b & 31) | c)
WORD_3(and_or_b32, (a & b) | c)
WORD_3(or3_b32, a | b | c)
WORD_3(xad_u32, (a ^ b) + c)
WORD_3(bfe_u32, field(a, b, c))
WORD_3(bfe_i32, signed_field(a, b, c))
WORD_3(bfi_b32, (a & b) | (~a & c))
WORD_3(alignbit, joined(a, b, c & 31))
WORD_3(alignbyte, joined(a, b, 8 * (c & 3)))
WORD_3(perm, permuted(a, b, c))
FLOAT_2(add_f32, as_bits(x + y))
FLOAT_2(sub_f32, as_bits(x - y))
FLOAT_2(subrev_f32, as_bits(y - x))
FLOAT_2(mul_f32, as_bits(x *y))
FLOAT_2(max_f32, as_bits(larger(x, y)))
FLOAT_2(min_f32, as_bits(smaller(x, y)))
FLOAT_3(fma_f32, as_bits(fused(x, y, z)))
FLOAT_3(max3_f32, as_bits(larger(larger(x, y), z)))
FLOAT_1(exp_f32, as_bits(exp2f(x)))
FLOAT_1(log_f32, as_bits(log2f(x)))
FLOAT_1(rcp_f32, as_bits(1.0f / x))
FLOAT_1(sqrt_f32, as_bits(sqrtf(x)))
WORD_1(cvt_f32_u32, as_bits((float)a))
WORD_1(cvt_f32_i32, as_bits((float)(i32)a))
FLOAT_1(cvt_u32_f32, to_unsigned(x))
FLOAT_1(cvt_i32_f32, to_signed(x))
FLOAT_1(cvt_f16_f32, float_to_half(x))
FLOAT_2(cvt_pkrtz, half_towards_zero(x) | half_towards_zero(y) << 16)
FLOAT_2(cvt_pk_bf16, bf16(x) | bf16(y) << 16)
FLOAT_2(cvt_pk_f16, float_to_half(x) | float_to_half(y) << 16)

static int32_t cvt_f32_f16(Wave *wave, const Op *op)
{
    u32 out[LANES];
    SOURCES_1(halves_of)
    LANES_DO(out[lane] = as_bits(half_to_float(s0[lane] & 0xFFFF)))
    clamped(op, out);
    placed(wave, op, out);
    return GO_ON;
}

static int32_t pack_b32_f16(Wave *wave, const Op *op)
{
    u32 out[LANES];
    SOURCES_2(halves_of)
    LANES_DO(out[lane] = (s0[lane] & 0xFFFF) | s1[lane] << 16)
    placed(wave, op, out);
    return GO_ON;
}

static int32_t fmac_f32(Wave *wave, const Op *op)
{
    u32 out[LANES];
    SOURCES_2(floats_of)
    const u32 *sum = wave->v[op->o[0].first];
    LANES_DO(out[lane] = as_bits(fused(as_float(s0[lane]), as_float(s1[lane]), as_float(sum[lane]))))
    clamped(op, out);
    placed(wave, op, out);
    return GO_ON;
}

static int32_t mov_b64(Wave *wave, const Op *op)
{
    u64 room[LANES];
    put_pairs(wave, op, doubles_of(wave, &op->o[1], room, 0));
    return GO_ON;
}

static int32_t lshl_add_u64(Wave *wave, const Op *op)
{
    u64 r0[LANES], r2[LANES], out[LANES];
    u32 r1[LANES];
    const u64 *a = doubles_of(wave, &op->o[1], r0, 0), *c = doubles_of(wave, &op->o[3], r2, 0);
    const u32 *b = words_of(wave, &op->o[2], r1);
    LANES_DO(out[lane] = (a[lane] << (b[lane] & 63)) + c[lane])
    put_pairs(wave, op, out);
    return GO_ON;
}

static int32_t bitop3(Wave *wave, const Op *op)
{
    u32 out[LANES] = {0};
    SOURCES_3(words_of)
    for (int term = 0; term < 8; term++)
        if (op->immediate >> term & 1)
            LANES_DO(out[lane] |= (term & 4 ? s0[lane] : ~s0[lane]) & (term & 2 ? s1[lane] : ~s1[lane]) &
                                  (term & 1 ? s2[lane] : ~s2[lane]))
    put_words(wave, op->o[0].first, out);
    return GO_ON;
}

/* Carries: total is that of 33 bits and a sign. */
#define CARRY(NAME, EXPRESSION)                                                                                       \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 r0[LANES], r1[LANES], out[LANES];                                                                         \
        const u32 *s0 = words_of(wave, &op->o[2], r0), *s1 = words_of(wave, &op->o[3], r1);                           \
        u64 into = op->operands > 4 ? scalar64(wave, &op->o[4]) : 0, carry = 0;                                       \
        LANES_DO(i64 a = s0[lane]; i64 b = s1[lane]; i64 c = into >> lane & 1; i64 total = (EXPRESSION);              \
                 out[lane] = (u32)total; carry |= (u64)(total < 0 || total >> 32 != 0) << lane)                       \
        put_words(wave, op->o[0].first, out);                                                                         \
        put_scalar64(wave, &op->o[1], carry & wave->exec);                                                            \
        return GO_ON;                                                                                                 \
    }
CARRY(add_co, a + b + c)
CARRY(sub_co, a - b - c)
CARRY(subrev_co, b - a - c)

static int32_t cndmask(Wave *wave, const Op *op)
{
    u32 out[LANES];
    SOURCES_2(floats_of)
    u64 which = scalar64(wave, &op->o[3]);
    LANES_DO(out[lane] = which >> lane & 1 ? s1[lane] : s0[lane])
    placed(wave, op, out);
    return GO_ON;
}

static int32_t mad_64(Wave *wave, const Op *op, int sign)
{
    u32 r0[LANES], r1[LANES];
    u64 r2[LANES], out[LANES], carry = 0;
    const u32 *a = words_of(wave, &op->o[2], r0), *b = words_of(wave, &op->o[3], r1);
    const u64 *c = doubles_of(wave, &op->o[4], r2, 0);
    LANES_DO(__int128 total = sign ? (__int128)((i64)(i32)a[lane] * (i32)b[lane]) + (i64)c[lane]
                                   : (__int128)((u64)a[lane] * b[lane]) + c[lane];
             out[lane] = (u64)total; carry |= (u64)(total >> 64 & 1) << lane)
    put_pairs(wave, op, out);
    put_scalar64(wave, &op->o[1], carry & wave->exec);
    return GO_ON;
}
static int32_t mad_u64(Wave *wave, const Op *op) { return mad_64(wave, op, 0); }
static int32_t mad_i64(Wave *wave, const Op *op) { return mad_64(wave, op, 1); }

static int32_t readfirstlane(Wave *wave, const Op *op)
{
    u32 room[LANES];
    const u32 *from = words_of(wave, &op->o[1], room);
    put_scalar32(wave, &op->o[0], from[wave->exec ? __builtin_ctzll(wave->exec) : 0]);
    return GO_ON;
}
static int32_t readlane(Wave *wave, const Op *op)
{
    u32 room[LANES];
    put_scalar32(wave, &op->o[0], words_of(wave, &op->o[1], room)[scalar32(wave, &op->o[2]) & 63]);
    return GO_ON;
}
static int32_t writelane(Wave *wave, const Op *op)
{
    wave->v[op->o[0].first][scalar32(wave, &op->o[2]) & 63] = scalar32(wave, &op->o[1]);
    return GO_ON;
}
static int32_t mbcnt(Wave *wave, const Op *op, int base)
{
    u32 out[LANES];
    SOURCES_2(words_of)
    LANES_DO(int width = lane - base; u32 below = width <= 0 ? 0 : width >= 32 ? ~0u : (1u << width) - 1;
             out[lane] = (u32)__builtin_popcount(s0[lane] & below) + s1[lane])
    put_words(wave, op->o[0].first, out);
    return GO_ON;
}
static int32_t mbcnt_lo(Wave *wave, const Op *op) { return mbcnt(wave, op, 0); }
static int32_t mbcnt_hi(Wave *wave, const Op *op) { return mbcnt(wave, op, 32); }

/* Two float32 at once; op_sel and op_sel_hi choose which half of each source a result takes. */
static const u32 *part_of(Wave *wave, const Op *op, int number, int high, u32 *room)
{
    Operand o = op->o[1 + number];
    int chosen = (high ? op->op_sel_hi : op->op_sel) >> number & 1;
    if (o.file == VECTOR || o.file == SCALAR)
        o.first += chosen;
    o.negate = (high ? op->neg_hi : op->neg_lo) >> number & 1;
    return floats_of(wave, &o, room);
}
#define PACKED(NAME, COUNT, EXPRESSION)                                                                               \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 out[2][LANES], room[3][LANES];                                                                            \
        for (int high = 0; high < 2; high++) {                                                                        \
            const u32 *from[3];                                                                                       \
            for (int number = 0; number < COUNT; number++)                                                            \
                from[number] = part_of(wave, op, number, high, room[number]);                                         \
            LANES_DO(float x = as_float(from[0][lane]); float y = as_float(from[1][lane]);                            \
                     float z = COUNT > 2 ? as_float(from[COUNT - 1][lane]) : 0; (void)z;                              \
                     out[high][lane] = as_bits(EXPRESSION))                                                           \
        }                                                                                                             \
        put_words(wave, op->o[0].first, out[0]);                                                                      \
        put_words(wave, op->o[0].first + 1, out[1]);                                                                  \
        return GO_ON;                                                                                                 \
    }
PACKED(pk_add_f32, 2, x + y)
PACKED(pk_mul_f32, 2, x *y)
PACKED(pk_fma_f32, 3, fused(x, y, z))

const Opcode VECTOR_OPCODES[] = {
    {"v_mov_b32", mov, M_SDWA}, {"v_mov_b64", mov_b64, 0}, {"v_accvgpr_read_b32", mov, 0},
    {"v_accvgpr_write_b32", mov, 0}, {"v_accvgpr_mov_b32", mov, 0}, {"v_not_b32", not, M_SDWA},
    {"v_bfrev_b32", bfrev, 0}, {"v_bcnt_u32_b32", bcnt, 0}, {"v_add_u16", add_u16, M_SDWA},
    {"v_sub_u16", sub_u16, M_SDWA}, {"v_mul_lo_u16", mul_lo_u16, M_SDWA}, {"v_lshlrev_b16", lshlrev_b16, M_SDWA},
    {"v_lshrrev_b16", lshrrev_b16, M_SDWA}, {"v_add_u32", add_u32, M_SDWA}, {"v_sub_u32", sub_u32, M_SDWA},
    {"v_subrev_u32", subrev_u32, M_SDWA}, {"v_mul_lo_u32", mul_lo_u32, 0}, {"v_mul_hi_u32", mul_hi_u32, 0},
    {"v_mul_hi_i32", mul_hi_i32, 0}, {"v_mul_u32_u24", mul_u32_u24, M_SDWA}, {"v_mul_i32_i24", mul_i32_i24, M_SDWA},
    {"v_mad_u32_u24", mad_u32_u24, 0}, {"v_mad_i32_i24", mad_i32_i24, 0}, {"v_lshlrev_b32", lshlrev_b32, M_SDWA},
    {"v_lshrrev_b32", lshrrev_b32, M_SDWA}, {"v_ashrrev_i32", ashrrev_i32, M_SDWA},
    {"v_lshlrev_b64", lshlrev_b64, 0}, {"v_lshrrev_b64", lshrrev_b64, 0}, {"v_ashrrev_i64", ashrrev_i64, 0},
    {"v_and_b32", and_b32, M_SDWA}, {"v_or_b32", or_b32, M_SDWA}, {"v_xor_b32", xor_b32, M_SDWA},
    {"v_xnor_b32", xnor_b32, M_SDWA}, {"v_min_u32", min_u32, M_SDWA}, {"v_max_u32", max_u32, M_SDWA},
    {"v_min_i32", min_i32, M_SDWA}, {"v_max_i32", max_i32, M_SDWA}, {"v_add3_u32", add3_u32, 0},
    {"v_lshl_add_u32", lshl_add_u32, 0}, {"v_add_lshl_u32", add_lshl_u32, 0}, {"v_lshl_or_b32", lshl_or_b32, 0},
    {"v_and_or_b32", and_or_b32, 0}, {"v_or3_b32", or3_b32, 0}, {"v_xad_u32", xad_u32, 0},
    {"v_lshl_add_u64", lshl_add_u64, 0}, {"v_bfe_u32", bfe_u32, 0}, {"v_bfe_i32", bfe_i32, 0},
    {"v_bfi_b32", bfi_b32, 0}, {"v_alignbit_b32", alignbit, 0}, {"v_alignbyte_b32", alignbyte, 0},
    {"v_perm_b32", perm, 0}, {"v_add_f32", add_f32, M_CLAMP}, {"v_sub_f32", sub_f32, M_CLAMP},
    {"v_subrev_f32", subrev_f32, M_CLAMP}, {"v_mul_f32", mul_f32, M_CLAMP}, {"v_max_f32", max_f32, M_CLAMP},
    {"v_min_f32", min_f32, M_CLAMP}, {"v_fma_f32", fma_f32, M_CLAMP}, {"v_fmac_f32", fmac_f32, M_CLAMP},
    {"v_max3_f32", max3_f32, M_CLAMP}, {"v_exp_f32", exp_f32, M_CLAMP}, {"v_log_f32", log_f32, M_CLAMP},
    {"v_rcp_f32", rcp_f32, M_CLAMP}, {"v_rcp_iflag_f32", rcp_f32, M_CLAMP}, {"v_sqrt_f32", sqrt_f32, M_CLAMP},
    {"v_cvt_f32_u32", cvt_f32_u32, M_SDWA}, {"v_cvt_f32_i32", cvt_f32_i32, M_SDWA},
    {"v_cvt_u32_f32", cvt_u32_f32, 0}, {"v_cvt_i32_f32", cvt_i32_f32, 0}, {"v_cvt_f32_f16", cvt_f32_f16, M_CLAMP},
    {"v_cvt_f16_f32", cvt_f16_f32, M_SDWA}, {"v_cvt_pkrtz_f16_f32", cvt_pkrtz, 0},
    {"v_cvt_pk_bf16_f32", cvt_pk_bf16, 0}, {"v_cvt_pk_f16_f32", cvt_pk_f16, 0}, {"v_pack_b32_f16", pack_b32_f16, 0},
    {"v_bitop3_b32", bitop3, M_IMMEDIATE}, {"v_add_co_u32", add_co, 0}, {"v_addc_co_u32", add_co, 0},
    {"v_sub_co_u32", sub_co, 0}, {"v_subb_co_u32", sub_co, 0}, {"v_subrev_co_u32", subrev_co, 0},
    {"v_subbrev_co_u32", subrev_co, 0}, {"v_cndmask_b32", cndmask, 0}, {"v_mad_u64_u32", mad_u64, 0},
    {"v_mad_i64_i32", mad_i64, 0}, {"v_readfirstlane_b32", readfirstlane, 0}, {"v_readlane_b32", readlane, 0},
    {"v_writelane_b32", writelane, 0}, {"v_mbcnt_lo_u32_b32", mbcnt_lo, 0}, {"v_mbcnt_hi_u32_b32", mbcnt_hi, 0},
    {"v_pk_add_f32", pk_add_f32, M_OP_SEL | M_NEG}, {"v_pk_mul_f32", pk_mul_f32, M_OP_SEL | M_NEG},
    {"v_pk_fma_f32", pk_fma_f32, M_OP_SEL | M_NEG}, {0, 0, 0},
};
