"""Loops of kernels that others compiled, lifted: `python -m benchmarks.lift_kernels [PATTERN] [--seconds 10]`.

Prints for each kernel its loop, entries, iterations a trip, roles, LDS buffers and the predicted clocks of an
iteration, or why it isn't lifted; in the end how many are, and the reasons of the others.  What is predicted is not
measured.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from pathlib import Path

from rota.cycles.predict import predict
from rota.errors import RotaError
from rota.lift.machine_loop import LiftedLoop, lift_kernel
from rota.program.effects import Space
from rota.prove.paths import Budget
from rota.prove.proved_object import read_object_to_prove
from rota.targets.registry import device_named


def _folder() -> Path:
    return Path(os.environ.get("ROTA_SHARED") or Path(__file__).parents[2] / "shared") / "kernels"


def _row(lifted: LiftedLoop) -> str:
    program = lifted.program
    places = [place for entry in program.kernel for place in (*entry.effect.reads, *entry.effect.writes)]
    buffers = {(place.name, place.copy) for place in places if place.space is Space.LDS}
    found = predict(program, band=False)
    instructions = sum(len(loop.chain) for loop in lifted.loops)
    known = "" if buffers or not any(entry.op.kind.unit.value == "LDS port" for entry in program.kernel) else " unknown"
    return (
        f"{instructions:5} instructions {len(program.kernel):5} entries {program.tiles_per_trip} a trip"
        f" {len(program.roles)} roles {len(buffers):3} LDS buffers{known}"
        f" {found.cycles:7,.0f} clk predicted, MMA {found.mma_share:4.0%}"
    )


def main() -> None:
    """Lifts those whose names match a pattern."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, default=_folder())
    options = parser.parse_args()
    files = sorted(each for each in options.folder.rglob("*") if each.suffix in {".co", ".hsaco"})
    reasons: Counter[str] = Counter()
    lifted = count = 0
    for file in files:
        if options.pattern not in str(file) or file.parent.name == "races":
            continue
        code = read_object_to_prove(file)
        for facts in code.kernels:
            count += 1
            started = time.process_time()
            try:
                loop = lift_kernel(
                    facts,
                    code.instructions(facts.name),
                    device_named(facts.arch),
                    budget=Budget(seconds=options.seconds),
                )
            except RotaError as error:
                why = error.findings[0].message.partition(" is not lifted: ")[2] or error.findings[0].message
                reasons[why] += 1
                print(f"{file.stem:78.78} not lifted: {why}", flush=True)
                continue
            lifted += 1
            took = time.process_time() - started
            print(f"{file.stem:78.78} {_row(loop)} {took:5.1f} s", flush=True)
    print(f"\n{lifted} of {count} kernels lifted")
    for why, times in reasons.most_common():
        print(f"{times:4} {why}")


if __name__ == "__main__":
    main()
