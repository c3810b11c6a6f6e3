"""rota software-pipelines GPU kernel loops: takes the ops of one iteration, gives a scheduled, checked program.

Everything a kernel author needs is importable from here; the home modules hold the same names.  Searches, repairs
and loops by values are loaded when they are first asked for, which keeps `import rota` cheap.
"""

import importlib
from typing import TYPE_CHECKING

from rota.compiler.build import build_kernel_program
from rota.compiler.compile import ScheduleCompiler, compile_schedule
from rota.compiler.compiled import CompiledSchedule
from rota.compiler.schedule import PipelineSchedule
from rota.declare.body import PipelineBody
from rota.declare.config import BlockSizing, FragOrder, LoopCarriedSpec, PipelineConfig, WarpStaggerRule
from rota.declare.geometry import KernelGeometry
from rota.declare.op import OpDesc
from rota.declare.vocabulary import (
    DoubleBufferTag,
    FrameworkTag,
    InstructionGroup,
    KOffsetKind,
    OpRole,
    Phase,
    ResourceKind,
    SchedulingStrategy,
    SingleBufferTag,
)
from rota.errors import (
    CODES,
    Concern,
    DeclarationError,
    Finding,
    GraphError,
    OrderError,
    ProgramError,
    ProofError,
    RotaError,
    Severity,
    SourceLine,
    Witness,
)
from rota.graph.derive import derive_edges_from_ops
from rota.graph.edge import DepEdge, DepKind
from rota.graph.loop_body import LoopBody
from rota.graph.rotation import derive_cross_stage_rotation_edges, filter_spurious_cross_stage_flow
from rota.graph.rules import DOUBLE_BUFFER_RULES, SINGLE_BUFFER_RULES, EdgeRule
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.ping_pong import DeclarativeSchedule
from rota.kernels.single_buffer import SchedGroupHints, SingleBufferSchedule
from rota.order.evaluate import evaluate_order, makespan_lower_bound
from rota.order.greedy import GreedyScheduler, IdentityScheduler
from rota.order.optimal import (
    greedy_schedule,
    optimal_schedule,
    optimal_schedule_with_halves,
    optimize_within_barriers,
    simple_greedy_schedule,
)
from rota.order.problem import OrderCertificate, Ordering, OrderProblem, Proof, Scheduler
from rota.order.registry import scheduler_named
from rota.order.reorder import double_buffer_reorder, mma_block_interleave_list, single_buffer_reorder
from rota.program.block import MMABlockSpec, emit_minimal_barrier_block
from rota.program.checks import verify_schedule
from rota.program.config import ScheduleConfig
from rota.program.entry import ScheduleEntry
from rota.program.listing import count_sync, listing
from rota.program.phases import derive_epilogue_from_program, derive_prologue_from_program
from rota.program.program import PipelineProgram
from rota.program.strategies import BarrierStrategy, LoadStrategy, WaitStrategy
from rota.program.waits import derive_drain_mask, derive_waits_from_blocks
from rota.targets.amd import mi355x_single_buffer_target, mi355x_target
from rota.targets.cost import OpCost, TargetCostModel, annotate_ops
from rota.targets.machine import GFX942, GFX950, Machine
from rota.targets.profile import TargetProfile
from rota.verify.prove import verify
from rota.verify.report import Certificate, Report
from rota.version import __version__

if TYPE_CHECKING:
    from rota.compiler.loop import compile_loop
    from rota.declare.loop import Loop
    from rota.declare.values import LoopSpec, Read
    from rota.graph.modulo import ModuloEdge, ModuloOp, ModuloProblem, Resource, Use
    from rota.order.cpsat import CpSatScheduler
    from rota.order.modulo import ModuloScheduler
    from rota.order.modulo_schedule import ModuloSchedule
    from rota.sync.repair import Repair

_LOADED_WHEN_ASKED_FOR = {
    "CpSatScheduler": "rota.order.cpsat",
    "Repair": "rota.sync.repair",
    "compile_loop": "rota.compiler.loop",
    "Loop": "rota.declare.loop",
    "LoopSpec": "rota.declare.values",
    "Read": "rota.declare.values",
    "ModuloEdge": "rota.graph.modulo",
    "ModuloOp": "rota.graph.modulo",
    "ModuloProblem": "rota.graph.modulo",
    "Resource": "rota.graph.modulo",
    "Use": "rota.graph.modulo",
    "ModuloScheduler": "rota.order.modulo",
    "ModuloSchedule": "rota.order.modulo_schedule",
}

__all__ = [
    "CODES",
    "DOUBLE_BUFFER_RULES",
    "GFX942",
    "GFX950",
    "SINGLE_BUFFER_RULES",
    "BarrierStrategy",
    "BlockSizing",
    "Certificate",
    "CompiledSchedule",
    "Concern",
    "CpSatScheduler",
    "DeclarationError",
    "DeclarativeSchedule",
    "DepEdge",
    "DepKind",
    "DoubleBufferTag",
    "EdgeRule",
    "Finding",
    "FragOrder",
    "FrameworkTag",
    "GraphError",
    "GreedyScheduler",
    "IdentityScheduler",
    "InstructionGroup",
    "KOffsetKind",
    "KernelGeometry",
    "LoadStrategy",
    "Loop",
    "LoopBody",
    "LoopCarriedSpec",
    "LoopSpec",
    "MMABlockSpec",
    "Machine",
    "ModuloEdge",
    "ModuloOp",
    "ModuloProblem",
    "ModuloSchedule",
    "ModuloScheduler",
    "OpCost",
    "OpDesc",
    "OpRole",
    "OrderCertificate",
    "OrderError",
    "OrderProblem",
    "Ordering",
    "Phase",
    "Pipeline4Wave",
    "PipelineBody",
    "PipelineConfig",
    "PipelineProgram",
    "PipelineSchedule",
    "ProgramError",
    "Proof",
    "ProofError",
    "Read",
    "Repair",
    "Report",
    "Resource",
    "ResourceKind",
    "RotaError",
    "SchedGroupHints",
    "ScheduleCompiler",
    "ScheduleConfig",
    "ScheduleEntry",
    "Scheduler",
    "SchedulingStrategy",
    "Severity",
    "SingleBufferSchedule",
    "SingleBufferTag",
    "SourceLine",
    "TargetCostModel",
    "TargetProfile",
    "Use",
    "WaitStrategy",
    "WarpStaggerRule",
    "Witness",
    "__version__",
    "annotate_ops",
    "build_kernel_program",
    "compile_loop",
    "compile_schedule",
    "count_sync",
    "derive_cross_stage_rotation_edges",
    "derive_drain_mask",
    "derive_edges_from_ops",
    "derive_epilogue_from_program",
    "derive_prologue_from_program",
    "derive_waits_from_blocks",
    "double_buffer_reorder",
    "emit_minimal_barrier_block",
    "evaluate_order",
    "filter_spurious_cross_stage_flow",
    "greedy_schedule",
    "listing",
    "makespan_lower_bound",
    "mi355x_single_buffer_target",
    "mi355x_target",
    "mma_block_interleave_list",
    "optimal_schedule",
    "optimal_schedule_with_halves",
    "optimize_within_barriers",
    "scheduler_named",
    "simple_greedy_schedule",
    "single_buffer_reorder",
    "verify",
    "verify_schedule",
]


def __getattr__(name: str) -> object:
    home = _LOADED_WHEN_ASKED_FOR.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value
