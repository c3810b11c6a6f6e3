"""A loop out of machine code: takes FILE or FILE:kernel, gives its program and what the cycle model predicts for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.cli.code_file import named_code
from rota.cli.machine_code import Block
from rota.cli.output import tell
from rota.cli.picture import Predicted
from rota.cli.progress import progress

if TYPE_CHECKING:
    from rota.program.lowered import LoweredProgram


def lifted_program(text: str, *, block: Block | None, device: str | None) -> LoweredProgram:
    """The main loop of the kernel, what is assumed about it told."""
    from rota.lift.lifted_loop import lift_kernel
    from rota.targets.registry import device_named

    code, name = named_code(text, device=device)
    facts = code.kernel(name)
    chosen = device_named(device or facts.arch)
    with progress(f"lifting {facts.name}"):
        program = lift_kernel(facts, code.instructions(facts.name), chosen, block=block).program
    tell(f"note: {program.origin}")
    return program


def predicted_code(text: str, *, block: Block | None, device: str | None, band: bool = True) -> Predicted:
    """The loop's program with its predicted run."""
    from rota.cycles.predict import predict
    from rota.cycles.record import record

    program = lifted_program(text, block=block, device=device)
    with progress(f"predicting {program.name}"):
        return Predicted(program, record(program), predict(program, band=band))
