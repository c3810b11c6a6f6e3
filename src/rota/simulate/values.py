"""The value executor: takes a compiled loop, a trip count and a policy, gives whether every wave computes A @ B.

A loop declared by values computes whatever its ops mean: with its declaration it is right if every wave ends with what
the iterations give one after the other.

The executor implements the machine model (docs/machine_model.md) on real numbers and shares nothing with the proof but
the effects of ops: waves get times, memory ops land somewhere between issue and cover, memory under way is NaN, and the
result is compared with what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rota.declare.check import bad_field, check_elements, check_ints, check_types, expect
from rota.declare.values import LoopSpec
from rota.errors import DeclarationError, Finding
from rota.program.entry import ScheduleEntry
from rota.program.loop import LoopSteps, ScheduledLoop, steps_of
from rota.simulate.accumulators import Accumulators
from rota.simulate.clock import run_clock
from rota.simulate.dataflow import Dataflow
from rota.simulate.declared import Declared, is_by_values
from rota.simulate.lds import tiles_seen
from rota.simulate.matrices import Matrices, matrices_of
from rota.simulate.meaning import Meaning, Mixing
from rota.simulate.pace import Latest, Policy, Random, Run, Scripted, Together, Witness
from rota.simulate.trace import Workgroup, trace_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Name = TypeVar("_Name")

LATE_AND_RANDOM: tuple[Policy, ...] = (Latest(), Random())
"""What is run unless asked otherwise: as late as allowed, and 50 random seeds."""

_FIELDS = ("config", "schedule_config", "prologue", "kernel", "epilogue", "warp_stagger_index")


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """The verdict over all runs.

    `wrong_runs` names each run that went wrong, `wrong_seeds` the seeds among them; `first_wrong` says in a sentence
    what the first of them got wrong.  A deadlock has no runs: some wave waits at a barrier for ever.
    """

    right: bool
    deadlock: bool = False
    wrong_seeds: tuple[int, ...] = ()
    wrong_runs: tuple[str, ...] = ()
    first_wrong: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a loop runs on: `waves_per_group` None stands for two of each of several groups, or four of a single one.

    With `compiler_waits` a compute or a store waits for the loads into its registers, as a compiler that tracks
    registers makes it; the proof names this assumption.
    """

    trip_count: int
    waves_per_group: int | None = None
    compiler_waits: bool = True

    def __post_init__(self) -> None:
        check_ints(self, ("trip_count",))
        check_types(self, {"compiler_waits": bool})
        if self.waves_per_group is not None:
            check_ints(self, ("waves_per_group",), least=1)

    def workgroup(self, steps: LoopSteps) -> Workgroup:
        """The waves with what they execute."""
        waves = self.waves_per_group or (2 if steps.groups > 1 else 4)
        if waves * steps.groups < 2:
            raise bad_field(self, "waves_per_group", waves, "two waves or more in the workgroup")
        traces = (
            trace_of(steps, group, self.trip_count, compiler_waits=self.compiler_waits) for group in range(steps.groups)
        )
        return Workgroup(tuple(traces), waves)


def execute(
    loop: ScheduledLoop,
    trip_count: int,
    *,
    policy: Policy | Sequence[Policy] = LATE_AND_RANDOM,
    waves_per_group: int | None = None,
    compiler_waits: bool | None = None,
    spec: LoopSpec | None = None,
    meaning: Meaning | None = None,
) -> Execution:
    """Run the loop under every run of the policies; by default as late as allowed, and by 50 random seeds.

    Whether the compiler waits for registers is what the schedule says, unless `compiler_waits` says otherwise.  A loop
    declared by values needs its declaration `spec`; `meaning` says what its ops compute, by default numbers
    that any wrong operand changes.
    """
    _check_loop(loop)
    tracked = loop.compiler_tracks_registers if compiler_waits is None else compiler_waits
    setup = Setup(trip_count=trip_count, waves_per_group=waves_per_group, compiler_waits=tracked)
    chosen = _chosen(policy)
    steps = steps_of(loop)
    declared = _declared(steps, spec, meaning)
    group = setup.workgroup(steps)
    barriers = [len(trace.barriers) for trace in group.traces]
    if len(set(barriers)) > 1:
        counts = ", ".join(f"{count} in group {number}" for number, count in enumerate(barriers))
        return Execution(right=False, deadlock=True, first_wrong=f"deadlock: barriers differ in number: {counts}")
    clock = run_clock(group, chosen)
    total = steps.total_tiles(trip_count)
    if declared is not None:
        flow = Dataflow(declared, group, clock, total)
        return _judged(flow.wrong(), tuple(flow.expected), chosen.runs(), flow.reason)
    matrices = _matrices(loop, group, total)
    results = Accumulators(group, clock, tiles_seen(group, clock), matrices)
    return _judged(results.wrong(), tuple(matrices.product), chosen.runs(), results.reason)


def replay(
    loop: ScheduledLoop,
    witness: Witness,
    *,
    compiler_waits: bool | None = None,
    spec: LoopSpec | None = None,
    meaning: Meaning | None = None,
) -> Execution:
    """Run the interleaving that a witness describes; a witness of a real race ends in a wrong result."""
    policy = Scripted(witness=witness)
    return execute(loop, witness.trip_count, policy=policy, compiler_waits=compiler_waits, spec=spec, meaning=meaning)


def _check_loop(loop: ScheduledLoop) -> None:
    missing = [name for name in _FIELDS if not hasattr(loop, name)]
    if missing:
        raise DeclarationError(
            Finding(
                code="D104",
                message=f"the loop is {type(loop).__name__}; expected a compiled schedule",
                evidence=(("got", repr(loop)[:80]), ("it lacks", ", ".join(missing))),
            )
        )
    for name in ("prologue", "kernel", "epilogue"):
        check_elements(name, getattr(loop, name), ScheduleEntry)


def _chosen(policy: Policy | Sequence[Policy]) -> Policy:
    if isinstance(policy, Policy) and not isinstance(policy, type):
        return policy
    return Together(policies=check_elements("the policies", policy, Policy))  # type: ignore[type-abstract]


def _matrices(loop: ScheduledLoop, group: Workgroup, tiles: int) -> Matrices:
    config = loop.config
    moved = max((op.block for trace in group.traces for op in trace.memory), default=0) + 1
    blocks = max(moved, config.m_mmas, config.n_mmas) if config.depth >= 2 else moved
    return matrices_of(config, blocks, tiles, group.size)


def _declared(steps: LoopSteps, spec: LoopSpec | None, meaning: Meaning | None) -> Declared | None:
    """The declaration that the loop was made from; a loop with stages of its own has none."""
    if spec is None and meaning is None and not is_by_values(steps):
        return None
    chosen: Meaning = Mixing() if meaning is None else expect("the meaning", meaning, Meaning)  # type: ignore[type-abstract]
    return Declared(spec=expect("the spec of a loop declared by values", spec, LoopSpec), meaning=chosen, steps=steps)


def _judged(
    wrong: NDArray[np.bool_], names: Sequence[_Name], runs: Sequence[Run], reason: Callable[[_Name, int, int], str]
) -> Execution:
    """The verdict on results by [name, run, wave]."""
    import numpy as np

    bad: list[int] = np.flatnonzero(wrong.any(axis=(0, 2))).tolist()
    if not bad:
        return Execution(right=True)
    wave, number = (int(axis[0]) for axis in wrong[:, bad[0]].T.nonzero())
    name = names[number]
    return Execution(
        right=False,
        wrong_seeds=tuple(seed for seed in (runs[index].seed for index in bad) if seed is not None),
        wrong_runs=tuple(runs[index].label for index in bad),
        first_wrong=f"{runs[bad[0]].label}: wave {wave}, {name}: {reason(name, bad[0], wave)}",
    )
