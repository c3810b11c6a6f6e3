"""`rota check`: prove a schedule, or machine code that anybody compiled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from rota.cli.arguments import compile_kernel, find_kernel, run_search, set_option
from rota.cli.code_file import block_option, compiler_option, device_option, names_machine_code
from rota.cli.commands.check_code import Wishes, check_machine_code, proof_options
from rota.cli.output import format_option, give, in_full, progress, tell
from rota.cli.project import find_project
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Finding, RotaError, Severity, did_you_mean, several
from rota.kernels.kernel import Kernel
from rota.program.lowered import count_sync


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What `rota check` says; None where the schedule doesn't state it.

    Barriers and waits are those of one trip; `added` counts what a repair added, in all phases.
    """

    kernel: str
    machine: str
    ops: int
    grain: str | None
    quality: str
    speed: str | None
    lds_bytes: int | None
    lds_limit: int
    registers: int | None
    register_limit: int
    barriers: int
    waits: int
    added: int
    warnings: int
    notes: int
    proved: bool

    def __str__(self) -> str:
        parts = [f"ok  {self.kernel}", " ".join(filter(None, [several(self.ops, "op"), self.grain])), self.quality]
        if self.speed is not None:
            parts.append(self.speed)
        if self.lds_bytes is not None:
            parts.append(f"LDS {_kib(self.lds_bytes)}/{_kib(self.lds_limit)} KiB")
        if self.registers is not None:
            parts.append(f"VGPR {self.registers}/{self.register_limit}")
        parts += [several(self.barriers, "barrier"), several(self.waits, "wait")]
        if self.added:
            parts.append(f"{self.added} added by repair")
        parts += [several(count, word) for count, word in ((self.warnings, "warning"), (self.notes, "note")) if count]
        return "  ".join([*parts, "proved for every trip count" if self.proved else "not proved, as written"])


def summarise(kernel: str, compiled: CompiledSchedule) -> Summary:
    sync = count_sync(compiled.kernel)
    return Summary(
        kernel=kernel,
        machine=compiled.machine.name,
        ops=compiled.op_count,
        grain=compiled.grain,
        quality=compiled.quality,
        speed=compiled.speed,
        lds_bytes=compiled.lds_bytes,
        lds_limit=compiled.machine.lds_bytes.value,
        registers=compiled.registers,
        register_limit=compiled.register_limit,
        barriers=sync.barriers,
        waits=sync.waits,
        added=compiled.added,
        warnings=sum(finding.severity is Severity.WARNING for finding in compiled.findings),
        notes=sum(finding.severity is Severity.NOTE for finding in compiled.findings),
        proved=compiled.certificate is not None,
    )


def _kib(size: int) -> str:
    return f"{size / 1024:g}"


@click.command(
    epilog="\b\nExamples:\n  rota check build/kernels\n  rota check kernel.hsaco --block 256"
    "\n  rota check kernel.hip --device mi355x -I include -- -ffast-math"
    "\n  rota check ping_pong\n  rota check four_wave --set waits.auto_drain=true --notes"
)
@click.argument("kernels", metavar="KERNEL...", nargs=-1)
@block_option
@device_option
@compiler_option
@proof_options
@set_option
@click.option("--notes", is_flag=True, help="Of a schedule: print notes, what a repair added, and the certificate.")
@click.option("--replay", "code", metavar="CODE", help="Of a schedule: execute the interleaving that shows a finding.")
@format_option
def check(
    *,
    kernels: tuple[str, ...],
    settings: tuple[str, ...],
    notes: bool,
    code: str | None,
    wishes: Wishes,
    typed: frozenset[str],
) -> None:
    """Prove a KERNEL race-free.

    Machine code of any origin: a code object (kernel.co, kernel.hsaco:name), assembly (kernel.s), a HIP source with
    --device, a folder or a pattern.  It is followed on all paths, without arguments: no two waves may race in LDS, and
    no register may be used before its wait.  Findings have a level (shown, required, one source, undecided); those
    that are required or shown fail the run, or those that --fail-on names.  Several files are judged on all cores, and
    verdicts are kept by their content.  A project says blocks, devices and policies once: [tool.rota] in
    pyproject.toml, or rota.toml.  Flags for the compiler follow after --.

    A schedule: a name that `rota kernels` lists, or file.py:Name.  It is proved right for every trip count and every
    interleaving of its waves.  By default `sync` is "repair", which adds the fewest barriers, then the fewest waits,
    that it finds to make the proof hold; with `--set sync=strict` what is missing is an error.

    Exit status: 0 proved, 1 findings, 2 usage, 3 internal error.
    """
    at = next((number for number, each in enumerate(kernels) if each.startswith("-")), len(kernels))
    named, flags = kernels[:at], kernels[at:]
    if wishes.build_dir is not None or all(map(names_machine_code, named)):
        if settings or notes or code:
            raise click.UsageError("--set, --notes and --replay are for schedules; this is machine code")
        if not named and wishes.build_dir is None and find_project(Path.cwd()).settings.get("build-dir") is None:
            raise click.UsageError("name a kernel: a code object, a source, a folder, or a schedule")
        check_machine_code(named, wishes, typed, flags)
        return
    if typed or flags:
        which = ", ".join(sorted(f"--{name.replace('_', '-')}" for name in typed)) or "flags of a compiler"
        raise click.UsageError(f"{which}: for machine code; schedules have `sync` and `--set`")
    if len(named) > 1:
        raise click.UsageError(f"one schedule at a time, not {len(named)}")
    (kernel,) = named
    chosen = find_kernel(kernel, settings)
    if code is not None:
        _replay(chosen, code.upper())
        return
    try:
        compiled = compile_kernel(chosen)
    except RotaError as error:  # here findings are the answer, not a failure to give one
        give(str(error), {"ok": False, "findings": error.findings})
        click.get_current_context().exit(1)
    summary = summarise(chosen.name, compiled)
    full = [in_full(compiled.findings), "\n".join(map(str, compiled.repairs)), str(compiled.certificate)]
    give(
        "\n\n".join([str(summary), *(part for part in full if part and notes)]),
        {
            "ok": True,
            "summary": summary,
            "findings": compiled.findings,
            "repairs": [change.sentence for change in compiled.repairs],
            "certificate": compiled.certificate,
        },
    )


def _replay(kernel: Kernel, code: str) -> None:
    """Run the witness of the first finding of that code on the executor."""
    from rota.execute.executor import replay
    from rota.verify.prove import verify

    written = run_search(f"compiling {kernel.name}", kernel.as_written)
    with progress(f"proving {kernel.name}"):
        findings = verify(written).findings
    finding = next((each for each in findings if each.code == code and each.witness is not None), None)
    if finding is None or finding.witness is None:
        raise _nothing_to_replay(kernel, code, findings)
    with progress(f"replaying {code}"):
        ended = replay(written, finding.witness)
    verdict = "every wave computes the right result" if ended.right else f"wrong: {ended.first_wrong}"
    tell(str(finding))
    give(f"replayed {code}: {verdict}", {"code": code, "right": ended.right, "wrong": ended.first_wrong})
    if not ended.right:
        click.get_current_context().exit(1)


def _nothing_to_replay(kernel: Kernel, code: str, findings: tuple[Finding, ...]) -> click.UsageError:
    shown = sorted({finding.code for finding in findings if finding.witness is not None})
    known = "; ".join(did_you_mean(code, shown)) if shown else "it has none that an interleaving shows"
    return click.UsageError(f"{kernel.name}, as written, has no finding {code} to replay; {known}")
