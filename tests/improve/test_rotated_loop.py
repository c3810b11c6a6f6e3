"""A loop whose trips are cut in two does what it did, for any number of trips; a wrong cut is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rota.errors import ToolchainError
from rota.improve.loop_block import LoopBlock, make_nop, read_block
from rota.improve.patched_code import Cut, list_cuts, rotate
from rota.improve.same_kernel import find_difference
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.elf import read_elf
from rota.isa.binary.grown_code import append_words, find_room
from rota.isa.disassembly import Instruction
from rota.isa.launch.loaded_kernel import load_kernel
from rota.lift.lifted_loop import find_loops
from rota.prove.operation import read_operation
from rota.prove.slicing import derive_successors
from rota.targets.registry import architecture_named
from tests.lint.linted import compiled

SOURCE = """void k(float* out, const float* in, int trips) {
  __shared__ float lds[64];
  int i = __builtin_amdgcn_workitem_id_x();
  float sum = 1;
  #pragma unroll 1
  for (int t = 0; t < trips; t++) {
    lds[i] = in[64 * t + i];
    __syncthreads();
    sum = lds[63 - i] * sum + lds[i ^ 1];
    __syncthreads();
  }
  out[i] = sum;
}"""
TRIPS = (1, 2, 3, 6)
TABLES = 64 + 56 * 9  # bytes of the header and of the segments' headers


@cache
def subject() -> tuple[CodeObject, tuple[Instruction, ...], LoopBlock]:
    code = compiled(SOURCE)
    instructions, arch = code.instructions(), architecture_named("gfx950")
    assert arch is not None
    operations = tuple(read_operation(each, number, arch) for number, each in enumerate(instructions))
    (loop,) = find_loops("k", operations, derive_successors(operations))
    return code, instructions, read_block("k", instructions, loop.chain, arch)


def cuts() -> tuple[Cut, ...]:
    _, instructions, block = subject()
    return list_cuts(instructions, block)


def run(code: CodeObject, trips: int) -> np.ndarray:
    out, given = np.zeros(64, np.float32), np.linspace(-1, 1, 64 * trips, dtype=np.float32)
    load_kernel(code.hsaco, "k").launch(out, given, trips, grid=1, block=64, orders=1)
    return out


def test_a_cut_loop_leaves_the_same_bits_for_any_number_of_trips() -> None:
    code, instructions, block = subject()
    found = cuts()
    assert len(found) > 2
    assert found[0].head == ()
    for cut in found:
        assert sorted((*cut.head, *cut.rest)) == list(block.items)
        made = rotate(code, instructions, block, cut)
        assert made is not None
        assert find_difference(instructions, made.instructions()) is None
        for trips in TRIPS:
            assert run(made, trips).tobytes() == run(code, trips).tobytes(), (len(cut.head), trips)


def test_what_a_head_depends_on_is_in_it() -> None:
    _, _, block = subject()
    for cut in cuts()[1:]:
        memory = [number for number in cut.head if block.operations[number].data]
        assert memory
        assert not any(block.before[each] & set(cut.rest) for each in memory)


def spoil(kind: str, listing: list[Instruction], first: int) -> list[Instruction]:
    """The listing of a cut loop with one mistake in what is executed in the loop's place."""
    branches = [
        number for number, each in enumerate(listing) if each.opcode.startswith("s_cbranch_scc") and number > first
    ]
    loads = [number for number, each in enumerate(listing) if each.opcode.startswith("global_load") and number > first]
    number = {
        "condition": branches[0],
        "closing": branches[1],
        "again": branches[1],
        "lost": loads[0],
        "elsewhere": first,
    }[kind]
    each = listing[number]
    if kind == "lost":
        listing[number] = replace(make_nop(each, 0), address=each.address)
    elif kind in {"condition", "closing"}:
        other = "s_cbranch_scc0" if each.opcode == "s_cbranch_scc1" else "s_cbranch_scc1"
        listing[number] = replace(each, opcode=other, encoding=(each.encoding[0] ^ 1 << 16,))
    else:
        listing[number] = replace(each, target=(each.target or 0) + 1)
    return listing


@pytest.mark.parametrize("kind", ["condition", "closing", "again", "lost", "elsewhere"])
def test_a_wrong_cut_is_refused(kind: str) -> None:
    code, instructions, block = subject()
    made = rotate(code, instructions, block, cuts()[1])
    assert made is not None
    assert find_difference(instructions, made.instructions()) is None
    assert find_difference(instructions, spoil(kind, list(made.instructions()), block.first)) is not None


def test_a_jump_to_the_branch_that_closes_the_loop_is_refused() -> None:
    """What is there in the new kernel is something else."""
    code, instructions, block = subject()
    made = rotate(code, instructions, block, cuts()[1])
    assert made is not None
    jump = next(number for number, each in enumerate(instructions) if each.target is not None and number < block.first)
    old = [*instructions]
    old[jump] = replace(old[jump], target=block.last)
    assert find_difference(instructions, made.instructions()) is None
    assert find_difference(old, made.instructions()) is not None


def test_each_other_order_of_the_parts_is_refused() -> None:
    """Heads that lack something that comes before, or have something of the rest too much."""
    code, instructions, block = subject()
    right = {cut.head for cut in cuts()}
    items, refused = block.items, 0
    for size in range(1, len(items)):
        cut = Cut(head=items[-size:], rest=items[:-size])
        counts = [count for each in block.count_waits((*cut.head, *cut.rest)).values() for count in each.values()]
        if cut.head in right or min(counts, default=0) < 0:  # a wait for what isn't issued yet
            continue
        made = rotate(code, instructions, block, cut)
        assert made is not None
        same = find_difference(instructions, made.instructions()) is None
        agree = all(run(made, trips).tobytes() == run(code, trips).tobytes() for trips in TRIPS) if same else False
        refused += not same
        assert same <= agree
    assert refused > 2


def test_more_code_moves_nothing_that_is_loaded() -> None:
    code, instructions, _ = subject()
    room = find_room(code.hsaco, instructions[0].address or 0)
    assert room is not None
    words = [0xBF800000 | number % 8 for number in range(100)]
    old, new = read_elf(code.hsaco), read_elf(append_words(code.hsaco, room, words))
    assert (new.symbols, new.metadata, new.relocations, new.flags) == (
        old.symbols,
        old.metadata,
        old.relocations,
        old.flags,
    )
    for was, now in zip(old.segments, new.segments, strict=True):
        assert now.address == was.address
        tables = 0 if was.address else TABLES  # they hold offsets in the file
        assert now.contents[tables : len(was.contents)] == was.contents[tables:]
        assert (len(now.contents) == len(was.contents)) is not was.executable
    held = new.bytes_at(room.address, 400)
    assert held == b"".join(word.to_bytes(4, "little") for word in words)
    with pytest.raises(ToolchainError, match="T103"):
        append_words(code.hsaco, room, [0] * (room.words + 1))
