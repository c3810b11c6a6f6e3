"""The loop builder: one call per value and op, no stages, no buffers, no waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rota.check import author_line, bad_field, check_elements, is_int
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import MOST_OPS, MOST_VALUES, LoopOp, LoopSpec, Read, Value, check_count
from rota.program.machine import LANES

_REGISTER_BYTES = 4


class _Work(NamedTuple):
    instructions: int
    moved: int = 0
    instruction: str = ""
    scales: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()


class Loop:
    """Collects values and ops of one iteration; `build()` checks them and hands them over.

    Methods that make a value return its name, to be passed to the ops that use it.
    """

    def __init__(self, name: str, *, waves: int) -> None:
        self.name = name
        self.waves = waves
        if not is_int(waves) or waves < 1:
            raise bad_field(self, "waves", waves, "an integer, at least 1", author_line())
        self._values: list[Value] = []
        self._ops: list[LoopOp] = []
        self._inputs: set[str] = set()

    def tile(self, name: str, *, size: int, operand: str = "") -> str:
        """An LDS tile of `size` bytes; that of a GEMM to be emitted says of which `operand` it has rows, "A" or "B".

        One with the scales of their blocks says "A_scale" or "B_scale".
        """
        return self._value(name, Home.LDS, size, operand=operand)

    def accumulator(self, name: str, *, registers: int) -> str:
        """A sum over all iterations, `registers` per lane."""
        return self._value(name, Home.ACCUMULATOR, registers)

    def input(self, name: str, *, registers: int) -> str:
        """What the loop only reads, `registers` per lane, filled before it begins."""
        self._value(name, Home.INPUT, registers)
        self._inputs.add(name)
        return name

    def memory(self, name: str, *, size: int) -> str:
        """`size` bytes of global memory that the loop writes in every iteration and never reads."""
        return self._value(name, Home.MEMORY, size)

    def load(
        self, tile: str, *, name: str | None = None, instructions: int = 1, moved: int, needs: Sequence[str | Read] = ()
    ) -> str:
        """A DMA of `moved` bytes into a tile, `instructions` per wave; several loads may each bring a part.

        Of every op that reaches a memory `needs` are the register values that it takes its address from.
        """
        work = _Work(instructions, moved)
        return self._op(name or f"load_{tile}", OpKind.DMA, work, reads=_reads(needs), writes=(tile,))

    def gload(
        self,
        name: str,
        *,
        registers: int,
        moved: int | None = None,
        instructions: int = 1,
        needs: Sequence[str | Read] = (),
    ) -> str:
        """A load of `registers` per lane from memory; the registers are a value of the op's own name.

        `moved` are the bytes for the whole workgroup, all of its registers unless it says less.
        """
        self._value(name, Home.REGISTERS, registers)
        work = _Work(instructions, self._bytes(registers) if moved is None else moved)
        self._op(f"gload_{name}", OpKind.GLOBAL_LOAD, work, reads=_reads(needs), writes=(name,))
        return name

    def gstore(
        self,
        memory: str,
        value: str | Read,
        *,
        moved: int,
        instructions: int = 1,
        needs: Sequence[str | Read] = (),
        name: str | None = None,
    ) -> str:
        """Write registers to memory, `moved` bytes for the whole workgroup."""
        return self._write(OpKind.GLOBAL_STORE, memory, (value, needs), _Work(instructions, moved), name)

    def atomic(
        self,
        memory: str,
        value: str | Read,
        *,
        moved: int,
        instructions: int = 1,
        needs: Sequence[str | Read] = (),
        name: str | None = None,
    ) -> str:
        """Add registers to memory, `moved` bytes for the whole workgroup; what was there isn't returned."""
        return self._write(OpKind.ATOMIC, memory, (value, needs), _Work(instructions, moved), name)

    def lds_store(
        self,
        tile: str,
        value: str | Read,
        *,
        moved: int,
        instructions: int = 1,
        needs: Sequence[str | Read] = (),
        name: str | None = None,
    ) -> str:
        """Write registers into a tile, `moved` bytes for the whole workgroup."""
        return self._write(OpKind.LDS_WRITE, tile, (value, needs), _Work(instructions, moved), name)

    def fragment(
        self,
        name: str,
        tile: str | Read,
        *,
        registers: int,
        instructions: int = 1,
        parts: Sequence[int] = (),
        needs: Sequence[str | Read] = (),
    ) -> str:
        """A read of a tile into `registers` per lane; the registers are a value of the op's own name.

        `parts` are what it reads of a tile that several ops fill, a K slice for instance: their numbers, in the order
        of the declarations.  It may then run as soon as those have landed.
        """
        reads = (_slice(tile, parts), *_reads(needs))
        return self._lds_read(OpKind.LDS_READ, name, registers, instructions, reads)

    def transposed(
        self,
        name: str,
        tile: str | Read,
        *,
        registers: int,
        instructions: int = 1,
        parts: Sequence[int] = (),
        needs: Sequence[str | Read] = (),
    ) -> str:
        """A fragment whose elements change places between lanes on the way, as by ds_read_b64_tr_b16."""
        reads = (_slice(tile, parts), *_reads(needs))
        return self._lds_read(OpKind.LDS_READ_TRANSPOSED, name, registers, instructions, reads)

    def mma(
        self,
        accumulator: str,
        *operands: str,
        instruction: str,
        instructions: int = 1,
        scales: Sequence[str] = (),
        formats: str | Sequence[str] = (),
        name: str | None = None,
    ) -> str:
        """Add the product of register operands to an accumulator.

        `scales` are the register values that scale the blocks of the factors, where the instruction takes them;
        `formats` say what elements the factors have ("fp8", "bf8", "fp6", "bf6" or "fp4"), where it takes several: one
        for both, as "fp8", or one for each, as ("fp8", "fp4").
        """
        return self._op(
            name or f"mma_{accumulator}",
            OpKind.MMA,
            _matrix_work(instructions, instruction, scales, formats),
            reads=(*_reads(operands), *_reads(scales)),
            writes=(accumulator,),
        )

    def product(
        self,
        name: str,
        operands: Sequence[str | Read],
        *,
        registers: int,
        instruction: str,
        instructions: int = 1,
        scales: Sequence[str] = (),
        formats: str | Sequence[str] = (),
        into: str = "",
    ) -> str:
        """A matrix op that makes `registers` per lane, not a sum over iterations, from register values.

        What it adds its product to is an operand like the others, and may be carried; `into` a value means in its
        registers, which is how a matrix instruction adds to what is there.  `scales` and `formats` are as in `mma`.
        """
        self._value(name, Home.REGISTERS, registers, into)
        work = _matrix_work(instructions, instruction, scales, formats)
        self._op(f"mma_{name}", OpKind.MMA, work, reads=(*_reads(operands), *_reads(scales)), writes=(name,))
        return name

    def valu(
        self, name: str, reads: Sequence[str | Read], *, registers: int, instructions: int = 1, into: str = ""
    ) -> str:
        """A vector op that makes `registers` per lane from register values of this or earlier iterations.

        `into` a value means in its registers.
        """
        self._value(name, Home.REGISTERS, registers, into)
        self._op(f"make_{name}", OpKind.VALU, _Work(instructions), reads=_reads(reads), writes=(name,))
        return name

    def add(
        self, accumulator: str, reads: Sequence[str | Read], *, instructions: int = 1, name: str | None = None
    ) -> str:
        """A vector op that adds what it makes of register values to an accumulator."""
        work = _Work(instructions)
        return self._op(name or f"add_{accumulator}", OpKind.VALU, work, reads=_reads(reads), writes=(accumulator,))

    def transcendental(
        self, name: str, reads: Sequence[str | Read], *, registers: int, instructions: int = 1, into: str = ""
    ) -> str:
        """A vector op of v_exp_f32 and its like, each of which holds the VALU for longer than others do."""
        self._value(name, Home.REGISTERS, registers, into)
        self._op(f"make_{name}", OpKind.TRANSCENDENTAL, _Work(instructions), reads=_reads(reads), writes=(name,))
        return name

    def build(self) -> LoopSpec:
        """The checked loop."""
        return LoopSpec(name=self.name, waves=self.waves, values=tuple(self._values), ops=tuple(self._ops))

    def _write(
        self, kind: OpKind, to: str, reads: tuple[str | Read, Sequence[str | Read]], work: _Work, name: str | None
    ) -> str:
        """Registers to memory or a tile; without a name of its own the op is called by its kind and where it goes."""
        value, needs = reads
        own = (*_reads((value,)), *_reads(needs))
        return self._op(name or f"{kind.word}_{to}", kind, work, reads=own, writes=(to,))

    def _bytes(self, registers: int) -> int:
        """What this many registers of all lanes of the workgroup hold."""
        return registers * _REGISTER_BYTES * LANES * self.waves

    def _lds_read(self, kind: OpKind, name: str, registers: int, instructions: int, reads: tuple[Read, ...]) -> str:
        self._value(name, Home.REGISTERS, registers)
        work = _Work(instructions, self._bytes(registers))
        self._op(f"read_{name}", kind, work, reads=reads, writes=(name,))
        return name

    def _value(self, name: str, home: Home, size: int, into: str = "", operand: str = "") -> str:
        if len(self._values) == MOST_VALUES:
            check_count(self.name, "values or more", MOST_VALUES + 1, MOST_VALUES, author_line())
        self._values.append(Value(name=name, home=home, size=size, into=into, operand=operand))
        return name

    def _op(self, name: str, kind: OpKind, work: _Work, *, reads: tuple[Read, ...], writes: tuple[str, ...]) -> str:
        if len(self._ops) == MOST_OPS:
            check_count(self.name, "ops or more", MOST_OPS + 1, MOST_OPS, author_line())
        self._ops.append(
            LoopOp(
                name=name,
                kind=kind,
                reads=tuple(read for read in reads if read.value not in self._inputs),
                inputs=tuple(read.value for read in reads if read.value in self._inputs),
                writes=writes,
                instructions=work.instructions,
                moved=work.moved,
                instruction=work.instruction,
                scales=work.scales,
                formats=work.formats,
                source=author_line(),
            )
        )
        return name


def _check_formats(formats: str | Sequence[str]) -> Sequence[str]:
    """Names of formats; a single one may stand for itself."""
    return (formats,) if isinstance(formats, str) else check_elements("formats", formats, str)


def _matrix_work(instructions: int, instruction: str, scales: Sequence[str], formats: str | Sequence[str]) -> _Work:
    scaling, elements = check_elements("scales", scales, str), _check_formats(formats)
    return _Work(instructions, 0, instruction, tuple(scaling), tuple(elements))


def _reads(operands: Sequence[str | Read]) -> tuple[Read, ...]:
    each = check_elements("reads", operands, object)
    return tuple(read if isinstance(read, Read) else Read(value=str(read)) for read in each)


def _slice(tile: str | Read, parts: Sequence[int]) -> Read:
    (read,) = _reads((tile,))
    return replace(read, parts=check_elements("parts", parts, int)) if parts else read
