"""The result: takes what every step derived, gives one frozen value that later steps prove, draw and emit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rota.compiler.live import most_live
from rota.declare.config import PipelineConfig
from rota.declare.op import OpDesc
from rota.declare.values import LoopSpec, Work
from rota.declare.vocabulary import Phase
from rota.errors import Finding, several
from rota.graph.edge import DepEdge
from rota.graph.timing import time_loop
from rota.order.problem import Ordering
from rota.program.config import ScheduleConfig
from rota.program.entry import ScheduleEntry
from rota.program.listing import listing
from rota.program.program import PipelineProgram
from rota.targets.machine import GFX950, Machine
from rota.targets.rates import registers_per_lane
from rota.targets.timing import timing_of
from rota.verify.report import Certificate
from rota.verify.subject import Subject, not_about

if TYPE_CHECKING:
    from rota.order.modulo_schedule import ModuloSchedule
    from rota.program.unroll import Placement
    from rota.sync.repair import Repair


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledSchedule:
    """A pipelined loop: its phases, how they came about, and what was found on the way.

    `program` and `ordering` are None for a single buffer, whose body is its kernel; a loop by values has the `loop` as
    declared, its `placement` (start times and copies) and `modulo`, the interval's certificate, instead.  Wave group 1
    executes one extra barrier after `warp_stagger_index` prologue entries when the config staggers.

    `compiler_tracks_registers` says that the back end's compiler waits for register loads by itself, as LLVM does for
    loads it can see.  A `reentrant` schedule may be run again right behind itself, as a persistent kernel does; of any
    other, whoever does so has to put full waits and a barrier between.

    `repairs` lists what was added to make the proof hold; without a proof (`sync="as_written"`) there is no
    certificate.  Nor does a schedule keep one that is about another: what `replace` makes of a proved schedule has
    neither certificate nor repairs, but a warning (V108), if it differs in anything that the proof reads.
    """

    name: str
    config: PipelineConfig
    schedule_config: ScheduleConfig
    body: tuple[OpDesc, ...]
    edges: tuple[DepEdge, ...]
    prologue: tuple[ScheduleEntry, ...]
    kernel: tuple[ScheduleEntry, ...]
    epilogue: tuple[ScheduleEntry, ...]
    kernel_deps: tuple[DepEdge, ...]
    warp_stagger_index: int
    machine: Machine = GFX950
    lds_bytes: int | None = None
    compiler_tracks_registers: bool = True
    reentrant: bool = False
    trip_tiles: tuple[int, int] | None = None
    program: PipelineProgram | None = None
    ordering: Ordering | None = None
    loop: LoopSpec | None = None
    placement: Placement | None = None
    modulo: ModuloSchedule | None = None
    findings: tuple[Finding, ...] = ()
    repairs: tuple[Repair, ...] = ()
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        stale = None if self.certificate is None else not_about(self.certificate.subject, Subject.of(self))
        if stale is not None:
            object.__setattr__(self, "certificate", None)
            object.__setattr__(self, "repairs", ())
            object.__setattr__(self, "findings", (*self.findings, stale))

    def phase(self, phase: Phase) -> tuple[ScheduleEntry, ...]:
        """The entries of one phase."""
        return {Phase.PROLOGUE: self.prologue, Phase.KERNEL: self.kernel, Phase.EPILOGUE: self.epilogue}[phase]

    def with_phase(self, phase: Phase, entries: Iterable[ScheduleEntry]) -> CompiledSchedule:
        """The same schedule with other entries in one phase, numbered anew."""
        numbered = tuple(replace(entry, time_slot=slot) for slot, entry in enumerate(entries))
        if phase is Phase.PROLOGUE:
            return replace(self, prologue=numbered)
        return replace(self, kernel=numbered) if phase is Phase.KERNEL else replace(self, epilogue=numbered)

    @property
    def registers(self) -> int | None:
        """Registers per lane that are live at once, the least that any allocation needs.

        A loop by values with a matrix op of unknown length gives registers to every copy instead.  Ops that only define
        registers and never free any don't state it.
        """
        if self.loop is not None and self.placement is not None:
            timing = timing_of(self.machine)
            if any(op.work is Work.MMA and op.instruction not in timing.rates.mfma_passes for op in self.loop.ops):
                return self.loop.registers(dict(self.placement.copies))
            times = time_loop(self.loop, timing, groups=2 if self.config.warp_stagger.enabled else 1)
            return most_live(self.loop, self.placement, times).registers
        frees = any(op.vgpr_kill for op in self.body)
        return self.ordering.vgpr_peak if self.ordering and frees else None

    @property
    def vmcnt_in_order(self) -> bool:
        """Does vmcnt count down in the order of issue?"""
        return self.machine.vmcnt_in_order

    @property
    def register_limit(self) -> int:
        """Registers that a lane has; the waves of a SIMD share them, where the schedule says how many there are."""
        return registers_per_lane(self.machine, 1 if self.loop is None else self.loop.waves)

    def __repr__(self) -> str:
        return (
            f"<CompiledSchedule {self.name}: {len(self.body)} ops, prologue {len(self.prologue)}, "
            f"kernel {len(self.kernel)}, epilogue {len(self.epilogue)} entries, "
            f"{several(len(self.findings), 'finding')}>"
        )

    def __str__(self) -> str:
        parts = [
            listing(f"{self.name}: prologue", self.prologue),
            listing(f"{self.name}: kernel", self.kernel),
            listing(f"{self.name}: epilogue", self.epilogue),
        ]
        if self.repairs:
            parts.append("\n".join([f"{self.name}: repairs", *(f"  {change}" for change in self.repairs)]))
        return "\n\n".join(parts)
