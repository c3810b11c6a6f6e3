from __future__ import annotations

import pytest

from rota import Loop
from rota.declare.values import Home, LoopOp, LoopSpec, Read, Value, Work
from tests.findings.smallest import raised

MFMA = "v_mfma_f32_16x16x32_bf16"
CAN_READ = {
    Work.LOAD: {Home.REGISTERS},
    Work.FRAGMENT: {Home.LDS},
    Work.STORE: {Home.REGISTERS},
    Work.MMA: {Home.REGISTERS},
    Work.VALU: {Home.REGISTERS},
}
CAN_WRITE = {
    Work.LOAD: {Home.LDS, Home.REGISTERS},
    Work.FRAGMENT: {Home.REGISTERS},
    Work.STORE: {Home.LDS},
    Work.MMA: {Home.REGISTERS, Home.ACCUMULATOR},
    Work.VALU: {Home.REGISTERS, Home.ACCUMULATOR},
}


def test_a_matrix_op_of_tiles_is_refused_with_the_fragment_that_was_meant() -> None:
    loop = Loop("gemm", waves=4)
    for tile in ("A", "B"):
        loop.load(loop.tile(tile, size=4096), moved=4096)
    loop.fragment("a", "A", registers=4)
    loop.mma(loop.accumulator("c", registers=4), "A", "B", instruction=MFMA)
    finding = raised("D111", loop.build)
    assert finding.message == "mma_c reads A, which lives in LDS; mma work reads registers"
    assert finding.fixes == ("did you mean 'a', which is read from A?",)
    assert finding.concerns[0].source is not None
    assert finding.concerns[0].source.file == __file__


def test_a_tile_that_nothing_reads_is_to_be_read() -> None:
    loop = Loop("gemm", waves=4)
    loop.load(loop.tile("A", size=4096), moved=4096)
    loop.mma(loop.accumulator("c", registers=4), "A", instruction=MFMA)
    assert "loop.fragment" in raised("D111", loop.build).fixes[0]


def pair(work: Work, read: Home, written: Home) -> LoopSpec:
    """One op that reads `r` and writes `w`, each made or filled by what can."""
    makers = {
        Home.LDS: LoopOp(name="fill", work=Work.LOAD, writes=("r",)),
        Home.REGISTERS: LoopOp(name="fill", work=Work.VALU, writes=("r",)),
        Home.ACCUMULATOR: LoopOp(name="fill", work=Work.VALU, writes=("r",)),
    }
    ops = [makers[read]] if read in makers else []
    ops.append(LoopOp(name="op", work=work, reads=(Read(value="r"),), writes=("w",)))
    values = (Value(name="r", home=read, size=4), Value(name="w", home=written, size=4))
    return LoopSpec(name="pair", waves=4, values=values, ops=tuple(ops))


@pytest.mark.parametrize("work", Work)
@pytest.mark.parametrize("read", Home)
@pytest.mark.parametrize("written", Home)
def test_every_combination_of_work_and_homes(work: Work, read: Home, written: Home) -> None:
    if read in CAN_READ[work] and written in CAN_WRITE[work]:
        assert pair(work, read, written).ops
    else:
        raised("D111", lambda: pair(work, read, written))


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (LoopOp(name="op", work=Work.FRAGMENT, reads=(Read(value="r"),), writes=("x",)), "reads no LDS tile"),
        (LoopOp(name="op", work=Work.VALU, reads=(Read(value="r"),)), "writes nothing"),
        (LoopOp(name="op", work=Work.LOAD, writes=("t", "x")), "writes LDS and registers at once"),
        (LoopOp(name="op", work=Work.VALU, inputs=("r",), writes=("x",)), "takes as input r"),
    ],
)
def test_an_op_that_lacks_something(op: LoopOp, text: str) -> None:
    homes = {"r": Home.REGISTERS, "x": Home.REGISTERS, "t": Home.LDS}
    values = tuple(Value(name=name, home=home, size=4) for name, home in homes.items())
    ops = (LoopOp(name="make", work=Work.VALU, writes=("r",)), op)
    assert text in raised("D111", lambda: LoopSpec(name="tiny", waves=4, values=values, ops=ops)).message
