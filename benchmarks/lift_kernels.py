"""Loops of kernels that others compiled, lifted: `python -m benchmarks.lift_kernels [PATTERN] [--seconds 10] [--own]`.

Prints for each kernel its loop, entries, iterations a trip, roles, LDS buffers and the predicted clocks of an
iteration, or why it isn't lifted; in the end how many are, and the reasons of the others.  What is predicted is not
measured.  With `--own` they are kernels that rota emits, compared with the schedules that they came from.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

from rota.cli.code_file import build_code
from rota.cycles.predict import predict
from rota.errors import RotaError
from rota.isa.binary.toolchain import read_object
from rota.kernels.catalogue import kernel_named
from rota.lift.lifted_loop import LiftedLoop, lift_kernel
from rota.program.entry import Space
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.prove.verdict import Budget
from rota.targets.device import device_of
from rota.targets.registry import device_named
from tests.campaigns.shared_folder import shared_folder


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


def _issued(program: LoweredProgram) -> list[str]:
    """What a loop issues, one word an instruction; waits with their counts, and without scalar and VALU ones."""
    words: list[str] = []
    for entry in program.kernel:
        effect = entry.effect
        if effect.kind is OpKind.WAIT:
            words.append(f"{effect.counter}({effect.wait_value})")
        elif effect.kind not in {OpKind.SCALAR, OpKind.VALU, OpKind.FENCE, OpKind.HINT}:
            words += [effect.kind.word] * (entry.op.work.instructions if entry.op.work else 1)
    return words


def _own(seconds: float) -> None:
    """Compares what rota emits with what it scheduled."""
    for name in ("gemm_small", "four_wave", "ping_pong"):
        kernel = kernel_named(name)
        compiled, code = build_code(kernel, None)
        shape, budget = kernel.shape(), Budget(seconds=seconds)
        facts = code.kernel()
        lifted = lift_kernel(facts, code.instructions(), device_of(compiled.machine), budget=budget).program
        scheduled = compiled.lowered if shape is None else shape.fill(compiled.lowered)
        before = predict(compiled, shape, band=False).cycles * scheduled.tiles_per_trip
        after = predict(lifted, band=False).cycles * lifted.tiles_per_trip
        same = "the same order" if _issued(scheduled) == _issued(lifted) else "another order"
        count = len(_issued(lifted))
        print(f"{name:12} {count:5} instructions, {same}; {before:,.0f} -> {after:,.0f} clk a trip, predicted")


def main() -> None:
    """Lifts those whose names match a pattern."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, default=shared_folder("kernels"))
    parser.add_argument("--own", action="store_true", help="kernels that rota emits")
    options = parser.parse_args()
    if options.own:
        _own(options.seconds)
        return
    files = sorted(each for each in options.folder.rglob("*") if each.suffix in {".co", ".hsaco"})
    reasons: Counter[str] = Counter()
    lifted = count = 0
    for file in files:
        if options.pattern not in str(file) or file.parent.name == "races":
            continue
        code = read_object(file)
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
