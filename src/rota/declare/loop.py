"""The loop builder: takes one call per value and op, gives a `LoopSpec`; no stages, no buffers, no waits."""

from __future__ import annotations

from collections.abc import Sequence

from rota.declare.check import author_line, bad_field, check_elements, is_int
from rota.declare.limits import MOST_OPS, MOST_VALUES, check_count
from rota.declare.values import Home, LoopOp, LoopSpec, Read, Value, Work

_LANES = 64
_REGISTER_BYTES = 4


class Loop:
    """Collects values and ops of one iteration; `build()` checks them and hands them over.

    Methods that make a value return its name, to be passed to the ops that use it.
    """

    def __init__(self, name: str, *, waves: int) -> None:
        self.name = name
        self.waves = waves
        if not is_int(waves) or waves < 1:
            raise bad_field(self, "waves", waves, "a whole number, at least 1", author_line())
        self._values: list[Value] = []
        self._ops: list[LoopOp] = []
        self._inputs: set[str] = set()

    def tile(self, name: str, *, size: int) -> str:
        """An LDS tile of `size` bytes."""
        return self._value(name, Home.LDS, size)

    def accumulator(self, name: str, *, registers: int) -> str:
        """A sum over all iterations, `registers` per lane."""
        return self._value(name, Home.ACCUMULATOR, registers)

    def input(self, name: str, *, registers: int) -> str:
        """What the loop only reads, `registers` per lane, filled before it begins."""
        self._inputs.add(name)
        return self._value(name, Home.INPUT, registers)

    def load(self, tile: str, *, name: str | None = None, instructions: int = 1, moved: int) -> str:
        """A DMA of `moved` bytes into a tile, `instructions` per wave; several loads may each bring a part."""
        name = name or f"load_{tile}"
        return self._op(name, Work.LOAD, writes=(tile,), instructions=instructions, moved=moved)

    def fragment(self, name: str, tile: str, *, registers: int, instructions: int = 1) -> str:
        """A read of a tile into `registers` per lane; the registers are a value of the op's own name."""
        self._value(name, Home.REGISTERS, registers)
        moved = registers * _REGISTER_BYTES * _LANES * self.waves
        self._op(
            f"read_{name}",
            Work.FRAGMENT,
            reads=(Read(value=tile),),
            writes=(name,),
            instructions=instructions,
            moved=moved,
        )
        return name

    def mma(
        self, accumulator: str, *operands: str, instruction: str, instructions: int = 1, name: str | None = None
    ) -> str:
        """Add the product of register operands to an accumulator."""
        return self._op(
            name or f"mma_{accumulator}",
            Work.MMA,
            reads=tuple(Read(value=operand) for operand in operands),
            writes=(accumulator,),
            instructions=instructions,
            instruction=instruction,
        )

    def product(
        self,
        name: str,
        operands: Sequence[str | Read],
        *,
        registers: int,
        instruction: str,
        instructions: int = 1,
        into: str = "",
    ) -> str:
        """A matrix op that makes `registers` per lane, not a sum over iterations, from register values.

        What it adds its product to is an operand like the others, and may be carried; `into` a value means in its
        registers, which is how a matrix instruction adds to what is there.
        """
        self._value(name, Home.REGISTERS, registers, into)
        self._op(
            f"mma_{name}",
            Work.MMA,
            reads=_reads(operands),
            writes=(name,),
            instructions=instructions,
            instruction=instruction,
        )
        return name

    def valu(
        self, name: str, reads: Sequence[str | Read], *, registers: int, instructions: int = 1, into: str = ""
    ) -> str:
        """A vector op that makes `registers` per lane from register values of this or earlier iterations.

        `into` a value means in its registers.
        """
        self._value(name, Home.REGISTERS, registers, into)
        self._op(
            f"make_{name}",
            Work.VALU,
            reads=_reads(reads),
            writes=(name,),
            instructions=instructions,
        )
        return name

    def build(self) -> LoopSpec:
        """The checked loop."""
        return LoopSpec(name=self.name, waves=self.waves, values=tuple(self._values), ops=tuple(self._ops))

    def store(self, tile: str, value: str, *, moved: int, instructions: int = 1, name: str | None = None) -> str:
        """Write registers into a tile, `moved` bytes for the whole workgroup."""
        reads = (Read(value=value),)
        name = name or f"store_{tile}"
        return self._op(name, Work.STORE, reads=reads, writes=(tile,), instructions=instructions, moved=moved)

    def _value(self, name: str, home: Home, size: int, into: str = "") -> str:
        if len(self._values) == MOST_VALUES:
            check_count(self.name, "values or more", MOST_VALUES + 1, MOST_VALUES, author_line())
        self._values.append(Value(name=name, home=home, size=size, into=into))
        return name

    def _op(
        self,
        name: str,
        work: Work,
        *,
        reads: tuple[Read, ...] = (),
        writes: tuple[str, ...] = (),
        instructions: int = 1,
        moved: int = 0,
        instruction: str = "",
    ) -> str:
        if len(self._ops) == MOST_OPS:
            check_count(self.name, "ops or more", MOST_OPS + 1, MOST_OPS, author_line())
        self._ops.append(
            LoopOp(
                name=name,
                work=work,
                reads=tuple(read for read in reads if read.value not in self._inputs),
                inputs=tuple(read.value for read in reads if read.value in self._inputs),
                writes=writes,
                instructions=instructions,
                moved=moved,
                instruction=instruction,
                source=author_line(),
            )
        )
        return name


def _reads(operands: Sequence[str | Read]) -> tuple[Read, ...]:
    each = check_elements("reads", operands, object)
    return tuple(read if isinstance(read, Read) else Read(value=str(read)) for read in each)
