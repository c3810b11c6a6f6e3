"""`rota improve`: a compiled kernel with a better order of its main loop, proved and equal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli.arguments import find_object
from rota.cli.code_file import Block, block_option, compiler_option, device_option, dynamic_lds_option, find_code
from rota.cli.output import give, json_option, progress
from rota.errors import RotaError, several

if TYPE_CHECKING:
    from rota.errors import Finding
    from rota.improve.improved_kernel import ImprovedKernel


@click.command(epilog="\b\nExample:\n  rota improve kernel.hsaco -o better.hsaco")
@click.argument("kernel")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
    help="Where the better object goes: it loads and is launched as the old one.",
)  # fmt: skip
@click.option(
    "--launch", metavar="FILE.py:FUNCTION",
    help="A launch, as for rota run: both kernels are executed with it, and must leave the same bits.",
)  # fmt: skip
@dynamic_lds_option
@block_option
@device_option
@compiler_option
@json_option
@click.pass_context
def improve(
    ctx: click.Context,
    *,
    kernel: str,
    output: Path | None,
    launch: str | None,
    dynamic_lds: int | None,
    block: Block | None,
    device: str | None,
    compiler: str | None,
) -> None:
    """Find a better order of the instructions in the main loop of KERNEL, and write the object with it.

    KERNEL is a code object, assembly or HIP source, or FILE:name of one kernel in it.  Registers, addresses, LDS and
    everything outside of the loop stay; instructions change places within its longest straight part, waits get the
    counts that their new places need, and weaker ones where the proof allows it.  Where that part is the whole loop,
    some of a trip may be executed together with the trip before; such a loop stands after the code of the object.  The
    new object is read again: each instruction must compute what it did, the kernel must be proved as the old one was,
    and be predicted to be faster.  Clocks are predicted, not measured.  What isn't improved says why (I610).
    """
    from rota.improve.improved_kernel import compare_runs, improve_kernel
    from rota.targets.registry import device_named

    code, name = find_code(kernel, device=device, compiler=compiler)
    found: list[ImprovedKernel] = []
    refused: list[Finding] = []
    better = code
    for each in [code.kernel(name)] if name else list(code.kernels):
        with progress(f"improving {each.name}"):
            try:
                made = improve_kernel(
                    better, each.name, device_named(device or code.arch), block=block, dynamic_lds=dynamic_lds
                )
            except RotaError as error:
                refused += error.findings
                continue
        if launch is not None:
            compare_runs(code, made.code, each.name, find_object(launch))
        found.append(made)
        better = made.code
    if output is not None and found:
        output.write_bytes(better.hsaco)
    lines = [_describe(each, executed=launch is not None) for each in found] + [str(each) for each in refused]
    if output is not None:
        lines.append(f"written: {output}" if found else f"{output} isn't written")
    give("\n\n".join(lines), {"kernels": [_as_data(each) for each in found], "refused": refused})
    if not found:
        ctx.exit(1)


def _describe(each: ImprovedKernel, *, executed: bool) -> str:
    share = f"{100 * each.gain:.1f} % fewer (predicted)"
    lines = [
        f"{each.name}: {each.clocks:.0f} clocks a trip, before {each.before:.0f}: {share}",
        f"  moved: {each.moved} of {several(each.instructions, 'instruction')} from {each.place} on",
        *([f"  a trip ahead of the rest: {several(each.ahead, 'instruction')}"] if each.ahead else []),
        *(f"  `{was}` leaves more in flight: `{now}`" for was, now in each.weaker),
        f"  equal: each instruction computes what it did; {each.verdict.status.value} as before",
    ]
    return "\n".join([*lines, "  executed: both leave the same bits"] if executed else lines)


def _as_data(each: ImprovedKernel) -> dict[str, object]:
    return {
        "name": each.name, "place": each.place, "before": each.before, "clocks": each.clocks, "moved": each.moved,
        "ahead": each.ahead,
        "instructions": each.instructions, "weaker": [list(pair) for pair in each.weaker],
        "status": each.verdict.status.value,
    }  # fmt: skip
