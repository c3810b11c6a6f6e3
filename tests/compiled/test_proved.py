"""What a failed proof says: places in the author's body, one help per cause, and what may explain it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from rota import (
    Finding,
    KernelGeometry,
    OpDesc,
    Pipeline4Wave,
    PipelineProgram,
    ProgramError,
    ProofError,
    Severity,
    SingleBufferSchedule,
    compile_schedule,
)
from tests.findings.bodies import LoadsLast
from tests.findings.smallest import Small, two_tiles
from tests.wording.golden import mentions, worded

RACY = Pipeline4Wave(KernelGeometry(lgkm_per_load_a=8, lgkm_per_load_b=8))


def errors(schedule: Pipeline4Wave | SingleBufferSchedule) -> list[Finding]:
    with pytest.raises(ProofError) as caught:
        compile_schedule(schedule, sync="strict")
    return [finding for finding in caught.value.findings if finding.severity is Severity.ERROR]


@pytest.mark.parametrize("schedule", [RACY, SingleBufferSchedule(2)], ids=lambda s: type(s).__name__)
def test_every_end_is_numbered_as_in_the_body(schedule: Pipeline4Wave | SingleBufferSchedule) -> None:
    body = schedule.build_body()
    ends = [end for finding in errors(schedule) for end in finding.concerns]
    for end in ends:
        if end.index is None:  # a fragment that bootstrap_frags() gives, and no op of the body
            assert end.source is None
            assert end.role.endswith(" (in the prologue after load_a s1 t1 k1 (#21))")
        else:
            op = body[end.index]
            assert end.source == op.source
            assert str(op) == end.label or (op.is_prefetch_load and end.role.startswith("prologue"))
    assert any(end.index is None for end in ends) == isinstance(schedule, Pipeline4Wave)


def test_no_text_numbers_entries() -> None:
    for finding in errors(RACY):
        assert not re.search(r" at (prologue|kernel|epilogue) #", str(finding))


def test_each_cause_has_one_help_which_names_what_it_lacks() -> None:
    found = errors(RACY)
    helps = [(index, fix) for index, finding in enumerate(found) for fix in finding.fixes]
    wanted = [
        ("wait_vm(0)", "barrier", "epilogue", "mma_load_b s0 t1 (#1)"),
        ("wait_lgkm(0)", "wait_lgkm(8)", "kernel", "mma_load_b s0 t1 (#1)"),
        ("wait_lgkm(0)", "wait_lgkm(8)", "kernel", "mma_load_b s1 t1 (#13)"),
    ]
    assert [mentions(fix, *names) for (_, fix), names in zip(helps, wanted, strict=True)] == [True] * 3
    for index, _ in helps:
        worded(found[index])
    starts = [index for index, _ in helps]
    assert starts[0] == 0  # every error stands after the help that mends it
    codes = [{finding.code for finding in found[a:b]} for a, b in zip(starts, [*starts[1:], len(found)], strict=True)]
    assert codes == [{"R102"}, {"R103"}, {"R103"}]


def test_a_repair_in_the_prologue_is_taken_back_and_put_in_as_well() -> None:
    helps = [fix for finding in errors(SingleBufferSchedule(2)) for fix in finding.fixes]
    assert len(helps) == 5  # as many as there are repairs
    assert len(set(helps)) == 5
    assert any("prologue" in fix for fix in helps)


def test_what_was_declared_and_dropped_is_an_error_however_right_the_rest_is() -> None:
    bootstrap = two_tiles()[:2]  # never read: the prologue drains
    with pytest.raises(ProgramError) as caught:
        compile_schedule(Small(bootstrap=bootstrap))
    assert [finding.code for finding in caught.value.findings] == ["P108"]


class ByHand(LoadsLast):
    """Lists blocks that keep every load where the body has it, whatever `max_globals` does to the program's."""

    def build_explicit_blocks(self, body: Sequence[OpDesc], program: PipelineProgram) -> Sequence[Sequence[OpDesc]]:
        kept = compile_schedule(LoadsLast(max_globals=0), sync="as_written").program
        assert kept is not None
        return [block.expand() for block in kept.blocks]


def test_a_suspicion_that_the_proof_refutes_is_a_warning() -> None:
    compiled = compile_schedule(ByHand(max_globals=1))
    suspicions = [finding for finding in compiled.findings if finding.code == "P107"]
    assert suspicions
    assert {finding.severity for finding in suspicions} == {Severity.WARNING}
