"""Whole GEMMs: the loop in them is the schedule's, they compute any problem, and nothing around them gets it wrong."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rota.audit.audit import audit_gemm
from rota.audit.machine_loop import MachineLoop, read_machine_loop
from rota.emit.gemm.gemm_tile import gemm_tile
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.whole.whole_host import emit_launcher, emit_project
from rota.emit.whole.whole_kernel import check_room, emit_whole, whole_name
from rota.emit.whole.whole_options import Output, WholeGemm, parse_options
from rota.isa.binary.toolchain import find_toolchain
from rota.prove.kernel_proof import prove_object
from tests.campaigns.whole import whole_gemm_sabotage
from tests.campaigns.whole.pair_faults import PAIR_FAULTS
from tests.campaigns.whole.whole_faults import FAULTS, LINEAR
from tests.campaigns.whole.whole_gemm import VARIANTS, drawn
from tests.campaigns.whole.whole_kernels import FINE, LOOPS, Built, built, loop_of, shape_of, source_of
from tests.campaigns.whole.whole_launcher import STAND_IN, compiled, program
from tests.campaigns.whole.whole_problems import Problem
from tests.campaigns.whole.whole_run import run_problem
from tests.emit.kernels import Emitted, four_wave, ping_pong
from tests.emit.test_gemm_loop import one_by_one
from tests.emit.test_one_program import TOOLCHAINS, said
from tests.findings.smallest import raised

pytestmark = pytest.mark.thorough  # compiles, or starts commands

SHARE = [("small", LINEAR), *(VARIANTS[number] for number in (6, 13))]
"""Kernels of CI: tiles of 4 and 8 waves, both machines, in quadrants and by instruction as they ship."""
TURNED = [fault for fault in FAULTS if fault.name == "lanes read the next columns"]
PACKED = [fault for fault in PAIR_FAULTS if fault.name in ("a pack takes the other column", "waves share a pair")]
PLAIN = ("s_add", "s_nop", "s_mov", "s_mul", "s_lshl", "s_sub")  # scalar arithmetic of addresses


@pytest.mark.parametrize("number", range(len(SHARE)))
def test_the_loop_is_the_schedule_and_problems_are_computed(number: int) -> None:
    """One test for each kernel, since tests are dealt out to processes, each of which would compile it again."""
    loop, asked = SHARE[number]
    made = built(loop, asked)
    geometry = shape_of(loop)[0].geometry
    audit = audit_gemm(loop_of(loop), geometry, made.code, kernel=made.name, products=asked.products)
    assert audit.exact, audit
    assert audit.facts.spills == 0
    if loop in ("small", "small_mi300x"):
        assert _is_that_of_the_loop_alone(loop, made)
    assert "buffer_store_dwordx4" in {each.opcode for each in made.code.instructions(made.name)}
    assert [each for each in prove_object(made.code) if not each.proved] == []
    problems = _share()[number :: len(SHARE)]
    assert {str(each): wrong for each in problems if (wrong := run_problem(made, each))} == {}


def test_campaigns_draw_what_ships_and_sums_of_nothing() -> None:
    shipped = {loop.removesuffix(FINE) for loop, _ in VARIANTS if loop.endswith(FINE)}
    assert shipped - {"ragged", "ragged_low"} == {loop for loop, _ in VARIANTS if not loop.endswith(FINE)}
    assert any(problem.k == 0 for problem in _share())
    assert any(loop.endswith(FINE) for loop, _ in SHARE)


BY_COLUMNS = (
    Problem(m=130, n=200, k=333, gaps=(3, 3, 0, 0), seed=1),
    Problem(m=20, n=36, k=65, gaps=(7, 7, 0, 4), whole=False, seed=2),
    Problem(m=40, n=131, k=640, batches=2, splits=2, gaps=(0, 8, 0, 5), orders=3, seed=3),
    Problem(m=9, n=150, k=70, gaps=(2, 3, 0, 2), skew=(0, 1, 0), seed=4),
)
"""Rows of B that DMAs can fetch and can't, tiles whose columns end within 16 bytes, rests and parts of a K-tile."""


@pytest.mark.parametrize(("loop", "turns"), [("small_kn", "ds_read_b64_tr_b16"), ("small_mi300x_kn", "v_perm_b32")])
def test_b_as_k_x_n_is_read_by_a_loop_of_its_own(loop: str, turns: str) -> None:
    """Every instruction is the schedule's; `python -m benchmarks.whole_gemm --only kn` runs more problems."""
    made = built(loop, LINEAR)
    audit = audit_gemm(loop_of(loop), LOOPS[loop][0].geometry, made.code, kernel=made.name)
    assert audit.exact, audit
    assert (audit.certificate is not None, audit.facts.spills) == (True, 0)
    assert turns in {each.opcode for each in made.code.instructions(made.name)}
    assert [each for each in prove_object(made.code) if not each.proved] == []
    assert _is_that_of_the_loop_alone(loop, made)
    assert {str(each): wrong for each in BY_COLUMNS if (wrong := run_problem(made, each))} == {}


RAGGED = (
    Problem(m=97, n=161, k=333, gaps=(3, 3, 0, 0), seed=1),
    Problem(m=95, n=160, k=256, gaps=(0, 0, 0, 0), whole=False, seed=2),
    Problem(m=192, n=33, k=640, batches=2, splits=2, gaps=(0, 8, 0, 5), orders=3, seed=3),
)
"""Edges within a tile, on its last row, and beyond it."""


def test_rows_that_end_within_a_dma_are_followed_by_zeros() -> None:
    """96 and 160 rows of 64 bytes, of which a DMA of four waves brings 64; `benchmarks.whole_gemm --only ragged`."""
    loop = "ragged_low" + FINE
    made = built(loop, LINEAR)
    audit = audit_gemm(loop_of(loop), LOOPS["ragged_low"][0].geometry, made.code, kernel=made.name)
    assert audit.exact, audit
    assert [each for each in prove_object(made.code) if not each.proved] == []
    assert {str(each): wrong for each in RAGGED if (wrong := run_problem(made, each))} == {}


def test_halves_of_such_a_tile_are_no_matrices_of_their_own() -> None:
    gated = parse_options({"epilogue": "gated_silu"})
    finding = raised("T203", lambda: source_of("ragged_low" + FINE, gated))
    assert dict(finding.evidence)["BN"] == 160


def test_its_project_says_how_b_lies(tmp_path: Path) -> None:
    shape = LOOPS["small_kn"][0]
    compiled_ = one_by_one(shape.loop(instructions=False))
    found = emit_project(compiled_, shape.geometry, parse_options({"output": "bf16", "layout": "kn"}))
    header = next(text for name, text in found.items() if name.startswith("gemm_") and name.endswith(".h"))
    assert "const void* B = nullptr;  // K x N" in header
    assert "p.b_batch = p.b_stride * p.K;" in header
    assert "torch.matmul(a, b)\n" in found["test_torch.py"]
    for name, text in found.items():
        (tmp_path / name).write_text(text, "utf-8")
    flags = ("-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{STAND_IN}")
    command = (*find_toolchain().compiler, *flags, "test.cpp")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr == ""


def _share() -> list[Problem]:
    """A twentieth of the campaign, `python -m benchmarks.whole_gemm`, without the fifth that takes longest."""
    drawn_ = [problem for _, _, _, problem in drawn(400, seed=1)]
    quick = sorted(drawn_, key=lambda each: each.m * each.n * each.k * each.batches * each.orders)
    return quick[:320:16]


def _is_that_of_the_loop_alone(loop: str, made: Built) -> bool:
    """The same opcodes, waits and barriers in the same order; A and B have strides of their own, which adds sums."""
    alone = find_toolchain().compile(emit_gemm(loop_of(loop), LOOPS[loop][0].geometry), LOOPS[loop][1].arch)
    within, itself = (
        read_machine_loop(code.instructions(name)) for code, name in ((made.code, made.name), (alone, None))
    )
    return _opcodes(within) == _opcodes(itself)


@pytest.mark.parametrize("staged", [ping_pong, four_wave])
def test_loops_by_stages_stand_in_whole_kernels_too(staged: Callable[[], Emitted]) -> None:
    """One of staggered wave groups, and one that sums in AGPRs."""
    compiled_, geometry = staged()
    code = find_toolchain().compile(emit_whole(compiled_, geometry), compiled_.machine.arch)
    audit = audit_gemm(compiled_, geometry, code, kernel=whole_name(compiled_, WholeGemm()))
    assert audit.exact, audit
    assert [each for each in prove_object(code) if not each.proved] == []


def _opcodes(loop: MachineLoop) -> list[str]:
    return [
        each.text if each.opcode == "s_waitcnt" else each.opcode
        for each in loop.instructions[loop.first : loop.last + 1]
        if not each.opcode.startswith(PLAIN)
    ]


@pytest.mark.parametrize("fault", [*FAULTS[7::60], *TURNED, *PACKED], ids=lambda fault: fault.name)
def test_faults_are_found(fault: object) -> None:
    """A few of them: `python -m benchmarks.whole_gemm_sabotage` has all."""
    assert whole_gemm_sabotage.found_by(fault, fault.asked) is not None  # type: ignore[arg-type, attr-defined]


@pytest.mark.parametrize("loop", ["small", "small_kn"])
def test_the_launcher_refuses_what_it_must(loop: str, tmp_path: Path) -> None:
    checks, wrong = whole_gemm_sabotage.launcher_faults(tmp_path, loop)
    assert len(checks) > 30
    assert wrong == []


def test_a_persistent_launcher_wants_to_know_how_many(tmp_path: Path) -> None:
    asked = WholeGemm(persistent=True)
    header = emit_launcher(loop_of("small"), LOOPS["small"][0].geometry, asked)
    assert "a persistent kernel needs at least one workgroup" in header
    source, _ = program(header, whole_name(loop_of("small"), asked), ())
    compiled(find_toolchain(), source, tmp_path)


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_several_kernels_are_one_program(toolchain: str, tmp_path: Path) -> None:
    """Of the same loop, with the loop alone beside them; no warnings, and nothing but kernels is left behind."""
    geometry = LOOPS["small"][0].geometry
    asked = ({"output": "bf16", "epilogue": "gated_silu"}, {"output": "f16", "persistent": "true", "epilogue": "gelu"})
    parts = [emit_gemm(loop_of("small"), geometry)]
    parts += [emit_whole(loop_of("small"), geometry, parse_options(each)) for each in asked]
    assert said(TOOLCHAINS[toolchain], "\n".join(parts), "gfx950", tmp_path) == ""
    for source in parts:
        defined = re.findall(r"^\s*#define (\w+)", source, re.MULTILINE)
        assert re.findall(r"^#undef (\w+)", source, re.MULTILINE) == defined
        assert all(name.startswith("ROTA_") for name in defined)
        assert not re.search(r"^(typedef|using|static|const|struct|int|inline)\b", source, re.MULTILINE)


def test_the_host_sees_a_name_alone(tmp_path: Path) -> None:
    """What a host compiler makes of the file: hipcc reads it twice."""
    (tmp_path / "kernel.hip").write_text(source_of("small", LINEAR), "utf-8")
    flags = ("-x", "hip", "--cuda-host-only", "-nogpuinc", "-nogpulib", "-std=c++20", "-Wall", "-Wextra", "-Werror")
    command = (*find_toolchain().compiler, *flags, "--offload-arch=gfx950", "-fsyntax-only", "kernel.hip")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr == ""


def test_a_project_compiles_as_far_as_there_is_a_compiler(tmp_path: Path) -> None:
    asked = parse_options({"output": "bf16", "epilogue": "alpha,gated_silu,column_bias"})
    found = emit_project(loop_of("small"), LOOPS["small"][0].geometry, asked)
    assert set(found) > {
        "CMakeLists.txt",
        "test.cpp",
        "bench.cpp",
        "binding.cpp",
        "setup.py",
        "test_torch.py",
        "README.md",
    }
    for name, text in found.items():
        (tmp_path / name).write_text(text, "utf-8")
        assert not re.search(r"@[A-Z_]+@", text), name
        if name.endswith(".py"):
            compile(text, name, "exec")
    flags = ("-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{STAND_IN}")
    for name in ("test.cpp", "bench.cpp", "binding.cpp"):
        command = (*find_toolchain().compiler, *flags, f"-I{STAND_IN.with_name('torch_stand_in')}", name)
        assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr == ""


def test_a_benchmark_launches_on_matrices_that_no_cache_holds(tmp_path: Path) -> None:
    """Executed against the stand-in, whose launches do nothing."""
    found = emit_project(loop_of("small"), LOOPS["small"][0].geometry, parse_options({"output": "bf16"}))
    for name in found.keys() & {"bench.cpp", "problem.h", *(each for each in found if each.endswith(".h"))}:
        (tmp_path / name).write_text(found[name], "utf-8")
    (header,) = [text for name, text in found.items() if name.endswith(".h") and name != "problem.h"]
    stubs = [f"{each} {{}}" for each in re.findall(r'extern "C" __global__ void \w+\([^)]*\)', header)]
    (tmp_path / "stubs.cpp").write_text("\n".join(("#include <hip/hip_runtime.h>", *stubs)), "utf-8")
    flags = ("-x", "c++", "-std=c++17", "-O1", f"-I{STAND_IN}", "bench.cpp", "stubs.cpp", "-o", "bench")
    subprocess.run((*find_toolchain().compiler, *flags), cwd=tmp_path, check=True, capture_output=True)
    m, n, k = 1024, 1024, 512
    run = subprocess.run(("./bench", *map(str, (m, n, k))), cwd=tmp_path, check=True, capture_output=True, text=True)
    head, row = (line.split(",") for line in run.stdout.splitlines())
    printed = dict(zip(head, row, strict=True))
    assert [int(printed[each]) for each in "mnk"] == [m, n, k]
    cache = 256 << 20
    assert (int(printed["copies"]) - 1) * 2 * (m * k + n * k + 2 * m * n) >= 2 * cache
    assert {"cold_us", "warm_us"} <= printed.keys()


def test_a_binding_says_what_it_expected_and_what_it_found() -> None:
    text = emit_project(loop_of("small"), LOOPS["small"][0].geometry)["binding.cpp"]
    checks = re.findall(r"TORCH_CHECK\((.*?)\);", text, re.DOTALL)
    silent = [each for each in checks if not re.search(r"(it is|it has|they are|found|has no|why)\b", each)]
    assert len(checks) > 10
    assert [each for each in silent if "hipGetErrorString" not in each] == []
    assert "unsqueeze(0)" in text  # a matrix is a batch of one


def test_sums_that_don_t_fit_into_lds_are_refused() -> None:
    tile = gemm_tile(loop_of("small"), LOOPS["small"][0].geometry)
    check_room(tile, 33792 // 2)
    assert "16896 bytes" in raised("T203", lambda: check_room(tile, 33792 // 2 - 4)).message


def test_outputs_are_stored_sixteen_bytes_at_once() -> None:
    assert [each.width * each.bytes for each in Output] == [16, 16, 16]
