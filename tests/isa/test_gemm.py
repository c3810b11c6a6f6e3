"""A double-buffered GEMM, compiled from the emission idiom: right under every interleaving, wrong without its waits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.disassembly import Instruction
from rota.isa.launch.interleaving import EARLIEST, LATEST, Interleaving, behind, interleavings
from rota.isa.launch.run import KernelOutcome, run_kernel
from rota.isa.races import SEEN_NO_CHANGE, SEEN_NOT, SEEN_VALUE, SEEN_WRITES
from rota.isa.valu.convert import float_values
from rota.targets.architecture import Float8
from tests.isa.sources import PREAMBLE, compiled, gemm_source, program

KERNELS = [
    ("gfx942", "v_mfma_f32_16x16x16_bf16"),
    ("gfx942", "v_mfma_f32_16x16x16_f16"),
    ("gfx942", "v_mfma_f32_16x16x32_fp8_fp8"),
    ("gfx950", "v_mfma_f32_16x16x32_bf16"),
    ("gfx950", "v_mfma_f32_16x16x32_f16"),
    ("gfx950", "v_mfma_f32_16x16x32_fp8_fp8"),
]
RNG = np.random.default_rng(3)
TILE = 64


def matrix(arch: str, opcode: str, rows: int, tiles: int) -> tuple[np.ndarray, np.ndarray]:
    """Raw elements, 64 bytes of K per tile, and what they are worth."""
    if "fp8" in opcode:
        raw = RNG.integers(0, 0x70, (rows, tiles * 64)).astype(np.uint8)
        return raw, float_values("fp8", Float8.FNUZ if arch == "gfx942" else Float8.OCP)[raw]
    values = RNG.standard_normal((rows, tiles * 32)).astype(np.float32)
    if opcode.endswith("_f16"):
        return values.astype(np.float16), values.astype(np.float16).astype(np.float64)
    values = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16), values.astype(np.float64)


class Problem:
    def __init__(self, arch: str, opcode: str, tiles: int, grid: tuple[int, int] = (1, 1)) -> None:
        self.raw_a, a = matrix(arch, opcode, TILE * grid[0], tiles)
        self.raw_b, b = matrix(arch, opcode, TILE * grid[1], tiles)
        self.grid, self.tiles, self.wanted = grid, tiles, a @ b.T
        self.bound = (a.shape[1] + 1) * 2.0**-24 * (np.abs(a) @ np.abs(b).T)

    def run(self, kernel: KernelProgram, interleaving: Interleaving) -> KernelOutcome:
        out = np.full(self.wanted.shape, np.nan, np.float32)
        row_bytes = self.raw_a.shape[1] * self.raw_a.itemsize
        return run_kernel(
            kernel,
            args=[self.raw_a, self.raw_b, out, self.wanted.shape[1], row_bytes, self.tiles],
            grid=(*self.grid, 1),
            block=(256, 1, 1),
            interleaving=interleaving,
        )

    def right(self, outcome: KernelOutcome) -> bool:
        return bool((np.abs(outcome.buffers[2] - self.wanted) <= self.bound).all())


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize(("arch", "opcode"), KERNELS)
def test_the_product_is_right_under_every_interleaving(arch: str, opcode: str) -> None:
    kernel, problem = program(gemm_source(arch, opcode), arch), Problem(arch, opcode, 5)
    runs = interleavings(4, 12)
    assert len(runs) >= 20
    for interleaving in runs:
        outcome = problem.run(kernel, interleaving)
        assert outcome.findings == (), interleaving
        assert problem.right(outcome), interleaving


@pytest.mark.parametrize("tiles", [1, 2, 3])
def test_the_product_is_right_for_other_depths_and_several_workgroups(tiles: int) -> None:
    arch, opcode = KERNELS[3]
    problem = Problem(arch, opcode, tiles, grid=(2, 3))
    outcome = problem.run(program(gemm_source(arch, opcode), arch), LATEST)
    assert outcome.findings == ()
    assert problem.right(outcome)


def test_a_toolchain_without_a_disassembler_serves_as_well() -> None:
    arch, opcode = KERNELS[3]
    code = find_toolchain("ziglang").compile(PREAMBLE + gemm_source(arch, opcode), arch)
    assert code.disassembly == code.assembly
    problem = Problem(arch, opcode, 3)
    outcome = problem.run(load_program(code.kernel(), code.instructions()), LATEST)
    assert outcome.findings == ()
    assert problem.right(outcome)


def without(instructions: tuple[Instruction, ...], number: int) -> tuple[Instruction, ...]:
    idle = replace(instructions[number], opcode="s_setprio", operands=("0",), text="s_setprio 0", target=None)
    return (*instructions[:number], idle, *instructions[number + 1 :])


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize(("arch", "opcode"), [KERNELS[0], KERNELS[5]])
def test_every_wait_and_barrier_is_needed_and_its_loss_is_caught(arch: str, opcode: str) -> None:
    code = compiled(gemm_source(arch, opcode), arch)
    instructions, problem = code.instructions(), Problem(arch, opcode, 4)
    places = [i for i, each in enumerate(instructions) if each.opcode in {"s_waitcnt", "s_barrier"}]
    kinds = {instructions[place].text for place in places}
    assert {"s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)", "s_barrier"} <= kinds
    for place in places:
        outcome = problem.run(load_program(code.kernel(), without(instructions, place)), LATEST)
        assert not problem.right(outcome), instructions[place]
        assert {finding.code for finding in outcome.findings} & {"I103", "I106", "I109"}, instructions[place]


WAIT, BARRIER = "__builtin_amdgcn_s_waitcnt(0xf70); SB", "__builtin_amdgcn_s_barrier(); SB"
EARLY = "vec<u32, 4> early = *(volatile LDS const vec<u32, 4>*)(pb + stage); SB"
READ = "y[j] = *(LDS const vec<u32, 4>*)(pb + stage + j * 1024); SB"
WRONG_WAYS = {
    "the wait stands behind the barrier": ((f"{WAIT}\n    {BARRIER}", f"{BARRIER} {WAIT}"),),
    "a wait lets one load stay in flight": ((WAIT, WAIT.replace("0xf70", "0xf71")),),
    "a read is moved above the barrier": (
        (BARRIER, f"{EARLY} {BARRIER}"),
        (READ, f"if (j) {{ {READ} }} else y[j] = early;"),
    ),
    "a wave reads the other stage": (("(pa + stage)", "(pa + (stage ^ 8192))"),),
    "a tile is fetched twice": (("(tile + 1) * 64", "tile * 64"),),
}


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("way", WRONG_WAYS)
def test_known_ways_to_get_it_wrong_are_caught(way: str) -> None:
    """Mistakes from public bug reports; those against the machine's order are found as such, the others by value."""
    arch, opcode = KERNELS[3]
    source, problem = gemm_source(arch, opcode), Problem(arch, opcode, 4)
    for old, new in WRONG_WAYS[way]:
        assert old in source
        source = source.replace(old, new)
    outcomes = [problem.run(program(source, arch), interleaving) for interleaving in interleavings(4, 0)]
    assert not all(problem.right(outcome) for outcome in outcomes)
    assert any(outcome.findings for outcome in outcomes) == (way != "a tile is fetched twice")


def test_who_runs_ahead_decides_whether_a_race_shows() -> None:
    """The rows that are read too early are fetched by wave 0: nothing is wrong as long as it is the first to arrive."""
    arch, opcode = KERNELS[3]
    source, problem = gemm_source(arch, opcode), Problem(arch, opcode, 4)
    for old, new in WRONG_WAYS["a read is moved above the barrier"]:
        source = source.replace(old, new)
    early, late = (problem.run(program(source, arch), interleaving) for interleaving in (LATEST, behind(0)))
    assert problem.right(early)
    assert not problem.right(late)
    assert {finding.code for finding in early.findings} == {"I109"}  # known all the same: it is about every order
    seen = {str(dict(finding.evidence)["seen"]) for finding in late.findings if finding.code == "I109"}
    assert seen & {SEEN_VALUE, SEEN_WRITES}
    assert all(dict(finding.evidence)["seen"] in (SEEN_NOT, SEEN_NO_CHANGE) for finding in early.findings)


def test_a_machine_that_is_always_in_time_hides_missing_waits() -> None:
    arch, opcode = KERNELS[0]
    code, problem = compiled(gemm_source(arch, opcode), arch), Problem(arch, opcode, 4)
    instructions = code.instructions()
    (place,) = (i for i, each in enumerate(instructions) if each.text == "s_waitcnt vmcnt(0)")
    broken = load_program(code.kernel(), without(instructions, place))
    assert problem.right(problem.run(broken, EARLIEST))
    assert not problem.right(problem.run(broken, LATEST))
