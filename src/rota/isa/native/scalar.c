/* Scalar instructions: one value for the whole wave, and SCC. */
#include "core.h"

typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;

#define KEEP (-1) /* SCC stays as it is */

static int32_t done32(Wave *wave, const Op *op, u32 value, int scc)
{
    put_scalar32(wave, &op->o[0], value);
    if (scc != KEEP)
        wave->scc = scc;
    return GO_ON;
}
static int32_t done64(Wave *wave, const Op *op, u64 value, int scc)
{
    put_scalar64(wave, &op->o[0], value);
    if (scc != KEEP)
        wave->scc = scc;
    return GO_ON;
}

/* a and b are the sources, r the result, s the old SCC. */
#define TWO(NAME, EXPRESSION, SCC_)                                                                                   \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 a = scalar32(wave, &op->o[1]), b = scalar32(wave, &op->o[2]), s = (u32)wave->scc;                         \
        u32 r = (u32)(EXPRESSION);                                                                                    \
        (void)s;                                                                                                      \
        return done32(wave, op, r, SCC_);                                                                             \
    }
#define TWO_WIDE(NAME, EXPRESSION, SCC_)                                                                              \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u64 a = scalar64(wave, &op->o[1]), b = scalar64(wave, &op->o[2]), s = (u64)wave->scc;                         \
        u64 r = (u64)(EXPRESSION);                                                                                    \
        (void)s;                                                                                                      \
        return done64(wave, op, r, SCC_);                                                                             \
    }
#define SHIFT_WIDE(NAME, EXPRESSION)                                                                                  \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u64 a = scalar64(wave, &op->o[1]), b = scalar32(wave, &op->o[2]) & 63, r = (u64)(EXPRESSION);                 \
        return done64(wave, op, r, r != 0);                                                                           \
    }
#define ONE(NAME, EXPRESSION, SCC_)                                                                                   \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 a = scalar32(wave, &op->o[1]), r = (u32)(EXPRESSION);                                                     \
        return done32(wave, op, r, SCC_);                                                                             \
    }
#define COUNT_WIDE(NAME, EXPRESSION, SCC_)                                                                            \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u64 a = scalar64(wave, &op->o[1]);                                                                            \
        u32 r = (u32)(EXPRESSION);                                                                                    \
        return done32(wave, op, r, SCC_);                                                                             \
    }
/* On the destination itself: d is its old value, b the source, k the same as 16 bits with a sign. */
#define ITSELF(NAME, EXPRESSION, SCC_)                                                                                \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 d = scalar32(wave, &op->o[0]), b = scalar32(wave, &op->o[1]), s = (u32)wave->scc;                         \
        i64 k = (int16_t)b;                                                                                           \
        u32 r = (u32)(EXPRESSION);                                                                                    \
        (void)s, (void)k, (void)d;                                                                                    \
        return done32(wave, op, r, SCC_);                                                                             \
    }
#define COMPARE(NAME, TYPE, CONDITION)                                                                                \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        TYPE a = (TYPE)scalar32(wave, &op->o[0]), b = (TYPE)scalar32(wave, &op->o[1]);                                \
        wave->scc = CONDITION;                                                                                        \
        return GO_ON;                                                                                                 \
    }
#define COMPARE_K(NAME, TYPE, SHORT, CONDITION)                                                                       \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        TYPE a = (TYPE)scalar32(wave, &op->o[0]), b = (SHORT)scalar32(wave, &op->o[1]);                               \
        wave->scc = CONDITION;                                                                                        \
        return GO_ON;                                                                                                 \
    }
#define ORDERS(X)                                                                                                     \
    X(eq, a == b) X(lg, a != b) X(gt, a > b) X(ge, a >= b) X(lt, a < b) X(le, a <= b)
#define FOUR_COMPARES(ORDER, CONDITION)                                                                               \
    COMPARE(cmp_##ORDER##_i, i32, CONDITION)                                                                          \
    COMPARE(cmp_##ORDER##_u, u32, CONDITION)                                                                          \
    COMPARE_K(cmpk_##ORDER##_i, i32, int16_t, CONDITION)                                                              \
    COMPARE_K(cmpk_##ORDER##_u, u32, uint16_t, CONDITION)

static inline int overflows(i64 total) { return total != (i32)total; }
static inline u64 field(u64 a, u32 b, int width, int sign)
{
    u32 start = b & (u32)(width - 1), size = b >> 16 & 0x7F;
    u64 all = width == 64 ? ~0ull : 0xFFFFFFFFull, value = (a & all) >> start;
    if (size < 64)
        value &= (1ull << size) - 1;
    if (sign && size && size < 64 && value >> (size - 1) & 1)
        value |= ~0ull << size;
    return value & all;
}

TWO(add_u32, a + b, (int)(((u64)a + b) >> 32))
TWO(addc_u32, a + b + s, (int)(((u64)a + b + s) >> 32))
TWO(sub_u32, a - b, b > a)
TWO(subb_u32, a - b - s, (u64)b + s > a)
TWO(add_i32, a + b, overflows((i64)(i32)a + (i32)b))
TWO(sub_i32, a - b, overflows((i64)(i32)a - (i32)b))
TWO(mul_i32, a *b, KEEP)
TWO(mul_hi_u32, (u64)a *b >> 32, KEEP)
TWO(mul_hi_i32, (i64)(i32)a *(i32)b >> 32, KEEP)
TWO(lshl_b32, a << (b & 31), r != 0)
TWO(lshr_b32, a >> (b & 31), r != 0)
TWO(ashr_i32, (i32)a >> (b & 31), r != 0)
SHIFT_WIDE(lshl_b64, a << b)
SHIFT_WIDE(lshr_b64, a >> b)
SHIFT_WIDE(ashr_i64, (i64)a >> b)
TWO(min_i32, (i32)a < (i32)b ? a : b, (i32)a < (i32)b)
TWO(min_u32, a < b ? a : b, a < b)
TWO(max_i32, (i32)a > (i32)b ? a : b, (i32)a > (i32)b)
TWO(max_u32, a > b ? a : b, a > b)
TWO(bfe_u32, field(a, b, 32, 0), r != 0)
TWO(bfe_i32, field(a, b, 32, 1), r != 0)
TWO(bfm_b32, ((1u << (a & 31)) - 1) << (b & 31), KEEP)
static int32_t bfm_b64(Wave *wave, const Op *op)
{
    u64 ones = (1ull << (scalar32(wave, &op->o[1]) & 63)) - 1;
    put_scalar64(wave, &op->o[0], ones << (scalar32(wave, &op->o[2]) & 63));
    return GO_ON;
}
TWO(cselect_b32, s ? a : b, KEEP)
TWO_WIDE(cselect_b64, s ? a : b, KEEP)
TWO(pack_ll, (a & 0xFFFF) | b << 16, KEEP)
TWO(pack_lh, (a & 0xFFFF) | (b & 0xFFFF0000), KEEP)
TWO(pack_hh, a >> 16 | (b & 0xFFFF0000), KEEP)
TWO(lshl1_add, (a << 1) + b, (((u64)a << 1) + b) >> 32 != 0)
TWO(lshl2_add, (a << 2) + b, (((u64)a << 2) + b) >> 32 != 0)
TWO(lshl3_add, (a << 3) + b, (((u64)a << 3) + b) >> 32 != 0)
TWO(lshl4_add, (a << 4) + b, (((u64)a << 4) + b) >> 32 != 0)
#define LOGIC(NAME, EXPRESSION)                                                                                       \
    TWO(NAME##_b32, EXPRESSION, r != 0)                                                                               \
    TWO_WIDE(NAME##_b64, EXPRESSION, r != 0)
LOGIC(and_, a &b)
LOGIC(or_, a | b)
LOGIC(xor_, a ^ b)
LOGIC(andn2, a & ~b)
LOGIC(orn2, a | ~b)
LOGIC(nand, ~(a & b))
LOGIC(nor, ~(a | b))
LOGIC(xnor, ~(a ^ b))
ONE(mov_b32, a, KEEP)
ONE(movk_i32, (i32)(int16_t)a, KEEP)
ONE(not_b32, ~a, r != 0)
ONE(abs_i32, (i32)a < 0 ? 0u - a : a, r != 0)
ONE(sext_i8, (i32)(int8_t)a, KEEP)
ONE(sext_i16, (i32)(int16_t)a, KEEP)
ONE(bcnt1_b32, __builtin_popcount(a), r != 0)
ONE(ff1_b32, a ? (u32)__builtin_ctz(a) : ~0u, KEEP)
ONE(flbit_b32, a ? (u32)__builtin_clz(a) : ~0u, KEEP)
COUNT_WIDE(bcnt1_b64, __builtin_popcountll(a), r != 0)
COUNT_WIDE(ff1_b64, a ? (u32)__builtin_ctzll(a) : ~0u, KEEP)
ITSELF(addk_i32, d + (u32)k, overflows((i64)(i32)d + k))
ITSELF(mulk_i32, (i64)(i32)d *k, KEEP)
ITSELF(cmovk_i32, s ? (u32)k : d, KEEP)
ITSELF(cmov_b32, s ? b : d, KEEP)
ITSELF(bitset0, d & ~(1u << (b & 31)), KEEP)
ITSELF(bitset1, d | 1u << (b & 31), KEEP)
ORDERS(FOUR_COMPARES)

static int32_t brev_b32(Wave *wave, const Op *op)
{
    u32 a = scalar32(wave, &op->o[1]), r = 0;
    for (int bit = 0; bit < 32; bit++)
        r |= (a >> bit & 1) << (31 - bit);
    return done32(wave, op, r, KEEP);
}
static int32_t mov_b64(Wave *wave, const Op *op) { return done64(wave, op, scalar64(wave, &op->o[1]), KEEP); }
static int32_t not_b64(Wave *wave, const Op *op)
{
    u64 r = ~scalar64(wave, &op->o[1]);
    return done64(wave, op, r, r != 0);
}
static int32_t cmov_b64(Wave *wave, const Op *op)
{
    return wave->scc ? mov_b64(wave, op) : GO_ON;
}
static int32_t bfe_64(Wave *wave, const Op *op, int sign)
{
    u64 r = field(scalar64(wave, &op->o[1]), scalar32(wave, &op->o[2]), 64, sign);
    return done64(wave, op, r, r != 0);
}
static int32_t bfe_u64(Wave *wave, const Op *op) { return bfe_64(wave, op, 0); }
static int32_t bfe_i64(Wave *wave, const Op *op) { return bfe_64(wave, op, 1); }
static int32_t cmp_eq_u64(Wave *wave, const Op *op)
{
    wave->scc = scalar64(wave, &op->o[0]) == scalar64(wave, &op->o[1]);
    return GO_ON;
}
static int32_t cmp_lg_u64(Wave *wave, const Op *op)
{
    wave->scc = scalar64(wave, &op->o[0]) != scalar64(wave, &op->o[1]);
    return GO_ON;
}
static int32_t bitcmp(Wave *wave, const Op *op, u32 wanted)
{
    wave->scc = (scalar32(wave, &op->o[0]) >> (scalar32(wave, &op->o[1]) & 31) & 1) == wanted;
    return GO_ON;
}
static int32_t bitcmp0(Wave *wave, const Op *op) { return bitcmp(wave, op, 0); }
static int32_t bitcmp1(Wave *wave, const Op *op) { return bitcmp(wave, op, 1); }
#define SAVE(NAME, EXPRESSION)                                                                                        \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        static const Operand exec = {.file = SCALAR, .first = EXEC, .count = 2};                                      \
        u64 before = wave->exec, mask = scalar64(wave, &op->o[1]), r = (EXPRESSION);                                  \
        put_scalar64(wave, &op->o[0], before);                                                                        \
        put_scalar64(wave, &exec, r);                                                                                 \
        wave->scc = r != 0;                                                                                           \
        return GO_ON;                                                                                                 \
    }
SAVE(and_saveexec, mask &before)
SAVE(or_saveexec, mask | before)
SAVE(andn2_saveexec, mask & ~before)

#define BOTH(NAME, ACT) {"s_" NAME "_b32", ACT##_b32, 0}, {"s_" NAME "_b64", ACT##_b64, 0}
#define NAMES(ORDER, CONDITION)                                                                                       \
    {"s_cmp_" #ORDER "_i32", cmp_##ORDER##_i, 0}, {"s_cmp_" #ORDER "_u32", cmp_##ORDER##_u, 0},                       \
        {"s_cmpk_" #ORDER "_i32", cmpk_##ORDER##_i, 0}, {"s_cmpk_" #ORDER "_u32", cmpk_##ORDER##_u, 0},
const Opcode SCALAR_OPCODES[] = {
    {"s_add_u32", add_u32, 0}, {"s_addc_u32", addc_u32, 0}, {"s_sub_u32", sub_u32, 0}, {"s_subb_u32", subb_u32, 0},
    {"s_add_i32", add_i32, 0}, {"s_sub_i32", sub_i32, 0}, {"s_mul_i32", mul_i32, 0}, {"s_mul_hi_u32", mul_hi_u32, 0},
    {"s_mul_hi_i32", mul_hi_i32, 0}, {"s_lshl_b32", lshl_b32, 0}, {"s_lshr_b32", lshr_b32, 0},
    {"s_ashr_i32", ashr_i32, 0}, {"s_lshl_b64", lshl_b64, 0}, {"s_lshr_b64", lshr_b64, 0}, {"s_ashr_i64", ashr_i64, 0},
    {"s_min_i32", min_i32, 0}, {"s_min_u32", min_u32, 0}, {"s_max_i32", max_i32, 0}, {"s_max_u32", max_u32, 0},
    {"s_bfe_u32", bfe_u32, 0}, {"s_bfe_i32", bfe_i32, 0}, {"s_bfe_u64", bfe_u64, 0}, {"s_bfe_i64", bfe_i64, 0},
    {"s_bfm_b32", bfm_b32, 0}, {"s_bfm_b64", bfm_b64, 0}, {"s_cselect_b32", cselect_b32, 0}, {"s_cselect_b64", cselect_b64, 0},
    {"s_pack_ll_b32_b16", pack_ll, 0}, {"s_pack_lh_b32_b16", pack_lh, 0}, {"s_pack_hh_b32_b16", pack_hh, 0},
    {"s_lshl1_add_u32", lshl1_add, 0}, {"s_lshl2_add_u32", lshl2_add, 0}, {"s_lshl3_add_u32", lshl3_add, 0},
    {"s_lshl4_add_u32", lshl4_add, 0}, BOTH("and", and_), BOTH("or", or_), BOTH("xor", xor_), BOTH("andn2", andn2),
    BOTH("orn2", orn2), BOTH("nand", nand), BOTH("nor", nor), BOTH("xnor", xnor), {"s_mov_b32", mov_b32, 0},
    {"s_mov_b64", mov_b64, 0}, {"s_movk_i32", movk_i32, 0}, {"s_not_b32", not_b32, 0}, {"s_not_b64", not_b64, 0},
    {"s_brev_b32", brev_b32, 0}, {"s_abs_i32", abs_i32, 0}, {"s_sext_i32_i8", sext_i8, 0},
    {"s_sext_i32_i16", sext_i16, 0}, {"s_bcnt1_i32_b32", bcnt1_b32, 0}, {"s_bcnt1_i32_b64", bcnt1_b64, 0},
    {"s_ff1_i32_b32", ff1_b32, 0}, {"s_ff1_i32_b64", ff1_b64, 0}, {"s_flbit_i32_b32", flbit_b32, 0},
    {"s_addk_i32", addk_i32, 0}, {"s_mulk_i32", mulk_i32, 0}, {"s_cmovk_i32", cmovk_i32, 0},
    {"s_cmov_b32", cmov_b32, 0}, {"s_cmov_b64", cmov_b64, 0}, {"s_bitset0_b32", bitset0, 0},
    {"s_bitset1_b32", bitset1, 0}, ORDERS(NAMES){"s_cmp_eq_u64", cmp_eq_u64, 0}, {"s_cmp_lg_u64", cmp_lg_u64, 0},
    {"s_bitcmp0_b32", bitcmp0, 0}, {"s_bitcmp1_b32", bitcmp1, 0}, {"s_and_saveexec_b64", and_saveexec, 0},
    {"s_or_saveexec_b64", or_saveexec, 0}, {"s_andn2_saveexec_b64", andn2_saveexec, 0}, {0, 0, 0},
};
