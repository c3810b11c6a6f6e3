"""Wait states: LLVM inserts exactly as many as the machine needs, so its own `s_nop` less one must be a fault."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rota.isa.decoded import load_program
from rota.isa.disassembly import Instruction
from rota.isa.launch.run import KernelOutcome, run_kernel
from tests.isa.single import codes, execute, fresh
from tests.isa.sources import compiled
from tests.isa.test_matrix import SHAPES, Shape


def mfma_kernel(shape: Shape) -> str:
    """One MFMA whose result is stored at once."""
    total = "int" if shape.kind == "i8" else "float"
    count = shape.size * shape.size // 64
    return (
        f"KERNEL(const {shape.operand}* a, const {shape.operand}* b, vec<{total}, {count}>* o) {{"
        f"  vec<{total}, {count}> c = {{}};"
        f"  o[ID] = __builtin_amdgcn_{shape.builtin}(a[ID], b[ID], c, {shape.more}); }}"
    )


def with_nops(instructions: tuple[Instruction, ...], first: int, count: int) -> tuple[Instruction, ...]:
    """`count` wait states instead of the compiler's."""
    nop = replace(instructions[first], operands=(str(count - 1),), text=f"s_nop {count - 1}")
    return (*instructions[:first], nop, *instructions[first + 1 :])


def ran(shape: Shape, instructions: tuple[Instruction, ...]) -> KernelOutcome:
    facts = compiled(mfma_kernel(shape), shape.arch).kernel()
    zeros = np.zeros((64, 32), np.uint8)
    out = np.zeros((64, shape.size * shape.size // 64), np.float32)
    return run_kernel(load_program(facts, instructions), args=[zeros, zeros, out], block=(64, 1, 1))


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.arch} {shape.builtin} {shape.kind}")
def test_the_compilers_wait_states_are_enough_and_one_less_is_a_fault(shape: Shape) -> None:
    instructions = compiled(mfma_kernel(shape), shape.arch).instructions()
    mfma = next(i for i, each in enumerate(instructions) if each.opcode.startswith("v_mfma"))
    nops = [i for i, each in enumerate(instructions) if i > mfma and each.opcode == "s_nop"]
    assert nops
    assert ran(shape, instructions).findings == ()
    last = nops[-1]
    fewer = with_nops(instructions, last, int(instructions[last].operands[0]))
    outcome = ran(shape, fewer)
    assert {finding.code for finding in outcome.findings} == {"I104"}
    assert np.isnan(outcome.buffers[2].view(np.float32)).any()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{same}\n{same}", False),  # the very same accumulator is forwarded
        ("{same}\nv_mfma_f32_16x16x32_f16 v[8:11], v[16:19], v[20:23], v[2:5]", True),
        ("{same}\ns_nop 5\nv_mfma_f32_16x16x32_f16 v[8:11], v[16:19], v[20:23], v[2:5]", False),
        ("{same}\ns_nop 4\nv_mfma_f32_16x16x32_f16 v[8:11], v[16:19], v[20:23], v[2:5]", True),
        ("{same}\nv_mfma_f32_16x16x32_f16 v[8:11], v[0:3], v[20:23], v[8:11]", True),
        ("{same}\nv_mov_b32_e32 v0, 0", True),
        ("{same}\ns_nop 7\nv_mov_b32_e32 v0, 0", False),
        ("v_mfma_f32_16x16x32_f16 v[8:11], v[16:19], v[20:23], v[0:3]\nv_mov_b32_e32 v0, 0", True),
        ("v_mfma_f32_16x16x32_f16 v[8:11], v[16:19], v[20:23], v[0:3]\ns_nop 2\nv_mov_b32_e32 v0, 0", False),
        ("v_mov_b32_e32 v16, 0\n{same}", True),
        ("v_mov_b32_e32 v16, 0\ns_nop 0\n{same}", True),
        ("v_mov_b32_e32 v16, 0\ns_nop 1\n{same}", False),
    ],
)
def test_rules_around_an_mfma(text: str, fault: bool) -> None:
    wave = fresh(dict.fromkeys(range(64), 0))
    execute(text.format(same="v_mfma_f32_16x16x32_f16 v[0:3], v[16:19], v[20:23], v[0:3]"), wave)
    assert codes(wave) == (["I104"] if fault else [])


INT_MFMA = "__builtin_amdgcn_mfma_i32_16x16x64_i8"
REAL_MFMA = "__builtin_amdgcn_mfma_f32_16x16x4f32"
CHAINS = {
    "a VALU writes a factor": (
        "gfx950",
        (
            "KERNEL(const vec<int, 4>* a, vec<int, 4>* o, int n) { vec<int, 4> x = a[ID], c = {}; x[3] ^= n;"
            f" o[ID] = {INT_MFMA}(x, x, c, 0, 0, 0); }}"
        ),
    ),
    "a VALU changes an accumulator": (
        "gfx950",
        (
            "KERNEL(const vec<int, 4>* a, vec<int, 4>* o, int n) { vec<int, 4> x = a[ID], c = {n, n, n, n};"
            f" c = {INT_MFMA}(x, x, c, 0, 0, 0); c += n; o[ID] = {INT_MFMA}(x, x, c, 0, 0, 0); }}"
        ),
    ),
    "a result becomes a factor": (
        "gfx950",
        (
            "KERNEL(const vec<int, 4>* a, vec<int, 4>* o, int n) { vec<int, 4> x = a[ID], c = {};"
            f" c = {INT_MFMA}(x, x, c, 0, 0, 0); o[ID] = {INT_MFMA}(c, x, c, 0, 0, 0); }}"
        ),
    ),
    "accumulators in AGPRs": (
        "gfx950",
        (
            "KERNEL(const vec<int, 4>* a, vec<int, 4>* o, int n) { vec<int, 4> x = a[ID], c = {n, n, n, n};"
            f' asm("" : "+a"(c)); c = {INT_MFMA}(x, x, c, 0, 0, 0); asm("" : "+a"(c)); o[ID] = c; }}'
        ),
    ),
    "products of float32": (
        "gfx942",
        (
            "KERNEL(const float* a, vec<float, 4>* o, int n) { float x = a[ID] * 3.0f; vec<float, 4> c = {};"
            f" c = {REAL_MFMA}(x, x, c, 0, 0, 0); o[ID] = {REAL_MFMA}(c[0], x, c, 0, 0, 0) * 2.0f; }}"
        ),
    ),
    "a scalar from a lane": (
        "gfx942",
        (
            "KERNEL(const u32* a, u32* o, int n) { u32 x = __builtin_amdgcn_readfirstlane(o[ID]);"
            " auto r = __builtin_amdgcn_make_buffer_rsrc((void*)a, 0, 4096, 0x27000);"
            " o[ID] = __builtin_amdgcn_raw_buffer_load_b32(r, ID * 4, x, 0); }"
        ),
    ),
}


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("name", CHAINS)
def test_every_wait_state_that_the_compiler_inserts_is_needed(name: str) -> None:
    arch, source = CHAINS[name]
    code = compiled(source, arch)
    instructions = code.instructions()

    def found(edited: tuple[Instruction, ...]) -> set[str]:
        memory = np.zeros((64, 4), np.uint32)
        kernel = load_program(code.kernel(), edited)
        return {each.code for each in run_kernel(kernel, args=[memory, memory, 3], block=(64, 1, 1)).findings}

    assert found(instructions) == set()
    places = [place for place, each in enumerate(instructions) if each.opcode == "s_nop"]
    assert places
    for place in places:
        states = int(instructions[place].operands[0])
        shorter = with_nops(instructions, place, states) if states else instructions[:place] + instructions[place + 1 :]
        assert found(shorter) == {"I104"}


def test_a_load_to_lds_needs_a_wait_state_behind_the_m0_that_it_uses() -> None:
    load = "buffer_load_dword v0, s[4:7], 0 offen lds"
    for text, fault in ((f"s_mov_b32 m0, 0\n{load}", True), (f"s_mov_b32 m0, 0\ns_nop 0\n{load}", False)):
        wave = fresh({0: 0}, {4: 0, 5: 0, 6: 0, 7: 0})
        execute(text, wave)
        assert codes(wave) == (["I104"] if fault else [])
    wave = fresh({0: 0, 1: 64}, {4: 0, 5: 0, 6: 0, 7: 0})
    assert codes(execute(f"v_readfirstlane_b32 m0, v1\n{load}", wave)) == ["I104"]


def test_a_scalar_register_that_a_valu_wrote_is_not_read_by_memory_at_once() -> None:
    for states, fault in ((3, True), (4, False)):
        wave = fresh({0: 0, 1: 0}, {4: 0, 5: 0, 6: 0, 7: 0, 8: 0})
        execute(f"v_readfirstlane_b32 s8, v1\ns_nop {states}\nbuffer_load_dword v2, v0, s[4:7], s8 offen", wave)
        assert codes(wave) == (["I104"] if fault else [])


@pytest.mark.parametrize(("nops", "codes_found"), [("", {"I104"}), ("s_nop 2", {"I104"}), ("s_nop 15", set())])
def test_the_compiler_inserts_nothing_behind_an_mfma_that_is_hidden_in_inline_assembly(
    nops: str, codes_found: set[str]
) -> None:
    source = (
        "KERNEL(const vec<f16, 8>* a, vec<float, 4>* o) { auto x = a[ID]; vec<float, 4> c = {}; "
        'asm volatile("s_nop 1\\n\\tv_mfma_f32_16x16x32_f16 %0, %1, %1, %0" : "+v"(c) : "v"(x)); '
        f'asm volatile("{nops}"); o[ID] = c; }}'
    )
    code = compiled(source, "gfx950")
    outcome = run_kernel(
        load_program(code.kernel(), code.instructions()),
        args=[np.zeros((64, 8), np.float16), np.ones((64, 4), np.float32)],
        block=(64, 1, 1),
    )
    assert {finding.code for finding in outcome.findings} == codes_found
    assert np.isnan(outcome.buffers[1]).any() == bool(codes_found)
