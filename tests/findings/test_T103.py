from __future__ import annotations

import struct

from rota.audit.code_object import read_kernels
from rota.audit.toolchain import find_toolchain
from tests.findings.smallest import raised


def test_bytes_that_are_not_a_code_object() -> None:
    assert "not an ELF file" in raised("T103", lambda: read_kernels(b"PK\x03\x04")).message
    assert "cut short" in raised("T103", lambda: read_kernels(b"\x7fELF\x02\x01")).message


def test_an_elf_file_for_another_machine_or_without_notes() -> None:
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<H", header, 18, 62)
    assert "for machine 62" in raised("T103", lambda: read_kernels(bytes(header))).message
    struct.pack_into("<H", header, 18, 224)
    assert "notes or descriptors are damaged" in raised("T103", lambda: read_kernels(bytes(header))).message


def test_a_kernel_that_the_code_object_does_not_have() -> None:
    both = "__attribute__((global)) void f() {}\n" * 2
    code = find_toolchain().compile(f'extern "C" {{ {both.replace("f()", "g()", 1)} }}', "gfx950")
    assert raised("T103", lambda: code.kernel("h")).message == "the code object has no kernel named 'h'"
    assert raised("T103", code.kernel).message == "several kernels: name one"
    assert {code.kernel(name).name for name in "fg"} == {"f", "g"}
