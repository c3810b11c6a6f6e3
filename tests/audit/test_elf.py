"""ELF files: addresses are found in the section that holds them."""

from __future__ import annotations

import pytest

from rota.audit.elf import AMDGPU, NotElfError, read_elf
from rota.audit.toolchain import find_toolchain

SOURCE = 'extern "C" __attribute__((global)) void f(int* o) { *o = 1; }'


def test_symbols_and_contents() -> None:
    elf = read_elf(find_toolchain().compile(SOURCE, "gfx950").hsaco)
    assert elf.machine == AMDGPU
    assert {"f", "f.kd"} <= set(elf.symbols)
    descriptor = elf.at(elf.symbols["f.kd"], 64)
    entry = int.from_bytes(descriptor[16:24], "little", signed=True)
    assert elf.symbols["f.kd"] + entry == elf.symbols["f"]


def test_an_address_of_no_section() -> None:
    elf = read_elf(find_toolchain().compile(SOURCE, "gfx950").hsaco)
    with pytest.raises(NotElfError, match="no section holds"):
        elf.at(1 << 40, 4)
