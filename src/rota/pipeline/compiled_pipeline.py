"""A compiled schedule by stages: takes what the steps derived, gives one frozen value with its lowered program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import DeclarationError, Finding, Severity
from rota.order.acyclic.edge import DepEdge
from rota.order.acyclic.loop_body import LoopBody
from rota.order.acyclic.problem import OrderCertificate, Ordering, Proof
from rota.pipeline.config import PipelineConfig
from rota.pipeline.lower import lower
from rota.pipeline.moves import count_moved
from rota.pipeline.op import OpDesc
from rota.pipeline.op_effects import EffectTerms
from rota.pipeline.pipeline_program import PipelineProgram
from rota.pipeline.schedule_config import ScheduleConfig
from rota.pipeline.schedule_entry import ScheduleEntry
from rota.pipeline.tile_shape import TileShape, with_work
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.program.origin import Origin
from rota.program.phase import Phase
from rota.program.stagger import falls_back_at

if TYPE_CHECKING:
    from rota.sync.repair import Repaired


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompiledPipeline(CompiledSchedule):
    """A pipelined loop by stages: its phases, how they came about, and what was found on the way.

    `program` and `ordering` are None for a single buffer, whose body is its kernel.  Wave group 1 executes one extra
    barrier after `warp_stagger_index` prologue entries when the config staggers.
    """

    prologue: tuple[ScheduleEntry, ...]
    kernel: tuple[ScheduleEntry, ...]
    epilogue: tuple[ScheduleEntry, ...]
    config: PipelineConfig
    schedule_config: ScheduleConfig
    body: tuple[OpDesc, ...]
    edges: tuple[DepEdge, ...]
    kernel_deps: tuple[DepEdge, ...]
    warp_stagger_index: int
    program: PipelineProgram | None = None
    ordering: Ordering | None = None

    @property
    def op_count(self) -> int:
        """Ops of the body."""
        return len(self.body)

    @property
    def graph(self) -> LoopBody:
        """The body with its edges, which a notebook draws."""
        return LoopBody(self.body, self.edges)

    @property
    def registers(self) -> int | None:
        """Registers per lane that are live at once; ops that define registers and never free any don't state it."""
        frees = any(op.vgpr_kill for op in self.body)
        return self.ordering.vgpr_peak if self.ordering and frees else None

    @property
    def register_limit(self) -> int:
        """Registers that a lane has, if its wave has the SIMD for itself."""
        return self.machine.vgprs_per_lane.value

    @property
    def quality(self) -> str:
        """How good the order of one iteration is; what is known holds for it as it was before blocks moved ops."""
        moved = count_moved(self.findings)
        before = f", before {moved} of {len(self.body)} ops moved" if moved else ""
        if self.ordering is None:
            return f"the body's order{before}"
        return f"makespan {self.ordering.makespan:,} ({_known(self.ordering.certificate)}{before})"

    def _lower(self) -> LoweredProgram:
        return lower(self)

    def shaped(self, shape: TileShape) -> LoweredProgram:
        """The lowered program with what a wave issues for each op, which a body declared in tiles leaves open."""
        return with_work(self.lowered, shape)

    def body_index(self) -> Callable[[object], int | None]:
        """Where the body has an op; a prologue's load is the body's own, at the offset that fills its stage first."""
        own = [(index, op) for index, op in enumerate(self.body) if not op.is_framework]
        by_op = {op: index for index, op in reversed(own)}
        by_tile = {_tile(op): index for index, op in reversed(own) if op.is_prefetch_load}

        def index(declared: object) -> int | None:
            if not isinstance(declared, OpDesc) or declared.is_framework:
                return None
            found = by_op.get(declared)
            return by_tile.get(_tile(declared)) if found is None and declared.is_prefetch_load else found

        return index

    def uncounted(self, *, noted: bool = False) -> Iterable[Finding]:
        """D110 for each counter on which some wait counts, and some op doesn't say how many tokens it has."""
        from rota.pipeline.counts import uncounted_ops  # which reads this class

        return uncounted_ops(self, Severity.NOTE if noted else Severity.ERROR)

    def synchronised(self, done: Repaired) -> Self:
        """The schedule with waits and barriers added; kernel dependencies follow their entries."""
        phases = {phase: self._written(done, phase) for phase in Phase}
        stagger_index = len(phases[Phase.PROLOGUE]) + 1
        if self.config.warp_stagger.enabled:
            stagger_index = falls_back_at(done.phases[Phase.PROLOGUE])
        moved = self.kernel_deps
        if self.program is not None:  # a single buffer's dependencies are those of its body
            slots = [slot for slot, origin in enumerate(done.origins[Phase.KERNEL]) if origin is not None]
            moved = tuple(
                replace(dep, producer_idx=slots[dep.producer_idx], consumer_idx=slots[dep.consumer_idx])
                for dep in self.kernel_deps
            )
        return replace(
            self,
            prologue=phases[Phase.PROLOGUE],
            kernel=phases[Phase.KERNEL],
            epilogue=phases[Phase.EPILOGUE],
            kernel_deps=moved,
            warp_stagger_index=stagger_index,
            repairs=done.repairs,
        )

    def _written(self, done: Repaired, phase: Phase) -> tuple[ScheduleEntry, ...]:
        """What was lowered from an entry of this schedule is that entry again; the rest are waits and barriers."""
        listed = [entry.listed for entry in self.lowered.phase(phase)]
        own = iter(self.phase(phase))
        mine = [next(own) if is_listed else None for is_listed in listed]
        repairs = {each.slot: each for each in done.repairs if each.phase is phase}
        found: list[ScheduleEntry] = []
        for entry, origin in zip(done.phases[phase], done.origins[phase], strict=True):
            if not entry.listed:
                continue
            before = None if origin is None else mine[origin]
            unchanged = before is not None and str(before.op) == str(entry.op)
            op = before.op if before is not None and unchanged else self._desc(entry)
            if (made := repairs.get(entry.time_slot)) is not None:
                cause = before.op.origin if before is not None else None
                op = op.with_origin(replace(cause or Origin(rule=""), rule=made.reason, repair=True))
            prefetch = before is not None and before.is_prefetch
            found.append(ScheduleEntry(op=op, time_slot=len(found), phase=phase, is_prefetch=prefetch))
        return tuple(found)

    def _desc(self, entry: Entry) -> OpDesc:
        """A wait or barrier that was added, as an op of a body."""
        if entry.op.kind is OpKind.BARRIER:
            return OpDesc.barrier()
        setting = EffectTerms(self.config, self.machine)
        makes = {setting.vm: OpDesc.wait_vm, setting.lgkm: OpDesc.wait_lgkm}.get(entry.effect.counter or "")
        if makes is None:
            message = f"a body by stages has no word for {entry.op}, which {self.name} needs on {self.machine.name}"
            raise DeclarationError(Finding(code="D105", message=message))
        return makes(entry.effect.wait_value)


def _known(certificate: OrderCertificate) -> str:
    """What is known about an order, in words."""
    if certificate.proof is Proof.NONE:
        return "the body's order" if certificate.by == "identity" else f"by {certificate.by}"
    return "proven least" if certificate.proof is Proof.OPTIMAL else f"at least {certificate.bound:,}"


def _tile(op: OpDesc) -> tuple[int, ...]:
    return (op.tag, op.channel, op.stage, op.subtile)
