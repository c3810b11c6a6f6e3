from __future__ import annotations

import struct
from dataclasses import replace
from functools import cache

import pytest

from rota.audit.audit import audit_gemm
from rota.audit.gemm_launch import load_emitted
from rota.isa.binary.code_object import CodeObject, read_kernels
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from tests.audit import sabotage
from tests.emit.kernels import SMALL, by_values
from tests.findings.smallest import raised
from tests.isa.single import facts, listing
from tests.wording.golden import mentions

SOURCE = 'extern "C" __attribute__((global)) void f(int* o) { *o = 1; }'
FLAGS, GFX90A, GFX950 = 48, 0x3F, 0x4F


@cache
def object_for(arch: str) -> CodeObject:
    return find_toolchain().compile(SOURCE, arch)


def flagged(hsaco: bytes, machine: int) -> bytes:
    """The code object with another architecture in its ELF flags."""
    changed = bytearray(hsaco)
    (flags,) = struct.unpack_from("<I", changed, FLAGS)
    struct.pack_into("<I", changed, FLAGS, flags & ~0xFF | machine)
    return bytes(changed)


def renamed(hsaco: bytes, target: bytes, to: bytes) -> bytes:
    """The code object with another target in its notes, of the same length."""
    assert len(target) == len(to)
    assert hsaco.count(target) == 1
    return hsaco.replace(target, to)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_the_flags_say_which_architecture_it_is(arch: str) -> None:
    assert read_kernels(object_for(arch).hsaco)[0].arch == arch


def test_a_target_written_as_triton_writes_it() -> None:
    """It was taken for gfx950, whose 8-bit floats have another bias."""
    hsaco = renamed(object_for("gfx942").hsaco, b"amdgcn-amd-amdhsa--gfx942", b"amdgpu-amd-hsa-any-gfx942")
    assert read_kernels(hsaco)[0].arch == "gfx942"


def test_flags_and_notes_that_name_two_architectures() -> None:
    finding = raised("I111", lambda: read_kernels(flagged(object_for("gfx942").hsaco, GFX950)))
    assert finding.evidence == (("ELF flags", "0x4f, gfx950"), ("notes", "amdgcn-amd-amdhsa--gfx942"))
    hsaco = renamed(object_for("gfx942").hsaco, b"--gfx942", b"--gfx950")
    assert raised("I111", lambda: read_kernels(hsaco)).message == finding.message
    hsaco = renamed(object_for("gfx942").hsaco, b"--gfx942", b"--nobody")
    assert dict(raised("I111", lambda: read_kernels(hsaco)).evidence)["notes"] == "amdgcn-amd-amdhsa--nobody"


def test_an_architecture_that_is_not_known() -> None:
    finding = raised("I111", lambda: read_kernels(flagged(object_for("gfx942").hsaco, GFX90A)))
    assert dict(finding.evidence)["ELF flags"] == "0x3f, unknown"
    assert finding.fixes == ("known: gfx1201, gfx1250, gfx942, gfx950",)
    finding = raised("I111", lambda: load_program(facts("gfx90a"), listing("s_nop 0")))
    assert "gfx90a" in finding.message


def test_a_kernel_for_another_machine_than_the_schedule() -> None:
    compiled, geometry = by_values(SMALL)
    code = find_toolchain().compile(sabotage.source_of(compiled, geometry), "gfx950")
    older = replace(code, kernels=(replace(code.kernel(), arch="gfx942"),))
    assert {finding.code for finding in audit_gemm(compiled, geometry, older).findings} == {"I111"}
    finding = raised("I111", lambda: load_emitted(compiled, geometry, older))
    assert mentions(finding.message, "gfx942", "gfx950")
