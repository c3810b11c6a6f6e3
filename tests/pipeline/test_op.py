from __future__ import annotations

import pytest

from rota import DoubleBufferTag, FrameworkTag, KOffsetKind, OpDesc, OpRole, ResourceKind


def test_an_op_remembers_the_line_it_was_declared_on_without_being_different_for_it() -> None:
    first = OpDesc.logical(1)
    second = OpDesc.logical(1)
    assert first == second
    assert hash(first) == hash(second)
    assert first.source is not None
    assert second.source is not None
    assert first.source.file == second.source.file == __file__
    assert second.source.line == first.source.line + 1


@pytest.mark.parametrize(
    ("op", "tag", "role", "value"),
    [
        (OpDesc.barrier(), FrameworkTag.BARRIER, OpRole.SYNC, 0),
        (OpDesc.wait_vm(6), FrameworkTag.WAIT_VM, OpRole.SYNC, 6),
        (OpDesc.wait_lgkm(4), FrameworkTag.WAIT_LGKM, OpRole.SYNC, 4),
        (OpDesc.set_prio(1), FrameworkTag.SET_PRIO, OpRole.FENCE, 1),
        (OpDesc.schedule_barrier(), FrameworkTag.SCHEDULE_BARRIER, OpRole.FENCE, 0),
        (OpDesc.sched_group_barrier(3, 2), FrameworkTag.SCHED_GROUP_BARRIER, OpRole.FENCE, 2),
    ],
)
def test_framework_ops(op: OpDesc, tag: int, role: OpRole, value: int) -> None:
    assert (op.tag, op.role, op.wait_value, op.resource) == (tag, role, value, ResourceKind.SCALAR)
    assert op.is_framework


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (
            OpDesc.logical(DoubleBufferTag.LOAD_A, stage=1, subtile=2, k_offset=KOffsetKind.K_PREV),
            "load_a s1 t2 k_prev",
        ),
        (OpDesc.logical(7), "tag 7 s0 t0"),
        (OpDesc.wait_vm(3), "wait_vm(3)"),
        (OpDesc.barrier(), "barrier"),
        (OpDesc.sched_group_barrier(1, 2), "sched_group_barrier(1, 2)"),
        (
            OpDesc.op(
                DoubleBufferTag.MMA, resource=ResourceKind.MMA_UNIT, latency=16, role=OpRole.COMPUTE, stage=1, subtile=0
            ),
            "mma[1,0]",
        ),
    ],
)
def test_an_op_reads_as_a_kernel_author_would_write_it(op: OpDesc, text: str) -> None:
    assert str(op) == text


@pytest.mark.parametrize(("offset", "tiles"), [("K0", 0), ("K1", 1), ("K_NEXT", 2), ("K_PREV", -1), ("NONE", 0)])
def test_k_offsets_in_tiles(offset: str, tiles: int) -> None:
    assert KOffsetKind[offset].signed_bk_multiple() == tiles


def test_only_loads_ahead_are_prefetches() -> None:
    prefetches = {offset.name for offset in KOffsetKind if offset.is_prefetch}
    assert prefetches == {"K0", "K1", "K_NEXT"}
