"""Loads and LDS reads use and define registers like everything else."""

from __future__ import annotations

import pytest

from rota import CompiledSchedule, Phase, compile_loop, verify
from rota.execute.clock import Earliest, Latest, Random
from rota.execute.executor import execute
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from tests.sync.minimality import with_less

MFMA = "v_mfma_f32_16x16x32_bf16"
POLICY = (Latest(), Earliest(), Random(seeds=4))
TRIPS = (0, 2)


def scaled() -> LoopSpec:
    """A tile and its scales: the scales go from memory straight into registers."""
    homes = {"A": Home.LDS, "a": Home.REGISTERS, "scale": Home.REGISTERS, "c": Home.ACCUMULATOR}
    return LoopSpec(
        name="scaled",
        waves=4,
        values=tuple(Value(name=name, home=home, size=4096 if name == "A" else 4) for name, home in homes.items()),
        ops=(
            LoopOp(name="load_A", kind=OpKind.DMA, writes=("A",), moved=4096),
            LoopOp(name="load_scale", kind=OpKind.GLOBAL_LOAD, writes=("scale",), moved=1024),
            LoopOp(name="read_a", kind=OpKind.LDS_READ, reads=(Read(value="A"),), writes=("a",), moved=4096),
            LoopOp(
                name="mma_c",
                kind=OpKind.MMA,
                reads=(Read(value="a"), Read(value="scale")),
                writes=("c",),
                instruction=MFMA,
            ),
        ),
    )


def gathered(*, by_load: bool) -> LoopSpec:
    """Where a load, or a read of LDS, goes to is itself read from LDS."""
    homes = {"T": Home.LDS, "where": Home.REGISTERS, "A": Home.LDS, "a": Home.REGISTERS, "c": Home.ACCUMULATOR}
    where = (Read(value="where"),)
    return LoopSpec(
        name="gathered",
        waves=4,
        values=tuple(Value(name=name, home=home, size=4096 if name in "TA" else 4) for name, home in homes.items()),
        ops=(
            LoopOp(name="load_T", kind=OpKind.DMA, writes=("T",), moved=4096),
            LoopOp(name="read_where", kind=OpKind.LDS_READ, reads=(Read(value="T"),), writes=("where",), moved=4096),
            LoopOp(name="load_A", kind=OpKind.DMA, reads=where if by_load else (), writes=("A",), moved=4096),
            LoopOp(
                name="read_a",
                kind=OpKind.LDS_READ,
                reads=(Read(value="A"), *(() if by_load else where)),
                writes=("a",),
                moved=4096,
            ),
            LoopOp(name="mma_c", kind=OpKind.MMA, reads=(Read(value="a"),), writes=("c",), instruction=MFMA),
        ),
    )


LOOPS = {
    "a load into registers": scaled(),
    "a load's address": gathered(by_load=True),
    "a read's address": gathered(by_load=False),
}


def without(compiled: CompiledSchedule, counter: str) -> CompiledSchedule:
    """The schedule without any wait for that counter."""
    for phase in Phase:
        waits = [e.effect.kind is OpKind.WAIT and e.effect.counter == counter for e in compiled.phase(phase)]
        kept = [entry for entry, wait in zip(compiled.phase(phase), waits, strict=True) if not wait]
        compiled = compiled.with_phase(phase, kept)
    return compiled


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("name", LOOPS)
def test_what_is_proved_is_right_and_what_is_wrong_is_refused(name: str) -> None:
    spec = LOOPS[name]
    compiled = compile_loop(spec)
    assert all(execute(compiled, trips, policy=POLICY).right for trips in TRIPS)
    refused = 0
    entries = [entry for phase in Phase for entry in compiled.phase(phase)]
    assert len(compiled.repairs) == sum(entry.op.is_framework for entry in entries), "each wait and barrier is rota's"
    for _, less in with_less(compiled):
        if verify(less).clean:
            assert all(execute(less, trips, policy=POLICY).right for trips in TRIPS), "proved, but wrong"
        else:
            refused += 1
    assert refused


@pytest.mark.parametrize(("name", "used"), [("a load's address", "load_A"), ("a read's address", "read_a")])
def test_an_address_that_is_still_being_read_is_a_hazard(name: str, used: str) -> None:
    compiled = compile_loop(LOOPS[name])
    assert verify(compiled).clean
    careless = without(compiled, "lgkmcnt")
    hazards = [finding for finding in verify(careless).errors if finding.code == "R104"]
    assert any(used in finding.concerns[1].label and "where" in finding.message for finding in hazards)


def test_registers_that_memory_fills_are_waited_for_on_vmcnt() -> None:
    compiled = compile_loop(LOOPS["a load into registers"])
    careless = without(compiled, "vmcnt")
    hazards = [finding for finding in verify(careless).errors if finding.code == "R104"]
    assert any("scale" in finding.message for finding in hazards)
