"""Integer operations of 32 bits in plain Python: takes unsigned numbers, gives what the ISA's documents say.

Shares no line with the proof's arithmetic, nor with the interpreter's: it is what both are compared by.
"""

from __future__ import annotations

from collections.abc import Callable

_TOP = 1 << 31


def signed(number: int, bits: int = 32) -> int:
    """Two's complement of so many low bits."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> bits - 1 else number


def _field(number: int, offset: int, width: int) -> int:
    return (number >> offset % 32) % (1 << width % 32)


def _field_signed(number: int, offset: int, width: int) -> int:
    width %= 32
    return signed(_field(number, offset, width), width) if width else 0


def _permuted(high: int, low: int, selector: int) -> int:
    octets = low.to_bytes(4, "little") + high.to_bytes(4, "little")
    return int.from_bytes(bytes(_octet(octets, each) for each in selector.to_bytes(4, "little")), "little")


def _octet(octets: bytes, chosen: int) -> int:
    """A byte, the sign of one of the halves, 0 or 255."""
    if chosen < 8:
        return octets[chosen]
    if chosen < 12:
        return 255 * (octets[2 * (chosen - 8) + 1] >> 7)
    return 0 if chosen == 12 else 255


PLAIN: dict[tuple[str, int], Callable[..., int]] = {
    ("+", 2): lambda a, b: a + b,
    ("mul", 2): lambda a, b: a * b,
    ("mulhi_u", 2): lambda a, b: a * b >> 32,
    ("mulhi_i", 2): lambda a, b: signed(a) * signed(b) >> 32,
    ("mul24", 2): lambda a, b: (a % (1 << 24)) * (b % (1 << 24)),
    ("mul24i", 2): lambda a, b: signed(a, 24) * signed(b, 24),
    ("shl", 2): lambda a, b: a << b % 32,
    ("shr", 2): lambda a, b: a >> b % 32,
    ("sar", 2): lambda a, b: signed(a) >> b % 32,
    ("and", 2): lambda a, b: a & b,
    ("or", 2): lambda a, b: a | b,
    ("xor", 2): lambda a, b: a ^ b,
    ("andn2", 2): lambda a, b: a & ~b,
    ("orn2", 2): lambda a, b: a | ~b,
    ("nand", 2): lambda a, b: ~(a & b),
    ("nor", 2): lambda a, b: ~(a | b),
    ("xnor", 2): lambda a, b: ~(a ^ b),
    ("not", 1): lambda a: ~a,
    ("min_u", 2): min,
    ("max_u", 2): max,
    ("min_i", 2): lambda a, b: min(signed(a), signed(b)),
    ("max_i", 2): lambda a, b: max(signed(a), signed(b)),
    ("abs", 1): lambda a: abs(signed(a)),
    ("bfe_u", 3): _field,
    ("bfe_i", 3): _field_signed,
    ("bfm", 2): lambda a, b: ((1 << a % 32) - 1) << b % 32,
    ("bfi", 3): lambda a, b, c: (a & b) | (~a & c),
    ("brev", 1): lambda a: int(f"{a:032b}"[::-1], 2),
    ("pack_ll", 2): lambda a, b: a % (1 << 16) | b << 16,
    ("pack_lh", 2): lambda a, b: a % (1 << 16) | b >> 16 << 16,
    ("pack_hh", 2): lambda a, b: a >> 16 | b >> 16 << 16,
    ("sext8", 1): lambda a: signed(a, 8),
    ("sext16", 1): lambda a: signed(a, 16),
    ("perm", 3): _permuted,
    ("alignbit", 3): lambda a, b, c: (a << 32 | b) >> c % 32,
    ("alignbyte", 3): lambda a, b, c: (a << 32 | b) >> 8 * (c % 4),
    ("eq", 2): lambda a, b: int(a == b),
    ("lt_u", 2): lambda a, b: int(a < b),
    ("lt_i", 2): lambda a, b: int(signed(a) < signed(b)),
    ("choose", 3): lambda flag, a, b: a if flag else b,
}
"""By the proof's name for an operation and how many numbers it takes; results are cut to 32 bits by whoever asks."""
