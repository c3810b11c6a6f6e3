from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import FunctionType

import pytest

import rota
import rota.pipeline

SEED_NAMES = [
    "PipelineSchedule",
    "ScheduleConfig",
    "build_kernel_program",
    "derive_prologue_from_program",
    "derive_epilogue_from_program",
    "ScheduleCompiler",
    "compile_schedule",
    "Pipeline4Wave",
    "DeclarativeSchedule",
    "SingleBufferSchedule",
    "CompiledSchedule",
    "ResourceKind",
    "OpRole",
    "KOffsetKind",
    "Phase",
    "OpDesc",
    "OpCost",
    "TargetCostModel",
    "annotate_ops",
    "DepEdge",
    "LoopBody",
    "ScheduleEntry",
    "LoopCarriedSpec",
    "BlockSizing",
    "FragOrder",
    "WarpStaggerRule",
    "PipelineConfig",
    "BarrierStrategy",
    "WaitStrategy",
    "LoadStrategy",
    "KernelGeometry",
    "TargetProfile",
    "mi355x_target",
    "mi355x_single_buffer_target",
    "PipelineBody",
    "EdgeRule",
    "derive_edges_from_ops",
    "filter_spurious_cross_stage_flow",
    "derive_cross_stage_rotation_edges",
    "optimal_schedule",
    "optimize_within_barriers",
    "mma_block_interleave_list",
    "double_buffer_reorder",
    "single_buffer_reorder",
    "derive_waits_from_blocks",
    "derive_drain_mask",
    "verify_schedule",
    "MMABlockSpec",
    "emit_minimal_barrier_block",
    "PipelineProgram",
    "SchedulingStrategy",
    "Finding",
    "RotaError",
]


def test_every_name_of_the_seed_is_public() -> None:
    assert set(SEED_NAMES) <= set(rota.__all__)


def test_the_system_that_rota_comes_from_is_whole_in_one_place() -> None:
    general = {"Finding", "RotaError"}
    assert set(SEED_NAMES) - general <= set(rota.pipeline.__all__)
    assert all(getattr(rota.pipeline, name) is getattr(rota, name) for name in rota.pipeline.__all__)
    with pytest.raises(AttributeError, match="compile_loop"):
        rota.pipeline.compile_loop  # noqa: B018


def test_a_name_stands_where_types_are_checked_and_where_it_is_loaded() -> None:
    tree = ast.parse(Path(rota.__file__).read_text("utf-8"))
    imported = {
        (alias.name, node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module not in ("typing", "rota.version", "rota.verify.prove")
        for alias in node.names
    }
    assert imported == set(rota._HOMES.items())


def test_all_is_complete_and_importable() -> None:
    for name in rota.__all__:
        getattr(rota, name)  # what is loaded when asked for is there from now on
    helpers = {"importlib", "TYPE_CHECKING"}
    public = {
        name for name, value in vars(rota).items() if not name.startswith("_") and not inspect.ismodule(value)
    } - helpers
    assert set(rota.__all__) == public | {"__version__"}
    assert len(rota.__all__) == len(set(rota.__all__))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="compile_lop"):
        rota.compile_lop  # noqa: B018


def test_public_names_are_the_very_objects_of_their_home_modules() -> None:
    for name, home in rota._HOMES.items():
        value = getattr(rota, name)
        assert getattr(importlib.import_module(home), name) is value
        if isinstance(value, type | FunctionType):
            assert value.__module__ == home


def test_every_module_imports() -> None:
    names = [info.name for info in pkgutil.walk_packages(rota.__path__, "rota.")]
    assert len(names) > 40
    for name in names:
        importlib.import_module(name)
