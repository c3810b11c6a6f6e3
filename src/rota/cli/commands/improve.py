"""`rota improve`: a compiled kernel with a better order of its main loop, proved and equal."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rota.cli.arguments import find_function, find_object
from rota.cli.code_file import Block, block_option, compiler_option, device_option, dynamic_lds_option, find_code
from rota.cli.output import give, json_option, progress, write, write_files
from rota.errors import RotaError, several

if TYPE_CHECKING:
    from rota.errors import Finding
    from rota.improve.improved_kernel import ImprovedKernel
    from rota.isa.binary.code_object import CodeObject


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
@click.option(
    "--write-bench", metavar="DIR", type=click.Path(file_okay=False, path_type=Path),
    help="Write a benchmark of both kernels with the launch, to be run on a GPU; here the launch isn't executed.",
)  # fmt: skip
@click.option(
    "--measure", metavar="CSV", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The results of that benchmark, which decide.",
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
    write_bench: Path | None,
    measure: Path | None,
    dynamic_lds: int | None,
    block: Block | None,
    device: str | None,
    compiler: str | None,
) -> None:
    """Find a better order of the instructions in the main loop of KERNEL, and write the object with it.

    KERNEL is a code object, assembly or HIP source, or FILE:name of one kernel in it.  Registers, LDS and everything
    outside of the loop stay; instructions change places within its longest straight part, waits get the
    counts that their new places need, and weaker ones where the proof allows it.  Where that part is the whole loop,
    some of a trip may be executed together with the trip before; such a loop stands after the code of the object.  The
    new object is read again: each instruction must compute what it did, the kernel must be proved as the old one was,
    and be predicted to be faster.  Clocks are predicted, not measured.  What isn't improved says why (I610).

    --write-bench DIR writes both objects, the launch and a host program in C++ that needs HIP alone.  On a GPU it
    compares what both kernels leave, and times them in pairs.  --measure reads its results: a kernel that was
    measured to be slower, or that left other bits, isn't handed over.
    """
    code, name = find_code(kernel, device=device, compiler=compiler)
    names = [name] if name else [each.name for each in code.kernels]
    bench = _Bench(write_bench, measure, launch)
    bench.check(code, names)
    found: list[ImprovedKernel] = []
    refused: list[Finding] = []
    lines: list[str] = []
    better = code
    for each in names:
        with progress(f"improving {each}"):
            try:
                made = _improve(better, each, device, block=block, dynamic_lds=dynamic_lds)
            except RotaError as error:
                refused += error.findings
                continue
        said = _describe(made)
        if launch is not None and write_bench is None:
            _execute(code, made, launch)
            said.append("  executed: both leave the same bits")
        wrong = bench.add_measured(code, made, said)
        lines.append("\n".join(said))
        if wrong:
            refused += wrong
            continue
        found.append(made)
        better = made.code
    lines += [str(each) for each in refused]
    if output is not None:
        if found:
            write(output, better.hsaco)
        lines.append(f"written: {output}" if found else f"{output} isn't written")
    if found and write_bench is not None:
        lines.append(bench.write(code, found[0], _spell(ctx.params)))
    data = {"kernels": [_as_data(each) for each in found], "refused": refused, "measured": bench.measured}
    give("\n\n".join(lines), data)
    if not found:
        ctx.exit(1)


def _improve(
    code: CodeObject, name: str, device: str | None, *, block: Block | None, dynamic_lds: int | None
) -> ImprovedKernel:
    from rota.improve.improved_kernel import improve_kernel
    from rota.targets.registry import device_named

    return improve_kernel(code, name, device_named(device or code.arch), block=block, dynamic_lds=dynamic_lds)


def _execute(code: CodeObject, made: ImprovedKernel, launch: str) -> None:
    from rota.improve.improved_kernel import compare_runs

    compare_runs(code, made.code, made.name, find_object(launch))


class _Bench:
    """What the options ask for: a benchmark to write, or its results to read."""

    def __init__(self, folder: Path | None, results: Path | None, launch: str | None) -> None:
        self._folder, self._results, self._launch = folder, results, launch
        self._description: object = None
        self.measured: dict[str, object] | None = None

    def check(self, code: CodeObject, names: Sequence[str]) -> None:
        """A usage error if something lacks, or I107 for the launch, before anything is searched."""
        if self._folder is None and self._results is None:
            return
        if self._folder is not None and self._results is not None:
            raise click.UsageError("--write-bench writes a benchmark, --measure reads its results: give one of them")
        if self._folder is not None and self._launch is None:
            raise click.UsageError("--write-bench needs --launch FILE.py:FUNCTION, which says what is launched")
        if len(names) > 1:
            raise click.UsageError(f"a benchmark is about one kernel: name it, as FILE:{names[0]}")
        if self._launch is not None and self._folder is not None:
            from rota.bench.bench_plan import plan_pair

            self._description = find_function(self._launch)()
            plan_pair(code, code, names[0], self._description)

    def write(self, code: CodeObject, made: ImprovedKernel, back: str) -> str:
        from rota.bench.bench_plan import plan_pair, write_bench

        folder = Path(str(self._folder))
        files = write_bench(plan_pair(code, made.code, made.name, self._description), back=back)
        write_files(folder, files.items())
        return f"written: {folder}, a benchmark; on a GPU: make and ./bench; then here: {back}"

    def add_measured(self, code: CodeObject, made: ImprovedKernel, lines: list[str]) -> Sequence[Finding]:
        """What the results say, as lines; the findings because of which the kernel isn't handed over."""
        if self._results is None:
            return ()
        from rota.bench.bench_plan import AFTER, BEFORE, pair_subjects
        from rota.bench.bench_results import MeasuredDecision, describe_pair, read_results
        from rota.improve.loop_block import refuse

        results = read_results(self._results, pair_subjects(code, made.code, made.name))
        case = results.case(made.name)
        lines += [f"  {each}" for each in describe_pair(results, made.name, AFTER, BEFORE)]
        decision = case.decide(AFTER, BEFORE)
        self.measured = {
            "file": results.file, "on": results.on, "launch": case.launches[AFTER], "decision": decision,
            "bits": case.bits[AFTER], "pairs": case.compare(AFTER, BEFORE),
        }  # fmt: skip
        if decision is MeasuredDecision.SLOWER:
            return refuse(made.name, f"it was measured to be slower on {results.on.device} ({results.file})").findings
        return results.findings


_REPEATED = ("output", "dynamic_lds", "block", "device", "compiler")


def _spell(given: Mapping[str, Any]) -> str:
    """The command that reads the results: with all options that decide about the kernel that it finds."""
    words = ["rota", "improve", given["kernel"]]
    for name in _REPEATED:
        value = given[name]
        if value is not None:
            text = "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += [f"--{name.replace('_', '-')}", text]
    return shlex.join([*words, "--measure", "results.csv"])


def _describe(each: ImprovedKernel) -> list[str]:
    share = f"{100 * each.gain:.1f} % fewer (predicted)"
    return [
        f"{each.name}: {each.clocks:.0f} clocks a trip, before {each.before:.0f}: {share}",
        f"  moved: {each.moved} of {several(each.instructions, 'instruction')} from {each.place} on",
        *([f"  a trip ahead of the rest: {several(each.ahead, 'instruction')}"] if each.ahead else []),
        *(f"  `{was}` is {'left out' if now == 'nothing' else f'weakened to `{now}`'}" for was, now in each.weaker),
        f"  equal: each instruction computes what it did; {each.verdict.status.value} as before",
    ]


def _as_data(each: ImprovedKernel) -> dict[str, object]:
    return {
        "name": each.name, "place": each.place, "before": each.before, "clocks": each.clocks, "moved": each.moved,
        "ahead": each.ahead,
        "instructions": each.instructions, "weaker": [list(pair) for pair in each.weaker],
        "status": each.verdict.status.value,
    }  # fmt: skip
