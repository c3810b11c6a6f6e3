from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import FrozenInstanceError

import pytest

from rota import (
    DeclarativeSchedule,
    KernelGeometry,
    OpDesc,
    Phase,
    Pipeline4Wave,
    PipelineSchedule,
    SchedGroupHints,
    ScheduleCompiler,
    ScheduleConfig,
    ScheduleEntry,
    SingleBufferSchedule,
    compile_schedule,
)
from tests.findings.smallest import Small, two_tiles
from tests.wording.golden import mentions, worded

SHIPPED: list[PipelineSchedule] = [
    Pipeline4Wave(KernelGeometry()),
    DeclarativeSchedule(),
    SingleBufferSchedule(3, SchedGroupHints(m_mmas=2, n_mmas=2, k_mmas=8)),
]


@pytest.mark.parametrize("schedule", SHIPPED, ids=lambda s: type(s).__name__)
def test_a_compiled_schedule_is_a_hashable_value(schedule: PipelineSchedule) -> None:
    compiled = compile_schedule(schedule)
    assert compiled == ScheduleCompiler().compile(schedule)
    assert hash(compiled) == hash(ScheduleCompiler().compile(schedule))
    with pytest.raises(FrozenInstanceError):
        compiled.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("schedule", SHIPPED, ids=lambda s: type(s).__name__)
def test_entries_are_numbered_and_carry_their_phase(schedule: PipelineSchedule) -> None:
    compiled = compile_schedule(schedule)
    for phase, entries in (
        (Phase.PROLOGUE, compiled.prologue),
        (Phase.KERNEL, compiled.kernel),
        (Phase.EPILOGUE, compiled.epilogue),
    ):
        assert [entry.time_slot for entry in entries] == list(range(len(entries)))
        assert {entry.phase for entry in entries} == {phase}


def test_the_listing_shows_all_phases_and_the_repr_is_one_line() -> None:
    compiled = compile_schedule(Pipeline4Wave(KernelGeometry()), sync="as_written")
    text = str(compiled)
    heads = [worded(line) for line in text.splitlines() if not line.startswith("  ") and line]
    wanted = [("prologue", 14, 2, 2, 0), ("kernel", 48, 12, 4, 8), ("epilogue", 32, 15, 1, 0)]
    assert [mentions(head, *numbers) for head, numbers in zip(heads, wanted, strict=True)] == [True] * 3
    assert "\n" not in repr(compiled)


class Marked(Small):
    """Appends a compiler fence, to show that the hook is applied to double buffers too."""

    def transform_kernel(self, ker: Sequence[ScheduleEntry], body: Sequence[OpDesc]) -> Sequence[ScheduleEntry]:
        fence = ScheduleEntry(op=OpDesc.schedule_barrier(), time_slot=len(ker), phase=Phase.KERNEL)
        return (*ker, fence)


def test_transform_kernel_is_applied_to_a_double_buffer() -> None:
    plain, marked = compile_schedule(Small()), compile_schedule(Marked())
    assert marked.kernel[:-1] == plain.kernel
    assert marked.kernel[-1].op == OpDesc.schedule_barrier()
    assert marked.findings == plain.findings
    assert all(dep.producer_idx < dep.consumer_idx for dep in marked.kernel_deps)


def test_bootstrap_fragments_wait_for_the_prefetch_of_the_same_ordinal() -> None:
    compiled = compile_schedule(Small(bootstrap=two_tiles()[:2], knobs=ScheduleConfig(partial_prologue_drain=True)))
    assert [str(entry.op) for entry in compiled.prologue[4:]] == [
        "wait_vm(12)",
        "barrier",
        "mma_load_a s0 t0",
        "wait_vm(8)",
        "barrier",
        "mma_load_b s0 t0",
    ]


@pytest.mark.thorough  # compiles, or starts commands
def test_compiling_without_a_solver_call_takes_at_most_3_ms() -> None:
    """Measured in a process of its own, because coverage slows this one down; on an idle machine, that is."""
    for _ in range(8):  # noise only ever adds time
        ran = subprocess.run([sys.executable, "-m", "benchmarks.compile"], check=True, capture_output=True, text=True)
        medians = [float(line.split()[2]) for line in ran.stdout.splitlines()[1:]]
        assert len(medians) == 3
        if max(medians) <= 3.0:
            return
    pytest.fail(f"{max(medians)} ms")
