from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from rota import CompiledSchedule
from rota.audit.audit import audit_skeleton
from rota.emit.forms import emit_skeleton
from rota.emit.gemm.program_form import follow_k_tiles
from rota.isa.binary.toolchain import find_toolchain
from rota.kernels.attention import ATTENTION
from rota.kernels.catalogue import shipped_kernels
from rota.kernels.single_buffer import SingleBufferSchedule
from rota.pipeline.compiler import compile_schedule
from rota.program.kinds import OpRole
from rota.program.lowered import TileSum
from rota.values.compile_loop import compile_loop
from rota.verify.report import ENTERED_ONCE, in_order_assumption
from tests.emit.kernels import SMALL, by_values, four_wave, ping_pong
from tests.emit.stubs import VALU, kernel_around
from tests.findings.smallest import raised

pytestmark = pytest.mark.thorough  # compiles, or starts commands


@pytest.mark.parametrize("name", ["attention", "gemm"])
def test_the_order_survives_the_compiler(name: str) -> None:
    compiled = compile_loop(ATTENTION.loop(instructions=False)) if name == "attention" else by_values(SMALL)[0]
    source = kernel_around(compiled)
    audit = audit_skeleton(compiled, find_toolchain().compile(source, "gfx950"), valu={VALU})
    assert audit.exact, str(audit)
    assert audit.facts.spills == 0
    assert audit.certificate is not None


def test_vector_ops_that_use_their_k_tile_are_still_the_schedule() -> None:
    """As a causal mask does: whether a key counts depends on its number."""
    compiled = compile_loop(ATTENTION.loop(instructions=False))
    source = kernel_around(compiled)
    masked = source.replace('"=v"(y) : "v"(x))', '"=v"(y) : "v"(x), "s"(k))')
    assert masked != source
    audit = audit_skeleton(compiled, find_toolchain().compile(masked, "gfx950"), valu={VALU})
    assert audit.exact, str(audit)


def test_functions_are_listed_as_they_were_declared() -> None:
    loop = ATTENTION.loop(instructions=False)
    header = emit_skeleton(compile_loop(loop))
    assert re.findall(r"^//   .*void (\w+)\(", header, re.MULTILINE) == [op.name for op in loop.ops]


def test_without_fences_it_does_not() -> None:
    compiled = by_values(SMALL)[0]
    source = kernel_around(compiled).replace("__builtin_amdgcn_sched_barrier(0);", "")
    assert not audit_skeleton(compiled, find_toolchain().compile(source, "gfx950"), valu={VALU}).exact


def test_functions_are_named_and_specialised_as_ops_are() -> None:
    header = emit_skeleton(four_wave()[0])
    assert "//   template <int stage, int subtile> void load_a(int k);" in header
    assert "//   template <int row, int column> void mma(int k);" in header
    assert "ops.template load_a<1, 1>(1); ROTA_FENCE" in header  # the prologue fills stage 1 with K-tile 1
    assert "ops.template load_a<1, 1>(k + 1); ROTA_FENCE" in header  # the loop, with the second tile of a trip
    assert "wave_group" not in header


def test_staggered_groups_ask_for_their_number() -> None:
    header = emit_skeleton(ping_pong()[0])
    assert "(Ops& ops, int trips, int wave_group) {" in header
    assert header.count("if (wave_group == 1) { ROTA_BARRIER }") == 1
    assert header.count("if (wave_group == 0) { ROTA_BARRIER }") == 1
    assert "ops.template load_a<1, 1>(k - 1); ROTA_FENCE" in header


def test_values_that_share_registers_are_named() -> None:
    header = emit_skeleton(compile_loop(ATTENTION.loop(instructions=False)))
    assert "// o is written into the registers of scaled." in header


def calls(header: str, trips: int) -> list[tuple[str, int]]:
    """Each call and the K-tile it is told, as the header's text says it."""
    prologue, _, rest = header.partition("  // prologue\n")[2].partition("  int k = ")
    first, _, rest = rest.partition(";")
    kernel, _, rest = rest.partition("    // kernel\n")[2].partition("    k += ")
    step, _, epilogue = rest.partition(";")
    found: list[tuple[str, int]] = []
    for text, k in (
        (prologue, 0),
        *((kernel, int(first) + trip * int(step)) for trip in range(trips)),
        (epilogue, int(first) + trips * int(step)),
    ):
        for call, base, sign, number in re.findall(r"ops\.(?:template )?([^(]+)\((k?) ?([+-]?) ?(\d*)\);", text):
            found.append((call, (k if base else 0) + int(f"{sign}{number}" or 0)))
    return found


@cache
def in_tiles(name: str) -> CompiledSchedule:
    """Where there is a choice; it is found sooner."""
    return shipped_kernels()[name].but("instructions", value=False).compile()


@pytest.mark.parametrize("name", shipped_kernels())
@pytest.mark.parametrize("trips", [0, 1, 3])
def test_every_function_is_told_its_k_tile(name: str, trips: int) -> None:
    """A product or a softmax of every K-tile, in their order: a mask can be written with nothing but k."""
    compiled = in_tiles(name)
    header = emit_skeleton(compiled)
    declared = [line for line in header.splitlines() if line.startswith("//   ") and " void " in line]
    assert all(line.endswith("(int k);") for line in declared)
    total = compiled.lowered.total_tiles(trips)
    told: dict[str, list[int]] = {}
    for call, k in calls(header, trips):
        told.setdefault(
            re.sub(r"(to|from)_\w+", "", call)
            if isinstance(compiled.lowered.semantics, TileSum)
            else call.split("<")[0],
            [],
        ).append(k)
    computes = [call for call in told if call.startswith(("mma<", "mma_s", "mma_o", "make_", "compute", "mma_c"))]
    assert computes
    for call in computes:
        assert told[call] == list(range(total)), call
    assert all(0 <= k < total for tiles in told.values() for k in tiles)


def test_an_op_that_changes_its_tile_from_trip_to_trip_is_refused() -> None:
    """Nothing is loaded in the loop: a trip reads what the prologue brought, each time further back."""
    compiled, _ = four_wave()
    kernel = tuple(entry for entry in compiled.kernel if entry.op.role is not OpRole.GLOBAL_LOAD)
    program = replace(compiled, kernel=kernel).lowered
    raised("T203", lambda: follow_k_tiles(program))


def with_empty_functions(header: str) -> str:
    """The header and a kernel that calls it, with functions as its comment declares them."""
    declared = re.findall(r"^//   (.*void \w+\(.*\));$", header, re.MULTILINE)
    functions = [f"{each.replace('void ', '__attribute__((device)) void ')} {{}}" for each in declared]
    call = re.search(r"inline void (\w+)\(Ops& ops, int trips(, int wave_group)?\)", header)
    assert call is not None
    group = ", __builtin_amdgcn_workitem_id_x() >> 8" if call[2] else ""
    kernel = f'extern "C" __attribute__((global)) void caller(int trips) {{ Ops ops; {call[1]}(ops, trips{group}); }}'
    return "\n".join([header, "struct Ops {", *functions, "};", kernel, ""])


@pytest.mark.parametrize("name", shipped_kernels())
def test_functions_as_declared_are_all_that_a_header_needs(name: str) -> None:
    compiled = in_tiles(name)
    header = emit_skeleton(compiled)
    code = find_toolchain().compile(with_empty_functions(header), compiled.machine.arch)
    opcodes = [instruction.opcode for instruction in code.instructions("caller")]
    assert opcodes.count("s_barrier") == len(re.findall(r"^ .*ROTA_BARRIER", header, re.MULTILINE)) > 0
    assert opcodes.count("s_waitcnt") > 0


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_the_proof_assumes_is_part_of_the_contract(reentrant: bool) -> None:
    text = emit_skeleton(compile_schedule(SingleBufferSchedule(2), reentrant=reentrant))
    assert f"//   {in_order_assumption('vmcnt')}\n" in text
    assert (f"//   {ENTERED_ONCE}\n" in text) is not reentrant
