from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import FunctionType, ModuleType

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
        rota.pipeline.compile_loop  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("package", [rota, rota.pipeline])
def test_a_stub_exports_every_name_that_it_imports(package: ModuleType) -> None:
    tree = ast.parse(Path(str(package.__file__)).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert all(alias.asname == alias.name for node in imports for alias in node.names)


def test_all_is_complete_and_importable() -> None:
    for name in rota.__all__:
        getattr(rota, name)  # what is loaded when asked for is there from now on
    public = {name for name, value in vars(rota).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert set(rota.__all__) == public - {"read_stub"} | {"__version__"}
    assert len(rota.__all__) == len(set(rota.__all__))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="compile_lop"):
        rota.compile_lop  # type: ignore[attr-defined]  # noqa: B018


def test_public_names_are_the_very_objects_of_their_home_modules() -> None:
    for name in rota.__all__:
        value, home = getattr(rota, name), rota._HOMES[name]
        assert getattr(importlib.import_module(home), name) is value
        if isinstance(value, type | FunctionType):
            assert value.__module__ == home


def test_every_module_imports() -> None:
    names = [info.name for info in pkgutil.walk_packages(rota.__path__, "rota.")]
    assert len(names) > 40
    for name in names:
        importlib.import_module(name)
