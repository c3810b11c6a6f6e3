from __future__ import annotations

from rota.errors import Severity
from rota.isa.launch.run import run_kernel
from tests.isa.single import loaded

APART = """v_readfirstlane_b32 s0, v0
    s_cmp_lg_u32 s0, 0
    s_cbranch_scc1 .LBB0_1
    s_barrier
    s_branch .LBB0_2
    .LBB0_1:
    {other}
    .LBB0_2:
    s_nop 0"""


def test_waves_wait_at_different_barriers() -> None:
    """Legal, and what staggered waves do: a note, not an error."""
    outcome = run_kernel(loaded(APART.format(other="s_barrier")), args=[], block=(128, 1, 1))
    (note,) = outcome.notes
    assert outcome.findings == ()
    assert (note.code, note.severity) == ("I121", Severity.NOTE)
    assert [concern.index for concern in note.concerns] == [5, 8]


def test_a_wave_comes_to_fewer_barriers() -> None:
    """The machine lets it end, and the others go on."""
    outcome = run_kernel(loaded(APART.format(other="s_nop 0")), args=[], block=(192, 1, 1))
    (note,) = outcome.notes
    assert note.code == "I121"
    assert dict(note.evidence) == {"wave": "1, 0 barriers", "other wave": "0, 1 barrier"}


def test_the_same_barrier_for_all_is_no_note() -> None:
    assert run_kernel(loaded("s_barrier\ns_barrier"), args=[], block=(256, 1, 1)).notes == ()
