"""A kernel's predicted run: takes a `Kernel`, gives its schedule, timeline and prediction, assumptions told."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rota.cli.kernel_argument import compiled_kernel
from rota.cli.output import tell
from rota.cli.progress import progress
from rota.kernels.kernel import Kernel

if TYPE_CHECKING:
    from rota.cycles.predict import Prediction
    from rota.cycles.timeline import Timeline
    from rota.program.lowered import Lowerable


class Predicted(NamedTuple):
    """A schedule, what the model says it does clock by clock, and in figures."""

    schedule: Lowerable
    timeline: Timeline
    prediction: Prediction


def predicted(kernel: Kernel, *, band: bool = True) -> Predicted:
    """Compile, run the cycle model; a body declared in tiles says what shape it was given.

    The band needs a run for both ends of every estimate.
    """
    from rota.cycles.predict import predict
    from rota.cycles.record import record

    compiled = compiled_kernel(kernel)
    shape = kernel.shape()
    if shape is not None and kernel.waves is None:
        sides = f"{shape.geometry.BM}x{shape.geometry.BN}x{shape.geometry.BK}"
        tell(
            f"note: the body is declared in tiles; predicted for {sides}, {shape.waves} waves, {shape.instruction} "
            "(--set geometry.BM=..., waves=..., instruction=... say otherwise)"
        )
    with progress(f"predicting {kernel.name}"):
        return Predicted(compiled, record(compiled, shape), predict(compiled, shape, band=band))
