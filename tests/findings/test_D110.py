from __future__ import annotations

import pytest

from rota import (
    KernelGeometry,
    OpDesc,
    Phase,
    Pipeline4Wave,
    PipelineConfig,
    PipelineProgram,
    ScheduleConfig,
    Severity,
    compile_loop,
    compile_schedule,
)
from rota.kernels.gemm import GEMM_SHAPES
from tests.findings.smallest import Small, raised

TYPED = ScheduleConfig(auto_waits=False, wait_lgkm_first=1)


@pytest.mark.parametrize("sync", ["repair", "strict"])
def test_a_wait_that_counts_fragments_of_unknown_size_is_refused(sync: str) -> None:
    finding = raised("D110", lambda: compile_schedule(Small(knobs=TYPED), sync=sync))
    read_a, read_b, wait = finding.concerns
    assert (read_a.label, read_a.index, read_a.role) == ("mma_load_a s0 t0", 0, "not stated")
    assert (read_b.label, read_b.index) == ("mma_load_b s0 t0", 1)
    assert (wait.label, wait.index) == ("wait_lgkm(1)", None)
    assert ("not stated", "lgkm_per_load_a, lgkm_per_load_b") in finding.evidence
    assert "KernelGeometry(...).fragment_reads()" in finding.fixes[0]


def test_loads_are_counted_too() -> None:
    silent = PipelineConfig(m_mmas=1, n_mmas=1, vm_per_load_b=0)
    finding = raised("D110", lambda: compile_schedule(Small(pipeline=silent)))  # the derived wait counts A's alone
    assert ("not stated", "vm_per_load_b") in finding.evidence
    assert "dma_loads()" in finding.fixes[0]


def test_a_wait_for_everything_needs_no_counts_nor_do_ops_that_state_theirs() -> None:
    assert compile_schedule(Small()).certificate is not None
    stated = TYPED.but(lgkm_per_load_a=4, lgkm_per_load_b=4)
    assert compile_schedule(Small(knobs=stated)).certificate is not None
    assert compile_schedule(Small(knobs=TYPED), sync="as_written").certificate is None


def test_a_counted_wait_that_a_repair_adds_is_told() -> None:
    """A's read must be over before its tile is refilled; B's, which is younger, need not."""

    def late_refill_of_b(program: PipelineProgram) -> list[tuple[OpDesc, ...]]:
        barrier, drain = OpDesc.barrier(), OpDesc.wait_lgkm(0)
        listed: list[tuple[OpDesc, ...]] = []
        for block in program.blocks:
            (read_a, read_b), (load_a, load_b) = block.pre_ops, block.global_loads
            first = (OpDesc.wait_vm(8), barrier, read_a, read_b, barrier, load_a, drain, barrier, load_b)
            listed.append((*first, block.mma))
        return listed

    compiled = compile_schedule(Small(explicit=late_refill_of_b))
    assert "wait_lgkm(1)" in {str(repair.op) for repair in compiled.repairs if repair.phase is Phase.KERNEL}
    (told,) = [finding for finding in compiled.findings if finding.code == "D110"]
    assert told.severity is Severity.NOTE


@pytest.mark.parametrize(("waves", "reads", "loads"), [(4, (8, 8), (4, 4)), (8, (8, 4), (2, 2))])
def test_a_geometry_derives_the_counts(waves: int, reads: tuple[int, int], loads: tuple[int, int]) -> None:
    # 256x256x64 bf16 in halves; four waves read 64 rows of 128 bytes each, a kilobyte an instruction.
    geometry = KernelGeometry()
    assert geometry.fragment_reads(waves) == reads
    assert geometry.dma_loads(waves) == loads


def test_the_four_wave_kernel_takes_what_its_geometry_says() -> None:
    derived = Pipeline4Wave(KernelGeometry()).config()
    assert (derived.lgkm_per_load_a, derived.lgkm_per_load_b) == (8, 8)
    stated = Pipeline4Wave(KernelGeometry(lgkm_per_load_a=0, lgkm_per_load_b=3, vm_per_load_a=2)).config()
    assert (stated.lgkm_per_load_a, stated.lgkm_per_load_b, stated.vm_per_load_a) == (0, 3, 2)
    assert len(compile_schedule(Pipeline4Wave(KernelGeometry())).repairs) == 4


def test_loops_by_values_state_all_their_counts() -> None:
    compiled = compile_loop(GEMM_SHAPES[2].loop(instructions=False))
    assert any(entry.effect.wait_value for entry in compiled.kernel), "some wait counts"
    assert not [finding for finding in compiled.findings if finding.code == "D110"]
