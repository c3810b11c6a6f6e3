"""Loops of small tiles are as fast as their busiest unit, with more copies and less slack where that takes some."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rota import verify
from rota.cycles.predict import clocks_per_tile, list_bounds
from rota.errors import OrderError
from rota.order.modulo.scheduler import ModuloScheduler
from rota.tune.point import LoopPoint
from rota.values.buffer_depth import check_placement
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import CompiledLoop
from rota.values.placement import list_placements

pytestmark = pytest.mark.thorough  # searches
MODULE = "rota.values.compile_loop"

TILES: dict[str, dict[str, Any]] = {
    "latency over few clocks": {"tile": (64, 64, 32), "waves": 4},
    "reads and loads as long as the interval": {"tile": (64, 64, 64), "waves": 4},
    "registers read ahead": {"tile": (128, 128, 32), "waves": 8},
    "less slack for loads": {"tile": (160, 128, 32), "waves": 8},
    "in 64 KiB": {"tile": (32, 64, 64), "waves": 4, "device": "MI300X"},
    "rows that end within a DMA": {"tile": (32, 64, 64), "waves": 8},
}


def compiled(**fields: Any) -> CompiledLoop:
    point = LoopPoint(**{"device": "MI355X", **fields})
    return compile_loop(point.loop(), point.target)


@pytest.mark.parametrize("name", TILES)
def test_it_takes_what_its_busiest_unit_needs(name: str) -> None:
    made = compiled(**TILES[name])
    assert clocks_per_tile(made) <= 1.01 * max(list_bounds(made).values())
    assert made.certificate is not None
    assert verify(made).clean


def test_a_tile_that_lds_holds_once_is_placed_at_the_interval_that_takes() -> None:
    """Load, read and load again are a chain: it took a minute to find 1.5 times as many clocks."""
    made = compiled(tile=(64, 256, 64), waves=4, device="MI300X")
    assert dict(made.placement.copies)["B"] == 1
    assert made.modulo is not None
    lower = made.modulo.certificate.lower * 4
    assert lower > 1.5 * max(list_bounds(made).values())
    assert lower <= clocks_per_tile(made) <= 1.03 * lower


def test_where_slack_is_asked_for_no_less_is_tried() -> None:
    point = LoopPoint(device="MI355X", tile=(160, 128, 32), waves=8)
    asked = compile_loop(point.loop(), point.target, slack=75)
    assert asked.placement.landing_slack == 75
    free = compile_loop(point.loop(), point.target)
    assert free.placement.landing_slack < 75
    assert clocks_per_tile(free) < 0.95 * clocks_per_tile(asked)


@pytest.mark.parametrize("refused", [1, 100])
def test_a_placement_whose_registers_dont_fit_is_passed_over(refused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If none fits, the first one's finding is raised."""
    point = LoopPoint(device="MI355X", tile=(160, 128, 32), waves=8)
    seen: list[object] = []

    def refuse(*given: Any) -> None:
        seen.append(given[1])
        if len(seen) <= refused:
            raise OrderError.of("L104", f"placement {len(seen)}")
        check_placement(*given)

    monkeypatch.setattr(f"{MODULE}.check_placement", refuse)
    if refused == 1:
        made = compile_loop(point.loop(), point.target)
        assert made.placement != seen[0]
        assert made.placement in seen
    else:
        with pytest.raises(OrderError, match="placement 1"):
            compile_loop(point.loop(), point.target)


def test_a_loop_in_tiles_is_placed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def count(*given: Any, **said: Any) -> Any:
        found = list(list_placements(*given, **said))
        asked.extend(found)
        return found

    monkeypatch.setattr(f"{MODULE}.list_placements", count)
    point = LoopPoint(device="MI355X", tile=(128, 128, 64), waves=4)
    compile_loop(replace(point, instructions=False).loop(), point.target)
    assert len(asked) == 1


def test_where_a_search_may_take_no_time_lists_at_longer_intervals_leave_room_for_barriers() -> None:
    """What has none is repaired: it took 18 times as long to compile, and 2.3 times the clocks."""
    point = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4)
    loop = replace(point, instructions=False).loop()
    made = compile_loop(loop, point.target, scheduler=ModuloScheduler(time_limit=0.0))
    assert made.placement.barriers
    assert clocks_per_tile(made) < 1.2 * max(list_bounds(made).values())
