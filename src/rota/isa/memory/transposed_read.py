"""LDS reads that transpose: takes the width of a read and of an element, gives what its registers get (CDNA4 ISA).

Sixteen lanes work together.  A lane reads as many elements as fit its width, `n` of them, from its own address; 16 / n
lanes side by side hold one column of sixteen elements.  Lane `l` of the sixteen gets element `l` of each column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rota.isa.binary.kernel_facts import LANES

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TEAM = 16


def arranged(bits: int, element: int) -> Callable[[NDArray[np.uint8]], NDArray[np.uint32]]:
    """What turns the bytes that lanes read into registers, rows by lanes."""
    count = bits // element
    lane = np.arange(LANES)[:, None]
    column = np.arange(count)
    member = lane % _TEAM
    source = lane // _TEAM * _TEAM + column * (_TEAM // count) + member // count
    place = member % count

    def registers(octets: NDArray[np.uint8]) -> NDArray[np.uint32]:
        read = np.unpackbits(octets, axis=1, bitorder="little").reshape(LANES, count, element)
        taken = read[source, np.broadcast_to(place, source.shape)].reshape(LANES, bits)
        return np.packbits(taken, axis=1, bitorder="little").view(np.uint32).T

    return registers
