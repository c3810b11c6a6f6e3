"""The value executor: takes a program, a trip count and a policy, gives whether every wave computes what it should.

What it should compute is the program's semantics: A @ B where it is a sum over K-tiles; where it is a loop's values,
what the iterations give one after the other.

The executor implements the machine model (docs/machine_model.md) on real numbers and shares nothing with the proof but
the effects of ops: waves get times, memory ops land somewhere between issue and cover, memory under way is NaN, and the
result is compared with what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from rota.check import bad_field, check_elements, check_ints, check_types, expect
from rota.errors import DeclarationError, Finding
from rota.execute.accumulators import Accumulators
from rota.execute.barrier_order import barrier_order
from rota.execute.clock import Clock, run_clock
from rota.execute.dataflow import Dataflow
from rota.execute.declared_loop import Declared
from rota.execute.lds_contents import tiles_seen
from rota.execute.matrices import matrices_of
from rota.execute.policy import Latest, Policy, Random, Run, Scripted, ShownRace, Together
from rota.execute.semantics import Mixing, Semantics
from rota.execute.wave_trace import trace_of
from rota.execute.workgroup import Workgroup
from rota.program.entry import Entry
from rota.program.lowered import Lowerable, LoweredProgram, TileSum, Unstated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LATE_AND_RANDOM: tuple[Policy, ...] = (Latest(), Random())
"""What is run unless asked otherwise: as late as allowed, and 50 random seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The verdict over all runs.

    `wrong_runs` names each run that went wrong, `wrong_seeds` the seeds among them; `first_wrong` says in a sentence
    what the first of them got wrong.  A deadlock has no runs: some wave waits at a barrier forever.
    """

    right: bool
    deadlock: bool = False
    wrong_seeds: tuple[int, ...] = ()
    wrong_runs: tuple[str, ...] = ()
    first_wrong: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a program runs on: `waves_per_role` None stands for two of each of several roles, or four of a single one.

    With `compiler_waits` a compute or a store waits for the loads into its registers, as a compiler that tracks
    registers makes it; the proof names this assumption.
    """

    trip_count: int
    waves_per_role: int | None = None
    compiler_waits: bool = True

    def __post_init__(self) -> None:
        check_ints(self, ("trip_count",))
        check_types(self, {"compiler_waits": bool})
        if self.waves_per_role is not None:
            check_ints(self, ("waves_per_role",), least=1)

    def workgroup(self, program: LoweredProgram) -> Workgroup:
        """The waves with what they execute."""
        roles = len(program.roles)
        waves = self.waves_per_role or (2 if roles > 1 else 4)
        if waves * roles < 2:
            raise bad_field(self, "waves_per_role", waves, "two waves or more in the workgroup")
        traces = (trace_of(program, role, self.trip_count, compiler_waits=self.compiler_waits) for role in range(roles))
        return Workgroup(program=program, traces=tuple(traces), waves=waves)


class Results(Protocol):
    """What the waves of a program end up with."""

    @property
    def names(self) -> tuple[str, ...]:
        """What is compared."""
        ...

    def wrong(self) -> NDArray[np.bool_]:
        """Which results differ from what is right, by [result, run, wave]."""
        ...

    def reason(self, number: int, run: int, wave: int) -> str:
        """Why a result is wrong."""
        ...


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
    lowered = _lowered(program)
    tracked = lowered.compiler_tracks_registers if compiler_waits is None else compiler_waits
    setup = Setup(trip_count=trip_count, waves_per_role=waves_per_role, compiler_waits=tracked)
    chosen = _chosen(policy)
    results_of = _results_of(lowered, semantics)
    group = setup.workgroup(lowered)
    order = barrier_order(group)
    if order is not None and order.stuck:
        reasons = "; ".join(stuck.reason for stuck in order.stuck)
        return Execution(right=False, deadlock=True, first_wrong=f"deadlock: {reasons}")
    return _judged(results_of(group, run_clock(group, chosen, order), lowered.total_tiles(trip_count)), chosen.runs())


def replay(
    program: Lowerable, witness: ShownRace, *, compiler_waits: bool | None = None, semantics: Semantics | None = None
) -> Execution:
    """Run the interleaving that a witness describes; a witness of a real race ends in a wrong result."""
    policy = Scripted(witness=witness)
    return execute(program, witness.trip_count, policy=policy, compiler_waits=compiler_waits, semantics=semantics)


def _lowered(program: Lowerable) -> LoweredProgram:
    lowered = expect("the program", getattr(program, "lowered", program), LoweredProgram)
    for name in ("prologue", "kernel", "epilogue"):
        check_elements(name, getattr(lowered, name), Entry)
    return lowered


def _chosen(policy: Policy | Sequence[Policy]) -> Policy:
    if isinstance(policy, Policy) and not isinstance(policy, type):
        return policy
    return Together(policies=check_elements("the policies", policy, Policy))  # type: ignore[type-abstract]


def _results_of(program: LoweredProgram, semantics: Semantics | None) -> Callable[[Workgroup, Clock, int], Results]:
    """How results come about in the one of the two ways in which the program says what it computes."""
    asked = program.semantics
    if isinstance(asked, Unstated):
        raise asked.refusal(program.name, "its execution")
    if isinstance(asked, TileSum):
        if semantics is not None:
            raise DeclarationError(
                Finding(
                    code="D104",
                    message=f"{program.name} is a sum over K-tiles; only the ops of a loop by values take semantics",
                    evidence=(("got", type(semantics).__name__), ("expected", "None")),
                )
            )
        return partial(_sums, asked)
    chosen: Semantics = Mixing() if semantics is None else expect("the semantics", semantics, Semantics)  # type: ignore[type-abstract]
    return partial(Dataflow, Declared(spec=asked, semantics=chosen, program=program))


def _sums(asked: TileSum, group: Workgroup, clock: Clock, tiles: int) -> Accumulators:
    moved = max((op.block for trace in group.traces for op in trace.memory), default=0)
    needed = max((place.copy for product in asked.products for place in product.operands), default=0)
    matrices = matrices_of(asked, max(moved, needed) + 1, tiles, group.size)
    return Accumulators(group, clock, tiles_seen(group, clock), matrices)


def _judged(results: Results, runs: Sequence[Run]) -> Execution:
    import numpy as np

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
