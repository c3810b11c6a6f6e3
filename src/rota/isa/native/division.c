/* v_div_scale, v_div_fmas and v_div_fixup, between which compilers divide; the rules are those of rota.isa.valu.vector. */
#include "lanes.h"

#define PARTS(T, F, BITS_OF, MANTISSA, BIAS, SCALE, FAR, TINY, NOTHING_BELOW, SMALLEST, ABS, LDEXP, FUSED)             \
    static inline int exponent_##F(T x) { return (int)(BITS_OF(x) >> MANTISSA & (2 * BIAS + 1)); }                    \
    static T scaled_##F(T chosen, T below, T above, int *back)                                                        \
    {                                                                                                                 \
        T quotient = ABS(above / below), inverse = ABS((T)1 / below);                                                 \
        T up = LDEXP(chosen, SCALE), down = LDEXP(chosen, -SCALE);                                                    \
        *back = 0;                                                                                                    \
        if (above == 0 || below == 0)                                                                                 \
            return (T)NAN;                                                                                            \
        if (exponent_##F(above) - exponent_##F(below) >= FAR)                                                         \
            return *back = 1, chosen == below ? up : chosen;                                                          \
        if (ABS(below) < SMALLEST)                                                                                    \
            return up;                                                                                                \
        if (inverse < SMALLEST && quotient < SMALLEST)                                                                \
            return *back = 1, chosen == below ? down : chosen;                                                        \
        if (inverse < SMALLEST)                                                                                       \
            return down;                                                                                              \
        if (quotient < SMALLEST)                                                                                      \
            return *back = 1, chosen == above ? up : chosen;                                                          \
        return exponent_##F(above) <= TINY ? up : chosen;                                                             \
    }                                                                                                                 \
    static T fixed_##F(T quotient, T below, T above)                                                                  \
    {                                                                                                                 \
        T sign = !signbit(below) != !signbit(above) ? (T)-1 : (T)1;                                                   \
        if (above != above || below != below)                                                                         \
            return above != above ? above : below;                                                                    \
        if ((above == 0 && below == 0) || (isinf(above) && isinf(below)))                                             \
            return -(T)NAN;                                                                                           \
        if (below == 0 || isinf(above))                                                                               \
            return sign * (T)INFINITY;                                                                                \
        if (above == 0 || isinf(below) || exponent_##F(above) - exponent_##F(below) < NOTHING_BELOW)                  \
            return sign * (T)0;                                                                                       \
        return quotient != quotient ? sign * (T)INFINITY : (T)copysign(quotient, sign);                                \
    }                                                                                                                 \
    static T summed_##F(T a, T b, T c, int back)                                                                      \
    {                                                                                                                 \
        T total = FUSED(a, b, c);                                                                                     \
        return back ? LDEXP(total, exponent_##F(c) > BIAS ? SCALE : -SCALE) : total;                                  \
    }
PARTS(float, f32, as_bits, 23, 127, 64, 96, 23, -150, 0x1p-126f, fabsf, ldexpf, fused)
PARTS(double, f64, as_bits64, 52, 1023, 128, 768, 53, -1075, 0x1p-1022, fabs, ldexp, fma)

#define SINGLES(FIRST)                                                                                                \
    u32 room[3][LANES], out[LANES];                                                                                   \
    const u32 *from[3];                                                                                               \
    for (int number = 0; number < 3; number++)                                                                        \
        from[number] = source(wave, op, number, FIRST + number, SINGLE, room[number]);
#define DOUBLES(FIRST)                                                                                                \
    u64 from[3][LANES], out[LANES];                                                                                   \
    for (int number = 0; number < 3; number++)                                                                        \
        doubles_of(wave, &op->o[FIRST + number], from[number], 1);
#define AT(READ, NUMBER) READ(from[NUMBER][lane])

static int32_t div_scale_f32(Wave *wave, const Op *op)
{
    u64 flags = 0;
    SINGLES(2)
    LANES_DO(int back; out[lane] = as_bits(scaled_f32(AT(as_float, 0), AT(as_float, 1), AT(as_float, 2), &back));
             flags |= (u64)back << lane)
    put_words(wave, op->o[0].first, out);
    put_scalar64(wave, &op->o[1], flags & wave->exec);
    return GO_ON;
}
static int32_t div_scale_f64(Wave *wave, const Op *op)
{
    u64 flags = 0;
    DOUBLES(2)
    LANES_DO(int back; out[lane] = as_bits64(scaled_f64(AT(as_double, 0), AT(as_double, 1), AT(as_double, 2), &back));
             flags |= (u64)back << lane)
    put_pairs(wave, op, out);
    put_scalar64(wave, &op->o[1], flags & wave->exec);
    return GO_ON;
}
static int32_t div_fmas_f32(Wave *wave, const Op *op)
{
    u64 vcc = wave->s[VCC] | (u64)wave->s[VCC + 1] << 32;
    SINGLES(1)
    LANES_DO(float sum = summed_f32(AT(as_float, 0), AT(as_float, 1), AT(as_float, 2), vcc >> lane & 1);
             out[lane] = as_bits(clamped(op, sum)))
    put_words(wave, op->o[0].first, out);
    return GO_ON;
}
static int32_t div_fmas_f64(Wave *wave, const Op *op)
{
    u64 vcc = wave->s[VCC] | (u64)wave->s[VCC + 1] << 32;
    DOUBLES(1)
    LANES_DO(out[lane] =
                 as_bits64(summed_f64(AT(as_double, 0), AT(as_double, 1), AT(as_double, 2), vcc >> lane & 1)))
    put_pairs(wave, op, out);
    return GO_ON;
}
static int32_t div_fixup_f32(Wave *wave, const Op *op)
{
    SINGLES(1)
    LANES_DO(out[lane] = as_bits(clamped(op, fixed_f32(AT(as_float, 0), AT(as_float, 1), AT(as_float, 2)))))
    put_words(wave, op->o[0].first, out);
    return GO_ON;
}
static int32_t div_fixup_f64(Wave *wave, const Op *op)
{
    DOUBLES(1)
    LANES_DO(out[lane] = as_bits64(fixed_f64(AT(as_double, 0), AT(as_double, 1), AT(as_double, 2))))
    put_pairs(wave, op, out);
    return GO_ON;
}

/* The odd rows of the first register change places with the even rows of the second. */
static int32_t swap_rows(Wave *wave, const Op *op, int rows)
{
    u32 *one = wave->v[op->o[0].first], *two = wave->v[op->o[1].first];
    if (wave->exec != ~0ull) /* what it does then is not known */
        fault(wave->group, F_OTHER, (int)(op - wave->group->ops), -1, wave->number, -1, -1, 0, 0);
    u32 above[LANES], below[LANES];
    memcpy(above, one, sizeof above);
    memcpy(below, two, sizeof below);
    for (int lane = 0; lane < LANES; lane++)
        if (lane & rows)
            one[lane] = below[lane - rows], two[lane - rows] = above[lane];
    return GO_ON;
}
static int32_t permlane16_swap(Wave *wave, const Op *op) { return swap_rows(wave, op, 16); }
static int32_t permlane32_swap(Wave *wave, const Op *op) { return swap_rows(wave, op, 32); }

const Opcode DIVISION_OPCODES[] = {
    {"v_div_scale_f32", div_scale_f32, M_SIGNS}, {"v_div_scale_f64", div_scale_f64, M_SIGNS},
    {"v_div_fmas_f32", div_fmas_f32, M_SIGNS | M_CLAMP}, {"v_div_fmas_f64", div_fmas_f64, M_SIGNS},
    {"v_div_fixup_f32", div_fixup_f32, M_SIGNS | M_CLAMP}, {"v_div_fixup_f64", div_fixup_f64, M_SIGNS},
    {"v_permlane16_swap_b32", permlane16_swap, 0}, {"v_permlane32_swap_b32", permlane32_swap, 0}, {0, 0, 0},
};
