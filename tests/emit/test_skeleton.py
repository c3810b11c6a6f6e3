from __future__ import annotations

import re

import pytest

from rota.audit.audit import audit_skeleton
from rota.audit.toolchain import find_toolchain
from rota.compiler.loop import compile_loop
from rota.emit.skeleton import emit_skeleton
from rota.kernels.attention import ATTENTION
from rota.kernels.catalogue import shipped_kernels
from tests.emit.kernels import SMALL, by_values, four_wave, ping_pong
from tests.emit.stubs import VALU, kernel_around


@pytest.mark.parametrize("name", ["attention", "gemm"])
def test_the_order_survives_the_compiler(name: str) -> None:
    compiled = compile_loop(ATTENTION.loop(instructions=False)) if name == "attention" else by_values(SMALL)[0]
    source = kernel_around(compiled)
    audit = audit_skeleton(compiled, find_toolchain().compile(source, "gfx950"), valu={VALU})
    assert audit.exact, str(audit)
    assert audit.facts.spills == 0
    assert audit.certificate is not None


def test_without_fences_it_does_not() -> None:
    compiled = by_values(SMALL)[0]
    source = kernel_around(compiled).replace("__builtin_amdgcn_sched_barrier(0);", "")
    assert not audit_skeleton(compiled, find_toolchain().compile(source, "gfx950"), valu={VALU}).exact


def test_functions_are_named_and_specialised_as_ops_are() -> None:
    header = emit_skeleton(four_wave()[0])
    assert "//   template <int stage, int subtile> void load_a(int k);" in header
    assert "//   template <int row, int column> void mma();" in header
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
    kernel = shipped_kernels()[name]
    compiled = kernel.but("instructions", value=False).compile()  # in tiles, where there is a choice: it is quicker
    header = emit_skeleton(compiled)
    code = find_toolchain().compile(with_empty_functions(header), compiled.machine.arch)
    opcodes = [instruction.opcode for instruction in code.instructions("caller")]
    assert opcodes.count("s_barrier") == len(re.findall(r"^ .*ROTA_BARRIER", header, re.MULTILINE)) > 0
    assert opcodes.count("s_waitcnt") > 0
