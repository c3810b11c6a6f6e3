"""Every kind of op: declared, scheduled, synchronised, proved, executed, predicted, drawn, emitted or refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest

from rota import GFX950, KernelGeometry, compile_loop
from rota.compiled.proved import repaired
from rota.cycles.predict import predict
from rota.cycles.record import record
from rota.emit.document.exchange import from_json, to_json
from rota.emit.forms import emit_skeleton
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.execute.clock import Earliest, Latest, Policy, Random
from rota.execute.executor import execute
from rota.order.modulo.handover import derive_handovers
from rota.program.entry import Entry, wait_effect, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.loop_spec import LoopSpec
from rota.program.lowered import LoweredProgram
from rota.program.machine import Counter
from rota.values.compile_loop import unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.values.unroll import Placement
from rota.verify.prove import verify
from rota.view.page import show
from tests.findings.smallest import raised
from tests.values.loops import (
    LOOPS,
    addressed,
    atomic,
    gload,
    gstore,
    k_slices,
    lds_store,
    scaled,
    transcendental,
    transposed,
)

pytestmark = pytest.mark.thorough  # runs for seconds

POLICIES: tuple[Policy, ...] = (Latest(), Earliest(), Random())
TRIPS = range(4)
every_kind = pytest.mark.parametrize("kind", LOOPS)


@cache
def compiled(kind: str) -> CompiledLoop:
    return compile_loop(LOOPS[kind]())


@every_kind
def test_it_is_scheduled_and_proved(kind: str) -> None:
    assert compiled(kind).certificate is not None
    assert not compiled(kind).findings


@every_kind
def test_it_is_executed_right(kind: str) -> None:
    assert all(execute(compiled(kind), trips, policy=POLICIES).right for trips in TRIPS)


@every_kind
def test_it_is_predicted_to_take_no_less_than_its_busiest_unit(kind: str) -> None:
    found = predict(compiled(kind), band=False)
    assert found.cycles >= found.least_cycles > 0


@every_kind
def test_it_is_drawn(kind: str) -> None:
    shown = show(compiled(kind), record(compiled(kind)))
    assert LOOPS[kind]().name in str(shown)
    assert "<svg" in shown.svg()


@every_kind
def test_it_has_a_call_in_a_skeleton_for_every_op(kind: str) -> None:
    text = emit_skeleton(compiled(kind))
    assert all(f"void {op.name}(int k);" in text for op in LOOPS[kind]().ops)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("gload", "gload_b"),
        ("gstore", "make_s"),
        ("addressed", "gload_page"),
        ("lds_store", "make_s"),
        ("transposed", "read_a"),
        ("transcendental", "make_e"),
        ("k_slices", "read_a0"),
        ("scaled", "v_mfma_scale_f32_16x16x128_f8f6f4"),
    ],
)
def test_no_gemm_is_written_and_the_reason_named(kind: str, message: str) -> None:
    spec = LOOPS[kind]()
    operands = {"A": "A", "P": "B"}
    values = tuple(replace(v, operand=operands.get(v.name, "")) for v in spec.values)
    spec = replace(spec, values=values)
    if not any(value.operand == "B" for value in values):
        spec = _with_b(spec)
    count = len(spec.ops)
    bare = unroll_bare(spec, Placement(interval=count, starts=tuple(range(count)), copies=()))
    finding = raised("T203", lambda: emit_gemm(bare, KernelGeometry(BM=64, BN=64)))
    assert message in finding.message


def _with_b(spec: LoopSpec) -> LoopSpec:
    """With a tile of B, so that nothing but the kind is in the way."""
    (tile,) = (value for value in spec.values if value.name == "A")
    load = next(op for op in spec.ops if op.kind is OpKind.DMA)
    more = replace(load, name="load_B", writes=("B",), reads=())
    return replace(spec, values=(*spec.values, replace(tile, name="B", operand="B")), ops=(*spec.ops, more))


@every_kind
def test_it_survives_a_document(kind: str) -> None:
    again = from_json(to_json(compiled(kind)))
    assert isinstance(again, CompiledLoop)
    assert again.loop == LOOPS[kind]()
    assert again.lowered == compiled(kind).lowered
    assert again.certificate is not None


# The smallest failing examples


def mended(spec: LoopSpec, *starts: int, interval: int = 0) -> LoweredProgram:
    """With ops in these slots, by default one after the other, and as few waits and barriers as make that right.

    Nobody waits for registers but the program itself.
    """
    starts = starts or tuple(range(len(spec.ops)))
    bare = unroll_bare(spec, Placement(interval=interval or len(spec.ops), starts=starts, copies=()), remainder=1)
    program = repaired(replace(bare, compiler_tracks_registers=False))
    assert program.certificate is not None
    assert right(program.lowered)
    return program.lowered


def right(program: LoweredProgram) -> bool:
    return all(execute(program, trips, policy=POLICIES).right for trips in TRIPS)


def wait_ahead_of(program: LoweredProgram, op: str, counter: str) -> int:
    """The slot in the kernel of the last wait for a counter ahead of an op."""
    last = next(slot for slot, entry in enumerate(program.kernel) if entry.op.name == op)
    waits = (s for s in range(last) if program.kernel[s].effect.kind is OpKind.WAIT)
    return max(s for s in waits if program.kernel[s].effect.counter == counter)


def with_kernel(program: LoweredProgram, kernel: Sequence[Entry]) -> LoweredProgram:
    return program.with_phases({Phase.KERNEL: tuple(kernel)})


def deleted(program: LoweredProgram, slot: int) -> LoweredProgram:
    return with_kernel(program, [*program.kernel[:slot], *program.kernel[slot + 1 :]])


def waiting_for(program: LoweredProgram, slot: int, count: int) -> LoweredProgram:
    entry = program.kernel[slot]
    counter = entry.effect.counter or ""
    other = replace(entry, op=wait_op(counter, count), effect=wait_effect(counter, count))
    return with_kernel(program, [*program.kernel[:slot], other, *program.kernel[slot + 1 :]])


def codes(program: LoweredProgram) -> set[str]:
    report = verify(program)
    assert report.certificate is None
    return {finding.code for finding in report.findings}


@pytest.mark.parametrize(
    ("spec", "user", "counter", "code"),
    [
        (gload(), "mma_c", "vmcnt", "R104"),  # a factor that hasn't come
        (addressed(), "load_A", "vmcnt", "R104"),  # an address that hasn't
        (scaled(), "mma_c", "vmcnt", "R104"),  # a scale that hasn't
        (transposed(), "mma_c", "lgkmcnt", "R104"),
        (transcendental(), "make_e", "lgkmcnt", "R104"),
        (gstore(), "make_s", "lgkmcnt", "R104"),
        (atomic(), "make_s", "lgkmcnt", "R104"),
        (lds_store(), "read_p", "lgkmcnt", "R102"),  # what another wave stores hasn't arrived
        (k_slices(), "read_a0", "vmcnt", "R102"),
    ],
    ids=lambda each: each.name if isinstance(each, LoopSpec) else None,
)
def test_without_the_wait_it_is_refused_and_wrong(spec: LoopSpec, user: str, counter: str, code: str) -> None:
    program = mended(spec)
    without = deleted(program, wait_ahead_of(program, user, counter))
    assert code in codes(without)
    assert not right(without)


# Stores and atomics count


@pytest.mark.parametrize("spec", [gstore, atomic])
@pytest.mark.parametrize("tokens", [4, 5])
def test_the_tokens_of_a_store_behind_a_load_are_counted(spec: Callable[[int], LoopSpec], tokens: int) -> None:
    """The store of the iteration before stands between a load and the wait for it."""
    program = mended(spec(tokens), 0, 2, 4, 11, interval=10)
    slot = wait_ahead_of(program, "read_a", "vmcnt")
    assert program.kernel[slot].effect.wait_value == tokens
    weaker = waiting_for(program, slot, tokens + 1)
    assert "R102" in codes(weaker)
    assert not right(weaker)


def test_without_the_store_the_same_count_is_too_weak() -> None:
    """A wait that takes a store for there that isn't leaves the load in flight."""
    spec = gstore(4)
    program = mended(spec, 0, 2, 4, 11, interval=10)
    machine = replace(GFX950, name="two counters", counters=_apart(GFX950.counters))
    stores_elsewhere = unroll_bare(
        spec, Placement(interval=10, starts=(0, 2, 4, 11), copies=()), remainder=1, machine=machine
    )
    mine = repaired(replace(stores_elsewhere, compiler_tracks_registers=False)).lowered
    slot = wait_ahead_of(mine, "read_a", "vmcnt")
    assert mine.kernel[slot].effect.wait_value == 0
    assert right(mine)
    as_before = waiting_for(mine, slot, program.kernel[wait_ahead_of(program, "read_a", "vmcnt")].effect.wait_value)
    assert "R102" in codes(as_before)
    assert not right(as_before)


def _apart(counters: Sequence[Counter]) -> tuple[Counter, ...]:
    """Stores and atomics on a counter of their own."""
    stores = frozenset({OpKind.GLOBAL_STORE, OpKind.ATOMIC})
    (vmcnt,) = (each for each in counters if each.name == "vmcnt")
    own = replace(vmcnt, name="storecnt", counts=stores)
    return (*(replace(each, counts=each.counts - stores) for each in counters), own)


# Slices


def slot_of(program: LoweredProgram, name: str) -> int:
    return next(slot for slot, entry in enumerate(program.kernel) if entry.op.name == name)


def one_after_the_other(spec: LoopSpec) -> LoweredProgram:
    """Each fragment is read after a wait for its own load; the second load stays in flight for the first."""
    program = mended(spec)
    meet, second = (slot_of(program, name) for name in ("barrier", "read_a1"))
    assert [entry.op.name for entry in program.kernel[: meet + 1]] == ["load0", "load1", "wait_vm(0)", "barrier"]
    earlier = waiting_for(program, meet - 1, 1).kernel
    wait, barrier = program.kernel[meet - 1], program.kernel[meet]
    return with_kernel(program, [*earlier[:second], wait, barrier, *earlier[second:]])


def test_a_slice_is_read_as_soon_as_its_own_load_has_landed() -> None:
    program = one_after_the_other(k_slices())
    assert verify(program).certificate is not None
    assert right(program)


def test_a_whole_tile_is_not() -> None:
    program = one_after_the_other(k_slices(whole=True))
    assert "R102" in codes(program)
    assert not right(program)


def test_a_slice_whose_own_load_is_under_way_is_refused_and_wrong() -> None:
    program = one_after_the_other(k_slices())
    weaker = waiting_for(program, slot_of(program, "wait_vm(1)"), 2)
    assert "R102" in codes(weaker)
    assert not right(weaker)


def test_a_slice_is_handed_over_by_the_load_that_brings_it() -> None:
    slices = list(derive_handovers(k_slices(), {"A": 2}))
    assert [(each.before, each.after) for each in slices if each.lands] == [((0,), (2,)), ((1,), (4,))]
    assert [(each.before, each.after) for each in slices if not each.lands] == [((2,), (0,)), ((4,), (1,))]


def test_a_read_of_another_slice_is_not_the_op_that_was_declared() -> None:
    """The proof compares; the executor sees it in the numbers."""
    program = mended(k_slices())
    slot, other = slot_of(program, "read_a0"), slot_of(program, "read_a1")
    effect = program.kernel[slot].effect
    (of_the_other,) = program.kernel[other].effect.reads
    ((_, version),) = effect.wants
    astray = replace(effect, reads=(of_the_other,), wants=((of_the_other, version),))
    kernel = [replace(e, effect=astray) if n == slot else e for n, e in enumerate(program.kernel)]
    wrong = with_kernel(program, kernel)
    assert "V110" in codes(wrong)
    assert not right(wrong)
