"""`rota run`: execute machine code without a GPU. `rota audit`: is it still the schedule?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli.arguments import find_function, find_kernel, kernel_argument, parse_with, set_option, with_option
from rota.cli.code_file import build_code, compiler_option
from rota.cli.output import format_option, give, in_full, json_option, progress
from rota.emit.forms import gemm_form, is_attention
from rota.emit.whole.whole_options import parse_options

if TYPE_CHECKING:
    from rota.isa.launch.loaded_kernel import LoadedKernel


def run_launched(
    file: str, launch: str, *, name: str | None, device: str | None, compiler: str | None, orders: int
) -> bool:
    """Launch as the function says; True if nothing was wrong."""
    from rota.isa.launch.loaded_kernel import launch_described

    describe = find_function(launch)
    path = Path(file)
    if not path.is_file():
        raise click.UsageError(f"there is no file {file}")
    with progress(f"reading {file}"):
        kernel = _kernel(path, name, device, compiler)
    with progress(f"running {kernel.name}") as counted:
        result = launch_described(kernel, describe(), orders=orders, progress=counted)
    head = f"{kernel.name} of {path.name}, {kernel.facts.arch}"
    notes = (str(note) for note in result.notes)
    data = {
        "ok": result.ok,
        "orders": result.orders,
        "instructions": result.instructions,
        "findings": result.findings,
        "notes": result.notes,
    }
    give("\n\n".join([f"{head}: {result}", *notes]), data)
    return result.ok


def _kernel(path: Path, name: str | None, device: str | None, compiler: str | None) -> LoadedKernel:
    from rota.isa.binary.hip_source import HIP_SUFFIXES
    from rota.isa.launch.loaded_kernel import load_kernel, load_source
    from rota.targets.registry import machine_named

    if path.suffix not in HIP_SUFFIXES:
        return load_kernel(path, name)
    if device is None:
        raise click.UsageError(f"{path.name} is source: --device says what it is compiled for")
    return load_source(path, machine_named(device).arch, name, compiler=compiler)


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
    equal NumPy's: exactly for small integers, whose sums are exact; for numbers of full precision, in 2 x 3
    workgroups, within K u / (1 - K u) times the sum of the products' sizes (u = 2^-24), which fp32 may lose in any
    order.

    With --launch, KERNEL is a code object (or a HIP source) of any origin, as in rota run kernel.hsaco --launch
    launches.py:matmul.  The function returns a dict with args, grid, block and, optionally, dynamic_lds and expected:
    arrays by the number of their argument, which must be equal, or within rtol and atol as numpy.isclose has them.
    """
    if launch is not None:
        right = run_launched(kernel, launch, name=name, device=device, compiler=compiler, orders=orders)
        click.get_current_context().exit(0 if right else 1)
    from rota.audit.gemm_launch import load_emitted

    chosen = find_kernel(kernel, settings)
    compiled, code = build_code(chosen, compiler)
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

    told = parse_with(options)
    products = parse_options(told).products if form == "kernel" else 1
    chosen = find_kernel(kernel, settings)
    compiled, code = build_code(chosen, compiler, form, told)
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
