/* Compares: a bit for each lane, into a pair of scalar registers, and into EXEC for v_cmpx. */
#include "lanes.h"

static int32_t compared(Wave *wave, const Op *op, u64 bits, int new_exec)
{
    static const Operand exec = {.file = SCALAR, .first = EXEC, .count = 2};
    bits &= wave->exec;
    put_scalar64(wave, &op->o[0], bits);
    if (new_exec)
        put_scalar64(wave, &exec, bits);
    return GO_ON;
}
#define COMPARE(NAME, TYPE, READ, FROM, CONDITION)                                                                    \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        READ() u64 bits = 0;                                                                                            \
        LANES_DO(TYPE x = FROM(s0[lane]); TYPE y = FROM(s1[lane]); bits |= (u64)(CONDITION) << lane)                  \
        return compared(wave, op, bits, 0);                                                                           \
    }                                                                                                                 \
    static int32_t x##NAME(Wave *wave, const Op *op)                                                                  \
    {                                                                                                                 \
        READ() u64 bits = 0;                                                                                            \
        LANES_DO(TYPE x = FROM(s0[lane]); TYPE y = FROM(s1[lane]); bits |= (u64)(CONDITION) << lane)                  \
        return compared(wave, op, bits, 1);                                                                           \
    }
#define PAIRS()                                                                                                         \
    u64 r0[LANES], r1[LANES];                                                                                         \
    const u64 *s0 = doubles_of(wave, &op->o[1], r0, 0), *s1 = doubles_of(wave, &op->o[2], r1, 0);
#define TWO(KIND)                                                                                                     \
    u32 r0[LANES], r1[LANES];                                                                                         \
    const u32 *s0 = source(wave, op, 0, 1, KIND, r0), *s1 = source(wave, op, 1, 2, KIND, r1);
#define WORDS() TWO(WORD)
#define FLOATS() TWO(SINGLE)
#define HALVES() TWO(HALF)
#define SHORTS() TWO(SHORT)
#define DOUBLES()                                                                                                     \
    u64 r0[LANES], r1[LANES];                                                                                         \
    const u64 *s0 = doubles_of(wave, &op->o[1], r0, 1), *s1 = doubles_of(wave, &op->o[2], r1, 1);
#define ORDERED(SUFFIX, TYPE, READ, FROM)                                                                             \
    COMPARE(lt_##SUFFIX, TYPE, READ, FROM, x < y)                                                                     \
    COMPARE(le_##SUFFIX, TYPE, READ, FROM, x <= y)                                                                    \
    COMPARE(eq_##SUFFIX, TYPE, READ, FROM, x == y)                                                                    \
    COMPARE(gt_##SUFFIX, TYPE, READ, FROM, x > y)                                                                     \
    COMPARE(ge_##SUFFIX, TYPE, READ, FROM, x >= y)                                                                    \
    COMPARE(ne_##SUFFIX, TYPE, READ, FROM, x != y)
#define UNORDERED(SUFFIX, TYPE, READ, FROM)                                                                                 \
    ORDERED(SUFFIX, TYPE, READ, FROM)                                                                                \
    COMPARE(lg_##SUFFIX, TYPE, READ, FROM, x < y || x > y)                                                           \
    COMPARE(nlt_##SUFFIX, TYPE, READ, FROM, !(x < y))                                                                \
    COMPARE(nle_##SUFFIX, TYPE, READ, FROM, !(x <= y))                                                               \
    COMPARE(ngt_##SUFFIX, TYPE, READ, FROM, !(x > y))                                                                \
    COMPARE(nge_##SUFFIX, TYPE, READ, FROM, !(x >= y))                                                               \
    COMPARE(nlg_##SUFFIX, TYPE, READ, FROM, !(x < y || x > y))                                                       \
    COMPARE(u_##SUFFIX, TYPE, READ, FROM, x != x || y != y)                                                          \
    COMPARE(o_##SUFFIX, TYPE, READ, FROM, !(x != x || y != y))
ORDERED(u32, u32, WORDS, (u32))
ORDERED(i32, i32, WORDS, (i32))
ORDERED(u64, u64, PAIRS, (u64))
ORDERED(i64, i64, PAIRS, (i64))
UNORDERED(f32, float, FLOATS, as_float)
UNORDERED(f16, float, HALVES, half_to_float)
UNORDERED(f64, double, DOUBLES, as_double)
ORDERED(u16, u32, SHORTS, (u32))
ORDERED(i16, i32, SHORTS, (int16_t))

#define ACCEPTS (M_SDWA | M_SIGNS)
#define COMPARES(ORDER, KIND) {"v_cmp_" #ORDER "_" #KIND, ORDER##_##KIND, ACCEPTS}, {"v_cmpx_" #ORDER "_" #KIND, x##ORDER##_##KIND, ACCEPTS}
#define SIX(KIND)                                                                                                     \
    COMPARES(lt, KIND), COMPARES(le, KIND), COMPARES(eq, KIND), COMPARES(gt, KIND), COMPARES(ge, KIND),               \
        COMPARES(ne, KIND)
#define FOURTEEN(KIND)                                                                                                \
    SIX(KIND), {"v_cmp_neq_" #KIND, ne_##KIND, ACCEPTS}, {"v_cmpx_neq_" #KIND, xne_##KIND, ACCEPTS}, COMPARES(lg, KIND),          \
        COMPARES(nlt, KIND), COMPARES(nle, KIND), COMPARES(ngt, KIND), COMPARES(nge, KIND), COMPARES(nlg, KIND),      \
        COMPARES(u, KIND), COMPARES(o, KIND)

const Opcode COMPARE_OPCODES[] = {
    SIX(u32), SIX(i32), SIX(u64), SIX(i64), FOURTEEN(f32), FOURTEEN(f16),
    FOURTEEN(f64), SIX(u16), SIX(i16), {0, 0, 0},
};
