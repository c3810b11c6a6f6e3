/* Wait states while a wave runs, for programs in which some path lacks them: the check of rota.isa.hazards, which finds
 * in advance which pairs of instructions may come too close and what they need.  What comes too early is noted, and a
 * result that a matrix instruction has not written yet reads as poison. */
#include "core.h"

enum { SETS = ALL_ROWS / 64 };

static const Pair *pair_of(const Spacings *all, int first, int then)
{
    const Spacing *spacing = &all->spacings[then];
    for (int i = 0; i < spacing->pairs; i++)
        if (all->pairs[spacing->pairs_at + i].first == first)
            return &all->pairs[spacing->pairs_at + i];
    return NULL;
}

/* A matrix instruction waits until its unit is free; returns how long, and when the one before it began. */
static int64_t wait_for_unit(Clock *clock, const Spacing *spacing, int64_t *began)
{
    int64_t now = clock->now + clock->stalled, more = 0;
    *began = clock->began;
    if (clock->pipe == spacing->pipe && clock->free > now) {
        more = clock->free - now;
        for (int i = 0; i < clock->count; i++)
            if (clock->recent[i].since > clock->began + 1) {
                clock->recent[i].until += more;
                clock->recent[i].since += more;
            }
        clock->stalled += more;
        now = clock->free;
    }
    clock->pipe = spacing->pipe, clock->began = now, clock->free = now + spacing->passes;
    return more;
}

static int is_missing(const Need *need, int64_t passed, const uint64_t *again)
{
    uint64_t any = 0, left = 0;
    for (int i = 0; i < SETS; i++) {
        any |= need->rows[i];
        left |= need->rows[i] & ~again[i];
    }
    return need->states > passed && (!any || left);
}

static void report(Wave *wave, int then, int64_t waited, int64_t began)
{
    const Spacings *all = wave->group->spacings;
    const Clock *clock = &wave->clock;
    int64_t now = clock->now + clock->stalled;
    uint64_t multiplied[SETS] = {0}, ended[SETS] = {0};
    for (int i = clock->count - 1; i >= 0; i--) {
        int first = clock->recent[i].pc, worst = -1;
        int64_t passed = now - clock->recent[i].since, most = 0;
        int64_t counted = clock->recent[i].since <= began + 1 ? passed - waited : passed;
        const Pair *pair = pair_of(all, first, then);
        for (int at = 0; pair && at < pair->needs; at++) {
            const Need *need = &all->needs[pair->needs_at + at];
            if (!is_missing(need, passed, need->matrix ? multiplied : ended))
                continue;
            int64_t missing = need->states - counted;
            const Need *known = worst < 0 ? NULL : &all->needs[worst];
            if (!known || need->required > known->required || (need->required == known->required && missing > most))
                worst = pair->needs_at + at, most = missing;
            for (int row = 0; need->reads && need->matrix && row < ROWS; row++)
                if (need->rows[row / 64] >> row % 64 & 1)
                    memset(wave->v[row], 0xFF, sizeof wave->v[row]);
        }
        if (worst >= 0)
            note(wave->group, &(Fault){N_EARLY, then, first, wave->number, -1, -1, worst, most});
        for (int set = 0; set < SETS; set++) {
            multiplied[set] |= all->spacings[first].passes ? all->spacings[first].writes[set] : 0;
            ended[set] |= all->spacings[first].ends[set];
        }
    }
}

void check_distance(Wave *wave, int pc)
{
    const Spacings *all = wave->group->spacings;
    const Spacing *spacing = &all->spacings[pc];
    Clock *clock = &wave->clock;
    int64_t began = 0, waited = spacing->pipe ? wait_for_unit(clock, spacing, &began) : 0;
    int64_t now = clock->now + clock->stalled;
    int reach = spacing->reach, kept = 0, longest = 0;
    for (int i = 0; spacing->pairs && i < clock->count; i++) {
        const Pair *pair = pair_of(all, clock->recent[i].pc, pc);
        int early = 0;
        for (int at = 0; pair && at < pair->needs; at++)
            early |= all->needs[pair->needs_at + at].states > now - clock->recent[i].since;
        if (early) {
            report(wave, pc, waited, began);
            break;
        }
    }
    if (clock->count && clock->recent[0].until <= now) {
        for (int i = 0; i < clock->count; i++)
            if (clock->recent[i].until > now)
                clock->recent[kept++] = clock->recent[i];
        clock->count = kept;
    }
    uint64_t shared = 0, any = 0;
    for (int set = 0; set < SETS; set++)
        any |= spacing->ends[set];
    for (int i = 0; any && i < clock->count; i++) {
        const Spacing *other = &all->spacings[clock->recent[i].pc];
        longest = other->reach > longest ? other->reach : longest;
        for (int set = 0; set < SETS; set++)
            shared |= spacing->ends[set] & other->writes[set];
    }
    if (shared) /* it ends what they may be too early for */
        reach = longest;
    if (reach) {
        int64_t since = now + wave->group->ops[pc].states;
        if (clock->count == MOST_RECENT)
            fault(wave->group, F_FULL, pc, -1, wave->number, -1, -1, MOST_RECENT, 0);
        else
            clock->recent[clock->count++] = (Recent){since + reach, since, pc};
    }
    clock->now += wave->group->ops[pc].states;
}
