"""The value executor: does every wave compute what it should, for one trip count and policy?

The program's semantics say what that is: A @ B for a sum over K-tiles; for a loop by values, what the iterations give
one after the other.

The executor implements the machine model (docs/machine_model.md) on real numbers and shares nothing with the proof but
the effects of ops: waves get times, memory ops land somewhere between issue and cover, memory with a write in flight is
NaN, and the result is compared with the right one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple, Protocol

from rota.check import bad_field, check_elements, check_ints, check_types, expect
from rota.errors import DeclarationError
from rota.execute.clock import (
    Clock,
    Latest,
    Policy,
    Random,
    Run,
    Scripted,
    ShownRace,
    Together,
    barrier_order,
    run_clock,
)
from rota.execute.dataflow import Dataflow, tiles_seen
from rota.execute.lazy_numpy import Bools, Floats, Ints, np
from rota.execute.semantics import Declared, Mixing, Semantics
from rota.execute.wave_trace import GARBAGE, Workgroup, trace_of
from rota.program.entry import Entry, Place
from rota.program.loop_spec import LoopSpec
from rota.program.lowered import Lowerable, LoweredProgram, TileSum

# Operands are integers in float64, so every sum is exact and right means equal.
_DEPTH = 2  # elements of K in a tile
_LARGEST = 999  # products of K-tiles stay far below 2**53, up to which float64 counts exactly
_LARGEST_SCALE = 9  # so that scaled ones do, too


class Matrices(NamedTuple):
    """A and B by [block, K-tile, slice, k] and the accumulators' right values by [row, column].

    `scales` are the numbers that further operands hold, by [operand, block, K-tile, slice]; `scaled` says which factor
    each of them multiplies.

    A slice is a row of A, or a column of B; the waves that write the tiles share them out.  After the K-tiles follow a
    tile of zeros and, last, where GARBAGE points, a tile of NaN.
    """

    a: Floats
    b: Floats
    scales: Floats
    scaled: tuple[int, ...]
    product: dict[Place, Floats]

    @property
    def nothing(self) -> int:
        tiles: int = self.a.shape[1]
        return tiles - 2


@lru_cache(maxsize=64)
def matrices_of(asked: TileSum, blocks: int, tiles: int, slices: int) -> Matrices:
    """The same numbers for the same shape, and the products that are asked for of `blocks` blocks of A and B."""
    random = np.random.default_rng(blocks)
    further = len(asked.scales)
    both = np.zeros((2, blocks, tiles + 2, slices, _DEPTH))
    both[:, :, :tiles] = random.integers(-_LARGEST, _LARGEST, (2, blocks, tiles, slices, _DEPTH), endpoint=True)
    both[:, :, -1] = np.nan
    scales = np.ones((further, blocks, tiles + 2, slices))
    scales[:, :, :tiles] = random.integers(1, _LARGEST_SCALE, (further, blocks, tiles, slices), endpoint=True)
    scales[:, :, -1] = np.nan
    both.flags.writeable = scales.flags.writeable = False  # shared by all callers
    product: dict[Place, Floats] = {}
    for accumulator, operands in asked.products:
        first, second = operands[0], operands[min(1, len(operands) - 1)]  # a single operand holds its block of both
        factors = [both[0, first.copy, :tiles], both[1, second.copy, :tiles]]  # by [K-tile, slice, k]
        for number, (factor, operand) in enumerate(zip(asked.scales, operands[2:], strict=True)):
            factors[factor] = factors[factor] * scales[number, operand.copy, :tiles, :, np.newaxis]
        rows, columns = (factor.swapaxes(0, 1).reshape(slices, -1) for factor in factors)
        product[accumulator] = product.get(accumulator, np.zeros((slices, slices))) + rows @ columns.T
    return Matrices(both[0], both[1], scales, asked.scales, product)


class Accumulators(NamedTuple):
    """Everything that the computes of a workgroup read; `seen` is by [run, wave, memory op, slice]."""

    group: Workgroup
    clock: Clock
    seen: Ints
    matrices: Matrices

    def sums(self, place: Place) -> Floats:
        """One accumulator by [run, wave, row, column]: the sum of A_reg @ B_reg, rows scaled, over its computes."""
        slices = np.arange(self.group.size)[:, np.newaxis]
        left, right, *further = self._tiles(place)
        factors = [
            operand[blocks[:, np.newaxis], tiles, slices]  # by [run, wave, slice, compute, k]
            for operand, (tiles, blocks) in ((self.matrices.a, left), (self.matrices.b, right))
        ]
        scaling = zip(self.matrices.scaled, self.matrices.scales, further, strict=True)
        for factor, numbers, (tiles, blocks) in scaling:
            factors[factor] = factors[factor] * numbers[blocks[:, np.newaxis], tiles, slices, np.newaxis]
        rows, columns = (factor.reshape(*factor.shape[:3], -1) for factor in factors)
        return rows @ columns.swapaxes(2, 3)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.matrices.product))

    def wrong(self) -> Bools:
        """Which accumulators differ from A @ B, by [accumulator, run, wave], in waves that compute them."""
        wrong = np.zeros((len(self.matrices.product), *self.clock.steps.shape[:2]), dtype=np.bool_)
        for number, (place, right) in enumerate(self.matrices.product.items()):
            own = self.group.writers(place)
            wrong[number][:, own] = (self.sums(place) != right).any(axis=(2, 3))[:, own]
        return wrong

    def reason(self, number: int, run: int, wave: int) -> str:
        """Why an accumulator is wrong, by the first compute into it that is."""
        place = tuple(self.matrices.product)[number]
        trace = self.group.trace_of(wave)
        left, right, *further = self._tiles(place)
        for nth, compute in enumerate(trace.computes.get(place, ())):
            entry, _ = trace.steps[compute.step]
            scales = {each.name: tiles for each, tiles in zip(entry.effect.reads[2:], further, strict=True)}
            operands = {"A": left, "B": right, **scales}
            held = {name: set(tiles[run, wave, :, nth].tolist()) for name, (tiles, _) in operands.items()}
            if poisoned := [name for name, tiles in held.items() if GARBAGE in tiles]:
                return f"{trace.where(compute.step)} reads poison in {' and '.join(poisoned)}"
            if len(set().union(*held.values())) > 1:
                listed = " with ".join(f"{', '.join(map(str, sorted(own)))} of {name}" for name, own in held.items())
                return f"{trace.where(compute.step)} multiplies K-tiles {listed}"
        found, expected = self.sums(place)[run, wave], self.matrices.product[place]
        row, column = (int(axis[0]) for axis in (found != expected).nonzero())
        return f"it holds {found[row, column]:.0f} at row {row}, column {column}; A @ B has {expected[row, column]:.0f}"

    def _tiles(self, place: Place) -> list[tuple[Ints, Ints]]:
        """Per operand the K-tiles by [run, wave, slice, compute] and the blocks by [wave, compute].

        A register whose load has not landed when the compute issues holds garbage; where a wave has fewer computes than
        another, nothing is added.
        """
        further = len(self.matrices.scaled)
        sides = (*range(2 + further),) if further else (0, -1)  # a single operand holds its block of both
        return [self._operand(place, side) for side in sides]

    def _operand(self, place: Place, side: int) -> tuple[Ints, Ints]:
        group, clock = self.group, self.clock
        nowhere, never = clock.issue.shape[2] - 1, clock.steps.shape[2] - 1
        computes = [trace.computes.get(place, ()) for trace in group.traces]
        operands = [[compute.operands[side] for compute in row] for row in computes]
        steps = group.per_wave([[compute.step for compute in row] for row in computes], never)
        loads = group.per_wave([[nowhere if load is None else load for load in row] for row in operands], nowhere)
        loaded = [
            [0 if load is None else trace.memory[load].block for load in row]
            for trace, row in zip(group.traces, operands, strict=True)
        ]
        blocks = group.per_wave(loaded, 0)
        wave = np.arange(group.size)[:, np.newaxis]
        landed = clock.land[:, wave, loads] <= clock.steps[:, wave, steps]
        tiles = np.where(landed[..., np.newaxis], self.seen[:, wave, loads], GARBAGE)
        tiles[:, steps == never] = self.matrices.nothing
        return tiles.swapaxes(2, 3), blocks


LATE_AND_RANDOM: tuple[Policy, ...] = (Latest(), Random())
"""What is run unless asked otherwise: as late as allowed, and 50 random seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    right: bool
    deadlock: bool = False  # some wave waits at a barrier forever; then there are no runs
    wrong_seeds: tuple[int, ...] = ()
    wrong_runs: tuple[str, ...] = ()
    first_wrong: str | None = None  # in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    trip_count: int
    waves_per_role: int | None = None  # two of each of several roles, or four of a single one
    compiler_waits: bool = True  # for loads into the registers that an op uses; the proof names this assumption

    def __post_init__(self) -> None:
        check_ints(self, ("trip_count",))
        check_types(self, {"compiler_waits": bool})
        if self.waves_per_role is not None:
            check_ints(self, ("waves_per_role",), least=1)

    def workgroup(self, program: LoweredProgram) -> Workgroup:
        roles = len(program.roles)
        waves = self.waves_per_role or (2 if roles > 1 else 4)
        if waves * roles < 2:
            raise bad_field(self, "waves_per_role", waves, "two waves or more in the workgroup")
        traces = (trace_of(program, role, self.trip_count, compiler_waits=self.compiler_waits) for role in range(roles))
        return Workgroup(program=program, traces=tuple(traces), waves=waves)


class Results(Protocol):
    @property
    def names(self) -> tuple[str, ...]: ...

    def wrong(self) -> Bools:
        """Which results are wrong, by [result, run, wave]."""
        ...

    def reason(self, number: int, run: int, wave: int) -> str: ...


def execute(
    program: Lowerable,
    trip_count: int,
    *,
    policy: Policy | Sequence[Policy] = LATE_AND_RANDOM,
    waves_per_role: int | None = None,
    compiler_waits: bool | None = None,
    semantics: Semantics | None = None,
) -> Execution:
    """Run a program, or what a schedule was lowered to, under every run of the policies.

    By default these are one that is as late as allowed, and 50 random seeds.  Whether the compiler waits for registers
    is what the program says, unless `compiler_waits` says otherwise.  `semantics` says what the ops of a loop by values
    compute, by default numbers that any wrong operand changes.
    """
    lowered = _lower(program)
    tracked = lowered.compiler_tracks_registers if compiler_waits is None else compiler_waits
    setup = Setup(trip_count=trip_count, waves_per_role=waves_per_role, compiler_waits=tracked)
    chosen = _choose(policy)
    results_of = _results_of(lowered, semantics)
    group = setup.workgroup(lowered)
    order = barrier_order(group)
    if order is not None and order.stuck:
        reasons = "; ".join(stuck.reason for stuck in order.stuck)
        return Execution(right=False, deadlock=True, first_wrong=f"deadlock: {reasons}")
    return _judge(results_of(group, run_clock(group, chosen, order), lowered.total_tiles(trip_count)), chosen.runs())


def replay(
    program: Lowerable, witness: ShownRace, *, compiler_waits: bool | None = None, semantics: Semantics | None = None
) -> Execution:
    """Run the interleaving that a witness describes; a witness of a real race ends in a wrong result."""
    policy = Scripted(witness=witness)
    return execute(program, witness.trip_count, policy=policy, compiler_waits=compiler_waits, semantics=semantics)


def _lower(program: Lowerable) -> LoweredProgram:
    lowered = expect("the program", getattr(program, "lowered", program), LoweredProgram)
    for name in ("prologue", "kernel", "epilogue"):
        check_elements(name, getattr(lowered, name), Entry)
    return lowered


def _choose(policy: Policy | Sequence[Policy]) -> Policy:
    if isinstance(policy, Policy) and not isinstance(policy, type):
        return policy
    return Together(policies=check_elements("the policies", policy, Policy))  # type: ignore[type-abstract]


def _results_of(program: LoweredProgram, semantics: Semantics | None) -> Callable[[Workgroup, Clock, int], Results]:
    """How results come about in the one of the two ways in which the program says what it computes."""

    def of_sum(asked: TileSum) -> Callable[[Workgroup, Clock, int], Results]:
        if semantics is not None:
            raise DeclarationError.of(
                "D104",
                f"{program.name} is a sum over K-tiles; only the ops of a loop by values take semantics",
                evidence=(("got", type(semantics).__name__), ("expected", "None")),
            )
        return partial(_sums, asked)

    def of_loop(spec: LoopSpec) -> Callable[[Workgroup, Clock, int], Results]:
        chosen: Semantics = Mixing() if semantics is None else expect("the semantics", semantics, Semantics)  # type: ignore[type-abstract]
        return partial(Dataflow, Declared(spec=spec, semantics=chosen, program=program))

    return program.by_semantics("its execution", of_sum, of_loop)


def _sums(asked: TileSum, group: Workgroup, clock: Clock, tiles: int) -> Accumulators:
    moved = max((op.block for trace in group.traces for op in trace.memory), default=0)
    needed = max((place.copy for product in asked.products for place in product.operands), default=0)
    matrices = matrices_of(asked, max(moved, needed) + 1, tiles, group.size)
    return Accumulators(group, clock, tiles_seen(group, clock), matrices)


def _judge(results: Results, runs: Sequence[Run]) -> Execution:
    wrong = results.wrong()
    bad: list[int] = np.flatnonzero(wrong.any(axis=(0, 2))).tolist()
    if not bad:
        return Execution(right=True)
    wave, number = (int(axis[0]) for axis in wrong[:, bad[0]].T.nonzero())
    reason = results.reason(number, bad[0], wave)
    return Execution(
        right=False,
        wrong_seeds=tuple(seed for seed in (runs[index].seed for index in bad) if seed is not None),
        wrong_runs=tuple(runs[index].label for index in bad),
        first_wrong=f"{runs[bad[0]].label}: wave {wave}, {results.names[number]}: {reason}",
    )
