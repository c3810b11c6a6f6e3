from __future__ import annotations

import struct
from functools import cache
from random import Random

import pytest

from rota.errors import RotaError
from rota.isa.binary.code_object import read_kernels
from rota.isa.binary.toolchain import find_toolchain
from tests.findings.smallest import raised


def test_bytes_that_are_not_a_code_object() -> None:
    raised("T103", lambda: read_kernels(b"PK\x03\x04"))
    raised("T103", lambda: read_kernels(b"\x7fELF\x02\x01"))


def test_an_elf_file_for_another_machine_or_without_kernels() -> None:
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", header, 18, 62)
    assert "EM_X86_64" in raised("T103", lambda: read_kernels(bytes(header))).message
    struct.pack_into("<H", header, 18, 224)
    struct.pack_into("<I", header, 48, 0x4C)
    raised("T103", lambda: read_kernels(bytes(header)))


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("seed", range(300))
def test_damaged_bytes_end_in_a_finding_or_are_read(seed: int) -> None:
    """Never in a traceback: up to three bytes are changed, half of the times in the notes."""
    random, damaged = Random(seed), bytearray(_intact())
    notes = damaged.index(b"amdhsa.kernels") - 40
    for _ in range(random.randint(1, 3)):
        at = random.randrange(notes, notes + 500) if seed % 2 else random.randrange(len(damaged))
        damaged[at] = random.randrange(256)
    codes = set()
    try:
        read_kernels(bytes(damaged))
    except RotaError as error:
        codes = {finding.code for finding in error.findings}
    assert codes <= {"T103", "I111"}


def test_notes_that_are_no_map_and_addresses_that_are_too_large() -> None:
    notes = _intact().index(b"amdhsa.kernels") - 2  # the map, and the length of its first name
    flat = bytearray(_intact())
    flat[notes] = 0x05
    raised("T103", lambda: read_kernels(bytes(flat)))
    far = bytearray(_intact())
    struct.pack_into("<Q", far, 40, 2**63)
    raised("T103", lambda: read_kernels(bytes(far)))


@cache
def _intact() -> bytes:
    return find_toolchain().compile('extern "C" __attribute__((global)) void f(int* o) { *o = 1; }', "gfx942").hsaco


def test_a_kernel_that_the_code_object_does_not_have() -> None:
    both = "__attribute__((global)) void f() {}\n" * 2
    code = find_toolchain().compile(f'extern "C" {{ {both.replace("f()", "g()", 1)} }}', "gfx950")
    raised("T103", lambda: code.kernel("h"))
    raised("T103", code.kernel)
    assert {code.kernel(name).name for name in "fg"} == {"f", "g"}
