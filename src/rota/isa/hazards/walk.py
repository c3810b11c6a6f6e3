"""Wait states without execution: takes a kernel's instructions, gives a finding for each that comes too early.

Every path of the control flow that leads to an instruction is followed backwards, as far as any wait state reaches;
whether a wave can take it is not asked.  A path ends where a function does: what a caller left is not known, and a
call's return is not followed.  The same table of pairs decides while a kernel runs (`rota.isa.hazards.hazard`).

An MFMA behind another one of its kind begins when that one's passes are over, so that these count as wait states of
what follows both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.errors import Concern, Finding
from rota.isa.code.disassembly import Instruction
from rota.isa.hazards.spacing import EXEC_ROWS, NO_ROWS, Need, Rows, Spacing
from rota.isa.hazards.spacing_reader import spacing_of
from rota.isa.hazards.spacing_rules import left_of, needs
from rota.isa.wave.operand import ACC, EXEC, M0, SCALAR, VCC
from rota.targets.architecture import Architecture
from rota.targets.matrix_forms import Pipe
from rota.targets.wait_states import Hazards

_LEAVES = re.compile(r"^s_(?:branch|endpgm|setpc|swappc|rfe)")  # what follows isn't what comes next
_MOST_PLACES, _FREE_PLACES = 400, 20_000  # for each instruction of a kernel; real ones have twenty or so
_SCALARS = {VCC: "vcc_lo", VCC + 1: "vcc_hi", M0: "m0", EXEC: "exec_lo", EXEC + 1: "exec_hi"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """An instruction, by its number, that comes `short` wait states too early behind another."""

    first: int
    then: int
    short: int
    need: Need

    @property
    def weight(self) -> tuple[bool, int]:
        """What counts most of several: whose rule it is, then how much too early."""
        return self.need.required, self.short


def row_name(row: int) -> str:
    """A register's name in assembly."""
    if row < SCALAR:
        return f"v{row}" if row < ACC else f"a{row - ACC}"
    return _SCALARS.get(row - SCALAR, f"s{row - SCALAR}")


class Behind(NamedTuple):
    """What lies between an instruction and a later one: wait states, and which rows were written again.

    `unit` is the pipe of the nearest MFMA between, or the later one's own, and `begun` how long before the later
    one it began.  `counted` are the wait states without those for which the later one itself waits for its unit: an
    s_nop before it passes at the same time.
    """

    passed: int = 0
    counted: int = 0
    multiplied: Rows = NO_ROWS
    ended: Rows = NO_ROWS
    unit: Pipe | None = None
    begun: int = 0

    def before(self, first: Spacing) -> Behind:
        """The same seen from an instruction right in front, with the passes for which it holds its unit."""
        if first.pipe is not self.unit:
            return self
        passed = max(self.passed, self.begun + first.passes - first.states)
        return self._replace(passed=passed, counted=self.counted + (passed - self.passed if self.begun else 0))

    def with_first(self, first: Spacing, named: Rows) -> Behind:
        """That instruction among what lies between; of rows, those that the later one names."""
        passed, counted, multiplied, ended, unit, begun = self
        passed += first.states
        if first.passes:
            multiplied |= first.writes & named
            unit, begun = first.pipe, passed
        elif first.ends:
            ended |= first.ends & named
        return Behind(passed, counted + first.states, multiplied, ended, unit, begun)

    def due(self, first: Spacing, then: Spacing, hazards: Hazards) -> Iterator[tuple[int, Need]]:
        """How much too early the later instruction comes, and why."""
        for need in needs(first, then, hazards):
            if need.states > self.passed and left_of(need, self.multiplied, self.ended):
                yield need.states - self.counted, need


class SpacingWalk:
    """A kernel's control flow, with what each instruction needs."""

    def __init__(self, instructions: Sequence[Instruction], architecture: Architecture) -> None:
        self.instructions = instructions
        self.spacings = [spacing_of(each, architecture) for each in instructions]
        self._hazards = architecture.hazards
        self._before: list[list[int]] = [[] for _ in instructions]
        self._after: list[list[int]] = [[] for _ in instructions]
        for number, each in enumerate(instructions):
            if each.target is not None:
                self._join(number, each.target)
            if number + 1 < len(instructions) and not _LEAVES.match(each.opcode):
                self._join(number, number + 1)
        self._reach = [each.reach for each in self.spacings]
        self._farthest = max(self._reach, default=0)

    def _join(self, number: int, following: int) -> None:
        self._after[number].append(following)
        self._before[following].append(number)

    def early(self, numbers: Iterable[int] | None = None, *, plain: bool = False) -> tuple[Early, ...]:
        """The instructions, among those numbered, that come too early: each once for each one in front.

        With `plain`, every instruction is one wait state, and a register that is written again counts all the same.
        """
        found: dict[tuple[int, int], Early] = {}
        left = -1 if plain else _FREE_PLACES + _MOST_PLACES * len(self.spacings)
        for then in range(len(self.spacings)) if numbers is None else numbers:
            left -= self._early(then, left, found)
        return tuple(found.values())

    def _early(self, then: int, most: int, found: dict[tuple[int, int], Early]) -> int:
        """Goes back from an instruction, on all ways; gives the number of places, each with what lies behind it.

        Where there are more than `most`, wait states alone count and not what was written again: no fewer
        instructions are too early then.
        """
        spacing = self.spacings[then]
        named = spacing.all_reads | spacing.writes | spacing.zeros | EXEC_ROWS
        start = Behind(unit=spacing.pipe if most > 0 else None)
        stack, plain = [(before, start) for before in self._before[then]], most <= 0
        seen, places = set(stack), 0
        while stack:
            number, behind = stack.pop()
            while True:
                places += 1
                first = self.spacings[number]
                if first.pipe is not None:
                    behind = behind.before(first)
                if self._reach[number] > behind.passed:
                    self._compare(number, then, behind, found)
                plain = plain or places > most
                if plain:
                    behind = Behind(behind.counted + first.states, behind.counted + first.states)
                else:
                    behind = behind.with_first(first, named)
                earlier = self._before[number]
                if behind.passed >= self._farthest or not earlier:
                    break
                if len(earlier) > 1:
                    stack += (new := {(before, behind) for before in earlier} - seen)
                    seen |= new
                    break
                number = earlier[0]
        return places

    def _compare(self, number: int, then: int, behind: Behind, found: dict[tuple[int, int], Early]) -> None:
        for short, need in behind.due(self.spacings[number], self.spacings[then], self._hazards):
            key = (number, then)
            if key not in found or found[key].weight < (need.required, short):
                found[key] = Early(first=number, then=then, short=short, need=need)

    def reachable(self) -> frozenset[int]:
        """The instructions that can be come to from the first."""
        found: set[int] = set()
        stack = [0] if self.spacings else []
        while stack:
            if (number := stack.pop()) not in found:
                found.add(number)
                stack.extend(self._after[number])
        return frozenset(found)

    def near(self, number: int) -> frozenset[int]:
        """The instructions that follow one closely enough to depend on its wait states."""
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
    """An I104 for each instruction that comes too early on some path, with the one that it comes too early behind."""
    walk = SpacingWalk(instructions, architecture)
    worst: dict[int, Early] = {}
    for each in walk.early():
        if each.then not in worst or worst[each.then].weight < each.weight:
            worst[each.then] = each
    return tuple(_finding(instructions, worst[then]) for then in sorted(worst))


def _finding(instructions: Sequence[Instruction], early: Early) -> Finding:
    then, first = instructions[early.then], instructions[early.first]
    return Finding(
        code="I104",
        message=early_message(then, early.need, early.short),
        concerns=(
            Concern(label=then.text, index=then.line, role="line of the listing"),
            Concern(label=first.text, index=first.line, role="the other one"),
        ),
        evidence=early_evidence(early.need, early.short),
    )


def early_message(then: Instruction, need: Need, short: int) -> str:
    """What an instruction does too early."""
    name = f" {row_name(min(need.rows))}" if need.rows else ""
    return f"{then.opcode} {need.why}{name} {short} wait state{'s' * (short != 1)} too early"


def early_evidence(need: Need, short: int) -> tuple[tuple[str, str | int], ...]:
    """Which rule is broken, whose it is, and what would keep it."""
    return (
        ("rule", need.rule),
        ("source", need.source),
        ("row", need.fact.source),
        ("fix", f"s_nop {short - 1} before it, or other instructions"),
    )
