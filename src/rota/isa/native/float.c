/* Floating-point VALU instructions, rounding to nearest even, denormals kept, as compilers set MODE.
 *
 * x, y and z are a lane's sources; halves are computed in float32 or float64, wide enough to round once. */
#include "lanes.h"

#define GATHER(COUNT, K)                                                                                              \
    u32 room[3][LANES], out[LANES];                                                                                   \
    const u32 *from[3];                                                                                               \
    for (int number = 0; number < (COUNT); number++)                                                                  \
        from[number] = source(wave, op, number, 1 + number < op->operands ? 1 + number : 0, K, room[number]);
#define SINGLES(NAME, COUNT, EXPRESSION)                                                                              \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        GATHER(COUNT, SINGLE)                                                                                         \
        LANES_DO(float x = as_float(from[0][lane]); float y = COUNT > 1 ? as_float(from[COUNT > 1][lane]) : 0;        \
                 float z = COUNT > 2 ? as_float(from[COUNT - 1][lane]) : 0; (void)y; (void)z;                         \
                 out[lane] = as_bits(clamped(op, (float)(EXPRESSION))))                                               \
        put_result(wave, op, out, 0, 0);                                                                              \
        return GO_ON;                                                                                                 \
    }
#define HALVES(NAME, COUNT, KEEPS, TYPE, ROUND, EXPRESSION)                                                           \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        GATHER(COUNT, HALF)                                                                                           \
        LANES_DO(TYPE x = half_to_float(from[0][lane]); TYPE y = COUNT > 1 ? half_to_float(from[COUNT > 1][lane]) : 0;\
                 TYPE z = COUNT > 2 ? half_to_float(from[COUNT - 1][lane]) : 0; (void)y; (void)z;                     \
                 u32 h = ROUND(EXPRESSION); out[lane] = op->clamp ? float_to_half(clamped(op, half_to_float(h))) : h) \
        put_result(wave, op, out, 1, KEEPS);                                                                          \
        return GO_ON;                                                                                                 \
    }
#define DOUBLES(NAME, COUNT, EXPRESSION)                                                                              \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u64 room[3][LANES], out[LANES];                                                                               \
        for (int number = 0; number < (COUNT); number++)                                                              \
            doubles_of(wave, &op->o[1 + number < op->operands ? 1 + number : 0], room[number], 1);                    \
        LANES_DO(double x = as_double(room[0][lane]); double y = COUNT > 1 ? as_double(room[COUNT > 1][lane]) : 0;    \
                 double z = COUNT > 2 ? as_double(room[COUNT - 1][lane]) : 0; (void)y; (void)z;                       \
                 out[lane] = as_bits64(EXPRESSION))                                                                   \
        put_pairs(wave, op, out);                                                                                     \
        return GO_ON;                                                                                                 \
    }

/* Minimum and maximum: a number rather than a NaN, the negative zero below the positive; a signalling NaN gives one. */
static inline int signals(float x)
{
    u32 bits = as_bits(x);
    return x != x && !(bits & 0x400000);
}
static inline float least(float x, float y)
{
    return x != x ? y : y != y ? x : x < y || (x == y && signbit(x)) ? x : y;
}
static inline float greatest(float x, float y)
{
    return x != x ? y : y != y ? x : x > y || (x == y && !signbit(x)) ? x : y;
}
static inline float low(float x, float y) { return signals(x) || signals(y) ? NAN : least(x, y); }
static inline float high(float x, float y) { return signals(x) || signals(y) ? NAN : greatest(x, y); }
static inline float middle(float x, float y, float z)
{
    if (x != x || y != y || z != z)
        return low(low(x, y), z);
    float top = high(high(x, y), z);
    return top == x ? high(y, z) : top == y ? high(x, z) : high(x, y);
}
static inline float none_is(float x, float y, float z, float value) { return x != x || y != y || z != z ? NAN : value; }
static inline double least_d(double x, double y)
{
    return x != x ? y : y != y ? x : x < y || (x == y && signbit(x)) ? x : y;
}
static inline double greatest_d(double x, double y)
{
    return x != x ? y : y != y ? x : x > y || (x == y && !signbit(x)) ? x : y;
}
static inline int signals_d(double x) { return x != x && !(as_bits64(x) >> 51 & 1); }
static inline double low_d(double x, double y) { return signals_d(x) || signals_d(y) ? NAN : least_d(x, y); }
static inline double high_d(double x, double y) { return signals_d(x) || signals_d(y) ? NAN : greatest_d(x, y); }
static inline float fraction(float x, float below_one)
{
    float part = x - floorf(x);
    return part < below_one || part != part ? part : below_one;
}
static inline double turns(double x, int cosine)
{
    if (!isfinite(x))
        return NAN;
    if (fabs(x) > 256)
        return cosine;
    double part = x - rint(x);
    part = copysign(part, part == 0 ? x : part) * 6.283185307179586;
    return cosine ? cos(part) : sin(part);
}
static inline u32 as_is(float x) { return float_to_half(x); }

SINGLES(add_f32, 2, x + y)
SINGLES(sub_f32, 2, x - y)
SINGLES(subrev_f32, 2, y - x)
SINGLES(mul_f32, 2, x *y)
SINGLES(mul_legacy_f32, 2, x == 0 || y == 0 ? 0 : x * y)
SINGLES(min_f32, 2, low(x, y))
SINGLES(max_f32, 2, high(x, y))
SINGLES(fma_f32, 3, fused(x, y, z))
SINGLES(min3_f32, 3, low(low(x, y), z))
SINGLES(max3_f32, 3, high(high(x, y), z))
SINGLES(med3_f32, 3, middle(x, y, z))
SINGLES(minimum3_f32, 3, none_is(x, y, z, least(least(x, y), z)))
SINGLES(maximum3_f32, 3, none_is(x, y, z, greatest(greatest(x, y), z)))
SINGLES(trunc_f32, 1, truncf(x))
SINGLES(ceil_f32, 1, ceilf(x))
SINGLES(floor_f32, 1, floorf(x))
SINGLES(rndne_f32, 1, rintf(x))
SINGLES(fract_f32, 1, fraction(x, 0x1.fffffep-1f))
SINGLES(rcp_f32, 1, 1 / (double)x)
SINGLES(rsq_f32, 1, 1 / sqrt((double)x))
SINGLES(sqrt_f32, 1, sqrtf(x))
SINGLES(exp_f32, 1, exp2((double)x))
SINGLES(log_f32, 1, log2((double)x))
SINGLES(sin_f32, 1, turns(x, 0))
SINGLES(cos_f32, 1, turns(x, 1))
HALVES(add_f16, 2, 0, float, as_is, x + y)
HALVES(sub_f16, 2, 0, float, as_is, x - y)
HALVES(subrev_f16, 2, 0, float, as_is, y - x)
HALVES(mul_f16, 2, 0, float, as_is, x *y)
HALVES(min_f16, 2, 0, float, as_is, low(x, y))
HALVES(max_f16, 2, 0, float, as_is, high(x, y))
HALVES(fma_f16, 3, 1, double, double_to_half, sum_to_odd(x *y, z))
HALVES(fma_legacy_f16, 3, 0, double, double_to_half, sum_to_odd(x *y, z))
HALVES(min3_f16, 3, 1, float, as_is, low(low(x, y), z))
HALVES(max3_f16, 3, 1, float, as_is, high(high(x, y), z))
HALVES(med3_f16, 3, 1, float, as_is, middle(x, y, z))
HALVES(trunc_f16, 1, 0, float, as_is, truncf(x))
HALVES(ceil_f16, 1, 0, float, as_is, ceilf(x))
HALVES(floor_f16, 1, 0, float, as_is, floorf(x))
HALVES(rndne_f16, 1, 0, float, as_is, rintf(x))
HALVES(rcp_f16, 1, 0, double, double_to_half, 1 / x)
HALVES(rsq_f16, 1, 0, double, double_to_half, 1 / sqrt(x))
HALVES(sqrt_f16, 1, 0, double, double_to_half, sqrt(x))
HALVES(exp_f16, 1, 0, double, double_to_half, exp2(x))
HALVES(log_f16, 1, 0, double, double_to_half, log2(x))
DOUBLES(add_f64, 2, x + y)
DOUBLES(mul_f64, 2, x *y)
DOUBLES(min_f64, 2, low_d(x, y))
DOUBLES(max_f64, 2, high_d(x, y))
DOUBLES(fma_f64, 3, fma(x, y, z))
DOUBLES(trunc_f64, 1, trunc(x))
DOUBLES(ceil_f64, 1, ceil(x))
DOUBLES(floor_f64, 1, floor(x))
DOUBLES(rndne_f64, 1, rint(x))

static int32_t fmac_f32(Wave *wave, const Op *op)
{
    GATHER(2, SINGLE)
    const u32 *sum = wave->v[op->o[0].first];
    LANES_DO(out[lane] =
                 as_bits(clamped(op, fused(as_float(from[0][lane]), as_float(from[1][lane]), as_float(sum[lane])))))
    put_result(wave, op, out, 0, 0);
    return GO_ON;
}

static int32_t ldexp_f32(Wave *wave, const Op *op)
{
    u32 r0[LANES], r1[LANES], out[LANES];
    const u32 *s0 = source(wave, op, 0, 1, SINGLE, r0), *s1 = source(wave, op, 1, 2, WORD, r1);
    LANES_DO(i32 power = (i32)s1[lane]; power = power < -5000 ? -5000 : power > 5000 ? 5000 : power;
             out[lane] = as_bits(clamped(op, ldexpf(as_float(s0[lane]), power))))
    put_result(wave, op, out, 0, 0);
    return GO_ON;
}

#define ANYWHERE (M_SDWA | M_DPP | M_CLAMP | M_SIGNS)
#define PLAIN (M_CLAMP | M_SIGNS)
#define CHOOSING (M_SDWA | M_DPP | M_CLAMP | M_SIGNS | M_OP_SEL)
const Opcode FLOAT_OPCODES[] = {
    {"v_add_f32", add_f32, ANYWHERE}, {"v_sub_f32", sub_f32, ANYWHERE}, {"v_subrev_f32", subrev_f32, ANYWHERE},
    {"v_mul_f32", mul_f32, ANYWHERE}, {"v_mul_legacy_f32", mul_legacy_f32, ANYWHERE}, {"v_min_f32", min_f32, ANYWHERE},
    {"v_max_f32", max_f32, ANYWHERE}, {"v_fma_f32", fma_f32, PLAIN}, {"v_fmamk_f32", fma_f32, 0},
    {"v_fmaak_f32", fma_f32, 0}, {"v_fmac_f32", fmac_f32, ANYWHERE}, {"v_min3_f32", min3_f32, PLAIN},
    {"v_max3_f32", max3_f32, PLAIN}, {"v_med3_f32", med3_f32, PLAIN}, {"v_minimum3_f32", minimum3_f32, PLAIN},
    {"v_maximum3_f32", maximum3_f32, PLAIN}, {"v_trunc_f32", trunc_f32, ANYWHERE}, {"v_ceil_f32", ceil_f32, ANYWHERE},
    {"v_floor_f32", floor_f32, ANYWHERE}, {"v_rndne_f32", rndne_f32, ANYWHERE}, {"v_fract_f32", fract_f32, ANYWHERE},
    {"v_rcp_f32", rcp_f32, ANYWHERE}, {"v_rcp_iflag_f32", rcp_f32, ANYWHERE}, {"v_rsq_f32", rsq_f32, ANYWHERE},
    {"v_sqrt_f32", sqrt_f32, ANYWHERE}, {"v_exp_f32", exp_f32, ANYWHERE}, {"v_log_f32", log_f32, ANYWHERE},
    {"v_sin_f32", sin_f32, ANYWHERE}, {"v_cos_f32", cos_f32, ANYWHERE}, {"v_ldexp_f32", ldexp_f32, PLAIN},
    {"v_add_f16", add_f16, CHOOSING}, {"v_sub_f16", sub_f16, CHOOSING}, {"v_subrev_f16", subrev_f16, CHOOSING},
    {"v_mul_f16", mul_f16, CHOOSING}, {"v_min_f16", min_f16, CHOOSING}, {"v_max_f16", max_f16, CHOOSING},
    {"v_fma_f16", fma_f16, CHOOSING}, {"v_fma_legacy_f16", fma_legacy_f16, PLAIN}, {"v_min3_f16", min3_f16, CHOOSING},
    {"v_max3_f16", max3_f16, CHOOSING}, {"v_med3_f16", med3_f16, CHOOSING}, {"v_trunc_f16", trunc_f16, CHOOSING},
    {"v_ceil_f16", ceil_f16, CHOOSING}, {"v_floor_f16", floor_f16, CHOOSING}, {"v_rndne_f16", rndne_f16, CHOOSING},
    {"v_rcp_f16", rcp_f16, CHOOSING}, {"v_rsq_f16", rsq_f16, CHOOSING}, {"v_sqrt_f16", sqrt_f16, CHOOSING},
    {"v_exp_f16", exp_f16, CHOOSING}, {"v_log_f16", log_f16, CHOOSING}, {"v_add_f64", add_f64, M_SIGNS},
    {"v_mul_f64", mul_f64, M_SIGNS}, {"v_min_f64", min_f64, M_SIGNS}, {"v_max_f64", max_f64, M_SIGNS},
    {"v_fma_f64", fma_f64, M_SIGNS}, {"v_fmac_f64", fma_f64, M_SIGNS}, {"v_trunc_f64", trunc_f64, M_SIGNS},
    {"v_ceil_f64", ceil_f64, M_SIGNS}, {"v_floor_f64", floor_f64, M_SIGNS}, {"v_rndne_f64", rndne_f64, M_SIGNS},
    {0, 0, 0},
};
