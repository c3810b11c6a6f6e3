"""rota makes schedules of GPU kernel loops, and judges kernels: everything an author needs is importable from here.

A name is loaded when it is first asked for, from its home module, which holds the same object: `import rota` costs next
to nothing, and `import rota.isa` loads no scheduler.
"""

import importlib
from typing import TYPE_CHECKING

from rota.verify.prove import verify  # at once: the folder of that name would take its place
from rota.version import __version__

if TYPE_CHECKING:
    from rota.compiled.compiled_schedule import CompiledSchedule
    from rota.errors import (
        CODES,
        Concern,
        DeclarationError,
        Finding,
        GraphError,
        IsaError,
        OrderError,
        ProgramError,
        ProofError,
        RotaError,
        Severity,
        SourceLine,
        Witness,
    )
    from rota.isa.launch.loaded_kernel import LoadedKernel
    from rota.isa.launch.order_runs import LaunchResult
    from rota.isa.load import load_kernel
    from rota.kernels.four_wave import Pipeline4Wave
    from rota.kernels.ping_pong import DeclarativeSchedule
    from rota.kernels.single_buffer import SchedGroupHints, SingleBufferSchedule
    from rota.kernels.target_profiles import derive_safe_max_globals, mi355x_single_buffer_target, mi355x_target
    from rota.order.acyclic.cpsat import CpSatScheduler
    from rota.order.acyclic.edge import DepEdge, DepKind
    from rota.order.acyclic.evaluate import evaluate_order, makespan_lower_bound
    from rota.order.acyclic.greedy import GreedyScheduler, IdentityScheduler
    from rota.order.acyclic.loop_body import LoopBody
    from rota.order.acyclic.problem import (
        OrderCertificate,
        Ordering,
        OrderProblem,
        Proof,
        Scheduler,
        SchedulingStrategy,
    )
    from rota.order.acyclic.registry import scheduler_named
    from rota.order.modulo.modulo_problem import ModuloEdge, ModuloOp, ModuloProblem, Resource, Use
    from rota.order.modulo.modulo_schedule import ModuloSchedule
    from rota.order.modulo.scheduler import ModuloScheduler
    from rota.pipeline.block import MMABlockSpec, emit_minimal_barrier_block
    from rota.pipeline.body import PipelineBody
    from rota.pipeline.build import build_kernel_program
    from rota.pipeline.channel import ChannelSpec
    from rota.pipeline.checks import verify_schedule
    from rota.pipeline.compiled_pipeline import CompiledPipeline
    from rota.pipeline.compiler import ScheduleCompiler, compile_schedule
    from rota.pipeline.config import BlockSizing, FragOrder, LoopCarriedSpec, PipelineConfig, WarpStaggerRule
    from rota.pipeline.cost import OpCost, TargetCostModel, annotate_ops
    from rota.pipeline.edges import derive_edges_from_ops
    from rota.pipeline.geometry import KernelGeometry
    from rota.pipeline.op import OpDesc
    from rota.pipeline.optimal import (
        greedy_schedule,
        optimal_schedule,
        optimal_schedule_with_halves,
        optimize_within_barriers,
        simple_greedy_schedule,
    )
    from rota.pipeline.phase_derivation import derive_cross_stage_rotation_edges, filter_spurious_cross_stage_flow
    from rota.pipeline.phases import derive_epilogue_from_program, derive_prologue_from_program
    from rota.pipeline.pipeline_program import PipelineProgram
    from rota.pipeline.profile import TargetProfile
    from rota.pipeline.reorder import double_buffer_reorder, mma_block_interleave_list, single_buffer_reorder
    from rota.pipeline.rules import DOUBLE_BUFFER_RULES, SINGLE_BUFFER_RULES, EdgeRule
    from rota.pipeline.schedule import PipelineSchedule
    from rota.pipeline.schedule_config import ScheduleConfig
    from rota.pipeline.schedule_entry import ScheduleEntry
    from rota.pipeline.strategies import BarrierStrategy, LoadStrategy, WaitStrategy
    from rota.pipeline.vocabulary import DoubleBufferTag, FrameworkTag, InstructionGroup, KOffsetKind, SingleBufferTag
    from rota.pipeline.waits import derive_drain_mask, derive_waits_from_blocks
    from rota.program.kinds import OpRole, ResourceKind
    from rota.program.listing import count_sync, listing
    from rota.program.loop_spec import LoopSpec, Read
    from rota.program.machine import Machine
    from rota.program.phase import Phase
    from rota.sync.repair import Repair
    from rota.targets.by_architecture import GFX942, GFX950
    from rota.values.compile_loop import compile_loop
    from rota.values.compiled_loop import CompiledLoop
    from rota.values.loop import Loop
    from rota.verify.report import Certificate, Report

_HOMES = {
    "BarrierStrategy": "rota.pipeline.strategies",
    "BlockSizing": "rota.pipeline.config",
    "CODES": "rota.errors",
    "Certificate": "rota.verify.report",
    "ChannelSpec": "rota.pipeline.channel",
    "CompiledLoop": "rota.values.compiled_loop",
    "CompiledPipeline": "rota.pipeline.compiled_pipeline",
    "CompiledSchedule": "rota.compiled.compiled_schedule",
    "Concern": "rota.errors",
    "CpSatScheduler": "rota.order.acyclic.cpsat",
    "DOUBLE_BUFFER_RULES": "rota.pipeline.rules",
    "DeclarationError": "rota.errors",
    "DeclarativeSchedule": "rota.kernels.ping_pong",
    "DepEdge": "rota.order.acyclic.edge",
    "DepKind": "rota.order.acyclic.edge",
    "DoubleBufferTag": "rota.pipeline.vocabulary",
    "EdgeRule": "rota.pipeline.rules",
    "Finding": "rota.errors",
    "FragOrder": "rota.pipeline.config",
    "FrameworkTag": "rota.pipeline.vocabulary",
    "GFX942": "rota.targets.by_architecture",
    "GFX950": "rota.targets.by_architecture",
    "GraphError": "rota.errors",
    "GreedyScheduler": "rota.order.acyclic.greedy",
    "IdentityScheduler": "rota.order.acyclic.greedy",
    "InstructionGroup": "rota.pipeline.vocabulary",
    "IsaError": "rota.errors",
    "KOffsetKind": "rota.pipeline.vocabulary",
    "KernelGeometry": "rota.pipeline.geometry",
    "LaunchResult": "rota.isa.launch.order_runs",
    "LoadStrategy": "rota.pipeline.strategies",
    "LoadedKernel": "rota.isa.launch.loaded_kernel",
    "Loop": "rota.values.loop",
    "LoopBody": "rota.order.acyclic.loop_body",
    "LoopCarriedSpec": "rota.pipeline.config",
    "LoopSpec": "rota.program.loop_spec",
    "MMABlockSpec": "rota.pipeline.block",
    "Machine": "rota.program.machine",
    "ModuloEdge": "rota.order.modulo.modulo_problem",
    "ModuloOp": "rota.order.modulo.modulo_problem",
    "ModuloProblem": "rota.order.modulo.modulo_problem",
    "ModuloSchedule": "rota.order.modulo.modulo_schedule",
    "ModuloScheduler": "rota.order.modulo.scheduler",
    "OpCost": "rota.pipeline.cost",
    "OpDesc": "rota.pipeline.op",
    "OpRole": "rota.program.kinds",
    "OrderCertificate": "rota.order.acyclic.problem",
    "OrderError": "rota.errors",
    "OrderProblem": "rota.order.acyclic.problem",
    "Ordering": "rota.order.acyclic.problem",
    "Phase": "rota.program.phase",
    "Pipeline4Wave": "rota.kernels.four_wave",
    "PipelineBody": "rota.pipeline.body",
    "PipelineConfig": "rota.pipeline.config",
    "PipelineProgram": "rota.pipeline.pipeline_program",
    "PipelineSchedule": "rota.pipeline.schedule",
    "ProgramError": "rota.errors",
    "Proof": "rota.order.acyclic.problem",
    "ProofError": "rota.errors",
    "Read": "rota.program.loop_spec",
    "Repair": "rota.sync.repair",
    "Report": "rota.verify.report",
    "Resource": "rota.order.modulo.modulo_problem",
    "ResourceKind": "rota.program.kinds",
    "RotaError": "rota.errors",
    "SINGLE_BUFFER_RULES": "rota.pipeline.rules",
    "SchedGroupHints": "rota.kernels.single_buffer",
    "ScheduleCompiler": "rota.pipeline.compiler",
    "ScheduleConfig": "rota.pipeline.schedule_config",
    "ScheduleEntry": "rota.pipeline.schedule_entry",
    "Scheduler": "rota.order.acyclic.problem",
    "SchedulingStrategy": "rota.order.acyclic.problem",
    "Severity": "rota.errors",
    "SingleBufferSchedule": "rota.kernels.single_buffer",
    "SingleBufferTag": "rota.pipeline.vocabulary",
    "SourceLine": "rota.errors",
    "TargetCostModel": "rota.pipeline.cost",
    "TargetProfile": "rota.pipeline.profile",
    "Use": "rota.order.modulo.modulo_problem",
    "WaitStrategy": "rota.pipeline.strategies",
    "WarpStaggerRule": "rota.pipeline.config",
    "Witness": "rota.errors",
    "annotate_ops": "rota.pipeline.cost",
    "build_kernel_program": "rota.pipeline.build",
    "compile_loop": "rota.values.compile_loop",
    "compile_schedule": "rota.pipeline.compiler",
    "count_sync": "rota.program.listing",
    "derive_cross_stage_rotation_edges": "rota.pipeline.phase_derivation",
    "derive_drain_mask": "rota.pipeline.waits",
    "derive_edges_from_ops": "rota.pipeline.edges",
    "derive_epilogue_from_program": "rota.pipeline.phases",
    "derive_prologue_from_program": "rota.pipeline.phases",
    "derive_safe_max_globals": "rota.kernels.target_profiles",
    "derive_waits_from_blocks": "rota.pipeline.waits",
    "double_buffer_reorder": "rota.pipeline.reorder",
    "emit_minimal_barrier_block": "rota.pipeline.block",
    "evaluate_order": "rota.order.acyclic.evaluate",
    "filter_spurious_cross_stage_flow": "rota.pipeline.phase_derivation",
    "greedy_schedule": "rota.pipeline.optimal",
    "listing": "rota.program.listing",
    "load_kernel": "rota.isa.load",
    "makespan_lower_bound": "rota.order.acyclic.evaluate",
    "mi355x_single_buffer_target": "rota.kernels.target_profiles",
    "mi355x_target": "rota.kernels.target_profiles",
    "mma_block_interleave_list": "rota.pipeline.reorder",
    "optimal_schedule": "rota.pipeline.optimal",
    "optimal_schedule_with_halves": "rota.pipeline.optimal",
    "optimize_within_barriers": "rota.pipeline.optimal",
    "scheduler_named": "rota.order.acyclic.registry",
    "simple_greedy_schedule": "rota.pipeline.optimal",
    "single_buffer_reorder": "rota.pipeline.reorder",
    "verify_schedule": "rota.pipeline.checks",
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
    "ChannelSpec",
    "CompiledLoop",
    "CompiledPipeline",
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
    "IsaError",
    "KOffsetKind",
    "KernelGeometry",
    "LaunchResult",
    "LoadStrategy",
    "LoadedKernel",
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
    "derive_safe_max_globals",
    "derive_waits_from_blocks",
    "double_buffer_reorder",
    "emit_minimal_barrier_block",
    "evaluate_order",
    "filter_spurious_cross_stage_flow",
    "greedy_schedule",
    "listing",
    "load_kernel",
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


_DOORS = frozenset({"pipeline", "triton"})  # modules that are asked for by name


def __getattr__(name: str) -> object:
    if name in _DOORS:
        return importlib.import_module(f"rota.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
