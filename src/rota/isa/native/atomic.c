/* Atomics on LDS and on global memory: lane by lane, from the lowest on, old bits and data give new bits. */
#include <math.h>

#include "core.h"

enum { /* as records.py numbers them */
    ADD, SUB, RSUB, INC, DEC, UMIN, UMAX, SMIN, SMAX, AND, OR, XOR, SWAP, MSKOR, CMPSWAP,
    ADD_F32, ADD_F64, PK_ADD_F16, PK_ADD_BF16, MIN_F32, MAX_F32, MIN_F64, MAX_F64,
};

static uint32_t bf16_sum(uint32_t a, uint32_t b)
{
    uint32_t total = as_bits(as_float(a << 16) + as_float(b << 16));
    if ((total & 0x7FFFFFFF) > 0x7F800000)
        return total >> 16 | 0x40;
    return (total + 0x7FFF + (total >> 16 & 1)) >> 16;
}
static uint32_t f16_sum(uint32_t a, uint32_t b) { return float_to_half(half_to_float(a) + half_to_float(b)); }
static double number(int size, uint64_t bits) { return size == 4 ? as_float((uint32_t)bits) : as_double(bits); }

/* `more` is what is cleared (mskor) or expected (cmpswap); on 32 bits the upper half is cut off by whoever stores. */
static uint64_t combined(int verb, int size, uint64_t old, uint64_t data, uint64_t more)
{
    int64_t a = size == 4 ? (int32_t)old : (int64_t)old, b = size == 4 ? (int32_t)data : (int64_t)data;
    switch (verb) {
    case ADD: return old + data;
    case SUB: return old - data;
    case RSUB: return data - old;
    case INC: return old >= data ? 0 : old + 1;
    case DEC: return old == 0 || old > data ? data : old - 1;
    case UMIN: return old < data ? old : data;
    case UMAX: return old > data ? old : data;
    case SMIN: return a <= b ? old : data;
    case SMAX: return a >= b ? old : data;
    case AND: return old & data;
    case OR: return old | data;
    case XOR: return old ^ data;
    case SWAP: return data;
    case MSKOR: return (old & ~more) | data;
    case CMPSWAP: return old == more ? data : old;
    case ADD_F32: return as_bits(as_float((uint32_t)old) + as_float((uint32_t)data));
    case ADD_F64: return as_bits64(as_double(old) + as_double(data));
    case PK_ADD_F16: return f16_sum(old & 0xFFFF, data & 0xFFFF) | f16_sum(old >> 16 & 0xFFFF, data >> 16 & 0xFFFF) << 16;
    case PK_ADD_BF16:
        return bf16_sum(old & 0xFFFF, data & 0xFFFF) | bf16_sum(old >> 16 & 0xFFFF, data >> 16 & 0xFFFF) << 16;
    case MIN_F32:
    case MIN_F64: return number(size, data) < number(size, old) ? data : old;
    case MAX_F32:
    case MAX_F64: return number(size, data) > number(size, old) ? data : old;
    default: return old;
    }
}

static uint64_t held(const Wave *wave, int row, int lane, int size)
{
    return wave->v[row][lane] | (size == 8 ? (uint64_t)wave->v[row + 1][lane] << 32 : 0);
}

/* The old values return to the registers behind them, if that is asked for. */
static int32_t returning(Wave *wave, const Op *op, Pending *pending, const uint64_t *found)
{
    for (int lane = 0; lane < LANES; lane++)
        for (int row = 0; row < op->size / 4; row++) {
            uint32_t word = (uint32_t)(found[lane] >> 32 * row);
            memcpy(pending->data + (row * LANES + lane) * 4, &word, 4);
        }
    under_way_now(wave, pending);
    return GO_ON;
}

static int32_t lds_atomic(Wave *wave, const Op *op)
{
    Group *group = wave->group;
    int pc = (int)(op - group->ops), size = op->size, from = op->returns ? 1 : 0;
    uint32_t address[LANES];
    uint64_t found[LANES], data[LANES], more[LANES];
    memcpy(address, wave->v[op->o[from].first], sizeof address);
    for (int lane = 0; lane < LANES; lane++) {
        data[lane] = held(wave, op->o[from + 1].first, lane, size);
        more[lane] = op->verb == MSKOR || op->verb == CMPSWAP ? held(wave, op->o[from + 2].first, lane, size) : 0;
    }
    Pending *pending = launch(wave, op, ON_DS, op->o[0].first, op->returns ? size / 4 : 0);
    pending->kind = LDS_ATOMIC;
    pending->size = size;
    pending->pieces = 1;
    pending->issued = wave->exec;
    pending->active = places(wave, op, address, pending);
    pending->access = begin_access(wave, pc, 1, 0);
    pending->serial = ++group->serial;
    memset(found, 0xFF, sizeof found);
    for (int lane = 0; lane < LANES; lane++)
        if (pending->active >> lane & 1) {
            int64_t at = pending->at[lane];
            if (at % size) {
                fault(group, F_MISALIGNED, pc, -1, wave->number, -1, -1, at, 0);
                pending->active &= ~(1ull << lane);
                continue;
            }
            begin_atomic(wave, pending->access, pending->serial, at, size);
        }
    for (int lane = 0; lane < LANES; lane++)
        if (pending->active >> lane & 1) {
            uint64_t old = 0, first = data[lane], second = more[lane];
            memcpy(&old, group->lds + pending->at[lane], (size_t)size);
            found[lane] = old; /* what is cleared or expected comes first */
            uint64_t new = op->verb == MSKOR || op->verb == CMPSWAP ? combined(op->verb, size, old, second, first)
                                                                    : combined(op->verb, size, old, first, 0);
            memcpy(group->lds + pending->at[lane], &new, (size_t)size);
            for (int byte = 0; byte < size; byte++)
                group->initialised[pending->at[lane] + byte] = 1;
        }
    return returning(wave, op, pending, found);
}

static int32_t memory_atomic(Wave *wave, const Op *op)
{
    Addresses at;
    int pc = (int)(op - wave->group->ops), near = -1, size = op->size, compares = op->verb == CMPSWAP;
    int given = op->buffer ? 0 : op->returns ? 2 : 1, lane_at = op->buffer ? 1 : op->returns ? 1 : 0;
    Operand rest[3] = {op->o[lane_at], op->o[given + 1 + op->buffer], op->o[3]};
    uint64_t found[LANES] = {0};
    addresses_of(wave, op, rest, &at);
    for (int lane = 0; lane < LANES; lane++) {
        if (!(wave->exec >> lane & 1) || (at.bounded && at.room[lane] < (uint64_t)size))
            continue;
        uint8_t *place = NULL;
        if (at.address[lane] % (uint64_t)size)
            fault(wave->group, F_MISALIGNED, pc, -1, wave->number, -1, -1, (int64_t)at.address[lane], 0);
        else
            place = reached(wave, pc, at.address[lane], size, CHANGES, &near);
        if (place == NULL)
            continue;
        uint64_t old = 0, data = held(wave, op->o[given].first, lane, size);
        uint64_t more = compares ? held(wave, op->o[given].first + size / 4, lane, size) : 0;
        memcpy(&old, place, (size_t)size);
        found[lane] = old;
        uint64_t new = combined(op->verb, size, old, data, more);
        memcpy(place, &new, (size_t)size);
    }
    Pending *pending = launch(wave, op, ON_VM, op->o[0].first, op->returns ? size / 4 : 0);
    pending->kind = op->returns ? TO_REGISTERS : NOTHING;
    pending->issued = wave->exec;
    return returning(wave, op, pending, found);
}

/* One word or two of memory by a wave; the old ones return to the registers that the data came from. */
static int32_t scalar_atomic(Wave *wave, const Op *op)
{
    int pc = (int)(op - wave->group->ops), near = -1, size = op->size, count = size / 4, first = op->o[0].first;
    uint8_t *place = reached(wave, pc, scalar_address(wave, op) & ~3ull, size, CHANGES, &near);
    uint64_t old = ~0ull, data = wave->s[first] | (size == 8 ? (uint64_t)wave->s[first + 1] << 32 : 0);
    if (place) {
        old = 0;
        memcpy(&old, place, (size_t)size);
        uint64_t new = combined(op->verb, size, old, data, 0);
        memcpy(place, &new, (size_t)size);
    }
    Pending *pending = launch(wave, op, ON_SM, ROWS + first, op->returns ? count : 0);
    pending->kind = op->returns ? TO_SCALARS : NOTHING;
    memcpy(pending->words, &old, sizeof old);
    under_way_now(wave, pending);
    return GO_ON;
}

const Opcode ATOMIC_OPCODES[] = {
    {"rota_lds_atomic", lds_atomic, M_OFFSET}, {"rota_memory_atomic", memory_atomic, M_OFFSET | M_BUFFER},
    {"rota_scalar_atomic", scalar_atomic, M_OFFSET | M_BUFFER}, {0, 0, 0},
};
