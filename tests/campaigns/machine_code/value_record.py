"""What waves computed, written down: takes a kernel and its launch, gives for each instruction the registers after it.

One workgroup runs in NumPy, with every memory op landing when it is issued.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from rota.isa.decoded import KernelProgram
from rota.isa.disassembly import Instruction
from rota.isa.launch import run as launching
from rota.isa.launch.interleaving import EARLIEST
from rota.isa.launch.loaded_kernel import LoadedKernel
from rota.isa.races import AccessOrder
from rota.isa.registers import EXEC, SCALAR, SCC
from rota.isa.wave.wave import Step, Wave
from tests.campaigns.machine_code.race_trace import bits

Triple = tuple[int, int, int]
Contents = int | NDArray[np.uint32]
"""Of a scalar register a number, of a vector register one per lane."""


@dataclass(slots=True, eq=False, kw_only=True)
class WaveRecord:
    """One wave: the numbers of its instructions, what each left in the registers it writes, EXEC, and bytes of LDS."""

    number: int
    start: dict[int, Contents] = field(default_factory=dict)
    pcs: list[int] = field(default_factory=list)
    after: list[dict[int, Contents]] = field(default_factory=list)
    exec: list[int] = field(default_factory=list)
    lds: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What is launched: arguments, sizes, and which workgroup is looked at."""

    args: Sequence[Any]
    block: Triple
    grid: Triple = (1, 1, 1)
    dynamic_lds: int = 0
    group: Triple = (0, 0, 0)


def contents(wave: Wave, row: int) -> Contents:
    """What a register holds."""
    if row < SCALAR:
        copied: NDArray[np.uint32] = wave.v[row].copy()
        return copied
    return wave.scc if row == SCALAR + SCC else int(wave.s[row - SCALAR])


class _Recorder:
    def __init__(self) -> None:
        self.waves: dict[int, WaveRecord] = {}
        self._now: WaveRecord | None = None

    def step(self, number: int, step: Step) -> Step:
        """The same step, written down when it is executed."""
        act = step.act
        rows = sorted(step.results | {SCALAR + SCC})

        def recorded(wave: Wave) -> int | None:
            record = self.waves.get(wave.number)
            if record is None:
                record = self.waves[wave.number] = WaveRecord(number=wave.number)
                record.start = {row: contents(wave, row) for row in (*range(4), *range(SCALAR, SCALAR + 128))}
            self._now = record
            record.pcs.append(number)
            to = act(wave)
            record.after.append({row: contents(wave, row) for row in rows})
            record.exec.append(wave.s[EXEC] | wave.s[EXEC + 1] << 32)
            return to

        index = step.indexed
        return replace(
            step, act=recorded, indexed=None if index is None else lambda wave: self.step(number, index(wave))
        )

    def lds(self, original: Callable[..., int]) -> Callable[..., int]:
        """`AccessOrder.begin_*`."""

        def recorded(order: AccessOrder, index: NDArray[np.int64], *rest: Any, **named: Any) -> int:
            assert self._now is not None
            place = len(self._now.pcs) - 1
            self._now.lds[place] = self._now.lds.get(place, 0) | bits(index)
            return original(order, index, *rest, **named)

        return recorded


def recorded(program: KernelProgram, launch: Launch, most: int = 20_000) -> list[WaveRecord]:
    """Runs one workgroup, and gives its waves' records; `most` are the instructions that a wave may take."""
    recorder = _Recorder()
    steps = tuple(recorder.step(number, step) for number, step in enumerate(program.steps))
    with ExitStack() as stack:
        stack.enter_context(patch.object(launching, "run_clean", lambda *_, **__: None))
        stack.enter_context(patch.object(launching, "list_workgroups", lambda _: [(0, launch.group)]))
        for name in ("begin_read", "begin_write", "begin_atomic"):
            stack.enter_context(patch.object(AccessOrder, name, recorder.lds(getattr(AccessOrder, name))))
        LoadedKernel(program=replace(program, steps=steps)).launch(
            *launch.args,
            grid=launch.grid,
            block=launch.block,
            dynamic_lds=launch.dynamic_lds,
            orders=(EARLIEST,),
            check=False,
            most_instructions=most,
            processes=1,
        )
    return [recorder.waves[number] for number in sorted(recorder.waves)]


def told(instruction: Instruction) -> str:
    """An instruction in a message."""
    return f"{instruction.text} (line {instruction.line})"
