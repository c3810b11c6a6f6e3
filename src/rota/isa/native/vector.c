/* VALU instructions that carry, select, cross lanes, or work on pairs of registers or of halves. */
#include "lanes.h"

#define SHIFT_64(NAME, EXPRESSION)                                                                                    \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 r0[LANES];                                                                                                \
        u64 r1[LANES], out[LANES];                                                                                    \
        const u32 *s0 = words_of(wave, &op->o[1], r0);                                                                \
        const u64 *s1 = doubles_of(wave, &op->o[2], r1, 0);                                                           \
        LANES_DO(u32 a = s0[lane] & 63; u64 p = s1[lane]; out[lane] = (u64)(EXPRESSION)) put_pairs(wave, op, out);    \
        return GO_ON;                                                                                                 \
    }
SHIFT_64(lshlrev_b64, p << a)
SHIFT_64(lshrrev_b64, p >> a)
SHIFT_64(ashrrev_i64, (i64)p >> a)

static int32_t mov_b64(Wave *wave, const Op *op)
{
    u64 room[LANES];
    put_pairs(wave, op, doubles_of(wave, &op->o[1], room, 0));
    return GO_ON;
}

static int32_t lshl_add_u64(Wave *wave, const Op *op)
{
    u64 r0[LANES], r2[LANES], out[LANES];
    u32 r1[LANES];
    const u64 *a = doubles_of(wave, &op->o[1], r0, 0), *c = doubles_of(wave, &op->o[3], r2, 0);
    const u32 *b = words_of(wave, &op->o[2], r1);
    LANES_DO(out[lane] = (a[lane] << (b[lane] & 7)) + c[lane])
    put_pairs(wave, op, out);
    return GO_ON;
}

static int32_t bitop3(Wave *wave, const Op *op)
{
    u32 room[3][LANES], out[LANES] = {0};
    const u32 *from[3];
    for (int number = 0; number < 3; number++)
        from[number] = words_of(wave, &op->o[1 + number], room[number]);
    for (int term = 0; term < 8; term++)
        if (op->immediate >> term & 1)
            LANES_DO(out[lane] |= (term & 4 ? from[0][lane] : ~from[0][lane]) &
                                  (term & 2 ? from[1][lane] : ~from[1][lane]) &
                                  (term & 1 ? from[2][lane] : ~from[2][lane]))
    put_words(wave, op->o[0].first, out);
    return GO_ON;
}

/* Carries: total is that of 33 bits and a sign. */
#define CARRY(NAME, EXPRESSION)                                                                                       \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 r0[LANES], r1[LANES], out[LANES];                                                                         \
        const u32 *s0 = source(wave, op, 0, 2, WORD, r0), *s1 = source(wave, op, 1, 3, WORD, r1);                     \
        u64 into = op->operands > 4 ? scalar64(wave, &op->o[4]) : 0, carry = 0;                                       \
        LANES_DO(i64 a = s0[lane]; i64 b = s1[lane]; i64 c = into >> lane & 1; i64 total = (EXPRESSION);              \
                 out[lane] = (u32)total; carry |= (u64)(total < 0 || total >> 32 != 0) << lane)                       \
        carry &= wave->exec;                                                                                          \
        put_result(wave, op, out, 0, 0);                                                                              \
        put_scalar64(wave, &op->o[1], carry);                                                                         \
        return GO_ON;                                                                                                 \
    }
CARRY(add_co, a + b + c)
CARRY(sub_co, a - b - c)
CARRY(subrev_co, b - a - c)

static int32_t cndmask(Wave *wave, const Op *op)
{
    u32 r0[LANES], r1[LANES], out[LANES];
    const u32 *s0 = source(wave, op, 0, 1, BITS, r0), *s1 = source(wave, op, 1, 2, BITS, r1);
    u64 which = scalar64(wave, &op->o[3]);
    LANES_DO(out[lane] = which >> lane & 1 ? s1[lane] : s0[lane])
    put_result(wave, op, out, 0, 0);
    return GO_ON;
}

static int32_t mad_64(Wave *wave, const Op *op, int sign)
{
    u32 r0[LANES], r1[LANES];
    u64 r2[LANES], out[LANES], carry = 0;
    const u32 *a = words_of(wave, &op->o[2], r0), *b = words_of(wave, &op->o[3], r1);
    const u64 *c = doubles_of(wave, &op->o[4], r2, 0);
    LANES_DO(__int128 total = sign ? (__int128)((i64)(i32)a[lane] * (i32)b[lane]) + (i64)c[lane]
                                   : (__int128)((u64)a[lane] * b[lane]) + c[lane];
             out[lane] = (u64)total; carry |= (u64)(total >> 64 & 1) << lane)
    put_pairs(wave, op, out);
    put_scalar64(wave, &op->o[1], carry & wave->exec);
    return GO_ON;
}
static int32_t mad_u64(Wave *wave, const Op *op) { return mad_64(wave, op, 0); }
static int32_t mad_i64(Wave *wave, const Op *op) { return mad_64(wave, op, 1); }

static int32_t readfirstlane(Wave *wave, const Op *op)
{
    u32 room[LANES];
    const u32 *from = words_of(wave, &op->o[1], room);
    put_scalar32(wave, &op->o[0], from[wave->exec ? __builtin_ctzll(wave->exec) : 0]);
    return GO_ON;
}
static int32_t readlane(Wave *wave, const Op *op)
{
    u32 room[LANES];
    put_scalar32(wave, &op->o[0], words_of(wave, &op->o[1], room)[scalar32(wave, &op->o[2]) & 63]);
    return GO_ON;
}
static int32_t writelane(Wave *wave, const Op *op)
{
    wave->v[op->o[0].first][scalar32(wave, &op->o[2]) & 63] = scalar32(wave, &op->o[1]);
    return GO_ON;
}
static int32_t mbcnt(Wave *wave, const Op *op, int base)
{
    u32 r0[LANES], r1[LANES], out[LANES];
    const u32 *s0 = words_of(wave, &op->o[1], r0), *s1 = words_of(wave, &op->o[2], r1);
    LANES_DO(int width = lane - base; u32 below = width <= 0 ? 0 : width >= 32 ? ~0u : (1u << width) - 1;
             out[lane] = (u32)__builtin_popcount(s0[lane] & below) + s1[lane])
    put_words(wave, op->o[0].first, out);
    return GO_ON;
}
static int32_t mbcnt_lo(Wave *wave, const Op *op) { return mbcnt(wave, op, 0); }
static int32_t mbcnt_hi(Wave *wave, const Op *op) { return mbcnt(wave, op, 32); }
static int32_t swapped(Wave *wave, const Op *op)
{
    u32 first[LANES], second[LANES];
    memcpy(first, wave->v[op->o[0].first], sizeof first);
    memcpy(second, wave->v[op->o[1].first], sizeof second);
    put_words(wave, op->o[0].first, second);
    put_words(wave, op->o[1].first, first);
    return GO_ON;
}

/* Two float32 at once; op_sel and op_sel_hi choose which register of each source a result takes. */
static const u32 *part_of(Wave *wave, const Op *op, int number, int high, u32 *room)
{
    Operand o = op->o[1 + number];
    int chosen = (high ? op->op_sel_hi : op->op_sel) >> number & 1;
    u32 flip = (high ? op->neg_hi : op->neg_lo) >> number & 1 ? 1u << 31 : 0;
    if (o.file == VECTOR || o.file == SCALAR)
        o.first += chosen;
    const u32 *from = words_of(wave, &o, room);
    if (flip) {
        LANES_DO(room[lane] = from[lane] ^ flip)
        return room;
    }
    return from;
}
#define PACKED(NAME, COUNT, EXPRESSION)                                                                               \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 out[2][LANES], room[3][LANES];                                                                            \
        for (int high = 0; high < 2; high++) {                                                                        \
            const u32 *from[3];                                                                                       \
            for (int number = 0; number < COUNT; number++)                                                            \
                from[number] = part_of(wave, op, number, high, room[number]);                                         \
            LANES_DO(float x = as_float(from[0][lane]); float y = as_float(from[1][lane]);                            \
                     float z = COUNT > 2 ? as_float(from[COUNT - 1][lane]) : 0; (void)z;                              \
                     out[high][lane] = as_bits(clamped(op, EXPRESSION)))                                              \
        }                                                                                                             \
        put_words(wave, op->o[0].first, out[0]);                                                                      \
        put_words(wave, op->o[0].first + 1, out[1]);                                                                  \
        return GO_ON;                                                                                                 \
    }
PACKED(pk_add_f32, 2, x + y)
PACKED(pk_mul_f32, 2, x *y)
PACKED(pk_fma_f32, 3, fused(x, y, z))

static int32_t pk_mov(Wave *wave, const Op *op)
{
    u32 out[2][LANES], room[LANES];
    for (int number = 0; number < 2; number++) {
        Operand o = op->o[1 + number];
        if (o.file == VECTOR || o.file == SCALAR)
            o.first += op->op_sel >> number & 1;
        memcpy(out[number], words_of(wave, &o, room), sizeof out[number]);
    }
    put_words(wave, op->o[0].first, out[0]);
    put_words(wave, op->o[0].first + 1, out[1]);
    return GO_ON;
}

/* Two halves at once, floats or integers: a, b and c are 16 bits, x, y and z what they are worth as floats. */
static u32 chosen_half(Wave *wave, const Op *op, int number, int high, int lane, int floats)
{
    const Operand *o = &op->o[1 + number < op->operands ? 1 + number : 0];
    u32 value = o->file == VECTOR ? wave->v[o->first][lane] : scalar32(wave, o);
    if (floats && o->file == FLOATING)
        value = float_to_half((float)o->floating);
    value = value >> ((high ? op->op_sel_hi : op->op_sel) >> number & 1 ? 16 : 0) & 0xFFFF;
    return value ^ ((high ? op->neg_hi : op->neg_lo) >> number & 1 ? 0x8000 : 0);
}
#define HALVES(NAME, COUNT, FLOATS, EXPRESSION)                                                                       \
    static int32_t NAME(Wave *wave, const Op *op)                                                                     \
    {                                                                                                                 \
        u32 out[LANES] = {0};                                                                                         \
        for (int high = 0; high < 2; high++)                                                                          \
            LANES_DO(u32 a = chosen_half(wave, op, 0, high, lane, FLOATS);                                            \
                     u32 b = COUNT > 1 ? chosen_half(wave, op, 1, high, lane, FLOATS) : 0;                            \
                     u32 c = COUNT > 2 ? chosen_half(wave, op, 2, high, lane, FLOATS) : 0; (void)b; (void)c;          \
                     float x = half_to_float(a); float y = half_to_float(b); float z = half_to_float(c);              \
                     (void)x; (void)y; (void)z; u32 h = (u32)(EXPRESSION) & 0xFFFF;                                   \
                     if (FLOATS && op->clamp) h = float_to_half(clamped(op, half_to_float(h)));                       \
                     out[lane] |= h << 16 * high)                                                                     \
        put_words(wave, op->o[0].first, out);                                                                         \
        return GO_ON;                                                                                                 \
    }
#define I(h) ((int16_t)(h))
HALVES(pk_add_f16, 2, 1, float_to_half(x + y))
HALVES(pk_mul_f16, 2, 1, float_to_half(x *y))
HALVES(pk_fma_f16, 3, 1, double_to_half(sum_to_odd((double)x *y, z)))
HALVES(pk_add_u16, 2, 0, a + b)
HALVES(pk_sub_u16, 2, 0, a - b)
HALVES(pk_mul_lo_u16, 2, 0, a *b)
HALVES(pk_mad_16, 3, 0, a *b + c)
HALVES(pk_lshlrev, 2, 0, b << (a & 15))
HALVES(pk_lshrrev, 2, 0, b >> (a & 15))
HALVES(pk_ashrrev, 2, 0, I(b) >> (a & 15))
HALVES(pk_max_u16, 2, 0, a > b ? a : b)
HALVES(pk_min_u16, 2, 0, a < b ? a : b)
HALVES(pk_max_i16, 2, 0, I(a) > I(b) ? a : b)
HALVES(pk_min_i16, 2, 0, I(a) < I(b) ? a : b)

#define CHOICE (M_OP_SEL | M_NEG | M_CLAMP)
const Opcode VECTOR_OPCODES[] = {
    {"v_mov_b64", mov_b64, 0}, {"v_lshlrev_b64", lshlrev_b64, 0}, {"v_lshrrev_b64", lshrrev_b64, 0},
    {"v_ashrrev_i64", ashrrev_i64, 0}, {"v_lshl_add_u64", lshl_add_u64, 0}, {"v_bitop3_b32", bitop3, M_IMMEDIATE},
    {"v_add_co_u32", add_co, M_SDWA}, {"v_addc_co_u32", add_co, M_SDWA}, {"v_sub_co_u32", sub_co, M_SDWA},
    {"v_subb_co_u32", sub_co, M_SDWA}, {"v_subrev_co_u32", subrev_co, M_SDWA}, {"v_subbrev_co_u32", subrev_co, M_SDWA},
    {"v_cndmask_b32", cndmask, M_SDWA | M_DPP | M_SIGNS}, {"v_mad_u64_u32", mad_u64, 0}, {"v_mad_i64_i32", mad_i64, 0},
    {"v_readfirstlane_b32", readfirstlane, 0}, {"v_readlane_b32", readlane, 0}, {"v_writelane_b32", writelane, 0},
    {"v_mbcnt_lo_u32_b32", mbcnt_lo, 0}, {"v_mbcnt_hi_u32_b32", mbcnt_hi, 0}, {"v_swap_b32", swapped, 0},
    {"v_pk_add_f32", pk_add_f32, CHOICE}, {"v_pk_mul_f32", pk_mul_f32, CHOICE}, {"v_pk_fma_f32", pk_fma_f32, CHOICE},
    {"v_pk_mov_b32", pk_mov, M_OP_SEL}, {"v_pk_add_f16", pk_add_f16, CHOICE}, {"v_pk_mul_f16", pk_mul_f16, CHOICE},
    {"v_pk_fma_f16", pk_fma_f16, CHOICE}, {"v_pk_fmac_f16", pk_fma_f16, CHOICE}, {"v_pk_add_u16", pk_add_u16, M_OP_SEL},
    {"v_pk_sub_u16", pk_sub_u16, M_OP_SEL}, {"v_pk_add_i16", pk_add_u16, M_OP_SEL},
    {"v_pk_sub_i16", pk_sub_u16, M_OP_SEL}, {"v_pk_mul_lo_u16", pk_mul_lo_u16, M_OP_SEL},
    {"v_pk_mad_u16", pk_mad_16, M_OP_SEL}, {"v_pk_mad_i16", pk_mad_16, M_OP_SEL},
    {"v_pk_lshlrev_b16", pk_lshlrev, M_OP_SEL}, {"v_pk_lshrrev_b16", pk_lshrrev, M_OP_SEL},
    {"v_pk_ashrrev_i16", pk_ashrrev, M_OP_SEL}, {"v_pk_max_u16", pk_max_u16, M_OP_SEL},
    {"v_pk_min_u16", pk_min_u16, M_OP_SEL}, {"v_pk_max_i16", pk_max_i16, M_OP_SEL},
    {"v_pk_min_i16", pk_min_i16, M_OP_SEL}, {0, 0, 0},
};
