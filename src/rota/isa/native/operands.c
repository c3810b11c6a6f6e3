/* Operands: what an instruction reads, a value for each lane, and where its results go. */
#include "core.h"

static const uint32_t *spread(uint32_t value, uint32_t *room)
{
    for (int lane = 0; lane < LANES; lane++)
        room[lane] = value;
    return room;
}

uint32_t scalar32(const Wave *wave, const Operand *o)
{
    return o->file == SCALAR ? wave->s[o->first] : (uint32_t)o->literal;
}

uint64_t scalar64(const Wave *wave, const Operand *o)
{
    if (o->file == SCALAR)
        return wave->s[o->first] | (uint64_t)(o->count > 1 ? wave->s[o->first + 1] : 0) << 32;
    return o->file == FLOATING ? as_bits64(o->floating) : o->literal;
}

static void take_exec(Wave *wave)
{
    wave->exec = wave->s[EXEC] | (uint64_t)wave->s[EXEC + 1] << 32;
}

void put_scalar32(Wave *wave, const Operand *o, uint32_t value)
{
    wave->s[o->first] = value;
    if (o->first >= EXEC)
        take_exec(wave);
}

void put_scalar64(Wave *wave, const Operand *o, uint64_t value)
{
    wave->s[o->first] = (uint32_t)value;
    wave->s[o->first + 1] = (uint32_t)(value >> 32);
    if (o->first >= EXEC)
        take_exec(wave);
}

const uint32_t *words_of(Wave *wave, const Operand *o, uint32_t *room)
{
    if (o->file == VECTOR)
        return wave->v[o->first];
    return spread(scalar32(wave, o), room);
}

const uint64_t *doubles_of(Wave *wave, const Operand *o, uint64_t *room, int floating)
{
    if (o->file == VECTOR) {
        const uint32_t *low = wave->v[o->first], *high = wave->v[o->first + 1];
        for (int lane = 0; lane < LANES; lane++)
            room[lane] = low[lane] | (uint64_t)high[lane] << 32;
    } else {
        uint64_t value = scalar64(wave, o);
        for (int lane = 0; lane < LANES; lane++)
            room[lane] = value;
    }
    if (floating && (o->negate || o->absolute)) {
        uint64_t sign = 1ull << 63, keep = o->absolute ? ~sign : ~0ull, flip = o->negate ? sign : 0;
        for (int lane = 0; lane < LANES; lane++)
            room[lane] = (room[lane] & keep) ^ flip;
    }
    return room;
}

void put_masked(Wave *wave, int row, const uint32_t *values, uint64_t mask)
{
    uint32_t *to = wave->v[row];
    if (mask == ~0ull) {
        memmove(to, values, LANES * sizeof *to);
        return;
    }
    for (int lane = 0; lane < LANES; lane++)
        to[lane] = mask >> lane & 1 ? values[lane] : to[lane];
}

void put_words(Wave *wave, int row, const uint32_t *values)
{
    put_masked(wave, row, values, wave->exec);
}

float half_to_float(uint32_t half)
{
    uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3FF;
    if (exponent == 31)
        return as_float(sign | 0x7F800000 | fraction << 13);
    if (exponent == 0) {
        float tiny = (float)fraction * 0x1p-24f;
        return as_float(as_bits(tiny) | sign);
    }
    return as_float(sign | (exponent + 112) << 23 | fraction << 13);
}

uint32_t float_to_half(float value)
{
    uint32_t bits = as_bits(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7FFFFFFF;
    if (rest > 0x7F800000)
        return sign | 0x7E00 | (rest >> 13 & 0x1FF);
    if (rest >= 0x47800000) /* 65536 and more */
        return sign | 0x7C00;
    if (rest < 0x38800000) { /* below the smallest normal half: count in steps of 2 to the -24, ties to even */
        if (rest < 0x33000000)
            return sign;
        uint32_t shift = 126 - (rest >> 23), fraction = (rest & 0x7FFFFF) | 0x800000;
        uint32_t kept = fraction >> shift, left = fraction & ((1u << shift) - 1), half = 1u << (shift - 1);
        return sign | (kept + (left > half || (left == half && (kept & 1))));
    }
    uint32_t rounded = rest + 0xFFF + (rest >> 13 & 1);
    return sign | (rounded - 0x38000000) >> 13;
}
