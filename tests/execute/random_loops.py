"""Random small loops declared by values, and random start times: takes Hypothesis' draws, gives spec and placement."""

from __future__ import annotations

from hypothesis import strategies as st

from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.values.unroll import Placement


class _Drawn:
    """A loop as it is drawn, op by op, each after what it reads."""

    def __init__(self, draw: st.DrawFn, farthest: int) -> None:
        self.draw = draw
        self.farthest = farthest
        self.values: list[Value] = []
        self.ops: list[LoopOp] = []

    def value(self, home: Home) -> str:
        name = f"{home.name[0].lower()}{len(self.values)}"
        self.values.append(Value(name=name, home=home, size=4))  # what one matrix instruction takes
        return name

    def op(self, kind: OpKind, reads: list[Read], write: str) -> None:
        self.ops.append(
            LoopOp(
                name=f"op{len(self.ops)}",
                kind=kind,
                reads=tuple(reads),
                writes=(write,),
                instructions=self.draw(st.integers(1, 4)),
            )
        )

    def reads(self, home: Home, least: int, itself: str | None = None) -> list[Read]:
        """Values that are there, mostly of this iteration, now and then the one that is being made, carried."""
        names = [value.name for value in self.values if value.home is home and value.name != itself]
        found = [
            Read(value=name, distance=self.draw(st.sampled_from([0, 0, 0, 0, *range(self.farthest + 1)])))
            for name in self.draw(st.lists(st.sampled_from(names), min_size=least, max_size=2, unique=True))
        ]
        if itself is not None and self.draw(st.booleans()):
            found.append(Read(value=itself, distance=self.draw(st.integers(1, self.farthest))))
        return found


@st.composite
def specs(draw: st.DrawFn, farthest: int = 2) -> LoopSpec:
    """Tiles in one or two parts, fragments of them, computes with and without carried values, stores, accumulators.

    Values are read of `farthest` iterations before at most.
    """
    made = _Drawn(draw, farthest)
    for _ in range(draw(st.integers(1, 2))):
        tile = made.value(Home.LDS)
        for _ in range(draw(st.integers(1, 2))):
            made.op(OpKind.DMA, [], tile)
    for _ in range(draw(st.integers(1, 3))):
        _fragment(made)
    for _ in range(draw(st.integers(0, 2))):
        computed = made.value(Home.REGISTERS)
        made.op(draw(st.sampled_from([OpKind.VALU, OpKind.MMA])), made.reads(Home.REGISTERS, 1, computed), computed)
    if draw(st.integers(0, 3)) == 0:
        made.op(OpKind.LDS_WRITE, made.reads(Home.REGISTERS, 1), made.value(Home.LDS))
        _fragment(made)
    accumulator = made.value(Home.ACCUMULATOR)
    for _ in range(draw(st.integers(1, 2))):
        made.op(OpKind.MMA, made.reads(Home.REGISTERS, 1), accumulator)
    return LoopSpec(name="drawn", waves=4, values=tuple(made.values), ops=tuple(made.ops))


def _fragment(made: _Drawn) -> None:
    reads = made.reads(Home.LDS, 1)
    made.op(OpKind.LDS_READ, reads, made.value(Home.REGISTERS))


@st.composite
def placements(draw: st.DrawFn, spec: LoopSpec) -> Placement:
    """Every op some time after what it reads, copies mostly as many as its stages ask for."""
    interval = draw(st.integers(4, 30))
    starts: list[int] = []
    for op in spec.ops:
        inputs = {read.value for read in op.reads if read.distance == 0}
        before = [starts[n] + 1 for n, other in enumerate(spec.ops[: len(starts)]) if inputs & set(other.writes)]
        starts.append(max(before, default=0) + draw(st.sampled_from([0, 0, 1, 3, interval // 2, interval])))
    stages = max(starts) // interval + 1
    enough = draw(st.booleans())
    counts = st.sampled_from([stages + 2] if enough else [1, 1, 2, 3])
    copies = tuple((value.name, draw(counts)) for value in spec.values if value.home is not Home.ACCUMULATOR)
    return Placement(interval=interval, starts=tuple(starts), copies=copies)
