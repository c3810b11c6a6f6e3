/* Integer VALU instructions: a pure function of one, two or three sources in each lane. */
#include "lanes.h"

#define ONE(NAME, K, EXPRESSION)                                                                                      \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 r0[LANES], out[LANES];                                                                                    \
        const u32 *s0 = source(wave, op, 0, 1, K, r0);                                                                \
        LANES_DO(u32 a = s0[lane]; out[lane] = (u32)(EXPRESSION)) put_result(wave, op, out, K == SHORT, 0);           \
        return GO_ON;                                                                                                 \
    }
#define TWO(NAME, K, KEEPS, EXPRESSION)                                                                               \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 r0[LANES], r1[LANES], out[LANES];                                                                         \
        const u32 *s0 = source(wave, op, 0, 1, K, r0), *s1 = source(wave, op, 1, 2, K, r1);                           \
        LANES_DO(u32 a = s0[lane]; u32 b = s1[lane]; out[lane] = (u32)(EXPRESSION))                                   \
        put_result(wave, op, out, K == SHORT, KEEPS);                                                                 \
        return GO_ON;                                                                                                 \
    }
#define THREE(NAME, K, K2, HALF_RESULT, KEEPS, EXPRESSION)                                                            \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 r0[LANES], r1[LANES], r2[LANES], out[LANES];                                                              \
        const u32 *s0 = source(wave, op, 0, 1, K, r0), *s1 = source(wave, op, 1, 2, K, r1);                           \
        const u32 *s2 = source(wave, op, 2, op->operands > 3 ? 3 : 0, K2, r2);                                        \
        LANES_DO(u32 a = s0[lane]; u32 b = s1[lane]; u32 c = s2[lane]; out[lane] = (u32)(EXPRESSION))                 \
        put_result(wave, op, out, HALF_RESULT, KEEPS);                                                                \
        return GO_ON;                                                                                                 \
    }
#define WORD_1(NAME, EXPRESSION) ONE(NAME, WORD, EXPRESSION)
#define WORD_2(NAME, EXPRESSION) TWO(NAME, WORD, 0, EXPRESSION)
#define WORD_3(NAME, EXPRESSION) THREE(NAME, WORD, WORD, 0, 0, EXPRESSION)

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
static inline u32 low_u(u32 a, u32 b) { return a < b ? a : b; }
static inline u32 high_u(u32 a, u32 b) { return a > b ? a : b; }
static inline u32 low_i(u32 a, u32 b) { return (i32)a < (i32)b ? a : b; }
static inline u32 high_i(u32 a, u32 b) { return (i32)a > (i32)b ? a : b; }
static inline u32 middle_u(u32 a, u32 b, u32 c) { return high_u(low_u(a, b), low_u(high_u(a, b), c)); }
static inline u32 middle_i(u32 a, u32 b, u32 c) { return high_i(low_i(a, b), low_i(high_i(a, b), c)); }
static inline u32 within(i32 a, i32 low, i32 high) { return (u32)(a < low ? low : a > high ? high : a); }
static inline u32 apart(u32 a, u32 b, int masked)
{
    u32 total = 0;
    for (int shift = 0; shift < 32; shift += 8) {
        u32 x = a >> shift & 0xFF, y = b >> shift & 0xFF;
        if (!masked || y)
            total += x > y ? x - y : y - x;
    }
    return total;
}
static inline u32 halves_apart(u32 a, u32 b)
{
    u32 low = (a & 0xFFFF) > (b & 0xFFFF) ? (a & 0xFFFF) - (b & 0xFFFF) : (b & 0xFFFF) - (a & 0xFFFF);
    return low + (a >> 16 > b >> 16 ? (a >> 16) - (b >> 16) : (b >> 16) - (a >> 16));
}
static inline i64 dot(u32 a, u32 b, int count, int sign)
{
    int bits = 32 / count;
    i64 total = 0, top = sign ? 1ll << (bits - 1) : 0, mask = (1ll << bits) - 1;
    for (int place = 0; place < count; place++)
        total += ((((i64)a >> place * bits & mask) ^ top) - top) * ((((i64)b >> place * bits & mask) ^ top) - top);
    return total;
}

WORD_1(mov, a)
WORD_1(not_, ~a)
WORD_1(bfrev, reversed(a))
WORD_1(ffbh_u32, a ? (u32)__builtin_clz(a) : ~0u)
WORD_1(ffbl_b32, a ? (u32)__builtin_ctz(a) : ~0u)
WORD_1(ffbh_i32, (a ^ (u32)((i32)a >> 31)) ? (u32)__builtin_clz(a ^ (u32)((i32)a >> 31)) : ~0u)
WORD_1(prng, (a << 1) ^ (a >> 31) * 197)
WORD_2(bcnt, (u32)__builtin_popcount(a) + b)
WORD_2(add_u32, a + b)
WORD_2(sub_u32, a - b)
WORD_2(subrev_u32, b - a)
WORD_2(bfm, ((1u << (a & 31)) - 1) << (b & 31))
WORD_2(cvt_pk_u16, low_u(a, 0xFFFF) | low_u(b, 0xFFFF) << 16)
WORD_2(cvt_pk_i16, (within((i32)a, -32768, 32767) & 0xFFFF) | within((i32)b, -32768, 32767) << 16)
WORD_2(mul_lo_u32, a *b)
WORD_2(mul_hi_u32, (u64)a *b >> 32)
WORD_2(mul_hi_i32, (i64)(i32)a *(i32)b >> 32)
WORD_2(mul_u32_u24, (a & 0xFFFFFF) * (b & 0xFFFFFF))
WORD_2(mul_i32_i24, (i64)signed24(a) * signed24(b))
WORD_2(mul_hi_u24, (u64)(a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32)
WORD_2(mul_hi_i24, (i64)signed24(a) * signed24(b) >> 32)
WORD_3(mad_u32_u24, (a & 0xFFFFFF) * (b & 0xFFFFFF) + c)
WORD_3(mad_i32_i24, (u32)((i64)signed24(a) * signed24(b)) + c)
WORD_2(lshlrev_b32, b << (a & 31))
WORD_2(lshrrev_b32, b >> (a & 31))
WORD_2(ashrrev_i32, (i32)b >> (a & 31))
WORD_2(and_b32, a &b)
WORD_2(or_b32, a | b)
WORD_2(xor_b32, a ^ b)
WORD_2(xnor_b32, ~(a ^ b))
WORD_2(min_u32, low_u(a, b))
WORD_2(max_u32, high_u(a, b))
WORD_2(min_i32, low_i(a, b))
WORD_2(max_i32, high_i(a, b))
WORD_3(min3_u32, low_u(low_u(a, b), c))
WORD_3(max3_u32, high_u(high_u(a, b), c))
WORD_3(med3_u32, middle_u(a, b, c))
WORD_3(min3_i32, low_i(low_i(a, b), c))
WORD_3(max3_i32, high_i(high_i(a, b), c))
WORD_3(med3_i32, middle_i(a, b, c))
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
WORD_3(sad_u8, apart(a, b, 0) + c)
WORD_3(sad_hi_u8, (apart(a, b, 0) << 16) + c)
WORD_3(msad_u8, apart(a, b, 1) + c)
WORD_3(sad_u16, halves_apart(a, b) + c)
WORD_3(sad_u32, (a > b ? a - b : b - a) + c)
WORD_3(dot2_i, dot(a, b, 2, 1) + (i32)c)
WORD_3(dot2_u, dot(a, b, 2, 0) + c)
WORD_3(dot4_i, dot(a, b, 4, 1) + (i32)c)
WORD_3(dot4_u, dot(a, b, 4, 0) + c)
WORD_3(dot8_i, dot(a, b, 8, 1) + (i32)c)
WORD_3(dot8_u, dot(a, b, 8, 0) + c)
/* 16 bits: a, b and c are the halves, without their signs; most clear the other half, the newer ones keep it. */
#define S(x) ((i32)(int16_t)(x))
TWO(add_u16, SHORT, 0, a + b)
TWO(sub_u16, SHORT, 0, a - b)
TWO(subrev_u16, SHORT, 0, b - a)
TWO(mul_lo_u16, SHORT, 0, a *b)
TWO(lshlrev_b16, SHORT, 0, b << (a & 15))
TWO(lshrrev_b16, SHORT, 0, b >> (a & 15))
TWO(ashrrev_i16, SHORT, 0, S(b) >> (a & 15))
TWO(max_u16, SHORT, 0, high_u(a, b))
TWO(min_u16, SHORT, 0, low_u(a, b))
TWO(max_i16, SHORT, 0, S(a) > S(b) ? a : b)
TWO(min_i16, SHORT, 0, S(a) < S(b) ? a : b)
TWO(add_i16, SHORT, 1, a + b)
TWO(sub_i16, SHORT, 1, a - b)
THREE(mad_16, SHORT, SHORT, 1, 1, a *b + c)
THREE(mad_legacy_16, SHORT, SHORT, 1, 0, a *b + c)
THREE(mad_u32_u16, SHORT, WORD, 0, 0, a *b + c)
THREE(mad_i32_i16, SHORT, WORD, 0, 0, (u32)(S(a) * S(b)) + c)
THREE(min3_u16, SHORT, SHORT, 1, 1, low_u(low_u(a, b), c))
THREE(max3_u16, SHORT, SHORT, 1, 1, high_u(high_u(a, b), c))
THREE(med3_u16, SHORT, SHORT, 1, 1, middle_u(a, b, c))
THREE(min3_i16, SHORT, SHORT, 1, 1, low_i(low_i((u32)S(a), (u32)S(b)), (u32)S(c)))
THREE(max3_i16, SHORT, SHORT, 1, 1, high_i(high_i((u32)S(a), (u32)S(b)), (u32)S(c)))
THREE(med3_i16, SHORT, SHORT, 1, 1, middle_i((u32)S(a), (u32)S(b), (u32)S(c)))

#define ANYWHERE (M_SDWA | M_DPP)
#define HALVES (M_SDWA | M_DPP | M_OP_SEL)
const Opcode INTEGER_OPCODES[] = {
    {"v_mov_b32", mov, ANYWHERE}, {"v_accvgpr_read_b32", mov, 0}, {"v_accvgpr_write_b32", mov, 0},
    {"v_accvgpr_mov_b32", mov, 0}, {"v_not_b32", not_, ANYWHERE}, {"v_bfrev_b32", bfrev, ANYWHERE},
    {"v_ffbh_u32", ffbh_u32, ANYWHERE}, {"v_ffbl_b32", ffbl_b32, ANYWHERE}, {"v_ffbh_i32", ffbh_i32, ANYWHERE},
    {"v_prng_b32", prng, ANYWHERE}, {"v_bcnt_u32_b32", bcnt, 0}, {"v_add_u32", add_u32, ANYWHERE},
    {"v_sub_u32", sub_u32, ANYWHERE}, {"v_subrev_u32", subrev_u32, ANYWHERE}, {"v_add_i32", add_u32, 0},
    {"v_sub_i32", sub_u32, 0}, {"v_bfm_b32", bfm, 0}, {"v_cvt_pk_u16_u32", cvt_pk_u16, 0},
    {"v_cvt_pk_i16_i32", cvt_pk_i16, 0}, {"v_mul_lo_u32", mul_lo_u32, 0}, {"v_mul_hi_u32", mul_hi_u32, 0},
    {"v_mul_hi_i32", mul_hi_i32, 0}, {"v_mul_u32_u24", mul_u32_u24, ANYWHERE}, {"v_mul_i32_i24", mul_i32_i24, ANYWHERE},
    {"v_mul_hi_u32_u24", mul_hi_u24, ANYWHERE}, {"v_mul_hi_i32_i24", mul_hi_i24, ANYWHERE},
    {"v_mad_u32_u24", mad_u32_u24, 0}, {"v_mad_i32_i24", mad_i32_i24, 0}, {"v_lshlrev_b32", lshlrev_b32, ANYWHERE},
    {"v_lshrrev_b32", lshrrev_b32, ANYWHERE}, {"v_ashrrev_i32", ashrrev_i32, ANYWHERE},
    {"v_and_b32", and_b32, ANYWHERE}, {"v_or_b32", or_b32, ANYWHERE}, {"v_xor_b32", xor_b32, ANYWHERE},
    {"v_xnor_b32", xnor_b32, ANYWHERE}, {"v_min_u32", min_u32, ANYWHERE}, {"v_max_u32", max_u32, ANYWHERE},
    {"v_min_i32", min_i32, ANYWHERE}, {"v_max_i32", max_i32, ANYWHERE}, {"v_min3_u32", min3_u32, 0},
    {"v_max3_u32", max3_u32, 0}, {"v_med3_u32", med3_u32, 0}, {"v_min3_i32", min3_i32, 0},
    {"v_max3_i32", max3_i32, 0}, {"v_med3_i32", med3_i32, 0}, {"v_add3_u32", add3_u32, 0},
    {"v_lshl_add_u32", lshl_add_u32, 0}, {"v_add_lshl_u32", add_lshl_u32, 0}, {"v_lshl_or_b32", lshl_or_b32, 0},
    {"v_and_or_b32", and_or_b32, 0}, {"v_or3_b32", or3_b32, 0}, {"v_xad_u32", xad_u32, 0}, {"v_bfe_u32", bfe_u32, 0},
    {"v_bfe_i32", bfe_i32, 0}, {"v_bfi_b32", bfi_b32, 0}, {"v_alignbit_b32", alignbit, 0},
    {"v_alignbyte_b32", alignbyte, 0}, {"v_perm_b32", perm, 0}, {"v_sad_u8", sad_u8, 0}, {"v_sad_hi_u8", sad_hi_u8, 0},
    {"v_msad_u8", msad_u8, 0}, {"v_sad_u16", sad_u16, 0}, {"v_sad_u32", sad_u32, 0}, {"v_dot2_i32_i16", dot2_i, 0},
    {"v_dot2_u32_u16", dot2_u, 0}, {"v_dot4_i32_i8", dot4_i, 0}, {"v_dot4_u32_u8", dot4_u, 0},
    {"v_dot8_i32_i4", dot8_i, 0}, {"v_dot8_u32_u4", dot8_u, 0}, {"v_dot2c_i32_i16", dot2_i, 0},
    {"v_dot4c_i32_i8", dot4_i, 0}, {"v_dot8c_i32_i4", dot8_i, 0}, {"v_add_u16", add_u16, HALVES},
    {"v_sub_u16", sub_u16, HALVES}, {"v_subrev_u16", subrev_u16, HALVES}, {"v_mul_lo_u16", mul_lo_u16, HALVES},
    {"v_lshlrev_b16", lshlrev_b16, HALVES}, {"v_lshrrev_b16", lshrrev_b16, HALVES},
    {"v_ashrrev_i16", ashrrev_i16, HALVES}, {"v_max_u16", max_u16, HALVES}, {"v_min_u16", min_u16, HALVES},
    {"v_max_i16", max_i16, HALVES}, {"v_min_i16", min_i16, HALVES}, {"v_add_i16", add_i16, HALVES},
    {"v_sub_i16", sub_i16, HALVES}, {"v_mad_u16", mad_16, HALVES}, {"v_mad_i16", mad_16, HALVES},
    {"v_mad_legacy_u16", mad_legacy_16, 0}, {"v_mad_legacy_i16", mad_legacy_16, 0},
    {"v_mad_u32_u16", mad_u32_u16, HALVES}, {"v_mad_i32_i16", mad_i32_i16, HALVES},
    {"v_min3_u16", min3_u16, HALVES}, {"v_max3_u16", max3_u16, HALVES}, {"v_med3_u16", med3_u16, HALVES},
    {"v_min3_i16", min3_i16, HALVES}, {"v_max3_i16", max3_i16, HALVES}, {"v_med3_i16", med3_i16, HALVES}, {0, 0, 0},
};
