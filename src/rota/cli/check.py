"""`rota check`: takes a kernel, gives one line if it is proved, its findings in full if not."""

from __future__ import annotations

import click

from rota.cli.advice import Asked
from rota.cli.code_file import names_machine_code
from rota.cli.kernel_argument import compiled_kernel, find_kernel, kernel_argument, set_option
from rota.cli.machine_code import Block, block_option, compiler_option, device_option
from rota.cli.output import format_option, give, in_full, tell
from rota.cli.progress import progress
from rota.cli.proof import check_machine_code
from rota.cli.proof_wishes import Wishes, proof_options
from rota.cli.search import searched
from rota.cli.summary import summarise
from rota.errors import Finding, RotaError, did_you_mean
from rota.kernels.kernel import Kernel


@click.command(
    epilog="\b\nExamples:\n  rota check ping_pong\n  rota check four_wave --set waits.auto_drain=true --notes"
    "\n  rota check gemm_small --set shape.depth=128 --json\n  rota check ping_pong --format github"
)
@kernel_argument
@set_option
@click.option("--notes", is_flag=True, help="Also print notes and warnings, what a repair added, and the certificate.")
@click.option("--replay", "code", metavar="CODE", help="Execute the interleaving that shows a finding, as written.")
@click.option("--needed", is_flag=True, help="Of machine code: which waits and barriers the proof needs.")
@click.option("--suggest", is_flag=True, help="Of machine code: waits and barriers with which it would be proved.")
@block_option
@device_option
@compiler_option
@proof_options
@format_option
def check(
    *,
    kernel: str,
    settings: tuple[str, ...],
    notes: bool,
    code: str | None,
    needed: bool,
    suggest: bool,
    block: Block | None,
    device: str | None,
    compiler: str | None,
    wishes: Wishes,
) -> None:
    """Prove KERNEL right for every trip count.

    And for every interleaving of its waves.  By default `sync` is "repair", which adds the fewest barriers, then the
    fewest waits, that it finds to make the proof hold; with `--set sync=strict` what is missing is an error.  Exit
    status: 0 proved, 1 findings, 2 usage, 3 internal error.

    KERNEL may be machine code of any origin: a code object (kernel.co, kernel.hsaco:name), assembly (kernel.s), a HIP
    source with --device, a folder or a pattern.  It is followed on all paths, without arguments: no two waves may race
    in LDS, and no register may be used before its wait.
    """
    if names_machine_code(kernel):
        check_machine_code(
            kernel, block=block, device=device, compiler=compiler, asked=Asked(needed, suggest), wishes=wishes
        )
        return
    if needed or suggest or not wishes.usual:
        raise click.UsageError("this option is for machine code; schedules have `sync` and `--set`")
    chosen = find_kernel(kernel, settings)
    if code is not None:
        _replay(chosen, code.upper())
        return
    try:
        compiled = compiled_kernel(chosen)
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

    written = searched(f"compiling {kernel.name}", kernel.as_written)
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
