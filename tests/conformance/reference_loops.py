"""The reference's own schedules as loops to prove: takes a recorded case, gives its entries as a compiled schedule."""

from __future__ import annotations

from collections import Counter

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.pipeline.op import CHANNEL_A, CHANNEL_B, DoubleBufferTag, OpDesc, ScheduleEntry
from rota.program.kinds import OpRole, Phase
from tests.conformance.corpus import Case, op_from_row, schedule_of


def reference_loop(case: Case) -> CompiledSchedule:
    """The recorded prologue, kernel and epilogue, entry for entry."""
    schedule = schedule_of(case)
    return CompiledPipeline(
        name=case["id"],
        config=schedule.config(),
        schedule_config=schedule.schedule_config(),
        body=(),
        edges=(),
        prologue=_phase(case, "prologue", Phase.PROLOGUE),
        kernel=_phase(case, "kernel", Phase.KERNEL),
        epilogue=_phase(case, "epilogue", Phase.EPILOGUE),
        kernel_deps=(),
        warp_stagger_index=case["warp_stagger_index"],
        machine=schedule.machine(),
    )


def loses_ops(case: Case) -> bool:
    """Does the recorded kernel lack an op that the case declares?"""
    declared = Counter(_identity(op_from_row(case["ops"][index])) for index in case["logical"])
    issued = Counter(
        _identity(op) for op in (op_from_row(case["ops"][op]) for op, *_ in case["kernel"]) if not op.is_framework
    )
    return declared != issued


def _identity(op: OpDesc) -> tuple[object, ...]:
    return (op.tag, op.stage, op.subtile, op.k_offset)


def _phase(case: Case, name: str, phase: Phase) -> tuple[ScheduleEntry, ...]:
    return tuple(
        ScheduleEntry(
            op=_with_channel(op_from_row(case["ops"][op])), time_slot=slot, phase=phase, is_prefetch=bool(flag)
        )
        for op, slot, flag in case[name]
    )


def _with_channel(op: OpDesc) -> OpDesc:
    """The reference's prologue loads forget their channel; their tag still says it."""
    if op.role is not OpRole.GLOBAL_LOAD or op.channel >= 0:
        return op
    return op.but(channel=CHANNEL_A if op.tag == DoubleBufferTag.LOAD_A else CHANNEL_B)
