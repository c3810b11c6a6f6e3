"""A schedule as FlyDSL: its machine code is the schedule, and C is right."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from rota.errors import ToolchainError
from rota.isa.launch.interleaving import some_interleavings
from rota.languages.flydsl import compile_flydsl, read_dumped
from rota.languages.language_code import LanguageCode
from tests.campaigns.whole.whole_kernels import FINE, LOOPS, loop_of
from tests.emit.kernels import SMALL, by_values
from tests.languages import source_edits

pytestmark = pytest.mark.thorough  # compiles kernels


@cache
def small() -> LanguageCode:
    return compile_flydsl(*by_values(SMALL))


def test_flydsl_lowers_as_it_did_when_this_was_written() -> None:
    """A version that adds or moves anything fails here."""
    audit = small().audit()
    assert audit.exact, "\n\n".join(map(str, audit.findings))
    assert audit.certificate is not None


@pytest.mark.parametrize("trips", [0, 1])
def test_c_is_right(trips: int) -> None:
    program = small().program()
    for order in some_interleavings(program.waves, 2):
        assert program.launch(trips, order).right


def test_zeros_follow_rows_that_end_within_a_dma() -> None:
    code = compile_flydsl(loop_of("ragged_low" + FINE), LOOPS["ragged_low"][0].geometry)
    assert code.audit().exact
    assert code.program().launch(1).right


@pytest.mark.parametrize("name", ["two loads exchanged"])
def test_a_change_of_the_source_is_noticed(name: str) -> None:
    assert source_edits.noticed(by_values(SMALL), compile_flydsl, source_edits.edits("flydsl")[name])


def test_a_kernel_that_flydsl_refuses_says_so() -> None:
    with pytest.raises(ToolchainError) as caught:
        compile_flydsl(*by_values(SMALL), edit=lambda source: source.replace("fx.Int64(row + down)", "fx.Nothing(row)"))
    assert caught.value.findings[0].code == "T102"


def test_a_folder_without_dumps_says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        read_dumped(tmp_path)
    assert caught.value.findings[0].code == "T103"
