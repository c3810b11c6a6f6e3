/* LDS: reads and writes that take time, and whether waits and barriers keep them apart in every interleaving.
 *
 * Two checks, as in rota.isa.lds and rota.isa.memory_order, by byte.  Marks: a byte is marked while a write to it is
 * under way; a read needs its bytes unmarked and unchanged from its issue to its landing.  Order: an access of one wave
 * happens before one of another iff the wait that covers it stands in an earlier epoch than the other's issue. */
#include <stdlib.h>

#include "core.h"

int within_lds(Wave *wave, int pc, int64_t at, int size)
{
    Group *group = wave->group;
    if (at >= 0 && at + size <= group->lds_size)
        return 1;
    fault(group, F_LEAVES_LDS, pc, -1, wave->number, -1, -1, at, group->lds_size);
    return 0;
}

int begin_access(Wave *wave, int pc, int writes, int dma)
{
    Group *group = wave->group;
    if (group->access_count == group->access_room) {
        int32_t room = group->access_room * 2;
        Access *more = realloc(group->accesses, (size_t)room * sizeof *more);
        if (more == NULL) {
            fault(group, F_FULL, pc, -1, wave->number, -1, -1, room, 0);
            return group->access_count - 1;
        }
        group->accesses = more;
        group->access_room = room;
    }
    group->accesses[group->access_count] =
        (Access){.wave = wave->number, .pc = pc, .writes = writes, .dma = dma, .covered = NEVER};
    return group->access_count++;
}

/* Is an earlier access of a byte certainly over?  If not, the fault is told. */
static void check(Wave *wave, int number, int earlier, int64_t at)
{
    Group *group = wave->group;
    const Access *now = &group->accesses[number], *then = &group->accesses[earlier];
    if (then->covered < wave->epoch || (now->plain && then->plain && then->wave != now->wave)) /* judge_writes() */
        return;
    if (then->wave != now->wave)
        fault(group, F_RACE, now->pc, then->pc, now->wave, then->wave, now->writes * 2 + then->writes,
              then->covered != NEVER, at);
    else if ((now->dma || then->dma) && then->covered == NEVER) {
        const Access *told = then->writes ? now : then, *other = then->writes ? then : now;
        fault(group, F_LDS_UNDER_WAY, told->pc, other->pc, told->wave, -1, told->writes, at, 0);
    }
}

/* Against each wave's last atomic on a byte. */
static void check_atomics(Wave *wave, int number, int64_t at)
{
    for (uint32_t left = wave->group->atomics[at]; left; left &= left - 1)
        check(wave, number, wave->group->atomic[__builtin_ctz(left)][at], at);
}

/* Have all bytes one and the same last write, and no atomic?  Most reads are of such, and one look is enough. */
static inline __attribute__((always_inline)) int alike(const Group *group, int64_t at, const int size)
{
    static const uint8_t yes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static const uint16_t none[16] = {0};
    const int32_t *written = group->written + at;
    uint32_t unlike = 0;
    for (int byte = 0; byte < size; byte++)
        unlike |= (uint32_t)(written[byte] ^ written[0]);
    return unlike == 0 && memcmp(group->initialised + at, yes, (size_t)size) == 0 &&
           memcmp(group->atomics + at, none, (size_t)size * sizeof *none) == 0;
}

static inline __attribute__((always_inline)) void note_read(Wave *wave, int number, int64_t at, const int size)
{
    Group *group = wave->group;
    for (int byte = 0; byte < size; byte++)
        group->read[wave->number][at + byte] = number;
    for (int byte = 0; byte < size; byte++)
        group->readers[at + byte] |= (uint16_t)(1u << wave->number);
}

void order_read(Wave *wave, int number, int64_t at, int size)
{
    Group *group = wave->group;
    int32_t *read = group->read[wave->number] + at, last = 0;
    const int32_t *written = group->written + at;
    uint16_t *readers = group->readers + at;
    if (size == 16 ? alike(group, at, 16) : size == 8 ? alike(group, at, 8) : size == 4 && alike(group, at, 4)) {
        if (written[0])
            check(wave, number, written[0], at);
        size == 16 ? note_read(wave, number, at, 16) : size == 8 ? note_read(wave, number, at, 8)
                                                                 : note_read(wave, number, at, 4);
        return;
    }
    for (int byte = 0; byte < size; byte++) {
        if (!group->initialised[at + byte])
            fault(group, F_UNWRITTEN, group->accesses[number].pc, -1, wave->number, -1, -1, at + byte, 0);
        if (written[byte] != last && written[byte])
            check(wave, number, last = written[byte], at + byte);
        if (group->atomics[at + byte])
            check_atomics(wave, number, at + byte);
        read[byte] = number;
        readers[byte] |= (uint16_t)(1u << wave->number);
    }
}

/* Were all bytes read last by the same accesses, and written by the same one? */
static inline __attribute__((always_inline)) int used_alike(const Group *group, int64_t at, const int size)
{
    uint32_t unlike = 0;
    const uint16_t *readers = group->readers + at;
    for (int byte = 0; byte < size; byte++)
        unlike |= (uint32_t)(group->written[at + byte] ^ group->written[at]) | group->atomics[at + byte] |
                  (uint32_t)(readers[byte] ^ readers[0]);
    for (uint32_t left = readers[0]; left && !unlike; left &= left - 1) {
        const int32_t *read = group->read[__builtin_ctz(left)] + at;
        for (int byte = 0; byte < size; byte++)
            unlike |= (uint32_t)(read[byte] ^ read[0]);
    }
    return unlike == 0;
}

/* A write stands for the reads or atomics before it towards all that follow, but for the wave's own that are not over:
 * another wave that writes the same value is only noted, unless it must be kept after these. */
static inline uint16_t kept(const Wave *wave, uint16_t users, int32_t own)
{
    uint16_t bit = (uint16_t)(1u << wave->number);
    return users & bit && wave->group->accesses[own].covered >= wave->epoch ? bit : 0;
}

static inline __attribute__((always_inline)) void write_alike(Wave *wave, int number, int64_t at, const int size)
{
    Group *group = wave->group;
    for (uint32_t left = group->readers[at]; left; left &= left - 1)
        check(wave, number, group->read[__builtin_ctz(left)][at], at);
    if (group->written[at])
        check(wave, number, group->written[at], at);
    for (int byte = 0; byte < size; byte++)
        group->written[at + byte] = number;
    uint16_t readers = kept(wave, group->readers[at], group->read[wave->number][at]);
    for (int byte = 0; byte < size; byte++)
        group->readers[at + byte] = readers;
    memset(group->initialised + at, 1, (size_t)size);
}

static void order_write(Wave *wave, int number, int64_t at, int size, int atomic)
{
    if (!atomic && size == 16 && used_alike(wave->group, at, 16))
        return write_alike(wave, number, at, 16);
    if (!atomic && size == 8 && used_alike(wave->group, at, 8))
        return write_alike(wave, number, at, 8);
    if (!atomic && size == 4 && used_alike(wave->group, at, 4))
        return write_alike(wave, number, at, 4);
    Group *group = wave->group;
    int32_t *written = group->written + at, last = 0, seen[MOST_WAVES] = {0};
    uint16_t *readers = group->readers + at;
    for (int byte = 0; byte < size; byte++) {
        for (uint32_t left = readers[byte]; left; left &= left - 1) {
            int other = __builtin_ctz(left), earlier = group->read[other][at + byte];
            if (earlier != seen[other])
                check(wave, number, seen[other] = earlier, at + byte);
        }
        if (written[byte] != last && written[byte])
            check(wave, number, last = written[byte], at + byte);
        if (atomic) {
            if (!group->initialised[at + byte])
                fault(group, F_UNWRITTEN, group->accesses[number].pc, -1, wave->number, -1, -1, at + byte, 0);
            group->atomic[wave->number][at + byte] = number;
            group->atomics[at + byte] |= (uint16_t)(1u << wave->number);
            continue;
        }
        if (group->atomics[at + byte])
            check_atomics(wave, number, at + byte);
        readers[byte] = kept(wave, readers[byte], group->read[wave->number][at + byte]);
        group->atomics[at + byte] = kept(wave, group->atomics[at + byte], group->atomic[wave->number][at + byte]);
        written[byte] = number;
        group->initialised[at + byte] = 1;
    }
}

/* Marks bytes that a write is under way to, but for the equal ones, which it leaves as they are. */
void begin_write(Wave *wave, int number, int64_t serial, int64_t at, int size, uint32_t equal)
{
    Group *group = wave->group;
    const Access *access = &group->accesses[number];
    int16_t mark = (int16_t)(access->dma ? -1 : wave->number + 1);
    order_write(wave, number, at, size, 0);
    for (int64_t byte = at; access->dma && byte < at + size; byte++)
        if (group->mark[byte])
            fault(group, F_LDS_UNDER_WAY, access->pc, -1, wave->number, -1, 1, byte, 0);
    for (int byte = 0; byte < size; byte++)
        if (!(equal >> byte & 1)) {
            group->mark[at + byte] = group->last[at + byte] = mark;
            group->serials[at + byte] = serial;
        }
}

/* Compares a plain write with another wave's: a note if none of the bytes that only it has in common changes. */
typedef struct {
    int32_t earlier, equal, bytes, first, last;
} Overlap;
static void judge_writes(Wave *wave, const Pending *pending, const uint32_t *equal)
{
    enum { MOST_OVERLAPS = 64 };
    Overlap found[MOST_OVERLAPS];
    Group *group = wave->group;
    int count = 0, over = 0; /* a write that is over */
    const Access *now = &group->accesses[pending->access];
    group->judgements++;
    for (int piece = 0; piece < pending->pieces; piece++)
        for (int lane = 0; lane < LANES; lane++) {
            int which = piece * LANES + lane;
            for (int byte = 0; (pending->active >> lane & 1) && byte < pending->size; byte++) {
                int at = pending->at[which] + byte, earlier = group->written[at], each = 0;
                const Access *then = &group->accesses[earlier];
                if (earlier == over || earlier == 0)
                    continue;
                if (then->wave == now->wave || !then->plain || then->covered < wave->epoch) {
                    over = earlier;
                    continue;
                }
                while (each < count && found[each].earlier != earlier)
                    each++;
                if (each == MOST_OVERLAPS) {
                    fault(group, F_RACE, now->pc, then->pc, now->wave, then->wave, 3, 0, at);
                    return;
                }
                if (each == count)
                    found[count++] = (Overlap){.earlier = earlier, .equal = 1, .first = at, .last = at};
                found[each].equal &= equal[which] >> byte & 1;
                found[each].bytes += group->judged[at] != group->judgements;
                group->judged[at] = group->judgements;
                found[each].first = at < found[each].first ? at : found[each].first;
                found[each].last = at > found[each].last ? at : found[each].last;
            }
        }
    while (count--) { /* the earliest of the others first */
        int first = 0;
        for (int each = 1; each <= count; each++)
            first = found[each].earlier < found[first].earlier ? each : first;
        Overlap each = found[first];
        const Access *then = &group->accesses[each.earlier];
        found[first] = found[count];
        if (each.equal)
            note(group, &(Fault){N_EQUAL, now->pc, then->pc, now->wave, then->wave, each.bytes, each.first, each.last});
        else
            fault(group, F_RACE, now->pc, then->pc, now->wave, then->wave, 3, 0, each.first);
    }
}

/* Atomics don't look at one another, whoever is under way. */
void begin_atomic(Wave *wave, int number, int64_t serial, int64_t at, int size)
{
    Group *group = wave->group;
    order_write(wave, number, at, size, 1);
    for (int64_t byte = at; byte < at + size; byte++) {
        group->mark[byte] = group->last[byte] = (int16_t)(wave->number + 1);
        group->serials[byte] = serial;
    }
}

static void end_write(Group *group, int64_t serial, int64_t at, int size)
{
    for (int64_t byte = at; byte < at + size; byte++)
        if (group->serials[byte] == serial) /* else a later write has taken the mark over */
            group->mark[byte] = 0;
}

/* Which dwords of a lane's piece another write is under way to, as bits. */
static uint8_t disturbed(const Wave *wave, int64_t at, int size)
{
    const Group *group = wave->group;
    int16_t own = (int16_t)(wave->number + 1);
    uint8_t bits = 0;
    static const int16_t none[16] = {0};
    if (memcmp(group->mark + at, none, (size_t)size * sizeof *none) == 0)
        return 0;
    for (int byte = 0; byte < size; byte++) {
        int16_t mark = group->mark[at + byte];
        if (mark && mark != own)
            bits |= (uint8_t)(1u << byte / 4);
    }
    return bits;
}

/* Sixteen lanes work together: lane l gets element l of each column; 16 / count lanes hold one column. */
static void transpose(Wave *wave, const Pending *pending, uint8_t whole[LANES][8])
{
    int count = 64 / pending->element, octets = pending->element / 8;
    for (int lane = 0; lane < LANES; lane++) {
        uint8_t taken[8];
        for (int column = 0; column < count; column++) {
            int source = (lane & ~15) + column * (16 / count) + lane % 16 / count;
            if (octets)
                memcpy(taken + column * octets, whole[source] + lane % 16 % count * octets, (size_t)octets);
            else /* of 4 bits: one column a lane */
                taken[column / 2] = (uint8_t)((column & 1 ? taken[column / 2] & 0xF : 0) |
                                              (whole[source][lane % 16 / 2] >> 4 * (lane & 1) & 0xF) << 4 * (column & 1));
        }
        if (pending->issued >> lane & 1)
            for (int dword = 0; dword < 2; dword++)
                memcpy(&wave->v[pending->first_row + dword][lane], taken + 4 * dword, 4);
    }
}

void land_read(Wave *wave, Pending *pending)
{
    Group *group = wave->group;
    int16_t own = (int16_t)(wave->number + 1);
    int dwords = (pending->size + 3) / 4;
    uint8_t whole[LANES][8];
    memset(whole, 0xFF, sizeof whole);
    for (int piece = 0; piece < pending->pieces; piece++)
        for (int lane = 0; lane < LANES; lane++) {
            int32_t row = pending->first_row + piece * dwords;
            if (!(pending->issued >> lane & 1))
                continue;
            if (!(pending->active >> lane & 1)) {
                for (int dword = 0; dword < dwords; dword++)
                    wave->v[row + dword][lane] = POISON;
                continue;
            }
            int64_t at = pending->at[piece * LANES + lane];
            uint8_t *before = pending->data + (piece * LANES + lane) * pending->size, value[16] = {0};
            uint8_t bad = pending->bad[piece * LANES + lane] | disturbed(wave, at, pending->size);
            if (!bad && memcmp(before, group->lds + at, (size_t)pending->size) == 0) { /* nobody has changed it since */
                memcpy(value, before, (size_t)pending->size);
            } else for (int byte = 0; byte < pending->size; byte++) {
                int mine = group->last[at + byte] == own;
                value[byte] = mine ? before[byte] : group->lds[at + byte];
                if (!mine && before[byte] != value[byte])
                    bad |= (uint8_t)(1u << byte / 4);
            }
            if (bad)
                fault(group, F_LDS_UNDER_WAY, pending->pc, -1, wave->number, -1, 0, at, 0);
            if (pending->element) {
                memcpy(whole[lane], value, sizeof whole[lane]);
                continue;
            }
            if (pending->size < 4) {
                uint32_t word = pending->size == 1 ? value[0] : (uint32_t)(value[0] | value[1] << 8);
                if (pending->sign)
                    word = pending->size == 1 ? (uint32_t)(int8_t)word : (uint32_t)(int16_t)word;
                if (pending->half) {
                    uint32_t kept;
                    memcpy(&kept, pending->data + LANES * 4 + lane * 4, 4);
                    word = pending->high ? word << 16 | (kept & 0xFFFF) : (word & 0xFFFF) | (kept & 0xFFFF0000);
                }
                wave->v[row][lane] = bad ? POISON : word;
                continue;
            }
            for (int dword = 0; dword < dwords; dword++) {
                uint32_t word;
                memcpy(&word, value + 4 * dword, 4);
                wave->v[row + dword][lane] = bad >> dword & 1 ? POISON : word;
            }
        }
    if (pending->element)
        transpose(wave, pending, whole);
}

void land_write(Wave *wave, Pending *pending)
{
    Group *group = wave->group;
    for (int piece = 0; piece < pending->pieces; piece++)
        for (int lane = 0; lane < LANES; lane++)
            if (pending->active >> lane & 1) {
                int64_t at = pending->at[piece * LANES + lane];
                if (pending->kind == DMA)
                    memcpy(group->lds + at, pending->data + lane * pending->size, (size_t)pending->size);
                end_write(group, pending->serial, at, pending->size);
            }
}

/* Addresses of an instruction's pieces, and the lanes that stay inside LDS. */
uint64_t places(Wave *wave, const Op *op, const uint32_t *address, Pending *pending)
{
    uint64_t inside = wave->exec;
    int pc = (int)(op - wave->group->ops);
    for (int lane = 0; lane < LANES; lane++)
        if (inside >> lane & 1) {
            for (int piece = 0; piece < op->pieces; piece++) {
                uint32_t at = address[lane] + (uint32_t)op->pieces_offset[piece]; /* wraps at 32 bits */
                if (op->element && at & 7)
                    fault(wave->group, F_MISALIGNED, pc, -1, wave->number, -1, -1, at, 0);
                if (within_lds(wave, pc, at, op->size))
                    pending->at[piece * LANES + lane] = (int32_t)at;
                else
                    inside &= ~(1ull << lane);
            }
        }
    return inside;
}

static int32_t ds_read(Wave *wave, const Op *op)
{
    Group *group = wave->group;
    int pc = (int)(op - group->ops), half = op->half;
    uint32_t old[LANES];
    memcpy(old, wave->v[op->o[0].first], sizeof old);
    if (half == LOST)
        memset(old, 0xFF, sizeof old); /* poison */
    uint32_t address[LANES];
    memcpy(address, wave->v[op->o[1].first], sizeof address); /* the target may be the address itself */
    Pending *pending = launch(wave, op, ON_DS, op->o[0].first, op->pieces * ((op->size + 3) / 4));
    pending->kind = LDS_READ;
    pending->size = op->size;
    pending->pieces = op->pieces;
    pending->issued = wave->exec;
    pending->active = places(wave, op, address, pending);
    pending->sign = op->sign;
    pending->element = op->element;
    pending->half = half;
    pending->high = op->high;
    pending->access = begin_access(wave, pc, 0, 0);
    for (int piece = 0; piece < op->pieces; piece++)
        for (int lane = 0; lane < LANES; lane++)
            if (pending->active >> lane & 1) {
                int64_t at = pending->at[piece * LANES + lane];
                memcpy(pending->data + (piece * LANES + lane) * op->size, group->lds + at, (size_t)op->size);
                pending->bad[piece * LANES + lane] = disturbed(wave, at, op->size);
                order_read(wave, pending->access, at, op->size);
            }
    if (half)
        memcpy(pending->data + LANES * 4, old, sizeof old);
    under_way_now(wave, pending);
    return GO_ON;
}

static int32_t ds_write(Wave *wave, const Op *op)
{
    Group *group = wave->group;
    int pc = (int)(op - group->ops);
    Pending *pending = launch(wave, op, ON_DS, 0, 0);
    pending->kind = LDS_WRITE;
    pending->size = op->size;
    pending->pieces = op->pieces;
    pending->issued = wave->exec;
    pending->active = places(wave, op, wave->v[op->o[0].first], pending);
    pending->access = begin_access(wave, pc, 1, 0);
    group->accesses[pending->access].plain = 1;
    pending->serial = ++group->serial;
    uint32_t equal[2 * LANES] = {0}; /* bytes that hold the value already, before any lane writes */
    for (int piece = 0; piece < op->pieces; piece++)
        for (int lane = 0; lane < LANES; lane++)
            if (pending->active >> lane & 1) {
                uint8_t *given = pending->data + (piece * LANES + lane) * op->size;
                const uint8_t *held = group->lds + pending->at[piece * LANES + lane];
                uint32_t words[4], same = 0;
                for (int dword = 0; dword < (op->size + 3) / 4; dword++)
                    words[dword] = wave->v[op->o[1 + piece].first + dword][lane];
                if (op->high)
                    words[0] >>= 16;
                memcpy(given, words, (size_t)op->size);
                for (int byte = 0; byte < op->size; byte++)
                    same |= (uint32_t)(given[byte] == held[byte]) << byte;
                equal[piece * LANES + lane] = same;
            }
    judge_writes(wave, pending, equal);
    for (int piece = 0; piece < op->pieces; piece++)
        for (int lane = 0; lane < LANES; lane++)
            if (pending->active >> lane & 1) {
                int which = piece * LANES + lane;
                int64_t at = pending->at[which];
                begin_write(wave, pending->access, pending->serial, at, op->size, equal[which]);
                memcpy(group->lds + at, pending->data + which * op->size, (size_t)op->size);
            }
    under_way_now(wave, pending);
    return GO_ON;
}

static int32_t exchanged(Wave *wave, const Op *op, const uint32_t *moved)
{
    Pending *pending = launch(wave, op, ON_DS, op->o[0].first, 1);
    pending->kind = TO_REGISTERS;
    pending->issued = wave->exec;
    memcpy(pending->data, moved, LANES * sizeof *moved);
    under_way_now(wave, pending);
    return GO_ON;
}

/* Each lane takes the register of the lane that its address names; inactive lanes give zero.  No memory is used. */
static int32_t ds_bpermute(Wave *wave, const Op *op)
{
    uint32_t taken[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        uint32_t from = (wave->v[op->o[1].first][lane] + (uint32_t)op->offset) >> 2 & 63;
        taken[lane] = wave->exec >> from & 1 ? wave->v[op->o[2].first][from] : 0;
    }
    return exchanged(wave, op, taken);
}

/* Each active lane gives its register to the lane that its address names; the highest one wins. */
static int32_t ds_permute(Wave *wave, const Op *op)
{
    uint32_t moved[LANES] = {0};
    for (int lane = 0; lane < LANES; lane++)
        if (wave->exec >> lane & 1)
            moved[(wave->v[op->o[1].first][lane] + (uint32_t)op->offset) >> 2 & 63] = wave->v[op->o[2].first][lane];
    return exchanged(wave, op, moved);
}

static int32_t ds_swizzle(Wave *wave, const Op *op)
{
    uint32_t moved[LANES];
    for (int lane = 0; lane < LANES; lane++) {
        int from = op->dpp_source[lane] & 63;
        moved[lane] = wave->exec >> from & 1 ? wave->v[op->o[1].first][from] : 0;
    }
    return exchanged(wave, op, moved);
}

#define READ(NAME) {NAME, ds_read, M_OFFSET}
#define WRITE(NAME) {NAME, ds_write, M_OFFSET}
const Opcode LDS_OPCODES[] = {
    READ("ds_read_b32"), READ("ds_read_b64"), READ("ds_read_b96"), READ("ds_read_b128"), READ("ds_read2_b32"),
    READ("ds_read2_b64"), READ("ds_read2st64_b32"), READ("ds_read2st64_b64"), READ("ds_read_u8"), READ("ds_read_i8"),
    READ("ds_read_u16"), READ("ds_read_i16"), READ("ds_read_u16_d16"), READ("ds_read_u16_d16_hi"),
    READ("ds_read_u8_d16"), READ("ds_read_u8_d16_hi"), READ("ds_read_i8_d16"), READ("ds_read_i8_d16_hi"), READ("ds_read_b64_tr_b4"), READ("ds_read_b64_tr_b8"), READ("ds_read_b64_tr_b16"),
    WRITE("ds_write_b32"), WRITE("ds_write_b64"), WRITE("ds_write_b96"), WRITE("ds_write_b128"),
    WRITE("ds_write2_b32"), WRITE("ds_write2_b64"), WRITE("ds_write2st64_b32"), WRITE("ds_write2st64_b64"),
    WRITE("ds_write_b8"), WRITE("ds_write_b16"), WRITE("ds_write_b8_d16_hi"), WRITE("ds_write_b16_d16_hi"),
    {"ds_bpermute_b32", ds_bpermute, M_OFFSET}, {"ds_permute_b32", ds_permute, M_OFFSET},
    {"ds_swizzle_b32", ds_swizzle, M_OFFSET}, {0, 0, 0},
};
