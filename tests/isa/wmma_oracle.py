"""Matrix products of gfx1250 against plain Python: asks for each element where it lies, and sums fractions.

Lanes are two halves, h = lane / 16, of rows or columns i = lane % 16. A lane of A holds row i, one of B column i, and
the elements of K in runs: a run for each half in turn (Triton 3.9's own conversions to linear layouts; of formats under
8 bits a run has 32). A register of the result has row r + 8 h of column i; results of 16 bits lie two in a register.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, reduce
from random import Random

import numpy as np

from rota.errors import IsaError
from rota.isa.decoded import decode
from rota.isa.disassembly import Instruction
from rota.targets.cdna5 import CDNA5
from tests.isa.matrix_oracle import ieee
from tests.isa.plain import numbers as n
from tests.isa.plain.judge import Verdict
from tests.isa.plain.numbers import Num
from tests.isa.plain.small import value_of as small_number
from tests.isa.plain_gfx12.cases import Case, wave_of
from tests.isa.plain_gfx12.conversions import form_of
from tests.isa.plain_gfx12.judge import assembled
from tests.isa.plain_gfx12.machine import LANES, M32

A, B, C, D, SCALES = 0, 16, 32, 48, (50, 52)  # where the operands are; a scaled product adds to its own result
WIDTH = {"f32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4, "i8": 8, "u8": 8}
SMALL = {"fp8": (4, 3), "bf8": (5, 2), "fp6": (2, 3), "bf6": (3, 2), "fp4": (2, 1)}
FORMATS = {"fp8": "MATRIX_FMT_FP8", "bf8": "MATRIX_FMT_BF8", "fp6": "MATRIX_FMT_FP6", "bf6": "MATRIX_FMT_BF6",
           "fp4": "MATRIX_FMT_FP4"}  # fmt: skip
SCALE_FORMATS = {"e8m0": "", "e5m3": "MATRIX_SCALE_FMT_E5M3", "e4m3": "MATRIX_SCALE_FMT_E4M3"}
_NAME = re.compile(r"v_wmma_(scale16_|scale_)?(f32|f16|bf16f32|bf16|i32)_(\d+)x(\d+)x(\d+)_(\w+)")


@cache
def number_of(kind: str, code: int) -> Num:
    """A code as a number, an infinity or a NaN."""
    if kind in {"fp8", "bf8"}:
        return small_number(code, form_of(kind))
    if kind in n.FORMATS:
        return n.unpack(code, kind)
    return n.number(value_of(kind, code))


@cache
def value_of(kind: str, code: int) -> Fraction:
    """A finite code as a number."""
    if kind in SMALL:
        return ieee(code, *SMALL[kind])
    if kind in n.FORMATS:
        return n.unpack(code, kind).value
    return Fraction(n.signed(code, 8) if kind == "i8" else code)


@cache
def scale_of(kind: str, code: int) -> Fraction:
    """A scale: a power of two, or a float without sign and with a bias of 15, or one of 8 bits."""
    if kind == "e8m0":
        return Fraction(2) ** (code - 127)
    return ieee(code, 5, 3) if kind == "e5m3" else ieee(code, 4, 3)


@dataclass(slots=True)
class Side:
    """A or B: its elements by row (or column) and k, and its scales by row and block."""

    kind: str
    rows: int
    depth: int
    codes: list[list[int]] = field(default_factory=list)
    scales: list[list[int]] = field(default_factory=list)
    scale: str = ""
    block: int = 0
    upper: bool = False  # its scales are in lanes 16 to 31
    negated: bool = False

    @property
    def registers(self) -> int:
        return self.rows * self.depth * WIDTH[self.kind] // len(LANES) // 32

    def run(self) -> int:
        """How many elements of K a half of the lanes has before it is the other one's turn."""
        width = WIDTH[self.kind]
        if width == 32:
            return 2
        return 32 if width < 8 else 16 if width == 8 and self.depth == 128 else 8

    def lanes(self) -> list[int]:
        """What each lane's registers hold, as one integer; further rows than 16 come in further registers."""
        out, run, width = [0] * len(LANES), self.run(), WIDTH[self.kind]
        for row in range(self.rows):
            for k in range(self.depth):
                turn, place = divmod(k, run)
                lane, element = row % 16 + 16 * (turn % 2), turn // 2 * run + place + row // 16 * self.depth // 2
                out[lane] |= self.codes[row][k] << width * element
        return out

    def number(self, row: int, k: int) -> Num:
        """An element that may be no number."""
        value = number_of(self.kind, self.codes[row][k])
        if self.block and self.scale == "e8m0" and self.scales[row][k // self.block] == _NO_SCALE:
            return n.NAN
        if self.block:
            value = n.times(value, n.number(scale_of(self.scale, self.scales[row][k // self.block])))
        return n.minus(value) if self.negated else value

    def element(self, row: int, k: int) -> Fraction:
        value = value_of(self.kind, self.codes[row][k])
        if self.block:
            value *= scale_of(self.scale, self.scales[row][k // self.block])
        return -value if self.negated else value


@dataclass(slots=True)
class Product:
    """One instruction, with its operands as matrices."""

    name: str
    total: str
    left: Side
    right: Side
    added: list[list[Fraction]]
    exact: bool
    odd: bool = False  # with infinities and NaNs among the factors
    negated: bool = False
    absolute: bool = False

    def is_odd(self, row: int, column: int) -> str:
        """What the sum is if it isn't a number: "nan", or an infinity with its sign."""
        terms = [n.times(self.left.number(row, k), self.right.number(column, k)) for k in range(self.left.depth)]
        total = reduce(n.plus, terms)
        return "nan" if total.nan else f"{'-' * total.negative}inf" if total.inf else ""

    def element(self, row: int, column: int) -> tuple[Fraction, Fraction]:
        """An element of the result before rounding, and the sum of its terms' sizes."""
        terms = [self.left.element(row, k) * self.right.element(column, k) for k in range(self.left.depth)]
        more = self.added[row][column]
        more = abs(more) if self.absolute else more
        terms.append(-more if self.negated else more)
        return sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0))


def place_of(row: int, column: int, total: str) -> tuple[int, int, int]:
    """Register, lane and shift of an element of a result."""
    lane, number = column + 16 * (row % 16 // 8), row % 8 + row // 16 * 8
    return (number // 2, lane, 16 * (number % 2)) if total in {"f16", "bf16"} else (number, lane, 0)


@cache
def _code_of(kind: str, halves: int) -> int:
    """The code of so many halves; of formats without halves of so many."""
    number = n.number(Fraction(halves, 2 if kind != "fp4" else 1))
    if kind in n.FORMATS:
        return n.pack(number, kind)
    return next(code for code in range(1 << WIDTH[kind]) if value_of(kind, code) == number.value)


def _drawn_code(random: Random, kind: str, *, exact: bool) -> int:
    """Small numbers; or any that are finite."""
    if kind in {"i8", "u8"}:
        return random.randrange(256)
    if exact:
        return _code_of(kind, random.choice((-2, -1, -1, 0, 1, 1, 2, 3, -3)))
    if kind in n.FORMATS:
        return n.pack(n.from_float(random.gauss(0, 1)), kind)
    code = random.randrange(1 << WIDTH[kind])
    return code & 0xBF if kind in {"fp8", "bf8"} else code


def _drawn_scale(random: Random, kind: str) -> int:
    if kind == "e8m0":
        return random.randrange(125, 130)
    return random.randrange(8 * 14, 8 * 17) if kind == "e5m3" else random.randrange(8 * 6, 8 * 9)


def _drawn_side(random: Random, kind: str, rows: int, depth: int, *, exact: bool) -> Side:
    side = Side(kind, rows, depth)
    side.codes = [[_drawn_code(random, kind, exact=exact) for _ in range(depth)] for _ in range(rows)]
    return side


def drawn_product(random: Random, opcode: str) -> Product:
    found = _NAME.fullmatch(opcode)
    assert found is not None
    scaled, total, rows, columns, depth, kinds = found.groups()
    exact = random.random() < 0.5 or total == "i32"
    left, right = _drawn_kinds(random, kinds)
    sides = [
        _drawn_side(random, left, int(rows), int(depth), exact=exact),
        _drawn_side(random, right, int(columns), int(depth), exact=exact),
    ]
    for side in sides if scaled else ():
        side.block = 16 if scaled == "scale16_" else 32
        side.scale = random.choice(tuple(SCALE_FORMATS)) if left == right == "fp4" else "e8m0"
        side.upper = side.rows == 16 and random.random() < 0.3
        count = side.depth // side.block
        side.scales = [[_drawn_scale(random, side.scale) for _ in range(count)] for _ in range(side.rows)]
    if sides[0].block and sides[0].scale != sides[1].scale:
        sides[1].scale = sides[0].scale
        sides[1].scales = [[_drawn_scale(random, sides[0].scale) for _ in row] for row in sides[1].scales]
    limit = 1 << 31 if total == "i32" else 9
    added = [[Fraction(random.randrange(-limit, limit)) for _ in range(int(columns))] for _ in range(int(rows))]
    product = Product(opcode, total, sides[0], sides[1], added, exact)
    if total != "i32" and random.random() < 0.3:
        product.odd = True
        for side in sides:
            _spoil(random, side)
    if kinds in {"f16", "bf16"}:
        product.left.negated, product.right.negated, product.negated, product.absolute = (
            random.random() < 0.2 for _ in range(4)
        )
    return product


_NO_SCALE = 0xFF
_ODD = {
    "f16": (0x7C00, 0xFC00, 0x7E00),
    "bf16": (0x7F80, 0xFF80, 0x7FC0),
    "fp8": (0x7F, 0xFF),
    "bf8": (0x7C, 0xFC, 0x7F),
}


def _spoil(random: Random, side: Side) -> None:
    """Puts infinities and NaNs to a few places, and a scale that is none."""
    for _ in range(3 if side.kind in _ODD else 0):
        side.codes[random.randrange(side.rows)][random.randrange(side.depth)] = random.choice(_ODD[side.kind])
    if side.block and side.scale == "e8m0":
        side.scales[random.randrange(side.rows)][random.randrange(side.depth // side.block)] = _NO_SCALE


def _drawn_kinds(random: Random, kinds: str) -> tuple[str, str]:
    if kinds == "f8f6f4":
        return random.choice(tuple(FORMATS)), random.choice(tuple(FORMATS))
    if kinds == "iu8":
        return random.choice(("i8", "u8")), random.choice(("i8", "u8"))
    left, _, right = kinds.partition("_")
    left = {"f4": "fp4"}.get(left, left)
    return left, right or left


def _registers(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def _sum_kind(product: Product) -> str:
    """The format of C."""
    return "f32" if product.total == "bf16f32" else product.total


def _result_kind(product: Product) -> str:
    return "bf16" if product.total == "bf16f32" else product.total


def _count(product: Product, kind: str) -> int:
    return product.left.rows // 2 // (2 if kind in {"f16", "bf16"} else 1)


def _target(product: Product) -> int:
    return C if product.left.block or product.left.rows == 32 else D


def text_of(product: Product) -> str:
    left, right = product.left, product.right
    operands = [
        _registers(_target(product), _count(product, _result_kind(product))), _registers(A, left.registers),
        _registers(B, right.registers), _registers(C, _count(product, _sum_kind(product))),
    ]  # fmt: skip
    fields = []
    for side, name, first in ((left, "a", SCALES[0]), (right, "b", SCALES[1])):
        if side.block:
            operands.append(_registers(first, 128 // side.block // 4))
        if "f8f6f4" in product.name and side.kind != "fp8":
            fields.append(f"matrix_{name}_fmt:{FORMATS[side.kind]}")
    for side, name in ((left, "a"), (right, "b")) if left.block else ():
        fields += [f"matrix_{name}_scale:MATRIX_SCALE_ROW1"] if side.upper else []
    for side, name in ((left, "a"), (right, "b")) if left.block and left.scale != "e8m0" else ():
        fields.append(f"matrix_{name}_scale_fmt:{SCALE_FORMATS[side.scale]}")
    if left.kind in {"f16", "bf16"}:
        low, high = ([int(left.negated), int(right.negated), last] for last in (product.negated, product.absolute))
        fields += [
            f"neg_{name}:[{','.join(str(int(each)) for each in bits)}]" for name, bits in (("lo", low), ("hi", high))
        ]
    elif left.kind in {"i8", "u8"}:
        fields.append(f"neg_lo:[{int(left.kind == 'i8')},{int(right.kind == 'i8')},0]")
    return f"{product.name} {', '.join(operands)} {' '.join(fields)}"


def _put(case: Case, first: int, lanes: Sequence[int], count: int) -> None:
    for lane, bits in enumerate(lanes):
        case.after.put(first, lane, bits, count)


def _fill(case: Case, product: Product) -> None:
    """Writes the matrices to where the instruction looks for them."""
    for side, first, scale in ((product.left, A, SCALES[0]), (product.right, B, SCALES[1])):
        _put(case, first, side.lanes(), side.registers)
        for row, codes in enumerate(side.scales):
            bits = sum(code << 8 * place for place, code in enumerate(codes))
            case.after.put(scale, row + 16 * side.upper, bits, len(codes) // 4)
    kind = _sum_kind(product)
    for row, added in enumerate(product.added):
        for column, value in enumerate(added):
            register, lane, shift = place_of(row, column, kind)
            bits = int(value) & M32 if kind == "i32" else n.pack(n.number(value), kind)
            kept = case.after.v[C + register][lane] & ~((0xFFFF if kind in {"f16", "bf16"} else M32) << shift)
            case.after.v[C + register][lane] = kept | bits << shift


def compare(product: Product, rows: Sequence[Sequence[int]], places: Sequence[tuple[int, int]]) -> str:
    """Some elements of the result: the same where sums are exact, else within a bound of rounding."""
    kind = _result_kind(product)
    for row, column in places:
        register, lane, shift = place_of(row, column, kind)
        bits = int(rows[register][lane]) >> shift & (0xFFFF if kind in {"f16", "bf16"} else M32)
        odd = product.is_odd(row, column) if product.odd else ""
        if odd:
            found = n.unpack(bits, kind)
            if ("nan" if found.nan else f"{'-' * found.negative}inf" if found.inf else "") != odd:
                return f"({row}, {column}) is {bits:#x}, should be {odd}"
            continue
        wanted, size = product.element(row, column)
        if kind == "i32":
            if bits != int(wanted) & M32:
                return f"({row}, {column}) is {bits:#x}, should be {int(wanted) & M32:#x}"
            continue
        found = n.unpack(bits, kind)
        exact = n.unpack(n.pack(n.number(wanted), kind), kind)
        if found.nan or found.inf or exact.inf:
            return f"({row}, {column}) is {bits:#x}, should be {float(wanted)}"
        bound = Fraction(0) if product.exact else size * (product.left.depth + 1) / (1 << 24) + _unit(wanted, kind)
        if abs(found.value - exact.value) > bound:
            return f"({row}, {column}) is {float(found.value)}, should be {float(wanted)}"
    return "right"


def _unit(value: Fraction, kind: str) -> Fraction:
    """The distance of neighbours in a format."""
    return abs(value) / (1 << n.FORMATS[kind][1]) + Fraction(1, 1 << 24)


def _run(random: Random, product: Product, instruction: Instruction) -> str:
    case = Case(random)
    case.active = [True] * len(LANES)
    _fill(case, product)
    case.begin()
    wave = wave_of(case.before)
    try:
        with np.errstate(all="ignore"):
            decode(instruction, CDNA5).act(wave)
    except IsaError:
        return "refused"
    every = [(row, column) for row in range(product.left.rows) for column in range(product.right.rows)]
    first = _target(product)
    changed = range(first, first + _count(product, _result_kind(product)))
    for row in range(len(case.after.v)):
        if row not in changed and wave.v[row].tolist() != case.after.v[row]:
            return f"v{row} changed"
    return compare(product, wave.v[first : first + 16].tolist(), random.sample(every, 24))


def judge_products(random: Random, arch: str, opcodes: Sequence[str], count: int) -> Iterator[tuple[str, Verdict]]:
    """Draws so many products of each opcode, and runs them."""
    del arch
    products = [drawn_product(random, opcode) for opcode in opcodes for _ in range(count)]
    texts = [text_of(each) for each in products]
    for product, text, instruction in zip(products, texts, assembled(texts), strict=True):
        outcome = "not assembled" if instruction is None else _run(random, product, instruction)
        yield product.name, Verdict(f"{text}{' (exact)' if product.exact else ''}", outcome)


_HALVES = [f"v_wmma_{total}_16x16x32_{kind}" for kind, totals in
           (("f16", ("f32", "f16")), ("bf16", ("f32", "bf16", "bf16f32"))) for total in totals]  # fmt: skip
_EIGHTHS = [
    f"v_wmma_{total}_16x16x{depth}_{left}_{right}"
    for total in ("f32", "f16")
    for depth in (64, 128)
    for left in ("fp8", "bf8")
    for right in ("fp8", "bf8")
]
_ANY = [f"v_wmma_{scale}f32_{shape}" for scale in ("", "scale_", "scale16_")
        for shape in ("16x16x128_f8f6f4", "32x16x128_f4")]  # fmt: skip
OPCODES = (*_HALVES, *_EIGHTHS, *_ANY, "v_wmma_i32_16x16x64_iu8", "v_wmma_f32_16x16x4_f32")
