"""A schedule as Gluon: what the compiler adds was announced, nothing else is there, and C is right."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import rota.triton
from rota.audit.audit import audit_gemm
from rota.audit.gemm_launch import pack
from rota.emit.gemm.gemm_binding import InterleavedBinding
from rota.emit.text import Addition
from rota.errors import EmissionError
from rota.isa.launch.interleaving import some_interleavings
from rota.languages.gluon import additions, compile_gluon, emit_gluon, gluon_plan
from rota.languages.language_code import LanguageCode
from rota.program.kinds import Phase
from tests.emit.kernels import SMALL, by_values, ping_pong
from tests.languages import source_edits
from tests.wording.golden import worded

pytestmark = pytest.mark.thorough  # runs for seconds


@cache
def small() -> LanguageCode:
    return compile_gluon(*by_values(SMALL))


def test_triton_lowers_as_it_did_when_this_was_written() -> None:
    """A version that adds other waits or barriers fails here."""
    audit = small().audit()
    assert audit.exact, "\n\n".join(map(str, audit.findings))
    assert audit.certificate is not None


@pytest.mark.parametrize("trips", [0, 1])
def test_c_is_right(trips: int) -> None:
    program = small().program()
    for order in some_interleavings(program.waves, 2):
        assert program.launch(trips, order).right


def test_an_addition_that_nobody_announced_is_found() -> None:
    code = small()
    announced = additions(gluon_plan(code.compiled, code.geometry))
    others = [each for each in announced if each != next(each for each in announced if not each.at_barrier)]
    audit = audit_gemm(
        code.compiled,
        code.geometry,
        code.code,
        bound=InterleavedBinding,
        additions=others,
        dynamic_lds=code.dynamic_lds,
    )
    assert [finding.code for finding in audit.findings] == ["I208"]


def test_an_announced_wait_that_is_missing_is_found() -> None:
    code = small()
    more = Addition(phase=Phase.KERNEL, before=0, counter="vmcnt", count=1)
    audit = audit_gemm(
        code.compiled,
        code.geometry,
        code.code,
        bound=InterleavedBinding,
        additions=(*additions(gluon_plan(code.compiled, code.geometry)), more),
        dynamic_lds=code.dynamic_lds,
    )
    assert [finding.code for finding in audit.findings] == ["I204"]


@pytest.mark.parametrize("name", ["vm wait dropped", "last barrier dropped"])
def test_a_change_of_the_source_is_noticed(name: str) -> None:
    assert source_edits.noticed(by_values(SMALL), compile_gluon, source_edits.edits("gluon")[name])


def test_a_barrier_of_one_wave_group_has_no_word() -> None:
    with pytest.raises(EmissionError) as caught:
        emit_gluon(*ping_pong())
    assert caught.value.findings[0].code == "T203"
    worded(caught.value.findings[0])


def test_it_is_an_ordinary_gluon_function(tmp_path: Path) -> None:
    compiled, geometry = by_values(SMALL)
    plan = gluon_plan(compiled, geometry)
    path = tmp_path / "emitted.py"
    path.write_text(emit_gluon(compiled, geometry), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("emitted", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    depth = geometry.BK * (plan.program.tiles_outside + plan.program.tiles_per_trip)
    random = np.random.default_rng(3)
    a, b = (random.integers(-4, 4, (size, depth)).astype(np.float64) for size in (geometry.BM, 2 * geometry.BN))
    c = np.full((geometry.BM, 2 * geometry.BN), np.nan, np.float32)
    with rota.triton.use("gfx950", orders=1) as session:
        launch = getattr(module, plan.symbol)[1, 2]
        launch(pack(a, "bf16"), pack(b, "bf16"), c, 2 * geometry.BN, depth, num_warps=plan.tile.waves)
    assert len(session.results) == 1
    assert (c == a @ b.T).all()
