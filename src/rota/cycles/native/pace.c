/* The pace of one wave, as rota.cycles.pace has it, written a second time: a search asks for it thousands of
 * times.  Both give the same clocks for every order, and the tests hold them to that.  Orders are checked before they
 * are used; a wave that waits for what was never issued gives NO_SUCH_TOKEN. */
#include <stdint.h>
#include <stdlib.h>

enum { MATH, LDS, GLOBAL, WAIT, TURNS };
enum { MATRIX, VECTOR, UNITS };
#define EDGE (-1)
#define NO_SUCH_TOKEN INT64_MIN
#define NO_MEMORY (INT64_MIN + 1)
#define NO_SUCH_ENTRY (INT64_MIN + 2)

typedef struct {
    int64_t form, held, after, place;
    int64_t needs_at, needs;    /* pairs of a register and clocks on top, in the pool */
    int64_t makes_at, makes;    /* registers, in the pool */
    int64_t times;              /* of equal math instructions */
} Step;

typedef struct {
    int64_t turn, latency, edge, fused_waits, turns_are_scarce, registers, counters, entries;
} Loop;

typedef struct {
    int64_t when, busy, counter;
} Landing;

typedef struct {
    const Loop *loop;
    const Step *steps;
    const int64_t *first;       /* of an entry's steps; one more at the end */
    const int64_t *pool, *holds;
    int64_t time, port, path, waited, free[UNITS];
    int64_t *ready, *issued, *done, *given, *begin;
    Landing *arriving;
    int64_t landed, under_way;
} Wave;

static int64_t later(int64_t one, int64_t other) { return one > other ? one : other; }

static int64_t at_turn(int64_t time, int64_t turn) { return (time + turn - 1) / turn * turn; }

static int64_t when_ready(const Wave *w, const Step *s, int64_t until) {
    for (int64_t i = 0; i < s->needs; i++) {
        const int64_t *need = w->pool + s->needs_at + 2 * i;
        until = later(until, w->ready[need[0]] + need[1]);
    }
    return until;
}

static void make(Wave *w, const Step *s, int64_t when) {
    for (int64_t i = 0; i < s->makes; i++)
        w->ready[w->pool[s->makes_at + i]] = when;
}

static void give_back(Wave *w, int64_t counter, int64_t when) {
    int64_t *done = w->done + w->begin[counter], count = w->given[counter]++;
    done[count] = count ? later(when, done[count - 1]) : when;
}

/* Stands until a token is given back: 1 if that takes time, 0 if not, less if there is no such token. */
static int come_down(Wave *w, int64_t counter, int64_t oldest) {
    while (w->landed < w->under_way) {
        const Landing *next = w->arriving + w->landed;
        if (next->when > w->time && oldest < w->given[counter])
            break;
        w->port = later(w->port, next->when) + next->busy;
        give_back(w, next->counter, w->port);
        w->landed++;
    }
    if (oldest < 0)
        return 0;
    if (oldest >= w->given[counter])
        return -1;
    int64_t until = w->done[w->begin[counter] + oldest];
    if (until <= w->time)
        return 0;
    w->time = at_turn(until, w->loop->turn);
    return 1;
}

static int math(Wave *w, const Step *s) {
    int64_t turn = w->loop->turn, free = w->free[s->place];
    int64_t until = at_turn(when_ready(w, s, later(free, w->time)), turn);
    int turns_count = s->place != MATRIX || w->loop->turns_are_scarce;
    int late = until > (turns_count ? w->time : free);
    if (s->times > 1) {
        int64_t every = later(at_turn(s->held, turn), turn);
        until += every * (s->times - 1);
        late = late || every > (turns_count ? turn : s->held);
    }
    w->free[s->place] = until + s->held;
    make(w, s, until + s->after);
    w->time = until + turn;
    return late;
}

static int memory(Wave *w, const Step *s) {
    int64_t counter = s->place, finish;
    int late = come_down(w, counter, w->issued[counter] - w->holds[counter]);
    if (late < 0)
        return late;
    int64_t time = at_turn(when_ready(w, s, w->time), w->loop->turn);
    w->issued[counter]++;
    if (s->form == LDS) {
        w->port = later(w->port, time) + s->held;
        finish = w->port + s->after;
        give_back(w, counter, finish);
    } else {
        w->path = later(w->path, time) + s->held;
        finish = w->path + w->loop->latency;
        w->arriving[w->under_way++] = (Landing){finish, s->after, counter};
    }
    make(w, s, finish);
    w->time = time + w->loop->turn;
    return late;
}

static int wait(Wave *w, const Step *s) {
    if (w->time == w->waited && w->loop->fused_waits)
        w->time -= w->loop->turn;
    int late = come_down(w, s->place, w->issued[s->place] - s->held - 1);
    w->time += w->loop->turn;
    w->waited = w->time;
    return late;
}

/* An entry's steps: 1 if any is late, less than 0 if a token is missing. */
static int issue(Wave *w, int64_t entry) {
    int late = 0;
    for (int64_t i = w->first[entry]; i < w->first[entry + 1]; i++) {
        const Step *s = w->steps + i;
        int found = 0;
        switch (s->form) {
        case MATH: found = math(w, s); break;
        case LDS: case GLOBAL: found = memory(w, s); break;
        case WAIT: found = wait(w, s); break;
        case TURNS: w->time += s->held; break;
        }
        if (found < 0)
            return found;
        late |= found;
    }
    return late;
}

/* How many tokens each counter gives back in these trips, and where its part of `done` begins. */
static int64_t count_tokens(Wave *w, const int64_t *order, int64_t length, const int64_t *pending) {
    int64_t loads = 0, total = 0;
    for (int64_t c = 0; c < w->loop->counters; c++)
        w->begin[c + 1] = pending[c];
    for (int64_t i = 0; i < length; i++) {
        if (order[i] == EDGE)
            continue;
        if (order[i] < 0 || order[i] >= w->loop->entries)
            return -1;
        for (int64_t s = w->first[order[i]]; s < w->first[order[i] + 1]; s++)
            if (w->steps[s].form == LDS || w->steps[s].form == GLOBAL) {
                w->begin[w->steps[s].place + 1]++;
                loads += w->steps[s].form == GLOBAL;
            }
    }
    for (int64_t c = 0; c <= w->loop->counters; c++)
        total = w->begin[c] += total;
    return loads;
}

/* When the wave is at the first step of an entry that isn't mere turns. */
static int64_t reach(const Wave *w, int64_t entry) {
    int64_t time = w->time;
    for (int64_t i = w->first[entry]; i < w->first[entry + 1] && w->steps[i].form == TURNS; i++)
        time += w->steps[i].held;
    return time;
}

/* Clocks of the last `counted` places of an order, in which EDGE stands for the loop's edge.  `late` and `margins` are
 * of these places, where they are asked for: is any instruction of the entry late, and for how long is the matrix unit
 * busy yet when it is about to be issued. */
int64_t rota_trip_clocks(const Loop *loop, const Step *steps, const int64_t *first, const int64_t *pool, const int64_t *holds,
                  const int64_t *pending, const int64_t *order, int64_t length, int64_t counted, int8_t *late,
                  int64_t *margins) {
    int64_t counters = loop->counters, result = NO_MEMORY, start = 0;
    Wave w = {.loop = loop, .steps = steps, .first = first, .pool = pool, .holds = holds, .waited = -1};
    w.begin = calloc((size_t)(3 * counters + 1 + loop->registers), sizeof(int64_t));
    if (!w.begin)
        return NO_MEMORY;
    w.issued = w.begin + counters + 1;
    w.given = w.issued + counters;
    w.ready = w.given + counters;
    int64_t loads = count_tokens(&w, order, length, pending);
    if (loads < 0) {
        result = NO_SUCH_ENTRY;
        goto over;
    }
    w.done = calloc((size_t)(w.begin[counters] + 1), sizeof(int64_t));
    w.arriving = malloc((size_t)(loads + 1) * sizeof(Landing));
    if (!w.done || !w.arriving)
        goto over;
    for (int64_t c = 0; c < counters; c++)
        w.given[c] = w.issued[c] = pending[c];
    for (int64_t i = 0; i < length; i++) {
        int64_t place = i - (length - counted);
        if (place == 0)
            start = w.time;
        if (order[i] == EDGE) {
            w.time += loop->edge;
            continue;
        }
        if (place >= 0 && margins)
            margins[place] = w.free[MATRIX] - reach(&w, order[i]);
        int found = issue(&w, order[i]);
        if (found < 0) {
            result = NO_SUCH_TOKEN;
            goto over;
        }
        if (place >= 0 && late)
            late[place] = (int8_t)found;
    }
    result = w.time - start;
over:
    free(w.arriving);
    free(w.done);
    free(w.begin);
    return result;
}
