"""Calls and jumps by register: where they go is found, or it is said that it isn't."""

from __future__ import annotations

import re

import pytest

from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.disassembly import derive_flow, parse_listing, read_listing
from rota.isa.launch.run import run_kernel
from tests.findings.smallest import raised
from tests.isa.assembly import described, function, kernel, note, noted

CALL = """
s_getpc_b64 s[{at}:{next}]
s_add_u32 s{at}, s{at}, {name}@rel32@lo+4
s_addc_u32 s{next}, s{next}, {name}@rel32@hi+12
"""


def address(name: str, at: int) -> str:
    return CALL.format(name=name, at=at, next=at + 1)


def local(name: str, body: str) -> str:
    """A function that the linker needn't look for elsewhere."""
    return f".hidden {name}\n" + function(name, body)


def assembled(body: str, *functions: str) -> CodeObject:
    return find_toolchain().assemble(kernel(body, before="\n".join(functions)), "gfx950")


def ran(code: CodeObject) -> int:
    """The instructions that one wave executes, without any finding."""
    outcome = run_kernel(load_program(code.kernel(), code.instructions()), args=[], block=(64, 1, 1))
    assert outcome.findings == ()
    return outcome.instructions


def unresolved(code: CodeObject) -> tuple[int, ...]:
    entry = code.kernel().entry
    assert entry is not None
    return derive_flow(parse_listing(code.disassembly), entry).unresolved


def test_a_function_that_is_called() -> None:
    """It stands before the kernel, whose first instruction comes first all the same."""
    code = assembled(
        address("f", 2) + "s_swappc_b64 s[30:31], s[2:3]\ns_nop 1",
        local("f", "s_nop 7\ns_setpc_b64 s[30:31]"),
        local("unused", "s_nop 9\ns_setpc_b64 s[30:31]"),
    )
    texts = [each.text for each in code.instructions()]
    assert (texts[0], texts[-2:]) == ("s_getpc_b64 s[2:3]", ["s_nop 7", "s_setpc_b64 s[30:31]"])
    assert "s_nop 9" not in texts
    assert {each.symbol for each in code.instructions()} == {"k", "f"}
    assert unresolved(code) == ()
    assert ran(code) == 3 + 1 + 2 + 2


def test_a_function_called_from_two_places_and_one_that_calls_on() -> None:
    """The inner return address goes through lanes of a vector register, as compilers keep it."""
    save = "v_writelane_b32 v7, s30, 0\nv_writelane_b32 v7, s31, 1"
    back = "v_readlane_b32 s30, v7, 0\nv_readlane_b32 s31, v7, 1"
    call = "s_swappc_b64 s[30:31], s[2:3]"
    code = assembled(
        f"{address('outer', 2)}{call}\n{call}",
        local("outer", f"{save}\n{address('inner', 4)}s_swappc_b64 s[30:31], s[4:5]\n{back}\ns_setpc_b64 s[30:31]"),
        local("inner", "s_nop 7\ns_setpc_b64 s[30:31]"),
    )
    assert unresolved(code) == ()
    assert ran(code) == 3 + 2 * (1 + 2 + 3 + 1 + 2 + 2 + 1) + 1


def test_a_call_by_distance() -> None:
    code = assembled("s_call_b64 s[30:31], f", local("f", "s_nop 7\ns_setpc_b64 s[30:31]"))
    assert unresolved(code) == ()
    assert code.instructions()[0].target == 2
    assert ran(code) == 4


def test_a_jump_that_depends_on_what_is_computed_may_go_to_any_function() -> None:
    """s_cselect_b32 is not followed: both functions are taken in, and the run goes to the one that is chosen."""
    chosen = "s_cmp_eq_u32 s6, s6\ns_cselect_b32 s2, s2, s4\ns_cselect_b32 s3, s3, s5\ns_swappc_b64 s[30:31], s[2:3]"
    code = assembled(
        address("f", 2) + address("g", 4) + chosen,
        local("f", "s_nop 7\ns_setpc_b64 s[30:31]"),
        local("g", "s_setpc_b64 s[30:31]"),
    )
    assert len(unresolved(code)) == 1
    assert {each.symbol for each in code.instructions()} == {"k", "f", "g"}
    assert ran(code) == 6 + 4 + 2 + 1


def test_another_kernel_is_no_function_that_could_be_called() -> None:
    both = function("k", "s_and_b32 s2, s2, -4\ns_setpc_b64 s[2:3]") + function("other", "s_sethalt 1\ns_endpgm")
    text = ".text\n" + both + described("k") + described("other") + noted(note("k"), note("other"))
    code = find_toolchain().assemble(text, "gfx950")
    assert [each.opcode for each in code.instructions("k")] == ["s_and_b32", "s_setpc_b64"]


def test_what_nobody_follows_is_not_guessed() -> None:
    """A register that an instruction names is not known after it, nor is what a loop adds to over and over."""
    code = assembled(address("f", 2) + "s_and_b32 s2, s2, -4\ns_swappc_b64 s[30:31], s[2:3]", local("f", "s_endpgm"))
    assert len(unresolved(code)) == 1
    loop = "again:\ns_add_u32 s2, s2, 4\ns_cbranch_scc0 again\ns_setpc_b64 s[2:3]"
    assert len(unresolved(assembled(address("f", 2) + loop, local("f", "s_endpgm")))) == 1


def test_code_before_the_kernel_that_runs_into_it() -> None:
    """The kernel comes first in the order of its instructions, so nothing can stand before it and lead into it."""
    text = (
        "0000000000001000 <before>:\n\ts_nop 1   // 000000001000: BF800001\n"
        "0000000000001004 <k>:\n\ts_nop 2   // 000000001004: BF800002\n"
        "\ts_cbranch_scc1 65533   // 000000001008: BF85FFFD\n\ts_endpgm   // 00000000100C: BF810000\n"
    )
    finding = raised("I101", lambda: read_listing(text, "k"))
    assert "s_nop" in finding.message


@pytest.mark.parametrize("condition", ["s_cbranch_scc0", "s_cbranch_vccz", "s_cbranch_execz", "s_branch"])
def test_a_branch_goes_where_its_encoding_says(condition: str) -> None:
    """The label in a listing may be wrong, or missing: it is not looked at."""
    shown = assembled(f"s_nop 0\nback:\ns_nop 1\n{condition} back").disassembly
    lied = re.sub(r"<k\+0x\w+>$", "<elsewhere+0x40>", shown, flags=re.MULTILINE)
    assert lied != shown
    assert [each.target for each in read_listing(lied, "k")][:3] == [None, None, 1]


def test_a_branch_out_of_the_code() -> None:
    code = assembled("s_cbranch_scc0 0x4000")
    finding = raised("I101", code.instructions)
    assert "s_cbranch_scc0" in finding.message


def test_a_search_for_jumps_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    code = assembled(
        address("f", 2) + "s_swappc_b64 s[30:31], s[2:3]\ns_nop 1", local("f", "s_nop 7\ns_setpc_b64 s[30:31]")
    )
    code.instructions()
    monkeypatch.setattr("rota.isa.disassembly._FREE_VISITS", 5)
    monkeypatch.setattr("rota.isa.disassembly._MOST_VISITS", 0)
    finding = raised("I131", code.instructions)
    assert dict(finding.evidence)["visits"] == 5
