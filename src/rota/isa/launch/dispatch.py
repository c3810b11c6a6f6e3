"""How the machine starts a wave: takes a kernel's facts and a launch, gives the dispatch packet and first registers.

LLVM, "User Guide for AMDGPU Backend", sections "Initial Kernel Execution State" and "Kernel Dispatch"; the packet is
that of the HSA runtime specification, "Kernel dispatch packet".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.binary.kernel_facts import LANES, KernelFacts
from rota.isa.launch.kernarg import Sizes, Triple, service_pointer
from rota.isa.wave.operand import EXEC
from rota.isa.wave.wave import POISON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

PACKET_BYTES = 64
_KERNEL_DISPATCH = 2 | 1 << 8 | 2 << 9 | 2 << 11  # its type, behind a barrier, fences of the system's scope
_OLD_FIRMWARE = 256  # bytes: what loads the arguments where nothing preloads them stands before the entry
_FIRST_WAVE = 1 << 31


def waves_of(block: Triple) -> int:
    """How many waves the work-items of a workgroup fill."""
    return -(-block[0] * block[1] * block[2] // LANES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """What all waves of a launch start from: its sizes, and where its kernarg segment and its packet lie."""

    facts: KernelFacts
    sizes: Sizes
    kernarg: bytes
    kernarg_at: int
    packet_at: int
    entry: int  # the number of the first instruction

    @property
    def waves(self) -> int:
        """Waves of a workgroup."""
        return waves_of(self.sizes.block)

    def start(self, wave: Wave, workgroup: Triple) -> None:
        """Gives a wave its first registers: user SGPRs, workgroup ids, work-item ids packed into v0 (from gfx90a)."""
        wave.pc = self.entry
        wave.mode = self.facts.descriptor.float_mode.bits
        at = 0
        for name, size in self.facts.user_sgprs:
            words = self._user(name, size)
            wave.s[at : at + size] = words
            at += size
        for wanted, value in zip(self.facts.workgroup_ids, workgroup, strict=True):
            if wanted:
                wave.s[at] = value
                at += 1
        if self.facts.descriptor.workgroup_info:
            wave.s[at] = self.waves | (_FIRST_WAVE if wave.number == 0 else 0)
        self._items(wave)

    def _user(self, name: str, size: int) -> list[int]:
        """Words of one user SGPR value.  Scratch is found by the hardware itself, so its descriptors hold poison."""
        if name == "kernarg_preload":
            padded = self.kernarg[4 * self.facts.descriptor.preload_offset :].ljust(4 * size, b"\0")
            return list(struct.unpack_from(f"<{size}I", padded))
        known = {
            "kernarg_segment_ptr": self.kernarg_at,
            "dispatch_ptr": self.packet_at,
            "queue_ptr": service_pointer("queue_ptr"),
            "dispatch_id": 0,
            "private_segment_size": self.facts.private_bytes,
        }
        if name not in known:
            return [POISON] * size
        return [known[name] >> 32 * word & 0xFFFF_FFFF for word in range(size)]

    def _items(self, wave: Wave) -> None:
        block = self.sizes.block
        item = wave.number * LANES + np.arange(LANES)
        x, y, z = item % block[0], item // block[0] % block[1], item // (block[0] * block[1])
        ids = (x, y, z)[: self.facts.workitem_ids + 1]
        wave.v[0] = sum((part << (10 * place) for place, part in enumerate(ids)), np.zeros(LANES, np.int64))
        here = block[0] * block[1] * block[2] - wave.number * LANES
        if here < LANES:
            wave.s[EXEC], wave.s[EXEC + 1] = (1 << here) - 1 & 0xFFFF_FFFF, (1 << here) - 1 >> 32
            wave.take_exec()


def build_packet(facts: KernelFacts, sizes: Sizes, kernarg_at: int) -> bytes:
    """The 64 bytes that a queue holds for a launch."""
    dims = max((axis + 1 for axis in range(3) if sizes.grid[axis] * sizes.block[axis] > 1), default=1)
    items = (count * size for count, size in zip(sizes.grid, sizes.block, strict=True))
    return struct.pack(
        "<6H5I4Q",
        *(_KERNEL_DISPATCH, dims, *sizes.block, 0),
        *(*items, facts.private_bytes, sizes.fixed_lds + sizes.dynamic_lds),
        *(0, kernarg_at, 0, 0),  # the kernel object and the signal are nobody's business here
    )


def first_instruction(facts: KernelFacts, instructions: Sequence[Instruction]) -> int:
    """Where waves enter: behind the loads for old firmware if arguments are preloaded, as current firmware does.

    A listing without addresses is entered at its top, which is right as well: the loads repeat what was preloaded.
    """
    entry = facts.entry
    if entry is None and "kernarg_preload" in dict(facts.user_sgprs) and instructions[0].address is not None:
        entry = instructions[0].address + _OLD_FIRMWARE
    return next((number for number, each in enumerate(instructions) if entry and each.address == entry), 0)
