"""Files that hold several code objects, as hipcc makes them."""

from __future__ import annotations

import struct
import subprocess
from functools import cache
from pathlib import Path

import pytest

from rota.isa.binary.elf import unbundle
from rota.isa.binary.toolchain import find_objdump, find_toolchain, read_code_object
from tests.findings.smallest import raised

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
HOST, MI300X, MI355X = (
    "host-x86_64-unknown-linux-gnu-",
    "hipv4-amdgcn-amd-amdhsa--gfx942:xnack-",
    "hip-amdgcn-amd-amdhsa--gfx950",
)


@cache
def code_for(arch: str) -> bytes:
    return find_toolchain().compile('extern "C" __attribute__((global)) void f(int* o) { *o = 1; }', arch).hsaco


def bundle(**entries: bytes) -> bytes:
    names = {"host": HOST, "gfx942": MI300X, "gfx950": MI355X}
    head = sum(24 + len(names[each]) for each in entries) + len(MAGIC) + 8
    table, body = struct.pack("<Q", len(entries)), b""
    for each, code in entries.items():
        table += struct.pack("<QQQ", head + len(body), len(code), len(names[each])) + names[each].encode()
        body += code
    return MAGIC + table + body


def test_what_is_no_bundle_is_left_as_it_is() -> None:
    assert unbundle(code_for("gfx942")) == code_for("gfx942")


def test_the_one_that_is_asked_for() -> None:
    both = bundle(host=b"", gfx942=code_for("gfx942"), gfx950=code_for("gfx950"))
    for arch in ("gfx942", "gfx950"):
        code = read_code_object(both, find_objdump(), arch=arch)
        assert (code.arch, code.hsaco) == (arch, code_for(arch))
    assert unbundle(bundle(host=b"", gfx950=code_for("gfx950"))) == code_for("gfx950")


def test_several_and_none() -> None:
    both = bundle(gfx942=code_for("gfx942"), gfx950=code_for("gfx950"))
    finding = raised("T103", lambda: unbundle(both))
    assert finding.evidence == (("code objects for", "gfx942, gfx950"),)
    assert "gfx90a" in raised("T103", lambda: unbundle(both, "gfx90a")).message
    raised("T103", lambda: unbundle(bundle(host=b"")))


def test_what_clang_bundles(tmp_path: Path) -> None:
    (tmp_path / "k.hip").write_text('extern "C" __attribute__((global)) void f(int* o) { *o = 1; }')
    front = ("-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "--no-offload-compress")
    archs = ("--offload-arch=gfx942", "--offload-arch=gfx950")
    command = (*find_toolchain().compiler, *front, *archs, "k.hip", "-o", "k.co")
    subprocess.run(command, cwd=tmp_path, check=True)
    contents = (tmp_path / "k.co").read_bytes()
    assert contents.startswith(MAGIC)
    assert read_code_object(contents, find_objdump(), arch="gfx950").kernel().name == "f"


@pytest.mark.parametrize("length", [24, 30, 40, 90, 300])
def test_a_bundle_that_is_cut_short(length: int) -> None:
    whole = bundle(gfx942=code_for("gfx942"))
    raised("T103", lambda: unbundle(whole[:length]))


def test_bundles_that_are_too_large_or_compressed() -> None:
    raised("T103", lambda: unbundle(MAGIC + struct.pack("<Q", 2**60)))
    raised("T103", lambda: unbundle(b"CCOB\x03\x00"))
    far = bytearray(bundle(gfx942=b"abc"))
    struct.pack_into("<Q", far, len(MAGIC) + 16, 2**63)
    raised("T103", lambda: unbundle(bytes(far)))
