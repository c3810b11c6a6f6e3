"""`PipelineSchedule`, what a kernel author writes: a config, a body, and hooks with defaults; and its compilation.

Compiling derives every step, reports what the mode would ignore, repairs and proves.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from rota.check import bad_field, check_elements, check_types, expect, is_int
from rota.compiled.proved import proved, repaired
from rota.errors import Concern, DeclarationError, Finding, Severity, did_you_mean, several
from rota.order.acyclic.problem import DepEdge, LoopBody, SchedulingStrategy
from rota.pipeline.block import MMABlockSpec, PipelineProgram
from rota.pipeline.build import (
    OrderedProgram,
    build_ordered_program,
    check_bootstrap,
    check_described,
    check_explicit_blocks,
    check_nothing_lost,
    check_silent_ops,
    derive_program,
    verify_schedule,
)
from rota.pipeline.compiled_pipeline import CompiledPipeline, EffectTerms, note_moved_by_hand, note_moved_ops
from rota.pipeline.config import PipelineConfig
from rota.pipeline.geometry import KernelGeometry
from rota.pipeline.op import CHANNEL_A, CHANNEL_B, OpDesc, ScheduleEntry, number_ops
from rota.pipeline.phases import (
    derive_epilogue_blocks,
    derive_epilogue_from_program,
    derive_kernel_deps,
    derive_prologue_from_program,
    derive_single_buffer_phases,
    partition_entry_bounds,
    stagger_index,
)
from rota.pipeline.rules import derive_edges_from_ops
from rota.pipeline.schedule_config import ScheduleConfig
from rota.printing import Pasted, show
from rota.program.kinds import OpKind, OpRole, Phase
from rota.program.loop_spec import MOST_OPS, check_count
from rota.program.machine import Machine
from rota.targets.devices import DEFAULT


class PipelineSchedule(ABC):
    """A pipelined loop: `config` and `build_body` are required, the other methods are hooks with defaults.

    `compile_schedule` calls each once and derives the phases from what they give.  Every hook that gives ops may give a
    list, a tuple or a `PipelineBody`.  A schedule prints as what its configurations change from their defaults.

    >>> class Gemm(PipelineSchedule):
    ...     target = mi355x_target(4, 2, max_globals=0).with_pipeline(m_mmas=1, n_mmas=1)
    ...
    ...     def config(self):
    ...         return self.target.pipeline
    ...
    ...     def build_body(self):
    ...         body, tags = PipelineBody(), DoubleBufferTag
    ...         for stage, k in enumerate((KOffsetKind.K0, KOffsetKind.K1)):
    ...             body.frag(tags.MMA_LOAD_A, channel=0, stage=stage).frag(tags.MMA_LOAD_B, channel=1, stage=stage)
    ...             body.load(tags.LOAD_A, channel=0, stage=stage, k_offset=k)
    ...             body.load(tags.LOAD_B, channel=1, stage=stage, k_offset=k).compute(tags.MMA)
    ...         return annotate_ops(body, self.target.cost_model)
    >>> compile_schedule(Gemm())
    <CompiledPipeline Gemm: 10 ops, prologue 7, kernel 29, epilogue 20 entries, 0 findings>
    """

    @abstractmethod
    def config(self) -> PipelineConfig:
        """The pipeline's shape: LDS stages, MMA grid, partitions, and what a load costs on the counters.

        Most schedules give their target's `pipeline`, with what their body needs changed.  The body must have one
        compute for each cell of the grid in each partition (P101).

        >>> Pipeline4Wave(KernelGeometry()).config().total_blocks
        8
        """

    @abstractmethod
    def build_body(self) -> Sequence[OpDesc]:
        """The data ops of one loop iteration, costs attached, in the order in which they are to be issued.

        Declare them with a `PipelineBody` and let `annotate_ops` attach the target's costs; `double_buffer_reorder` and
        its relatives change the order.  No waits, barriers or prologue: those are derived.

        >>> Pipeline4Wave(KernelGeometry()).build_body()[:3]
        (<load_a s0 t0 k0>, <mma_load_b s0 t1>, <mma[0,0]>)
        """

    def machine(self) -> Machine:
        """The machine that the schedule is for; by default MI355X.

        The proof takes its counters from it, prediction its rates and times.  A schedule with a `TargetProfile` gives
        the profile's machine.

        >>> Pipeline4Wave(KernelGeometry()).machine()
        <Device MI355X (gfx950)>
        """
        return DEFAULT

    def lds_bytes(self) -> int | None:
        """Bytes of LDS that the stages take, if the schedule knows its geometry; by default not stated.

        The proof then also shows that they fit; without, it lists them as not stated.

        >>> Pipeline4Wave(KernelGeometry(BM=256, BN=256, BK=64, elem_bytes=2)).lds_bytes()
        131072
        """
        return None

    def derive_edges(self, body: Sequence[OpDesc]) -> Sequence[DepEdge]:
        """Dependencies of the body by the ops' indices; by default inferred from roles and config.

        Override it if the rules connect the wrong ops: add to the default edges, or drop some of them.  An order search
        keeps them; the proof doesn't rely on them.

        >>> gemm = DeclarativeSchedule()
        >>> edges = gemm.derive_edges(gemm.build_body())
        >>> print(len(edges), edges[0])
        54 FLOW 0 -> 3
        """
        return derive_edges_from_ops(body, self.config())

    def schedule_config(self) -> ScheduleConfig:
        """Knobs for ordering, waits and barriers; by default the defaults.

        Group them by strategy, or change single fields; `help(ScheduleConfig)` lists all nineteen.

        >>> Pipeline4Wave(KernelGeometry()).schedule_config().but(wrap_waits_with_sched_barrier=True).auto_waits
        True
        """
        return ScheduleConfig()

    def transform_kernel(self, ker: Sequence[ScheduleEntry], body: Sequence[OpDesc]) -> Sequence[ScheduleEntry]:
        """Post-process the kernel's entries, for example append compiler hints; by default unchanged.

        It runs after the blocks are expanded and before repair and proof, so whatever it gives is proved.  It must keep
        every data op (P102) and give entries of `Phase.KERNEL`; they are renumbered.

        >>> class Hinted(DeclarativeSchedule):
        ...     def transform_kernel(self, ker, body):
        ...         hint = OpDesc.sched_group_barrier(InstructionGroup.MFMA, 4)
        ...         return (*ker, ScheduleEntry(op=hint, time_slot=len(ker), phase=Phase.KERNEL))
        >>> print(compile_schedule(Hinted(), sync="as_written").kernel[-1].op)
        sched_group_barrier(3, 4)
        """
        return ker

    def build_explicit_blocks(self, body: Sequence[OpDesc], program: PipelineProgram) -> Sequence[Sequence[OpDesc]]:
        """One op list per block, to be issued verbatim; an empty list leaves a block to the template.

        It is asked after `program.blocks` have their ops and waits, so that a schedule can take those and choose only
        the shape.  Give one list per block, or none at all (P111); every data op must be in them (P102).

        >>> class Bare(DeclarativeSchedule):
        ...     def build_explicit_blocks(self, body, program):
        ...         return [emit_minimal_barrier_block(block, wrap_waits=False) for block in program.blocks]
        >>> print(*compile_schedule(Bare(), sync="as_written").program.block_ops(1), sep=", ")
        mma_load_b s0 t1, schedule_barrier, load_b s0 t0 k0, barrier, wait_lgkm(0), mma[0,1]
        """
        return ()

    def bootstrap_frags(self) -> Sequence[OpDesc]:
        """Fragments to read at the end of the prologue, the i-th after the i-th prefetch has landed.

        A loop with rotating fragments needs them: its first iteration starts with registers that the partition before
        would have filled.  They are read only with `partial_prologue_drain`; without it P108 says so.

        >>> Pipeline4Wave(KernelGeometry()).bootstrap_frags()
        (<mma_load_a s0 t0>, <mma_load_b s0 t0>)
        """
        return ()

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            given = (("config", self.config()), ("schedule_config", self.schedule_config()))
            shown = [f"\n  {hook}: {show(value, indent=2, used=len(hook) + 4)}" for hook, value in given]
            return f"<{name} on {self.machine().name}{''.join(shown)}>"
        except Exception as error:  # noqa: BLE001  # an author's hook may raise anything, and a half-made schedule prints, too
            return f"<{name}, not ready: {type(error).__name__}>"


_SEARCH_ONLY = ("max_vgpr", "lds_contention_penalty")
_MANUAL_WAITS = ("wait_lgkm_first", "wait_vm_last")
_ORDERS = ("scheduling", *_SEARCH_ONLY)
_LGKM = {"lgkm_per_load_a": CHANNEL_A, "lgkm_per_load_b": CHANNEL_B}
_COUNTED = (OpRole.SHARED_STORE, OpRole.FRAGMENT_LOAD)
_ALWAYS_ACTS = ("minimal_barriers", "partial_prologue_drain")
_DEFAULTS = {field.name: field.default for field in fields(ScheduleConfig)}
_DESCRIBED = {
    "prefetch": "how far loads run ahead is what their k_offset says",
    "drain_passes": "the epilogue computes what the prologue and the loop have loaded",
    "prologue_fill": "the prologue loads what the body's prefetches leave open",
    "mma_serial": "an order's matrix unit always takes one op at a time",
    "mma_latency": "an op's own latency counts",
}


class _Subject(NamedTuple):
    """A double buffer's ops in order, and the program that was built of them."""

    ordered: tuple[OpDesc, ...]
    program: PipelineProgram


def find_dropped_hooks(
    schedule: PipelineSchedule,
    config: PipelineConfig,
    sched: ScheduleConfig,
    body: tuple[OpDesc, ...],
    bootstrap: tuple[OpDesc, ...],
    *,
    built: OrderedProgram | None,
) -> tuple[Finding, ...]:
    """P108 for a hook without effect, P109 (a note) for a knob without effect, P117 for a loop without barriers.

    `built` is None for a single buffer.
    """
    subject = built and _Subject(tuple(body[index] for index in built.ordering.order), built.program)
    return (
        *_hooks(schedule, config, sched, bootstrap),
        *_knobs(config, sched, subject),
        *_find_replaced(schedule, sched),
        *_shape(config),
        *_geometry(schedule, config),
    )


def _hooks(
    schedule: PipelineSchedule, config: PipelineConfig, sched: ScheduleConfig, bootstrap: tuple[OpDesc, ...]
) -> Iterator[Finding]:
    if bootstrap and (config.depth < 2 or not sched.partial_prologue_drain):
        why = "a single buffer's prologue reads its carried fragment itself"
        fix = "remove bootstrap_frags()"
        if config.depth >= 2:
            why = "the prologue drains every prefetch, and the loop reads its fragments itself"
            fix = "partial_prologue_drain=True emits them, each after its own wait"
        yield Finding(
            "P108",
            f"bootstrap_frags() gives {several(len(bootstrap), 'fragment')} that this mode never reads: {why}",
            concerns=tuple(op.concern(index) for index, op in enumerate(bootstrap)),
            evidence=(("depth", config.depth), ("partial_prologue_drain", str(sched.partial_prologue_drain))),
            fixes=(fix,),
        )
    if config.depth < 2 and type(schedule).build_explicit_blocks is not PipelineSchedule.build_explicit_blocks:
        yield Finding(
            "P108",
            "build_explicit_blocks() is never asked: a single buffer's kernel is its body, not blocks",
            concerns=(Concern(label=f"{type(schedule).__name__}.build_explicit_blocks"),),
            evidence=(("depth", config.depth), ("least depth with blocks", 2)),
            fixes=("transform_kernel() can rewrite the kernel's entries",),
        )


def _knobs(config: PipelineConfig, sched: ScheduleConfig, built: _Subject | None) -> Iterator[Finding]:
    changed = [field.name for field in fields(ScheduleConfig) if getattr(sched, field.name) != field.default]
    if built is None:
        yield from (_idle(sched, name, "a single buffer is not cut into blocks") for name in changed)
        return
    searching = sched.scheduling not in (SchedulingStrategy.IDENTITY, SchedulingStrategy.GREEDY)
    for name in changed:
        if name in _ORDERS:
            if name in _SEARCH_ONLY and not searching:
                yield _idle(sched, name, f"{sched.scheduling} does not search")
        elif name in _LGKM:
            if why := _explain_uncounted(name, config, sched, built):
                yield _idle(sched, name, why)
        elif _changes_nothing(name, config, sched, built):
            yield _idle(sched, name, _why_idle(name, sched, built))
    blocks = range(len(built.program.blocks))
    issued = (op for index in blocks for op in built.program.block_ops(index))
    if sched.minimal_barriers and not any(op.kind is OpKind.BARRIER for op in issued):
        yield Finding(
            "P117",
            "minimal_barriers leaves the loop without a barrier: no block reads a stage that isn't its own",
            severity=Severity.NOTE,
            concerns=(Concern(label="ScheduleConfig.minimal_barriers"),),
            evidence=(("blocks with an entry wait", 0), ("blocks", len(blocks))),
            fixes=(
                'sync="repair" adds the barriers that the proof needs',
                "minimal_barriers=False puts two around every MMA",
            ),
        )


def _changes_nothing(name: str, config: PipelineConfig, sched: ScheduleConfig, built: _Subject) -> bool:
    """True if the schedule is the same with the knob at its default.

    Blocks decide everything but how the prologue ends. Where the author lists every block, what a listing might have
    read of a block counts as an effect.
    """
    if name in _ALWAYS_ACTS or (name == "omit_mma_set_prio" and sched.minimal_barriers):
        return False  # without this one, a partition's first block raises the priority, in the epilogue, too
    if name == "inter_block_lgkm_drain" and any(
        block.entry_wait_lgkm and name in block.entry_wait_lgkm.knobs for block in built.program.blocks
    ):
        return False
    listings = built.program.explicit_blocks
    explicit = bool(listings) and not any(
        listing in ((), block.expand()) for listing, block in zip(listings, built.program.blocks, strict=True)
    )
    before = derive_program(built.ordered, config, sched.but(**{name: _DEFAULTS[name]})).blocks
    after = built.program.blocks
    if before == after:
        return True
    seen: Callable[[MMABlockSpec], object] = _without_template if explicit else MMABlockSpec.expand
    if any(seen(one) != seen(other) for one, other in zip(before, after, strict=True)):
        return False
    programs = (PipelineProgram(blocks=blocks, config=config) for blocks in (before, after))
    one, other = (derive_epilogue_blocks(program, config) for program in programs)
    return [block.expand() for block in one] == [block.expand() for block in other]


def _without_template(block: MMABlockSpec) -> MMABlockSpec:
    drains = block.post_barrier_lgkm and block.pre_mma_barrier
    return block.but(
        trailing_sched_barrier=False,
        global_before_frag=False,
        drain_lgkm_before_loads=False,
        post_barrier_lgkm=drains,
        pre_mma_set_prio=False,
        post_mma_set_prio=False,
    )


def _explain_uncounted(name: str, config: PipelineConfig, sched: ScheduleConfig, built: _Subject) -> str:
    """Why a schedule's count of lgkmcnt tokens is never read; nothing if it is."""
    if getattr(config, name):
        return f"the pipeline config states {getattr(config, name)}"
    counted = (op for op in built.ordered if op.role in _COUNTED and op.channel == _LGKM[name])
    if any(not op.lgkm_cost for op in counted) or not _changes_nothing(name, config, sched, built):
        return ""
    return "every op of that operand states its own count"


def _why_idle(name: str, sched: ScheduleConfig, built: _Subject) -> str:
    reasons = (
        (name in _MANUAL_WAITS and sched.auto_waits, "auto_waits derives the waits"),
        (name == "auto_drain" and not sched.auto_waits, "it acts only together with auto_waits"),
        (name == "omit_mma_set_prio" and not sched.minimal_barriers, "it acts only together with minimal_barriers"),
        (bool(built.program.explicit_blocks), "explicit blocks replace the template that reads it"),
        (
            name in ("sched_barrier_mask", "lgkm_after_last") and sched.minimal_barriers,
            "minimal_barriers leaves out the barrier that it follows",
        ),
    )
    default = _DEFAULTS[name]
    return next((why for holds, why in reasons if holds), f"the entries are the same with {name}={default}")


def _find_replaced(schedule: PipelineSchedule, sched: ScheduleConfig) -> Iterator[Finding]:
    """What a schedule sets itself, whatever config it was given."""
    asked = getattr(schedule, "asked", None)
    if not isinstance(asked, ScheduleConfig):
        return
    kept = [field.name for field in fields(ScheduleConfig) if getattr(asked, field.name) != getattr(sched, field.name)]
    if kept:
        owner = type(schedule).__name__
        yield Finding(
            "P109",
            f"{', '.join(kept)}: {owner} sets {'these' if kept[1:] else 'this'} itself, whatever it is given",
            severity=Severity.NOTE,
            concerns=tuple(Concern(label=f"ScheduleConfig.{name}") for name in kept),
            evidence=tuple((name, f"given {getattr(asked, name)!s}, kept {getattr(sched, name)!s}") for name in kept),
        )


def _shape(config: PipelineConfig) -> Iterator[Finding]:
    """Fields that describe a pipeline's shape to a reader; what they say follows from the body."""
    for name, why in _DESCRIBED.items():
        shipped = {PipelineConfig.__dataclass_fields__[name].default}
        if name == "prologue_fill" and config.depth < 2:
            shipped = {0}  # as the targets of a single buffer state it
        if getattr(config, name) not in shipped:
            yield _idle(config, name, why)


def _geometry(schedule: PipelineSchedule, config: PipelineConfig) -> Iterator[Finding]:
    """What a kernel's geometry states and its target overrides, or nothing reads."""
    geometry = getattr(schedule, "geometry", None)
    if not isinstance(geometry, KernelGeometry):
        return
    if geometry.simd_width != KernelGeometry.__dataclass_fields__["simd_width"].default:
        yield _idle(geometry, "simd_width", "loads and reads are 16 bytes wide")
    for name in ("vm_per_load_a", "vm_per_load_b"):
        if getattr(geometry, name) != getattr(config, name):
            yield _idle(geometry, name, f"the target that was given states {getattr(config, name)}")


def _idle(owner: object, name: str, why: str) -> Finding:
    return Finding(
        "P109",
        f"{name}={getattr(owner, name)!s} has no effect here: {why}",
        severity=Severity.NOTE,
        concerns=(Concern(label=f"{type(owner).__name__}.{name}"),),
    )


class _Given(NamedTuple):
    """What the author's methods gave, each checked."""

    schedule: PipelineSchedule
    config: PipelineConfig
    knobs: ScheduleConfig
    body: tuple[OpDesc, ...]
    edges: tuple[DepEdge, ...]
    bootstrap: tuple[OpDesc, ...]


SYNC_MODES = ("as_written", "repair", "strict")


def compile_schedule(
    schedule: PipelineSchedule, sync: str = "repair", *, reentrant: bool = False, vmcnt_in_order: bool = True
) -> CompiledPipeline:
    """Compile a schedule.

    `repair` adds the fewest barriers, then the fewest waits, that make the proof hold and lists them (W102 if they were
    not shown to be the fewest); `strict` raises instead; `as_written` gives exactly what the rules derive, unproved.

    A `reentrant` schedule may run again immediately after itself, as a persistent kernel does.  Without
    `vmcnt_in_order` the proof trusts no wait that leaves some of vmcnt's tokens pending.
    """
    return ScheduleCompiler(sync=sync, reentrant=reentrant, vmcnt_in_order=vmcnt_in_order).compile(schedule)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleCompiler(Pasted):
    """A configured compiler; one value serves any number of schedules."""

    sync: str = "repair"
    reentrant: bool = False
    vmcnt_in_order: bool = True

    def __post_init__(self) -> None:
        check_types(self, {"reentrant": bool, "vmcnt_in_order": bool})
        if self.sync not in SYNC_MODES:
            raise DeclarationError.of(
                "D105",
                f"sync={self.sync!r} is not a way to treat synchronisation",
                fixes=did_you_mean(str(self.sync), SYNC_MODES),
            )

    def compile(self, schedule: PipelineSchedule) -> CompiledPipeline:
        """All phases of the schedule, proved unless they are wanted as written."""
        written = self._as_written(schedule)
        if self.reentrant:
            written = replace(written, reentrant=True)
        if not self.vmcnt_in_order:  # the author's own machine may doubt it already
            written = replace(
                written, machine=written.machine.doubting(EffectTerms(written.config, written.machine).vm)
            )
        if self.sync == "as_written":
            return written
        if uncounted := tuple(written.uncounted()):
            raise DeclarationError(*uncounted)
        return proved(written) if self.sync == "strict" else repaired(written)

    def _as_written(self, schedule: PipelineSchedule) -> CompiledPipeline:
        if isinstance(schedule, type) and issubclass(schedule, PipelineSchedule):
            name = schedule.__name__
            raise DeclarationError.of(
                "D104",
                f"the schedule is the class {name}; expected an instance of it",
                evidence=(("got", f"class {name}"), ("expected", f"{name}(...)")),
                fixes=(f"make one: {name}({_list_required(schedule)})",),
            )
        expect("the schedule", schedule, PipelineSchedule)  # type: ignore[type-abstract]
        config = expect("config()", schedule.config(), PipelineConfig)
        sched = expect("schedule_config()", schedule.schedule_config(), ScheduleConfig)
        body = check_elements("build_body()", schedule.build_body(), OpDesc)
        check_count("build_body()", "ops", len(body), MOST_OPS)
        check_described("build_body()", body)
        body = number_ops(body)
        edges = check_elements("derive_edges()", schedule.derive_edges(body), DepEdge)
        bootstrap = check_elements("bootstrap_frags()", schedule.bootstrap_frags(), OpDesc)
        check_bootstrap(bootstrap)
        given = _Given(schedule, config, sched, body, edges, bootstrap)
        return self._double_buffer(given) if config.depth >= 2 else self._single_buffer(given)

    def _double_buffer(self, given: _Given) -> CompiledPipeline:
        schedule, config, sched, body, edges, bootstrap = given
        program, ordering = build_ordered_program(body, config, sched, edges)
        explicit = schedule.build_explicit_blocks(body, program)
        listings = check_explicit_blocks(explicit, program)
        program = program.with_explicit_blocks(
            tuple(_take_from_hook("build_explicit_blocks", listing, body) for listing in listings)
        )
        prologue = derive_prologue_from_program(program, config, sched, bootstrap)
        expanded = program.expand_to_list()
        kernel = _transform(schedule, expanded, body)
        bounds = partition_entry_bounds(program)
        if len(kernel) != len(expanded):  # the author added or removed entries after which no partition can be told
            bounds = (0, len(kernel))
        return CompiledPipeline(
            name=type(schedule).__name__,
            config=config,
            schedule_config=sched,
            body=body,
            edges=edges,
            prologue=prologue,
            kernel=kernel,
            epilogue=derive_epilogue_from_program(program, config),
            kernel_deps=derive_kernel_deps(kernel, bounds),
            warp_stagger_index=stagger_index(body, len(prologue), config),
            machine=expect("machine()", schedule.machine(), Machine),
            lds_bytes=_check_bytes(schedule),
            program=program,
            ordering=ordering,
            findings=(
                *check_nothing_lost(body, kernel),
                *check_silent_ops(body, edges, kernel),
                *verify_schedule(program, sched),
                *note_moved_ops(body, ordering, program, kernel),
                *find_dropped_hooks(schedule, config, sched, body, bootstrap, built=OrderedProgram(program, ordering)),
            ),
        )

    def _single_buffer(self, given: _Given) -> CompiledPipeline:
        schedule, config, sched, body, edges, bootstrap = given
        LoopBody(body, edges)  # refuses malformed graphs
        phases = derive_single_buffer_phases(body, config)
        kernel = _transform(schedule, phases.kernel, body)
        return CompiledPipeline(
            name=type(schedule).__name__,
            config=config,
            schedule_config=sched,
            body=body,
            edges=edges,
            prologue=phases.prologue,
            kernel=kernel,
            epilogue=phases.epilogue,
            kernel_deps=edges,
            warp_stagger_index=stagger_index(body, len(phases.prologue), config),
            machine=expect("machine()", schedule.machine(), Machine),
            lds_bytes=_check_bytes(schedule),
            findings=(
                *check_nothing_lost(body, kernel),
                *note_moved_by_hand(body, kernel),
                *find_dropped_hooks(schedule, config, sched, body, bootstrap, built=None),
            ),
        )


def _list_required(schedule: type[PipelineSchedule]) -> str:
    parameters = inspect.signature(schedule).parameters.values()
    return ", ".join(each.name for each in parameters if each.default is each.empty)


def _transform(
    schedule: PipelineSchedule, kernel: tuple[ScheduleEntry, ...], body: Sequence[OpDesc]
) -> tuple[ScheduleEntry, ...]:
    """The kernel as the author's hook gives it, renumbered: a wrong number would name another entry."""
    given = check_elements("transform_kernel()", schedule.transform_kernel(kernel, body), ScheduleEntry)
    for entry in given:
        if entry.phase is not Phase.KERNEL:
            wanted = "Phase.KERNEL in what transform_kernel() gives"
            raise bad_field(entry, "phase", entry.phase, wanted, entry.op.source)
    ops = _take_from_hook("transform_kernel", [entry.op for entry in given], body)
    return tuple(
        entry if entry.time_slot == slot and entry.op is op else replace(entry, time_slot=slot, op=op)
        for slot, (entry, op) in enumerate(zip(given, ops, strict=True))
    )


def _take_from_hook(hook: str, ops: Sequence[OpDesc], body: Sequence[OpDesc]) -> tuple[OpDesc, ...]:
    """What an author's hook returned; an op without an origin is one of the body's, or the hook's own."""
    if all(op.origin for op in ops):
        return tuple(ops)
    known = {op: op for op in reversed(body) if not op.is_framework}
    return tuple(
        op if op.origin else known[op] if op in known else op.made_by(f"issued by {hook}()", hook=hook) for op in ops
    )


def _check_bytes(schedule: PipelineSchedule) -> int | None:
    stated = schedule.lds_bytes()
    if stated is not None and (not is_int(stated) or stated < 0):
        raise bad_field(schedule, "lds_bytes()", stated, "an integer, at least 0, or None")
    return stated
