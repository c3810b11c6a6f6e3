from __future__ import annotations

from time import perf_counter

import pytest

from rota import Loop, LoopSpec, compile_loop
from tests.findings.smallest import raised

_SECONDS = 30  # far above what it takes; one by one it would be hours


def slip(load: int, read: int, make: int) -> LoopSpec:
    loop = Loop("slip", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, instructions=load, moved=4096)
    a = loop.fragment("a", tile, registers=4, instructions=read)
    loop.valu("b", [a], registers=4, instructions=make)
    return loop.build()


@pytest.mark.parametrize(
    ("counts", "name"), [((10**6, 1, 1), "load_A"), ((1, 10**7, 1), "read_a"), ((1, 1, 10**9), "make_b")]
)
def test_an_iteration_that_no_table_holds_is_refused_at_once(counts: tuple[int, int, int], name: str) -> None:
    started = perf_counter()
    finding = raised("L107", lambda: compile_loop(slip(*counts)))
    assert perf_counter() - started < _SECONDS
    (concern,) = finding.concerns
    assert concern.label == name
    assert concern.source is not None
    assert ("limit", 1_000_000) in finding.evidence


@pytest.mark.parametrize("counts", [(100_000, 1, 1), (1, 100_000, 1), (1, 1, 100_000)])
def test_what_is_merely_absurd_ends_in_bounded_time(counts: tuple[int, int, int]) -> None:
    """Waits were weakened by one token at a time, far beyond what their counter holds."""
    started = perf_counter()
    compiled = compile_loop(slip(*counts))
    assert perf_counter() - started < _SECONDS
    assert compiled.modulo is not None
    assert compiled.modulo.ii >= sum(counts)  # a wave issues one instruction a slot
