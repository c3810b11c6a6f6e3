"""What a loop declared by values computes: takes its waves with their times, gives which results are wrong and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from rota.declare.effects import Version
from rota.simulate.clock import Clock
from rota.simulate.declared import Declared, Moment
from rota.simulate.reference import Plain, initial_value, run_plainly
from rota.simulate.trace import Workgroup
from rota.simulate.waves import Operand, Watch, Waves

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]


class Dataflow:
    """One execution of a declared loop in all runs of a clock."""

    def __init__(self, loop: Declared, group: Workgroup, clock: Clock, total: int) -> None:
        self.loop = loop
        self.group = group
        self.clock = clock
        self.total = total

    @cached_property
    def plain(self) -> Plain:
        """The same iterations one after the other."""
        return run_plainly(self.loop.spec, self.loop.meaning, self.total, self.group.size)

    @cached_property
    def expected(self) -> dict[str, Floats]:
        """The right results by [wave, ...]: every accumulator's sum, and the last version of every carried value."""
        last = self.total - 1
        right = {name: added[0] for name, added in self.plain.sums.items()}
        if self.total:
            right |= {name: self.plain.made[Version(name, last)][0] for name in self.loop.carried()}
        given = self.loop.meaning.expected(self.total, self.group.size)
        return {name: given.get(name, value) for name, value in right.items()}

    def run(self, watch: Watch | None = None) -> dict[str, Floats]:
        """The results; `watch` is told the operands of each op, in program order."""
        waves = Waves(self.loop, self.group, self.clock, self.plain, self.total)
        waves.execute_all(watch)
        return {name: waves.result(name, like) for name, like in self.expected.items()}

    def wrong(self) -> Bools:
        """Which results are not the expected ones, by [result, run, wave]; NaN is never the expected one."""
        import numpy as np

        found = self.run()
        wrong = np.zeros((len(found), *self.clock.steps.shape[:2]), dtype=bool)
        for number, (name, result) in enumerate(found.items()):
            right = self.expected[name]
            with np.errstate(invalid="ignore"):
                off = np.abs(result - right) > self.loop.meaning.tolerance * np.abs(right).max(initial=0.0)
            unlike = ((result != right) & off) | np.isnan(result)
            wrong[number] = unlike.any(axis=tuple(range(2, unlike.ndim)))
        return wrong

    def reason(self, name: str, run: int, wave: int) -> str:
        """Why a result is wrong: the first op that found something else than was due; else the numbers."""
        import numpy as np

        alone = Dataflow(self.loop, self.group, Clock(*(times[run : run + 1] for times in self.clock)), self.total)
        seen: list[str] = []

        def watch(moment: Moment, operands: Sequence[Operand]) -> None:
            if not seen and moment.ordinals[wave // self.group.waves] is not None:
                seen.extend(f"{moment} {text}" for text in self._complaints(operands, wave))

        found, right = alone.run(watch)[name][0, wave], self.expected[name][wave]
        if seen:
            return seen[0]
        number = np.argmax(found.ravel() != right.ravel())
        return f"it holds {found.ravel()[number]:.9g} at {number}; {right.ravel()[number]:.9g} is due"

    def _due(self, initial: Version) -> Floats:
        """What a value holds before the loop."""
        return initial_value(self.loop.spec, self.loop.meaning, initial, self.group.size)

    def _complaints(self, operands: Sequence[Operand], wave: int) -> Iterator[str]:
        import numpy as np

        made = self.plain.made
        for due, found in operands:
            content = found[0, wave]
            right = self._due(due)[0, wave] if due.iteration < 0 else made.get(due, found * np.nan)[0, wave]
            if np.array_equal(content, right):
                continue
            if np.isnan(content).any():
                yield f"reads poison in {due}"
            else:
                versions = (v for v in made if v.name == due.name and np.array_equal(content, made[v][0, wave]))
                yield f"wants {due} and finds {next(map(str, versions), 'another content')}"
