/* Records before they run: nothing that is in them may lead outside of a wave, a pool or a program. */
#include "core.h"

const Opcode *opcode_at(int number);
int matrix_fits(const Op *);

static int within(int64_t value, int64_t low, int64_t high) { return value >= low && value <= high; }

static int operand_fits(const Operand *o)
{
    int64_t rows = o->file == SCALAR ? SCALARS : ROWS;
    return within(o->file, NO_FILE, FLOATING) && within(o->first, 0, rows - 1) && within(o->count, 0, SPARE) &&
           o->first + (int64_t)o->count <= rows && (o->file != SCALAR || o->count <= 16);
}

static int size_fits(int size)
{
    return size == 0 || size == 1 || size == 2 || size == 4 || size == 8 || size == 12 || size == 16;
}

static int fits(const Op *op, int32_t count, int32_t pool_size)
{
    const Opcode *known = opcode_at(op->opcode);
    if (known == NULL || !within(op->operands, 0, MOST_OPERANDS) || !within(op->target, -1, (int64_t)count - 1))
        return 0;
    if (op->touches < 0 || op->touches_at < 0 || (int64_t)op->touches_at + op->touches > pool_size)
        return 0;
    for (int i = 0; i < MOST_OPERANDS; i++)
        if (!operand_fits(&op->o[i]))
            return 0;
    for (int lane = 0; lane < LANES; lane++)
        if (!within(op->dpp_source[lane], -1, LANES - 1))
            return 0;
    if (!size_fits(op->size) || !within(op->pieces, 0, 2) || op->size * op->pieces > 16)
        return 0;
    if (op->half && (op->size > 2 || op->pieces > 1))
        return 0;
    if (op->element && ((op->element != 4 && op->element != 8 && op->element != 16) || op->size != 8 || op->pieces != 1))
        return 0;
    if (!within(op->dst_sel, 0, WHOLE_DWORD) || !within(op->src_sel[0], 0, WHOLE_DWORD) ||
        !within(op->src_sel[1], 0, WHOLE_DWORD) || !within(op->dst_unused, 0, 2))
        return 0;
    if (!strcmp(known->name, "rota_matrix") && !matrix_fits(op))
        return 0;
    if (strstr(known->name, "_atomic") && op->size != 4 && op->size != 8)
        return 0;
    return strncmp(known->name, "s_", 2) != 0 || !strstr(known->name, "load") || within(op->o[0].count, 1, 16);
}

/* 0, or the number, from 1 on, of the first record that is not as the core needs it. */
int rota_check(const Op *ops, int32_t count, const int32_t *pool, int32_t pool_size)
{
    for (int32_t i = 0; i < count; i++)
        if (!fits(&ops[i], count, pool_size))
            return i + 1;
    for (int32_t i = 0; i < pool_size; i++)
        if (!within(pool[i], 0, ALL_ROWS - 1))
            return count + 1;
    return 0;
}
