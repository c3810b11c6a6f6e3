"""A loop as one wave issues it: takes a program's instructions, gives the steps of each entry of its kernel.

One wave stands for all: what they share, it holds as long as all of them together, and at a barrier it waits for the
last SIMD's turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.cycles.instructions import CODE, SCALAR, Code, ModelInstruction, written_loop
from rota.cycles.parameters import Parameters
from rota.program.kinds import OpKind, Unit

MATH, LDS, GLOBAL, WAIT, TURNS, RUN = range(6)
"""Forms of a step."""
MATRIX, VECTOR = 0, 1
"""Math units."""
_FORMS = {Unit.MMA: MATH, Unit.VALU: MATH, Unit.LDS: LDS, Unit.DMA: GLOBAL}
_KINDS = tuple(OpKind)


class IssueStep(NamedTuple):
    """One instruction, `lead` clocks after the one before; then as in `ModelInstruction`, for all waves together.

    `place` is the math unit or the counter.
    """

    form: int
    lead: int = 0
    held: int = 0
    after: int = 0
    needs: tuple[tuple[int, int], ...] = ()
    makes: tuple[int, ...] = ()
    place: int = 0


class IssueRun(NamedTuple):
    """Math instructions as one step: only the first may need something, and only the last makes something.

    The last is issued `rest` clocks after the first, `every` clocks after the one before it.
    """

    form: int
    lead: int
    first: IssueStep
    makes: tuple[int, ...]
    rest: int
    every: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedLoop:
    """The entries of a kernel as steps, and what a wave needs to know of its machine.

    `edge` is the time that the loop's edge takes, `latency` that of a load.  Counters hold so many tokens, the last one
    stands for none; `pending` are tokens that are taken when the loop begins.  No trip takes less than `least` clocks.
    """

    turn: int
    latency: int
    edge: int
    fused_waits: bool
    turns_are_scarce: bool
    registers: int
    holds: tuple[int, ...]
    pending: tuple[int, ...]
    entries: tuple[tuple[IssueStep | IssueRun, ...], ...]
    least: int


def paced_loop(code: Code, parameters: Parameters) -> PacedLoop:
    """The kernel of a program whose waves all run the same entries."""
    written = written_loop(code, 0)
    reader = _Reader(code, parameters)
    holds = (*(counter.holds.value for counter in code.counters), 1 << 62)
    pending = [0] * len(holds)
    for step in reader.steps(written.ahead):
        if step.form in (LDS, GLOBAL):
            pending[step.place] += 1
    single = [list(reader.steps(each)) for each in written.entries]
    steps = [step for each in single for step in each]
    turn, edge = parameters.turn, parameters.turn * parameters.loop_edge
    matrix = sum(step.held for step in steps if (step.form, step.place) == (MATH, MATRIX))
    turns = sum(step.lead + turn * (step.form != TURNS) for step in steps) + edge
    return PacedLoop(
        turn=turn,
        latency=parameters.dma_latency,
        edge=edge,
        fused_waits=code.fused_waits,
        turns_are_scarce=turns > matrix,
        registers=len(code.registers),
        holds=holds,
        pending=tuple(pending),
        entries=tuple(tuple(reader.gathered(each)) for each in single),
        least=max(turns, matrix),
    )


class _Reader:
    """Instructions as steps."""

    def __init__(self, code: Code, parameters: Parameters) -> None:
        self.turn, self.counters = parameters.turn, len(code.counters) + 1
        self.computed = [counter < 0 for counter in code.register_counters]
        self.waves, self.sharers = code.waves, -(-code.waves // parameters.simds)
        # A wave of the first SIMD leaves at its next turn after the last one's arrival and the barrier's own time; of
        # waves that share a matrix unit each arrives an instruction's time behind the one before.
        longest = max((each.held for each in code.instructions[0] if each.kind == CODE[OpKind.MMA]), default=0)
        late = parameters.simds - 1 + longest * (self.sharers - 1)
        self.barrier = -(-(parameters.barrier + late) // self.turn) * self.turn

    def steps(self, instructions: Iterable[ModelInstruction]) -> Iterator[IssueStep]:
        """Instructions that only take turns count as time ahead of the next."""
        lead = 0
        for instruction in instructions:
            step = self._step(instruction)
            if step.form == TURNS:
                lead += step.lead
            else:
                yield step._replace(lead=lead)
                lead = 0
        if lead:
            yield IssueStep(TURNS, lead)

    def gathered(self, steps: Iterable[IssueStep]) -> Iterator[IssueStep | IssueRun]:
        """A run of equal math instructions becomes one step: an entry may have hundreds of them."""
        run: list[IssueStep] = []
        for step in steps:
            if run and not (
                step.form == MATH == run[-1].form
                and (step.held, step.after, step.place) == (run[-1].held, run[-1].after, run[-1].place)
                and not (step.lead or step.needs or run[-1].makes)
            ):
                yield self._as_one(run)
                run = []
            run.append(step)
        if run:
            yield self._as_one(run)

    def _as_one(self, run: Sequence[IssueStep]) -> IssueStep | IssueRun:
        first, *others = run
        if not others:
            return first
        every = max(-(-first.held // self.turn), 1) * self.turn
        return IssueRun(RUN, first.lead, first, run[-1].makes, every * len(others), every)

    def _step(self, instruction: ModelInstruction) -> IssueStep:
        kind = None if instruction.kind >= SCALAR else _KINDS[instruction.kind]
        _, _, held, after, needs, makes, counter = instruction
        counter %= self.counters  # what nothing counts is of the last
        if kind is OpKind.BARRIER:
            return IssueStep(TURNS, self.barrier)
        if kind is OpKind.WAIT:
            return IssueStep(WAIT, held=held, place=counter)
        if kind is None or (kind.unit not in _FORMS and kind is not OpKind.NOTHING):
            return IssueStep(TURNS, self.turn)
        computed = tuple(need for need in needs if self.computed[need[0]])  # waits see to the others
        form = _FORMS.get(kind.unit, MATH)
        if form == MATH:
            matrix = kind.unit is Unit.MMA
            busy = held if matrix or kind is OpKind.TRANSCENDENTAL else self.turn
            return IssueStep(form, 0, busy * self.sharers, after, computed, makes, MATRIX if matrix else VECTOR)
        every = self.waves
        return IssueStep(form, 0, held * every, after if form == LDS else after * every, computed, makes, counter)
