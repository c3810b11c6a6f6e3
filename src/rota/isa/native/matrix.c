/* Matrix instructions in the register layout of the ISA: MFMA with any number of blocks, sparse, and scaled ones.
 *
 * Lane i + M * (b + B * g) holds of row i of block b the g-th part of K.  Elements are worth what float64 says, which
 * holds every format; sums are formed in float64 and rounded once, as in rota.isa.mfma, in the order of K. */
#include <math.h>

#include "core.h"

enum { BF16, F16, I8, F32, XF32, FP8, BF8, FP6, BF6, FP4 }; /* as records.py numbers them */
enum { SIDE, DEPTH, BLOCKS, LEFT, RIGHT, INTEGERS, SPARSE, SCALED, CBSZ, ABID, BLGP, START, BYTE_A, BYTE_B, SPLIT_A, SPLIT_B };
enum { MOST = 2048 }; /* blocks times depth times side, and blocks times the square of side, are at most that */
static const int BITS[] = {16, 16, 8, 32, 32, 8, 8, 6, 6, 4};
typedef double Four __attribute__((vector_size(32)));

static double small(uint32_t code, int exponent, int mantissa, int bias)
{
    uint32_t power = code >> mantissa & ((1u << exponent) - 1), fraction = code & ((1u << mantissa) - 1);
    double value = ldexp(fraction + (power ? 1u << mantissa : 0), (int)(power ? power : 1) - bias - mantissa);
    return code >> (exponent + mantissa) & 1 ? -value : value;
}

static double float8(uint32_t code, int exponent, int bias, int fnuz)
{
    int mantissa = 7 - exponent;
    uint32_t power = code >> mantissa & ((1u << exponent) - 1), fraction = code & ((1u << mantissa) - 1);
    if (fnuz)
        return code == 0x80 ? NAN : small(code, exponent, mantissa, bias);
    if (exponent == 5 && power == 31)
        return fraction ? NAN : code & 0x80 ? -INFINITY : INFINITY;
    return exponent == 4 && (code & 0x7F) == 0x7F ? NAN : small(code, exponent, mantissa, bias);
}

static double TABLES[7][256];
__attribute__((constructor)) static void fill_tables(void)
{
    for (uint32_t code = 0; code < 256; code++) {
        TABLES[0][code] = float8(code, 4, 7, 0), TABLES[1][code] = float8(code, 5, 15, 0);
        TABLES[2][code] = float8(code, 4, 8, 1), TABLES[3][code] = float8(code, 5, 16, 1);
        TABLES[4][code] = small(code & 63, 2, 3, 1), TABLES[5][code] = small(code & 63, 3, 2, 3);
        TABLES[6][code] = small(code & 15, 2, 1, 1);
    }
}
const double *float8_values(int bf8, int fnuz) { return TABLES[2 * (fnuz != 0) + (bf8 != 0)]; }
static const double *table_of(int kind, int fnuz)
{
    return kind < FP8 ? NULL : TABLES[kind >= FP6 ? kind - FP6 + 4 : 2 * (fnuz != 0) + (kind == BF8)];
}

static inline float wide_half(uint32_t half)
{
    uint32_t rest = (half & 0x7FFF) << 13, infinite = (half & 0x7C00) == 0x7C00 ? 0x7F800000 : 0;
    return as_float(as_bits(as_float(rest) * 0x1p112f) | infinite | (half & 0x8000) << 16);
}
static inline float xf32(uint32_t bits) /* ten bits of fraction, to the nearest even */
{
    uint32_t rounded = (bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFFu;
    return as_float((bits & 0x7F800000) == 0x7F800000 ? bits : rounded);
}

/* One element of all lanes. */
static void element(const Wave *wave, int first, int number, int kind, const double *table, double *out)
{
    int bit = number * BITS[kind], shift = bit & 31;
    const uint32_t *row = wave->v[first + bit / 32], *next = wave->v[first + bit / 32 + 1];
#define EACH(VALUE)                                                                                                   \
    for (int lane = 0; lane < LANES; lane++)                                                                          \
        out[lane] = (VALUE);                                                                                          \
    break
    switch (kind) {
    case BF16: EACH(as_float(row[lane] >> shift << 16));
    case F16: EACH(wide_half(row[lane] >> shift & 0xFFFF));
    case I8: EACH((int8_t)(row[lane] >> shift));
    case F32: EACH(as_float(row[lane]));
    case XF32: EACH(xf32(row[lane]));
    case FP8:
    case BF8: EACH(table[row[lane] >> shift & 0xFF]);
    default: EACH(table[(row[lane] | (uint64_t)next[lane] << 32) >> shift & (kind == FP4 ? 15 : 63)]);
    }
#undef EACH
}

/* A factor by blocks, K and rows or columns, from `count` elements of each lane. */
static void factor(const Op *op, const double (*elements)[LANES], int count, int split, double *out)
{
    const int32_t *form = op->matrix;
    int side = form[SIDE], blocks = form[BLOCKS], depth = form[DEPTH], groups = LANES / (side * blocks);
    for (int number = 0; number < count; number++)
        for (int group = 0; group < groups; group++) {
            int k = split ? number / 16 * groups * 16 + group * 16 + number % 16 : group * count + number;
            for (int block = 0; block < blocks; block++)
                memcpy(out + (block * depth + k) * side, elements[number] + side * (block + blocks * group),
                       (size_t)side * sizeof *out);
        }
}

static int pattern(int blgp, int lane)
{
    return blgp == 0 ? lane : blgp == 1 ? lane % 32 : blgp == 2 ? lane % 32 + 32 : blgp == 3 ? (lane + 16) % LANES
                                                                                    : lane % 16 + 16 * (blgp - 4);
}

static void left_of(const Wave *wave, const Op *op, double *out)
{
    const int32_t *form = op->matrix;
    const double *table = table_of(form[LEFT], op->fnuz);
    int each = form[SIDE] * form[DEPTH] * form[BLOCKS] / LANES, given = form[SPARSE] ? each / 2 : each;
    double elements[MOST / 32][LANES];
    for (int number = 0; number < given; number++)
        element(wave, op->o[1].first, number, form[LEFT], table, elements[form[SPARSE] ? each + number : number]);
    if (form[SPARSE]) { /* two of four: two bits of the index say where each belongs */
        memset(elements, 0, (size_t)each * sizeof *elements);
        const uint32_t *index = wave->v[op->o[3].first];
        for (int number = 0; number < given; number++)
            for (int lane = 0; lane < LANES; lane++)
                elements[4 * (number / 2) + (index[lane] >> ((form[START] + 2 * number) & 31) & 3)][lane] +=
                    elements[each + number][lane];
    }
    factor(op, elements, each, form[SPLIT_A], out);
}

static void right_of(const Wave *wave, const Op *op, double *out)
{
    const int32_t *form = op->matrix;
    const double *table = table_of(form[RIGHT], op->fnuz);
    int each = form[SIDE] * form[DEPTH] * form[BLOCKS] / LANES;
    double elements[MOST / 32][LANES];
    for (int number = 0; number < each; number++) {
        element(wave, op->o[2].first, number, form[RIGHT], table, elements[number]);
        if (form[BLGP]) {
            double moved[LANES];
            for (int lane = 0; lane < LANES; lane++)
                moved[lane] = elements[number][pattern(form[BLGP], lane)];
            memcpy(elements[number], moved, sizeof moved);
        }
    }
    factor(op, elements, each, form[SPLIT_B], out);
}

/* Powers of two, one for each row and 32 elements of K; 255 is NaN. */
static void scale(const Wave *wave, const Op *op, const Operand *o, int byte, double *values)
{
    int side = op->matrix[SIDE], depth = op->matrix[DEPTH];
    for (int k = 0; k < depth; k++)
        for (int i = 0; i < side; i++) {
            int code = wave->v[o->first][(i + side * (k / 32)) & 63] >> 8 * byte & 0xFF;
            values[k * side + i] *= code == 0xFF ? NAN : ldexp(1, code - 127);
        }
}

static inline __attribute__((always_inline)) void multiply(const double *a, const double *b, int side, int depth, int from,
                                                            const int fours, double *out)
{
    for (int i = 0; i < side; i++) {
        Four sum[4] = {{0}};
        for (int k = 0; k < depth; k++) {
            double factor = a[k * side + i];
            for (int j = 0; j < fours; j++) {
                Four given;
                memcpy(&given, b + k * side + from + 4 * j, sizeof given);
                sum[j] += factor * given;
            }
        }
        memcpy(out + i * side + from, sum, sizeof *sum * (size_t)fours);
    }
}

static inline __attribute__((always_inline)) void product(const double *a, const double *b, int side, int depth, double *out)
{
    if (side == 4)
        multiply(a, b, side, depth, 0, 1, out);
    for (int from = 0; side >= 16 && from < side; from += 16)
        multiply(a, b, side, depth, from, 4, out);
}
static void plain_product(const double *a, const double *b, int side, int depth, double *out)
{
    product(a, b, side, depth, out);
}
static void (*product_of)(const double *, const double *, int, int, double *) = plain_product;
#ifdef __x86_64__
#include <cpuid.h>
/* The same sums, four at a time; products and sums stay two steps, so that no bit differs. */
static __attribute__((target("avx2"))) void wide_product(const double *a, const double *b, int side, int depth, double *out)
{
    product(a, b, side, depth, out);
}
__attribute__((constructor)) static void choose(void)
{
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) /* the system saves wide registers */
        return;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) == 6 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 5 & 1)
        product_of = wide_product;
}
#endif

static int32_t matrix(Wave *wave, const Op *op)
{
    const int32_t *form = op->matrix;
    const int side = form[SIDE], depth = form[DEPTH], blocks = form[BLOCKS], items = side * side * blocks / LANES;
    double a[MOST], b[MOST], sum[MOST];
    left_of(wave, op, a);
    right_of(wave, op, b);
    if (form[SCALED])
        scale(wave, op, &op->o[4], form[BYTE_A], a), scale(wave, op, &op->o[5], form[BYTE_B], b);
    for (int block = 0; block < blocks; block++) {
        int used = form[CBSZ] && !form[SPARSE] ? (block & -(1 << form[CBSZ])) + form[ABID] : block;
        const double *left = a + used * depth * side, *right = b + block * depth * side;
        double *out = sum + block * side * side;
        product_of(left, right, side, depth, out);
    }
    const Operand *c = form[SPARSE] ? &op->o[0] : &op->o[3];
    const int each = side * side / LANES;
    uint32_t results[MOST / LANES][LANES]; /* C may be read from registers that D takes */
    for (int item = 0; item < items; item++) {
        uint32_t *out = results[item], same[LANES];
        double product[LANES];
        for (int group = 0; group < LANES / side; group++) {
            int row = item, block = group;
            if (side > 4)
                row = 4 * group + item % 4 + (side == 32 ? 8 * (item % each / 4) : 0), block = item / each;
            memcpy(product + group * side, sum + (block * side + row) * side, (size_t)side * sizeof *sum);
        }
        const uint32_t *addend = c->file == VECTOR ? wave->v[c->first + item] : same;
        for (int lane = 0; lane < LANES; lane++)
            same[lane] = (uint32_t)c->literal;
        if (form[INTEGERS])
            for (int lane = 0; lane < LANES; lane++)
                out[lane] = (uint32_t)(int64_t)product[lane] + addend[lane];
        else
            for (int lane = 0; lane < LANES; lane++)
                out[lane] = as_bits((float)(product[lane] + as_float(addend[lane])));
    }
    for (int item = 0; item < items; item++)
        memcpy(wave->v[op->o[0].first + item], results[item], sizeof *results);
    return GO_ON;
}

/* Is the form one whose sizes fit the arrays above? */
int matrix_fits(const Op *op)
{
    const int32_t *form = op->matrix;
    int side = form[SIDE], depth = form[DEPTH], blocks = form[BLOCKS];
    int sides = side == 4 || side == 16 || side == 32, deep = depth >= 1 && depth <= 128;
    if (!sides || !deep || blocks < 1 || blocks > 16 || side * blocks > LANES || side * blocks * depth > MOST)
        return 0;
    if (side * side * blocks > MOST || side * blocks * depth % LANES || LANES % (side * blocks))
        return 0;
    int each = side * blocks * depth / LANES, scales = form[SCALED] != 0;
    int kinds = form[LEFT] >= BF16 && form[LEFT] <= FP4 && form[RIGHT] >= BF16 && form[RIGHT] <= FP4;
    if (!kinds || each * BITS[form[LEFT]] > 32 * 31 || each * BITS[form[RIGHT]] > 32 * 31)
        return 0;
    if (((form[SPLIT_A] || form[SPLIT_B]) && each % 16) || (form[SPARSE] && each % 4))
        return 0;
    if (form[CBSZ] < 0 || form[CBSZ] > 4 || form[ABID] < 0 || (!form[SPARSE] && form[CBSZ] && form[ABID] >= 1 << form[CBSZ]))
        return 0;
    if (form[INTEGERS] && (form[LEFT] != I8 || form[RIGHT] != I8 || scales))
        return 0;
    if (!form[SPARSE] && form[CBSZ] && 1 << form[CBSZ] > blocks)
        return 0;
    return form[BLGP] >= 0 && form[BLGP] < 8 && form[BYTE_A] >= 0 && form[BYTE_A] < 4 && form[BYTE_B] >= 0 &&
           form[BYTE_B] < 4 && form[START] >= 0 && (!scales || op->operands == 6);
}

const Opcode MATRIX_OPCODES[] = {{"rota_matrix", matrix, ~0u}, {0, 0, 0}};
