"""The shipped GEMMs as FlyDSL, Gluon and Mojo: takes what is installed, prints what each compiler made of them.

Run `python -m benchmarks.languages [--language NAME] [--only TEXT] [--trips N] [--sabotage]` from the repository's
root; it needs `pip install triton flydsl torch mojo max` in the versions of constraints.txt.  Each kernel is emitted,
compiled by the language's own compiler, audited against the schedule with what was announced, proved on its own waits
and barriers, and run for trip counts 0 to N under five orders.  Clocks are rota's prediction for one K-tile of the
loop: of what came out, and of the schedule, which is what comes out of HIP.  With --sabotage, sources are changed one
line at a time, and the table says who notices.  The exit status is 1 if a kernel isn't as announced, or a change is
missed.  The table is Markdown; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from typing import NamedTuple, Protocol

from rota.audit.audit import Audit, build_found_program
from rota.audit.gemm_launch import GemmProgram
from rota.audit.machine_loop import expect_gemm, read_machine_loop
from rota.cycles.predict import predict
from rota.emit.gemm.gemm_plan import GemmPlan, gemm_plan
from rota.isa.binary.code_object import CodeObject
from rota.isa.launch.interleaving import some_interleavings
from rota.kernels.catalogue import kernel_named
from rota.languages.flydsl import compile_flydsl
from rota.languages.gluon import additions, compile_gluon, gluon_plan
from rota.languages.mojo import compile_mojo
from rota.pipeline.geometry import TileShape
from tests.emit.kernels import FP8, SMALL, Emitted, by_values, four_wave, ping_pong
from tests.languages import source_edits

GEMMS: Mapping[str, Callable[[], Emitted]] = {
    "gemm_8wave": lambda: by_values("gemm_bf16_256x256x64_8wave"),
    "gemm_4wave": lambda: by_values("gemm_bf16_256x256x64_4wave"),
    "gemm_small": lambda: by_values(SMALL),
    "gemm_fp8": lambda: by_values(FP8),
}
STAGED: Mapping[str, Callable[[], Emitted]] = {"ping_pong": ping_pong, "four_wave": four_wave}
SHAPES = {name: kernel_named(name).shape() for name in STAGED}
ORDERS = 5


class Made(Protocol):
    """What a language's compiler made."""

    @property
    def code(self) -> CodeObject:
        """The code object."""
        ...

    def audit(self) -> Audit:
        """Against the schedule."""
        ...

    def program(self) -> GemmProgram:
        """Ready to run."""
        ...


class Language(NamedTuple):
    """How a language is tried: its packages, its kernels, its compiler, its plan, and what it announces."""

    packages: tuple[str, ...]
    kernels: Mapping[str, Callable[[], Emitted]]
    compile: Callable[..., Made]
    plan: Callable[..., GemmPlan]
    announced: Callable[[GemmPlan], int]


def _none(_: GemmPlan) -> int:
    return 0


LANGUAGES = {
    "flydsl": Language(("flydsl",), {**GEMMS, **STAGED}, compile_flydsl, gemm_plan, _none),
    "gluon": Language(("triton",), GEMMS, compile_gluon, gluon_plan, lambda plan: len(additions(plan))),
    "mojo": Language(
        ("mojo", "max-core"), {**STAGED, "gemm_8wave": GEMMS["gemm_8wave"]}, compile_mojo, gemm_plan, _none
    ),
}
HEAD = (
    "language",
    "versions",
    "kernel",
    "audit",
    "waits announced",
    "barriers",
    "registers",
    "proved on its own waits",
    "runs right",
    "clocks of a K-tile (HIP)",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", choices=LANGUAGES, help="one language instead of all")
    parser.add_argument("--only", default="", help="kernels whose name contains this text")
    parser.add_argument("--trips", type=int, default=4, help="the largest trip count that is run")
    parser.add_argument("--sabotage", action="store_true", help="change the sources, and see who notices")
    options = parser.parse_args(arguments)
    names = [options.language] if options.language else list(LANGUAGES)
    if options.sabotage:
        return sum(source_edits.missed(name, LANGUAGES[name].compile) for name in names)
    print("| " + " | ".join(HEAD) + " |")
    print("|" + " --- |" * len(HEAD))
    wrong = 0
    for name in names:
        for kernel, make in LANGUAGES[name].kernels.items():
            if options.only in kernel:
                print(f"{kernel} as {name}", file=sys.stderr)
                wrong += _tried(name, kernel, make(), options.trips)
    return 1 if wrong else 0


def _tried(name: str, kernel: str, emitted: Emitted, trips: int) -> bool:
    language = LANGUAGES[name]
    made = language.compile(*emitted)
    plan = language.plan(*emitted)
    audit = made.audit()
    for finding in audit.findings:
        print(finding, file=sys.stderr)
    runs = [
        made.program().launch(count, order).right
        for count in range(trips + 1)
        for order in some_interleavings(plan.tile.waves, ORDERS)
    ]
    row = (
        name,
        ", ".join(f"{package} {metadata.version(package)}" for package in language.packages),
        kernel,
        "exact" if audit.exact else "differs",
        str(language.announced(plan)),
        str(audit.barriers),
        f"{audit.facts.vgprs} ({audit.facts.agprs} AGPRs), {audit.facts.spills} spilled",
        "yes" if audit.certificate else "no",
        f"{sum(runs)} of {len(runs)}",
        _clocks(plan, made, SHAPES.get(kernel)),
    )
    print("| " + " | ".join(row) + " |", flush=True)
    return not (audit.exact and audit.certificate and all(runs))


def _clocks(plan: GemmPlan, made: Made, shape: TileShape | None) -> str:
    """Of a K-tile as it came out, and as the schedule has it."""
    expected = expect_gemm(plan.compiled, plan.binding)
    found = build_found_program(plan.program, expected, read_machine_loop(made.code.instructions()))
    out, written = (predict(program, shape, band=False).cycles for program in (found, plan.program))
    return f"{out:.0f} ({written:.0f})"


if __name__ == "__main__":
    sys.exit(main())
