"""The cycle model on random instruction lists: no unit is faster than it can be, no clock is lost without a cause."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings, strategies as st

from rota.cycles.instructions import CODE, Arbitration, ModelInstruction, Parameters
from rota.cycles.model import run
from rota.program.kinds import OpKind
from tests.cycles.programs import (
    BARRIER,
    DMA,
    MFMA,
    PARAMETERS,
    READ,
    SCALAR,
    VALU,
    priority,
    program,
    wait_lgkm,
    wait_vm,
)

TRIPS = 12
ANY = st.one_of(
    st.sampled_from([MFMA, MFMA, MFMA, VALU, READ, READ, DMA, BARRIER, SCALAR]),
    st.integers(0, 6).map(wait_vm),
    st.integers(0, 6).map(wait_lgkm),
    st.integers(0, 3).map(priority),
)
KERNELS = st.lists(ANY, min_size=1, max_size=30)
SETTINGS = st.builds(
    PARAMETERS.but,
    arbitration=st.sampled_from(Arbitration),
    issue_classes=st.sampled_from([1, 4]),
    dma_jitter=st.sampled_from([0, 300]),
    loop_edge=st.integers(1, 6),
    barrier=st.integers(0, 40),
)


def total(kernel: Sequence[ModelInstruction], *kinds: OpKind) -> int:
    return sum(each.held for each in kernel if each.kind in [CODE[kind] for kind in kinds])


@settings(max_examples=60, deadline=None)
@given(kernel=KERNELS, parameters=SETTINGS, waves=st.integers(1, 8))
def test_no_unit_is_overdrawn_and_no_clock_unaccounted(
    kernel: list[ModelInstruction], parameters: Parameters, waves: int
) -> None:
    result = run(program(kernel, roles=(0,) * waves), parameters, trips=TRIPS)
    for edges, trips, idles in zip(result.edges, result.lost, result.idle, strict=True):
        assert len(edges) == TRIPS + 1
        assert len(trips) == len(idles) == TRIPS
        for start, end, lost in zip(edges[1:-1], edges[2:], trips[1:], strict=True):
            assert end - start == 4 * (len(kernel) + parameters.loop_edge) + sum(lost.values())
    sharing = -(-waves // 4)
    whole = max(edges[-1] for edges in result.edges)
    math = sum(each.kind in (CODE[OpKind.MMA], CODE[OpKind.VALU]) for each in kernel)
    # The last MFMA, LDS read and DMA of a wave may still be in flight when it is through.
    assert whole + 16 >= TRIPS * total(kernel, OpKind.MMA) * sharing
    assert whole >= TRIPS * 4 * math * sharing
    pending = 15 * waves * 4
    assert whole + pending >= TRIPS * waves * total(kernel, OpKind.LDS_READ)
    under_way = 63 * waves * 16
    assert whole + under_way >= TRIPS * waves * total(kernel, OpKind.DMA)


@settings(max_examples=40, deadline=None)
@given(kernel=KERNELS, place=st.integers(0, 30), cost=st.integers(8, 200))
def test_for_one_wave_a_barrier_costs_and_a_wait_less_saves(
    kernel: list[ModelInstruction], place: int, cost: int
) -> None:
    """One wave meets nobody at the units, so nothing can turn out luckier."""
    parameters = PARAMETERS.but(barrier=cost)
    place = min(place, len(kernel))
    base = run(program(kernel), parameters, trips=TRIPS).edges[0]
    more = run(program([*kernel[:place], BARRIER, *kernel[place:]]), parameters, trips=TRIPS).edges[0]
    assert all(later >= earlier for earlier, later in zip(base, more, strict=True))
    for number, each in enumerate(kernel):
        if each.kind == CODE[OpKind.WAIT]:
            weaker = [*kernel[:number], each._replace(held=each.held + 1), *kernel[number + 1 :]]
            less = run(program(weaker), parameters, trips=TRIPS).edges[0]
            assert all(sooner <= later for sooner, later in zip(less, base, strict=True))
