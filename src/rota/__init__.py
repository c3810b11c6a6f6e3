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
    from rota.isa.launch.loaded_kernel import LoadedKernel, load_kernel
    from rota.isa.launch.orders import LaunchResult
    from rota.kernels.four_wave import Pipeline4Wave
    from rota.kernels.ping_pong import DeclarativeSchedule
    from rota.kernels.single_buffer import SchedGroupHints, SingleBufferSchedule
    from rota.kernels.target_profiles import derive_safe_max_globals, mi355x_single_buffer_target, mi355x_target
    from rota.order.acyclic.cpsat import CpSatScheduler
    from rota.order.acyclic.greedy import GreedyScheduler, IdentityScheduler, scheduler_named
    from rota.order.acyclic.problem import (
        DepEdge,
        DepKind,
        LoopBody,
        OrderCertificate,
        Ordering,
        OrderProblem,
        Proof,
        Scheduler,
        SchedulingStrategy,
        evaluate_order,
        makespan_lower_bound,
    )
    from rota.order.modulo.modulo_problem import ModuloEdge, ModuloOp, ModuloProblem, ModuloSchedule, Resource, Use
    from rota.order.modulo.scheduler import ModuloScheduler
    from rota.pipeline.block import (
        MMABlockSpec,
        PipelineProgram,
        derive_drain_mask,
        derive_waits_from_blocks,
        emit_minimal_barrier_block,
    )
    from rota.pipeline.body import (
        PipelineBody,
        double_buffer_reorder,
        greedy_schedule,
        mma_block_interleave_list,
        optimal_schedule,
        optimal_schedule_with_halves,
        optimize_within_barriers,
        simple_greedy_schedule,
        single_buffer_reorder,
    )
    from rota.pipeline.build import build_kernel_program, verify_schedule
    from rota.pipeline.compiled_pipeline import CompiledPipeline
    from rota.pipeline.compiler import ScheduleCompiler, compile_schedule
    from rota.pipeline.config import BlockSizing, FragOrder, LoopCarriedSpec, PipelineConfig, WarpStaggerRule
    from rota.pipeline.cost import OpCost, TargetCostModel, TargetProfile, annotate_ops
    from rota.pipeline.geometry import KernelGeometry
    from rota.pipeline.op import (
        ChannelSpec,
        DoubleBufferTag,
        FrameworkTag,
        InstructionGroup,
        KOffsetKind,
        OpDesc,
        ScheduleEntry,
        SingleBufferTag,
    )
    from rota.pipeline.phases import (
        derive_cross_stage_rotation_edges,
        derive_epilogue_from_program,
        derive_prologue_from_program,
        filter_spurious_cross_stage_flow,
    )
    from rota.pipeline.rules import DOUBLE_BUFFER_RULES, SINGLE_BUFFER_RULES, EdgeRule, derive_edges_from_ops
    from rota.pipeline.schedule import PipelineSchedule
    from rota.pipeline.schedule_config import BarrierStrategy, LoadStrategy, ScheduleConfig, WaitStrategy
    from rota.program.kinds import OpRole, Phase, ResourceKind
    from rota.program.loop_spec import LoopSpec, Read
    from rota.program.lowered import count_sync, listing
    from rota.program.machine import Machine
    from rota.sync.repair import Repair
    from rota.targets.devices import GFX942, GFX950
    from rota.values.compile_loop import compile_loop
    from rota.values.compiled_loop import CompiledLoop
    from rota.values.loop import Loop
    from rota.verify.report import Certificate, Report

_HOMES = {
    "BarrierStrategy": "rota.pipeline.schedule_config",
    "BlockSizing": "rota.pipeline.config",
    "CODES": "rota.errors",
    "Certificate": "rota.verify.report",
    "ChannelSpec": "rota.pipeline.op",
    "CompiledLoop": "rota.values.compiled_loop",
    "CompiledPipeline": "rota.pipeline.compiled_pipeline",
    "CompiledSchedule": "rota.compiled.compiled_schedule",
    "Concern": "rota.errors",
    "CpSatScheduler": "rota.order.acyclic.cpsat",
    "DOUBLE_BUFFER_RULES": "rota.pipeline.rules",
    "DeclarationError": "rota.errors",
    "DeclarativeSchedule": "rota.kernels.ping_pong",
    "DepEdge": "rota.order.acyclic.problem",
    "DepKind": "rota.order.acyclic.problem",
    "DoubleBufferTag": "rota.pipeline.op",
    "EdgeRule": "rota.pipeline.rules",
    "Finding": "rota.errors",
    "FragOrder": "rota.pipeline.config",
    "FrameworkTag": "rota.pipeline.op",
    "GFX942": "rota.targets.devices",
    "GFX950": "rota.targets.devices",
    "GraphError": "rota.errors",
    "GreedyScheduler": "rota.order.acyclic.greedy",
    "IdentityScheduler": "rota.order.acyclic.greedy",
    "InstructionGroup": "rota.pipeline.op",
    "IsaError": "rota.errors",
    "KOffsetKind": "rota.pipeline.op",
    "KernelGeometry": "rota.pipeline.geometry",
    "LaunchResult": "rota.isa.launch.orders",
    "LoadStrategy": "rota.pipeline.schedule_config",
    "LoadedKernel": "rota.isa.launch.loaded_kernel",
    "Loop": "rota.values.loop",
    "LoopBody": "rota.order.acyclic.problem",
    "LoopCarriedSpec": "rota.pipeline.config",
    "LoopSpec": "rota.program.loop_spec",
    "MMABlockSpec": "rota.pipeline.block",
    "Machine": "rota.program.machine",
    "ModuloEdge": "rota.order.modulo.modulo_problem",
    "ModuloOp": "rota.order.modulo.modulo_problem",
    "ModuloProblem": "rota.order.modulo.modulo_problem",
    "ModuloSchedule": "rota.order.modulo.modulo_problem",
    "ModuloScheduler": "rota.order.modulo.scheduler",
    "OpCost": "rota.pipeline.cost",
    "OpDesc": "rota.pipeline.op",
    "OpRole": "rota.program.kinds",
    "OrderCertificate": "rota.order.acyclic.problem",
    "OrderError": "rota.errors",
    "OrderProblem": "rota.order.acyclic.problem",
    "Ordering": "rota.order.acyclic.problem",
    "Phase": "rota.program.kinds",
    "Pipeline4Wave": "rota.kernels.four_wave",
    "PipelineBody": "rota.pipeline.body",
    "PipelineConfig": "rota.pipeline.config",
    "PipelineProgram": "rota.pipeline.block",
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
    "ScheduleEntry": "rota.pipeline.op",
    "Scheduler": "rota.order.acyclic.problem",
    "SchedulingStrategy": "rota.order.acyclic.problem",
    "Severity": "rota.errors",
    "SingleBufferSchedule": "rota.kernels.single_buffer",
    "SingleBufferTag": "rota.pipeline.op",
    "SourceLine": "rota.errors",
    "TargetCostModel": "rota.pipeline.cost",
    "TargetProfile": "rota.pipeline.cost",
    "Use": "rota.order.modulo.modulo_problem",
    "WaitStrategy": "rota.pipeline.schedule_config",
    "WarpStaggerRule": "rota.pipeline.config",
    "Witness": "rota.errors",
    "annotate_ops": "rota.pipeline.cost",
    "build_kernel_program": "rota.pipeline.build",
    "compile_loop": "rota.values.compile_loop",
    "compile_schedule": "rota.pipeline.compiler",
    "count_sync": "rota.program.lowered",
    "derive_cross_stage_rotation_edges": "rota.pipeline.phases",
    "derive_drain_mask": "rota.pipeline.block",
    "derive_edges_from_ops": "rota.pipeline.rules",
    "derive_epilogue_from_program": "rota.pipeline.phases",
    "derive_prologue_from_program": "rota.pipeline.phases",
    "derive_safe_max_globals": "rota.kernels.target_profiles",
    "derive_waits_from_blocks": "rota.pipeline.block",
    "double_buffer_reorder": "rota.pipeline.body",
    "emit_minimal_barrier_block": "rota.pipeline.block",
    "evaluate_order": "rota.order.acyclic.problem",
    "filter_spurious_cross_stage_flow": "rota.pipeline.phases",
    "greedy_schedule": "rota.pipeline.body",
    "listing": "rota.program.lowered",
    "load_kernel": "rota.isa.launch.loaded_kernel",
    "makespan_lower_bound": "rota.order.acyclic.problem",
    "mi355x_single_buffer_target": "rota.kernels.target_profiles",
    "mi355x_target": "rota.kernels.target_profiles",
    "mma_block_interleave_list": "rota.pipeline.body",
    "optimal_schedule": "rota.pipeline.body",
    "optimal_schedule_with_halves": "rota.pipeline.body",
    "optimize_within_barriers": "rota.pipeline.body",
    "scheduler_named": "rota.order.acyclic.greedy",
    "simple_greedy_schedule": "rota.pipeline.body",
    "single_buffer_reorder": "rota.pipeline.body",
    "verify_schedule": "rota.pipeline.build",
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
