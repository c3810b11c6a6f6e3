from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX942, GFX950, KernelGeometry
from rota.emit.gemm.gemm_tile import Element, GemmTile
from rota.emit.gemm.lds_layout import LdsLayout, bank_conflicts, free_layout, plain_layout
from rota.targets.architecture import BankRule
from rota.targets.registry import list_architectures

CDNA4 = GemmTile(geometry=KernelGeometry(), waves=4, element=Element.BF16, machine=GFX950)
CDNA3 = GemmTile(geometry=KernelGeometry(MMA_K=16), waves=4, element=Element.BF16, machine=GFX942)
FP8 = GemmTile(
    geometry=KernelGeometry(BK=128, MMA_K=128, elem_bytes=1, is_fp8=True), waves=8, element=Element.FP8, machine=GFX950
)


@pytest.mark.parametrize("tile", [CDNA4, CDNA3, FP8])
def test_emitted_reads_have_no_conflicts(tile: GemmTile) -> None:
    assert bank_conflicts(tile, free_layout(tile)) == 0


def test_what_the_plain_layout_costs_by_hand() -> None:
    """gfx950: a row is 128 bytes, half of the 64 banks, so even rows meet.

    Of the 16 lanes of a phase 8 have even rows, 4 of each stretch of K: 4 addresses a bank are 3 clocks more, 4 phases
    in 2 reads.  On gfx942 a row is all 32 banks: the 16 rows of a phase meet, in 4 phases of 4 reads.
    """
    assert bank_conflicts(CDNA4, plain_layout(CDNA4)) == 3 * 4 * 2
    assert bank_conflicts(CDNA3, plain_layout(CDNA3)) == 15 * 4 * 4


def test_lanes_that_read_the_same_address_do_not_conflict() -> None:
    everyone_reads_one_row = LdsLayout(row_bytes=0, chunk_bytes=16)
    assert bank_conflicts(CDNA4, everyone_reads_one_row) == 0


@pytest.mark.parametrize("tile", [CDNA4, CDNA3, FP8])
def test_the_exchange_keeps_every_byte_of_its_row(tile: GemmTile) -> None:
    layout = free_layout(tile)
    for row in range(32):
        places = sorted(layout.place(row, byte) for byte in range(layout.row_bytes))
        assert places == list(range(row * layout.row_bytes, (row + 1) * layout.row_bytes))


@pytest.mark.parametrize("rule", [rule for each in list_architectures() for rule in each.bank_rules])
def test_every_lane_is_served_once(rule: BankRule) -> None:
    assert sorted(lane for phase in rule.phases for lane in phase) == list(range(64))
    full = 3 * rule.banks.value // 4 if rule.read_bytes == 12 else rule.banks.value  # three words of four
    assert {len(phase) * rule.read_bytes // 4 for phase in rule.phases} == {full}


@pytest.mark.parametrize("depth", [32, 64, 128])
@pytest.mark.parametrize(("tile", "side", "k"), [(CDNA4, 16, 32), (CDNA4, 32, 16), (CDNA3, 16, 16), (CDNA3, 32, 8)])
def test_other_depths_and_instructions_have_none_either(tile: GemmTile, side: int, k: int, depth: int) -> None:
    other = replace(tile, geometry=KernelGeometry(BK=depth, MMA_M=side, MMA_N=side, MMA_K=k))
    assert bank_conflicts(other, free_layout(other)) == 0 < bank_conflicts(other, plain_layout(other))
