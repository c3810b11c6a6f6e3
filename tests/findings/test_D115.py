from __future__ import annotations

from collections.abc import Sequence

import pytest

from rota import DeclarationError, OpDesc, OpRole, PipelineConfig, build_kernel_program, compile_schedule
from tests.findings.smallest import Small, two_tiles
from tests.programs.ported import Rotating, Tag


def bare(op: OpDesc) -> OpDesc:
    """The op as OpDesc.logical() makes it."""
    return OpDesc.logical(op.tag, channel=op.channel, stage=op.stage, subtile=op.subtile, k_offset=op.k_offset)


def test_a_body_that_was_never_annotated_is_refused_at_the_hook() -> None:
    with pytest.raises(DeclarationError) as caught:
        compile_schedule(Small([bare(op) for op in two_tiles()]))
    (finding,) = caught.value.findings
    assert finding.code == "D115"
    assert "build_body()" in finding.message
    assert "annotate_ops" in finding.fixes[0]
    assert dict(finding.evidence)["without a role"] == len(two_tiles())


def test_one_op_that_was_forgotten_is_named() -> None:
    ops = list(two_tiles())
    ops[1] = bare(ops[1])
    with pytest.raises(DeclarationError) as caught:
        compile_schedule(Small(ops))
    (end,) = caught.value.findings[0].concerns
    assert end.index == 1


def test_build_kernel_program_refuses_it_too() -> None:
    with pytest.raises(DeclarationError) as caught:
        build_kernel_program([bare(op) for op in two_tiles()], PipelineConfig(m_mmas=1, n_mmas=1))
    assert caught.value.findings[0].code == "D115"


class BareBootstrap(Rotating):
    def bootstrap_frags(self) -> Sequence[OpDesc]:
        return [OpDesc.logical(Tag.FRAG_A, channel=0), OpDesc.logical(Tag.FRAG_B, channel=1)]


class LoadedBootstrap(Rotating):
    def bootstrap_frags(self) -> Sequence[OpDesc]:
        return [op for op in self.build_body() if op.role is OpRole.GLOBAL_LOAD][:1]


def test_bootstrap_fragments_without_a_role_are_refused_at_the_hook() -> None:
    with pytest.raises(DeclarationError) as caught:
        compile_schedule(BareBootstrap())
    (finding,) = caught.value.findings
    assert finding.code == "D115"
    assert "bootstrap_frags()" in finding.message


def test_a_bootstrap_fragment_is_a_fragment() -> None:
    with pytest.raises(DeclarationError) as caught:
        compile_schedule(LoadedBootstrap())
    (finding,) = caught.value.findings
    assert finding.code == "D102"
    assert "bootstrap_frags()" in finding.message
