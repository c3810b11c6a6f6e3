"""What a launch did, written down: takes a kernel and its launch, gives each wave's instructions and memory accesses.

The unmodified kernel runs once, in NumPy.  An argument about a mutant looks at nothing but this record.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from rota.isa.decoded import KernelProgram
from rota.isa.disassembly import Instruction
from rota.isa.launch import run as launching
from rota.isa.launch.interleaving import LATEST
from rota.isa.launch.loaded_kernel import LoadedKernel
from rota.isa.memory import lds_ops
from rota.isa.races import AccessOrder, GlobalOrder, MemoryUse, Scope
from rota.isa.wave.wave import Pending, Step, Wave
from tests.isa.corpus.problem import Problem

Octets = NDArray[np.uint8]


@dataclass(slots=True, eq=False, kw_only=True)
class Op:
    """One memory instruction of one wave: its counter and registers, and the bytes it uses, as sets of bits."""

    counter: str
    rows: frozenset[int]
    pc: int
    dma: bool = False
    reads: dict[str, int] = field(default_factory=dict)  # by space
    writes: dict[str, int] = field(default_factory=dict)
    atomics: dict[str, int] = field(default_factory=dict)

    def uses(self, space: str) -> int:
        """All bytes of a space."""
        return self.reads.get(space, 0) | self.writes.get(space, 0) | self.atomics.get(space, 0)


@dataclass(slots=True, eq=False, kw_only=True)
class WaveTrace:
    """What one wave executed: the numbers of its instructions, and the memory ops by their places in that list."""

    group: tuple[int, int, int]
    number: int
    pcs: list[int] = field(default_factory=list)
    ops: dict[int, Op] = field(default_factory=dict)


def _counter(opcode: str) -> str:
    """By its name, so that the argument doesn't rest on the table that it judges."""
    kinds = {"ds_": "ds", "s_": "sm", "flat_": "flat"}
    return next((counter for prefix, counter in kinds.items() if opcode.startswith(prefix)), "vm")


class Recorder:
    """Stands beside an execution and writes it down."""

    def __init__(self) -> None:
        self.waves: dict[tuple[tuple[int, int, int], int], WaveTrace] = {}
        self._now: WaveTrace | None = None
        self._op = Op(counter="", rows=frozenset(), pc=-1)
        self._global: dict[int, dict[str, int]] = {}

    def step(self, number: int, step: Step) -> Step:
        """The same step, which is written down when it is executed."""
        act = step.act

        def recorded(wave: Wave) -> int | None:
            key = wave.workgroup, wave.number
            self._now = self.waves.setdefault(key, WaveTrace(group=wave.workgroup, number=wave.number))
            self._op = Op(counter="", rows=frozenset(), pc=number)
            self._now.pcs.append(number)
            return act(wave)

        return replace(step, act=recorded)

    def launch(self, original: Callable[..., Pending]) -> Callable[..., Pending]:
        """`Wave.launch`."""

        def recorded(wave: Wave, instruction: Instruction, *rest: Any, **named: Any) -> Pending:
            assert self._now is not None
            self._op.counter, self._op.rows = _counter(instruction.opcode), frozenset(named.get("rows", ()))
            self._now.ops[len(self._now.pcs) - 1] = self._op
            return original(wave, instruction, *rest, **named)

        return recorded

    def lds(self, original: Callable[..., int], kind: str, *, dma: bool) -> Callable[..., int]:
        """`AccessOrder.begin_*`."""

        def recorded(order: AccessOrder, index: NDArray[np.int64], *rest: Any, **named: Any) -> int:
            self._op.dma |= dma
            into: dict[str, int] = getattr(self._op, kind)
            into["lds"] = into.get("lds", 0) | bits(index)
            return original(order, index, *rest, **named)

        return recorded

    def begin(self, original: Callable[..., int]) -> Callable[..., int]:
        """`GlobalOrder.begin`."""

        def recorded(
            order: GlobalOrder, wave: Wave, instruction: object, use: MemoryUse, scope: Scope = Scope.WAVE
        ) -> int:
            number = original(order, wave, instruction, use, scope)
            shared = use.atomic or scope is not Scope.WAVE
            self._global[number] = self._op.atomics if shared else self._op.writes if use.writes else self._op.reads
            return number

        return recorded

    def touch(self, original: Callable[..., None]) -> Callable[..., None]:
        """`GlobalOrder.touch`."""

        def recorded(order: GlobalOrder, number: int, place: NDArray[np.int64], size: int, *rest: Any) -> None:
            into = self._global[number]
            into["global"] = into.get("global", 0) | bits(place[..., None] + np.arange(size))
            original(order, number, place, size, *rest)

        return recorded


def bits(index: NDArray[Any]) -> int:
    """A set of byte numbers as the bits of one number."""
    if not index.size:
        return 0
    flags = np.zeros(int(index.max()) + 1, np.bool_)
    flags[index.reshape(-1)] = True
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


_BEGINNINGS = {"begin_read": "reads", "begin_write": "writes", "begin_load": "writes", "begin_atomic": "atomics"}


def traced(kernel: LoadedKernel, problem: Problem) -> list[WaveTrace]:
    """Runs the kernel once, with everything late, and gives what its waves did."""
    recorder = Recorder()
    program: KernelProgram = kernel.program
    steps = tuple(recorder.step(number, step) for number, step in enumerate(program.steps))
    with ExitStack() as stack:
        stack.enter_context(patch.object(launching, "run_clean", lambda *_, **__: None))
        stack.enter_context(patch.object(Wave, "launch", recorder.launch(Wave.launch)))
        for name, kind in _BEGINNINGS.items():
            recorded = recorder.lds(getattr(AccessOrder, name), kind, dma=name == "begin_load")
            stack.enter_context(patch.object(AccessOrder, name, recorded))
        stack.enter_context(patch.object(GlobalOrder, "begin", recorder.begin(GlobalOrder.begin)))
        stack.enter_context(patch.object(GlobalOrder, "touch", recorder.touch(GlobalOrder.touch)))
        _run(replace(program, steps=steps), problem)
    found = [*recorder.waves.values()]
    for trace in found:
        _only_contested(trace, [each for each in found if each.group == trace.group and each is not trace])
    return found


def _only_contested(trace: WaveTrace, others: Sequence[WaveTrace]) -> None:
    """Of global memory, only bytes that another wave of the workgroup uses too can be in conflict."""
    theirs = 0
    for op in (op for other in others for op in other.ops.values()):
        theirs |= op.uses("global")
    for kind in (kind for op in trace.ops.values() for kind in (op.reads, op.writes, op.atomics)):
        if "global" in kind:
            kind["global"] &= theirs


def matters(kernel: LoadedKernel, problem: Problem, place: int) -> bool:
    """Are outputs wrong if a read of LDS brings zeros, or if its lanes get each other's bytes?"""
    original, line = lds_ops.read, kernel.program.steps[place].instruction.line

    def reads(
        other: Callable[[Octets], Octets], wave: Wave, instruction: Instruction, *rest: Any, **named: Any
    ) -> None:
        if instruction.line == line:
            arrange = named["arrange"]
            named["arrange"] = lambda octets: arrange(np.ascontiguousarray(other(octets)))
        original(wave, instruction, *rest, **named)

    for other in (np.zeros_like, np.flipud):
        with (
            patch.object(launching, "run_clean", lambda *_, **__: None),
            patch.object(lds_ops, "read", partial(reads, other)),
        ):
            now = copy.deepcopy(problem)
            _run(kernel.program, now)
        if now.off() > 1:
            return True
    return False


def _run(program: KernelProgram, problem: Problem) -> None:
    LoadedKernel(program=program).launch(
        *problem.args,
        grid=problem.grid,
        block=problem.block,
        dynamic_lds=problem.dynamic_lds,
        orders=(LATEST,),
        check=False,
    )
