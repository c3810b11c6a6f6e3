from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rota import CompiledSchedule
from rota.emit.forms import emit_skeleton
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.text import comment, identifier
from tests.emit.kernels import SMALL_MI300X, by_values
from tests.findings.smallest import raised


@pytest.mark.parametrize("name", ["", "2nd", "a b", "a-b", "größe", "class", "main", "_hidden", "a__b", 'x"; system("'])
def test_what_cpp_cannot_use_as_a_name_is_refused(name: str) -> None:
    raised("T201", lambda: identifier(name))


@pytest.mark.parametrize("name", ["gemm_bf16_128x128x64_4wave", "DeclarativeSchedule", "a", "K_"])
def test_a_plain_name_is_taken_as_it_is(name: str) -> None:
    assert identifier(name) == name


@pytest.mark.parametrize("text", ["one\nint x;", "joined to the next line \\", "a\rb", "a\u2028b", "a\x00b"])
def test_what_would_leave_its_comment_is_refused(text: str) -> None:
    raised("T201", lambda: comment(text))


@pytest.mark.parametrize("emit", [emit_skeleton, lambda compiled: emit_gemm(compiled, by_values(SMALL_MI300X)[1])])
def test_words_of_a_document_stay_in_their_comments(emit: Callable[[CompiledSchedule], str]) -> None:
    compiled, _ = by_values(SMALL_MI300X)
    hostile = "\nstatic_assert(false);"
    renamed = replace(compiled, machine=replace(compiled.machine, name=hostile))
    reasoned = replace(compiled, repairs=tuple(replace(repair, reason=hostile) for repair in compiled.repairs))
    raised("T201", lambda: emit(renamed))
    raised("T201", lambda: emit(reasoned))


@pytest.mark.parametrize("name", ["ROTA_DMA", "ROTA_READ", "ROTA_LDS", "ROTA_FENCE"])
def test_a_word_of_the_source_is_no_name_for_a_kernel(name: str) -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    raised("T201", lambda: emit_gemm(replace(compiled, name=name), geometry))
