/* Matrix instructions of one block, in the register layout of the ISA.
 *
 * Lane l holds row or column l mod M of A or B and the part l div M of K.  Of D it holds column l mod M; its register r
 * holds row 4 * (l div 16) + r of 16x16 results, and row 8 * (r div 4) + 4 * (l div 32) + r mod 4 of 32x32 ones. */
#include <math.h>

#include "core.h"

enum { F16, BF16, F32, FP8, BF8, I8, F8F6F4 };
enum { DEEPEST = 128 };
typedef float Four __attribute__((vector_size(16)));

static float float8(uint32_t code, int exponent, int bias, int fnuz)
{
    int mantissa = 7 - exponent;
    uint32_t power = code >> mantissa & ((1u << exponent) - 1), fraction = code & ((1u << mantissa) - 1);
    float value = ldexpf((float)(fraction + (power ? 1u << mantissa : 0)), (int)(power ? power : 1) - bias - mantissa);
    if (fnuz)
        value = code == 0x80 ? NAN : value;
    else if (exponent == 5 && power == 31)
        value = fraction ? NAN : INFINITY;
    else if (exponent == 4 && (code & 0x7F) == 0x7F)
        value = NAN;
    return code & 0x80 && code != 0x80 ? -value : code == 0x80 && !fnuz ? -0.0f : value;
}

static const float *table_of(int type, int fnuz)
{
    static float tables[2][2][256];
    static int ready;
    if (!ready) {
        for (uint32_t code = 0; code < 256; code++) {
            tables[0][0][code] = float8(code, 4, 7, 0), tables[0][1][code] = float8(code, 5, 15, 0);
            tables[1][0][code] = float8(code, 4, 8, 1), tables[1][1][code] = float8(code, 5, 16, 1);
        }
        ready = 1;
    }
    return tables[fnuz != 0][type == BF8];
}

#define EACH(VALUE)                                                                                                   \
    for (int lane = 0; lane < size; lane++)                                                                           \
        to[lane] = (VALUE);
/* The elements of one operand, K by rows or columns. */
static void elements(const Wave *wave, int first, int size, int depth, int type, int fnuz, float *out)
{
    int each = depth * size / LANES, per_register = type == F32 ? 1 : type <= BF16 ? 2 : 4;
    const float *table = type == FP8 || type == BF8 ? table_of(type, fnuz) : NULL;
    for (int element = 0; element < each; element++) {
        const uint32_t *row = wave->v[first + element / per_register];
        int shift = element % per_register * (32 / per_register);
        for (int group = 0; group < LANES / size; group++) {
            float *to = out + (group * each + element) * size;
            const uint32_t *from = row + group * size;
            switch (type) {
            case F32: memcpy(to, from, (size_t)size * sizeof *to); break;
            case BF16: EACH(as_float(from[lane] >> shift << 16)) break;
            case F16: EACH(half_to_float(from[lane] >> shift & 0xFFFF)) break;
            case I8: EACH((float)(int8_t)(from[lane] >> shift)) break;
            default: EACH(table[from[lane] >> shift & 0xFF]) break;
            }
        }
    }
}

static inline int row_of(int size, int lane, int number)
{
    return size == 16 ? 4 * (lane / 16) + number : 8 * (number / 4) + 4 * (lane / 32) + number % 4;
}

static inline __attribute__((always_inline)) int32_t mfma(Wave *wave, const Op *op, const int size, const int depth,
                                                           int left, int right)
{
    float a[DEEPEST * 16]; /* depth times size is at most 2,048 */
    Four b[DEEPEST * 4], sum[32 * 8];
    const int across = size / 4;
    int registers = size * size / LANES;
    if (left == F8F6F4)
        left = op->cbsz ? BF8 : FP8, right = op->blgp ? BF8 : FP8;
    elements(wave, op->o[1].first, size, depth, left, op->fnuz, a);
    elements(wave, op->o[2].first, size, depth, right, op->fnuz, (float *)b);
    for (int i = 0; i < size; i++) {
        Four row[8] = {{0}};
        for (int k = 0; k < depth; k++) {
            float factor = a[k * size + i];
            for (int j = 0; j < across; j++)
                row[j] += factor * b[k * across + j];
        }
        memcpy(sum + i * across, row, sizeof(Four) * (size_t)across);
    }
    const Operand *c = &op->o[3];
    for (int number = 0; number < registers; number++) {
        uint32_t out[LANES];
        for (int lane = 0; lane < LANES; lane++) {
            float product = ((float *)sum)[row_of(size, lane, number) * size + lane % size];
            uint32_t addend = c->file == VECTOR ? wave->v[c->first + number][lane] : (uint32_t)c->literal;
            out[lane] = left == I8 ? (uint32_t)(int32_t)product + addend : as_bits(product + as_float(addend));
        }
        memcpy(wave->v[op->o[0].first + number], out, sizeof out);
    }
    return GO_ON;
}

#define FORMS(X)                                                                                                      \
    X(f32, 16, 4, f32, F32, F32) X(f32, 32, 2, f32, F32, F32) X(f32, 16, 16, f16, F16, F16)                           \
    X(f32, 32, 8, f16, F16, F16) X(f32, 16, 32, f16, F16, F16) X(f32, 32, 16, f16, F16, F16)                          \
    X(f32, 16, 16, bf16, BF16, BF16) X(f32, 32, 8, bf16, BF16, BF16) X(f32, 16, 32, bf16, BF16, BF16)                 \
    X(f32, 32, 16, bf16, BF16, BF16) X(f32, 16, 32, fp8_fp8, FP8, FP8) X(f32, 16, 32, fp8_bf8, FP8, BF8)              \
    X(f32, 16, 32, bf8_fp8, BF8, FP8) X(f32, 16, 32, bf8_bf8, BF8, BF8) X(f32, 32, 16, fp8_fp8, FP8, FP8)             \
    X(f32, 32, 16, fp8_bf8, FP8, BF8) X(f32, 32, 16, bf8_fp8, BF8, FP8) X(f32, 32, 16, bf8_bf8, BF8, BF8)             \
    X(i32, 16, 32, i8, I8, I8) X(i32, 32, 16, i8, I8, I8) X(i32, 16, 64, i8, I8, I8) X(i32, 32, 32, i8, I8, I8)       \
    X(f32, 16, 128, f8f6f4, F8F6F4, F8F6F4) X(f32, 32, 64, f8f6f4, F8F6F4, F8F6F4)
#define DEFINE(SUM, SIZE, DEPTH, TYPES, LEFT, RIGHT)                                                                  \
    static int32_t mfma_##SUM##_##SIZE##_##DEPTH##_##TYPES(Wave *wave, const Op *op)                                  \
    {                                                                                                                 \
        return mfma(wave, op, SIZE, DEPTH, LEFT, RIGHT);                                                              \
    }
#define NAME(SUM, SIZE, DEPTH, TYPES, LEFT, RIGHT)                                                                    \
    {"v_mfma_" #SUM "_" #SIZE "x" #SIZE "x" #DEPTH "_" #TYPES, mfma_##SUM##_##SIZE##_##DEPTH##_##TYPES,              \
     LEFT == F8F6F4 ? M_MATRIX : 0},
FORMS(DEFINE)
const Opcode MATRIX_OPCODES[] = {FORMS(NAME){0, 0, 0}};
