"""Two roles that share a tile: takes entries by name, gives a lowered program of one trip per tile.

Both roles load A and read it into registers of their own; one multiplies into c0, the other into c1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rota import GFX950
from rota.program.entry import (
    BARRIER,
    MEETS,
    WORKGROUP,
    Effect,
    Entry,
    Op,
    Place,
    Space,
    Version,
    Work,
    wait_effect,
    wait_op,
)
from rota.program.kinds import Home, OpKind, Phase
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.lowered import Barrier, LoweredProgram, Role

MFMA = "v_mfma_f32_16x16x32_bf16"
TILE = 4096
SPEC = LoopSpec(
    name="two sums",
    waves=4,
    values=(
        Value(name="A", home=Home.LDS, size=TILE),
        Value(name="a", home=Home.REGISTERS, size=8),
        Value(name="c0", home=Home.ACCUMULATOR, size=4),
        Value(name="c1", home=Home.ACCUMULATOR, size=4),
    ),
    ops=(
        LoopOp(name="load_A", kind=OpKind.DMA, writes=("A",), moved=TILE),
        LoopOp(name="read_a", kind=OpKind.LDS_READ, reads=(Read(value="A"),), writes=("a",), moved=TILE),
        LoopOp(name="mma0", kind=OpKind.MMA, reads=(Read(value="a"),), writes=("c0",), instruction=MFMA),
        LoopOp(name="mma1", kind=OpKind.MMA, reads=(Read(value="a"),), writes=("c1",), instruction=MFMA),
    ),
)
SHARED = frozenset({"load_A", "read_a"})
ROLES = (Role("one", 2, SHARED | {"mma0"}), Role("other", 2, SHARED | {"mma1"}))
ALL = (0, 1)


def data(name: str, roles: tuple[int, ...] | None = None) -> Entry:
    """An op of the loop, of the tile that the trip is about."""
    op = next(each for each in SPEC.ops if each.name == name)
    counter = GFX950.counter_of(op.kind)
    wants = tuple((_place(read.value), Version(read.value, -1)) for read in op.reads)
    makes = tuple((_place(value), Version(value, -1)) for value in op.writes if not value.startswith("c"))
    sums = tuple(Place(Space.ACCUMULATOR, value) for value in op.writes if value.startswith("c"))
    effect = Effect(
        kind=op.kind,
        counter=counter,
        tokens=1 if counter else 0,
        reads=tuple(place for place, _ in wants),
        writes=(*(place for place, _ in makes), *sums),
        instance=Version(name, -1),
        wants=wants,
        makes=makes,
    )
    return _entry(Op(kind=op.kind, name=name, copy=0, work=Work(1)), effect, roles)


def wait(counter: str, count: int, roles: tuple[int, ...] | None = None) -> Entry:
    """A wait, of all roles or of some."""
    return _entry(wait_op(counter, count), wait_effect(counter, count), roles)


def meet(roles: tuple[int, ...] | None = None) -> Entry:
    """The barrier of the workgroup."""
    return _entry(BARRIER, MEETS, roles)


def two_sums(kernel: Sequence[Entry], **changes: Any) -> LoweredProgram:
    """The program with these entries in its loop."""
    fields: dict[str, Any] = {
        "machine": GFX950,
        "semantics": SPEC,
        "prologue": (),
        "epilogue": (),
        "tiles_per_trip": 1,
        "tiles_outside": 0,
        "roles": ROLES,
        "barriers": (Barrier(WORKGROUP, ALL, ALL),),
        "compiler_tracks_registers": False,
        "lds_bytes": TILE,
        "registers": 16,
        "register_limit": 512,
        "waves": 4,
        **changes,
    }
    return LoweredProgram(name="two sums", kernel=tuple(kernel), **fields)


def right_kernel() -> list[Entry]:
    """Every wait and barrier that the loop needs, each role waiting for its own read."""
    return [
        data("load_A"),
        wait("vmcnt", 0),
        meet(),
        data("read_a"),
        wait("lgkmcnt", 0, (0,)),
        data("mma0", (0,)),
        wait("lgkmcnt", 0, (1,)),
        meet(),
        data("mma1", (1,)),
    ]


def _place(value: str) -> Place:
    return Place(Space.LDS if value == "A" else Space.REGISTER, value)


def _entry(op: Op, effect: Effect, roles: tuple[int, ...] | None) -> Entry:
    return Entry(op=op, effect=effect, time_slot=0, phase=Phase.KERNEL, roles=roles)
