"""`rota audit`: takes a kernel, gives whether a compiler's machine code for it is still the schedule."""

from __future__ import annotations

import click

from rota.cli.kernel_argument import find_kernel, kernel_argument, set_option
from rota.cli.machine_code import built, compiler_option
from rota.cli.output import give, json_option
from rota.cli.progress import progress
from rota.cli.with_options import told_options, with_option
from rota.emit.forms import gemm_form, is_attention
from rota.emit.whole.whole_options import parse_options


@click.command(
    epilog="\b\nExamples:\n  rota audit ping_pong\n  rota audit gemm_small --set instructions=false"
    "\n  rota audit four_wave --form kernel --with output=bf16"
)
@kernel_argument
@set_option
@click.option(
    "--form",
    type=click.Choice(["hip", "kernel"]),
    default="hip",
    show_default=True,
    help="What is compiled: the loop and what runs it, or a whole kernel, in which the loop is looked for.",
)
@with_option
@compiler_option
@json_option
def audit(*, kernel: str, settings: tuple[str, ...], form: str, options: tuple[str, ...], compiler: str | None) -> None:
    """Compile KERNEL and compare the machine code.

    The emitted GEMM goes through a compiler; order, operands, waits, barriers, registers and spills of its machine code
    are compared with the schedule, and the proof is repeated on the machine code's own waits and barriers.
    """
    from rota.audit.audit import audit_attention, audit_gemm

    told = told_options(options)
    products = parse_options(told).products if form == "kernel" else 1
    chosen = find_kernel(kernel, settings)
    compiled, code = built(chosen, compiler, form, told)
    name = code.kernels[0].name if form == "kernel" else None
    with progress(f"auditing {chosen.name}"):
        if form == "kernel" and is_attention(compiled):
            found = audit_attention(compiled, code, kernel=name)
        else:
            found = audit_gemm(
                compiled, chosen.geometry(), code, kernel=name, products=products, **gemm_form(chosen.shape())
            )
    give(str(found), {"ok": found.clean, "exact": found.exact, "audit": found})
    if not found.clean:
        click.get_current_context().exit(1)
