/* What instructions over 64 lanes share: their sources, lane by lane, and where results go.
 *
 * The encoding decides: plain, with op_sel for halves, sub-dword (SDWA), or across lanes (DPP).  Signs are applied last,
 * to what was selected. */
#ifndef ROTA_LANES_H
#define ROTA_LANES_H

#include <math.h>

#include "core.h"

typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;

enum { WORD, BITS, SINGLE, HALF, SHORT }; /* what a source is: BITS may carry a float32's signs; SHORT is an integer */

#define LANES_DO(...)                                                                                                 \
    for (int lane = 0; lane < LANES; lane++) {                                                                        \
        __VA_ARGS__;                                                                                                  \
    }

/* The lanes that find a source in a crossing. */
static inline u64 found_by(const Wave *wave, const Op *op)
{
    u64 found = 0;
    for (int lane = 0; lane < LANES; lane++)
        if (op->dpp_source[lane] >= 0)
            found |= (wave->exec >> op->dpp_source[lane] & 1) << lane;
    return found;
}

static inline const u32 *selected(Wave *wave, const Op *op, int number, const Operand *o, const u32 *from, u32 *room)
{
    if (number == 0 && op->dpp) {
        u64 found = found_by(wave, op);
        u32 moved[LANES];
        LANES_DO(moved[lane] = found >> lane & 1 ? from[op->dpp_source[lane]] : 0)
        memcpy(room, moved, sizeof moved);
        return room;
    }
    int chosen = number < 2 ? op->src_sel[number] : WHOLE_DWORD;
    if (chosen == WHOLE_DWORD)
        return from;
    int bits = chosen < 4 ? 8 : 16, shift = chosen < 4 ? 8 * chosen : 16 * (chosen - 4);
    u32 mask = (1u << bits) - 1, top = o->sign_extend ? 1u << (bits - 1) : 0;
    LANES_DO(room[lane] = ((from[lane] >> shift & mask) ^ top) - top)
    return room;
}

/* Source `number` of an instruction, which stands in operand `place`. */
static inline const u32 *source(Wave *wave, const Op *op, int number, int place, int kind, u32 *room)
{
    const Operand *o = &op->o[place];
    const u32 *from;
    if (o->file == VECTOR) {
        from = wave->v[o->first];
    } else {
        u32 value = kind == HALF && o->file == FLOATING ? float_to_half((float)o->floating) : scalar32(wave, o);
        LANES_DO(room[lane] = value)
        from = room;
    }
    from = selected(wave, op, number, o, from, room);
    if (kind >= HALF) {
        int shift = op->halves && op->op_sel >> number & 1 ? 16 : 0;
        LANES_DO(room[lane] = from[lane] >> shift & 0xFFFF)
        from = room;
    }
    if ((o->negate || o->absolute) && (kind == BITS || kind == SINGLE || kind == HALF)) {
        u32 sign = kind == HALF ? 1u << 15 : 1u << 31, keep = o->absolute ? ~sign : ~0u, flip = o->negate ? sign : 0;
        LANES_DO(room[lane] = (from[lane] & keep) ^ flip)
        from = room;
    }
    return from;
}

/* The result of an instruction, of 16 bits if `half`; `keeps` says that these leave the other half as it was. */
static inline void put_result(Wave *wave, const Op *op, u32 *values, int half, int keeps)
{
    int row = op->o[0].first;
    const u32 *old = wave->v[row];
    if (op->dst_sel != WHOLE_DWORD) {
        int chosen = op->dst_sel, bits = chosen < 4 ? 8 : 16, shift = chosen < 4 ? 8 * chosen : 16 * (chosen - 4);
        u32 mask = (1u << bits) - 1, keep = op->dst_unused == 2 ? ~(mask << shift) : 0;
        u32 top = op->dst_unused == 1 ? 1u << (bits - 1) : 0;
        LANES_DO(values[lane] = (((values[lane] & mask) ^ top) - top) << shift | (old[lane] & keep))
    } else if (half && keeps && !op->dpp) {
        int high = op->halves && op->op_sel >> 3 & 1;
        LANES_DO(values[lane] = high ? values[lane] << 16 | (old[lane] & 0xFFFF)
                                     : (values[lane] & 0xFFFF) | (old[lane] & 0xFFFF0000))
    } else if (half) {
        LANES_DO(values[lane] &= 0xFFFF)
    }
    u64 mask = wave->exec;
    if (op->dpp)
        mask &= op->dpp_enabled & (op->dpp_zero ? ~0ull : found_by(wave, op));
    put_masked(wave, row, values, mask);
}

static inline void put_pairs(Wave *wave, const Op *op, const u64 *values)
{
    u32 low[LANES], high[LANES];
    LANES_DO(low[lane] = (u32)values[lane]; high[lane] = (u32)(values[lane] >> 32))
    put_words(wave, op->o[0].first, low);
    put_words(wave, op->o[0].first + 1, high);
}

static inline float clamped(const Op *op, float value)
{
    return !op->clamp ? value : value > 0 ? (value > 1 ? 1.0f : value) : value == 0 ? value : 0.0f;
}

/* To the nearest even, in one step: what is inexact is first rounded to odd. */
static inline double to_odd(double sum, double error)
{
    u64 bits = as_bits64(sum);
    if (error == 0 || bits & 1 || !isfinite(sum))
        return sum;
    return as_double((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}
static inline double sum_to_odd(double a, double b)
{
    double sum = a + b, other = sum - a;
    return to_odd(sum, (a - (sum - other)) + (b - other));
}
static inline float fused(float x, float y, float z) { return (float)sum_to_odd((double)x * y, z); }
static inline u32 double_to_half(double value)
{
    float near = (float)value;
    u32 bits = as_bits(near);
    if (isfinite(near) && near != value && !(bits & 1))
        near = as_float((fabs(value) > fabs((double)near)) ? bits + 1 : bits - 1);
    return float_to_half(near);
}

#endif
