/* What instructions over 64 lanes share: their sources, lane by lane. */
#ifndef ROTA_LANES_H
#define ROTA_LANES_H

#include "core.h"

typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;

/* What a source lane is picked from, and where a result goes: SDWA and clamp. */
static inline const u32 *picked(const Op *op, int number, const u32 *from, u32 *room)
{
    int chosen = number < 2 ? op->src_sel[number] : WHOLE_DWORD;
    if (chosen == WHOLE_DWORD)
        return from;
    int bits = chosen < 4 ? 8 : 16, shift = chosen < 4 ? 8 * chosen : 16 * (chosen - 4);
    u32 mask = (1u << bits) - 1, top = op->o[1 + number].sign_extend ? 1u << (bits - 1) : 0;
    for (int lane = 0; lane < LANES; lane++)
        room[lane] = ((from[lane] >> shift & mask) ^ top) - top;
    return room;
}

#define SOURCES_1(KIND)                                                                                               \
    u32 r0[LANES];                                                                                                    \
    const u32 *s0 = picked(op, 0, KIND(wave, &op->o[1], r0), r0);
#define SOURCES_2(KIND)                                                                                               \
    SOURCES_1(KIND)                                                                                                   \
    u32 r1[LANES];                                                                                                    \
    const u32 *s1 = picked(op, 1, KIND(wave, &op->o[2], r1), r1);
#define SOURCES_3(KIND)                                                                                               \
    SOURCES_2(KIND)                                                                                                   \
    u32 r2[LANES];                                                                                                    \
    const u32 *s2 = KIND(wave, &op->o[3], r2);
#define LANES_DO(...)                                                                                                 \
    for (int lane = 0; lane < LANES; lane++) {                                                                        \
        __VA_ARGS__;                                                                                                  \
    }

#endif
