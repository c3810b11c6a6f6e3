"""A loop as its author wrote it: takes a `LoopSpec` and what its ops mean, gives the values of all iterations.

One iteration after the other, in the order of declaration, without stages, buffers or time: what a schedule computes is
right if it is this.  Nothing here has seen a schedule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rota.declare.check import bad_field
from rota.declare.effects import Version
from rota.declare.values import Home, LoopOp, LoopSpec, Work
from rota.errors import Concern, DeclarationError, Finding
from rota.simulate.meaning import Meaning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ADDRESSED = (Work.LOAD, Work.FRAGMENT)
"""Work whose register operands are addresses: wrong ones bring wrong data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """All values by [1, wave, ...], tiles by [1, wave, part, slice, ...]: `made` by version, `sums` by accumulator."""

    made: dict[Version, Floats] = field(default_factory=dict)
    sums: dict[str, Floats] = field(default_factory=dict)

    def like(self, value: str) -> tuple[int, ...]:
        """The shape of a value without the axes [run, wave]."""
        return self.made[Version(value, 0)].shape[2:]


def check_spec(spec: LoopSpec) -> None:
    """What is read of an iteration is made in front of it."""
    for place, op in enumerate(spec.ops):
        for read in op.reads:
            if read.distance == 0 and not set(spec.writers(read.value)) <= set(spec.ops[:place]):
                raise bad_field(spec, "ops", read.value, f"a value that is made in front of {op.name}", op.source)


def data_operands(spec: LoopSpec, op: LoopOp, operands: tuple[Floats, ...]) -> tuple[Floats, ...]:
    """The operands that are data; a load or a read of LDS has addresses in registers as well."""
    if op.work not in ADDRESSED:
        return operands
    homes = [spec.value(read.value).home for read in op.reads]
    return tuple(found for found, home in zip(operands, homes, strict=True) if home is Home.LDS)


def results_of(meaning: Meaning, op: LoopOp, operands: tuple[Floats, ...]) -> list[Floats]:
    """What the op makes, an array per value that it writes; poison may be among the operands, and warns of nothing."""
    import numpy as np

    with np.errstate(all="ignore"):
        results = [np.asarray(result) for result in meaning.results(op, operands)]
    if len(results) != len(op.writes) or any(result.ndim < 2 for result in results):
        raise DeclarationError(
            Finding(
                code="D104",
                message=f"{type(meaning).__name__} gives {len(results)} results of {op.name}; "
                f"expected {len(op.writes)}, each with the axes [run, wave]",
                concerns=(Concern(label=op.name, source=op.source),),
                evidence=(("shapes", ", ".join(str(result.shape) for result in results)),),
            )
        )
    return results


def run_plainly(spec: LoopSpec, meaning: Meaning, total: int, waves: int) -> Plain:
    """Iterations 0 .. total - 1; the first is always run, to know the shapes, but adds nothing if there is none."""
    run = _PlainRun(spec, meaning, waves)
    for iteration in range(max(total, 1)):
        for op in spec.ops:
            run.execute(op, iteration)
    if total == 0:
        for value, added in run.plain.sums.items():
            run.plain.sums[value] = added * 0.0
    return run.plain


def initial_value(spec: LoopSpec, meaning: Meaning, version: Version, waves: int) -> Floats:
    """A carried value of an iteration before the first, as an operand by [1, wave, ...]."""
    import numpy as np

    value = np.asarray(meaning.initial(version.name, version.iteration), dtype=np.float64)
    parts = (len(spec.writers(version.name)), waves) if spec.value(version.name).home is Home.LDS else ()
    return np.broadcast_to(value, (1, waves, *parts, *value.shape))


class _PlainRun:
    """Executes ops one by one, for all waves."""

    def __init__(self, spec: LoopSpec, meaning: Meaning, waves: int) -> None:
        self.spec = spec
        self.meaning = meaning
        self.waves = waves
        self.plain = Plain()

    def execute(self, op: LoopOp, iteration: int) -> None:
        import numpy as np

        if op.work is Work.LOAD:
            for value in op.writes:
                part = self.spec.writers(value).index(op)
                brought = self.meaning.loaded(value, part, iteration, self.waves)
                if self.spec.value(value).home is Home.LDS:
                    self._fill(op, Version(value, iteration), brought)
                else:
                    self.plain.made[Version(value, iteration)] = brought[np.newaxis]
            return
        operands = tuple(self._operand(Version(read.value, iteration - read.distance)) for read in op.reads)
        data = data_operands(self.spec, op, operands)
        for value, result in zip(op.writes, results_of(self.meaning, op, data), strict=True):
            home, own = self.spec.value(value).home, np.broadcast_to(result, (1, self.waves, *result.shape[2:]))
            if home is Home.ACCUMULATOR:
                self.plain.sums[value] = self.plain.sums.get(value, 0.0) + own
            elif home is Home.LDS:
                self._fill(op, Version(value, iteration), own[0])
            else:
                self.plain.made[Version(value, iteration)] = own

    def _operand(self, version: Version) -> Floats:
        if version.iteration < 0:
            return initial_value(self.spec, self.meaning, version, self.waves)
        return self.plain.made[version]

    def _fill(self, op: LoopOp, version: Version, slices: Floats) -> None:
        """One part of a tile, as every wave will read it."""
        import numpy as np

        writers = self.spec.writers(version.name)
        before = self.plain.made.get(version, np.full((1, self.waves, len(writers), *slices.shape), np.nan))
        before[:, :, writers.index(op)] = slices
        self.plain.made[version] = before
