"""What a table's loop computes: takes a `ScheduleTable`, gives its instructions as a loop by values.

Code paths run different orders of the same instructions on different waves, so each has ops and registers of its own;
LDS tiles are shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from rota.lift.schedule_table import ScheduleTable, unreadable
from rota.lift.table_operands import Made, derive_operands
from rota.program.effects import Place, Space
from rota.program.entry import Work
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.machine import LANES

_REGISTER_BYTES = 4
_INPUTS = {"16bit": "bf16", "TF32": "bf16", "8bit": "f8f6f4"}
_SMALL_RESULT = 4  # registers of a matrix instruction of 4 x 4


class Load(NamedTuple):
    """One load into LDS: whose tile it fills a part of, and the bytes that it moves for a wave."""

    operand: str
    name: str
    moved: int


def loop_of(table: ScheduleTable, *, in_blocks: bool = False) -> LoopSpec:
    """The loop, for all waves alike, without the order that the table gives it."""
    return TableLoop(replace(table, code_paths=1), in_blocks=in_blocks).spec


class TableLoop:
    """The loop's declaration, and what entries need to know of its ops."""

    def __init__(self, table: ScheduleTable, *, in_blocks: bool) -> None:
        self.table = table
        self.waves = table.waves[0] * table.waves[1]
        self.operands = derive_operands(table, in_blocks=in_blocks)
        self.loads = {name: tuple(self._loads(name)) for name in ("GRA", "GRB")}
        side, columns, k = table.mfma
        self.instruction = f"v_mfma_f32_{side}x{columns}x{k}_{_INPUTS[table.element]}"
        ops = tuple(op for path in range(table.code_paths) for op in self.ops(path))
        self.spec = LoopSpec(name=table.title, waves=self.waves, values=tuple(self._values()), ops=ops)
        self.named = {op.name: op for op in ops}
        self.parts = {name: {op.name: n for n, op in enumerate(self.spec.writers(name))} for name in "AB"}
        self._first: dict[str, str] = {}  # whose register a value takes over, in the end
        for value in self.spec.values:
            if value.into:
                self._first[value.name] = self._first.get(value.into, value.into)

    def suffix(self, path: int) -> str:
        """Of the names of a code path's ops and values."""
        return "" if self.table.code_paths == 1 else f"_p{path}"

    def register(self, name: str) -> Place:
        """Where a register value lies."""
        return Place(Space.REGISTER, self._first.get(name, name))

    def work(self, stream: str, made: Made) -> Work:
        """What a wave issues for a read or a pack."""
        return Work(1, self.operands.bytes_of(stream) if made.operand else 0, made.instruction)

    def ops(self, path: int) -> Iterator[LoopOp]:
        """What the waves of one code path do in an iteration."""
        end, waves = self.suffix(path), self.waves // self.table.code_paths
        for load in (*self.loads["GRA"], *self.loads["GRB"]):
            moved = load.moved * waves
            yield LoopOp(name=load.name + end, kind=OpKind.DMA, writes=(load.operand,), moved=moved)
        for (stream, _), made in self.operands.made.items():
            reads = (made.operand,) if made.operand else tuple(name + end for name in made.reads)
            yield LoopOp(
                name=op_name(made) + end,
                kind=made.kind,
                reads=tuple(Read(value=name) for name in reads),
                writes=(made.name + end,),
                moved=self.work(stream, made).moved * waves,
                instruction=made.instruction,
            )
        for product in self.operands.products:
            yield LoopOp(
                name=product.name + end,
                kind=OpKind.MMA,
                reads=tuple(Read(value=name + end) for name in product.reads),
                writes=(product.accumulator + end,),
                instruction=self.instruction,
            )

    def _loads(self, stream: str) -> Iterator[Load]:
        """Each load follows an update of its address register; in a swapped order GRA loads B."""
        table = self.table
        operand = stream[-1] if not table.swapped else {"GRA": "B", "GRB": "A"}[stream]
        count, odd = divmod(len(table.stream(stream).of(0)), 2)
        if odd or not count:
            raise unreadable(table, f"{stream} has {2 * count + odd} instructions; loads come in pairs with m0 updates")
        for number in range(count):
            yield Load(operand, f"load_{operand}{number}", -(-self._size(operand) // (count * self.waves)))

    def _size(self, operand: str) -> int:
        """Bytes of a tile."""
        return self.table.tile["AB".index(operand)] * self.table.tile[2] * self.table.stored.bits // 8

    def _values(self) -> Iterator[Value]:
        for name in "AB":
            yield Value(name=name, home=Home.LDS, size=self._size(name), operand=name)
        for path in range(self.table.code_paths):
            end, shared = self.suffix(path), dict[str, str]()
            for (stream, _), made in self.operands.made.items():
                name = made.name + end
                yield Value(
                    name=name, home=Home.REGISTERS, size=self._registers(stream, made), into=shared.get(made.shared, "")
                )
                if made.shared:
                    shared[made.shared] = name
            for name in dict.fromkeys(product.accumulator for product in self.operands.products):
                size = self.table.mfma[0] * self.table.mfma[1] // LANES
                yield Value(name=name + end, home=Home.ACCUMULATOR, size=size)

    def _registers(self, stream: str, made: Made) -> int:
        if made.operand:
            return -(-self.operands.bytes_of(stream) // (_REGISTER_BYTES * LANES))
        return _SMALL_RESULT if made.kind is OpKind.MMA else 1


def op_name(made: Made) -> str:
    """Of the op that makes a value from LDS or from registers."""
    return f"{'read' if made.operand else 'make'}_{made.name}"
