from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from rota import GFX950, CompiledSchedule
from rota.audit.audit import audit_gemm, audit_skeleton
from rota.emit.forms import emit_skeleton
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.text import check_words, sync_text
from rota.isa.binary.code_object import CodeObject
from rota.program.entry import WORKGROUP, Entry, barrier_ops, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import Barrier, LoweredProgram, Role
from rota.program.machine import Machine
from tests.emit.kernels import SMALL, by_values, ping_pong
from tests.findings.smallest import raised
from tests.programs.producer_consumer import producer_consumer
from tests.wording.golden import mentions

UNKNOWN = replace(GFX950, name="MI500X", arch="gfx1250", wait_encoding=None)
OTHER_COUNTERS = (replace(GFX950.counters[0], name="loadcnt"), *GFX950.counters[1:])
OTHER_COUNTER = replace(GFX950, counters=OTHER_COUNTERS, queues=())
NOTHING = CodeObject(arch="gfx950", toolchain="none", hsaco=b"", assembly="", disassembly="", kernels=())


def on(machine: Machine) -> CompiledSchedule:
    return replace(ping_pong()[0], machine=machine)


@pytest.mark.parametrize(
    "use",
    [
        lambda compiled: emit_gemm(compiled, ping_pong()[1]),
        lambda compiled: emit_gemm(*ping_pong(), tails=[compiled]),
        emit_skeleton,
        lambda compiled: audit_gemm(compiled, ping_pong()[1], NOTHING),
        lambda compiled: audit_skeleton(compiled, NOTHING),
    ],
)
def test_a_machine_that_no_source_is_written_for(use: Callable[[CompiledSchedule], object]) -> None:
    finding = raised("T207", lambda: use(on(UNKNOWN)))
    assert mentions(finding.message, "MI500X", "gfx1250")


def test_a_counter_that_has_no_wait() -> None:
    program = producer_consumer(OTHER_COUNTER)
    finding = raised("T207", lambda: check_words(program))
    assert "MI355X" in finding.message


def with_epilogue(more: Sequence[Entry], program: LoweredProgram | None = None) -> LoweredProgram:
    """A program with more entries at its end."""
    program = program or by_values(SMALL)[0].lowered
    everyone = tuple(range(len(program.roles)))
    program = replace(program, barriers=(*program.barriers, Barrier("full", everyone, everyone)))
    return program.with_phases({Phase.EPILOGUE: (*program.epilogue, *more)})


def barriers(*, split: bool) -> list[Entry]:
    return [Entry(op=op, effect=effect, time_slot=0, phase=Phase.EPILOGUE) for op, effect in barrier_ops(split=split)]


def test_an_op_that_does_something_else_than_is_written() -> None:
    """A proof reads what an entry does; source would be written after what it is called."""
    (barrier,) = barriers(split=False)
    wait = replace(barrier, effect=wait_effect("vmcnt", 0))
    finding = raised("T207", lambda: check_words(with_epilogue([wait])))
    assert finding.evidence == (("written as", "barrier"), ("does", "wait for a counter"))


def test_an_ordinary_barrier_has_a_word() -> None:
    check_words(with_epilogue(barriers(split=False)))


def test_a_split_barrier() -> None:
    finding = raised("T207", lambda: check_words(with_epilogue(barriers(split=True))))
    assert mentions(finding.message, "barrier_arrive", "workgroup")
    (_, waits) = barriers(split=True)
    assert "barrier_wait" in raised("T207", lambda: check_words(with_epilogue([waits]))).message


def test_a_barrier_by_name() -> None:
    (barrier,) = barriers(split=False)
    named = replace(barrier, effect=replace(barrier.effect, arrives="full", awaits="full"))
    finding = raised("T207", lambda: check_words(with_epilogue([named])))
    assert finding.evidence == (("arrives", "full"), ("waits", "full"))
    crossed = replace(barrier, effect=replace(barrier.effect, arrives=WORKGROUP, awaits="full"))
    raised("T207", lambda: check_words(with_epilogue([crossed])))


def by_one_role(kind: OpKind, program: LoweredProgram) -> LoweredProgram:
    """The first op of a kind in the loop is executed by role 0 alone."""
    first = next(number for number, entry in enumerate(program.kernel) if entry.op.kind is kind)
    kernel = [replace(entry, roles=(0,)) if n == first else entry for n, entry in enumerate(program.kernel)]
    return program.with_phases({Phase.KERNEL: kernel})


@pytest.mark.parametrize("kind", [OpKind.DMA, OpKind.LDS_READ, OpKind.MMA, OpKind.WAIT])
def test_roles_that_do_different_things(kind: OpKind) -> None:
    raised("T207", lambda: check_words(by_one_role(kind, ping_pong()[0].lowered)))


def test_roles_that_are_all_of_them_say_nothing() -> None:
    """None stands for all roles, and so do their numbers."""
    program = ping_pong()[0].lowered
    barrier = next(entry for entry in program.epilogue if entry.op.kind is OpKind.BARRIER)
    for roles in (None, (0, 1)):
        check_words(with_epilogue([replace(barrier, roles=roles)], program))
        assert sync_text(program, replace(barrier, roles=roles)) == "ROTA_BARRIER"
    assert sync_text(program, replace(barrier, roles=(1,))) == "if (wave_group == 1) { ROTA_BARRIER }"


def test_staggered_groups_of_equal_size_are_written() -> None:
    check_words(ping_pong()[0].lowered)


@pytest.mark.parametrize(
    "roles", [(Role("few", 1), Role("many", 7)), (Role("one", 4), Role("two", 4), Role("three", 4))]
)
def test_roles_that_are_no_two_groups_of_equal_size(roles: tuple[Role, ...]) -> None:
    raised("T207", lambda: check_words(replace(ping_pong()[0].lowered, roles=roles)))


@pytest.mark.parametrize(("counter", "largest"), [("vmcnt", 62), ("lgkmcnt", 14)])
def test_a_count_that_its_field_does_not_hold(counter: str, largest: int) -> None:
    """On a machine that claims more than s_waitcnt can say."""
    program = by_values(SMALL)[0].lowered

    def written(count: int) -> str:
        wait = Entry(op=wait_op(counter, count), effect=wait_effect(counter, count), time_slot=0, phase=Phase.KERNEL)
        return sync_text(program, wait)

    assert written(largest).endswith(f"({largest})")
    finding = raised("T207", lambda: written(largest + 1))
    assert finding.evidence == (("count", largest + 1), ("largest that waits", largest))
