"""Code objects as they are in the world: notes that leave things out, several kernels, labels, data, stripped files."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rota.errors import SourceLine
from rota.isa.binary.code_object import CodeObject, read_kernels
from rota.isa.binary.elf import read_elf, read_lines
from rota.isa.binary.toolchain import Toolchain, find_objdump, find_toolchain, read_code_object
from rota.isa.decoded import load_program
from rota.isa.launch.run import run_kernel
from tests.findings.smallest import raised
from tests.isa.assembly import described, function, kernel, note, noted

STORE = """
s_load_dwordx2 s[0:1], s[0:1], 0x0
v_mov_b32_e32 v1, {value}
v_lshlrev_b32_e32 v0, 2, v0
s_waitcnt lgkmcnt(0)
global_store_dword v0, v1, s[0:1]
s_endpgm
"""
ARGUMENT = "    .args:\n      - {.offset: 0, .size: 8, .value_kind: global_buffer}\n"


def assembled(text: str, arch: str = "gfx950") -> CodeObject:
    return find_toolchain().assemble(text, arch)


def opcodes(code: CodeObject, name: str | None = None) -> list[str]:
    return [each.opcode for each in code.instructions(name)]


def test_a_kernel_that_the_notes_leave_out_is_what_its_descriptor_says() -> None:
    text = ".text\n" + function("f", "s_endpgm") + function("g", "s_nop 0\ns_endpgm")
    told = described("g", ".amdhsa_group_segment_fixed_size 512\n.amdhsa_kernarg_size 24")
    code = assembled(text + described("f") + told + noted(note("f")))
    assert [each.name for each in code.kernels] == ["f", "g"]
    g = code.kernel("g")
    assert (g.lds_bytes, g.kernarg_bytes, g.vgprs, g.sgprs, g.max_workgroup) == (512, 24, 8, 48, 1024)
    assert g.arguments == ()
    assert ".args" in g.unnoted
    assert ".max_flat_workgroup_size" in g.unnoted
    assert code.kernel("f").unnoted == ()
    assert opcodes(code, "g") == ["s_nop", "s_endpgm"]


def test_a_code_object_without_notes() -> None:
    code = assembled(".text\n" + function("k", "s_endpgm") + described("k"))
    assert code.kernel().name == "k"
    assert len(code.kernel().unnoted) == 6


@pytest.mark.parametrize(
    ("key", "field", "due"),
    [
        (".sgpr_count", "sgprs", 48),
        (".vgpr_count", "vgprs", 8),
        (".max_flat_workgroup_size", "max_workgroup", 1024),
        (".private_segment_fixed_size", "private_bytes", 0),
        (".name", "name", "k"),
        (".symbol", "name", "k"),
    ],
)
def test_notes_that_leave_out_what_a_launch_needs(key: str, field: str, due: object) -> None:
    hsaco = assembled(kernel("s_nop 0")).hsaco
    assert hsaco.count(key.encode()) == 1
    (facts,) = read_kernels(hsaco.replace(key.encode(), b"." + b"x" * (len(key) - 1)))
    assert getattr(facts, field) == due
    assert facts.unnoted == ((key,) if key not in {".name", ".symbol"} else ())


def test_a_kernel_in_the_notes_that_has_no_descriptor_cannot_be_launched() -> None:
    text = ".text\n" + function("k", "s_endpgm") + described("k") + noted(note("k"), note("ghost"))
    assert "ghost.kd" in raised("T103", lambda: assembled(text)).message


def test_a_descriptor_by_another_name() -> None:
    """What the notes say is its symbol; by custom that ends in .kd."""
    hsaco = assembled(kernel("s_nop 0", name="kern")).hsaco.replace(b"kern.kd", b"kern_dd")
    (facts,) = read_kernels(hsaco)
    assert (facts.name, facts.vgprs) == ("kern", 8)


def test_a_kernel_that_is_noted_twice() -> None:
    text = ".text\n" + function("k", "s_endpgm") + described("k") + noted(note("k"), note("k"))
    raised("T103", lambda: assembled(text))


def test_an_entry_where_no_code_is() -> None:
    code = assembled(kernel("s_nop 0"))
    damaged = bytearray(code.hsaco)
    told = struct.pack("<qQ", code.kernel().entry or 0, 0)  # never found as it is: offsets are relative
    assert told not in damaged
    at = _descriptor_at(code)
    (offset,) = struct.unpack_from("<q", damaged, at + 16)
    for wrong in (offset + 2, offset + 0x100000, -offset, 2**62):
        struct.pack_into("<q", damaged, at + 16, wrong)
        raised("T103", lambda: read_kernels(bytes(damaged)))


def _descriptor_at(code: CodeObject) -> int:
    """Where the only descriptor is in the file: .rodata comes first, and at its own address."""
    (symbol,) = (each for each in read_elf(code.hsaco).symbols if each.name.endswith(".kd"))
    return symbol.address


def test_labels_and_symbols_inside_a_kernel_do_not_end_it() -> None:
    body = """
    s_mov_b32 s2, 3
    label_0001:
    L_loop:
    .globl inside
    .type inside,@function
    inside:
    s_sub_u32 s2, s2, 1
    s_cmp_lg_u32 s2, 0
    s_cbranch_scc1 label_0001
    1: s_branch 1f
    s_nop 5
    1: s_nop 6
    """
    code = assembled(kernel(body))
    due = ["s_mov_b32", "s_sub_u32", "s_cmp_lg_u32", "s_cbranch_scc1", "s_branch", "s_nop", "s_endpgm"]
    assert opcodes(code) == due
    assert [each.target for each in code.instructions()] == [None, None, None, 1, 5, None, None]
    assert [each.symbol for each in code.instructions()] == ["k", *["inside"] * 6]
    outcome = run_kernel(load_program(code.kernel(), code.instructions()), args=[], block=(64, 1, 1))
    assert (outcome.findings, outcome.instructions) == ((), 1 + 3 * 3 + 3)


@pytest.mark.parametrize("word", ["0x7e0002ff", "0xc0060000", "0xd3e40000", "0xffffffff", "0"])
def test_data_among_the_code_does_not_shift_it(word: str) -> None:
    """The words look like the first half of an instruction; a sweep would take the next one for the second half."""
    body = f"s_branch over\n.long {word}\nover:\nv_mov_b32_e32 v1, 1\ns_nop 3"
    code = assembled(kernel(body, before=f".long {word}", behind=f".long {word}\n.fill 3, 4, 0x55555555"))
    assert opcodes(code) == ["s_branch", "v_mov_b32_e32", "s_nop", "s_endpgm"]


def test_bytes_that_are_no_instruction_are_named_before_anything_runs() -> None:
    code = assembled(kernel("s_nop 0\n.long 0xffffffff\ns_nop 1"))
    finding = raised("I102", lambda: load_program(code.kernel(), code.instructions()))
    assert "ffffffff" in finding.concerns[0].label.lower()


def test_code_that_runs_into_its_end() -> None:
    text = ".text\n" + function("k", "s_nop 0") + described("k") + noted(note("k"))
    finding = raised("I101", lambda: assembled(text).instructions())
    assert "s_nop" in finding.message


def test_several_kernels_and_functions_each_with_its_own() -> None:
    bodies = "".join(function(name, STORE.format(value=value)) for name, value in (("f", 5), ("g", 6)))
    size = ".amdhsa_kernarg_size 8"
    notes = noted(
        *(note(name).replace(".kernarg_segment_size: 0", ".kernarg_segment_size: 8") + ARGUMENT for name in "fg")
    )
    code = assembled(".text\n" + bodies + described("f", size) + described("g", size) + notes)
    for name, value in (("f", 5), ("g", 6)):
        program = load_program(code.kernel(name), code.instructions(name))
        outcome = run_kernel(program, args=[np.zeros(64, np.int32)], block=(64, 1, 1))
        assert outcome.findings == ()
        assert (outcome.buffers[0] == value).all()


def _tool(name: str) -> str:
    path = shutil.which(name)
    assert path is not None
    return path


@pytest.mark.parametrize("how", ["--strip-all", "--strip-sections"])
def test_a_stripped_file_is_as_good_as_another(how: str, tmp_path: Path) -> None:
    code = assembled(kernel("s_mov_b32 s2, 1\nlabel:\ns_cbranch_scc1 label"))
    (tmp_path / "whole").write_bytes(code.hsaco)
    subprocess.run([_tool("llvm-objcopy-22"), how, "whole", "stripped"], cwd=tmp_path, check=True)
    stripped = (tmp_path / "stripped").read_bytes()
    assert len(stripped) < len(code.hsaco)
    again = read_code_object(stripped, find_objdump())
    assert again.kernels == code.kernels
    assert [each.text for each in again.instructions()] == [each.text for each in code.instructions()]


def test_preloaded_arguments_start_behind_what_loads_them() -> None:
    text = ".text\n" + function("k", "s_trap 2\n.fill 63, 4, 0xbf800000\ns_mov_b32 s4, s2\ns_endpgm")
    preload = ".amdhsa_user_sgpr_kernarg_preload_"
    more = f"{preload}length 2\n{preload}offset 1\n.amdhsa_kernarg_size 16"
    code = assembled(text + described("k", more) + noted(note("k")))
    assert opcodes(code) == ["s_mov_b32", "s_endpgm"]
    assert code.kernel().preload == 2
    assert code.kernel().descriptor.preload_offset == 1


SOURCE = """extern "C" __attribute__((global)) void k(int* out) {
  int x = out[0];
  if (x > 3)
    x *= 5;
  out[1] = x;
}
"""


def compiled_with_lines(folder: Path) -> bytes:
    toolchain: Toolchain = find_toolchain()
    (folder / "lined.hip").write_text(SOURCE)
    front = ("-g", "-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-O1", "--offload-arch=gfx950")
    back = ("-x", "assembler", "--target=amdgcn-amd-amdhsa", "-mcpu=gfx950", "-c", "k.s", "-o", "k.o")
    for command in (
        (*toolchain.compiler, *front, "-S", "lined.hip", "-o", "k.s"),
        (*toolchain.compiler, *back),
        (*toolchain.linker, "-shared", "k.o", "-o", "k.hsaco"),
    ):
        subprocess.run(command, cwd=folder, check=True)
    return (folder / "k.hsaco").read_bytes()


def test_instructions_know_their_source_lines(tmp_path: Path) -> None:
    code = read_code_object(compiled_with_lines(tmp_path), find_objdump())
    lines = {each.opcode: each.source for each in code.instructions()}
    name = str(tmp_path / "lined.hip")
    assert lines["s_cmp_gt_i32"] == SourceLine(name, 3) or lines["s_mul_i32"] == SourceLine(name, 4)
    assert lines["global_store_dword"] == SourceLine(name, 5)
    outcome = run_kernel(
        load_program(code.kernel(), code.instructions()), args=[np.zeros(1, np.int32)], block=(1, 1, 1)
    )
    (finding,) = outcome.findings
    assert finding.code == "I105"
    assert finding.concerns[0].source == SourceLine(name, 5)
    assert f"--> {name}:5" in str(finding)


def test_a_code_object_without_debug_information_has_no_lines() -> None:
    assert read_lines(assembled(kernel("s_nop 0")).hsaco).at(0x1600) is None
    assert read_lines(b"\x7fELF\x02\x01").starts == ()
