"""HIP files as people have them: their flags, what the stand-in lacks, ROCm where there is one, and builds."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rota.errors import Finding, ToolchainError
from rota.isa.binary.elf import read_elf
from rota.isa.binary.hip_source import BuildEntry, HipFlags, compile_hip, find_rocm, read_build
from rota.isa.launch.loaded_kernel import load_kernel
from rota.prove.kernel_proof import prove_object
from tests.isa.binary.hip_run import ARCH
from tests.shared import shared

pytestmark = pytest.mark.thorough  # most of them compile

COPY = """#include <hip/hip_runtime.h>
#include <sizes.h>
extern "C" __global__ void k(int* o) {
  o[threadIdx.x] = threadIdx.x * SCALE + OFFSET + __LINE__ + (__cplusplus > 201703L);
}
"""


def refused(work: Callable[[], object]) -> Finding:
    with pytest.raises(ToolchainError) as error:
        work()
    (finding,) = error.value.findings
    return finding


def source(folder: Path, text: str, name: str = "kernel.hip") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def lacking(folder: Path, text: str) -> list[str]:
    finding = refused(lambda: compile_hip(source(folder, f"#include <hip/hip_runtime.h>\n{text}"), ARCH))
    assert finding.code == "T102"
    assert finding.fixes
    return str(dict(finding.evidence)["lacking"]).split(", ")


def test_flags_reach_the_compiler_and_the_files_own_folder_comes_last(tmp_path: Path) -> None:
    path = source(tmp_path / "deep", COPY)
    source(tmp_path / "deep", "#define OFFSET 1", "sizes.h")
    source(tmp_path / "mine", "#define OFFSET 100", "sizes.h")
    source(tmp_path / "mine", "#define SCALE 7", "other.h")
    clang = ("-USCALE", "-include", "other.h")
    flags = HipFlags(include=("mine",), define=("SCALE=5", "UNUSED"), standard="c++17", clang=clang, at=tmp_path)
    out = np.zeros(64, np.int32)
    load_kernel(compile_hip(path, ARCH, flags=flags).hsaco, "k").launch(out, block=64, orders=1)
    np.testing.assert_array_equal(out, np.arange(64) * 7 + 100 + 4)
    load_kernel(compile_hip(path, ARCH, flags=HipFlags(define=("SCALE=5",))).hsaco, "k").launch(out, block=64, orders=1)
    np.testing.assert_array_equal(out, np.arange(64) * 5 + 1 + 4 + 1)


def test_a_file_is_compiled_where_it_lies(tmp_path: Path) -> None:
    text = """#include <hip/hip_runtime.h>
#include "../near.h"
extern "C" __global__ void k(int* o) { o[threadIdx.x] = NEAR + sizeof(__FILE__); }
"""
    source(tmp_path, "#define NEAR 1000", "near.h")
    path = source(tmp_path, text, "folder with a blank/kernel.hip")
    code = compile_hip(path, ARCH)
    out = np.zeros(64, np.int32)
    load_kernel(code.hsaco, "k").launch(out, block=64, orders=1)
    np.testing.assert_array_equal(out, 1001 + len(str(path.resolve())))
    assert {Path(line.file).name for line in code.lines.sources if line is not None} == {"kernel.hip"}


def test_code_does_not_depend_on_where_the_file_lies(tmp_path: Path) -> None:
    text = """#include <hip/hip_runtime.h>
static __device__ int table[4] = {1, 2, 3, 4};
static __global__ void hidden(int* o) { o[threadIdx.x] = table[threadIdx.x & 3]; }
__global__ void k(int* o) { assert(o != nullptr); o[threadIdx.x] = table[threadIdx.x & 3]; }
int main() { hidden<<<1, 64>>>(nullptr); }
"""
    codes = [compile_hip(source(tmp_path, text, f"{place}/kernel.hip"), ARCH) for place in ("a", "another/place")]
    # Of the first bytes, the file's header, one word says where the table of sections is, which debug lines shift.
    first, second = ([each.contents for each in read_elf(code.hsaco).segments] for code in codes)
    assert first[0][64:] == second[0][64:]
    assert first[1:] == second[1:]
    assert [each.name for each in codes[0].kernels] == [each.name for each in codes[1].kernels]
    assert len(codes[0].kernels) == 2


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert refused(lambda: compile_hip(tmp_path / "none.hip", ARCH)).code == "T103"


def test_a_lacking_name_is_named(tmp_path: Path) -> None:
    assert lacking(tmp_path, "__global__ void k(float* o) { o[0] = tgammaf(o[1]); }") == ["tgammaf"]
    assert lacking(tmp_path, "__global__ void k(hipTextureObject_t t) {}") == ["hipTextureObject_t"]
    assert lacking(tmp_path, "__global__ void k(void** o) { o[0] = malloc(8); }") == ["malloc"]
    grid = "#include <hip/hip_cooperative_groups.h>\n__global__ void k() { cooperative_groups::this_grid().sync(); }"
    assert lacking(tmp_path, grid) == ["sync"]


def test_a_function_that_is_never_defined_is_named(tmp_path: Path) -> None:
    text = "__device__ int elsewhere(int); __global__ void k(int* o) { o[0] = elsewhere(o[1]); }"
    assert lacking(tmp_path, text) == ["elsewhere(int)"]
    assert lacking(tmp_path, "__global__ void k(float* o) { o[0] = __builtin_cbrtf(o[1]); }") == ["cbrtf"]
    visible = f'__attribute__((visibility("default"))) {text}'  # the linker would leave it to whoever loads the file
    assert lacking(tmp_path, visible) == ["elsewhere(int)"]


def test_a_lacking_header_is_named(tmp_path: Path) -> None:
    assert lacking(tmp_path, "#include <hipcub/hipcub.hpp>") == ["<hipcub/hipcub.hpp>"]
    assert lacking(tmp_path, '#include "not_mine.h"') == ["<not_mine.h>"]


def test_an_error_of_the_sources_own_lacks_nothing(tmp_path: Path) -> None:
    finding = refused(lambda: compile_hip(source(tmp_path, "__global__ void k(int* o) { o[0] = ; }"), ARCH))
    assert finding.code == "T102"
    assert "lacking" not in dict(finding.evidence)


def test_the_host_of_a_program_is_read_but_not_compiled(tmp_path: Path) -> None:
    text = """#include <hip/hip_runtime.h>
#include <iostream>
#include <vector>
template <typename T> __global__ void scale(T* o, T by) { o[threadIdx.x] *= by; }
#define CHECK(call) if (hipError_t e = call; e != hipSuccess) { std::cerr << hipGetErrorString(e); std::exit(1); }
int main() {
  std::vector<float> host(64, std::sqrt(2.0f));
  float* device; hipStream_t stream; hipEvent_t event; hipDeviceProp_t props; float ms;
  CHECK(hipMalloc(&device, 256)); CHECK(hipStreamCreate(&stream)); CHECK(hipEventCreate(&event));
  CHECK(hipGetDeviceProperties(&props, 0)); std::cout << props.name << props.multiProcessorCount;
  CHECK(hipMemcpy(device, host.data(), 256, hipMemcpyHostToDevice));
  scale<<<dim3(1), dim3(64), 0, stream>>>(device, 2.0f);
  hipLaunchKernelGGL(scale<double>, 1, 64, 0, stream, (double*)nullptr, 2.0);
  CHECK(hipEventElapsedTime(&ms, event, event)); CHECK(hipDeviceSynchronize()); CHECK(hipFree(device));
}
"""
    assert len(compile_hip(source(tmp_path, text), ARCH).kernels) == 2


def test_rocms_headers_are_used_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "rocm"
    runtime = "#define __global__ __attribute__((global))\n#define FROM 42\n"
    source(root, runtime, "include/hip/hip_runtime.h")
    source(root, "#define HIP_VERSION_MAJOR 6\n", "include/hip/hip_version.h")
    source(root, "HIP_VERSION_MAJOR=6\nHIP_VERSION_MINOR=4\nHIP_VERSION_PATCH=0\n", "share/hip/version")
    monkeypatch.setenv("ROCM_PATH", str(root))
    assert find_rocm() == root
    text = '#include <hip/hip_runtime.h>\nextern "C" __global__ void k(int* o) { *o = FROM; }\n'
    path = source(tmp_path, text)
    finding = refused(lambda: compile_hip(path, ARCH, compiler="clang++-22"))  # that ROCm has no device libraries
    assert "lacking" not in dict(finding.evidence)
    assert f"--rocm-path={root}" in str(dict(finding.evidence)["command"])
    out = np.zeros(1, np.int32)
    code = compile_hip(path, ARCH, compiler="clang++-22", flags=HipFlags(clang=("-nogpulib",)))
    load_kernel(code.hsaco, "k").launch(out, block=1, orders=1)
    assert out.tolist() == [42]


VERDICTS = {
    "softmax": "refuted", "softmax_fixed": "proved", "gemm": "proved", "gemm_broken": "refuted", "rowsum": "proved",
    "transpose2d": "proved",
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_files_that_engineers_brought(name: str, tmp_path: Path) -> None:
    text = shared(f"cases/hip/{name}.hip").read_text("utf-8")
    path = source(tmp_path, text.replace('"inc/hip/hip_runtime.h"', "<hip/hip_runtime.h>"))
    block = (16, 16, 1) if name == "transpose2d" else None
    (verdict,) = prove_object(compile_hip(path, ARCH).hsaco, block=block)
    assert verdict.status.value == VERDICTS[name]


# Builds.


def database(folder: Path, *entries: object) -> Path:
    (folder / "compile_commands.json").write_text(json.dumps(entries), "utf-8")
    return folder


KERNEL = "__global__ void k(int* o) { *o = VALUE; }"


def test_a_build_has_the_flags_of_device_code(tmp_path: Path) -> None:
    source(tmp_path / "src", KERNEL, "a.hip")
    command = shlex.join(
        [
            "ccache", "clang++", "-DVALUE=2", "-D", 'NAME="two words"', "-I../inc", "-I", "x y", "-isystem", "/third",
            "-U", "OLD", "-O2", "-std=gnu++17", "-x", "hip", "--offload-arch=gfx90a", "-march=native", "-mavx2",
            "-fPIC", "-ffast-math", "-fgpu-rdc", "-fopenmp=libomp", "-mllvm", "-some-option", "-include", "pre.h",
            "-Wall", "-MD", "-MT", "a.o", "-MF", "a.d", "-o", "a.o", "-c", "../src/a.hip",
        ]
    )  # fmt: skip
    build = tmp_path / "build"
    build.mkdir()
    (entry,) = read_build(database(build, {"directory": str(build), "command": command, "file": "../src/a.hip"}))
    assert entry.file.resolve() == (tmp_path / "src" / "a.hip").resolve()
    assert entry.flags == HipFlags(
        standard="gnu++17",
        clang=(
            "-DVALUE=2", "-D", 'NAME="two words"', "-I../inc", "-I", "x y", "-isystem", "/third", "-U", "OLD", "-O2",
            "-mavx2", "-fPIC", "-ffast-math", "-mllvm", "-some-option", "-include", "pre.h",
        ),
        at=build,
    )  # fmt: skip


def test_a_build_compiles_with_its_flags(tmp_path: Path) -> None:
    source(tmp_path, '#include <hip/hip_runtime.h>\n#include <value.h>\nextern "C" ' + KERNEL, "a.cpp")
    source(tmp_path, "#define VALUE (3 + MORE)", "inc/value.h")
    source(tmp_path, '-Iinc "-DMORE=4"', "flags.rsp")
    words = ["hipcc", "@flags.rsp", "-march=native", "-fPIC", "-o", "a.o", "-c", "a.cpp"]
    (entry,) = read_build(database(tmp_path, {"directory": ".", "arguments": words, "file": "a.cpp"}))
    out = np.zeros(1, np.int32)
    load_kernel(compile_hip(entry.file, ARCH, flags=entry.flags).hsaco, "k").launch(out, block=1, orders=1)
    assert out.tolist() == [7]


def test_which_entries_are_hip(tmp_path: Path) -> None:
    for name in ("kernel.cu", "kernel.cc"):
        source(tmp_path, KERNEL, name)
    for name in ("host.cpp", "forced.cpp", "forced2.cpp", "code.c"):
        source(tmp_path, "int main() {}", name)

    def entry(file: str, *words: str) -> dict[str, object]:
        return {"directory": str(tmp_path), "arguments": ["c++", *words, "-c", file], "file": file, "output": "o"}

    twice = [entry("kernel.cu", "-DA"), entry("kernel.cu", "-DB"), entry("kernel.cu", "-DA", "-Wall")]
    others = [entry("kernel.cc"), entry("host.cpp"), entry("forced.cpp", "-x", "hip"), entry("forced2.cpp", "-xhip")]
    missing = [entry("gone.hip"), entry("gone.cpp"), entry("gone.c"), entry("code.c")]
    found = read_build(database(tmp_path, *twice, *others, *missing))
    assert [(each.file.name, each.flags.clang) for each in found] == [
        ("kernel.cu", ("-DA",)), ("kernel.cu", ("-DB",)), ("kernel.cc", ()), ("forced.cpp", ()), ("forced2.cpp", ()),
        ("gone.hip", ()), ("gone.cpp", ()),
    ]  # fmt: skip
    gone = found[-1]
    assert refused(lambda: compile_hip(gone.file, ARCH, flags=gone.flags)).code == "T103"


@pytest.mark.parametrize(
    "entry",
    [
        7,
        {"file": "a.hip", "command": "c++"},
        {"directory": "/", "command": "c++"},
        {"directory": "/", "file": "a.hip"},
        {"directory": "/", "file": "a.hip", "command": "c++ 'open"},
        {"directory": "/", "file": "a.hip", "command": " "},
        {"directory": "/", "file": "a.hip", "arguments": []},
        {"directory": "/", "file": "a.hip", "arguments": ["c++", 7]},
        {"directory": "/", "file": ["a.hip"], "command": "c++"},
    ],
)
def test_a_malformed_entry(entry: object, tmp_path: Path) -> None:
    good = {"directory": "/", "file": "a.hip", "command": "c++ -c a.hip"}
    finding = refused(lambda: read_build(database(tmp_path, good, entry)))
    assert finding.code == "T204"
    assert "entry 1" in finding.message


@pytest.mark.parametrize("text", ["{", "{}", "null", "\\xff"])
def test_a_malformed_database(text: str, tmp_path: Path) -> None:
    (tmp_path / "compile_commands.json").write_text(text, "utf-8")
    assert refused(lambda: read_build(tmp_path)).code == "T204"
    (tmp_path / "compile_commands.json").write_bytes(b"[\xff]")
    assert refused(lambda: read_build(tmp_path / "compile_commands.json")).code == "T204"


def test_a_build_without_a_database(tmp_path: Path) -> None:
    assert refused(lambda: read_build(tmp_path)).code == "T103"
    shutil.rmtree(tmp_path)
    assert refused(lambda: read_build(tmp_path)).code == "T103"


def test_an_empty_build(tmp_path: Path) -> None:
    assert read_build(database(tmp_path)) == ()
    entry = {"directory": str(tmp_path), "file": "a.hip", "command": "c++ a.hip"}
    assert read_build(database(tmp_path, entry, entry)) == (
        BuildEntry(file=tmp_path / "a.hip", flags=HipFlags(at=tmp_path)),
    )
