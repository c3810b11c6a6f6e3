"""A run that stops because its state repeats, against one that goes on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from rota.cycles.instructions import Arbitration, ModelInstruction, Parameters
from rota.cycles.model import Steady, run
from rota.cycles.predict import predict
from rota.kernels.gemm import BF16
from tests.cycles.programs import DMA, MFMA, PARAMETERS, READ, program, wait_vm
from tests.cycles.test_cycles_random import KERNELS
from tests.cycles.timed_loops import only_mfmas

pytestmark = pytest.mark.no_cover  # long runs of the model, which other tests run shortly

SETTINGS = st.builds(
    PARAMETERS.but,
    arbitration=st.sampled_from(Arbitration),
    issue_classes=st.sampled_from([1, 4]),
    dma_latency=st.sampled_from([300, 1400]),
    loop_edge=st.integers(1, 6),
)


@settings(max_examples=60, deadline=None)
@given(kernel=KERNELS, parameters=SETTINGS, waves=st.sampled_from([1, 4, 8]))
def test_what_has_repeated_goes_on_repeating(
    kernel: list[ModelInstruction], parameters: Parameters, waves: int
) -> None:
    code = program(kernel, roles=(0,) * waves)
    short = run(code, parameters, trips=150, until=Steady.ACCOUNTS)
    period = short.period
    if not period:
        return
    last = len(short.edges[0]) - 1
    long = run(code, parameters, trips=last + 2 * period + 70)  # a full vmcnt would be felt after 63 tokens
    clocks = short.edges[0][-1] - short.edges[0][-1 - period]
    shorter = run(code, parameters, trips=150, until=Steady.CLOCKS)
    assert (shorter.period, shorter.clocks_per_trip) == (period, short.clocks_per_trip)
    assert shorter.trips == short.trips - period
    for edges, lost, idle, kept in zip(long.edges, long.lost, long.idle, short.lost, strict=True):
        for trip in range(last, last + period + 1):
            assert edges[trip + period] - edges[trip] == clocks
        end = len(kept)
        assert list(kept[-period:]) == list(lost[end : end + period])
        assert [sum(one.values()) for one in idle[end - period : end]] == [
            sum(one.values()) for one in idle[end : end + period]
        ]


def test_a_latency_that_many_trips_hide_is_felt_in_the_mean() -> None:
    """Eight tokens may be in flight: after each latency (800 and 24 for path and port) eight trips rush through."""
    found = run(program([DMA, MFMA, wait_vm(7)]), PARAMETERS.but(loop_edge=1), trips=200, until=Steady.ACCOUNTS)
    assert found.period
    assert found.clocks_per_trip >= (800 + 24) / 8


def test_waves_that_nothing_ties_are_done_when_the_last_is() -> None:
    """The oldest takes every turn of the matrix unit; the other comes after it, and both need 16 clocks an MFMA."""
    starving = PARAMETERS.but(arbitration=Arbitration.OLDEST, loop_edge=1)
    found = run(program([MFMA] * 20, roles=(0,) * 8), starving, trips=40, until=Steady.ACCOUNTS)
    assert found.apart
    assert found.clocks_per_trip == pytest.approx(2 * 20 * 16, rel=0.02)


_SLOW = pytest.mark.slow


@pytest.mark.parametrize("waves", [4, pytest.param(5, marks=_SLOW), pytest.param(8, marks=_SLOW), 12])
def test_no_end_of_the_band_lies_above_the_peak(waves: int) -> None:
    found = predict(only_mfmas(BF16, waves=waves))
    assert 0.9 < found.mma_share_band.low <= found.mma_share_band.high <= 1


def test_a_loop_of_mfmas_is_periodic() -> None:
    assert predict(only_mfmas(BF16), band=False).steady.startswith("steady: the unit's state repeats every trip")


def test_reads_alone_settle_too() -> None:
    assert run(program([READ]), PARAMETERS, trips=150, until=Steady.ACCOUNTS).period
