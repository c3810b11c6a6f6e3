"""The private memory of a wave's lanes: takes a size, gives bytes that each lane has to itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rota.isa.binary.kernel_facts import LANES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave


class Private:
    """So many bytes for each lane, poison at first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.bytes = np.full((LANES, max(size, 1)), 0xFF, np.uint8)

    def index(
        self, wave: Wave, instruction: Instruction, offset: NDArray[np.int64], size: int, active: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Byte numbers, lanes by bytes, and the lanes that stay inside."""
        inside = active & (offset >= 0) & (offset + size <= self.size)
        if (active & ~inside).any():
            wave.faults.add(
                "I105",
                instruction,
                f"{instruction.opcode} leaves private memory",
                ("offset", f"{int(offset[active & ~inside][0]):#x}"),
                ("private bytes", self.size),
                ("wave", wave.number),
            )
        return np.where(inside, offset, 0)[:, None] + np.arange(size), inside

    def get(self, index: NDArray[np.int64], lanes: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """Lanes by bytes; poison in lanes that are not asked for."""
        taken = self.bytes[np.arange(LANES)[:, None], np.minimum(index, self.bytes.shape[1] - 1)]
        taken[~lanes] = 0xFF
        return taken

    def put(self, index: NDArray[np.int64], lanes: NDArray[np.bool_], data: NDArray[np.uint8]) -> None:
        """Writes lanes by bytes."""
        self.bytes[np.flatnonzero(lanes)[:, None], index[lanes]] = data[lanes]
