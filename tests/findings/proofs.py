"""Loops small enough to see a single hazard: takes ops per phase, gives a compiled schedule that was never derived."""

from __future__ import annotations

from collections.abc import Sequence

from rota import (
    GFX950,
    DoubleBufferTag,
    Finding,
    KOffsetKind,
    OpDesc,
    OpRole,
    Phase,
    PipelineConfig,
    ResourceKind,
    ScheduleConfig,
    ScheduleEntry,
    WarpStaggerRule,
    verify,
)
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.program.lowered import Lowerable
from tests.wording.golden import worded


def load(stage: int, k_offset: KOffsetKind = KOffsetKind.K0, *, channel: int = 0, subtile: int = 0) -> OpDesc:
    """A DMA of four vmcnt tokens."""
    return OpDesc(
        tag=DoubleBufferTag.LOAD_A + channel,
        stage=stage,
        subtile=subtile,
        k_offset=k_offset,
        role=OpRole.GLOBAL_LOAD,
        channel=channel,
    )


def fragment(stage: int, *, channel: int = 0, subtile: int = 0) -> OpDesc:
    """A fragment load of one lgkmcnt token."""
    tag = DoubleBufferTag.MMA_LOAD_A if channel == 0 else DoubleBufferTag.MMA_LOAD_B
    return OpDesc(tag=tag, stage=stage, subtile=subtile, role=OpRole.FRAGMENT_LOAD, channel=channel)


def mma() -> OpDesc:
    """The one compute of a 1x1 grid."""
    return OpDesc(tag=DoubleBufferTag.MMA, role=OpRole.COMPUTE, resource=ResourceKind.MMA_UNIT)


def loop(
    *,
    prologue: Sequence[OpDesc] = (),
    kernel: Sequence[OpDesc] = (),
    epilogue: Sequence[OpDesc] = (),
    stagger: int | None = None,
) -> CompiledPipeline:
    """The given phases in a 1x1 double buffer."""

    def phase(ops: Sequence[OpDesc], name: Phase) -> tuple[ScheduleEntry, ...]:
        return tuple(ScheduleEntry(op=op, time_slot=slot, phase=name) for slot, op in enumerate(ops))

    rule = WarpStaggerRule.none() if stagger is None else WarpStaggerRule.fixed(stagger)
    return CompiledPipeline(
        machine=GFX950,
        name="small",
        config=PipelineConfig(m_mmas=1, n_mmas=1, warp_stagger=rule),
        schedule_config=ScheduleConfig(),
        body=(),
        edges=(),
        prologue=phase(prologue, Phase.PROLOGUE),
        kernel=phase(kernel, Phase.KERNEL),
        epilogue=phase(epilogue, Phase.EPILOGUE),
        kernel_deps=(),
        warp_stagger_index=len(prologue) + 1 if stagger is None else stagger,
    )


def found(code: str, compiled: Lowerable, times: int | None = 1) -> tuple[Finding, ...]:
    """The findings with `code`; as many as expected, or at least one where that is open."""
    findings = tuple(finding for finding in verify(compiled).findings if finding.code == code)
    assert len(findings) == times if times is not None else findings
    return tuple(worded(finding) for finding in findings)
