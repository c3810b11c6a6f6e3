"""The MODE register of a wave: takes its bits, gives what vector instructions heed of them.

How to round is not among it: nearest even is the only way that is executed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.wave.operand import M0

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.operand import Reader
    from rota.isa.wave.step import Step
    from rota.isa.wave.wave import Wave

DENORM32, DX10_CLAMP, IEEE, INDEXED = 3 << 4, 1 << 8, 1 << 9, 1 << 27
START = 0xF << 4 | DX10_CLAMP | IEEE
"""As compilers set it: denormals kept, clamping a NaN gives zero, IEEE rules for signalling NaNs."""
_TINY = np.float32(2.0**-126)


def flushed(values: Any) -> Any:  # noqa: ANN401
    """Denormal float32 become zeros of the same sign."""
    return np.where(np.abs(values) < _TINY, np.copysign(np.float32(0), values), values).astype(np.float32)


def heeding(take: Reader) -> Reader:
    """Reads float32 as MODE has it."""
    return lambda wave: take(wave) if wave.mode & DENORM32 == DENORM32 else flushed(take(wave))


def limited(wave: Wave, value: Any) -> Any:  # noqa: ANN401
    """A float between 0 and 1, by the clamp modifier; a NaN stays one unless DX10_CLAMP is set."""
    kind = np.asarray(value).dtype.type
    low = np.where((value < 0) | (np.isnan(value) if wave.mode & DX10_CLAMP else False), kind(0), value)
    return np.where(low > 1, kind(1), low)


def aware(step: Step, decode: Callable[[Instruction], Step]) -> Step:
    """A vector step that indexes registers if the wave says so; whoever runs it takes `indexed` then.

    So what is waited for, and what must be kept apart, are the registers that are meant, not those that are named.
    """
    seen = dict[tuple[int, int], "Step"]()

    def meant(wave: Wave) -> Step:
        key = (wave.s[M0] & 0xFF, wave.s[M0] >> 12 & 15)
        if key not in seen:
            seen[key] = decode(_shifted(step.instruction, *key))
        return seen[key]

    return replace(step, indexed=meant)


def _shifted(instruction: Instruction, index: int, which: int) -> Instruction:
    """With `index` added to the VGPRs that `which` names: bits 0 to 2 the sources, 3 the destination."""
    if not instruction.opcode.startswith("v_"):
        return instruction
    chosen = [which >> 3, *(which >> place for place in range(3))]
    operands = [
        _moved(text, index) if place < len(chosen) and chosen[place] & 1 else text
        for place, text in enumerate(instruction.operands)
    ]
    return replace(instruction, operands=tuple(operands))


def _moved(text: str, index: int) -> str:
    head, sign, rest = "", "", text
    while rest and rest[0] in "-|":
        head, rest = head + rest[0], rest[1:]
    if rest.endswith("|"):
        sign, rest = "|", rest[:-1]
    if not rest.startswith("v") or not (rest[1:].isdigit() or rest[1:2] == "["):
        return text
    numbers = [int(number) + index for number in rest[1:].strip("[]").split(":")]
    return f"{head}v{numbers[0]}{sign}" if len(numbers) == 1 else f"{head}v[{numbers[0]}:{numbers[1]}]{sign}"
