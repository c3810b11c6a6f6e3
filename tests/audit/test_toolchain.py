"""Toolchains are found in order and make the same code; what they made is read as LLVM's own tools read it."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rota.errors import ToolchainError
from rota.isa.binary import toolchain
from rota.isa.binary.toolchain import Toolchain, explicit_toolchain, find_toolchain, find_toolchains

SOURCE = """
typedef float f4 __attribute__((ext_vector_type(4)));
extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(128, 128)))
void scale(const f4* in, f4* out, int n, float by) {
  __attribute__((shared)) static f4 stage[128];
  const int i = __builtin_amdgcn_workitem_id_x() + 8 * __builtin_amdgcn_workitem_id_y();
  stage[i] = in[i + n * __builtin_amdgcn_workgroup_id_z()];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  f4 c = stage[127 - i] * by;
  asm volatile("" : "+a"(c));
  out[i] = c;
}
"""


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing on the PATH but a folder of our own, no ROCm, no wheel."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("ROCM_PATH", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    return tmp_path


def test_toolchains_are_found_in_their_order(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolchainError, match="T101"):
        find_toolchain()
    with pytest.raises(ToolchainError, match="T101"):
        find_toolchain("ziglang")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "ziglang" else None)
    assert find_toolchain().name == "ziglang"
    executable(empty_machine / "bin" / "clang++")
    assert find_toolchain().name == "clang++"
    for version in (21, 23, 22):
        executable(empty_machine / "bin" / f"clang++-{version}")
        assert find_toolchain().name == f"clang++-{version}"
    executable(empty_machine / "elsewhere" / "bin" / "hipcc")
    (empty_machine / "bin" / "hipcc").symlink_to(empty_machine / "elsewhere" / "bin" / "hipcc")
    beside = executable(empty_machine / "elsewhere" / "llvm" / "bin" / "clang++")
    assert find_toolchain().compiler == (str(beside),)
    rocm = executable(empty_machine / "rocm" / "llvm" / "bin" / "clang++")
    linker = executable(rocm.with_name("ld.lld"))
    monkeypatch.setenv("ROCM_PATH", str(empty_machine / "rocm"))
    found = list(find_toolchains())
    assert [each.name for each in found] == [
        "rocm",
        "rocm",
        *(f"clang++-{n}" for n in (22, 23, 21)),
        "clang++",
        "ziglang",
    ]
    assert (found[0].compiler, found[0].linker, found[0].objdump) == ((str(rocm),), (str(linker),), None)
    assert find_toolchain("clang++-21").name == "clang++-21"
    assert find_toolchain(str(rocm)).compiler == (str(rocm),)


def test_a_command_that_cannot_be_started_is_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "program").touch(mode=0o600)
    broken = Toolchain(name="broken", compiler=(str(tmp_path / "program"),), linker=(), objdump=None)
    with pytest.raises(ToolchainError, match="T102"):
        broken.compile("", "gfx950")


@pytest.mark.parametrize("name", ["clang++-22", "ziglang"])
def test_both_toolchains_compile_to_the_same_instructions(name: str) -> None:
    chosen = explicit_toolchain(name)
    assert "clang version 22" in chosen.version()
    code, again = (chosen.compile(SOURCE, "gfx950") for _ in range(2))
    assert code.hsaco == again.hsaco
    reference = find_toolchain("clang++-22").compile(SOURCE, "gfx950")
    assert [each.opcode for each in code.instructions()] == [each.opcode for each in reference.instructions()]
    assert code.kernel() == reference.kernel()
    assert (code.toolchain, code.arch) == (name, "gfx950")


def test_an_edited_assembly_is_assembled() -> None:
    chosen = find_toolchain()
    code = chosen.compile(SOURCE, "gfx942")
    edited = chosen.assemble(code.assembly.replace("s_barrier", "s_nop 3"), "gfx942")
    assert "s_barrier" in {each.opcode for each in code.instructions()}
    assert "s_barrier" not in {each.opcode for each in edited.instructions()}
    assert edited.kernel() == code.kernel()


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_notes_are_what_llvm_readelf_reads(arch: str, tmp_path: Path) -> None:
    code = find_toolchain("clang++-22").compile(SOURCE, arch)
    (tmp_path / "x.hsaco").write_bytes(code.hsaco)
    readelf = shutil.which("llvm-readelf-22")
    assert readelf is not None
    text = subprocess.run([readelf, "--notes", tmp_path / "x.hsaco"], capture_output=True, text=True, check=True).stdout
    numbers = {name: int(value) for name, value in re.findall(r"\.(\w+): +(\d+)", text)}
    facts = code.kernel()
    assert {
        "agpr_count": facts.agprs,
        "vgpr_count": facts.vgprs,
        "sgpr_count": facts.sgprs,
        "vgpr_spill_count": facts.vgpr_spills,
        "sgpr_spill_count": facts.sgpr_spills,
        "group_segment_fixed_size": facts.lds_bytes,
        "private_segment_fixed_size": facts.private_bytes,
        "kernarg_segment_size": facts.kernarg_bytes,
        "max_flat_workgroup_size": facts.max_workgroup,
    }.items() <= numbers.items()
    assert (facts.lds_bytes, facts.max_workgroup, facts.spills) == (2048, 128, 0)
    assert facts.agprs
    assert re.findall(r"\.offset: +(\d+)", text) == [str(argument.offset) for argument in facts.arguments]
    assert [argument.size for argument in facts.arguments if not argument.hidden] == [8, 8, 4, 4]
    assert facts.arch == arch


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_the_descriptor_is_what_the_assembler_was_told(arch: str) -> None:
    code = find_toolchain("clang++-22").compile(SOURCE, arch)
    told = {name: int(value) for name, value in re.findall(r"\.amdhsa_(\w+) (\d+)", code.assembly)}
    facts = code.kernel()
    descriptor = facts.descriptor
    assert descriptor.lds_bytes == told["group_segment_fixed_size"] == 2048
    assert descriptor.private_bytes == told["private_segment_fixed_size"]
    assert descriptor.kernarg_bytes == told["kernarg_size"]
    assert descriptor.user_sgprs == told["user_sgpr_count"]
    assert descriptor.accum_offset == told["accum_offset"]
    assert descriptor.vgprs - 8 < told["next_free_vgpr"] <= descriptor.vgprs
    assert descriptor.sgprs - 16 < told["next_free_sgpr"] + 6 <= descriptor.sgprs  # VCC, flat scratch and XNACK mask
    assert descriptor.tg_split == bool(told["tg_split"])
    assert facts.workitem_ids == told["system_vgpr_workitem_id"] == 1
    assert facts.workgroup_ids == tuple(bool(told[f"system_sgpr_workgroup_id_{axis}"]) for axis in "xyz")
    assert facts.workgroup_ids[2]
    assert sum(size for _, size in facts.user_sgprs) == told["user_sgpr_count"]
    names = {name for name, _ in facts.user_sgprs}
    asked = ("dispatch_ptr", "queue_ptr", "kernarg_segment_ptr", "dispatch_id", "private_segment_size")
    assert names == {name for name in asked if told[f"user_sgpr_{name}"]}


def test_preloaded_arguments_are_counted() -> None:
    chosen = find_toolchain("clang++-22")
    code = chosen.compile(SOURCE, "gfx950")
    assembly = code.assembly.replace("kernarg_preload_length 0", "kernarg_preload_length 3")
    assembly = re.sub(r"(\.amdhsa_user_sgpr_count) (\d+)", lambda found: f"{found[1]} {int(found[2]) + 3}", assembly)
    assert chosen.assemble(assembly, "gfx950").kernel().user_sgprs[-1] == ("kernarg_preload", 3)


def test_the_search_covers_clang_from_the_first_that_knows_gfx950() -> None:
    assert toolchain._VERSIONS[0] == 22
    assert min(toolchain._VERSIONS) == 20
