/* Private memory: each lane has bytes of its own, poison at first; scratch_ loads and stores. */
#include "core.h"

/* The bytes of a lane; NULL if they leave what it has. */
static uint8_t *own(Wave *wave, const Op *op, const Operand *lane_at, const Operand *base, int lane)
{
    Group *group = wave->group;
    int64_t at = op->offset;
    if (base->file != NO_FILE)
        at += scalar32(wave, base);
    if (lane_at->file == VECTOR)
        at += wave->v[lane_at->first][lane];
    if (at >= 0 && at + op->size <= group->private_size)
        return group->private + ((int64_t)wave->number * LANES + lane) * group->private_size + at;
    fault(group, F_LEAVES_PRIVATE, (int)(op - group->ops), -1, wave->number, -1, -1, at, group->private_size);
    return NULL;
}

static int32_t load(Wave *wave, const Op *op)
{
    uint32_t words[4][LANES];
    int rows = (op->size + 3) / 4;
    for (int lane = 0; lane < LANES; lane++) {
        uint8_t bytes[16];
        const uint8_t *from = wave->exec >> lane & 1 ? own(wave, op, &op->o[1], &op->o[2], lane) : NULL;
        memset(bytes, 0xFF, sizeof bytes);
        if (from)
            memcpy(bytes, from, (size_t)op->size);
        uint32_t old = op->half == LOST ? POISON : wave->v[op->o[0].first][lane];
        for (int row = 0; row < rows; row++)
            memcpy(&words[row][lane], bytes + 4 * row, 4);
        if (op->size < 4) {
            uint32_t word = op->size == 1 ? bytes[0] : (uint32_t)(bytes[0] | bytes[1] << 8);
            if (op->sign)
                word = op->size == 1 ? (uint32_t)(int8_t)word : (uint32_t)(int16_t)word;
            if (op->half)
                word = op->high ? word << 16 | (old & 0xFFFF) : (word & 0xFFFF) | (old & 0xFFFF0000);
            words[0][lane] = word;
        }
    }
    Pending *pending = launch(wave, op, ON_VM, op->o[0].first, rows);
    pending->kind = TO_REGISTERS;
    pending->issued = wave->exec;
    memcpy(pending->data, words, (size_t)rows * sizeof words[0]);
    under_way_now(wave, pending);
    return GO_ON;
}

static int32_t store(Wave *wave, const Op *op)
{
    for (int lane = 0; lane < LANES; lane++) {
        uint8_t *to = wave->exec >> lane & 1 ? own(wave, op, &op->o[0], &op->o[2], lane) : NULL;
        uint32_t words[4];
        for (int row = 0; row < (op->size + 3) / 4; row++)
            words[row] = wave->v[op->o[1].first + row][lane];
        if (op->high)
            words[0] >>= 16;
        if (to)
            memcpy(to, words, (size_t)op->size);
    }
    under_way_now(wave, launch(wave, op, ON_VM, 0, 0));
    return GO_ON;
}

#define LOAD(NAME) {"scratch_load_" NAME, load, M_OFFSET | M_BUFFER}
#define STORE(NAME) {"scratch_store_" NAME, store, M_OFFSET | M_BUFFER}
const Opcode PRIVATE_OPCODES[] = {
    LOAD("dword"), LOAD("dwordx2"), LOAD("dwordx3"), LOAD("dwordx4"), LOAD("ubyte"), LOAD("sbyte"), LOAD("ushort"),
    LOAD("sshort"), LOAD("short_d16"), LOAD("short_d16_hi"), LOAD("ubyte_d16"), LOAD("ubyte_d16_hi"), LOAD("sbyte_d16"),
    LOAD("sbyte_d16_hi"), STORE("dword"), STORE("dwordx2"), STORE("dwordx3"), STORE("dwordx4"), STORE("byte"),
    STORE("short"), STORE("byte_d16_hi"), STORE("short_d16_hi"), {0, 0, 0},
};
