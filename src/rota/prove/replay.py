"""A launch, executed: takes arguments that a proof found, gives what the interpreter finds wrong with it.

This is the only module of the proof that knows the interpreter.  One workgroup is run, under a few orders of its
waves.  What is shown are values and races: wait states are rules, which the interpreter could only look up again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from rota.errors import Finding, IsaError
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.code.disassembly import Instruction
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.hazards.spacing import NOTHING
from rota.isa.launch.interleaving import EARLIEST, LATEST, Interleaving
from rota.isa.launch.kernarg import Pointer, Value
from rota.isa.launch.run import run_dispatch
from rota.isa.memory.global_memory import Memory
from rota.isa.wave.wave import Faults
from rota.prove.witness import BUFFER_BYTES, Launch, NoLaunchError, Triple, pointers_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_INSTRUCTIONS = 20_000
"""Of one wave in a replay."""
MOST_RUNS = 30
"""Orders of launches that are executed for one proof."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Only(Interleaving):
    """One workgroup alone, by its number."""

    number: int = 0

    def arranged(self, workgroups: Sequence[T]) -> list[T]:
        """That workgroup."""
        return [workgroups[self.number]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderShown:
    """What one order showed: its label, findings, and where the launch reached outside of its buffers, if it did.

    `output` is equal where all buffers are equal in the end; None if the launch didn't come to its end.  Of one that
    didn't, `instructions` are the most that a wave may have executed.
    """

    order: str
    findings: tuple[Finding, ...]
    outside: str
    output: bytes | None
    instructions: int = 0


class Replay:
    """Executes launches of one kernel."""

    def __init__(
        self,
        facts: KernelFacts,
        instructions: Sequence[Instruction],
        *,
        block: Triple,
        dynamic_lds: int,
        image: bytes = b"",
        tables: frozenset[int] = frozenset(),
    ) -> None:
        self._facts, self._instructions, self._image = facts, tuple(instructions), image
        self._block, self._dynamic, self._tables = block, dynamic_lds, tables
        self._runs = 0

    @cached_property
    def _program(self) -> KernelProgram:
        """Without wait states: the proof has judged them by the same table, and what they spoil would show nothing."""
        try:
            program = load_program(self._facts, self._instructions, image=self._image)
            return replace(program, steps=tuple(replace(step, spacing=NOTHING) for step in program.steps))
        except IsaError as error:
            raise NoLaunchError(f"the interpreter can't run it: {error.findings[0].message}") from error

    @cached_property
    def addresses(self) -> tuple[int, ...]:
        """Where the buffers of pointers will lie, and a spare one."""
        image = [np.frombuffer(self._program.image, np.uint8)] if self._program.image else []
        count = len(pointers_of(self._facts)) + 1
        memory = Memory([*image, *self._buffers(count)], Faults())
        return tuple(memory.address(len(image) + number) for number in range(count))

    @staticmethod
    def _buffers(count: int) -> list[NDArray[np.uint8]]:
        return [np.zeros(BUFFER_BYTES, np.uint8) for _ in range(count)]

    def run(self, launch: Launch, waves: Sequence[int], *, noise: int) -> Iterator[OrderShown]:
        """One order after the other; the first of the two waves is left behind, the second runs ahead.

        With `noise`, buffers hold pseudo-random words instead of zeros, drawn by that seed, but for tables: what scalar
        loads read are indices more often than not.
        """
        buffers = self._buffers(len(self.addresses))
        if noise:
            draw = np.random.default_rng(noise)
            for pointer, each in zip(pointers_of(self._facts), buffers, strict=False):
                if pointer.offset in self._tables:
                    continue
                each.view(np.uint32)[:] = draw.integers(0, 1 << 32, len(each) // 4, np.uint32)
        for word in launch.memory:
            buffers[word.buffer].view(np.uint32)[word.offset // 4] = word.value
        x, y, z = launch.workgroup
        number = x + launch.grid[0] * (y + launch.grid[1] * z)
        for order in _orders(waves):
            if self._runs >= MOST_RUNS:
                raise NoLaunchError(f"{MOST_RUNS} executions were made already, for other alarms")
            self._runs += 1
            only = Only(label=order.label, ahead=order.ahead, behind=order.behind, landing=order.landing, number=number)
            try:
                outcome = run_dispatch(
                    self._program,
                    buffers=buffers,
                    values=self._values(launch),
                    grid=launch.grid,
                    block=self._block,
                    dynamic_lds=self._dynamic,
                    interleaving=only,
                    most=MOST_INSTRUCTIONS,
                )
                found: tuple[Finding, ...] = outcome.findings
                output: bytes | None = _digest(outcome.buffers)
                count = outcome.instructions
            except IsaError as error:
                found, output, count = error.findings, None, MOST_INSTRUCTIONS
                if {each.code for each in found} == {"I107"}:
                    raise NoLaunchError(f"no launch fits it: {found[0].evidence}") from error
            yield OrderShown(
                order=order.label, findings=found, outside=_outside(found), output=output, instructions=count
            )

    def _values(self, launch: Launch) -> list[Value]:
        """The declared arguments as the launch has them."""
        segment = np.zeros(max(self._facts.kernarg_bytes, 4) + 16, np.uint8)
        for each in self._facts.arguments:
            if each.kind == "by_value" and each.size >= 4:
                segment[each.offset] = launch.fill
        for offset, value in launch.arguments:
            segment[offset : offset + 4] = np.frombuffer(value.to_bytes(4, "little"), np.uint8)
        values: list[Value] = []
        buffer = 0
        for each in self._facts.arguments:
            if each.hidden:
                continue
            if each.kind == "global_buffer" and each.size == 8:
                values.append(Pointer(buffer=buffer))
                buffer += 1
            elif each.kind == "dynamic_shared_pointer":
                values.append(0)
            else:
                values.append(segment[each.offset : each.offset + each.size].tobytes())
        if not self._facts.arguments and self._facts.kernarg_bytes:
            values = [segment[: self._facts.kernarg_bytes].tobytes()]
        return values


def _orders(waves: Sequence[int]) -> Iterator[Interleaving]:
    yield LATEST
    for first, then in pairwise(waves):
        yield Interleaving(label=f"wave {then} ahead, wave {first} behind", ahead=(then,), behind=(first,))
    yield EARLIEST


def _digest(buffers: Sequence[NDArray[np.uint8]]) -> bytes:
    total = blake2b()
    for each in buffers:
        total.update(each.tobytes())
    return total.digest()


def _outside(findings: Sequence[Finding]) -> str:
    """The first instruction that used memory which belongs to nobody."""
    told = (each for each in findings if each.code == "I105" and "leaves LDS" not in each.message)
    return next((each.concerns[0].label for each in told), "")
