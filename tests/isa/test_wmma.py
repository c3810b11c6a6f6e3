"""Every WMMA that the interpreter knows, against a product of whole matrices in plain Python.

Where an element lies is spelt out here once more, lane by lane, from the layout that Triton and AMD's CK Tile give.
Products of such short numbers are exact as Python's floats, and `fsum` rounds once. The assembler makes the
instructions, so that names and register counts are its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from rota.errors import IsaError
from rota.isa.decoded import decode
from rota.isa.disassembly import Instruction
from rota.isa.launch.interleaving import LATEST
from rota.isa.memory.memories import Memory
from rota.isa.wave.wave import Faults, Wave
from rota.targets.cdna5 import CDNA5, WMMA_FORMS
from tests.isa.gfx1250 import listed
from tests.isa.matrix_oracle import DECODE, WIDTH
from tests.isa.single import written_lds

LANES = 32
_DECODE = {**DECODE, "fp8": DECODE["ocp fp8"], "bf8": DECODE["ocp bf8"], "u8": Fraction}
_WIDTH = {**WIDTH, "u8": 8, "i32": 32}
_UNIT = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
_TINY = {"f32": 2.0**-150, "f16": 2.0**-25, "bf16": 2.0**-134}
D, A, B, C, SCALE_A, SCALE_B = 0, 32, 64, 96, 120, 124  # first registers


Addends = dict[tuple[int, int], float]


class Case(NamedTuple):
    """What an instruction does; `more` are its modifiers."""

    name: str
    a: str
    b: str
    c: str
    d: str
    depth: int
    run: int
    rows: int = 16
    more: str = ""
    scales: tuple[str, str] | None = None
    block: int = 32
    first: tuple[int, int] = (0, 0)  # lane of the first row's scales, and of the first column's
    run_b: int | None = None


def wave_of_32() -> Wave:
    faults = Faults()
    return Wave(
        architecture=CDNA5,
        number=0,
        faults=faults,
        memory=Memory((), faults),
        lds=written_lds(faults),
        at_issue=LATEST.driver(0).at_issue(),
    )


@cache
def instruction(text: str) -> Instruction:
    return listed(text)[0]


def run(text: str, wave: Wave) -> None:
    with np.errstate(all="ignore"):
        decode(instruction(text), CDNA5).act(wave)


def bits_of(wave: Wave, first: int, lane: int, place: int, width: int) -> int:
    whole = 0
    for register in range(place * width // 32, ((place + 1) * width - 1) // 32 + 1):
        whole |= int(wave.v[first + register, lane]) << 32 * (register - place * width // 32)
    return whole >> place * width % 32 & (1 << width) - 1


def factor_at(row: int, k: int, run_length: int, depth: int) -> tuple[int, int]:
    """The lane of an element of A or B, and its place among those of that lane."""
    half = k // run_length % 2
    place = k // (2 * run_length) * run_length + k % run_length
    return row % 16 + 16 * half, place + row // 16 * (depth // 2)


def sum_at(row: int, column: int) -> tuple[int, int]:
    return column + 16 * (row % 16 // 8), row % 8 + 8 * (row // 16)


def scale_of(code: int, kind: str) -> float:
    if kind == "E8":
        return math.ldexp(1, code - 127)
    if kind == "E4M3":
        return value_of(code, "fp8")
    power, fraction = code >> 3, code & 7
    return math.ldexp(8 + fraction if power else fraction, max(power, 1) - 18)


@cache
def value_of(code: int, kind: str) -> float:
    return float(_DECODE[kind](code))


def width_of(kind: str, count: int) -> int:
    return count * _WIDTH[kind] // 32


def text_of(case: Case, addend: str = "") -> str:
    counts = (
        width_of(case.d, case.rows // 2),
        width_of(case.a, case.rows * case.depth // LANES),
        width_of(case.b, 16 * case.depth // LANES),
        width_of(case.c, case.rows // 2),
    )
    spans = [f"v[{first}:{first + count - 1}]" for first, count in zip((D, A, B, C), counts, strict=True)]
    spans[3] = addend or spans[3]
    if case.scales:
        wide = case.block == 16
        spans += [f"v[{each}:{each + 1}]" if wide else f"v{each}" for each in (SCALE_A, SCALE_B)]
    return f"{case.name} {', '.join(spans)} {case.more}".strip()


def draw(rng: np.random.Generator, kind: str, count: int, *, small: bool) -> Any:
    """Registers of `count` elements a lane: all finite values, or small integers."""
    width = _WIDTH[kind]
    if kind == "f32" or (small and kind in {"f16", "bf16", "i32"}):
        values: Any = rng.integers(-8, 9, (LANES, count)) if small else rng.standard_normal((LANES, count))
        if kind == "bf16":
            codes = values.astype(np.float32).view(np.uint32) >> np.uint32(16)
        else:
            form = {"f32": np.float32, "f16": np.float16, "i32": np.int32}[kind]
            codes = values.astype(form).view({16: np.uint16, 32: np.uint32}[width])
        codes = codes.astype(np.uint64)
    elif kind == "i32":
        codes = rng.integers(0, 1 << 32, (LANES, count)).astype(np.uint64)
    elif width == 16:
        values = rng.standard_normal((LANES, count)).astype(np.float32)
        codes = values.astype(np.float16).view(np.uint16) if kind == "f16" else values.view(np.uint32) >> np.uint32(16)
    else:
        legal = {"fp8": {0x7F, 0xFF}, "bf8": {*range(0x7C, 0x80), *range(0xFC, 0x100)}}.get(kind, set())
        codes = rng.choice([code for code in range(1 << width) if code not in legal], (LANES, count))
    string = (codes.astype(np.uint64)[:, :, None] >> np.arange(width, dtype=np.uint64) & np.uint64(1)).astype(np.uint8)
    return np.packbits(string.reshape(LANES, -1), axis=1, bitorder="little").view(np.uint32).T


def filled(case: Case, seed: int, *, small: bool = False) -> Wave:
    rng, wave = np.random.default_rng(seed), wave_of_32()
    for first, kind, count in (
        (A, case.a, case.rows * case.depth // LANES),
        (B, case.b, 16 * case.depth // LANES),
        (C, case.c, case.rows // 2),
    ):
        held = draw(rng, kind, count, small=small)
        wave.v[first : first + len(held)] = held
    if case.scales:
        for first, kind in zip((SCALE_A, SCALE_B), case.scales, strict=True):
            low, high = {"E8": (120, 135), "E5M3": (0, 255), "E4M3": (0, 127)}[kind]
            wave.v[first : first + 2] = rng.integers(low, high, (LANES, 8)).astype(np.uint8).view(np.uint32).T
    wave.s[126] = wave.s[127] = 0  # EXEC
    wave.update_mask()
    return wave


def factors_of(case: Case, wave: Wave, number: int) -> list[list[float]]:
    """A by rows or B by columns, scaled."""
    first, kind, sides = ((A, case.a, case.rows), (B, case.b, 16))[number]
    run_length = case.run_b if number and case.run_b else case.run
    rows = []
    for index in range(sides):
        row = []
        for k in range(case.depth):
            lane, place = factor_at(index, k, run_length, case.depth)
            value = value_of(bits_of(wave, first, lane, place, _WIDTH[kind]), kind)
            if case.scales:
                held = bits_of(wave, (SCALE_A, SCALE_B)[number], case.first[number] + index, k // case.block, 8)
                value *= scale_of(held, case.scales[number])
            row.append(value)
        rows.append(row)
    return rows


def check(case: Case, wave: Wave, *, exact: bool = False, addends: Addends | None = None) -> None:
    left, right = factors_of(case, wave, 0), factors_of(case, wave, 1)
    for row, column in ((row, column) for row in range(case.rows) for column in range(16)):
        lane, place = sum_at(row, column)
        held = value_of(bits_of(wave, C, lane, place, _WIDTH[case.c]), case.c)
        terms = [a * b for a, b in zip(left[row], right[column], strict=True)]
        terms.append(held if addends is None else addends[row, column])
        wanted = math.fsum(terms)
        got = value_of(bits_of(wave, D, lane, place, _WIDTH[case.d]), case.d)
        if case.d == "i32":
            assert (got - wanted) % (1 << 32) == 0, (row, column)
            continue
        # One rounding to the format, and those of a sum in float64.
        bound = 0.0 if exact else abs(wanted) * _UNIT[case.d] + math.fsum(map(abs, terms)) * 2.0**-44 + _TINY[case.d]
        assert abs(got - wanted) <= bound, (row, column)


EIGHTHS = [(a, b) for a in ("fp8", "bf8") for b in ("fp8", "bf8")]
PLAIN = [
    Case("v_wmma_f32_16x16x32_f16", "f16", "f16", "f32", "f32", 32, 8),
    Case("v_wmma_f32_16x16x32_f16", "f16", "f16", "f32", "f32", 32, 8, more="matrix_a_reuse matrix_b_reuse"),
    Case("v_wmma_f16_16x16x32_f16", "f16", "f16", "f16", "f16", 32, 8),
    Case("v_wmma_f32_16x16x32_bf16", "bf16", "bf16", "f32", "f32", 32, 8),
    Case("v_wmma_bf16_16x16x32_bf16", "bf16", "bf16", "bf16", "bf16", 32, 8),
    Case("v_wmma_bf16f32_16x16x32_bf16", "bf16", "bf16", "f32", "bf16", 32, 8),
    *(Case(f"v_wmma_f32_16x16x64_{a}_{b}", a, b, "f32", "f32", 64, 8) for a, b in EIGHTHS),
    *(Case(f"v_wmma_f32_16x16x128_{a}_{b}", a, b, "f32", "f32", 128, 16) for a, b in EIGHTHS),
    *(Case("v_wmma_i32_16x16x64_iu8", a, b, "i32", "i32", 64, 8, more=more) for a, b, more in (
        ("u8", "u8", ""), ("i8", "u8", "neg_lo:[1,0,0]"), ("u8", "i8", "neg_lo:[0,1,0]"),
        ("i8", "i8", "neg_lo:[1,1,0]"),
    )),
    Case("v_wmma_f32_32x16x128_f4", "fp4", "fp4", "f32", "f32", 128, 32, rows=32),
]  # fmt: skip


def formats(a: str, b: str) -> str:
    """The modifiers for them; fp8 goes without saying."""
    named = [f"matrix_{each}_fmt:MATRIX_FMT_{kind.upper()}" for each, kind in (("a", a), ("b", b)) if kind != "fp8"]
    return " ".join(named)


def runs(kind: str) -> int:
    return 16 if kind.endswith("8") else 32


ANY = [
    Case("v_wmma_f32_16x16x128_f8f6f4", a, b, "f32", "f32", 128, runs(a), more=formats(a, b))
    for a, b in (("fp8", "fp8"), ("bf8", "fp8"), ("fp6", "fp6"), ("bf6", "fp4"), ("fp4", "fp4"))
]
_PRODUCT = "f32_16x16x128_f8f6f4"
_ROW_1 = "matrix_{0}_scale:MATRIX_SCALE_ROW1"
_FORM = "matrix_{0}_scale_fmt:MATRIX_SCALE_FMT_{1}"
SCALED = [
    *(
        Case(
            f"v_wmma_scale{'16' * (block == 16)}_{_PRODUCT}", a, b, "f32", "f32", 128, runs(a), scales=("E8", "E8"),
            run_b=runs(b), block=block, more=formats(a, b),
        )
        for block in (32, 16)
        for a, b in (("fp8", "bf8"), ("fp6", "fp8"), ("bf8", "fp4"), ("fp4", "bf6"))
    ),
    Case(f"v_wmma_scale_{_PRODUCT}", "fp8", "fp8", "f32", "f32", 128, 16, scales=("E8", "E8"), first=(16, 0),
         more=_ROW_1.format("a")),
    Case(f"v_wmma_scale16_{_PRODUCT}", "fp8", "fp8", "f32", "f32", 128, 16, scales=("E8", "E8"), block=16,
         first=(0, 16), more=_ROW_1.format("b")),
    Case(f"v_wmma_scale16_{_PRODUCT}", "fp4", "fp4", "f32", "f32", 128, 32, scales=("E5M3", "E4M3"), block=16,
         more=f"{formats('fp4', 'fp4')} {_FORM.format('a', 'E5M3')} {_FORM.format('b', 'E4M3')}"),
    *(
        Case(f"v_wmma_scale{which}_f32_32x16x128_f4", "fp4", "fp4", "f32", "f32", 128, 32, rows=32, block=block,
             scales=("E4M3", "E4M3"), first=(0, 16),
             more=f"{rows} {_ROW_1.format('b')} {_FORM.format('a', 'E4M3')} {_FORM.format('b', 'E4M3')}".strip())
        for which, block in (("", 32), ("16", 16))
        for rows in ("", _ROW_1.format("a"))  # all lanes hold scales of A's rows
    ),
]  # fmt: skip


def label(case: Case) -> str:
    return f"{case.name} {case.a} {case.b} {case.more}"


@pytest.mark.parametrize("case", [*PLAIN, *ANY, *SCALED], ids=label)
def test_a_product_is_that_of_matrices(case: Case) -> None:
    wave = filled(case, 1)
    run(text_of(case), wave)
    check(case, wave)


@pytest.mark.parametrize("case", [each for each in PLAIN if each.depth == 32 and each.d != "bf16"], ids=label)
def test_small_integers_come_out_exactly(case: Case) -> None:
    wave = filled(case, 2, small=True)
    run(text_of(case), wave)
    check(case, wave, exact=True)


@pytest.mark.parametrize(
    "case",
    [
        Case(f"v_wmma_f16_16x16x{k}_{a}_{b}", a, b, "f16", "f16", k, r)
        for k, r in ((64, 8), (128, 16))
        for a, b in EIGHTHS
    ],
    ids=label,
)
def test_eight_bits_may_end_in_halves(case: Case) -> None:
    wave = filled(case, 3, small=True)
    for first in (A, B):  # large ones would overflow
        wave.v[first : first + 16] &= np.uint32(0xBFBF_BFBF)
    run(text_of(case), wave)
    check(case, wave)


def test_a_result_is_rounded_once_and_may_overflow() -> None:
    case = PLAIN[2]
    wave = filled(case, 4)
    wave.v[A : A + 8] = wave.v[B : B + 8] = 0x7BFF_7BFF
    run(text_of(case), wave)
    assert (wave.v[D : D + 4] == 0x7C00_7C00).all()


def test_integers_wrap() -> None:
    case = PLAIN[-2]
    wave = filled(case, 5)
    wave.v[A : A + 8] = wave.v[B : B + 8] = 0x7F7F_7F7F
    wave.v[C : C + 8] = 0x7FFF_FFFF
    run(text_of(case), wave)
    assert (wave.v[D : D + 8] == 0x7FFF_FFFF + 64 * 127 * 127).all()


@pytest.mark.parametrize(
    ("case", "text", "value"),
    [
        (PLAIN[0], "1.0", 1.0),
        (PLAIN[0], "0", 0.0),
        (PLAIN[0], "3", 3 * 2.0**-149),
        (PLAIN[2], "-2.0", -2.0),
        (PLAIN[4], "0.5", 0.5),
        (PLAIN[5], "4.0", 4.0),
        (PLAIN[-2], "-7", -7.0),
        (SCALED[0], "2.0", 2.0),
    ],
)
def test_c_may_be_a_constant(case: Case, text: str, value: float) -> None:
    wave = filled(case, 6)
    run(text_of(case, text), wave)
    check(case, wave, addends={(row, column): value for row in range(16) for column in range(16)})


@pytest.mark.parametrize("case", [PLAIN[0], PLAIN[2], PLAIN[3], PLAIN[6], ANY[0], SCALED[0]], ids=label)
@pytest.mark.parametrize(("more", "change"), [
    ("neg_lo:[0,0,1]", lambda value: -value),
    ("neg_hi:[0,0,1]", abs),
    ("neg_lo:[0,0,1] neg_hi:[0,0,1]", lambda value: -abs(value)),
])  # fmt: skip
def test_c_may_be_negated_after_its_sign_is_dropped(case: Case, more: str, change: Any) -> None:
    wave = filled(case, 7)
    run(text_of(case._replace(more=f"{case.more} {more}".strip())), wave)
    addends = {
        (row, column): change(value_of(bits_of(wave, C, *sum_at(row, column), _WIDTH[case.c]), case.c))
        for row in range(16)
        for column in range(16)
    }
    check(case, wave, addends=addends)


@pytest.mark.parametrize("case", [PLAIN[0], PLAIN[4]], ids=label)
@pytest.mark.parametrize(("low", "high"), [((1, 0), (0, 0)), ((0, 0), (0, 1)), ((1, 1), (1, 0))])
def test_halves_of_factors_may_be_negated(case: Case, low: Sequence[int], high: Sequence[int]) -> None:
    wave = filled(case, 8)
    more = f"neg_lo:[{low[0]},{low[1]},0] neg_hi:[{high[0]},{high[1]},0]"
    run(text_of(case._replace(more=more)), wave)
    for first, flip in ((A, low[0] << 15 | high[0] << 31), (B, low[1] << 15 | high[1] << 31)):
        wave.v[first : first + 8] ^= np.uint32(flip)
    check(case, wave)


@pytest.mark.parametrize(("scale", "code"), [("s4", 0x7F80_8182), ("1", 1)])
def test_scales_may_be_those_of_every_lane(scale: str, code: int) -> None:
    case = SCALED[0]
    wave = filled(case, 9)
    wave.s[4] = code
    run(text_of(case).replace(f"v{SCALE_A},", f"{scale},"), wave)
    wave.v[SCALE_A] = code
    check(case, wave)


def test_a_scale_may_be_no_number() -> None:
    case = SCALED[0]
    for first, code in ((SCALE_A, 0xFF), (SCALE_B, 0xFF)):
        wave = filled(case, 10)
        wave.v[first, 3] = wave.v[first, 3] & np.uint32(0xFFFF_FF00) | np.uint32(code)
        run(text_of(case), wave)
        found = np.isnan(wave.f[D : D + 8])
        rows = np.array([[lane // 16 * 8 + each == 3 for lane in range(LANES)] for each in range(8)])
        columns = np.broadcast_to(np.arange(LANES) % 16 == 3, (8, LANES))
        assert (found == (rows if first == SCALE_A else columns)).all()


def test_e5m3_has_a_code_that_is_no_number() -> None:
    case = next(each for each in SCALED if each.scales == ("E5M3", "E4M3"))
    wave = filled(case, 11)
    wave.v[SCALE_A : SCALE_A + 2] = 0xFFFF_FFFF
    run(text_of(case), wave)
    assert np.isnan(wave.f[D : D + 8]).all()


REFUSED = [*(form.name for form in WMMA_FORMS if form.sparse)]


@pytest.mark.parametrize("name", REFUSED)
def test_sparse_factors_are_refused_by_name(name: str) -> None:
    total, wide = name.split("_")[2], "x128_" in name
    last = 3 if total in {"f16", "bf16"} else 7
    index = "v[60:61]" if wide else "v60"
    with pytest.raises(IsaError) as caught:
        decode(instruction(f"{name} v[0:{last}], v[16:23], v[32:47], {index}"), CDNA5)
    assert [each.code for each in caught.value.findings] == ["I102"]
    assert name in caught.value.findings[0].message


@pytest.mark.parametrize(
    "text",
    [
        "v_wmma_i32_16x16x64_iu8 v[0:7], v[8:15], v[16:23], v[0:7] clamp",
        "v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:31], v[0:7] matrix_b_fmt:MATRIX_FMT_FP4",
        "v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[8:19], v[24:39], v[0:7] matrix_a_fmt:MATRIX_FMT_BF6",
        f"v_wmma_scale_{_PRODUCT} v[0:7], v[8:23], v[24:39], v[0:7], v40, v41 {_FORM.format('b', 'E4M3')}",
        "v_wmma_scale_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7], v40, 1.0",
        "v_wmma_f16_16x16x32_f16 v[0:3], v[8:15], v[16:23], 3",
        "v_wmma_f32_16x16x4_f32 v[0:7], v[8:9], v[16:17], v[0:7]",
    ],
)
def test_what_sources_leave_open_is_refused(text: str) -> None:
    with pytest.raises(IsaError) as caught:
        decode(instruction(text), CDNA5)
    assert [each.code for each in caught.value.findings] == ["I102"]


@pytest.mark.parametrize(
    ("text", "modifiers"),
    [
        ("v_wmma_f32_16x16x64_fp8_fp8 v[0:7], v[8:15], v[16:23], v[0:7]", ("neg_lo:[1,0,0]",)),
        ("v_wmma_i32_16x16x64_iu8 v[0:7], v[8:15], v[16:23], v[0:7]", ("neg_hi:[1,0,0]",)),
        ("v_wmma_f32_16x16x32_f16 v[0:7], v[8:15], v[16:23], v[0:7]", ("matrix_a_fmt:MATRIX_FMT_FP4",)),
        ("v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7]", ("matrix_a_fmt:5",)),
        ("v_wmma_f32_16x16x128_f8f6f4 v[0:7], v[8:15], v[24:39], v[0:7]", ()),
        ("v_wmma_f32_16x16x32_f16 v[0:7], v[8:15], v[16:23], v[0:3]", ()),
        ("v_wmma_f32_16x16x32_f16 v[0:7], v[8:15], v[16:23], s[0:7]", ()),
        ("v_wmma_f32_16x16x32_f16 v[0:7], v[8:15], v[16:23], 0x40490fdb", ()),
        ("v_wmma_scale16_f32_16x16x128_f8f6f4 v[0:7], v[8:23], v[24:39], v[0:7], v40, v[42:43]", ()),
    ],
)
def test_what_the_assembler_refuses_is_refused(text: str, modifiers: tuple[str, ...]) -> None:
    name, _, rest = text.partition(" ")
    made_up = Instruction(opcode=name, operands=tuple(rest.split(", ")), modifiers=modifiers, text=text, line=1)
    with pytest.raises(IsaError) as caught:
        decode(made_up, CDNA5)
    assert [each.code for each in caught.value.findings] == ["I102"]
