"""Emitted files in a program of one's own: no warnings, no names beside the kernels', and several of them at once."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rota.audit.gemm_launch import load_emitted
from rota.emit.forms import emit_skeleton
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import Toolchain, find_toolchain, find_toolchains
from rota.isa.launch.interleaving import LATEST
from rota.targets.devices import GFX950
from tests.emit.kernels import FP8, SMALL, SMALL_MI300X, Emitted, by_values, four_wave, ping_pong
from tests.emit.stubs import kernel_around
from tests.findings.smallest import raised

_FRONT = ("-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-O3", "-std=c++20")
_FLAGS = (*_FRONT, "-Wall", "-Wextra", "-Werror")
TOOLCHAINS = {toolchain.name: toolchain for toolchain in find_toolchains()}
KERNELS: dict[str, Callable[[], Emitted]] = {
    "ping-pong": ping_pong,
    "four-wave": four_wave,
    "bf16": lambda: by_values(SMALL),
    "bf16, by instruction": lambda: by_values(SMALL, instructions=True),
    "fp8": lambda: by_values(FP8),
    "mi300x": lambda: by_values(SMALL_MI300X),
}


def said(toolchain: Toolchain, source: str, arch: str, folder: Path) -> str:
    """What the compiler has to say, if warnings are errors."""
    (folder / "kernel.hip").write_text(source, "utf-8")
    command = (*toolchain.compiler, *_FLAGS, f"--offload-arch={arch}", "-S", "kernel.hip", "-o", "kernel.s")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # found above
    assert (done.returncode == 0) == (folder / "kernel.s").is_file()
    return done.stderr


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_compiles_without_warnings(name: str, toolchain: str, tmp_path: Path) -> None:
    compiled, geometry = KERNELS[name]()
    assert said(TOOLCHAINS[toolchain], emit_gemm(compiled, geometry), compiled.machine.arch, tmp_path) == ""


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_a_clobber_of_m0_is_what_was_warned_of(toolchain: str, tmp_path: Path) -> None:
    """The check above can fail."""
    compiled, geometry = by_values(SMALL)
    source = (
        emit_gemm(compiled, geometry)
        .replace('"memory", "scc"', '"memory", "m0", "scc"')
        .replace(': "=&{m0}"(m0) ', ': "=s"(m0) ')
    )
    assert "reserved registers: m0" in said(TOOLCHAINS[toolchain], source, "gfx950", tmp_path)


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_a_skeleton_compiles_without_warnings(toolchain: str, tmp_path: Path) -> None:
    source = kernel_around(by_values(SMALL)[0]).replace("#pragma once", "")  # which stands in a header, not here
    assert said(TOOLCHAINS[toolchain], source, "gfx950", tmp_path) == ""


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_remainders_and_other_kernels_are_one_file(toolchain: str, tmp_path: Path) -> None:
    parts = [by_values(SMALL), by_values(SMALL, remainder=1), by_values(FP8), by_values("gemm_bf16_32x32_mma")]
    source = "\n".join(emit_gemm(compiled, geometry) for compiled, geometry in parts)
    assert said(TOOLCHAINS[toolchain], source, "gfx950", tmp_path) == ""


@pytest.mark.thorough  # compiles, or starts commands
def test_each_of_them_computes_its_own() -> None:
    whole, rest = by_values(SMALL_MI300X), by_values(SMALL_MI300X, remainder=1)
    code = find_toolchain().compile("\n".join(emit_gemm(*each) for each in (whole, rest)), "gfx942")
    for (compiled, geometry), name in ((whole, SMALL_MI300X), (rest, f"{SMALL_MI300X}_tail1")):
        assert load_emitted(compiled, geometry, code, kernel=name).launch(0, LATEST).right


def test_a_file_leaves_nothing_but_its_kernels_behind() -> None:
    """Macros bear rota's name, and are taken back; types are the kernel's own."""
    for source in (emit_gemm(*by_values(FP8)), emit_skeleton(by_values(FP8)[0])):
        defined = re.findall(r"^\s*#define (\w+)", source, re.MULTILINE)
        assert defined
        assert all(name.startswith("ROTA_") for name in defined)
        assert re.findall(r"^#undef (\w+)", source, re.MULTILINE) == defined
        assert not re.search(r"^(typedef|using|static|const|struct|int|inline)\b", source, re.MULTILINE)


def test_two_kernels_for_the_same_k_are_refused() -> None:
    compiled, geometry = by_values(SMALL_MI300X)
    raised("T201", lambda: emit_gemm(compiled, geometry, tails=[compiled]))


def test_a_tail_for_another_machine_is_refused() -> None:
    compiled, geometry = by_values(SMALL)
    tail = replace(by_values(SMALL, remainder=1)[0], machine=replace(GFX950, name="MI350X"))
    assert "MI350X" in raised("T203", lambda: emit_gemm(compiled, geometry, tails=[tail])).message
