"""Constants, variables and pointers to functions that a code object brings along."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rota.isa.binary.elf import CODE_BASE, Relocation, build_image, read_elf
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.run import run_kernel
from rota.isa.memory.memories import Memory
from rota.isa.wave.wave import Faults
from tests.findings.smallest import raised
from tests.wording.golden import mentions

SOURCE = """
__attribute__((device)) int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__attribute__((constant)) const int other[4] = {2, 7, 1, 8};
__attribute__((device)) int counter;
extern "C" __attribute__((device)) __attribute__((noinline)) int f(int x) { return x * 3; }
extern "C" __attribute__((device)) __attribute__((noinline)) int g(int x) { return x * 5; }
__attribute__((device)) int (*volatile pointers[2])(int) = {f, g};
extern "C" __attribute__((global)) void k(int* out) {
  int n = __builtin_amdgcn_workitem_id_x();
  counter = n;
  out[2 * n] = table[n & 7] + other[n & 3] + f(n);
  out[2 * n + 1] = POINTER;
}
"""
DIRECT, BY_POINTER = "f(n) + g(n)", "pointers[n & 1](n)"


def test_tables_and_calls() -> None:
    code = find_toolchain().compile(SOURCE.replace("POINTER", DIRECT), "gfx950")
    program = load_program(code.kernel("k"), code.instructions("k"), image=code.image())
    outcome = run_kernel(program, args=[np.zeros((8, 2), np.int32)], block=(8, 1, 1))
    assert outcome.findings == ()
    due = [((3, 1, 4, 1, 5, 9, 2, 6)[n] + (2, 7, 1, 8)[n & 3] + 3 * n, 8 * n) for n in range(8)]
    assert outcome.buffers[0].tolist() == [list(each) for each in due]


def test_the_first_buffer_is_where_code_is_loaded() -> None:
    assert Memory([np.zeros(4, np.uint8)], Faults()).address(0) == CODE_BASE


def test_pointers_are_filled_in() -> None:
    code = find_toolchain().compile(SOURCE.replace("POINTER", BY_POINTER), "gfx950")
    file, image = read_elf(code.hsaco), code.image()
    at = {symbol.name: symbol.address for symbol in file.symbols}
    assert len(file.relocations) == 2
    for number, name in enumerate("fg"):
        place = at["pointers"] + 8 * number
        assert int.from_bytes(image[place : place + 8], "little") == CODE_BASE + at[name]
    assert image[at["table"] : at["table"] + 12] == np.array([3, 1, 4], np.int32).tobytes()
    assert {"f", "g"} < {each.symbol for each in code.instructions("k")}  # a pointer may go to either


def test_what_cannot_be_loaded() -> None:
    file = read_elf(find_toolchain().compile(SOURCE.replace("POINTER", "n"), "gfx950").hsaco)
    asked = Relocation(address=8, kind=3, addend=0, symbol=None)
    for wrong, names in (
        (replace(asked, kind=7, symbol=0), ("7",)),
        (replace(asked, address=2**40, symbol=0), ("3", "0x10000000000")),
        (asked, ()),
    ):
        finding = raised("T103", lambda wrong=wrong: build_image(replace(file, relocations=(wrong,))))  # type: ignore[misc]
        assert mentions(finding.message, *names)
    huge = replace(file.segments[0], size=2**40)
    raised("T103", lambda: build_image(replace(file, segments=(huge,))))
