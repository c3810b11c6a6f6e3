from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from rota import GFX950, KernelGeometry
from rota.emit.forms import document, hip, skeleton
from rota.emit.gemm.gemm_tile import BLayout, Element, GemmTile
from rota.emit.text import Emission
from rota.emit.whole.whole_kernel import emit_whole
from rota.emit.whole.whole_options import Output, WholeGemm, check_layout, parse_options
from rota.kernels.catalogue import kernel_named
from tests.emit.kernels import SMALL, by_values
from tests.findings.smallest import raised
from tests.wording.golden import mentions


@pytest.mark.parametrize(
    ("told", "names"),
    [
        ({"colour": "red"}, ("colour",)),
        ({"output": "fp4"}, ("fp4",)),
        ({"epilogue": "tanh"}, ("tanh",)),
        ({"epilogue": "relu,relu"}, ("relu",)),
        ({"epilogue": "row_bias,column_bias"}, ()),
        ({"epilogue": "gated_silu,gated_gelu_tanh"}, ()),
        ({"epilogue": "relu,gated_silu"}, ("relu",)),
        ({"xcds": "many"}, ("many",)),
        ({"layout": "mn"}, ("mn",)),
        ({"scales": "1x64"}, ("1x64",)),
        ({"persistent": "yes"}, ("yes",)),
    ],
)
def test_what_there_is_not_is_refused(told: dict[str, str], names: tuple[str, ...]) -> None:
    assert mentions(raised("T209", lambda: parse_options(told)).message, *names)


@pytest.mark.parametrize("form", [hip, skeleton, document])
def test_forms_without_settings_refuse_them(form: object) -> None:
    asked = Emission(compiled=by_values(SMALL)[0], kernel=kernel_named("gemm_small"), options={"output": "bf16"})
    assert callable(form)
    raised("T209", lambda: form(asked))


def test_a_loop_reads_b_as_it_was_declared_to() -> None:
    compiled, geometry = by_values(SMALL)
    finding = raised("T209", lambda: emit_whole(compiled, geometry, parse_options({"layout": "kn"})))
    assert ["--set shape.b_layout=kn" in fix for fix in finding.fixes] == [True]
    assert emit_whole(compiled, geometry, parse_options({"layout": "nk"}))


def test_registers_of_a_persistent_kernel_that_reads_b_as_k_x_n_suffice_for_small_tiles_alone() -> None:
    geometry = KernelGeometry(BM=128, BN=128)
    small, plain = (
        GemmTile(geometry=geometry, waves=4, element=Element.BF16, machine=GFX950, b_layout=each)
        for each in (BLayout.KN, BLayout.NK)
    )
    turning, gated = ({"persistent": "true"} | more for more in ({}, {"epilogue": "gated_silu"}))
    for asked, tile in ((gated, small), (turning, replace(small, geometry=KernelGeometry(), waves=8))):
        raised("T209", partial(check_layout, parse_options(asked), tile))
    check_layout(parse_options(gated), plain)
    check_layout(parse_options(turning), small)


def test_settings_are_applied() -> None:
    told = parse_options({"output": "f16", "epilogue": "alpha,relu", "group": "2", "xcds": "1", "persistent": "true"})
    assert told.output is Output.F16
    assert told == WholeGemm(output=Output.F16, epilogue=told.epilogue, group=2, xcds=1, persistent=True)
    assert told.words == ("f16", "alpha", "relu", "persistent", "xcds1", "group2")
