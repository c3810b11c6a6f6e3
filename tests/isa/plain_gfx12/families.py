"""Families of gfx1250's opcodes, each with its oracle: takes a seed, gives verdicts opcode by opcode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from tests.isa import tensor_oracle, wmma_oracle
from tests.isa.plain import numbers as n
from tests.isa.plain.draw import drawn_bits
from tests.isa.plain.families import Family, Judge
from tests.isa.plain.judge import Verdict
from tests.isa.plain_gfx12 import control, lds, memory
from tests.isa.plain_gfx12.cases import Draw, judge_cases
from tests.isa.plain_gfx12.conversions import SCALED
from tests.isa.plain_gfx12.draw import OPCODES, PAIRED, Drawn, drawn_pair, drawn_rows, drawn_text
from tests.isa.plain_gfx12.judge import assembled, fresh_state, judged
from tests.isa.plain_gfx12.machine import LANES, M0, M32, State
from tests.isa.plain_gfx12.scalar import SCALARS, run_scalar, scalar_text
from tests.isa.plain_gfx12.vector import run_vector

ATTEMPTS = 5
Case = tuple[str, State]


def _judge(draw: Callable[[Random, str, int], Case], run: Callable[[str, State], None]) -> Judge:
    """Draws a text and a state for each opcode, again while the assembler refuses it, and runs both machines."""

    def judge(random: Random, arch: str, opcodes: Sequence[str], count: int) -> Iterator[tuple[str, Verdict]]:
        del arch
        open_cases = [opcode for opcode in opcodes for _ in range(count)]
        for attempt in range(ATTEMPTS):
            drawn = [(opcode, *draw(random, opcode, attempt)) for opcode in open_cases]
            shown = assembled([text for _, text, _ in drawn])
            open_cases = [opcode for (opcode, _, _), found in zip(drawn, shown, strict=True) if found is None]
            for (opcode, text, state), instruction in zip(drawn, shown, strict=True):
                if instruction is not None:
                    yield opcode, judged(text, instruction, state, run)
        for opcode in dict.fromkeys(open_cases):
            yield opcode, Verdict(opcode, "not assembled")

    return judge


def _with_state(random: Random, drawn: Drawn) -> Case:
    """Some lanes have the ends of a format in all operands: there products overflow, and sums cancel."""
    held = {row: drawn_rows(random, kind) for row, kind in drawn.kinds.items()}
    for lane in LANES if random.random() < 0.5 else ():
        if lane % 4 == 0:
            for row, kind in drawn.kinds.items():
                bits = _extreme(random, kind)
                for part, lanes in enumerate(held[row]):
                    lanes[lane] = bits >> 32 * part & M32
    rows = {row + part: lanes for row, parts in held.items() for part, lanes in enumerate(parts)}
    state = fresh_state(random, rows)
    return drawn.text, state


def _extreme(random: Random, kind: str) -> int:
    """A float next to an end of its format, or one; of 16 bits one in each half."""
    if kind not in n.FORMATS:
        return drawn_bits(random, kind)
    exponent, mantissa = n.FORMATS[kind]
    width, top = n.BITS[kind], ((1 << exponent) - 1) << mantissa
    one = ((1 << exponent - 1) - 1) << mantissa
    bits = random.choice(
        (0, 1, (1 << mantissa) - 1, 1 << mantissa, one, one + 1, top - 1, top - 1, top, top + 1, top - 2)
    )
    bits |= random.getrandbits(1) << width - 1
    return bits | (_extreme(random, kind) << 16 if width == 16 and random.random() < 0.8 else 0) & M32


def _vector(random: Random, opcode: str, attempt: int) -> Case:
    text, state = _with_state(random, drawn_text(random, opcode, attempt))
    if "permlane16_swap" in opcode:
        state.s[126] = M32
    if opcode in SCALED:
        powers = [random.choice((127, 127, 120, 130, 0, 255, 1, 254, random.randrange(256))) for _ in LANES]
        state.v[38] = [power << 23 | random.getrandbits(23) for power in powers]
    for number in range(8):  # scalars that are numbers, too
        state.s[number] = drawn_bits(random, random.choice(("f32", "u32", "f16")))
    return text, state


def _pair(random: Random, opcode: str, attempt: int) -> Case:
    return _with_state(random, drawn_pair(random, opcode, attempt))


def _scalar(random: Random, opcode: str, attempt: int) -> Case:
    del attempt
    state = fresh_state(random)
    kind = "f16" if opcode.endswith("f16") and "f32" not in opcode else "f32"
    state.s[:106] = [drawn_bits(random, random.choice(("u32", kind))) for _ in range(106)]
    state.s[M0] = random.randrange(40)  # an index that stays among the registers
    return scalar_text(random, opcode), state


def _drawn(draws: Mapping[str, Draw]) -> Judge:
    def judge(random: Random, arch: str, opcodes: Sequence[str], count: int) -> Iterator[tuple[str, Verdict]]:
        del arch
        yield from judge_cases(draws, random, opcodes, count)

    return judge


def _quarter(judge: Judge) -> Judge:
    """A quarter as often as others: a case has thousands of products."""
    return lambda random, arch, opcodes, count: judge(random, arch, opcodes, -(-count // 4))


_PLAIN = "second definition, fractions and integers"
FAMILIES: list[Family] = [
    Family(name="vector", oracle=_PLAIN, opcodes=OPCODES, judge=_judge(_vector, run_vector)),
    Family(name="pairs", oracle=_PLAIN, opcodes=PAIRED, judge=_judge(_pair, run_vector)),
    Family(name="scalar", oracle="second definition, bit by bit", opcodes=SCALARS, judge=_judge(_scalar, run_scalar)),
    Family(
        name="LDS",
        oracle="second definition, bytes and lanes in lists",
        opcodes=tuple(lds.DRAWS),
        judge=_drawn(lds.DRAWS),
    ),
    Family(
        name="memory",
        oracle="second definition, bytes and lanes in lists",
        opcodes=tuple(memory.DRAWS),
        judge=_drawn(memory.DRAWS),
    ),
    Family(
        name="tensor copies",
        oracle="second definition, element by element",
        opcodes=tuple(tensor_oracle.DRAWS),
        judge=_drawn(tensor_oracle.DRAWS),
    ),
    Family(
        name="matrix",
        oracle="second definition, sums of fractions",
        opcodes=wmma_oracle.OPCODES,
        judge=_quarter(wmma_oracle.judge_products),
    ),
    Family(
        name="control",
        oracle="second definition, line by line",
        opcodes=tuple(control.DRAWS),
        judge=_quarter(control.judge_programs),
    ),
]
