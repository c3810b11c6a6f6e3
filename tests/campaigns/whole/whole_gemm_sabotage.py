"""Faults in whole GEMMs: takes the faults, compiles each, prints how it was found, by audit or by execution.

Where a fault lets waves go on earlier and neither finds it, the proof of its machine code is asked: what is proved
without a wait has no use for it around this loop, and is counted as redundant.

Run `python -m benchmarks.whole_gemm_sabotage [--only TEXT] [--every N] [--grains both]` from the repository's root.
Every fault is tried in the loop as it ships, by instruction, and in the one of quadrants.  The exit status is 1 if a
fault was missed, or if a kernel without faults is found to have one.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rota.audit.audit import audit_gemm
from rota.emit.whole.whole_host import emit_launcher
from rota.emit.whole.whole_kernel import whole_name
from rota.emit.whole.whole_options import Output, WholeGemm, parse_epilogue
from rota.errors import RotaError
from rota.isa.binary.toolchain import find_toolchain
from rota.prove.kernel_proof import prove_object
from tests.campaigns.whole.pair_faults import PAIR_FAULTS
from tests.campaigns.whole.whole_block_faults import BLOCK_FAULTS
from tests.campaigns.whole.whole_far import wrong_far_row
from tests.campaigns.whole.whole_faults import BY_COLUMNS, FAULTS, LOOP, SUMS, Fault
from tests.campaigns.whole.whole_kernels import FINE, Built, built, loaded, loop_of, shape_of, source_of
from tests.campaigns.whole.whole_launcher import CASES, COLUMNS, cases_by_columns, compiled, missed, program
from tests.campaigns.whole.whole_problems import Problem
from tests.campaigns.whole.whole_run import run_problem

LAUNCHED = WholeGemm(
    output=Output.BF16, epilogue=parse_epilogue(["alpha", "row_scale", "column_scale", "column_bias", "beta"])
)
PROBLEMS: tuple[Problem, ...] = (
    Problem(m=130, n=258, k=71, gaps=(1, 1, 0, 0), seed=2),
    Problem(m=77, n=300, k=71, gaps=(7, 15, 8, 4), seed=7),
    Problem(m=300, n=203, k=333, batches=2, gaps=(3, 3, 1, 3), seed=3),
    Problem(m=77, n=300, k=585, batches=2, splits=3, gaps=(7, 15, 8, 4), seed=4),
    Problem(m=650, n=270, k=71, gaps=(2, 1, 0, 2), splits=2, seed=5),
    Problem(m=150, n=40, k=764, gaps=(4, 4, 0, 0), orders=5, seed=6),
    Problem(m=40, n=150, k=768, gaps=(0, 0, 0, 2), seed=8),
    Problem(m=20, n=35, k=64, gaps=(0, 0, 0, 5), seed=9),
    Problem(m=20, n=72, k=840, seed=10),
)
"""Grids that aren't square, of several matrices; rows that DMAs can and can't fetch; whole trips, rests and parts."""
_SPILLED = "audit: I206"  # too many registers for the compiler: refused, as it should be
GRAINS = {"both": ("", FINE), "shipped": (FINE,), "quadrants": ("",)}
ALL_FAULTS = (*FAULTS, *PAIR_FAULTS, *BLOCK_FAULTS)
DEEP = (Problem(m=70, n=140, k=680, seed=8), Problem(m=70, n=40, k=680, seed=14))
"""Trips of the loop for fp4, whose K is four times that deep; with scales that DMAs can fetch, and without."""


def found_by(fault: Fault | None, asked: WholeGemm, loop: str = LOOP, *, grain: str = "") -> str | None:
    """How a fault is found; None if it isn't.  Without a fault, what is found of a loop's kernel as it is.

    `grain` is FINE for the loop as it ships, by instruction, and empty for one in quadrants.
    """
    loop = (fault.loop if fault is not None else loop) + grain
    try:
        made = _damaged(fault, asked, loop)
        geometry = shape_of(loop)[0].geometry
        audit = audit_gemm(loop_of(loop), geometry, made.code, kernel=made.name, products=asked.products)
    except RotaError as error:
        return f"refused: {error.findings[0].code}"
    if not audit.exact:
        return f"audit: {audit.findings[0].code}"
    if (fault is not None and fault.far) or (fault is None and (asked, loop.removesuffix(FINE)) == (SUMS, LOOP)):
        for far in fault.far if fault is not None else "ABD":
            if wrong := wrong_far_row(made, far):
                return f"execution: {wrong[0]}"
    for problem in (*PROBLEMS, *(DEEP if loop.removesuffix(FINE) != LOOP else ())):
        if wrong := run_problem(made, problem):
            return f"execution: {wrong[0][:80]}"
    if fault is not None and fault.order and all(each.proved for each in prove_object(made.code)):
        return "redundant: proved without it"
    return None


def launcher_faults(folder: Path, loop: str = LOOP) -> tuple[list[str], list[str]]:
    """The launcher's checks, each taken away in turn; and what is wrong with them."""
    header = emit_launcher(loop_of(loop), shape_of(loop)[0].geometry, LAUNCHED)
    cases, given = (CASES, "") if loop == LOOP else (tuple(cases_by_columns()), COLUMNS)
    source, words = program(header, whole_name(loop_of(loop), LAUNCHED), cases, given)
    return words, missed(compiled(find_toolchain(), source, folder), words, cases)


def _damaged(fault: Fault | None, asked: WholeGemm, loop: str) -> Built:
    if fault is None:
        return built(loop, asked)
    toolchain, arch = find_toolchain(), shape_of(loop)[1].arch
    if fault.assembly:
        return loaded(loop, asked, toolchain.assemble(fault.damage(built(loop, asked).code.assembly), arch))
    source = fault.damage(source_of(loop, asked), shipped=loop.endswith(FINE))
    return loaded(loop, asked, toolchain.compile(source, arch))


def main(arguments: Sequence[str] | None = None) -> int:
    """Try them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="faults whose part or name contains this text")
    parser.add_argument("--every", type=int, default=1, help="each so-many-th fault alone")
    parser.add_argument("--grains", type=lambda text: GRAINS[text], default=GRAINS["both"], help=", ".join(GRAINS))
    options = parser.parse_args(arguments)
    chosen = [fault for fault in ALL_FAULTS if options.only in f"{fault.part}: {fault.name}"][:: options.every]
    tally: Counter[str] = Counter()
    spilled: set[tuple[str, WholeGemm, str]] = set()
    both = [(fault, grain) for fault in chosen for grain in options.grains]
    for loop, asked, grain in dict.fromkeys((fault.loop, fault.asked, grain) for fault, grain in both):
        how = found_by(None, asked, loop, grain=grain)
        tally["wrongly found"] += how not in (None, _SPILLED)
        spilled |= {(loop, asked, grain)} if how == _SPILLED else set()
        print(f"without a fault, {loop}{grain} {' '.join(asked.words)}: {how or 'right'}", flush=True)
    for fault, grain in both:
        if (fault.loop, fault.asked, grain) in spilled:  # no such kernel ships, so nothing can be damaged in it
            tally["not tried, spilled"] += 1
            continue
        how = found_by(fault, fault.asked, grain=grain)
        tally["missed" if how is None else how.split(":", maxsplit=1)[0]] += 1
        print(f"{fault.part}: {fault.name}{grain}: {how or 'MISSED'}", flush=True)
    chosen_checks: list[str] = []
    for loop in (LOOP, BY_COLUMNS) if options.only in "launcher" else ():
        with TemporaryDirectory() as folder:
            checks, missing = launcher_faults(Path(folder), loop)
        chosen_checks += checks
        tally.update({"missed": len(missing), "launcher": len(checks)})
        print("\n".join(f"launcher, {loop}: {each}" for each in missing or ["every check is shown by a problem"]))
    print(f"{len(both) + len(chosen_checks)} faults: {dict(sorted(tally.items()))}")
    return 1 if tally["missed"] or tally["wrongly found"] else 0
