"""What campaign and oracle found in the proof, each as its smallest case: once missed, or once a false alarm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX950, KOffsetKind, OpDesc, OpRole, Phase, PipelineConfig
from rota.execute.executor import execute, replay
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.verify.prove import verify
from tests.findings.proofs import fragment, load, loop, mma
from tests.mutation.campaign import meets
from tests.oracle.oracle import first_wrong
from tests.programs.edits import changed
from tests.programs.made_up_machine import MADE_UP
from tests.programs.producer_consumer import producer_consumer

pytestmark = pytest.mark.no_cover  # a campaign, thousands of times the same lines


def two_rows() -> LoweredProgram:
    """Two blocks of A times one of B, two tiles in all, every wait a full one."""
    fill = [
        load(stage, k, channel=channel, subtile=tile)
        for stage, k in ((0, KOffsetKind.K0), (1, KOffsetKind.K1))
        for channel, tile in ((0, 0), (0, 1), (1, 0))
    ]
    compute = [OpDesc(tag=5, role=OpRole.COMPUTE, stage=row) for row in range(2)]
    use: list[OpDesc] = []
    for stage in range(2):
        use += [fragment(stage), fragment(stage, subtile=1), fragment(stage, channel=1), OpDesc.wait_lgkm(0), *compute]
    made = loop(prologue=[*fill, OpDesc.wait_vm(0), OpDesc.barrier()], epilogue=use)
    return replace(made, config=PipelineConfig(m_mmas=2, n_mmas=1)).lowered


def test_a_fragment_of_another_block_is_refused_and_computes_wrong() -> None:
    """All tiles are there and none is overwritten: only which block is read tells the two apart."""
    right = two_rows()
    reads = [n for n, entry in enumerate(right.epilogue) if entry.op.kind is OpKind.LDS_READ]
    effect = right.epilogue[reads[0]].effect
    other = replace(effect, reads=(effect.reads[0]._replace(part=1),))
    wrong = changed(right, Phase.EPILOGUE, reads[0], effect=other)
    assert execute(right, 0).right
    assert not execute(wrong, 0).right
    (finding,) = [each for each in verify(wrong).errors if each.code == "V110"]
    assert finding.evidence == (("it reads", "block 1 of A"), ("declared", "block 0 of A"))
    assert "V110" not in {each.code for each in verify(right).errors}


def one_role_waits(*, tracked: bool) -> CompiledPipeline:
    """Two fragments and a product, staggered."""
    fill = [load(0), load(0, channel=1), OpDesc.wait_vm(0), OpDesc.barrier()]
    use = [fragment(0), fragment(0, channel=1), OpDesc.wait_lgkm(0), mma()]
    made = loop(prologue=[*fill, *use], stagger=3)
    return replace(made, compiler_tracks_registers=tracked)


@pytest.mark.parametrize("role", [0, 1])
def test_a_wait_of_one_role_leaves_the_other_to_the_compiler(role: int) -> None:
    """The one's queue is empty, the other's holds two reads: a counted wait covers the older there, too."""
    program = one_role_waits(tracked=True).lowered
    (wait,) = [n for n, entry in enumerate(program.prologue) if entry.op.name == "wait_lgkm(0)"]
    alone = changed(program, Phase.PROLOGUE, wait, roles=(role,))
    assert not [each for each in verify(alone).errors if each.code == "R104"]


@pytest.mark.parametrize("role", [0, 1])
def test_the_witness_of_a_register_is_the_role_that_uses_it_early(role: int) -> None:
    program = one_role_waits(tracked=False).lowered
    (wait,) = [n for n, entry in enumerate(program.prologue) if entry.op.name == "wait_lgkm(0)"]
    alone = changed(program, Phase.PROLOGUE, wait, roles=(1 - role,))
    findings = [each for each in verify(alone).errors if each.code == "R104"]
    assert len(findings) == 2
    for finding in findings:
        assert finding.witness is not None
        assert (finding.witness.ahead, finding.witness.behind) == (role, role)
        assert not replay(alone, finding.witness).right
        assert meets(alone, finding, finding.witness)


@pytest.mark.parametrize("program", [producer_consumer(), producer_consumer(MADE_UP, left=0)], ids=["split", "made up"])
def test_roles_that_meet_at_two_barriers_are_proved_for_every_trip_count(program: LoweredProgram) -> None:
    """A role that never arrives at one of them once kept the loop's states apart."""
    assert verify(program).clean
    assert first_wrong(program) is None


def test_a_barrier_between_roles_orders_only_what_was_waited_for() -> None:
    program = producer_consumer(GFX950, left=2)
    waits = [n for n, entry in enumerate(program.kernel) if entry.op.name == "wait_vm(2)"]
    for wait in waits:
        kernel = [entry for n, entry in enumerate(program.kernel) if n != wait]
        late = program.with_phases({Phase.KERNEL: kernel})
        assert "R102" in {each.code for each in verify(late).errors}
        assert not all(execute(late, trips).right for trips in range(4))
