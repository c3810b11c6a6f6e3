/* The native core: waves of one workgroup, what they have under way, and the memories they share.
 *
 * The same machine as rota.isa's NumPy interpreter, written a second time: decoding and rows come from there, what an
 * instruction computes does not.  It says whether a run is clean; what is wrong with one that isn't, NumPy says, which
 * then runs it again.  So it may suspect what is right, and must not pass what is wrong.  Notes are findings that it
 * records whole, and after which it goes on.  Everything is checked against
 * bounds before it is used; nothing in here trusts the code that is executed. */
#ifndef ROTA_CORE_H
#define ROTA_CORE_H

#include <stdint.h>
#include <string.h>

#define LANES 64
#define ROWS 512                /* 256 VGPRs, then 256 AGPRs */
#define SCALARS 256             /* operand numbers of the scalar registers, SCC among them */
#define ALL_ROWS (ROWS + SCALARS)
#define SPARE 32                /* rows behind the last: an operand may start at the last, and be as long as any is */
#define POISON 0xFFFFFFFFu
#define LOST 2 /* of `half`: what the other half of the register held is lost */
#define MOST_WAVES 16
#define MOST_OPERANDS 6
#define MOST_PENDING 160        /* of one wave: more than its counters hold together */

enum { VCC = 106, M0 = 124, EXEC = 126, SCC = 253 };
enum { NO_FILE, VECTOR, SCALAR, LITERAL, FLOATING };
enum { GO_ON = -3, AT_BARRIER = -1, AT_END = -2, GAVE_UP = -4 }; /* instead of the number of the next instruction */
enum { ON_VM, ON_DS, ON_SM };
enum { WHOLE_DWORD = 6 };
enum { NOTHING, TO_REGISTERS, TO_SCALARS, LDS_READ, LDS_WRITE, LDS_ATOMIC, DMA }; /* what a landing does */
#define NEVER (1 << 30)         /* the epoch of a wait that has not come */

typedef struct {
    int32_t file, first, count;
    int32_t negate, absolute, sign_extend;
    uint64_t literal;           /* bits; a float's are those of its float32 */
    double floating;
} Operand;

typedef struct {
    int32_t opcode, operands, target, states;
    int32_t touches_at, touches; /* rows in the pool that none may hold who is under way */
    int32_t offset, size, pieces, pieces_offset[2]; /* of memory: bytes a lane moves, in one piece or two */
    int32_t half, high, sign;
    int32_t dst_sel, dst_unused, src_sel[2];
    int32_t clamp, omod;
    int32_t op_sel, op_sel_hi, neg_lo, neg_hi;
    int32_t immediate;          /* bitop3, s_waitcnt's vmcnt */
    int32_t immediate1;         /* s_waitcnt's lgkmcnt */
    int32_t buffer, offen, idxen, to_lds, fnuz;
    int32_t halves;             /* op_sel chooses halves of registers */
    int32_t dpp, dpp_zero;      /* across lanes; what a lane without a source reads, or else it does not write */
    int32_t vector;             /* NumPy executes it while MODE is another than compilers set */
    int32_t verb, returns;      /* of atomics */
    int32_t element;            /* bits of one, in reads that transpose */
    int32_t matrix[20];         /* of matrix instructions: see matrix.c */
    int32_t align_m0;           /* bits of M0 that count as an LDS address */
    uint64_t behind;            /* the address of the instruction that follows, of those that ask for it */
    Operand o[MOST_OPERANDS];
    uint64_t dpp_enabled;
    int8_t dpp_source[LANES];
} Op;

typedef struct {
    int32_t code, pc, other, wave, other_wave, row;
    int64_t detail, detail1;
} Fault;

typedef struct Wave Wave;
typedef struct Group Group;
typedef struct Pending Pending;

struct Pending {
    int32_t pc, counter, landed;
    int32_t first_row, rows;    /* registers that it holds */
    int32_t kind, size, pieces; /* what its landing does: see land() */
    uint64_t active, issued;
    int32_t access;             /* its number in the order of LDS accesses; 0 if it is none */
    int32_t store;              /* its number among stores to memory; 0 if it is none */
    int32_t words[16];          /* a scalar load's */
    int32_t element;            /* bits, if the read transposes */
    int64_t serial;
    int32_t high, half, sign;
    int32_t at[2 * LANES];      /* LDS bytes, a piece at a time */
    uint8_t data[LANES * 16];   /* what was fetched, or what LDS held when a read was issued */
    uint8_t bad[2 * LANES];     /* dwords of each lane that another write was under way to, as bits */
};

/* Wait states, as in rota.isa.hazards: what each instruction leaves, and what those need that may come too early. */
typedef struct {
    int32_t reach, pipe, passes; /* pipe 0: no matrix instruction */
    int32_t pairs_at, pairs;
    uint64_t writes[ALL_ROWS / 64], ends[ALL_ROWS / 64];
} Spacing;
typedef struct {
    int32_t first, needs_at, needs;
} Pair;
typedef struct {
    int32_t states, matrix, reads, required;
    uint64_t rows[ALL_ROWS / 64];
} Need;
typedef struct {
    const Spacing *spacings;    /* by instruction */
    const Pair *pairs;
    const Need *needs;
} Spacings;
typedef struct {
    int64_t until, since;
    int32_t pc;
} Recent;
#define MOST_RECENT 256
typedef struct {
    int64_t now, stalled, began, free;
    int32_t pipe, count;
    Recent recent[MOST_RECENT];
} Clock;

struct Wave {
    Group *group;
    int32_t number, pc, ended, waiting, scc;
    int32_t epoch, barrier;     /* barriers reached; the instruction at which it waits */
    int64_t executed;
    uint32_t s[ROWS + SPARE];   /* more than there are: whatever file a record names, its row is in here */
    uint64_t exec;
    int32_t busy[2 * ROWS + SPARE];     /* which pending op holds a row, plus one */
    int32_t held;               /* rows that are held */
    int32_t queue[3][MOST_PENDING], head[3], length[3];
    int32_t free[MOST_PENDING], free_count;
    int32_t odd;                /* MODE is another than compilers set, or registers are indexed */
    Pending pending[MOST_PENDING];
    uint32_t v[ROWS + SPARE][LANES];
    Clock clock;
};

typedef struct {
    int32_t wave, pc, writes, dma, covered;
    int32_t plain;              /* writes registers */
} Access;

typedef struct {
    int32_t user, workgroup, wave, pc; /* the user counts waves over workgroups */
    int32_t covered, whole;     /* whole: of aligned dwords */
} Store;

/* Executes one instruction of a wave that only uses registers; GO_ON, or GAVE_UP if anything was wrong. */
typedef int32_t (*Other)(int32_t wave, int32_t pc);

struct Group {
    const Op *ops;
    int32_t count;
    const int32_t *pool;
    Wave *waves;
    int32_t wave_count;
    int32_t most_vm, most_lgkm;
    /* global memory: one block, of which buffers with gaps between them may be touched */
    uint8_t *memory;
    /* of each dword, a wave that read it, counted over workgroups; the last store to it; the last one of workgroups
     * that ended before that store's began */
    int32_t *users[3];
    Store *stores;              /* the first is none */
    int32_t store_count, store_room, shared; /* shared: cache bits or atomics may order accesses */
    uint64_t base;
    const int64_t *starts, *ends;
    int32_t buffers;
    /* LDS and its shadow, by byte */
    uint8_t *lds;
    int64_t lds_size;
    int16_t *mark, *last;
    int64_t *serials, serial;
    int32_t *written, *read[MOST_WAVES], *atomic[MOST_WAVES];
    uint16_t *readers, *atomics;
    uint8_t *initialised;
    Access *accesses;
    int32_t access_count, access_room;
    int32_t *judged, judgements; /* of each byte, in which comparison with other writes it was last */
    /* faults end a run, notes do not; of those each pair of instructions has one */
    Fault *faults;
    int32_t fault_count, fault_room;
    uint8_t *told;              /* by code and instruction: the first time is enough */
    Fault *notes;
    int32_t note_count, note_start; /* all, and those of earlier workgroups */
    int32_t *note_at;           /* a hash table of their numbers, plus one */
    const Spacings *spacings;   /* NULL if no path lacks wait states */
    int32_t number;             /* of the workgroup */
    Other other;                /* NumPy */
    const int32_t *code_at;     /* by dword of the code, which instruction starts there, or -1 */
    int64_t code_words;
    uint64_t code_base;
    uint8_t *private;           /* of each lane of each wave */
    int64_t private_size;
    /* the interleaving */
    int32_t landing, drawn;     /* 0 latest, 1 earliest, 2 any */
    uint64_t random;
    int32_t rank[MOST_WAVES];
    int64_t most_instructions;
};

typedef int32_t (*Act)(Wave *, const Op *);

typedef struct {
    const char *name;
    Act act;
    uint32_t accepts;           /* which modifiers it honours */
} Opcode;

enum {                          /* modifiers, as bits */
    M_SDWA = 1, M_CLAMP = 2, M_OMOD = 4, M_OP_SEL = 8, M_NEG = 16, M_OFFSET = 32, M_BUFFER = 64, M_IMMEDIATE = 128,
    M_DPP = 256, M_MATRIX = 512, M_SIGNS = 1024,
};

enum {                          /* faults; Python says them in words */
    F_HELD = 103, F_OUTSIDE = 105, F_LDS_UNDER_WAY = 106, F_ENDLESS = 108, F_RACE = 109, F_LEAVES_LDS = 205,
    F_STRIDE = 305, F_MISALIGNED = 405, F_UNWRITTEN = 301, F_SHARED = 302, F_MEETING = 121, F_OTHER = 102,
    F_ASTRAY = 131, F_LEAVES_PRIVATE = 605, F_FULL = 999,
    N_EARLY = 104, N_EQUAL = 304, N_WITHIN = 305, N_BETWEEN = 306, /* notes; equal values in LDS and in memory */
};

extern const Opcode INTEGER_OPCODES[], FLOAT_OPCODES[], CONVERT_OPCODES[], VECTOR_OPCODES[], COMPARE_OPCODES[], SCALAR_OPCODES[], CONTROL_OPCODES[], LDS_OPCODES[], GLOBAL_OPCODES[],
    MATRIX_OPCODES[], ATOMIC_OPCODES[], PRIVATE_OPCODES[], DIVISION_OPCODES[];

/* operands.c */
const uint32_t *words_of(Wave *, const Operand *, uint32_t *room);
const uint64_t *doubles_of(Wave *, const Operand *, uint64_t *room, int floating);
uint32_t scalar32(const Wave *, const Operand *);
uint64_t scalar64(const Wave *, const Operand *);
void put_scalar32(Wave *, const Operand *, uint32_t);
void put_scalar64(Wave *, const Operand *, uint64_t);
void put_words(Wave *, int row, const uint32_t *values);
void put_masked(Wave *, int row, const uint32_t *values, uint64_t mask);

/* engine.c */
void fault(Group *, int code, int pc, int other, int wave, int other_wave, int row, int64_t detail, int64_t detail1);
void note(Group *, const Fault *);
Pending *launch(Wave *, const Op *, int counter, int first_row, int rows);
void under_way_now(Wave *, Pending *);
void wait_for(Wave *, int counter, int most);
void land(Wave *, Pending *);
void cover(Wave *, Pending *);
uint64_t draw(Group *);
int32_t by_numpy(Wave *, const Op *);

/* spacing.c */
void check_distance(Wave *, int pc);

/* check.c */
int rota_check(const Op *, int32_t count, const int32_t *pool, int32_t pool_size);

/* lds.c */
int within_lds(Wave *, int pc, int64_t at, int size);
int begin_access(Wave *, int pc, int writes, int dma);
void order_read(Wave *, int access, int64_t at, int size);
void begin_write(Wave *, int access, int64_t serial, int64_t at, int size, uint32_t equal);
uint64_t places(Wave *, const Op *, const uint32_t *address, Pending *);
void begin_atomic(Wave *, int access, int64_t serial, int64_t at, int size);
void land_read(Wave *, Pending *);
void land_write(Wave *, Pending *);

/* global.c */
typedef struct {
    uint64_t address[LANES];
    uint64_t room[LANES]; /* bytes behind each address within num_records */
    int bounded;
} Addresses;
enum { READS, WRITES, CHANGES }; /* the last is atomic */
void addresses_of(Wave *, const Op *, const Operand *, Addresses *);
uint64_t scalar_address(const Wave *, const Op *);
uint8_t *reached(Wave *, int pc, uint64_t address, int size, int use, int *near);
void land_load(Wave *, Pending *);

static inline float as_float(uint32_t bits) { float f; memcpy(&f, &bits, 4); return f; }
static inline uint32_t as_bits(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
static inline double as_double(uint64_t bits) { double f; memcpy(&f, &bits, 8); return f; }
static inline uint64_t as_bits64(double f) { uint64_t u; memcpy(&u, &f, 8); return u; }
float half_to_float(uint32_t half);
const double *float8_values(int bf8, int fnuz); /* by code */
uint32_t float_to_half(float);

#endif
