"""What a proof found, executed: arguments and words of memory, and why some things can't be."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rota.errors import Severity
from rota.isa.binary.kernel_facts import Argument
from rota.isa.launch.interleaving import CoreFault
from rota.prove import confirmation
from rota.prove.verdict import Status
from tests.prove.test_feasibility import executed
from tests.prove.written import codes, evidence
from tests.wording.golden import mentions, worded

# Each work item writes its word, and reads another wave's, with no barrier between, where a condition holds.
RACE = """
{load}
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v2, 0x100, v1
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
{test}
s_cbranch_scc0 out
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
{more}
out:
s_nop 0
"""
TABLE = "s_load_dwordx2 s[4:5], s[0:1], 0x8\ns_waitcnt lgkmcnt(0)"

NOTHING = "s_nop 0\n"
DMA = f"v_lshlrev_b32_e32 v1, 2, v0\n{TABLE}\ns_mov_b32 m0, 0x400\n{NOTHING}global_load_lds_dword v1, s[4:5]"


def race(test: str = "s_cmp_eq_u32 s3, s3", load: str = "", more: str = "") -> str:
    return RACE.format(test=test, load=load, more=more)


def test_a_finding_that_replays_is_an_error_with_its_launch_and_order() -> None:
    verdict = executed(race())
    assert verdict.status is Status.REFUTED
    assert not verdict.proved
    (finding,) = verdict.findings
    assert finding.severity is Severity.ERROR
    shown = dict(finding.evidence)
    assert mentions(worded(str(shown["launch"])), "(0, 0, 0)", "(1, 1, 1)")
    assert "refuted" in str(verdict)


@pytest.mark.parametrize(("moved", "status"), [(0, Status.REFUTED), (1_000, Status.ALARM)])
def test_only_a_replay_with_a_fault_in_question_is_explained(
    moved: int, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The core finds faults, and says where; NumPy is asked for words if an alarm is at one of the two instructions."""
    kept, asked = confirmation.Replay._are_wanted, list[set[int]]()

    def wanted(self: confirmation.Replay, faults: list[CoreFault]) -> bool:
        asked.append({code for code, *_ in faults})
        self.wanted = {line + moved for line in self.wanted}
        return kept(self, faults)

    monkeypatch.setattr(confirmation.Replay, "_are_wanted", wanted)
    assert executed(race()).status is status
    assert asked
    assert all(109 in numbers for numbers in asked)


def test_the_workgroup_is_one_that_the_path_asks_for() -> None:
    verdict = executed(race("s_cmp_eq_u32 s2, 5"))
    assert mentions(worded(str(evidence(verdict, "I109")["launch"])), "(5, 0, 0)", "(6, 1, 1)")


def test_only_that_workgroup_runs() -> None:
    assert confirmation.SingleWorkgroup(label="one of many", number=5).order_workgroups(range(9)) == [5]


def test_words_of_memory_are_put_where_they_are_read() -> None:
    load = f"{TABLE}\ns_load_dword s6, s[4:5], 0x40\ns_waitcnt lgkmcnt(0)"
    verdict = executed(race("s_cmp_eq_u32 s6, 0x1234", load))
    assert verdict.status is Status.REFUTED
    assert "table[0x40] = 0x1234" in str(evidence(verdict, "I109")["launch"])


def test_an_index_into_memory_is_followed() -> None:
    load = (
        "s_load_dwordx4 s[4:7], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_lshl_b32 s5, s2, 2\n"
        "s_load_dword s8, s[6:7], s5\ns_waitcnt lgkmcnt(0)"
    )
    verdict = executed(race("s_cmp_eq_u32 s8, s4", load))
    assert verdict.status is Status.REFUTED


def test_words_behind_a_pointer_in_memory_are_put_there_as_well() -> None:
    load = f"{TABLE}\ns_load_dwordx2 s[6:7], s[4:5], 0x0\ns_waitcnt lgkmcnt(0)\n"
    load += "s_load_dword s8, s[6:7], 0x0\ns_waitcnt lgkmcnt(0)"
    verdict = executed(race("s_cmp_eq_u32 s8, 3", load))
    assert verdict.status is Status.REFUTED
    assert str(evidence(verdict, "I109")["launch"]).count(" = 0x") == 3


def test_a_condition_on_words_of_lanes_is_told() -> None:
    load = f"{TABLE}\nv_mov_b32_e32 v5, 0\nglobal_load_dword v4, v5, s[4:5]\ns_waitcnt vmcnt(0)\n"
    load += "v_readfirstlane_b32 s6, v4"
    verdict = executed(race("s_cmp_eq_u32 s6, 3", load))
    assert verdict.status is Status.ALARM
    (finding,) = verdict.findings
    assert finding.severity is Severity.WARNING
    told = str(dict(finding.evidence)["not replayed"])
    worded(str(told))


def test_conditions_on_pointers_that_no_buffer_satisfies_are_told() -> None:
    verdict = executed(race("s_cmp_eq_u32 s5, 0", TABLE))
    assert verdict.status is Status.ALARM
    told = evidence(verdict, "I109")["not replayed"]
    worded(str(told))


def test_a_launch_that_leaves_its_buffers_proves_nothing() -> None:
    more = "v_mov_b32_e32 v5, 0\nv_mov_b32_e32 v6, 1\nglobal_load_dword v4, v[5:6], off\ns_waitcnt vmcnt(0)"
    verdict = executed(race(more=more))
    assert verdict.status is Status.ALARM
    worded(str(evidence(verdict, "I109")["not replayed"]))


def test_equal_writes_are_not_shown_to_be_wrong() -> None:
    text = "v_mov_b32_e32 v1, 0\nv_mov_b32_e32 v2, 5\nds_write_b32 v1, v2\ns_waitcnt lgkmcnt(0)"
    verdict = executed(text)
    assert verdict.status is Status.ALARM
    worded(str(evidence(verdict, "I109")["not replayed"]))


def test_registers_used_too_early_are_executed() -> None:
    verdict = executed("v_lshlrev_b32_e32 v1, 2, v0\nds_read_b32 v3, v1\nv_mov_b32_e32 v4, v3\ns_waitcnt lgkmcnt(0)")
    assert verdict.status is Status.REFUTED
    assert codes(verdict) == ["I103"]


def test_wait_states_are_rules_that_no_execution_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter has the same table; and z3 isn't asked for a launch on their account."""
    monkeypatch.setattr("rota.prove.confirmation.confirm", lambda *_, **__: pytest.fail("a launch was sought"))
    text = f"{DMA.replace(NOTHING, '')}\ns_waitcnt vmcnt(0)"
    verdict = executed(text, waves=1)
    assert (verdict.status, codes(verdict)) == (Status.BROKEN, ["I104"])
    assert verdict.findings[0].severity is Severity.WARNING
    told = evidence(verdict, "I104")
    assert (told["rule"], told["source"]) == ("m0", "AMD's manual")
    assert not {"launch", "replayed", "not replayed"} & set(told)


def test_a_race_is_shown_without_what_a_missing_wait_state_spoils() -> None:
    mfma = "v_mfma_f32_16x16x16_f16 v[8:11], v[12:13], v[14:15], v[8:11]\nv_mov_b32_e32 v20, v8"
    verdict = executed(f"{mfma}\n{race()}")
    assert verdict.status is Status.REFUTED
    assert codes(verdict) == ["I109", "I104"]
    severities = {each.code: each.severity for each in verdict.findings}
    assert severities == {"I104": Severity.WARNING, "I109": Severity.ERROR}


def test_what_lands_behind_the_end_is_not_judged_by_execution() -> None:
    verdict = executed(DMA, waves=1)
    assert (verdict.status, codes(verdict)) == (Status.ONE_SOURCE, ["I403"])
    worded(str(evidence(verdict, "I403")["not replayed"]))


def test_a_note_stays_a_note() -> None:
    leave = "v_readfirstlane_b32 s4, v0\ns_cmp_lt_u32 s4, 64\ns_cbranch_scc1 out\ns_barrier\nout:\ns_nop 0"
    verdict = executed(f"{race()}\n{leave.replace('out', 'gone')}")
    assert [finding.severity for finding in verdict.findings] == [Severity.ERROR, Severity.NOTE]


def test_what_the_interpreter_cannot_run_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = executed(race(), arguments=(Argument(name="x", offset=0, size=8, kind="image"),))
    assert verdict.status is Status.ALARM
    worded(str(evidence(verdict, "I109")["not replayed"]))
    monkeypatch.setattr(confirmation, "MOST_RUNS", 0)
    verdict = executed(race())
    worded(str(evidence(verdict, "I109")["not replayed"]))


def test_without_z3_alarms_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "is_available", lambda: False)
    verdict = executed(race())
    assert verdict.status is Status.ALARM
    worded(str(evidence(verdict, "I109")["not replayed"]))
    assert mentions(evidence(verdict, "I109")["not replayed"], "z3", "rota[prove]")


def test_a_proved_kernel_needs_neither_z3_nor_the_interpreter() -> None:
    program = (
        "import sys; from tests.prove.written import judged; assert judged('s_nop 0', witness=True).proved;"
        "assert 'z3' not in sys.modules; assert 'rota.prove.confirmation' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
