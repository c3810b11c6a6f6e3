/* Global memory: loads, stores and loads to LDS, checked against the buffers of the launch. */
#include <stdlib.h>

#include "core.h"

static int inside(const Group *group, int64_t start, int64_t end, int *near)
{
    int at = *near;
    if (at >= 0 && start >= group->starts[at] && end <= group->ends[at])
        return 1;
    int low = 0, high = group->buffers; /* the last buffer that starts at or before it */
    while (low < high) {
        int middle = (low + high) / 2;
        if (group->starts[middle] <= start)
            low = middle + 1;
        else
            high = middle;
    }
    *near = low - 1;
    return low > 0 && end <= group->ends[low - 1];
}

enum { ATOMICS = -2, NO_STORE = 0 };

/* A dword that one wave writes and another uses is a matter for those who know what keeps the two apart, unless
 * judge_stores() has found that both write the same; so is one that is used by atomics and otherwise.  Atomics among
 * themselves are in order. */
static void use(Wave *wave, int pc, int64_t place, int size, int kind)
{
    Group *group = wave->group;
    int32_t mine = group->number * MOST_WAVES + wave->number + 1;
    for (int64_t dword = place >> 2; dword <= (place + size - 1) >> 2; dword++) {
        int32_t writer = group->users[1][dword], reader = group->users[0][dword];
        if (kind == CHANGES) {
            if (reader || (writer && writer != ATOMICS))
                fault(group, F_SHARED, pc, -1, wave->number, -1, -1, dword * 4, 0);
            group->users[1][dword] = ATOMICS;
            continue;
        }
        if (kind == WRITES) {
            const Store *last = writer > NO_STORE ? &group->stores[writer] : NULL;
            if (writer == ATOMICS || (reader && reader != mine))
                fault(group, F_SHARED, pc, -1, wave->number, -1, -1, dword * 4, 0);
            if (last && last->workgroup != group->number)
                group->users[2][dword] = writer;
            group->users[1][dword] = group->store_count - 1;
            continue;
        }
        if (writer == ATOMICS || (writer && group->stores[writer].user != mine) || group->users[2][dword])
            fault(group, F_SHARED, pc, -1, wave->number, -1, -1, dword * 4, 0);
        if (reader != mine)
            group->users[0][dword] = reader ? -1 : mine; /* -1: several */
    }
}

uint8_t *reached(Wave *wave, int pc, uint64_t address, int size, int kind, int *near)
{
    Group *group = wave->group;
    int64_t place = (int64_t)(address - group->base);
    if (place >= 0 && inside(group, place, place + size, near)) {
        use(wave, pc, place, size, kind);
        return group->memory + place;
    }
    fault(group, F_OUTSIDE, pc, -1, wave->number, -1, -1, (int64_t)address, 0);
    return NULL;
}

/* A store is numbered before it is used; 0, and a fault, if there is no room. */
static int begin_store(Wave *wave, int pc, int whole)
{
    Group *group = wave->group;
    if (group->store_count == group->store_room) {
        int32_t room = group->store_room * 2;
        Store *more = realloc(group->stores, (size_t)room * sizeof *more);
        if (more == NULL) {
            fault(group, F_FULL, pc, -1, wave->number, -1, -1, room, 0);
            return group->store_count - 1;
        }
        group->stores = more;
        group->store_room = room;
    }
    int32_t user = group->number * MOST_WAVES + wave->number + 1;
    group->stores[group->store_count] = (Store){user, group->number, wave->number, pc, NEVER, whole};
    return group->store_count++;
}

/* Stores to what other waves have stored to: those of this workgroup that nothing keeps apart, and the last one of
 * earlier workgroups.  It is a note if they are of aligned dwords, and none of the ones in common changes. */
typedef struct {
    int32_t store, equal;
    int64_t first, last;
} Common;
enum { MOST_COMMON = 64 };
typedef struct {
    Common found[MOST_COMMON];
    int count, wrong;
} Judged;

static void compare(const Wave *wave, Judged *all, int store, int64_t place, int equal)
{
    const Group *group = wave->group;
    const Store *other = &group->stores[store];
    int each = 0;
    if (store <= NO_STORE || other->user == group->stores[group->store_count - 1].user ||
        (other->workgroup == group->number && other->covered < wave->epoch))
        return;
    while (each < all->count && all->found[each].store != store)
        each++;
    if (each == MOST_COMMON || !other->whole || !equal) {
        all->wrong = 1;
        return;
    }
    if (each == all->count)
        all->found[all->count++] = (Common){store, 1, place, place + 3};
    all->found[each].first = place < all->found[each].first ? place : all->found[each].first;
    all->found[each].last = place + 3 > all->found[each].last ? place + 3 : all->found[each].last;
}

/* Compares the words that a lane stores, at a place inside a buffer. */
static void judge_words(const Wave *wave, Judged *all, int64_t place, const uint32_t *words, int size)
{
    const Group *group = wave->group;
    for (int64_t dword = place >> 2; dword <= (place + size - 1) >> 2; dword++) {
        int32_t writer = group->users[1][dword], earlier = group->users[2][dword];
        if (writer <= NO_STORE)
            continue;
        int equal = !(place & 3) && !(size & 3) && !memcmp(group->memory + 4 * dword, &words[dword - (place >> 2)], 4);
        compare(wave, all, writer, 4 * dword, equal);
        if (earlier && group->stores[writer].workgroup == group->number)
            compare(wave, all, earlier, 4 * dword, equal);
    }
}

static void tell(Wave *wave, int pc, const Judged *all)
{
    Group *group = wave->group;
    if (all->wrong || (all->count && group->shared)) {
        fault(group, F_SHARED, pc, -1, wave->number, -1, -1, 0, 0);
        return;
    }
    for (int last = NO_STORE, left = all->count; left--;) { /* the earliest of the others first */
        const Common *next = NULL;
        for (int i = 0; i < all->count; i++)
            if (all->found[i].store > last && (!next || all->found[i].store < next->store))
                next = &all->found[i];
        const Store *other = &group->stores[next->store];
        int code = other->workgroup == group->number ? N_WITHIN : N_BETWEEN;
        note(group, &(Fault){code, pc, other->pc, wave->number, other->wave, other->workgroup, next->first, next->last});
        last = next->store;
    }
}

void addresses_of(Wave *wave, const Op *op, const Operand *o, Addresses *to)
{
    int pc = (int)(op - wave->group->ops);
    to->bounded = 0;
    if (op->buffer) {
        const Operand *lane = &o[0];
        const uint32_t *resource = wave->s + o[1].first;
        uint64_t base = resource[0] | (uint64_t)(resource[1] & 0xFFFF) << 32, records = resource[2];
        uint64_t stride = resource[1] >> 16 & 0x3FFF;
        if ((resource[1] >> 31 && stride) || resource[3] >> 23 & 1) { /* swizzled; adds the lane */
            fault(wave->group, F_STRIDE, pc, -1, wave->number, -1, o[1].first, 0, 0);
            records = 0;
        }
        uint64_t start = (uint64_t)op->offset + scalar32(wave, &o[2]);
        to->bounded = 1;
        for (int i = 0; i < LANES; i++) {
            uint64_t at = start + (op->offen ? wave->v[lane->first + (op->idxen != 0)][i] : 0);
            to->room[i] = records - (at < records ? at : records);
            if (op->idxen && stride) { /* by index; public accounts differ on the unit of num_records */
                uint64_t index = wave->v[lane->first][i];
                at += index * stride;
                to->room[i] = index < records ? 1ull << 62 : 0;
                if ((index < records) != (at < records) && wave->exec >> i & 1)
                    fault(wave->group, F_STRIDE, pc, -1, wave->number, -1, o[1].first, (int64_t)at, 0);
            }
            to->address[i] = base + at;
        }
    } else if (o[1].file == NO_FILE) {
        const uint32_t *low = wave->v[o[0].first], *high = wave->v[o[0].first + 1];
        for (int i = 0; i < LANES; i++)
            to->address[i] = (low[i] | (uint64_t)high[i] << 32) + (uint64_t)(int64_t)op->offset;
    } else {
        uint64_t base = scalar64(wave, &o[1]) + (uint64_t)(int64_t)op->offset;
        for (int i = 0; i < LANES; i++)
            to->address[i] = base + wave->v[o[0].first][i];
    }
}

/* Bytes of each lane; zero behind num_records, which is checked for each word by itself. */
static void fetch(Wave *wave, const Op *op, const Addresses *from, uint8_t *out)
{
    int pc = (int)(op - wave->group->ops), near = -1;
    int unit = op->size < 4 ? op->size : 4;
    memset(out, 0, (size_t)(LANES * op->size));
    for (int lane = 0; lane < LANES; lane++) {
        if (!(wave->exec >> lane & 1))
            continue;
        uint8_t *to = out + lane * op->size;
        if (!from->bounded || from->room[lane] >= (uint64_t)op->size) {
            const uint8_t *found = reached(wave, pc, from->address[lane], op->size, 0, &near);
            if (found)
                memcpy(to, found, (size_t)op->size);
            else
                memset(to, 0xFF, (size_t)op->size);
            continue;
        }
        for (int at = 0; at < op->size; at += unit)
            if (from->room[lane] >= (uint64_t)(at + unit)) {
                const uint8_t *found = reached(wave, pc, from->address[lane] + (uint64_t)at, unit, 0, &near);
                if (found)
                    memcpy(to + at, found, (size_t)unit);
                else
                    memset(to + at, 0xFF, (size_t)unit);
            }
    }
}

static int32_t load(Wave *wave, const Op *op)
{
    Addresses from;
    uint8_t bytes[LANES * 16];
    uint32_t old[LANES], words[4][LANES];
    int first = op->o[0].first, rows = (op->size + 3) / 4;
    addresses_of(wave, op, op->o + 1, &from);
    fetch(wave, op, &from, bytes);
    memcpy(old, wave->v[first], sizeof old);
    if (op->half == LOST)
        memset(old, 0xFF, sizeof old); /* poison */
    for (int lane = 0; lane < LANES; lane++) {
        const uint8_t *given = bytes + lane * op->size;
        if (op->size >= 4) {
            for (int row = 0; row < rows; row++)
                memcpy(&words[row][lane], given + 4 * row, 4);
            continue;
        }
        uint32_t word = op->size == 1 ? given[0] : (uint32_t)(given[0] | given[1] << 8);
        if (op->sign)
            word = op->size == 1 ? (uint32_t)(int8_t)word : (uint32_t)(int16_t)word;
        if (op->half)
            word = op->high ? word << 16 | (old[lane] & 0xFFFF) : (word & 0xFFFF) | (old[lane] & 0xFFFF0000);
        words[0][lane] = word;
    }
    Pending *pending = launch(wave, op, ON_VM, first, rows);
    pending->kind = TO_REGISTERS;
    pending->issued = wave->exec;
    memcpy(pending->data, words, (size_t)rows * sizeof words[0]);
    under_way_now(wave, pending);
    return GO_ON;
}

void land_load(Wave *wave, Pending *pending)
{
    for (int row = 0; row < pending->rows; row++) {
        uint32_t words[LANES];
        memcpy(words, pending->data + row * (int)sizeof words, sizeof words);
        put_masked(wave, pending->first_row + row, words, pending->issued);
    }
}

/* What a lane stores. */
static void words_to_store(const Wave *wave, const Op *op, const Operand *data, int lane, uint32_t *words)
{
    for (int row = 0; row < (op->size + 3) / 4; row++)
        words[row] = wave->v[data->first + row][lane];
    if (op->high)
        words[0] >>= 16;
}

static int32_t store(Wave *wave, const Op *op)
{
    Addresses to;
    Group *group = wave->group;
    int pc = (int)(op - group->ops), near = -1, unit = op->buffer && op->size > 4 ? 4 : op->size, number;
    const Operand *data = op->buffer ? &op->o[0] : &op->o[1];
    Operand rest[3] = {op->buffer ? op->o[1] : op->o[0], op->o[2], op->o[3]};
    Judged all = {.count = 0, .wrong = 0};
    addresses_of(wave, op, rest, &to);
    number = begin_store(wave, pc, !(op->size & 3));
    for (int pass = 0; pass < 2; pass++) /* all lanes are judged before one stores, and store a word before the next */
        for (int at = 0; at < op->size; at += unit)
            for (int lane = 0; lane < LANES; lane++) {
                int64_t place = (int64_t)(to.address[lane] + (uint64_t)at - group->base);
                uint32_t words[4];
                if (!(wave->exec >> lane & 1) || (to.bounded && to.room[lane] < (uint64_t)(at + unit)))
                    continue;
                words_to_store(wave, op, data, lane, words);
                if (pass == 0) {
                    if (place >= 0 && inside(group, place, place + unit, &near))
                        judge_words(wave, &all, place, words + at / 4, unit);
                    continue;
                }
                uint8_t *found = reached(wave, pc, to.address[lane] + (uint64_t)at, unit, WRITES, &near);
                if (found)
                    memcpy(found, (uint8_t *)words + at, (size_t)unit);
                if (place & 3)
                    group->stores[number].whole = 0;
            }
    tell(wave, pc, &all);
    Pending *pending = launch(wave, op, ON_VM, 0, 0);
    pending->kind = NOTHING;
    pending->store = number;
    under_way_now(wave, pending);
    return GO_ON;
}

/* Memory to LDS: lane i writes at M0 + offset + i * size, however the addresses are spread. */
static int32_t dma(Wave *wave, const Op *op)
{
    Addresses from;
    Group *group = wave->group;
    int pc = (int)(op - group->ops);
    addresses_of(wave, op, op->o, &from);
    Pending *pending = launch(wave, op, ON_VM, 0, 0);
    fetch(wave, op, &from, pending->data);
    int64_t start = (int64_t)(wave->s[M0] & (uint32_t)op->align_m0) + op->offset;
    if (start & 3) {
        fault(group, F_MISALIGNED, pc, -1, wave->number, -1, M0, start, 0);
        start &= ~(int64_t)3;
    }
    pending->kind = DMA;
    pending->size = op->size;
    pending->pieces = 1;
    pending->active = wave->exec;
    pending->access = begin_access(wave, pc, 1, 1);
    pending->serial = ++group->serial;
    for (int lane = 0; lane < LANES; lane++) {
        int64_t at = start + (int64_t)lane * op->size;
        if (!(pending->active >> lane & 1))
            continue;
        if (!within_lds(wave, pc, at, op->size)) {
            pending->active &= ~(1ull << lane);
            continue;
        }
        pending->at[lane] = (int32_t)at;
        begin_write(wave, pending->access, pending->serial, at, op->size, 0);
    }
    under_way_now(wave, pending);
    return GO_ON;
}

static int32_t load_or_dma(Wave *wave, const Op *op)
{
    return op->to_lds ? dma(wave, op) : load(wave, op);
}

static uint64_t scalar_offset(const Wave *wave, const Op *op)
{
    return (op->o[2].file == SCALAR ? wave->s[op->o[2].first] : 0) + (uint64_t)(int64_t)op->offset;
}
uint64_t scalar_address(const Wave *wave, const Op *op) { return scalar64(wave, &op->o[1]) + scalar_offset(wave, op); }

static int32_t s_load(Wave *wave, const Op *op)
{
    int pc = (int)(op - wave->group->ops), near = -1, count = op->o[0].count, inside = count;
    uint64_t more = scalar_offset(wave, op), address;
    if (op->buffer) { /* words past num_records are zero */
        const uint32_t *resource = wave->s + op->o[1].first;
        int64_t at = (int64_t)(more & ~3ull), left = (resource[2] - at) >> 2;
        if (resource[1] >> 16 & 0x3FFF)
            fault(wave->group, F_STRIDE, pc, -1, wave->number, -1, op->o[1].first, 0, 0);
        inside = left < 0 ? 0 : left < count ? (int)left : count;
        address = (resource[0] | (uint64_t)(resource[1] & 0xFFFF) << 32) + (uint64_t)at;
    } else {
        address = scalar_address(wave, op);
    }
    const uint8_t *found = inside ? reached(wave, pc, address & ~3ull, 4 * inside, READS, &near) : NULL;
    Pending *pending = launch(wave, op, ON_SM, ROWS + op->o[0].first, count);
    pending->kind = TO_SCALARS;
    memset(pending->words, inside && !found ? 0xFF : 0, sizeof pending->words);
    if (found)
        memcpy(pending->words, found, (size_t)(4 * inside));
    under_way_now(wave, pending);
    return GO_ON;
}

static int32_t s_store(Wave *wave, const Op *op)
{
    Group *group = wave->group;
    int pc = (int)(op - group->ops), near = -1, count = op->size / 4, number = begin_store(wave, pc, 1);
    uint64_t address = scalar_address(wave, op) & ~3ull;
    int64_t place = (int64_t)(address - group->base);
    Judged all = {.count = 0, .wrong = 0};
    if (place >= 0 && inside(group, place, place + op->size, &near))
        judge_words(wave, &all, place, wave->s + op->o[0].first, 4 * count);
    uint8_t *to = reached(wave, pc, address, op->size, WRITES, &near);
    for (int i = 0; to && i < count; i++)
        memcpy(to + 4 * i, &wave->s[op->o[0].first + i], 4);
    tell(wave, pc, &all);
    Pending *pending = launch(wave, op, ON_SM, 0, 0);
    pending->store = number;
    under_way_now(wave, pending);
    return GO_ON;
}

#define LOADS(SPACE)                                                                                                  \
    {SPACE "_load_dword", load_or_dma, M_BUFFER | M_OFFSET}, {SPACE "_load_dwordx2", load_or_dma, M_BUFFER | M_OFFSET},                     \
        {SPACE "_load_dwordx3", load_or_dma, M_BUFFER | M_OFFSET}, {SPACE "_load_dwordx4", load_or_dma, M_BUFFER | M_OFFSET},               \
        {SPACE "_load_ubyte", load_or_dma, M_BUFFER | M_OFFSET}, {SPACE "_load_sbyte", load_or_dma, M_BUFFER | M_OFFSET},                   \
        {SPACE "_load_ushort", load_or_dma, M_BUFFER | M_OFFSET}, {SPACE "_load_sshort", load_or_dma, M_BUFFER | M_OFFSET},                 \
        {SPACE "_load_short_d16", load_or_dma, M_BUFFER | M_OFFSET}, {SPACE "_load_short_d16_hi", load_or_dma, M_BUFFER | M_OFFSET},        \
        {SPACE "_load_ubyte_d16", load_or_dma, M_BUFFER | M_OFFSET}, {SPACE "_load_ubyte_d16_hi", load_or_dma, M_BUFFER | M_OFFSET},        \
        {SPACE "_load_sbyte_d16", load_or_dma, M_BUFFER | M_OFFSET}, {SPACE "_load_sbyte_d16_hi", load_or_dma, M_BUFFER | M_OFFSET},        \
        {SPACE "_load_lds_dword", dma, M_BUFFER | M_OFFSET}, {SPACE "_load_lds_dwordx3", dma, M_BUFFER | M_OFFSET},                         \
        {SPACE "_load_lds_dwordx4", dma, M_BUFFER | M_OFFSET}, {SPACE "_store_dword", store, M_BUFFER | M_OFFSET},                          \
        {SPACE "_store_dwordx2", store, M_BUFFER | M_OFFSET}, {SPACE "_store_dwordx3", store, M_BUFFER | M_OFFSET},                         \
        {SPACE "_store_dwordx4", store, M_BUFFER | M_OFFSET}, {SPACE "_store_byte", store, M_BUFFER | M_OFFSET},                            \
        {SPACE "_store_short", store, M_BUFFER | M_OFFSET}, {SPACE "_store_byte_d16_hi", store, M_BUFFER | M_OFFSET},                       \
        {SPACE "_store_short_d16_hi", store, M_BUFFER | M_OFFSET}
#define SCALARS_OF(NAME)                                                                                              \
    {NAME "_dword", s_load, SCALAR_ONES}, {NAME "_dwordx2", s_load, SCALAR_ONES}, {NAME "_dwordx4", s_load, SCALAR_ONES},  \
        {NAME "_dwordx8", s_load, SCALAR_ONES}, {NAME "_dwordx16", s_load, SCALAR_ONES}
#define SCALAR_ONES (M_OFFSET | M_BUFFER)
const Opcode GLOBAL_OPCODES[] = {
    LOADS("buffer"), LOADS("global"), SCALARS_OF("s_load"), SCALARS_OF("s_buffer_load"),
    {"s_store_dword", s_store, SCALAR_ONES}, {"s_store_dwordx2", s_store, SCALAR_ONES},
    {"s_store_dwordx4", s_store, SCALAR_ONES}, {0, 0, 0},
};
