"""The integers that both factors of a benchmark are drawn from, as each element holds them."""

from __future__ import annotations

import struct

import pytest

from rota.audit.gemm_launch import FP4_VALUES, codes_of_integers


def decode_e4m3(code: int, bias: int) -> float:
    power, fraction = code >> 3 & 15, (code & 7) / 8
    value = (1 + fraction) * 2.0 ** (power - bias) if power else fraction * 2.0 ** (1 - bias)
    return -value if code & 0x80 else value


def decode(element: str, code: bytes) -> list[float]:
    if element == "bf16":
        return [struct.unpack("<f", b"\0\0" + code)[0]]
    if element == "f16":
        return [struct.unpack("<e", code)[0]]
    if element == "fp4":
        halves = (code[0] & 15, code[0] >> 4)
        return [-FP4_VALUES[half & 7] if half & 8 else FP4_VALUES[half] for half in halves]
    return [decode_e4m3(code[0], 8 if element == "fp8_fp8" else 7)]


@pytest.mark.parametrize("element", ["bf16", "f16", "f8f6f4", "fp8_fp8", "fp4"])
def test_codes_are_the_integers_from_minus_4_to_4(element: str) -> None:
    codes = codes_of_integers(element)
    assert len(set(codes)) == len(codes) == (81 if element == "fp4" else 9)
    values = [decode(element, code) for code in codes]
    assert {each for pair in values for each in pair} == {float(each) for each in range(-4, 5)}
    assert sorted(pair[0] for pair in values) == sorted(
        float(each) for each in range(-4, 5) for _ in range(9 if element == "fp4" else 1)
    )
