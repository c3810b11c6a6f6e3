"""The time of a whole GEMM: takes parameters of a device and the work of a kernel, gives microseconds, part by part.

    T      = start + sqrt(T_loop^2 + T_mem^2) + T_store + T_split
    T_loop = rounds k_tiles c / f        c = sqrt((loop / share)^2 + (operand bytes of a K-tile / feed)^2)
    T_mem  = operand bytes / hbm         f = min(f_max, f_busy u^(-1/3)),  u = matrix-busy share of the device

A root of squares stands for two things that overlap, but not perfectly.  The clock falls with the matrix units' work
because power, which is capped, grows with u f^3.

Only operators are used, so that every value may be a number, or an array with an element for each of many runs.
"""

from __future__ import annotations

from typing import NamedTuple


class ModelParameters(NamedTuple):
    """What the fit finds: microseconds, GHz, TB per second, bytes per clock and unit.

    `share` is how fast a loop really goes, as part of what its clocks say; `split_traffic` how often partial sums
    cross the memory.
    """

    start: float
    share: float
    feed: float
    f_busy: float
    f_max: float
    hbm: float
    store: float
    split_start: float
    split_traffic: float


class KernelWork(NamedTuple):
    """What a kernel does for a problem.

    `rounds` are the workgroups of the fullest unit, `fill` is the mean over all units as part of that, `k_tiles` what a
    workgroup goes through; `mma` and `loop` are clocks per K-tile, of the matrix units alone and of the loop.
    """

    rounds: float
    fill: float
    k_tiles: float
    mma: float
    loop: float
    feed_bytes: float
    operand_bytes: float
    result_bytes: float
    partial_bytes: float


class TimeParts(NamedTuple):
    """Microseconds; what the loop takes is also given as its clocks alone (`loop`) and with operands fed (`fed`).

    `clock` in GHz and `share` are effective values: only their product shows in a measured time.
    """

    start: float
    loop: float
    fed: float
    memory: float
    streamed: float
    store: float
    split: float
    clock: float
    clocks_per_tile: float
    busy: float

    @property
    def total(self) -> float:
        """The whole kernel."""
        return self.start + self.streamed + self.store + self.split


def least(a: float, b: float) -> float:
    """The smaller one, for numbers and arrays alike."""
    return (a + b - abs(a - b)) / 2


def root_of_squares(a: float, b: float) -> float:
    """Two things that overlap, but not perfectly."""
    both: float = (a * a + b * b) ** 0.5
    return both


def times_of(work: KernelWork, at: ModelParameters) -> TimeParts:
    """The model."""
    own = work.loop / at.share
    clocks = root_of_squares(own, work.feed_bytes / at.feed)
    busy = work.fill * work.mma / clocks
    clock = least(at.f_max, at.f_busy * busy ** (-1 / 3))
    tiles = work.rounds * work.k_tiles / clock / 1e3
    memory = work.operand_bytes / at.hbm / 1e6
    splits = (work.partial_bytes > 0) * 1.0
    return TimeParts(
        start=at.start + 0 * tiles,
        loop=tiles * own,
        fed=tiles * clocks,
        memory=memory,
        streamed=root_of_squares(tiles * clocks, memory),
        store=work.result_bytes / at.store / 1e6,
        split=splits * at.split_start + at.split_traffic * work.partial_bytes / at.hbm / 1e6,
        clock=clock,
        clocks_per_tile=clocks,
        busy=busy,
    )


def work_of_problem(
    *,
    sides: tuple[float, float, float],
    tile: tuple[float, float, float],
    split_k: float,
    units: float,
    element_bytes: float,
    result_bytes: float,
    mma: float,
    loop: float,
) -> KernelWork:
    """What a kernel with such a tile does for M, N and K; a unit takes whole workgroups."""
    (m, n, k), (tile_m, tile_n, tile_k) = sides, tile
    groups = -(-m // tile_m) * -(-n // tile_n) * split_k
    rounds = -(-groups // units)
    own_k = -(-k // split_k)
    return KernelWork(
        rounds=rounds,
        fill=groups / rounds / units,
        k_tiles=-(-own_k // tile_k),
        mma=mma,
        loop=loop,
        feed_bytes=(tile_m + tile_n) * tile_k * element_bytes,
        operand_bytes=(m + n) * k * element_bytes,
        result_bytes=m * n * result_bytes,
        partial_bytes=(split_k > 1) * split_k * m * n * 4.0,
    )
