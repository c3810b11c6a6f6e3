"""Workgroups on the native core: takes a packed program and an interleaving, gives faults and instructions executed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.interleaving import Interleaving, Landing
from rota.isa.memory import BASE
from rota.isa.native.library import library
from rota.isa.native.pack import FAULT, OP, OPERAND, Packed
from rota.isa.native.words import tell
from rota.isa.operand import EXEC
from rota.isa.wave import COUNTERS, Faults, Wave

if TYPE_CHECKING:
    from rota.isa.decoded import KernelProgram
    from rota.isa.memory import Memory

_SLICE = 2_000_000  # instructions between two looks at what else the process has to do
_LANDINGS = {Landing.LATEST: 0, Landing.EARLIEST: 1, Landing.ANY: 2}
_MOST_WAVES = 16
_STARTING_ROWS = 3  # what a wave starts with in vector registers


class Workgroups:
    """Runs one workgroup after the other; the memory is that of the launch."""

    def __init__(self, program: KernelProgram, packed: Packed, memory: Memory, waves: int, lds_bytes: int) -> None:
        core = library()
        assert core is not None  # noqa: S101  # packing needs it too
        assert [core.rota_size(n) for n in range(3)] == [each.itemsize for each in (OPERAND, OP, FAULT)]  # noqa: S101
        self._core, self._program, self._packed, self._waves = core, program, packed, waves
        self._acts = (ctypes.c_void_p * len(packed.ops))()
        core.rota_acts(packed.ops.ctypes.data, len(packed.ops), self._acts)
        self._group = core.rota_group_new(packed.ops.ctypes.data, len(packed.ops), packed.pool.ctypes.data, waves, lds_bytes)
        if not self._group:
            raise MemoryError(f"no room for a workgroup of {waves} waves and {lds_bytes} bytes of LDS")
        self._bounds = memory.bounds()
        starts, ends = self._bounds
        core.rota_group_memory(
            self._group, memory.block.ctypes.data, BASE, starts.ctypes.data, ends.ctypes.data, len(starts)
        )
        self._memory = memory

    def __enter__(self) -> Workgroups:
        return self

    def __exit__(self, *_: object) -> None:
        self._core.rota_group_free(self._group)

    def run(self, waves: Iterable[Wave], interleaving: Interleaving, seed: int, most: int) -> tuple[int, bool]:
        """Runs one workgroup; how many instructions it executed, and whether it ended."""
        core, group, machine = self._core, self._group, self._program.architecture
        core.rota_group_start(group)
        rank = np.array([interleaving.rank(number) for number in range(_MOST_WAVES)], np.int32)
        held = [machine.no_wait(name) for name in COUNTERS]
        core.rota_group_order(
            group, _LANDINGS[interleaving.landing], interleaving.seed is not None, seed, rank.ctypes.data, most, *held
        )
        for wave in waves:
            self._start(wave)
        done = 1
        while done == 1:
            done = core.rota_run(group, self._acts, _SLICE)
        return core.rota_executed(group), done == 0

    def _start(self, wave: Wave) -> None:
        scalars = (ctypes.c_uint32 * len(wave.s)).from_address(self._core.rota_scalars(self._group, wave.number))
        scalars[:] = wave.s
        rows = wave.v[:_STARTING_ROWS]
        ctypes.memmove(self._core.rota_vectors(self._group, wave.number), rows.ctypes.data, rows.nbytes)
        self._core.rota_set_exec(self._group, wave.number, wave.s[EXEC] | wave.s[EXEC + 1] << 32)

    def tell(self, faults: Faults) -> None:
        """Says in words what the core found."""
        count = ctypes.c_int32()
        at = self._core.rota_faults(self._group, ctypes.byref(count))
        if count.value:
            raw = (ctypes.c_char * (count.value * FAULT.itemsize)).from_address(at)
            tell(np.frombuffer(raw, FAULT), self._program.steps, faults, self._memory)
