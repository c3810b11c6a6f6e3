"""Wait states: the rules, a check of all paths without execution, and a check while a kernel runs.

gfx9 interlocks most dependencies, not these. The numbers are the architecture's (`Hazards`). A compiler that sees the
instructions inserts `s_nop` for them, but it doesn't look into inline assembly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rota.errors import Concern, Finding
from rota.isa.disassembly import Instruction
from rota.isa.hazards.spacing import Need, Spacing, is_of, spacing_of
from rota.isa.opcodes import IsaFlow, IsaUnit
from rota.isa.registers import EXEC_ROWS, NO_ROWS, Rows, row_name
from rota.isa.wave.wave import POISON, Step, Wave
from rota.targets.architecture import VECTOR_SLOTS, Architecture, Hazards, Pipe, WaitRule

# Rules for pairs of instructions: those of AMD's manual and those of LLVM for gfx940 and later. Each names its source.
# If the two differ, the stricter one is there. All but those about the results of MFMAs are data of the architecture.

SHORT = 2  # passes of the shortest MFMAs, which have their own rules


def needs(first: Spacing, then: Spacing, hazards: Hazards) -> tuple[Need, ...]:
    """What `then` must keep after `first`; cached, because loops repeat the same pairs."""
    known = first.known.get(then)
    if known is None:
        found = [*_by_rules(first, then, hazards)]
        if first.unit is IsaUnit.MATRIX and not hazards.by_vectors:
            found += _Results(hazards).after(first, then)
        known = first.known[then] = tuple(need for need in found if need.states > 0)
    return known


@lru_cache(maxsize=16384)
def _rules_between(hazards: Hazards, first: frozenset[str], then: frozenset[str]) -> tuple[WaitRule, ...]:
    """The rules for instructions of these classes."""
    return tuple(rule for rule in hazards.rules if rule.after and is_of(first, rule.after) and is_of(then, rule.then))


def _by_rules(first: Spacing, then: Spacing, hazards: Hazards) -> Iterator[Need]:
    for rule in _rules_between(hazards, first.classes, then.classes):
        rows = first.rows[rule.gives] & then.rows[rule.takes] if rule.gives else NO_ROWS
        if rule.gives and not rows:
            continue
        same = first.hwreg == then.hwreg if rule.when == "same register" else first.opcode == then.opcode
        if rule.when and same == (rule.when == "other opcode"):
            continue
        why = rule.why.format(register=then.hwreg)
        yield Need(states=rule.states.value, rows=rows, why=why, rule=rule.name, fact=rule.states)


class _Results:
    """How long after an MFMA its result, and what it adds to, may be used."""

    def __init__(self, hazards: Hazards) -> None:
        self._hazards = hazards

    def _need(
        self, rule: str, rows: Rows, why: str, passes: int = 0, *, more: int = 0, reads: bool = False,
        matrix: bool = False,
    ) -> Iterator[Need]:  # fmt: skip
        """A rule by its name, if instructions share rows; some rules count from the last of `passes`."""
        if rows:
            fact = self._hazards[rule]
            states = passes + fact.value + more
            yield Need(states=states, rows=rows, why=why, rule=rule, fact=fact, reads=reads, matrix=matrix)

    def after(self, first: Spacing, then: Spacing) -> Iterator[Need]:
        if then.unit is IsaUnit.MATRIX:
            yield from self._result(first, first.writes & then.reads, memory=False)
            yield from self._sum(first, then, first.writes & then.sums)
            return
        if then.unit.is_vector:
            yield from self._result(first, first.writes & then.all_reads, memory=then.unit is not IsaUnit.VALU)
            yield from self._overwrite(first, then)

    def _result(self, first: Spacing, rows: Rows, *, memory: bool) -> Iterator[Need]:
        """Wait states until the result of an MFMA may be read, also as a factor of another one."""
        rule, passes = self._ends(first)
        rule += "_memory" * (first.pipe is Pipe.DOUBLE and memory)
        yield from self._need(rule, rows, "reads", passes, reads=True, matrix=True)

    @staticmethod
    def _ends(first: Spacing) -> tuple[str, int]:
        """The rule for when the result of an MFMA is complete, and the passes after which it counts."""
        if first.pipe is Pipe.DOUBLE:
            return ("double_large" if first.large else "double_small"), 0
        if first.pipe is Pipe.SINGLE:
            return "single_result", first.passes
        return ("short_result" if first.passes == SHORT else "result"), first.passes

    def _overwrite(self, first: Spacing, then: Spacing) -> Iterator[Need]:
        """Wait states until the result or the addend of an MFMA may be overwritten."""
        rows, hazards = first.writes & then.writes, self._hazards
        rule, passes = self._ends(first)
        large = first.pipe is Pipe.DOUBLE and first.large
        if then.unit is IsaUnit.VALU:
            yield from self._need("double_overwrite" if large else rule, rows, "overwrites", passes, matrix=True)
        elif large:
            yield from self._need("double_load_over", rows, "overwrites", matrix=True)
        else:
            yield from self._need("load_over", rows, "overwrites", passes, more=hazards[rule].value, matrix=True)
        if first.pipe is Pipe.XDL:
            rows, why = first.sums & then.writes, "overwrites what is added to,"
            if then.unit is IsaUnit.VALU:
                yield from self._need("overwrite", rows, why, first.passes)
            else:
                yield from self._need("load_over", rows, why, first.passes, more=hazards["overwrite"].value)

    def _sum(self, first: Spacing, then: Spacing, rows: Rows) -> Iterator[Need]:
        """Wait states until an MFMA may add to another's result: mostly none for equal ranges and passes."""
        rule = self._sum_rule(first, then, same=first.write_range == then.sum_range)
        if rule:
            counts_passes = rule in {"single_overlap", "short_overlap", "unequal", "different", "overlap"}
            yield from self._need(rule, rows, "adds to", first.passes * counts_passes, reads=True, matrix=True)

    @staticmethod
    def _sum_rule(first: Spacing, then: Spacing, *, same: bool) -> str:
        short, product = first.passes == SHORT, then.pipe is Pipe.XDL
        if first.pipe is Pipe.DOUBLE:
            done = product or (same and first.large and then.large)
            return "" if done else "double_large_sum" if first.large else "double_small_sum"
        if same and first.pipe is then.pipe and first.passes == then.passes:
            if short:
                return "forwarded"
            return "different" if product and first.opcode != then.opcode else ""
        if first.pipe is Pipe.SINGLE:
            return "single_overlap" if not product else "single_forwarded" if same and short else ""
        if short and not product:
            return "short_overlap"
        return "unequal" if same and product else "overlap"


# Static check. It follows every path of the control flow backwards from an instruction, as far as any wait state
# reaches, whether or not a wave can take it. A path ends at the start of a function: neither callers nor returns are
# followed. An MFMA after another of its kind begins when the passes of that one are over, so these count as wait states
# for whatever follows both.

_MOST_PLACES, _FREE_PLACES = 400, 20_000  # per instruction of a kernel; real ones have about twenty


@dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """Instruction number `then` comes `short` wait states too early after number `first`."""

    first: int
    then: int
    short: int
    need: Need

    @property
    def weight(self) -> tuple[bool, int]:
        """Rules of the device weigh more than those of LLVM; then the number of missing wait states."""
        return self.need.required, self.short


class Distance(NamedTuple):
    """What lies between an instruction and a later one: wait states, and the rows that were written again.

    `unit` is the pipe of the nearest MFMA between them, or of the later one, and `begun` how long before the later one
    it began. `counted` leaves out the wait states for which the later one itself waits for its unit, because an s_nop
    before it passes at the same time.
    """

    passed: int = 0
    counted: int = 0
    multiplied: Rows = NO_ROWS
    ended: Rows = NO_ROWS
    unit: Pipe | None = None
    begun: int = 0

    def before(self, first: Spacing) -> Distance:
        """The same distance as seen by the instruction right in front, with the passes for which it holds its unit."""
        if first.pipe is not self.unit:
            return self
        passed = max(self.passed, self.begun + first.passes - first.states)
        return self._replace(passed=passed, counted=self.counted + (passed - self.passed if self.begun else 0))

    def with_first(self, first: Spacing, named: Rows) -> Distance:
        """Adds an instruction to the distance, restricted to rows that the later one names."""
        passed, counted, multiplied, ended, unit, begun = self
        passed += first.states
        if first.passes:
            multiplied |= first.writes & named
            unit, begun = first.pipe, passed
        elif first.ends:
            ended |= first.ends & named
        return Distance(passed, counted + first.states, multiplied, ended, unit, begun)

    def missing(self, first: Spacing, then: Spacing, hazards: Hazards) -> Iterator[tuple[int, Need]]:
        for need in needs(first, then, hazards):
            # A result that a later MFMA overwrites has the wait states of that one. For a scalar register written
            # again, the hardware interlocks or the later instruction has wait states of its own.
            again = self.multiplied if need.matrix else self.ended
            if need.states > self.passed and (not need.rows or not need.rows <= again):
                yield need.states - self.counted, need


def _continues(instruction: Instruction) -> bool:
    """True if the next instruction may follow at once, or after a trap or a call."""
    return instruction.spec.flow.falls_through or instruction.spec.flow in {IsaFlow.CALL, IsaFlow.TRAP}


class SpacingWalk:
    def __init__(self, instructions: Sequence[Instruction], architecture: Architecture) -> None:
        self.instructions = instructions
        self.spacings = [spacing_of(each, architecture) for each in instructions]
        self._hazards = architecture.hazards
        self._before: list[list[int]] = [[] for _ in instructions]
        self._after: list[list[int]] = [[] for _ in instructions]
        for number, each in enumerate(instructions):
            if each.target is not None:
                self._join(number, each.target)
            if number + 1 < len(instructions) and _continues(each):
                self._join(number, number + 1)
        self._reach = [each.reach for each in self.spacings]
        self._farthest = max(self._reach, default=0)

    def _join(self, number: int, following: int) -> None:
        self._after[number].append(following)
        self._before[following].append(number)

    def early(self, numbers: Iterable[int] | None = None, *, plain: bool = False) -> tuple[Early, ...]:
        """Which of `numbers` come too early; with `plain`, all are one wait state and rewritten registers count."""
        found: dict[tuple[int, int], Early] = {}
        left = -1 if plain else _FREE_PLACES + _MOST_PLACES * len(self.spacings)
        for then in range(len(self.spacings)) if numbers is None else numbers:
            left -= self._find_early(then, left, found)
        return tuple(found.values())

    def _find_early(self, then: int, most: int, found: dict[tuple[int, int], Early]) -> int:
        """Walks back on all paths, beyond `most` places without rewritten rows; returns the number of places."""
        spacing = self.spacings[then]
        named = spacing.all_reads | spacing.writes | spacing.zeros | EXEC_ROWS
        start = Distance(unit=spacing.pipe if most > 0 else None)
        stack, plain = [(before, start) for before in self._before[then]], most <= 0
        seen, places = set(stack), 0
        while stack:
            number, distance = stack.pop()
            for _ in self.spacings:  # a loop that nothing leads into may pass no wait states at all
                places += 1
                first = self.spacings[number]
                if first.pipe is not None:
                    distance = distance.before(first)
                if self._reach[number] > distance.passed:
                    self._compare(number, then, distance, found)
                plain = plain or places > most
                if plain:
                    distance = Distance(distance.counted + first.states, distance.counted + first.states)
                else:
                    distance = distance.with_first(first, named)
                earlier = self._before[number]
                if distance.passed >= self._farthest or not earlier:
                    break
                if len(earlier) > 1:
                    stack += (new := {(before, distance) for before in earlier} - seen)
                    seen |= new
                    break
                number = earlier[0]
        return places

    def _compare(self, number: int, then: int, distance: Distance, found: dict[tuple[int, int], Early]) -> None:
        key = (number, then)
        for short, need in distance.missing(self.spacings[number], self.spacings[then], self._hazards):
            if key not in found or found[key].weight < (need.required, short):
                found[key] = Early(first=number, then=then, short=short, need=need)

    def near(self, number: int) -> frozenset[int]:
        """The instructions that follow closely enough to depend on the wait states of `number`."""
        best: dict[int, int] = {}
        stack = [(following, 0) for following in self._after[number]]
        while stack:
            at, passed = stack.pop()
            if passed > self._farthest or best.get(at, passed + 1) <= passed:
                continue
            best[at] = passed
            stack.extend((following, passed + self.spacings[at].states) for following in self._after[at])
        return frozenset(best)


def check_spacing(instructions: Sequence[Instruction], architecture: Architecture) -> tuple[Finding, ...]:
    """An I104 for each instruction that comes too early on some path, with the worst of the instructions before it."""
    walk = SpacingWalk(instructions, architecture)
    worst: dict[int, Early] = {}
    for each in walk.early():
        if each.then not in worst or worst[each.then].weight < each.weight:
            worst[each.then] = each
    findings = []
    for _, early in sorted(worst.items()):
        then, first = instructions[early.then], instructions[early.first]
        ends = ((then, ""), (first, "the other one"))
        concerns = tuple(Concern(label=each.text, index=each.line, role=role) for each, role in ends)
        message, evidence = early_message(then, early.need, early.short), early_evidence(early.need, early.short)
        findings.append(Finding("I104", message, concerns=concerns, evidence=evidence))
    return tuple(findings)


def early_message(then: Instruction, need: Need, short: int) -> str:
    name = row_name(min(need.rows), then.text) if need.rows else ""
    what = need.why if not name or need.why.split()[-1] == name else f"{need.why} {name}"
    unit = need.fact.unit.removesuffix("s")
    return f"{then.opcode} {what} {short} {unit}{'s' * (short != 1)} too early"


def early_evidence(need: Need, short: int) -> tuple[tuple[str, str | int], ...]:
    by_vectors = need.fact.unit == VECTOR_SLOTS
    fix = f"{short} v_nop before it" if by_vectors else f"s_nop {short - 1} before it, or other instructions"
    return ("rule", need.rule), ("source", need.source), ("row", need.fact.source), ("fix", fix)


# Check at run time, with the same rules.


def check_distance(wave: Wave, step: Step) -> None:
    """Checks the wait states since recent steps.  An MFMA waits for its unit; unwritten results read as poison."""
    spacing = step.spacing
    waited, began = (0, 0) if spacing.pipe is None else _wait_for_unit(wave, spacing)
    now, recent = wave.now + wave.stalled, wave.recent
    if recent:
        for _, since, other in recent:
            first = other.spacing
            known = first.known.get(spacing)
            required = needs(first, spacing, wave.architecture.hazards) if known is None else known
            if required and max(need.states for need in required) > now - since:
                _report(wave, step, waited, began)
                break
        if recent[0][0] <= now:
            wave.recent = recent = [entry for entry in recent if entry[0] > now]
    reach = spacing.reach
    if spacing.ends and any(spacing.ends & other.spacing.writes for _, _, other in recent):
        reach = max(other.spacing.reach for _, _, other in recent)  # it ends what they may be too early for
    if reach:
        since = now + step.states
        wave.recent.append((since + reach, since, step))


def _wait_for_unit(wave: Wave, spacing: Spacing) -> tuple[int, int]:
    """Delays an MFMA until its unit is free; returns the delay, and when the MFMA before it began."""
    now = wave.now + wave.stalled
    pipe, began, free = wave.unit
    more = free - now if pipe is spacing.pipe and free > now else 0
    if more:
        wave.recent = [
            (until + more, since + more, step) if since > began + 1 else (until, since, step)
            for until, since, step in wave.recent
        ]
        wave.stalled, now = wave.stalled + more, free
    wave.unit = (spacing.pipe, now, now + spacing.passes)
    return more, began


def _report(wave: Wave, step: Step, waited: int, began: int) -> None:
    """Reports what the step comes too early for; its own delay counts for what was issued before `began`."""
    multiplied = ended = NO_ROWS
    now = wave.now + wave.stalled
    for _, since, other in reversed(wave.recent):
        first = other.spacing
        passed = now - since
        distance = Distance(passed, passed - waited if since <= began + 1 else passed, multiplied, ended)
        missing = distance.missing(first, step.spacing, wave.architecture.hazards)
        for short, need in sorted(missing, key=lambda each: (each[1].required, each[0]), reverse=True):
            here, message = step.instruction, early_message(step.instruction, need, short)
            evidence = (("wave", wave.number), *early_evidence(need, short))
            wave.faults.add("I104", here, message, *evidence, other=other.instruction)
            if need.reads and need.matrix:
                wave.v[list(need.rows)] = POISON
        if first.passes:
            multiplied |= first.writes
        ended |= first.ends
