from __future__ import annotations

from rota.audit.audit import WaitVerdict
from rota.program.kinds import Phase
from tests.audit.tiny import codes, tiny_audit, tiny_phases


def test_a_wait_that_the_schedule_lacks_is_reported_but_no_error() -> None:
    phases = tiny_phases()
    number = next(n for n, line in enumerate(phases[Phase.EPILOGUE]) if line.startswith("v_mfma"))
    phases[Phase.EPILOGUE].insert(number, "s_waitcnt vmcnt(0)")
    audit = tiny_audit(phases)
    assert codes(audit) == {"I208"}
    assert audit.clean
    assert not audit.exact
    assert audit.tally(WaitVerdict.ADDED) == 1


def test_the_machine_codes_own_wait_behind_the_last_entry_is_no_part_of_the_schedule() -> None:
    phases = tiny_phases()
    phases[Phase.EPILOGUE].append("s_waitcnt vmcnt(0) lgkmcnt(0)")
    assert tiny_audit(phases).exact


def test_a_wait_between_the_instructions_of_an_op_counts_behind_it() -> None:
    """The compiler's wait stands after one of two reads; the other one may be in flight after the op."""
    phases = tiny_phases()
    read = next(n for n, line in enumerate(phases[Phase.KERNEL]) if line.startswith("ds_read"))
    phases[Phase.KERNEL].insert(read + 1, "s_waitcnt vmcnt(0)")
    audit = tiny_audit(phases)
    assert audit.clean
    assert audit.certificate is not None
