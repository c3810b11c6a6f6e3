from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.forms import emit_skeleton
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.planning import with_register_waits
from rota.program.kinds import OpKind, Phase
from tests.emit.kernels import SMALL, by_values

COMPILED, GEOMETRY = by_values(SMALL)


def without_barriers(compiled: CompiledSchedule) -> CompiledSchedule:
    for phase in Phase:
        compiled = compiled.with_phase(phase, [e for e in compiled.phase(phase) if e.op.kind is not OpKind.BARRIER])
    return compiled


def test_what_was_added_is_named() -> None:
    bare = without_barriers(COMPILED)
    assert bare.certificate is None
    (finding,) = (each for each in with_register_waits(bare).findings if each.code == "W104")
    assert dict(finding.evidence)["added or strengthened"] == len(finding.concerns)
    assert "barrier" in {end.label for end in finding.concerns}


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("emit", [emit_skeleton, lambda compiled: emit_gemm(compiled, GEOMETRY)])
def test_the_source_says_that_it_is_not_the_schedule_as_given(emit: Callable[[CompiledSchedule], str]) -> None:
    def head(source: str) -> list[str]:
        return [line for line in source.splitlines() if line.startswith("//   ") and line.endswith("] barrier")]

    bare = without_barriers(COMPILED)
    (finding,) = (each for each in with_register_waits(bare).findings if each.code == "W104")
    barriers = [end for end in finding.concerns if end.label == "barrier"]
    assert [line[5:] for line in head(emit(bare))] == [f"{end.role} barrier" for end in barriers]
    assert not head(emit(COMPILED))


def test_a_proved_schedule_is_written_as_it_is() -> None:
    assert "W104" not in {each.code for each in with_register_waits(COMPILED).findings}
    again = replace(COMPILED, certificate=None)
    assert "W104" not in {each.code for each in with_register_waits(again).findings}
