from __future__ import annotations

import pytest

from rota import Loop
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from tests.findings.smallest import raised
from tests.wording.golden import mentions, recording

MFMA = "v_mfma_f32_16x16x32_bf16"
CAN_READ: dict[OpKind, set[Home]] = {
    OpKind.DMA: {Home.REGISTERS},
    OpKind.GLOBAL_LOAD: {Home.REGISTERS},
    OpKind.GLOBAL_STORE: {Home.REGISTERS},
    OpKind.ATOMIC: {Home.REGISTERS},
    OpKind.LDS_READ: {Home.LDS},
    OpKind.LDS_READ_TRANSPOSED: {Home.LDS},
    OpKind.LDS_WRITE: {Home.REGISTERS},
    OpKind.MMA: {Home.REGISTERS},
    OpKind.VALU: {Home.REGISTERS},
    OpKind.TRANSCENDENTAL: {Home.REGISTERS},
}
CAN_WRITE: dict[OpKind, set[Home]] = {
    OpKind.DMA: {Home.LDS},
    OpKind.GLOBAL_LOAD: {Home.REGISTERS},
    OpKind.GLOBAL_STORE: {Home.MEMORY},
    OpKind.ATOMIC: {Home.MEMORY},
    OpKind.LDS_READ: {Home.REGISTERS},
    OpKind.LDS_READ_TRANSPOSED: {Home.REGISTERS},
    OpKind.LDS_WRITE: {Home.LDS},
    OpKind.MMA: {Home.REGISTERS, Home.ACCUMULATOR},
    OpKind.VALU: {Home.REGISTERS, Home.ACCUMULATOR},
    OpKind.TRANSCENDENTAL: {Home.REGISTERS, Home.ACCUMULATOR},
}


def test_a_matrix_op_of_tiles_is_refused_with_the_fragment_that_was_meant() -> None:
    loop = Loop("gemm", waves=4)
    for tile in ("A", "B"):
        loop.load(loop.tile(tile, size=4096), moved=4096)
    loop.fragment("a", "A", registers=4)
    loop.mma(loop.accumulator("c", registers=4), "A", "B", instruction=MFMA)
    finding = raised("D111", loop.build)
    assert "mma_c" in finding.message
    assert [mentions(fix, "'a'", "A") for fix in finding.fixes] == [True]
    assert finding.concerns[0].source is not None
    assert finding.concerns[0].source.file == __file__


def test_a_tile_that_nothing_reads_is_to_be_read() -> None:
    loop = Loop("gemm", waves=4)
    loop.load(loop.tile("A", size=4096), moved=4096)
    loop.mma(loop.accumulator("c", registers=4), "A", instruction=MFMA)
    assert "loop.fragment" in raised("D111", loop.build).fixes[0]


def pair(kind: OpKind, read: Home, written: Home) -> LoopSpec:
    """One op that reads `r` and writes `w`, each made or filled by what can."""
    makers = {
        Home.LDS: LoopOp(name="fill", kind=OpKind.DMA, writes=("r",)),
        Home.REGISTERS: LoopOp(name="fill", kind=OpKind.VALU, writes=("r",)),
        Home.MEMORY: LoopOp(name="fill", kind=OpKind.GLOBAL_STORE, writes=("r",)),
        Home.ACCUMULATOR: LoopOp(name="fill", kind=OpKind.VALU, writes=("r",)),
    }
    ops = [makers[read]] if read in makers else []
    ops.append(LoopOp(name="op", kind=kind, reads=(Read(value="r"),), writes=("w",)))
    values = (Value(name="r", home=read, size=4), Value(name="w", home=written, size=4))
    return LoopSpec(name="pair", waves=4, values=values, ops=tuple(ops))


@pytest.mark.parametrize("kind", OpKind)
@pytest.mark.parametrize("read", Home)
@pytest.mark.parametrize("written", Home)
def test_every_combination_of_kind_and_homes(kind: OpKind, read: Home, written: Home) -> None:
    if read in CAN_READ.get(kind, ()) and written in CAN_WRITE.get(kind, ()):
        assert pair(kind, read, written).ops
    else:
        with recording():  # four hundred of one kind
            raised("D111", lambda: pair(kind, read, written))


@pytest.mark.parametrize(
    "op",
    [
        LoopOp(name="op", kind=OpKind.LDS_READ, reads=(Read(value="r"),), writes=("x",)),
        LoopOp(name="op", kind=OpKind.VALU, reads=(Read(value="r"),)),
        LoopOp(name="op", kind=OpKind.VALU, inputs=("r",), writes=("x",)),
    ],
)
def test_an_op_that_lacks_something(op: LoopOp) -> None:
    homes = {"r": Home.REGISTERS, "x": Home.REGISTERS, "t": Home.LDS}
    values = tuple(Value(name=name, home=home, size=4) for name, home in homes.items())
    ops = (LoopOp(name="make", kind=OpKind.VALU, writes=("r",)), op)
    raised("D111", lambda: LoopSpec(name="tiny", waves=4, values=values, ops=ops))
