"""`PipelineSchedule`, what a kernel author writes: a config, a body, and hooks with defaults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from rota.order.acyclic.problem import DepEdge
from rota.pipeline.block import PipelineProgram
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc, ScheduleEntry
from rota.pipeline.rules import derive_edges_from_ops
from rota.pipeline.schedule_config import ScheduleConfig
from rota.printing import show
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
