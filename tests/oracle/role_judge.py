"""Proof and oracle of programs with roles, side by side: takes seeds, gives what both say of drawn programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random

from rota import RotaError, verify
from tests.oracle.draw_lowered import draw_lowered
from tests.oracle.edit_lowered import tightened
from tests.oracle.malform_lowered import edited
from tests.oracle.role_form import explained
from tests.oracle.role_machine import LATER, TRIPS, all_runs, check, judge
from tests.oracle.role_search import MOST_STATES, TooManyStatesError, goes_wrong
from tests.oracle.role_steps import Draft, Streams, WrongError

UNMADE, RIGHT, WRONG = "refused at construction", "proved and right", "refused and wrong"
MISSED, ALARM, BARE = "PROVED BUT WRONG", "refused but right", "bare exception"
CLASSES = (UNMADE, RIGHT, WRONG, MISSED, ALARM, BARE)
DECIDED, TOO_MANY = "wrong in every execution", "too many states"
BOTH_RIGHT, BOTH_WRONG, DIFFERENT = "both right", "both wrong", "DIFFERENT"
_EDITS = 24
_DEEP = 8  # one program in so many is looked at for more trips though both find it right
_SEARCHED = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A program: `seed` draws the base, `number` counts its edits, of which 0 is none."""

    seed: int
    number: int
    edit: str
    draft: Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the proof and the oracle say about a program; `codes` are those of the proof, or of the constructor."""

    drawn: Drawn
    name: str
    codes: tuple[str, ...]
    wrong: WrongError | None

    @property
    def why(self) -> str:
        """What explains that the proof refuses a right program; nothing where nothing does."""
        return explained(self.drawn.draft, self.codes)

    @property
    def kind(self) -> str:
        """The obligation that the oracle finds broken, if any."""
        return self.wrong.kind if self.wrong else ""

    def __str__(self) -> str:
        drawn = self.drawn
        said = ", ".join(self.codes) or "clean"
        return (
            f"{self.name}: seed {drawn.seed}, edit {drawn.number} ({drawn.edit or 'none'}): "
            f"proof {said}; oracle {self.wrong or 'right'} {' '.join(getattr(self.wrong, '__notes__', ()))}"
        )


@dataclass(slots=True, kw_only=True)
class Tally:
    """Verdicts of many programs."""

    counts: Counter[str] = field(default_factory=Counter)
    codes: Counter[tuple[str, tuple[str, ...], str]] = field(default_factory=Counter)
    disputed: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        """One more."""
        self.counts[verdict.name] += 1
        self.codes[verdict.name, verdict.codes, verdict.kind] += 1
        if verdict.name in (MISSED, ALARM, BARE) or (verdict.name == UNMADE and verdict.wrong is None):
            self.disputed.append(verdict)


def draw(seed: int, edits: int = _EDITS) -> Iterator[Drawn]:
    """A program that the oracle finds right, and edits of it."""
    random = Random(seed)
    base = tightened(random, draw_lowered(random))
    yield Drawn(seed=seed, number=0, edit="", draft=base)
    for number in range(1, edits + 1):
        told, draft = edited(random, base)
        if told:
            yield Drawn(seed=seed, number=number, edit=told, draft=draft)


def draw_many(programs: int, first_seed: int = 0) -> Iterator[Drawn]:
    """So many programs, from as many seeds as it takes."""
    drawn = (each for seed in count(first_seed) for each in draw(seed))
    return (each for each, _ in zip(drawn, range(programs), strict=False))


def compare(drawn: Drawn) -> Verdict:
    """Both verdicts."""
    wrong = judge(drawn.draft, TRIPS)
    try:
        program = drawn.draft.build()
    except RotaError as error:
        return Verdict(drawn=drawn, name=UNMADE, codes=_codes(error), wrong=wrong)
    except Exception as error:  # noqa: BLE001  # which is what is counted
        return Verdict(drawn=drawn, name=BARE, codes=(f"{type(error).__name__} at construction",), wrong=wrong)
    try:
        codes = tuple(sorted({finding.code for finding in verify(program).errors}))
    except RotaError as error:
        codes = _codes(error)
    except Exception as error:  # noqa: BLE001  # which is what is counted
        return Verdict(drawn=drawn, name=BARE, codes=(type(error).__name__,), wrong=wrong)
    if wrong is None and (codes or drawn.number % _DEEP == 0):
        wrong = judge(drawn.draft, LATER)
    name = (WRONG if wrong else ALARM) if codes else (MISSED if wrong else RIGHT)
    return Verdict(drawn=drawn, name=name, codes=codes, wrong=wrong)


def confirm(drawn: Drawn, *, every: bool = False, most: int = MOST_STATES, searched: Iterable[int] = _SEARCHED) -> str:
    """Does the search through all executions of so many trips say what the oracle says?"""
    try:
        streams = Streams(drawn.draft)
        for trips in searched:
            streams.check_counts(trips)
    except WrongError:
        return DECIDED
    for runs in (*((trips,) for trips in searched), *(((1, 1),) if drawn.draft.reentrant else ())):
        try:
            found = goes_wrong(streams, runs, every=every, most=most)
        except TooManyStatesError:
            return TOO_MANY
        try:
            check(streams, runs)
        except WrongError:
            return BOTH_WRONG if found else DIFFERENT
        if found:
            return DIFFERENT
    return BOTH_RIGHT


def execution(drawn: Drawn) -> list[str]:
    """The events of an execution of few trips that goes wrong; none where there is none, or where all do."""
    try:
        streams = Streams(drawn.draft)
        for trips in _SEARCHED:
            streams.check_counts(trips)
            for runs in all_runs(drawn.draft, trips):
                found = goes_wrong(streams, runs)
                if found:
                    return found
    except (TooManyStatesError, WrongError):
        pass
    return []


def _codes(error: RotaError) -> tuple[str, ...]:
    return tuple(sorted({finding.code for finding in error.findings}))
