"""Wait states without execution: takes a kernel's instructions, gives a finding for each that comes too early.

Every path of the control flow that leads to an instruction is followed backwards, as far as any wait state reaches;
whether a wave can take it is not asked.  A path ends where a function does: what a caller left is not known, and a
call's return is not followed.  The same table of pairs decides while a kernel runs (`rota.isa.hazards.hazard`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rota.errors import Concern, Finding
from rota.isa.code.disassembly import Instruction
from rota.isa.hazards.spacing import NO_ROWS, Need, Rows, Spacing, spacing_of
from rota.isa.hazards.spacing_rules import needs
from rota.isa.wave.operand import ACC, EXEC, M0, SCALAR, VCC
from rota.targets.architecture import Architecture
from rota.targets.wait_states import Hazards

_LEAVES = re.compile(r"^s_(?:branch|endpgm|setpc|swappc|rfe)")  # what follows isn't what comes next
_MOST_PATHS, _FREE_PATHS = 20, 20_000  # for each instruction of a kernel; real ones have a few
_SCALARS = {VCC: "vcc_lo", VCC + 1: "vcc_hi", M0: "m0", EXEC: "exec_lo", EXEC + 1: "exec_hi"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """An instruction, by its number, that comes `short` wait states too early behind another."""

    first: int
    then: int
    short: int
    need: Need


def row_name(row: int) -> str:
    """A register's name in assembly."""
    if row < SCALAR:
        return f"v{row}" if row < ACC else f"a{row - ACC}"
    return _SCALARS.get(row - SCALAR, f"s{row - SCALAR}")


def too_early(
    recent: Iterable[tuple[int, Spacing]], then: Spacing, hazards: Hazards
) -> Iterator[tuple[Spacing, int, Need]]:
    """What `then` comes too early for; `recent` are the wait states passed since each instruction, the newest first."""
    taken: Rows = NO_ROWS  # by MFMAs that wrote the rows later
    for passed, first in recent:
        for need in needs(first, then, hazards):
            if need.states > passed and not (need.matrix and need.rows <= taken):
                yield first, need.states - passed, need
        if first.passes:
            taken |= first.writes


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

    def early(self, numbers: Iterable[int] | None = None) -> tuple[Early, ...]:
        """The instructions, among those numbered, that come too early: each once for each one in front."""
        found: dict[tuple[int, int], Early] = {}
        left = _FREE_PATHS + _MOST_PATHS * len(self.spacings)
        for then in range(len(self.spacings)) if numbers is None else numbers:
            paths = list(islice(self._paths(then), max(left, 0) + 1))
            left -= len(paths)
            for path in paths if left >= 0 else self._places(then):
                recent = [(passed, self.spacings[number]) for passed, number in path]
                place = {id(self.spacings[number]): number for _, number in path}
                for first, short, need in too_early(recent, self.spacings[then], self._hazards):
                    key = (place[id(first)], then)
                    if key not in found or found[key].short < short:
                        found[key] = Early(first=key[0], then=then, short=short, need=need)
        return tuple(found.values())

    def _paths(self, then: int) -> Iterator[list[tuple[int, int]]]:
        """The ways back from an instruction: numbers with the wait states passed since, only those that may matter."""
        stack: list[tuple[int, int, list[tuple[int, int]]]] = [(before, 0, []) for before in self._before[then]]
        if not stack:
            return
        seen: set[tuple[int, int, tuple[tuple[int, int], ...]]] = set()
        while stack:
            number, passed, path = stack.pop()
            while True:
                if self._reach[number] > passed:
                    path = [*path, (passed, number)]  # other ways share what came before
                passed += self.spacings[number].states
                before = self._before[number]
                if passed >= self._farthest or not before:
                    yield path
                    break
                for other in before[1:]:
                    key = (other, passed, tuple(path))
                    if key not in seen:
                        seen.add(key)
                        stack.append((other, passed, path))
                number = before[0]

    def _places(self, then: int) -> Iterator[list[tuple[int, int]]]:
        """Every instruction that stands before one, each alone: no fewer are too early than on whole paths.

        For code with so many ways to an instruction that they can't be gone through one by one.
        """
        seen = {(before, 0) for before in self._before[then]}
        stack = list(seen)
        while stack:
            number, passed = stack.pop()
            if self._reach[number] > passed:
                yield [(passed, number)]
            passed += self.spacings[number].states
            if passed < self._farthest:
                stack += (new := {(before, passed) for before in self._before[number]} - seen)
                seen |= new

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
        if each.then not in worst or worst[each.then].short < each.short:
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
        evidence=(("fix", f"s_nop {early.short - 1} before it, or other instructions"),),
    )


def early_message(then: Instruction, need: Need, short: int) -> str:
    """What an instruction does too early."""
    name = f" {row_name(min(need.rows))}" if need.rows else ""
    return f"{then.opcode} {need.why}{name} {short} wait state{'s' * (short != 1)} too early"
