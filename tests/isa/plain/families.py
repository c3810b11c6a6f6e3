"""Families of opcodes, each with its oracle: takes a seed, gives verdicts opcode by opcode.

Whoever adds opcodes adds a `Family` to FAMILIES: `python -m benchmarks.instructions` runs all of them, tests a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from rota.errors import IsaError
from tests.isa import matrix_checks, memory_oracles
from tests.isa.plain.draw import drawn_bits, drawn_rows, drawn_text, spec_of
from tests.isa.plain.draw_special import COMPARES, SCALED, SPECIALS, special_text
from tests.isa.plain.judge import Verdict, assembled, fresh_state, judged
from tests.isa.plain.machine import FUNCTIONS, LANES, ON_ITSELF, PACKED, State
from tests.isa.plain.scalar import SCALARS, run_scalar, scalar_text
from tests.isa.plain.special import run_vector
from tests.isa.single import running_on

ARCHITECTURES = ("gfx942", "gfx950")
Judge = Callable[[Random, str, Sequence[str], int], Iterator[tuple[str, Verdict]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Opcodes that are judged alike: `judge` takes a random source, an architecture, opcodes and how often to try each.

    An opcode that the assembler has no text of for that architecture gives no verdict.
    """

    name: str
    oracle: str
    opcodes: tuple[str, ...]
    judge: Judge


def _judge(draw: Callable[[Random, str, str], tuple[str, State]], run: Callable[[str, State], None]) -> Judge:
    """Draws a text and a state for each opcode, assembles all texts at once, and runs both machines."""

    def judge(random: Random, arch: str, opcodes: Sequence[str], count: int) -> Iterator[tuple[str, Verdict]]:
        drawn = [(opcode, *draw(random, opcode, arch)) for opcode in opcodes for _ in range(count)]
        shown = assembled([text for _, text, _ in drawn], arch)
        for (opcode, text, state), instruction in zip(drawn, shown, strict=True):
            if instruction is not None:
                yield opcode, judged(text, instruction, state, arch, run)

    return judge


def _function(random: Random, opcode: str, arch: str) -> tuple[str, State]:
    spec = PACKED.get(opcode) or spec_of(opcode)
    halves = opcode in PACKED and spec.result in {"f16", "f32"}
    rows = {}
    for place, kind in enumerate(spec.sources):
        for part, lanes in enumerate(drawn_rows(random, "f16" if halves else kind)):
            rows[2 * place + part] = lanes
    return drawn_text(random, opcode), fresh_state(random, arch, rows)


def _special(random: Random, opcode: str, arch: str) -> tuple[str, State]:
    text, kinds = special_text(random, opcode)
    rows = {row + part: lanes for row, kind in kinds.items() for part, lanes in enumerate(drawn_rows(random, kind))}
    state = fresh_state(random, arch, rows)
    if "permlane" in opcode:
        state.s[126] = state.s[127] = 0xFFFF_FFFF
    if opcode in SCALED:
        powers = [random.choice((127, 127, 120, 130, 0, 255, 1, 254, random.randrange(256))) for _ in LANES]
        state.v[35] = [power << 23 | random.getrandbits(23) for power in powers]
    return text, state


def _scalar(random: Random, opcode: str, arch: str) -> tuple[str, State]:
    state = fresh_state(random, arch)
    state.s[:106] = [drawn_bits(random, "u32") for _ in range(106)]
    state.s[124] = random.randrange(40)  # an index that stays among the registers
    return scalar_text(random, opcode), state


def _checked(checks: Mapping[str, Callable[[int], None]]) -> Judge:
    """Runs checks that draw for themselves, from a seed, and raise where the two differ."""

    def judge(random: Random, arch: str, opcodes: Sequence[str], count: int) -> Iterator[tuple[str, Verdict]]:
        with running_on(arch):
            for opcode in opcodes:
                for _ in range(count):
                    seed = random.getrandbits(20)
                    yield opcode, Verdict(text=f"{opcode}, seed {seed}", outcome=_outcome(checks[opcode], seed))

    return judge


def _outcome(check: Callable[..., object], *arguments: int) -> str:
    try:
        check(*arguments)
    except IsaError as error:
        return "refused" if error.findings[0].code == "I102" else str(error.findings[0].message)
    except AssertionError as error:
        return f"differs: {error!s:.200}"
    return "right"


def _matrix(random: Random, arch: str, opcodes: Sequence[str], count: int) -> Iterator[tuple[str, Verdict]]:
    """A quarter as often as others: a case has thousands of products.  `benchmarks.matrix` has all modifiers."""
    for opcode in opcodes:
        check = matrix_checks.CHECKS.get((arch, opcode))
        for _ in range(-(-count // 4) if check is not None else 0):
            seed = random.getrandbits(20)
            assert check is not None
            yield opcode, Verdict(text=f"{opcode}, seed {seed}", outcome=_outcome(check, seed, _PLACES, 1))


_PLACES = 4  # elements of each result that are compared
_PLAIN = "second definition, fractions and integers"
FAMILIES: list[Family] = [
    Family(
        name="functions", oracle=_PLAIN, opcodes=(*FUNCTIONS, *ON_ITSELF, *PACKED), judge=_judge(_function, run_vector)
    ),
    Family(name="special", oracle=_PLAIN, opcodes=SPECIALS, judge=_judge(_special, run_vector)),
    Family(name="comparisons", oracle=_PLAIN, opcodes=tuple(COMPARES), judge=_judge(_special, run_vector)),
    Family(
        name="scaled conversions",
        oracle="second definition, lists of values",
        opcodes=tuple(SCALED),
        judge=_judge(_special, run_vector),
    ),
    Family(name="scalar", oracle="second definition, bit by bit", opcodes=SCALARS, judge=_judge(_scalar, run_scalar)),
    Family(
        name="memory",
        oracle="second definition, bytes and lanes in lists",
        opcodes=tuple(memory_oracles.CHECKS),
        judge=_checked(memory_oracles.CHECKS),
    ),
    Family(
        name="matrix",
        oracle="second definition, sums of fractions",
        opcodes=tuple(dict.fromkeys(opcode for _, opcode in matrix_checks.CHECKS)),
        judge=_matrix,
    ),
]
