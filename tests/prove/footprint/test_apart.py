"""Bytes of different workgroups: right kernels are proved apart, wrong ones meet when they run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from rota.errors import IsaError
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.run import run_kernel
from rota.prove.footprint.accesses import accesses_of
from rota.prove.footprint.apart import find_overlaps, report_overlap
from rota.prove.footprint.bounds import parse_contract
from tests.prove.footprint.test_inside import INDEX, PLANE, source

RANGES = ("n=1..1048576", "group_x=0..65535", "group_y=0..65535")


@dataclass(frozen=True, kw_only=True)
class Twins:
    """Two bodies, and a launch in which the workgroups of the wrong one meet."""

    takes: str
    right: str
    wrong: str
    ranges: tuple[str, ...] = RANGES
    numbers: tuple[int, ...] = (200,)
    grid: tuple[int, int, int] = (3, 1, 1)


TWINS = {
    "each its own word": Twins(
        takes="float* x, u n", right=INDEX + "if (i < n) x[i] = i;", wrong=INDEX + "if (i < n) x[i / 128] = i;",
    ),
    "a shift in place": Twins(
        takes="float* x, float* y, u n", right=INDEX + "if (i + 1 < n) y[i] = x[i + 1];",
        wrong=INDEX + "if (i + 1 < n) x[i] = x[i + 1];",
    ),
    "tiles that overlap": Twins(
        takes="float* x, u n", right="x[G(x) * 64 + T(x)] = G(x);", wrong="x[G(x) * 63 + T(x)] = G(x);",
    ),
    "rows": Twins(
        takes="float* x, u n", right=PLANE + "if (c < n) x[(ul)r * n + c] = r;",
        wrong=PLANE + "if (c <= n) x[(ul)r * n + c] = r;", numbers=(20,), grid=(2, 2, 1),
    ),
    "sums": Twins(
        takes="u* x, u n", right="__atomic_fetch_add(x + T(x) % 4, n, __ATOMIC_RELAXED);",
        wrong="x[T(x) % 4] = G(x);",
    ),
    "a word of all": Twins(
        takes="float* x, u n", right="x[G(x) * 64 + T(x)] = n;",
        wrong="x[G(x) * 64 + T(x)] = n; if (T(x) == 0) x[0] = G(x);",
    ),
    "wide words": Twins(
        takes="__attribute__((ext_vector_type(4))) float* x, u n", right=INDEX + "x[i] = n;",
        wrong="__attribute__((ext_vector_type(4))) float* p = (__attribute__((ext_vector_type(4))) float*)((float*)x"
        " + (G(x) * 64 + T(x)) * 4 + G(x) % 2 * 0 - (G(x) ? 1 : 0)); *p = G(x);",
    ),
}  # fmt: skip


def overlaps(twins: Twins, body: str) -> list[str]:
    kernel = accesses_of(find_toolchain().compile(source(twins.takes, body), "gfx950"))
    found = find_overlaps(kernel, parse_contract(kernel, (), twins.ranges))
    return [report_overlap(each).code for each in found]


def met(twins: Twins, body: str) -> bool:
    """True if an execution finds that nothing orders accesses of two workgroups, equal values included."""
    code = find_toolchain().compile(source(twins.takes, body), "gfx950")
    numbers = iter(twins.numbers)
    args = [
        np.uint32(next(numbers)) if each.kind == "by_value" else np.zeros(4096, np.float32)
        for each in code.kernel().arguments
        if each.kind in {"by_value", "global_buffer"}
    ]
    ended = run_kernel(load_program(code.kernel(), code.disassembly), args=args, grid=twins.grid, block=(64, 1, 1))
    return bool({each.code for each in ended.findings} & {"I303", "I304"})


@pytest.mark.parametrize("name", TWINS)
def test_the_right_twin_is_apart(name: str) -> None:
    twins = TWINS[name]
    assert overlaps(twins, twins.right) == []
    assert not met(twins, twins.right)


@pytest.mark.parametrize("name", TWINS)
def test_the_wrong_twin_meets(name: str) -> None:
    twins = TWINS[name]
    assert set(overlaps(twins, twins.wrong)) == {"I503"}
    assert met(twins, twins.wrong)


def test_a_kernel_that_asks_for_no_workgroup_isnt_apart() -> None:
    twins = TWINS["sums"]
    assert overlaps(twins, "x[T(x)] = n;") == ["I503"]


@pytest.mark.parametrize(("word", "codes"), [("3", set()), ("(G(x) ? 2 : 3)", {"I503"}), ("(T(x) ? 2 : 3)", {"I503"})])
def test_a_word_of_the_launch_is_the_same_for_all_where_its_place_is(word: str, codes: set[str]) -> None:
    read = f"ul s = ((const unsigned*)__builtin_amdgcn_dispatch_ptr())[{word}];"
    assert set(overlaps(TWINS["sums"], f"{read} x[(s + G(x)) * 64 + T(x)] = n;")) == codes


def test_pointers_that_are_the_same_meet_in_place() -> None:
    """y[i] = x[i + 1] is a race if y is x; y[i] = x[i] isn't."""
    twins = TWINS["a shift in place"]
    for body, codes in ((twins.right, {"I503"}), (twins.right.replace("x[i + 1]", "x[i]"), set())):
        kernel = accesses_of(find_toolchain().compile(source(twins.takes, body), "gfx950"))
        contract = parse_contract(kernel, (), twins.ranges)
        assert find_overlaps(kernel, contract) == ()
        assert {report_overlap(each).code for each in find_overlaps(kernel, contract, {"y": "x"})} == codes


def test_too_many_pairs_end_in_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.prove.footprint.apart._MOST_PAIRS", 1)
    twins = TWINS["a shift in place"]
    with pytest.raises(IsaError) as ended:
        overlaps(twins, twins.wrong)
    assert [each.code for each in ended.value.findings] == ["I402"]
