"""In a skeleton any two wave groups will do, as long as no wave is in none of them, or in both."""

from __future__ import annotations

import pytest

from rota.audit.audit import wrong_groups
from rota.audit.machine_loop import expect_gemm, read_machine_loop
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import gemm_tile
from rota.emit.planning import with_register_waits
from rota.isa.binary.toolchain import find_toolchain
from tests.audit import sabotage
from tests.emit.kernels import ping_pong

CHOSEN = "const int wave_group = wave / 4;"


def found(chosen: str) -> list[str]:
    """What the waves at both barriers of one group alone are, where they are wrong."""
    compiled, geometry = ping_pong()
    planned = with_register_waits(compiled)
    expected = expect_gemm(planned, GemmBinding(planned, gemm_tile(planned, geometry)))
    source = sabotage.source_of(compiled, geometry).replace(CHOSEN, chosen)
    loop = read_machine_loop(find_toolchain().compile(source, "gfx950").instructions())
    findings = wrong_groups(expected, loop, compiled.machine, 8, as_emitted=False)
    return [str(dict(finding.evidence)["found"]) for finding in findings]


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("chosen", [CHOSEN, "const int wave_group = wave & 1;", "const int wave_group = wave == 3;"])
def test_two_groups_that_leave_no_wave_out(chosen: str) -> None:
    assert found(chosen) == []


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize(
    ("chosen", "waves"),
    [
        ("const int wave_group = wave % 3;", ["waves 0, 3, 6"]),
        ("const int wave_group = wave < 9;", ["no wave"]),
        ("const int wave_group = wave > 8;", ["no wave", "waves 0, 1, 2, 3, 4, 5, 6, 7"]),
        ("const int wave_group = (wave + N) & 1;", ["not known", "not known"]),
    ],
)
def test_waves_in_no_group_or_not_known(chosen: str, waves: list[str]) -> None:
    assert found(chosen) == waves
