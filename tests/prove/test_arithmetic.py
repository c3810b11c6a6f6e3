"""Numbers that operations make, against their definitions in the instruction set."""

from __future__ import annotations

import numpy as np
import pytest

from rota.prove.symbol import ARITHMETIC

A, B = 0x7766_5544, 0x3322_1100


@pytest.mark.parametrize(
    ("selector", "bytes_"), [(0x0706_0504, A), (0x0302_0100, B), (0x0400_0C07, 0x4400_0077), (0x0C0C_0C0C, 0)]
)
def test_bytes_are_picked(selector: int, bytes_: int) -> None:
    """Bytes 0 to 3 are those of the second operand, 4 to 7 of the first, 12 is zero."""
    assert ARITHMETIC["perm"](A, B, selector) == bytes_
    lanes = ARITHMETIC["perm"](np.full((1, 64), A), np.full((1, 64), B), selector)
    assert np.all(np.asarray(lanes) == bytes_)


@pytest.mark.parametrize("selector", [0x0D, 0x08])
def test_other_selectors_are_not_followed(selector: int) -> None:
    with pytest.raises(ValueError, match="selector"):
        ARITHMETIC["perm"](A, B, selector)
