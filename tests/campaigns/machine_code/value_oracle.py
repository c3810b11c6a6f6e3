"""The proof's values beside the interpreter's: `python -m benchmarks.value_oracle [--examples 500] [--folder ...]`.

A kernel is launched, and the proof is led along the very path that the launch took.  Behind each instruction what the
proof holds of registers, EXEC and SCC is evaluated under the launch's numbers, and must be what the interpreter has;
the bytes of LDS that the interpreter uses must be among those of the proof; and whatever the proof takes for decided
must be so.  Kernels are those of the compiled corpus, and small ones that are drawn.  The exit status is 1 if anything
differs.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from rota.isa.decoded import KernelProgram
from rota.isa.launch.loaded_kernel import load_kernel
from rota.isa.registers import SCALAR
from rota.prove import kernel_proof as proving
from rota.prove.operation import EXEC_BITS, VECTORS, Operation, OperationKind, rows_of
from rota.prove.paths import Explorer, ForkError
from rota.prove.slicing import BackwardSlice, derive_slice
from rota.prove.state import Half, WaveSet
from rota.prove.symbol import M32, Linear
from rota.prove.verdict import Budget, Verdict
from rota.prove.widening import ProductState
from tests.campaigns.machine_code.drawn_kernels import Drawn, drawn
from tests.campaigns.machine_code.value_meaning import ALL, DifferError, Flags, Meaning, Where
from tests.campaigns.machine_code.value_record import Contents, Launch, WaveRecord, recorded, told
from tests.isa.corpus.cases import Case, cases

AMPLE = Budget(steps=10**9, seconds=10**6, states=10**9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What was compared: instructions of all waves, lanes that had to agree, lanes that told what is unknown."""

    instructions: int
    checked: int
    bound: int
    sites: int
    verdict: Verdict


class Led(Explorer):
    """Follows the path of a launch, and compares on the way."""

    records: Sequence[WaveRecord] = ()
    naming = False

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._wanted: Sequence[int] = args[1].needed
        self.meaning = Meaning()
        self.sites = 0
        self.place = [0] * len(self.records)
        self._now: list[dict[int, Contents]] = [dict(each.start) for each in self.records]
        # The lanes of a vector register that the proof speaks of: all but those that it says nobody reads.
        self._meant: list[dict[int, Flags]] = [{} for _ in self.records]

    # Along the record.

    def _reach(self, wave: int, number: int) -> int:
        """The place in a wave's record at which it comes to that instruction; what is passed over was straight code."""
        record, place = self.records[wave], self.place[wave]
        while place < len(record.pcs) and record.pcs[place] != number:
            if place + 1 < len(record.pcs) and record.pcs[place + 1] != record.pcs[place] + 1:
                raise DifferError(f"wave {wave}: the proof is at {number}, the launch went from {record.pcs[place]}")
            self._now[wave].update(record.after[place])
            place += 1
        if place >= len(record.pcs):
            raise DifferError(f"wave {wave}: the launch never came to {number}")
        self.place[wave] = place
        return place

    def _step(self, product: ProductState, wave_set: WaveSet, operation: Operation) -> bool:
        places = {wave: self._reach(wave, operation.number) for wave in wave_set.waves}
        waves = wave_set.waves
        for wave in waves:
            self._follow_lanes(wave, operation, places[wave])
        going = super()._step(product, wave_set, operation)
        for wave in waves:
            self._now[wave].update(self.records[wave].after[places[wave]])
            self.place[wave] = places[wave] + 1
        try:
            if operation.kind in {OperationKind.BRANCH, OperationKind.CALL}:
                self._went(product, waves, places)
            else:
                self._compare(wave_set, operation, places)
        except DifferError as error:
            raise DifferError(f"{told(operation.instruction)}: {error}") from error
        return going

    def _follow_lanes(self, wave: int, operation: Operation, place: int) -> None:
        """No operation whose result is needed reads a lane of which the proof said that nobody does."""
        meant, before = self._meant[wave], self.records[wave].exec[max(place - 1, 0)]
        executing = np.array([before >> lane & 1 for lane in range(64)], np.bool_)
        reads = operation.address & VECTORS
        if operation.kind is OperationKind.VALUE and self._evaluated[operation.number]:
            reads = operation.reads & VECTORS
        crosses = not operation.spec.obeys_exec or operation.instruction.is_dpp or "lane" in operation.name
        for row in rows_of(reads):
            if row in meant and (~meant[row] & (crosses | executing)).any():
                raise DifferError(f"{told(operation.instruction)}: row {row} is read in lanes that nobody was to read")
        for row in rows_of(operation.writes & VECTORS):
            if operation.kind is not OperationKind.VALUE:
                meant[row] = ALL
            elif self._unread[operation.number] >> row & 1:
                meant[row] = executing
            else:
                meant[row] = meant.get(row, ALL) | executing

    def _went(self, product: ProductState, waves: Sequence[int], places: dict[int, int]) -> None:
        for wave_set in product.wave_sets:
            for wave in set(wave_set.waves) & set(waves):
                due = self.records[wave].pcs[places[wave] + 1]
                if wave_set.at != due:
                    raise DifferError(f"wave {wave} goes to {wave_set.at}, in the launch to {due}")

    def _compare(self, wave_set: WaveSet, operation: Operation, places: dict[int, int]) -> None:
        for row, wave in enumerate(wave_set.waves):
            at, record, place = Where(wave, row, len(wave_set.waves)), self.records[wave], places[wave]
            if operation.writes & EXEC_BITS or place == 0:
                self.meaning.hold_mask(wave_set.exec, at, record.exec[place])
            for register, contents in record.after[place].items():
                if not operation.writes >> register & 1 and register < SCALAR + 200:
                    raise DifferError(f"row {register} is written, which the proof doesn't know of")
                held = wave_set.registers.get(register)
                wanted = operation.writes & self._wanted[min(wave_set.at, len(self._wanted) - 1)]
                if held is not None and self._evaluated[operation.number] and wanted >> register & 1:
                    try:
                        lanes = self._meant[wave].get(register, ALL)
                        self.meaning.hold(held, at, _lanes(contents), lanes, again=True)
                    except DifferError as error:
                        raise DifferError(f"wave {wave}, row {register}: {error}") from error
            self._compare_bytes(wave_set, operation, row, record.lds.get(place, 0))

    def _compare_bytes(self, wave_set: WaveSet, operation: Operation, row: int, used: int) -> None:
        if operation.kind is not OperationKind.LDS and not operation.to_lds:
            return
        flight = wave_set.queues[operation.counted_by][-1]
        if flight.number != operation.number or flight.access is None:
            raise DifferError("the proof has no access of it")
        if used & ~flight.access.bytes[row]:
            extra = used & ~flight.access.bytes[row]
            raise DifferError(
                f"wave {wave_set.waves[row]} uses byte {(extra & -extra).bit_length() - 1} of LDS as well"
            )
        self.sites += 1

    # Decisions.

    def _fork(self, product: ProductState, wave_set: WaveSet, fork: ForkError) -> None:
        wave = fork.waves[0] if fork.waves else wave_set.waves[0]
        at = Where(wave, wave_set.waves.index(wave), len(wave_set.waves))
        self._hold_all(wave_set, at, masks=True)  # a branch may have put unknowns of its own into masks
        found = self.meaning.symbol(fork.condition, at)
        if not found.lanes.any():
            raise DifferError(f"nothing is known of the condition {fork.condition} at {wave_set.at}")
        holds = bool(found.numbers[found.lanes][0])
        product.forks += 1
        product.known.decide(fork.condition, holds=holds, epoch=product.epoch, wave=wave if fork.waves else None)
        self._decided(product)

    def _decided(self, product: ProductState) -> None:
        """All that a path takes for decided is so."""
        anybody = product.wave_sets[0].waves[0]
        for (condition, wave), holds in product.known.known.items():
            found = self.meaning.symbol(condition, Where(anybody if wave is None else wave, 0, -1))
            if found.lanes.any() and bool(found.numbers[found.lanes][0]) != holds:
                raise DifferError(f"{condition} is taken for {holds}")
        for (base, wave), (first, length) in product.known.arcs.items():
            found = self.meaning.symbol(base, Where(anybody if wave is None else wave, 0, -1))
            if found.lanes.any() and (int(found.numbers[found.lanes][0]) - first) & M32 > length:
                raise DifferError(f"{base} is taken to be from {first:#x} on")

    # Checkpoints.

    def _is_independent(self, product: ProductState, waves: int = 1) -> bool:
        """All waves of the launch are followed together: what they compute is the same."""
        del product, waves
        return False

    def _checkpoint(self, product: ProductState, head: tuple[Any, ...]) -> bool:
        if not self.naming:
            return True
        super()._checkpoint(product, head)
        self.meaning.forget()
        for _ in range(2):  # what the first round learns from a later register, the second knows of an earlier one
            for wave_set in product.wave_sets:
                for row, wave in enumerate(wave_set.waves):
                    if not wave_set.ended:
                        self._hold_all(wave_set, Where(wave, row, len(wave_set.waves)))
        self._decided(product)
        return True

    def _hold_all(self, wave_set: WaveSet, at: Where, *, masks: bool = False) -> None:
        now = self._now[at.wave]
        self.meaning.hold_mask(wave_set.exec, at, self.records[at.wave].exec[max(self.place[at.wave] - 1, 0)])

        def order(row: int) -> tuple[int, int]:
            held = wave_set.registers[row]
            if isinstance(held, Half):
                return 0, row
            return (1, held.scale & -held.scale) if isinstance(held, Linear) else (2, row)

        for register in sorted(wave_set.registers, key=order):
            if (
                register in now
                and self._wanted[wave_set.at] >> register & 1
                and (not masks or isinstance(wave_set.registers[register], Half))
            ):
                try:
                    lanes = self._meant[at.wave].get(register, ALL)
                    self.meaning.hold(wave_set.registers[register], at, _lanes(now[register]), lanes)
                except DifferError as error:
                    raise DifferError(
                        f"at a checkpoint at {wave_set.at}, wave {at.wave}, row {register}: {error}"
                    ) from error


def _lanes(contents: Contents) -> Any:
    return np.broadcast_to(np.asarray(contents, np.int64), (64,))


def _everything(operations: Sequence[Operation], *, full: bool) -> BackwardSlice:
    """Every operation is evaluated."""
    sliced = derive_slice(operations, full=full)
    count = len(operations)
    needed = ((1 << SCALAR + 256) - 1,) * count
    return replace(sliced, evaluated=(True,) * count, needed=needed, unread=(0,) * count)


def compared(program: KernelProgram, launch: Launch, *, everything: bool = False, naming: bool = False) -> Compared:
    """Leads the proof along a launch; raises `DifferError` where they differ."""
    records = recorded(program, replace(launch, args=copy.deepcopy(list(launch.args))))
    made: list[Led] = []

    def lead(*args: Any, **named: Any) -> Led:
        made.append(Led(*args, **named))
        return made[-1]

    with (
        patch.object(Led, "records", records),
        patch.object(Led, "naming", naming),
        patch.object(proving, "Explorer", lead),
        patch.object(proving, "derive_slice", partial(_everything) if everything else derive_slice),
    ):
        verdict = proving.prove(
            program.facts,
            tuple(step.instruction for step in program.steps),
            block=launch.block,
            dynamic_lds=launch.dynamic_lds or None,
            budget=AMPLE,
        )
    if not made:
        raise DifferError(f"no proof was made: {verdict.findings}")
    led = made[0]
    for record, place in zip(records, led.place, strict=True):
        if record.pcs[place:] and not any(each.code in {"I401", "I402"} for each in verdict.findings):
            raise DifferError(f"wave {record.number}: the proof ended at {place} of {len(record.pcs)} instructions")
    return Compared(
        instructions=sum(len(each.pcs) for each in records),
        checked=led.meaning.checked,
        bound=led.meaning.bound,
        sites=led.sites,
        verdict=verdict,
    )


# The campaign.


def of_corpus(case: Case) -> tuple[KernelProgram, Launch]:
    """A compiled kernel and its launch."""
    problem = case.problem()
    grid, block = ((*given, 1, 1, 1)[:3] for given in (problem.grid, (problem.block,)))
    launch = Launch(args=problem.args, block=block, grid=grid, dynamic_lds=problem.dynamic_lds)  # type: ignore[arg-type]
    return load_kernel(case.path).program, launch


def of_seed(seed: int, lines: int = 30) -> Drawn:
    """A small kernel that a seed draws."""
    return drawn(Random(seed), lines)  # reproducible, not secret


def main() -> int:
    """Compares all of the corpus whose names have the pattern in them, and kernels that are drawn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--examples", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None, help="the compiled corpus; none: drawn kernels only")
    given = parser.parse_args()
    differ, total, start = 0, Counter[str](), time.perf_counter()
    jobs: list[tuple[str, Callable[[], tuple[KernelProgram, Launch]]]] = []
    if given.folder is not None:
        found = [case for case in cases(given.folder, given.pattern) if not case.refused]
        jobs += [(case.name, partial(of_corpus, case)) for case in found]
    for number in range(given.seed, given.seed + given.examples):
        jobs.append((f"seed {number}", partial(_drawn, number)))
    for name, make in jobs:
        program, launch = make()
        for everything, naming in ((True, False), (False, True), (True, True))[: 2 if "seed" not in name else 3]:
            try:
                result = compared(program, launch, everything=everything and "seed" in name, naming=naming)
            except DifferError as error:
                differ += 1
                print(f"DIFFER: {name}, all evaluated: {everything}, named: {naming}: {error}", flush=True)
                continue
            total.update(
                instructions=result.instructions, lanes=result.checked, learnt=result.bound, sites=result.sites
            )
    print(f"{len(jobs)} kernels, {differ} differ; {dict(total)}; {time.perf_counter() - start:.0f} s")
    return 1 if differ else 0


def _drawn(seed: int) -> tuple[KernelProgram, Launch]:
    made = of_seed(seed)
    return made.program, made.launch
