"""B as K x N in LDS: lanes get what matrix instructions take, elements have a place each, and don't meet in a bank."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX950, KernelGeometry
from rota.emit.gemm.gemm_tile import BLayout, Element, Factor, GemmTile
from rota.emit.gemm.hip_gemm import column_dma, column_fetches
from rota.emit.gemm.lds_layout import ColumnPanels, column_panels
from tests.emit.test_column_pairs import TILES as PAIRS
from tests.findings.smallest import raised
from tests.wording.golden import mentions

SMALL = GemmTile(
    geometry=KernelGeometry(BM=128, BN=128), waves=4, element=Element.BF16, machine=GFX950, b_layout=BLayout.KN
)
TILES = {
    "small": SMALL,
    "eight waves": replace(SMALL, geometry=KernelGeometry(), waves=8),
    "fp8": replace(
        SMALL, geometry=KernelGeometry(BK=128, MMA_K=128, elem_bytes=1, is_fp8=True), waves=8, element=Element.FP8
    ),
    "32 columns": replace(SMALL, geometry=KernelGeometry(BN=128, MMA_M=32, MMA_N=32, MMA_K=16)),
}


@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_reads_have_no_conflicts(tile: GemmTile) -> None:
    assert column_panels(tile).conflicts == 0 < ColumnPanels(tile=tile).conflicts


def test_what_rows_left_as_they_are_cost_by_hand() -> None:
    """A row is 128 bytes, half of the 64 banks, so even rows meet.

    The 32 lanes of a phase read 8 rows, 4 of them even: 3 clocks more, 2 phases in 4 reads.
    """
    assert ColumnPanels(tile=SMALL).conflicts == 3 * 2 * 4


@pytest.mark.parametrize(
    "tile", [*TILES.values(), *PAIRS.values()], ids=[*TILES, *(f"{name}, pairs" for name in PAIRS)]
)
def test_every_element_has_a_place_of_its_own(tile: GemmTile) -> None:
    panels = column_panels(tile)
    depth, columns = tile.geometry.BK, tile.geometry.BN
    places = sorted(panels.place(k, column) for k in range(depth) for column in range(columns))
    assert places == list(range(0, tile.tile_bytes(Factor.B), tile.element.bytes))


@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_a_lane_gets_its_column_at_the_k_that_it_has_of_a(tile: GemmTile) -> None:
    """The instruction as the CDNA4 ISA tells it, by hand.

    Of sixteen lanes, four (of fp8 two) hold one k in sixteen columns; lane number l gets column l of four (eight) k.
    A lane has 16 bytes of A in a row, and as many again from 64 k on if a step takes more.
    """
    panels, side, size = column_panels(tile), tile.side, tile.element.bytes
    reach = 8 // size
    held = {panels.place(k, column): (k, column) for k in range(tile.geometry.BK) for column in range(tile.geometry.BN)}
    flipped = [panels.find_flip(panels.lane_k(lane)) for lane in range(64)]
    for part in range(2):
        for step in range(tile.steps):
            got: list[list[tuple[int, int]]] = [[] for _ in range(64)]
            for piece in range(step * tile.step_pieces(Factor.B), (step + 1) * tile.step_pieces(Factor.B)):
                starts = [
                    panels.place(panels.lane_k(lane), part * side + panels.lane_column(lane)) + panels.offset(piece)
                    for lane in range(64)
                ]
                assert flipped == [panels.find_flip(panels.piece_k(piece) + panels.lane_k(lane)) for lane in range(64)]
                for lane in range(64):
                    first, number = lane // 16 * 16, lane % 16
                    sixteen = [
                        [
                            held[starts[first + 16 // reach * k + share] + size * e]
                            for share in range(16 // reach)
                            for e in range(reach)
                        ]
                        for k in range(reach)
                    ]
                    got[lane] += [column[number] for column in sixteen]
            for lane in range(64):
                first_k = step * tile.geometry.MMA_K + lane // side * (16 // size)
                runs = [first_k + more for more in range(0, tile.geometry.MMA_K, 64 // side * (16 // size))]
                due = [(run + k, part * side + lane % side) for run in runs for k in range(16 // size)]
                assert got[lane] == due


@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_reads_wait_for_the_dmas_that_bring_their_rows(tile: GemmTile) -> None:
    panels = column_panels(tile)
    moved = tile.dma_bytes * tile.lanes * tile.waves
    for piece in range(tile.steps * tile.step_pieces(Factor.B)):
        for start in (0, tile.geometry.BN // 2):
            lanes = [panels.place(panels.piece_k(piece) + panels.lane_k(lane), start) for lane in range(64)]
            assert panels.find_dmas(piece, iter([start])) == {place // moved for place in lanes}


def test_dmas_of_less_rows_than_the_exchange_repeats_after_fetch_by_several_patterns() -> None:
    tile = replace(SMALL, geometry=KernelGeometry(BM=128, BN=512))
    panels = column_panels(tile)
    assert (panels.dma_rows, panels.patterns) == (8, 2)
    assert [line for line in column_fetches(tile) if "(b_line + 8) >> 3 & 1" in line]
    assert column_dma(tile, 1) == (["1 * b_dma_rows"], 1)
    assert column_dma(tile, panels.dmas + 2) == (["2 * b_dma_rows", "512"], 0)
    assert column_dma(tile, 1, 3, "rows") == ([f"{3 * panels.dmas + 1} * rows"], 1)


@pytest.mark.parametrize(
    ("fields", "names"),
    [({"geometry": KernelGeometry(BN=96)}, ("BN",)), ({"geometry": KernelGeometry(BN=64, BK=32)}, ("BN", "BK"))],
)
def test_a_tile_that_can_t_be_read_so_is_refused(fields: dict[str, object], names: tuple[str, ...]) -> None:
    finding = raised("T203", lambda: replace(SMALL, **fields))  # type: ignore[arg-type]
    assert mentions(" ".join(str(value) for _, value in finding.evidence), *names)


def test_more_slices_than_panels_are_refused() -> None:
    assert SMALL.slice_rows(Factor.B, 2) == 64
    raised("T203", lambda: SMALL.slice_rows(Factor.B, 4))
