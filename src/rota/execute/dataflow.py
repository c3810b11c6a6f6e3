"""What a loop by values computes: takes its waves with their times, gives which results are wrong and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from rota.execute.clock import Clock
from rota.execute.declared_loop import Declared, Moment
from rota.execute.reference import Plain, initial_value, of_parts, run_plainly
from rota.execute.register_values import FoundOperand, Watch, Waves
from rota.execute.workgroup import Workgroup
from rota.program.effects import Version

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
        return run_plainly(self.loop.spec, self.loop.semantics, self.total, self.group.size, self.group.doing)

    @cached_property
    def expected(self) -> dict[str, Floats]:
        """The right results by [wave, ...]: sums, what is left in memory, and the last version of carried values.

        A formula tells what all ops make together: it holds for waves that do all or none of those that make a value.
        """
        last = self.total - 1
        right = {name: added[0] for name, added in (*self.plain.sums.items(), *self.plain.stored.items())}
        if self.total:
            right |= {name: self.plain.made[Version(name, last)][0] for name in self.loop.carried()}
        given = self.loop.semantics.expected(self.total, self.group.size)
        return {name: given[name] if name in given and self._made_whole(name) else right[name] for name in right}

    @property
    def names(self) -> tuple[str, ...]:
        """The results."""
        return tuple(self.expected)

    def _makers(self, name: str) -> list[int]:
        """The waves that make a value, by any of its ops."""
        return sorted({wave for op in self.loop.spec.writers(name) for wave in self.group.doing(op.name)})

    def _made_whole(self, name: str) -> bool:
        return all(self.group.doing(op.name) == self._makers(name) for op in self.loop.spec.writers(name))

    def run(self, watch: Watch | None = None) -> dict[str, Floats]:
        """The results; `watch` is told the operands of each op, in program order."""
        waves = Waves(self.loop, self.group, self.clock, self.plain, self.total)
        waves.execute_all(watch)
        return {name: waves.result(name, like) for name, like in self.expected.items()}

    def wrong(self) -> Bools:
        """Which results are not the expected ones, by [result, run, wave]; NaN is never the expected one.

        Only the waves that make a result are judged by it.
        """
        import numpy as np

        found = self.run()
        wrong = np.zeros((len(found), *self.clock.steps.shape[:2]), dtype=bool)
        for number, (name, result) in enumerate(found.items()):
            right = self.expected[name]
            with np.errstate(invalid="ignore"):
                off = np.abs(result - right) > self.loop.semantics.tolerance * np.abs(right).max(initial=0.0)
            unlike = ((result != right) & off) | np.isnan(result)
            own = self._makers(name)
            wrong[number][:, own] = unlike.any(axis=tuple(range(2, unlike.ndim)))[:, own]
        return wrong

    def reason(self, number: int, run: int, wave: int) -> str:
        """Why a result is wrong: the first op that found something other than was due; else the numbers."""
        import numpy as np

        name = self.names[number]
        alone = Dataflow(self.loop, self.group, Clock(*(times[run : run + 1] for times in self.clock)), self.total)
        seen: list[str] = []

        def watch(moment: Moment, operands: Sequence[FoundOperand]) -> None:
            if not seen and moment.ordinals[wave // self.group.waves] is not None:
                seen.extend(f"{moment} {text}" for text in self._complaints(operands, wave))

        found, right = alone.run(watch)[name][0, wave], self.expected[name][wave]
        if seen:
            return seen[0]
        at = np.argmax(found.ravel() != right.ravel())
        return f"it holds {found.ravel()[at]:.9g} at {at}; {right.ravel()[at]:.9g} is due"

    def _due(self, initial: Version) -> Floats:
        """What a value holds before the loop."""
        return initial_value(self.loop.spec, self.loop.semantics, initial, self.group.size)

    def _complaints(self, operands: Sequence[FoundOperand], wave: int) -> Iterator[str]:
        import numpy as np

        made = self.plain.made
        for due, found, parts in operands:
            content = found[0, wave]
            right = self._due(due) if due.iteration < 0 else made.get(due)
            if right is not None and np.array_equal(content, of_parts(right, parts)[0, wave]):
                continue
            if np.isnan(content).any():
                yield f"reads poison in {due}"
            else:
                versions = (
                    v for v in made if v.name == due.name and np.array_equal(content, of_parts(made[v], parts)[0, wave])
                )
                yield f"wants {due} and finds {next(map(str, versions), 'another content')}"
