"""`rota audit`: takes a kernel, gives whether a compiler's machine code for it is still the schedule."""

from __future__ import annotations

import click

from rota.cli.emit import source_of
from rota.cli.kernel import compiled_kernel, find_kernel, kernel_argument, set_option
from rota.cli.output import give, json_option
from rota.cli.progress import progress


@click.command(epilog="\b\nExamples:\n  rota audit ping_pong\n  rota audit gemm_small --set instructions=true")
@kernel_argument
@set_option
@click.option("--compiler", metavar="NAME", help="A clang++ by path or name, or ziglang; by default the first found.")
@json_option
def audit(kernel: str, settings: tuple[str, ...], compiler: str | None) -> None:
    """Compile KERNEL and compare the machine code.

    The emitted GEMM goes through a compiler; order, operands, waits, barriers, registers and spills of its machine code
    are compared with the schedule, and the proof is made again on the machine code's own waits and barriers.
    """
    from rota.audit.audit import audit_gemm
    from rota.audit.toolchain import find_toolchain

    chosen = find_kernel(kernel, settings)
    toolchain = find_toolchain(compiler)
    compiled = compiled_kernel(chosen)
    shape = chosen.shape()
    with progress(f"{toolchain.name} compiles {chosen.name}"):
        code = toolchain.compile(source_of(chosen, compiled), compiled.machine.arch)
        found = audit_gemm(compiled, chosen.geometry(), code, waves=None if shape is None else shape.waves)
    give(str(found), {"ok": found.clean, "exact": found.exact, "audit": found})
    if not found.clean:
        click.get_current_context().exit(1)
