"""B in pairs of columns, as source: takes bound reads and packs, gives statements, and the wait states behind them.

A read brings a lane two columns of one k; of two such k one v_perm_b32 makes a register of the even column, another one
a register of the odd.  No load of half a register takes part: with ECC, as MI300X has it, LLVM doesn't count on such a
load keeping the other half (`d16PreservesUnusedBits`).
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_factors import Factor
from rota.emit.gemm.gemm_instructions import BoundInstruction, Mfma, PairPack, PairRead
from rota.emit.gemm.gemm_registers import of_pair
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.text.sync_text import apart_words
from rota.targets.architecture import architecture_of

PAIR_READ, PACK = "ds_read_b32", "v_perm_b32"
"""What reads a pair of columns of a k, and what makes of two of them a register of one column."""
COLUMN_HALVES = (0x05040100, 0x07060302)
"""The bytes that it takes, for the even column and for the odd one."""
_NAMES = ("ROTA_EVEN", "ROTA_ODD")


def pair_words() -> Iterator[str]:
    """Macros."""
    yield from apart_words()
    yield "#define ROTA_READ_PAIR(target, lane, lds) target = *(ROTA_LDS const u32*)((lane) + (lds)); ROTA_FENCE"
    for name, bytes_ in zip(_NAMES, COLUMN_HALVES, strict=True):
        yield f"#define {name} {bytes_:#010x}u  // these halves of two registers"
    yield (
        "#define ROTA_PACK(target, low, high, halves) "
        f'{{ u32 made; asm volatile("{PACK} %0, %1, %2, %3" : "=v"(made) : "v"(high), "v"(low), "s"(halves)); '
        "target = made; } ROTA_FENCE"
    )


def pair_text(binding: GemmBinding, each: PairRead | PairPack) -> str:
    """A read, or what makes a register of a piece."""
    if isinstance(each, PairRead):
        lane = binding.lane(binding.read_of(each.pair))
        return f"ROTA_READ_PAIR({of_pair(each.pair, each.copy)}, b_lane{lane}, {each.lds})"
    sources = ", ".join(map(of_pair, each.sources, each.copies))
    target = f"b[{each.copy}][{each.part}][{each.piece}][{each.register}]"
    return f"ROTA_PACK({target}, {sources}, {_NAMES[each.part % 2]})"


def lane_column(binding: GemmBinding) -> str:
    """The column that a lane has of a part's first, in source."""
    return f"lane_row * {binding.column_step}" if binding.column_step > 1 else "lane_row"


class PackSpacing:
    """Wait states between a pack and the matrix instruction that reads it: the compiler doesn't look into asm.

    Each instruction between counts as one, waits and barriers as none: the compiler may join them.
    """

    def __init__(self, tile: GemmTile) -> None:
        self._due = architecture_of(tile.machine).hazards.operand.value
        self._made: dict[tuple[int, int, int], int] = {}
        self._now = 0

    def before(self, instruction: BoundInstruction) -> int:
        """Wait states that are missing before an instruction; they count as spent from here on."""
        missing = 0
        if isinstance(instruction, Mfma):
            part, copies = instruction.factor(Factor.B)
            pieces = enumerate(copies, instruction.step * len(copies))
            made = [self._made.get((part, piece, copy), -self._due) for piece, copy in pieces]
            missing = self._missing(made)
        self._now += missing + 1
        if isinstance(instruction, PairPack):
            self._made[instruction.part, instruction.piece, instruction.copy] = self._now
        return missing

    def at_the_end(self) -> int:
        """Wait states that are missing if a matrix instruction that reads any of it follows at once."""
        return self._missing([*self._made.values(), -self._due])

    def _missing(self, made: list[int]) -> int:
        return max(0, max(made) + self._due - self._now)
