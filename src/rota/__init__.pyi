# The public names of rota, each with its home module; `rota/__init__.py` loads them from there.

from rota import pipeline as pipeline, triton as triton
from rota.compiled.compiled_schedule import CompiledSchedule as CompiledSchedule
from rota.errors import (
    CODES as CODES,
    Concern as Concern,
    DeclarationError as DeclarationError,
    Finding as Finding,
    GraphError as GraphError,
    IsaError as IsaError,
    OrderError as OrderError,
    ProgramError as ProgramError,
    ProofError as ProofError,
    RotaError as RotaError,
    Severity as Severity,
    SourceLine as SourceLine,
    Witness as Witness,
)
from rota.isa.launch.loaded_kernel import LoadedKernel as LoadedKernel, load_kernel as load_kernel
from rota.isa.launch.orders import LaunchResult as LaunchResult
from rota.kernels.four_wave import Pipeline4Wave as Pipeline4Wave
from rota.kernels.ping_pong import (
    DeclarativeSchedule as DeclarativeSchedule,
    derive_safe_max_globals as derive_safe_max_globals,
    mi355x_target as mi355x_target,
)
from rota.kernels.single_buffer import (
    SchedGroupHints as SchedGroupHints,
    SingleBufferSchedule as SingleBufferSchedule,
    mi355x_single_buffer_target as mi355x_single_buffer_target,
)
from rota.order.acyclic.cpsat import CpSatScheduler as CpSatScheduler
from rota.order.acyclic.greedy import (
    GreedyScheduler as GreedyScheduler,
    IdentityScheduler as IdentityScheduler,
    scheduler_named as scheduler_named,
)
from rota.order.acyclic.problem import (
    DepEdge as DepEdge,
    DepKind as DepKind,
    LoopBody as LoopBody,
    OrderCertificate as OrderCertificate,
    Ordering as Ordering,
    OrderProblem as OrderProblem,
    Proof as Proof,
    Scheduler as Scheduler,
    SchedulingStrategy as SchedulingStrategy,
    evaluate_order as evaluate_order,
    makespan_lower_bound as makespan_lower_bound,
)
from rota.order.modulo.modulo_problem import (
    ModuloEdge as ModuloEdge,
    ModuloOp as ModuloOp,
    ModuloProblem as ModuloProblem,
    ModuloSchedule as ModuloSchedule,
    Resource as Resource,
    Use as Use,
)
from rota.order.modulo.scheduler import ModuloScheduler as ModuloScheduler
from rota.pipeline.block import (
    MMABlockSpec as MMABlockSpec,
    PipelineProgram as PipelineProgram,
    derive_drain_mask as derive_drain_mask,
    derive_waits_from_blocks as derive_waits_from_blocks,
    emit_minimal_barrier_block as emit_minimal_barrier_block,
)
from rota.pipeline.body import (
    PipelineBody as PipelineBody,
    double_buffer_reorder as double_buffer_reorder,
    greedy_schedule as greedy_schedule,
    mma_block_interleave_list as mma_block_interleave_list,
    optimal_schedule as optimal_schedule,
    optimal_schedule_with_halves as optimal_schedule_with_halves,
    optimize_within_barriers as optimize_within_barriers,
    simple_greedy_schedule as simple_greedy_schedule,
    single_buffer_reorder as single_buffer_reorder,
)
from rota.pipeline.build import build_kernel_program as build_kernel_program, verify_schedule as verify_schedule
from rota.pipeline.compiled_pipeline import CompiledPipeline as CompiledPipeline
from rota.pipeline.compiler import (
    PipelineSchedule as PipelineSchedule,
    ScheduleCompiler as ScheduleCompiler,
    compile_schedule as compile_schedule,
)
from rota.pipeline.config import (
    BlockSizing as BlockSizing,
    FragOrder as FragOrder,
    LoopCarriedSpec as LoopCarriedSpec,
    OpCost as OpCost,
    PipelineConfig as PipelineConfig,
    TargetCostModel as TargetCostModel,
    TargetProfile as TargetProfile,
    WarpStaggerRule as WarpStaggerRule,
    annotate_ops as annotate_ops,
)
from rota.pipeline.geometry import KernelGeometry as KernelGeometry
from rota.pipeline.op import (
    ChannelSpec as ChannelSpec,
    DoubleBufferTag as DoubleBufferTag,
    FrameworkTag as FrameworkTag,
    InstructionGroup as InstructionGroup,
    KOffsetKind as KOffsetKind,
    OpDesc as OpDesc,
    ScheduleEntry as ScheduleEntry,
    SingleBufferTag as SingleBufferTag,
)
from rota.pipeline.phases import (
    derive_cross_stage_rotation_edges as derive_cross_stage_rotation_edges,
    derive_epilogue_from_program as derive_epilogue_from_program,
    derive_prologue_from_program as derive_prologue_from_program,
    filter_spurious_cross_stage_flow as filter_spurious_cross_stage_flow,
)
from rota.pipeline.rules import (
    DOUBLE_BUFFER_RULES as DOUBLE_BUFFER_RULES,
    SINGLE_BUFFER_RULES as SINGLE_BUFFER_RULES,
    EdgeRule as EdgeRule,
    derive_edges_from_ops as derive_edges_from_ops,
)
from rota.pipeline.schedule_config import (
    BarrierStrategy as BarrierStrategy,
    LoadStrategy as LoadStrategy,
    ScheduleConfig as ScheduleConfig,
    WaitStrategy as WaitStrategy,
)
from rota.program.kinds import OpRole as OpRole, Phase as Phase, ResourceKind as ResourceKind
from rota.program.loop_spec import LoopSpec as LoopSpec, Read as Read
from rota.program.lowered import count_sync as count_sync, listing as listing
from rota.program.machine import Machine as Machine
from rota.sync.repair import Repair as Repair
from rota.targets.devices import GFX942 as GFX942, GFX950 as GFX950
from rota.values.compile_loop import compile_loop as compile_loop
from rota.values.compiled_loop import CompiledLoop as CompiledLoop
from rota.values.loop import Loop as Loop
from rota.verify.prove import verify as verify
from rota.verify.report import Certificate as Certificate, Report as Report
from rota.version import __version__ as __version__

__all__: list[str]  # noqa: PYI035  # of all names above
_HOMES: dict[str, str]
