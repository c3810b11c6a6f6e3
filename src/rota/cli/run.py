"""`rota run`: takes a kernel, gives whether machine code for it computes what it should, without a GPU."""

from __future__ import annotations

import click

from rota.cli.kernel_argument import find_kernel, kernel_argument, set_option
from rota.cli.launched import run_launched
from rota.cli.machine_code import built, compiler_option
from rota.cli.output import format_option, give, in_full
from rota.cli.progress import progress
from rota.emit.forms import gemm_form

_MOST_TRIPS = _MOST_SEEDS = 1000


def _numbers(_: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    """Numbers of trips, separated by commas; each once."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) <= _MOST_TRIPS for word in words):
        problem = f"{text!r} is no list of numbers from 0 to {_MOST_TRIPS}, as 0,1,2,5"
        raise click.BadParameter(problem, param=parameter)
    return tuple(dict.fromkeys(map(int, words)))


@click.command(
    epilog="\b\nExamples:\n  rota run gemm_small --trips 0,1 --seeds 0"
    "\n  rota run gemm_small_mi300x --trips 1 --seeds 0 --compiler ziglang"
)
@kernel_argument
@set_option
@click.option("--trips", callback=_numbers, default="0,1,2,5", show_default=True, help="How often the loop goes round.")
@click.option(
    "--seeds",
    type=click.IntRange(0, _MOST_SEEDS),
    default=4,
    show_default=True,
    help="Drawn interleavings of the waves, beside the adversarial ones: two for each wave, and one.",
)
@click.option("--launch", metavar="FILE.py:FUNCTION", help="KERNEL is a file; the function describes its launch.")
@click.option("--name", metavar="NAME", help="Which kernel of the file, if it has several.")
@click.option("--device", metavar="DEVICE", help="What a HIP source is compiled for.")
@click.option("--orders", type=click.IntRange(1, _MOST_SEEDS), default=20, show_default=True, help="Of a launch.")
@compiler_option
@format_option
def run(
    *,
    kernel: str,
    settings: tuple[str, ...],
    trips: tuple[int, ...],
    seeds: int,
    launch: str | None,
    name: str | None,
    device: str | None,
    orders: int,
    compiler: str | None,
) -> None:
    """Execute KERNEL's machine code on the CPU.

    The emitted GEMM goes through a compiler, and its instructions are executed one by one: waves interleaved
    adversarially and at random, memory landing as late as waits allow, registers and LDS poisoned until then.  C must
    equal NumPy's; numbers of full precision, in 2 x 3 workgroups, within the rounding of fp32 sums.

    With --launch, KERNEL is a code object (or a HIP source) of any origin, as in rota run kernel.hsaco --launch
    launches.py:matmul.  The function returns a dict with args, grid, block and, optionally, dynamic_lds and expected:
    arrays by the number of their argument.
    """
    if launch is not None:
        right = run_launched(kernel, launch, name=name, device=device, compiler=compiler, orders=orders)
        click.get_current_context().exit(0 if right else 1)
    from rota.audit.execution import load_emitted

    chosen = find_kernel(kernel, settings)
    compiled, code = built(chosen, compiler)
    gemm = load_emitted(compiled, chosen.geometry(), code, **gemm_form(chosen.shape()))
    results = []
    for count in trips:
        with progress(f"running {chosen.name} with {count} trips"):
            results.append(gemm.run_trips(count, seeds))
    right = all(result.right == result.runs for result in results)
    lines = [f"{chosen.name} by {code.toolchain}, {compiled.machine.arch}", *(f"  {result}" for result in results)]
    findings = tuple({finding.code: finding for result in results for finding in result.findings}.values())
    give(
        "\n\n".join(filter(None, ["\n".join(lines), in_full(findings)])),
        {"ok": right, "runs": results, "findings": findings},
    )
    if not right:
        click.get_current_context().exit(1)
