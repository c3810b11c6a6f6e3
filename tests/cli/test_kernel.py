from __future__ import annotations

from pathlib import Path

import pytest

from rota import GFX950, DeclarationError, DeclarativeSchedule, KernelGeometry, Pipeline4Wave
from rota.kernels.gemm import GEMM_SHAPES, GemmShape
from rota.kernels.kernel import Kernel
from tests.cli.command import data, rota
from tests.wording.golden import mentions, worded

FILE = '''
from dataclasses import replace

from rota import DeclarativeSchedule, KernelGeometry, PipelineSchedule, Pipeline4Wave
from rota.kernels.gemm import GEMM_SHAPES


class Mine(PipelineSchedule):
    """No parameters: its hooks say everything."""

    inner = Pipeline4Wave(KernelGeometry())

    def config(self):
        return self.inner.config()

    def build_body(self):
        return self.inner.build_body()

    def derive_edges(self, body):
        return self.inner.derive_edges(body)

    def bootstrap_frags(self):
        return self.inner.bootstrap_frags()

    def schedule_config(self):
        return self.inner.schedule_config()


class Needs(DeclarativeSchedule):
    def __init__(self, tiles: int, *rest, **others):
        super().__init__()
        self.tiles = tiles


class Broken(Mine):
    def build_body(self):
        return {}["missing"]


value = DeclarativeSchedule()
small = GEMM_SHAPES[2]
spec = small.loop(instructions=False)


def shape(depth: int = 64):
    return replace(small, depth=depth)


def loop(depth: int = 64):
    return shape(depth).loop(instructions=False)


number = 3


def undeclared(tiles, /):
    return shape(tiles)


def told(depth=64):
    return shape(depth)


def leaves():
    raise SystemExit(7)


def placed(depth: int = 64, /, columns: int = 128):
    return replace(small, depth=depth, columns=columns).loop(instructions=False)


class Shapes:
    def loop(self, depth: int):
        return loop(depth)


class NoLoop:
    loop = 3


class NoConfig(Mine):
    def config(self):
        return "two stages"


class NoKnobs(Mine):
    def schedule_config(self):
        return None
'''

CHECKED_ONLY = """
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rota.kernels.gemm import GEMM_SHAPES

if TYPE_CHECKING:
    from rota import TargetProfile


@dataclass(frozen=True)
class Shape:
    depth: int = 64
    target: TargetProfile | None = None

    def loop(self, instructions: bool = False, target: TargetProfile | None = None):
        return GEMM_SHAPES[2].loop(instructions=instructions)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine_for_test.py").write_text(FILE)
    (tmp_path / "checked_only_for_test.py").write_text(CHECKED_ONLY)
    (tmp_path / "leaves_for_test.py").write_text("import sys\nsys.exit(5)")
    (tmp_path / "empty_for_test.py").write_text("x_ = 1")
    (tmp_path / "syntax_for_test.py").write_text("def f(:")
    (tmp_path / "wrong_for_test.py").write_text("1 / 0")
    (tmp_path / "malformed_for_test.py").write_text("import rota\nrota.PipelineConfig(depth=0)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("place", ["mine_for_test.py", "mine_for_test"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("value", "24 ops"),
        ("Mine", "24 ops"),
        ("small", "56 ops by instruction  II 512 clk"),
        ("spec", "12 ops in tiles  II 512 clk"),
        ("shape --set instructions=false", "12 ops in tiles  II 512 clk"),
        ("loop", "12 ops in tiles  II 512 clk"),
        ("loop --set depth=128", "12 ops in tiles  II 1,024 clk"),
        ("shape --set depth=128 --set instructions=false", "12 ops in tiles  II 1,024 clk"),
        ("small --set depth=128 --set instructions=false", "12 ops in tiles  II 1,024 clk"),
        ("Needs --set tiles=3", "24 ops"),
        ("placed --set depth=128", "12 ops in tiles  II 1,024 clk"),
        ("Shapes --set depth=128", "12 ops in tiles  II 1,024 clk"),
        ("told --set depth=128 --set instructions=false", "12 ops in tiles  II 1,024 clk"),
    ],
)
def test_an_author_may_write_any_of_these(place: str, name: str, words: str) -> None:
    result = rota(f"check {place}:{name}")
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"ok  {name.split(maxsplit=1)[0]}  {words}")


@pytest.mark.thorough  # runs for seconds
def test_a_type_checkers_imports_are_not_needed() -> None:
    assert "12" in worded(rota("check checked_only_for_test.py:Shape").output)
    fine = rota("check checked_only_for_test.py:Shape --set instructions=true").output
    worded(fine)
    assert "56" in fine
    assert data("kernels checked_only_for_test.py:Shape")["depth"] == 64


def test_a_kernel_without_any_setting_says_so() -> None:
    result = rota("kernels mine_for_test.py:undeclared")
    assert result.exit_code == 2
    worded(result.output)
    assert "--set" in result.output


def test_a_knob_that_a_schedule_sets_itself_is_not_dropped_in_silence() -> None:
    result = rota("check four_wave --set config.scheduling=greedy")
    assert result.exit_code == 1
    worded(result.output)
    assert "four_wave" in result.output


def test_knobs_of_a_class_without_parameters_can_be_set() -> None:
    before = data("check mine_for_test.py:Mine")["summary"]
    after = data("check mine_for_test.py:Mine --set barriers.minimal_barriers=false --set sync=as_written")["summary"]
    assert before["barriers"] < after["barriers"]


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize(
    ("place", "status", "names"),
    [
        ("mine_for_test.py:smal", 2, ("small",)),
        ("empty_for_test.py:x", 2, ("empty_for_test.py",)),
        ("none_for_test.py:x", 2, ("none_for_test.py",)),
        ("none_for_test:x", 2, ("none_for_test",)),
        ("wrong_for_test.py:x", 2, ("wrong_for_test.py:1",)),
        ("syntax_for_test.py:x", 2, ("syntax_for_test.py",)),
        ("leaves_for_test.py:x", 2, ("leaves_for_test.py:2",)),
        ("mine_for_test.py:leaves", 2, ("mine_for_test.py",)),
        (".x:y", 2, (".x",)),
        ("mine_for_test.py:undeclared", 1, ()),
        ("malformed_for_test.py:x", 1, ("error[D102]", "PipelineConfig.depth")),
        ("mine_for_test.py:number", 1, ("error[D104]",)),
        ("mine_for_test.py:NoLoop", 1, ("error[D104]",)),
        ("mine_for_test.py:NoConfig", 1, ("error[D104]",)),
        ("mine_for_test.py:NoKnobs", 1, ("error[D104]", "schedule_config()")),
        ("mine_for_test.py:Shapes", 1, ()),
        ("mine_for_test.py:PipelineSchedule", 1, ("build_body",)),
        ("mine_for_test.py:Needs", 1, ()),
        ("mine_for_test.py:Broken", 2, ("missing",)),
    ],
)
def test_what_is_no_kernel_is_refused_in_words(place: str, status: int, names: tuple[str, ...]) -> None:
    result = rota(f"check {place}")
    assert result.exit_code == status
    assert mentions(worded(result.output), *names)


def test_an_error_in_the_authors_code_names_the_line(folder: Path) -> None:
    line = 1 + FILE.splitlines().index('        return {}["missing"]')
    assert f"mine_for_test.py:{line}: KeyError" in rota("check mine_for_test.py:Broken").output


def test_a_body_in_tiles_says_which_shape_it_was_predicted_for() -> None:
    result = rota("show mine_for_test.py:Mine --set geometry.BM=128")
    assert result.exit_code == 0
    worded(result.stderr)
    assert "128x256x64" in result.stderr
    assert "256x256x64" not in rota("show four_wave").stderr


def test_an_authors_value_is_not_touched() -> None:
    value = DeclarativeSchedule()
    kernel = Kernel(name="value", source=value)
    knobs = value.schedule_config().but(auto_drain=True)
    assert len(kernel.but("config", knobs).compile().kernel) > len(kernel.compile().kernel)
    assert not value.schedule_config().auto_drain


def test_a_required_dataclass_without_defaults_needs_one() -> None:
    def made(shape: GemmShape) -> GemmShape:
        return shape

    made.__annotations__["shape"] = GemmShape
    made.__annotations__["return"] = GemmShape
    kernel = Kernel(name="made", source=made)
    with pytest.raises(DeclarationError) as caught:
        kernel.compile()
    worded(caught.value)
    assert list(kernel.settings()) == ["shape"]


def test_a_loop_without_a_shape_has_the_default_geometry() -> None:
    assert Kernel(name="loop", source=GEMM_SHAPES[2].loop(instructions=False)).geometry() == KernelGeometry()
    geometry = Kernel(name="shape", source=GEMM_SHAPES[2]).geometry()
    assert (geometry.BM, geometry.BN, geometry.BK) == (128, 128, 64)


def test_a_required_dataclass_with_defaults_needs_no_word() -> None:
    kernel = Kernel(name="k", source=Pipeline4Wave)
    assert kernel.compile().machine is GFX950
    shape = kernel.but("waves", 8).shape()
    assert shape is not None
    assert shape.waves == 8
