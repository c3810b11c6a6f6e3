"""Proof and oracle side by side: takes drawn programs, gives how often they agree, and each case where they don't."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random

from rota.program.lowered import LoweredProgram
from rota.verify.prove import verify
from tests.oracle.draw_roles import draw_roles
from tests.oracle.draw_stages import draw_by_stages
from tests.oracle.draw_values import draw_placed, draw_solved
from tests.oracle.edits import edited
from tests.oracle.oracle import agrees, first_wrong

FRONT_ENDS: dict[str, Callable[[Random], LoweredProgram]] = {
    "by stages": draw_by_stages,
    "by values": draw_placed,
    "by values, solved": draw_solved,
    "by roles": draw_roles,
}
_LATER = range(5, 25)  # where the proof refuses what may go wrong only after more trips, and of some seeds
_LONG = 40
_EDITS, _FEW = 25, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A program: `seed` draws the base, `number` counts its edits, of which 0 is none."""

    front_end: str
    seed: int
    number: int
    edit: str
    program: LoweredProgram


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the proof and the oracle say about a program."""

    drawn: Drawn
    codes: tuple[str, ...]
    wrong: str
    kind: str

    @property
    def name(self) -> str:
        """The class of the verdict."""
        if self.codes:
            return "both refuse" if self.kind else "refused but right"
        return "proved but wrong" if self.kind else "both accept"

    def __str__(self) -> str:
        drawn = self.drawn
        where = f"{drawn.front_end}, seed {drawn.seed}, edit {drawn.number} ({drawn.edit or 'none'})"
        return f"{self.name}: {where}: proof {', '.join(self.codes) or 'clean'}; oracle {self.wrong or 'right'}"


@dataclass(slots=True, kw_only=True)
class Tally:
    """Verdicts of many programs."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    disputed: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        """One more."""
        self.counts[verdict.drawn.front_end, verdict.name] += 1
        if not verdict.name.startswith("both"):
            self.disputed.append(verdict)


def draw(front_end: str, seed: int, edits: int = _EDITS) -> Iterator[Drawn]:
    """A program and edits of it, few if it is wrong to begin with."""
    random = Random(seed)
    base = FRONT_ENDS[front_end](random)
    yield Drawn(front_end=front_end, seed=seed, number=0, edit="", program=base)
    for number in range(1, (edits if agrees(base) else min(edits, _FEW)) + 1):
        edit, program = edited(random, base)
        if edit:
            yield Drawn(front_end=front_end, seed=seed, number=number, edit=edit, program=program)


def judge(drawn: Drawn) -> Verdict:
    """Both verdicts."""
    report = verify(drawn.program)
    found = first_wrong(drawn.program)
    if found is None and (not report.clean or drawn.seed % _LONG == 0):
        found = first_wrong(drawn.program, _LATER)
    return Verdict(
        drawn=drawn,
        codes=tuple(sorted({finding.code for finding in report.errors})),
        wrong=f"{found[0]} trips: {found[1]}" if found else "",
        kind=found[1].kind if found else "",
    )


def judge_many(front_end: str, programs: int, first_seed: int = 0) -> Iterator[Verdict]:
    """So many programs of a front end, from as many seeds as it takes."""
    judged = 0
    for seed in count(first_seed):
        for drawn in draw(front_end, seed, _EDITS):
            if judged == programs:
                return
            yield judge(drawn)
            judged += 1
