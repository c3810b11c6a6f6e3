/* Runs workgroups: whose turn it is, what is under way, when it lands, and what went wrong. */
#include <stddef.h>
#include <stdlib.h>

#include "core.h"

static const Opcode *TABLES[] = {
    CONTROL_OPCODES, SCALAR_OPCODES, INTEGER_OPCODES, FLOAT_OPCODES,  CONVERT_OPCODES,
    VECTOR_OPCODES,  COMPARE_OPCODES, LDS_OPCODES,    GLOBAL_OPCODES, MATRIX_OPCODES,
    ATOMIC_OPCODES,  PRIVATE_OPCODES, DIVISION_OPCODES,
};
enum { LATEST, EARLIEST, ANY };
enum { MOST_CODES = 1024, LONGEST_TURN = 400, MOST_OPCODES = 2048, MOST_NOTES = 8192, NOTE_PLACES = 32768 };

static const Opcode *ALL[MOST_OPCODES];
__attribute__((constructor)) static void gather(void)
{
    int count = 0;
    for (size_t table = 0; table < sizeof TABLES / sizeof *TABLES; table++)
        for (const Opcode *each = TABLES[table]; each->name && count < MOST_OPCODES; each++)
            ALL[count++] = each;
}
const Opcode *opcode_at(int number) { return number >= 0 && number < MOST_OPCODES ? ALL[number] : NULL; }

void fault(Group *group, int code, int pc, int other, int wave, int other_wave, int row, int64_t detail,
           int64_t detail1)
{
    uint8_t *told = group->told + (size_t)pc * MOST_CODES / 8 + code / 8;
    if (*told >> code % 8 & 1 || group->fault_count == group->fault_room)
        return;
    *told |= (uint8_t)(1u << code % 8);
    group->faults[group->fault_count++] = (Fault){code, pc, other, wave, other_wave, row, detail, detail1};
}

/* A note of two instructions, unless they have one of its code; a fault where there is no room. */
void note(Group *group, const Fault *what)
{
    uint64_t key = ((uint64_t)(uint32_t)what->pc << 32 | (uint32_t)what->other) ^ (uint64_t)what->code << 24;
    uint32_t place = (uint32_t)(key * 0x9E3779B97F4A7C15ull >> 40) % NOTE_PLACES;
    for (; group->note_at[place]; place = (place + 1) % NOTE_PLACES) {
        const Fault *known = &group->notes[group->note_at[place] - 1];
        if (known->code == what->code && known->pc == what->pc && known->other == what->other)
            return;
    }
    if (group->note_count == MOST_NOTES) {
        fault(group, F_FULL, what->pc, what->other, what->wave, -1, -1, MOST_NOTES, 0);
        return;
    }
    group->notes[group->note_count++] = *what;
    group->note_at[place] = group->note_count;
}

/* splitmix64, as in rota.isa.interleaving */
uint64_t draw(Group *group)
{
    uint64_t z = group->random += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}
static double share(Group *group) { return (double)(draw(group) >> 11) * 0x1p-53; }

void land(Wave *wave, Pending *pending)
{
    if (pending->landed)
        return;
    pending->landed = 1;
    for (int i = 0; pending->rows && i < wave->length[pending->counter]; i++) { /* in order, where rows are shared */
        int counter = pending->counter;
        Pending *other = &wave->pending[wave->queue[counter][(wave->head[counter] + i) % MOST_PENDING]];
        if (other == pending)
            break;
        if (other->first_row < pending->first_row + pending->rows && pending->first_row < other->first_row + other->rows)
            land(wave, other);
    }
    int32_t mine = (int32_t)(pending - wave->pending) + 1;
    for (int row = pending->first_row; row < pending->first_row + pending->rows; row++)
        if (wave->busy[row] == mine) {
            wave->busy[row] = 0;
            wave->held--;
        }
    switch (pending->kind) {
    case TO_REGISTERS: land_load(wave, pending); break;
    case TO_SCALARS:
        memcpy(wave->s + pending->first_row - ROWS, pending->words, (size_t)(4 * pending->rows));
        break;
    case LDS_ATOMIC:
        land_write(wave, pending);
        land_load(wave, pending); /* of no rows, if nothing returns */
        break;
    case LDS_READ: land_read(wave, pending); break;
    case LDS_WRITE:
    case DMA: land_write(wave, pending); break;
    default: break;
    }
}

static void drop_oldest(Wave *wave, int counter)
{
    int32_t number = wave->queue[counter][wave->head[counter]];
    Pending *pending = &wave->pending[number];
    land(wave, pending); /* while it is queued: what lands first is in front of it */
    wave->head[counter] = (wave->head[counter] + 1) % MOST_PENDING;
    wave->length[counter]--;
    if (pending->access && !wave->ended) /* no wait covers what a wave has under way when it ends */
        wave->group->accesses[pending->access].covered = wave->epoch;
    if (pending->store && !wave->ended)
        wave->group->stores[pending->store].covered = wave->epoch;
    wave->free[wave->free_count++] = number;
}

void wait_for(Wave *wave, int counter, int most)
{
    while (wave->length[counter] > most)
        drop_oldest(wave, counter);
}

/* A memory op under way, with nothing said yet of what its landing does; its registers are poison from now on. */
Pending *launch(Wave *wave, const Op *op, int counter, int first_row, int rows)
{
    if (wave->free_count == 0) /* scalar loads alone have no limit; they return in any order, so now is as good */
        drop_oldest(wave, wave->length[ON_SM] ? ON_SM : counter);
    int32_t number = wave->free[--wave->free_count];
    Pending *pending = &wave->pending[number];
    pending->pc = (int32_t)(op - wave->group->ops);
    pending->counter = counter;
    pending->landed = 0;
    pending->first_row = first_row;
    pending->rows = rows;
    pending->kind = NOTHING;
    pending->access = pending->store = 0;
    pending->pieces = 0;
    for (int row = first_row; row < first_row + rows; row++) {
        if (wave->busy[row] && wave->pending[wave->busy[row] - 1].counter != counter)
            fault(wave->group, F_HELD, pending->pc, wave->pending[wave->busy[row] - 1].pc, wave->number, -1, row, 0, 0);
        wave->held += wave->busy[row] == 0;
        wave->busy[row] = number + 1;
        if (row >= ROWS)
            wave->s[row - ROWS] = POISON;
        else
            for (int lane = 0; lane < LANES; lane++)
                if (wave->exec >> lane & 1)
                    wave->v[row][lane] = POISON;
    }
    return pending;
}

/* It is queued, and lands at once if the interleaving says so; a full counter stalls until the oldest is back. */
void under_way_now(Wave *wave, Pending *pending)
{
    Group *group = wave->group;
    int counter = pending->counter;
    int at = (wave->head[counter] + wave->length[counter]++) % MOST_PENDING;
    wave->queue[counter][at] = (int32_t)(pending - wave->pending);
    if (group->landing == EARLIEST || (group->landing == ANY && share(group) < 0.25))
        land(wave, pending);
    if (counter == ON_VM)
        wait_for(wave, ON_VM, group->most_vm);
    else if (counter == ON_DS)
        wait_for(wave, ON_DS, group->most_lgkm);
}

static int32_t s_waitcnt(Wave *wave, const Op *op)
{
    if (op->immediate >= 0)
        wait_for(wave, ON_VM, op->immediate);
    if (op->immediate1 >= 0)
        wait_for(wave, ON_DS, op->immediate1);
    if (op->immediate1 == 0)
        wait_for(wave, ON_SM, 0);
    return GO_ON;
}
static int32_t nothing(Wave *wave, const Op *op) { return (void)wave, (void)op, GO_ON; }
static int32_t s_barrier(Wave *wave, const Op *op) { return (void)wave, (void)op, AT_BARRIER; }
static int32_t s_endpgm(Wave *wave, const Op *op) { return (void)wave, (void)op, AT_END; }
#define BRANCH(NAME, CONDITION)                                                                                       \
    static int32_t NAME(Wave *wave, const Op *op) { return (void)wave, (CONDITION) ? op->target : GO_ON; }
BRANCH(s_branch, 1)
BRANCH(scc0, wave->scc == 0)
BRANCH(scc1, wave->scc == 1)
BRANCH(vccz, (wave->s[VCC] | wave->s[VCC + 1]) == 0)
BRANCH(vccnz, (wave->s[VCC] | wave->s[VCC + 1]) != 0)
BRANCH(execz, wave->exec == 0)
BRANCH(execnz, wave->exec != 0)
/* To the copy of the code without vector instructions, or back from it. */
BRANCH(setvskip, (scalar32(wave, &op->o[0]) >> (scalar32(wave, &op->o[1]) & 31) & 1) == (uint32_t)op->immediate)

/* Calls: the program counter holds the address behind the instruction. */
static int32_t jump(Wave *wave, const Op *op, uint64_t address)
{
    Group *group = wave->group;
    uint64_t word = (address - group->code_base) / 4;
    if (address & 3 || address < group->code_base || word >= (uint64_t)group->code_words || group->code_at[word] < 0) {
        fault(group, F_ASTRAY, (int)(op - group->ops), -1, wave->number, -1, -1, (int64_t)address, 0);
        return GAVE_UP;
    }
    return group->code_at[word];
}
static int32_t s_getpc(Wave *wave, const Op *op) { return put_scalar64(wave, &op->o[0], op->behind), GO_ON; }
static int32_t s_setpc(Wave *wave, const Op *op) { return jump(wave, op, scalar64(wave, &op->o[0])); }
static int32_t s_swappc(Wave *wave, const Op *op)
{
    uint64_t address = scalar64(wave, &op->o[1]);
    put_scalar64(wave, &op->o[0], op->behind);
    return jump(wave, op, address);
}
static int32_t s_call(Wave *wave, const Op *op)
{
    put_scalar64(wave, &op->o[0], op->behind);
    return op->target;
}

/* What the core lacks, and all vector instructions while MODE is not what compilers set: NumPy executes it. */
int32_t by_numpy(Wave *wave, const Op *op)
{
    Group *group = wave->group;
    int pc = (int)(op - group->ops);
    if (group->other != NULL && group->other(wave->number, pc) == GO_ON)
        return GO_ON;
    fault(group, F_OTHER, pc, -1, wave->number, -1, -1, 0, 0);
    return GAVE_UP;
}

const Opcode CONTROL_OPCODES[] = {
    {"rota_numpy", by_numpy, ~0u}, {"s_getpc_b64", s_getpc, 0}, {"s_setpc_b64", s_setpc, 0},
    {"s_swappc_b64", s_swappc, 0}, {"s_call_b64", s_call, 0}, {"s_sendmsg", nothing, 0}, {"s_ttracedata", nothing, 0},
    {"s_incperflevel", nothing, 0}, {"s_decperflevel", nothing, 0}, {"s_dcache_inv", nothing, ~0u},
    {"s_dcache_wb", nothing, ~0u}, {"s_dcache_inv_vol", nothing, ~0u}, {"s_dcache_wb_vol", nothing, ~0u},
    {"buffer_inv", nothing, ~0u}, {"buffer_wbl2", nothing, ~0u}, {"buffer_wbinvl1", nothing, ~0u},
    {"buffer_wbinvl1_vol", nothing, ~0u}, {"buffer_invl2", nothing, ~0u}, {"ds_nop", nothing, 0},
    {"s_waitcnt", s_waitcnt, M_IMMEDIATE}, {"s_nop", nothing, 0}, {"v_nop", nothing, 0}, {"s_setprio", nothing, 0}, {"s_sleep", nothing, 0},
    {"s_icache_inv", nothing, 0},
    {"s_barrier", s_barrier, 0}, {"s_endpgm", s_endpgm, 0}, {"s_branch", s_branch, 0}, {"s_cbranch_scc0", scc0, 0},
    {"s_cbranch_scc1", scc1, 0}, {"s_cbranch_vccz", vccz, 0}, {"s_cbranch_vccnz", vccnz, 0},
    {"s_cbranch_execz", execz, 0}, {"s_cbranch_execnz", execnz, 0},
    {"s_setvskip", setvskip, 0}, {0, 0, 0},
};

static void too_early(Wave *wave, const Op *op, int pc)
{
    int lowest = ALL_ROWS;
    for (int i = 0; i < op->touches; i++) {
        int row = wave->group->pool[op->touches_at + i];
        if (wave->busy[row] && row < lowest)
            lowest = row;
    }
    if (lowest < ALL_ROWS)
        fault(wave->group, F_HELD, pc, wave->pending[wave->busy[lowest] - 1].pc, wave->number, -1, lowest, 0, 0);
}

static int64_t run_wave(Wave *wave, const Act *acts, int64_t turns)
{
    Group *group = wave->group;
    int64_t left = turns;
    int pc = wave->pc;
    while (left > 0) {
        if (pc >= group->count) { /* ran off the end: Python says so */
            fault(group, F_ENDLESS, group->count - 1, -1, wave->number, -1, -1, 0, 1);
            wave->ended = 1;
            break;
        }
        const Op *op = &group->ops[pc];
        left--;
        if (wave->held)
            too_early(wave, op, pc);
        if (group->spacings != NULL)
            check_distance(wave, pc);
        int32_t to = wave->odd && op->vector ? by_numpy(wave, op) : acts[pc](wave, op);
        if (to == GO_ON) {
            pc++;
        } else if (to >= 0) {
            pc = to;
        } else {
            wave->barrier = pc++;
            wave->waiting = to == AT_BARRIER;
            wave->ended = to == AT_END || to == GAVE_UP;
            wave->epoch += to == AT_BARRIER;
            break;
        }
    }
    wave->pc = pc;
    wave->executed += turns - left;
    if (wave->ended)
        for (int counter = 0; counter < 3; counter++)
            while (wave->length[counter])
                drop_oldest(wave, counter);
    return turns - left;
}

static int runnable(Group *group, int32_t *found)
{
    int alive = 0, waiting = 0, count = 0;
    const Wave *first = NULL;
    for (int i = 0; i < group->wave_count; i++)
        if (!group->waves[i].ended) {
            alive++;
            waiting += group->waves[i].waiting;
            first = first ? first : &group->waves[i];
        }
    for (int i = 0; alive && alive == waiting && i < group->wave_count; i++) {
        const Wave *wave = &group->waves[i];
        if (!wave->ended && wave->barrier != first->barrier)
            fault(group, F_MEETING, first->barrier, wave->barrier, first->number, i, -1, 0, 0);
    }
    for (int i = 0; i < group->wave_count; i++) {
        Wave *wave = &group->waves[i];
        if (alive == waiting)
            wave->waiting = 0;
        if (!wave->ended && !wave->waiting)
            found[count++] = i;
    }
    return count;
}

/* Runs at most `most` instructions; 0 when every wave has ended, 1 if there is more to do, 2 if one will not end. */
int rota_run(Group *group, const Act *acts, int64_t most)
{
    int32_t found[MOST_WAVES];
    for (;;) {
        int count = runnable(group, found);
        if (count == 0)
            return 0;
        if (most <= 0)
            return 1;
        int32_t chosen = found[0];
        int64_t turns = most;
        if (group->drawn) {
            chosen = found[draw(group) % (uint64_t)count];
            double u = share(group);
            turns = 1 + (int64_t)(LONGEST_TURN * u * u * u * u);
        } else {
            for (int i = 1; i < count; i++)
                if (group->rank[found[i]] < group->rank[chosen])
                    chosen = found[i];
        }
        Wave *wave = &group->waves[chosen];
        if (group->landing == ANY)
            for (int counter = 0; counter < 2; counter++)
                for (int i = 0; i < wave->length[counter]; i++)
                    if (share(group) < 0.15)
                        land(wave, &wave->pending[wave->queue[counter][(wave->head[counter] + i) % MOST_PENDING]]);
        if (turns > most)
            turns = most;
        most -= run_wave(wave, acts, turns);
        if (wave->executed >= group->most_instructions && !wave->ended) {
            fault(group, F_ENDLESS, wave->pc, -1, wave->number, -1, -1, wave->executed, 0);
            return 2;
        }
    }
}

/* What Python calls: opcodes by number, sizes of what it packs, and groups. */
const char *rota_opcode_name(int number) { return opcode_at(number) ? opcode_at(number)->name : NULL; }
uint32_t rota_opcode_accepts(int number) { return opcode_at(number) ? opcode_at(number)->accepts : 0; }
int64_t rota_size(int what)
{
    const int64_t sizes[] = {sizeof(Operand), sizeof(Op), sizeof(Fault), MOST_CODES, sizeof(Spacing), sizeof(Pair), sizeof(Need)};
    return what >= 0 && what < 7 ? sizes[what] : -1;
}

void rota_group_free(Group *group)
{
    if (group == NULL)
        return;
    for (int i = 0; i < MOST_WAVES; i++)
        free(group->read[i]), free(group->atomic[i]);
    free(group->atomics), free(group->private);
    free(group->waves), free(group->lds), free(group->mark), free(group->last), free(group->serials);
    free(group->written), free(group->readers), free(group->initialised), free(group->accesses);
    free(group->faults), free(group->told), free(group->judged), free(group->stores), free(group->notes), free(group->note_at), free(group);
}

Group *rota_group_new(const Op *ops, int32_t count, const int32_t *pool, int32_t waves, int64_t lds_size,
                      int64_t private_size)
{
    size_t bytes = lds_size > 0 ? (size_t)lds_size : 1;
    Group *group = calloc(1, sizeof *group);
    if (group == NULL || waves < 1 || waves > MOST_WAVES || count < 1 || lds_size < 0 || private_size < 0) {
        free(group);
        return NULL;
    }
    group->ops = ops, group->count = count, group->pool = pool, group->wave_count = waves, group->lds_size = lds_size;
    group->waves = calloc((size_t)waves, sizeof *group->waves);
    group->lds = malloc(bytes), group->mark = calloc(bytes, 2), group->last = calloc(bytes, 2);
    group->serials = calloc(bytes, 8), group->written = calloc(bytes, 4), group->readers = calloc(bytes, 2);
    group->initialised = calloc(bytes, 1), group->atomics = calloc(bytes, 2);
    group->private_size = private_size;
    group->private = malloc((size_t)waves * LANES * (size_t)(private_size + 1));
    int whole = group->waves && group->lds && group->mark && group->last && group->serials && group->written &&
                group->readers && group->initialised && group->atomics && group->private;
    for (int i = 0; i < waves; i++)
        whole = (group->read[i] = calloc(bytes, 4)) && (group->atomic[i] = calloc(bytes, 4)) && whole;
    group->access_room = 4096, group->access_count = 1, group->fault_room = 4096;
    group->accesses = calloc((size_t)group->access_room, sizeof *group->accesses);
    group->faults = calloc((size_t)group->fault_room, sizeof *group->faults);
    group->told = calloc((size_t)count, MOST_CODES / 8);
    group->judged = calloc(bytes, 4);
    group->notes = malloc(MOST_NOTES * sizeof *group->notes);
    group->note_at = calloc(NOTE_PLACES, sizeof *group->note_at);
    group->store_room = 1024, group->store_count = 1;
    group->stores = calloc((size_t)group->store_room, sizeof *group->stores);
    whole = whole && group->judged && group->notes && group->note_at && group->stores;
    if (!whole || !group->accesses || !group->faults || !group->told) {
        rota_group_free(group);
        return NULL;
    }
    return group;
}

/* A new workgroup: registers and LDS are poison, nothing is under way. */
void rota_group_start(Group *group, int32_t workgroup)
{
    group->number = workgroup;
    size_t bytes = group->lds_size > 0 ? (size_t)group->lds_size : 1;
    memset(group->lds, 0xFF, bytes), memset(group->mark, 0, 2 * bytes), memset(group->last, 0, 2 * bytes);
    memset(group->serials, 0, 8 * bytes), memset(group->written, 0, 4 * bytes), memset(group->readers, 0, 2 * bytes);
    memset(group->initialised, 0, bytes), memset(group->atomics, 0, 2 * bytes);
    memset(group->private, 0xFF, (size_t)group->wave_count * LANES * (size_t)group->private_size);
    group->serial = 0, group->access_count = 1, group->note_start = group->note_count;
    for (int number = 0; number < group->wave_count; number++) {
        Wave *wave = &group->waves[number];
        memset(wave, 0, offsetof(Wave, pending)); /* what is under way is written before it is read */
        memset(wave->v, 0xFF, sizeof wave->v), memset(wave->s, 0xFF, sizeof wave->s);
        memset(&wave->clock, 0, offsetof(Clock, recent));
        wave->group = group, wave->number = number, wave->exec = ~0ull;
        wave->free_count = MOST_PENDING;
        for (int i = 0; i < MOST_PENDING; i++)
            wave->free[i] = i;
    }
}

void rota_group_memory(Group *group, uint8_t *memory, uint64_t base, const int64_t *starts, const int64_t *ends,
                       int32_t buffers, int32_t *readers, int32_t *writers, int32_t *earlier, int32_t shared)
{
    group->users[0] = readers, group->users[1] = writers, group->users[2] = earlier, group->shared = shared;
    group->memory = memory, group->base = base, group->starts = starts, group->ends = ends, group->buffers = buffers;
}
void rota_group_order(Group *group, int32_t landing, int32_t drawn, uint64_t seed, const int32_t *rank, int64_t most,
                      int32_t most_vm, int32_t most_lgkm)
{
    group->landing = landing, group->drawn = drawn, group->random = seed, group->most_instructions = most;
    group->most_vm = most_vm, group->most_lgkm = most_lgkm;
    memcpy(group->rank, rank, sizeof group->rank);
}
void rota_group_code(Group *group, const int32_t *code_at, int64_t words, uint64_t base, Other other)
{
    group->code_at = code_at, group->code_words = words, group->code_base = base, group->other = other;
}
uint8_t *rota_lds(Group *group, int32_t written)
{
    memset(group->initialised, written != 0, group->lds_size > 0 ? (size_t)group->lds_size : 1);
    return group->lds;
}
uint8_t *rota_private(Group *group) { return group->private; }
int32_t rota_scc(Group *group, int32_t wave) { return group->waves[wave].scc; }
void rota_set_scc(Group *group, int32_t wave, int32_t scc, int32_t odd)
{
    group->waves[wave].scc = scc, group->waves[wave].odd = odd;
}
uint32_t *rota_scalars(Group *group, int32_t wave) { return group->waves[wave].s; }
uint32_t *rota_vectors(Group *group, int32_t wave) { return group->waves[wave].v[0]; }
void rota_set_exec(Group *group, int32_t wave, uint64_t exec)
{
    Wave *to = &group->waves[wave];
    to->exec = exec;
    to->s[EXEC] = (uint32_t)exec, to->s[EXEC + 1] = (uint32_t)(exec >> 32);
}
void rota_wave_end(Group *group, int32_t wave, int32_t *pc, int32_t *epoch)
{
    *pc = group->waves[wave].pc, *epoch = group->waves[wave].epoch;
}
void rota_set_pc(Group *group, int32_t wave, int32_t pc) { group->waves[wave].pc = pc; }
int64_t rota_executed(Group *group)
{
    int64_t total = 0;
    for (int i = 0; i < group->wave_count; i++)
        total += group->waves[i].executed;
    return total;
}
const Fault *rota_faults(Group *group, int32_t *count)
{
    *count = group->fault_count;
    return group->faults;
}
/* Of this workgroup, those that no earlier one has had. */
const Fault *rota_notes(Group *group, int32_t *count)
{
    *count = group->note_count - group->note_start;
    return group->notes + group->note_start;
}
void rota_group_spacings(Group *group, const Spacings *spacings) { group->spacings = spacings; }
/* 0, or the number, from 1 on, of the first instruction whose opcode is none. */
int rota_acts(const Op *ops, int32_t count, Act *acts)
{
    for (int32_t i = 0; i < count; i++) {
        const Opcode *found = opcode_at(ops[i].opcode);
        if (found == NULL)
            return i + 1;
        acts[i] = found->act;
    }
    return 0;
}
