"""What a wave starts with: ids, the dispatch packet, hidden arguments and preloaded ones."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from rota import IsaError, load_kernel
from rota.isa.binary.kernel_facts import Argument
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.interleaving import LATEST
from rota.isa.launch.kernarg import (
    Pointer,
    Sizes,
    Value,
    build_kernarg,
    dynamic_lds,
    first_instruction,
    service_at,
    service_pointer,
)
from rota.isa.launch.run import run_dispatch, run_kernel
from tests.findings.smallest import raised
from tests.isa.single import DESCRIPTOR, facts, listing
from tests.isa.sources import PREAMBLE, compiled
from tests.wording.golden import worded

pytestmark = pytest.mark.thorough  # compiles, or starts commands

ARCHS = pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
GRID, BLOCK = (2, 3, 4), (5, 3, 7)


def words(source: str, count: int, arch: str, *, dynamic_lds: int = 0) -> np.ndarray:
    """What a kernel writes into an array of words, in a launch whose sizes all differ."""
    out = np.zeros(count, np.uint32)
    load_kernel(compiled(source, arch).hsaco).launch(
        out, grid=GRID, block=BLOCK, dynamic_lds=dynamic_lds, orders=[LATEST], check=False
    )
    return out


@ARCHS
def test_every_work_item_knows_its_place(arch: str) -> None:
    source = """
    #define OF(what) __builtin_amdgcn_work##what()
    KERNEL(u32* y) { u32 i = OF(item_id_x), j = OF(item_id_y), k = OF(item_id_z);
      u32 x = OF(group_id_x), w = OF(group_id_y), z = OF(group_id_z);
      y[((z * 3 + w) * 2 + x) * 105 + (k * 3 + j) * 5 + i] = i | j << 4 | k << 8 | x << 12 | w << 16 | z << 20; }"""
    place = [
        i | j << 4 | k << 8 | x << 12 | w << 16 | z << 20
        for z in range(4) for w in range(3) for x in range(2) for k in range(7) for j in range(3) for i in range(5)
    ]  # fmt: skip
    assert [*words(source, 24 * 105, arch)] == place


@ARCHS
def test_the_dispatch_packet(arch: str) -> None:
    """As the HSA runtime specification lays it out."""
    source = """KERNEL(u32* y) { SHARED u32 s[64]; s[ID] = ID; y[63] = s[3];
      auto p = (const u32 __attribute__((address_space(4)))*)__builtin_amdgcn_dispatch_ptr();
      for (int i = 0; i < 16; i++) y[i] = p[i]; }"""
    packet = struct.unpack("<6H5I4Q", words(source, 64, arch, dynamic_lds=512)[:16].tobytes())
    assert packet[0] & 0xFF == 2  # a kernel dispatch
    assert packet[1:6] == (3, 5, 3, 7, 0)
    assert packet[6:11] == (10, 9, 28, 0, 256 + 512)
    assert packet[12] % 64 == 0
    assert packet[13:] == (0, 0)


@ARCHS
def test_hidden_arguments(arch: str) -> None:
    """Byte offsets from the first hidden argument, as LLVM documents them for code objects of version 5."""
    source = """
    #define CONSTANT __attribute__((address_space(4)))
    extern __attribute__((shared)) u32 dynamic[];
    KERNEL(u32* y) { auto w = (const u32 CONSTANT*)__builtin_amdgcn_implicitarg_ptr(); auto h = (const u16 CONSTANT*)w;
      for (int i = 0; i < 3; i++) { y[i] = w[i]; y[3 + i] = h[6 + i]; y[6 + i] = h[9 + i]; y[9 + i] = w[10 + 2 * i]; }
      y[12] = h[32]; y[13] = w[30]; y[14] = w[20]; y[15] = w[21]; if (ID == 0) dynamic[0] = 0; }"""
    found = [*map(int, words(source, 16, arch, dynamic_lds=48))]
    assert found[:9] == [*GRID, *BLOCK, 0, 0, 0]
    assert found[9:12] == [0, 0, 0]  # offsets of the grid
    assert found[12:14] == [3, 48]  # dimensions, dynamic LDS
    assert service_at(found[14] | found[15] << 32) == "hostcall_buffer"


def test_a_service_that_there_is_not() -> None:
    source = """KERNEL(u32* y) { auto p = (u32*** __attribute__((address_space(4))))__builtin_amdgcn_implicitarg_ptr();
      auto host = *(u32* const __attribute__((address_space(4)))*)((const u8 __attribute__((address_space(4)))*)p + 80);
      y[0] = host[0]; }"""
    with pytest.raises(IsaError) as caught:
        load_kernel(compiled(source, "gfx950").hsaco).launch(np.zeros(4, np.uint32), block=64, orders=1)
    worded(caught.value)


@ARCHS
def test_preloaded_arguments(arch: str) -> None:
    """Waves enter after the loads that old firmware needs, and find in SGPRs what these would have loaded."""
    toolchain = find_toolchain("clang++-22")
    flags = ("-mllvm", "-amdgpu-kernarg-preload-count=8")
    with_flags = replace(toolchain, compiler=(*toolchain.compiler, *flags))
    source = "KERNEL(u32* y, int a, int b) { y[ID] = a * 1000 + b + __builtin_amdgcn_workgroup_id_x(); }"
    code = with_flags.compile(PREAMBLE + source, arch)
    preloaded, plain = load_kernel(code.hsaco), load_kernel(toolchain.compile(PREAMBLE + source, arch).hsaco)
    assert dict(preloaded.facts.user_sgprs)["kernarg_preload"] == 4
    steps = [step.instruction for step in preloaded.program.steps]
    start = steps[0].address
    assert start is not None
    entered = steps[first_instruction(preloaded.facts, steps)].address
    assert entered in {start, start + 256}
    assert preloaded.facts.entry in {None, entered}
    outs = [np.zeros(64, np.uint32) for _ in range(2)]
    results = [
        each.launch(out, 7, 5, grid=2, block=64, orders=[LATEST], check=False)
        for each, out in zip((preloaded, plain), outs, strict=True)
    ]
    assert (outs[0] == 7006).all()
    assert (outs[1] == 7006).all()
    assert results[0].instructions < results[1].instructions


def test_user_sgprs_in_hardware_order() -> None:
    """Every value that a descriptor can ask for, stored word by word; what the hardware finds by itself is poison."""
    names = (
        ("private_segment_buffer", 4), ("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2),
        ("dispatch_id", 2), ("flat_scratch_init", 2), ("private_segment_size", 1), ("kernarg_preload", 2),
    )  # fmt: skip
    stores = "".join(
        f"v_mov_b32_e32 v1, s{number}\nglobal_store_dword v2, v1, s[30:31] offset:{4 * number}\n"
        for number in range(20)
    )
    told = facts(
        user_sgprs=names,
        arguments=(Argument(name="y", offset=8, size=8, kind="global_buffer"),),
        kernarg_bytes=16,
        private_bytes=24,
        workgroup_ids=(True, False, True),
    )
    told = replace(told, descriptor=replace(DESCRIPTOR, preload_offset=2, workgroup_info=True))
    assembly = f"v_mov_b32_e32 v2, 0\ns_mov_b32 s30, s15\ns_mov_b32 s31, s16\n{stores}"
    outcome = run_kernel(
        load_program(told, listing(assembly)), args=[np.zeros(32, np.uint32)], grid=(1, 1, 2), block=(130, 1, 1)
    )
    found = [int(word) for word in outcome.buffers[0]]
    assert {*found[:4], *found[12:14]} == {0xFFFF_FFFF}
    packet, queue, kernarg = (found[at] | found[at + 1] << 32 for at in (4, 6, 8))
    assert queue == service_pointer("queue_ptr")
    assert service_at(packet) is service_at(kernarg) is None
    assert packet != kernarg
    assert packet % 64 == kernarg % 64 == 0
    assert found[10:12] == [0, 0]
    assert found[14] == 24
    assert found[17:19] == [0, 1]  # ids in x and z
    assert found[19] & 0x3F == 3  # waves


def test_pointers_to_lds_and_kinds_that_are_refused() -> None:
    sizes = Sizes(grid=(1, 1, 1), block=(64, 1, 1), fixed_lds=20, dynamic_lds=100)
    shared = [Argument(name=f"s{at}", offset=at, size=4, kind="dynamic_shared_pointer") for at in (0, 4)]
    segment = build_kernarg(facts(arguments=tuple(shared), kernarg_bytes=8), [40, 8], lambda _: 0, sizes)
    assert struct.unpack("<2I", segment) == (32, 80)
    assert dynamic_lds(facts(arguments=tuple(shared)), [40, 8], sizes) == 100 + 12 + 40 + 8 + 8
    raised("I107", lambda: build_kernarg(facts(arguments=(shared[0],), kernarg_bytes=8), [None], lambda _: 0, sizes))
    image = Argument(name="i", offset=0, size=8, kind="image")
    raised("I107", lambda: build_kernarg(facts(arguments=(image,), kernarg_bytes=8), [1], lambda _: 0, sizes))


def test_without_notes_arguments_lie_as_in_c() -> None:
    sizes = Sizes(grid=(1, 1, 1), block=(64, 1, 1), fixed_lds=0, dynamic_lds=0)
    unnamed = facts(kernarg_bytes=32)
    values = [np.int32(1), None, np.int16(2), b"abc"]
    segment = build_kernarg(unnamed, values, lambda _: 0, sizes)
    assert segment == struct.pack("<i4xqh3s11x", 1, 0, 2, b"abc")
    raised("I107", lambda: build_kernarg(unnamed, [1], lambda _: 0, sizes))
    raised("I107", lambda: build_kernarg(unnamed, [bytes(33)], lambda _: 0, sizes))


def test_a_pointer_that_the_compiler_lost_sight_of() -> None:
    """Eight bytes by value that are given an array, and a pointer that is given a number."""
    sizes = Sizes(grid=(1, 1, 1), block=(64, 1, 1), fixed_lds=0, dynamic_lds=0)
    kinds = [Argument(name=kind, offset=at, size=8, kind=kind) for at, kind in ((0, "by_value"), (8, "global_buffer"))]
    values: list[Value] = [Pointer(buffer=0, offset=4), 0x1234]
    segment = build_kernarg(facts(arguments=tuple(kinds), kernarg_bytes=16), values, lambda to: 64 + to.offset, sizes)
    assert struct.unpack("<2Q", segment) == (68, 0x1234)


def test_a_kernel_that_asks_for_nothing() -> None:
    program = load_program(facts(), listing("s_nop 0"))
    outcome = run_dispatch(program, buffers=[], values=[], grid=(1, 1, 1), block=(1, 1, 1))
    assert (outcome.findings, outcome.instructions) == ((), 2)
