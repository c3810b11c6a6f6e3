"""Accesses inside of what their pointers lead to: right kernels are proved, wrong ones go outside when run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.run import run_kernel
from rota.prove.footprint.accesses import accesses_of
from rota.prove.footprint.bounds import Reach, judge_bounds, parse_contract, parse_extent, report_bounds

HEAD = """#define G(a) __builtin_amdgcn_workgroup_id_##a()
#define T(a) __builtin_amdgcn_workitem_id_##a()
#define PLAIN _Pragma("clang loop unroll(disable) vectorize(disable)")
typedef unsigned u; typedef unsigned long ul;
extern "C" __attribute__((global, amdgpu_flat_work_group_size({block}, {block}))) void k("""
INDEX = "u i = G(x) * 64 + T(x); "
PLANE = "u c = G(x) * 16 + T(x) % 16, r = G(y) * 4 + T(x) / 16; "
FEW = ("n=1..1048576",)
BUFFER = ("__builtin_amdgcn_raw_buffer_store_b32(i, __builtin_amdgcn_make_buffer_rsrc(x, 0, BYTES, 0x27000), "
          "i * 4, 0, 0);")  # fmt: skip
ROW_BUFFER = BUFFER.replace("rsrc(x", "rsrc(y").replace("BYTES", "n * 4")


@dataclass(frozen=True, kw_only=True)
class Twins:
    """Two bodies, the extents and ranges that are promised, and a launch in which the wrong one goes outside."""

    takes: str
    right: str
    wrong: str
    extents: tuple[str, ...]
    ranges: tuple[str, ...] = FEW
    where: tuple[str, ...] = ()
    numbers: dict[str, int] = field(default_factory=dict)
    grid: tuple[int, int, int] = (4, 1, 1)


TWINS = {
    "a guard": Twins(
        takes="float* x, u n", right=INDEX + "if (i < n) x[i] = 1;", wrong=INDEX + "if (i <= n) x[i] = 1;",
        extents=("x=4*n",), numbers={"n": 100},
    ),
    "a signed guard": Twins(
        takes="float* x, int n", right="int i = G(x) * 64 + T(x); if (i < n) x[i] = 1;",
        wrong="int i = G(x) * 64 + T(x); if (i < n) x[i - 1] = 1;",
        extents=("x=4*n",), ranges=("n=1..1048576", "group_x=0..65535"), numbers={"n": 100},
    ),
    "a halo": Twins(
        takes="float* y, const float* x, u n",
        right=INDEX + "if (i > 0 && i < n && i + 1 < n) y[i] = x[i - 1] + x[i + 1];",
        wrong=INDEX + "if (i > 0 && i < n) y[i] = x[i - 1] + x[i + 1];",
        extents=("x=4*n", "y=4*n"), ranges=("n=1..1048576", "group_x=0..65535"), numbers={"n": 100},
    ),
    "rows and columns": Twins(
        takes="float* x, u m, u n", right=PLANE + "if (r < m && c < n) x[r * n + c] = 1;",
        wrong=PLANE + "if (r < m && c <= n) x[r * n + c] = 1;",
        extents=("x=4*m*n",), ranges=("n=1..4096", "m=1..4096"), numbers={"n": 20, "m": 8}, grid=(2, 2, 1),
    ),
    "rows of another length": Twins(
        takes="float* x, u m, u n, u s", right=PLANE + "if (r < m && c < n) x[(ul)r * s + c] = 1;",
        wrong=PLANE + "if (r < m && c < s) x[(ul)r * s + c + 1] = 1;",
        extents=("x=4*m*s",), ranges=("n=1..256", "m=1..4096", "s=256..65536"), numbers={"n": 20, "m": 4, "s": 256},
        grid=(16, 1, 1),
    ),
    "a loop of lanes": Twins(
        takes="float* x, u n", right=INDEX + "PLAIN for (u j = i; j < n; j += 256) x[j] += 1;",
        wrong=INDEX + "PLAIN for (u j = i; j <= n; j += 256) x[j] += 1;",
        extents=("x=4*n",), numbers={"n": 300},
    ),
    "a loop of all": Twins(
        takes="float* y, const float* x, u n",
        right="float s = 0; PLAIN for (u j = 0; j < n; ++j) s += x[j * 64 + T(x)]; y[T(x)] = s;",
        wrong="float s = 0; PLAIN for (u j = 0; j <= n; ++j) s += x[j * 64 + T(x)]; y[T(x)] = s;",
        extents=("x=256*n", "y=256"), numbers={"n": 3}, grid=(1, 1, 1),
    ),
    "a loop over rows": Twins(
        takes="float* y, const float* x, u n, u s",
        right="float a = 0; PLAIN for (u j = 0; j < n; ++j) a += x[(ul)j * s + T(x)]; y[T(x)] = a;",
        wrong="float a = 0; PLAIN for (u j = 0; j < n; ++j) a += x[(ul)j * s + T(x) + 1]; y[T(x)] = a;",
        extents=("x=4*n*s", "y=256"), ranges=("n=1..1048576", "s=64..65536"), numbers={"n": 3, "s": 64},
        grid=(1, 1, 1),
    ),
    "a minimum": Twins(
        takes="float* y, const float* x, u n", right=INDEX + "u j = i < n - 1 ? i : n - 1; y[T(x)] = x[j];",
        wrong=INDEX + "u j = i < n ? i : n; y[T(x)] = x[j];",
        extents=("x=4*n", "y=256"), numbers={"n": 100},
    ),
    "a mask": Twins(
        takes="float* x, u n", right="x[n * T(x) & 255] = 1;", wrong="x[n * T(x) & 511] = 1;",
        extents=("x=1024",), numbers={"n": 37}, grid=(1, 1, 1),
    ),
    "wide words": Twins(
        takes="__attribute__((ext_vector_type(4))) float* x, u n", right=INDEX + "if (i < n / 4) x[i] = 1;",
        wrong=INDEX + "if (i < (n + 3) / 4) x[i] = 1;",
        extents=("x=4*n",), numbers={"n": 6},
    ),
    "a remainder": Twins(
        takes="float* y, const float* x", right="y[T(x)] = x[T(x) % 48];", wrong="y[T(x)] = x[T(x) % 49];",
        extents=("x=192", "y=256"), ranges=(), grid=(1, 1, 1),
    ),
    "an atomic": Twins(
        takes="u* x, u n", right=INDEX + "if (i < n) __atomic_fetch_add(x + i, 1, __ATOMIC_RELAXED);",
        wrong=INDEX + "__atomic_fetch_add(x + i, 1, __ATOMIC_RELAXED);",
        extents=("x=4*n",), numbers={"n": 100},
    ),
    "a quotient by an argument": Twins(
        takes="float* x, u n", right="x[T(x) / n] = 1;", wrong="x[T(x) / n + 1] = 1;",
        extents=("x=256",), numbers={"n": 1}, grid=(1, 1, 1),
    ),
    "a remainder by an argument": Twins(
        takes="float* x, u n", right=INDEX + "x[i % n] = 1;", wrong=INDEX + "x[i % (n + 1)] = 1;",
        extents=("x=4*n",), ranges=("n=1..1048576", "group_x=0..65535"), numbers={"n": 100},
    ),
    "rows and columns of a number": Twins(
        takes="float* x, u m, u n", right=INDEX + "if (i < m * n) x[i / n * n + i % n] = 1;",
        wrong=INDEX + "if (i <= m * n) x[i / n * n + i % n] = 1;",
        extents=("x=4*m*n",), ranges=("n=1..4096", "m=1..4096"), where=("group_x <= 65535",),
        numbers={"n": 20, "m": 6},
    ),
    "a raw buffer": Twins(
        takes="float* x, u n", right=INDEX + BUFFER.replace("BYTES", "n * 4"),
        wrong=INDEX + BUFFER.replace("BYTES", "n * 4 + 4"),
        extents=("x=4*n",), numbers={"n": 100},
    ),
    "a raw buffer of a row": Twins(
        takes="float* x, u n, u s", right="float* y = x + (ul)G(x) * s; u i = T(x); " + ROW_BUFFER,
        wrong="float* y = x + (ul)G(x) * s + 1; u i = T(x); " + ROW_BUFFER,
        extents=("x=4*3*s+4*n",), ranges=("n=1..65536", "s=0..65536"), where=("group_x < 4", "s >= n"),
        numbers={"n": 20, "s": 20},
    ),
    "a relation": Twins(
        takes="float* x, u m, u n", right=INDEX + "if (i < m) x[i] = 1;", wrong=INDEX + "if (i <= m) x[i] = 1;",
        extents=("x=4*n",), where=("m <= n",), numbers={"n": 100, "m": 100},
    ),
    "the grid": Twins(
        takes="float* x, u n", right="x[G(x)] = 1;", wrong="x[G(x) + 1] = 1;",
        extents=("x=4*n",), where=("group_x < n",), numbers={"n": 4},
    ),
}  # fmt: skip


def source(takes: str, body: str) -> str:
    return HEAD.replace("{block}", "64") + f"{takes}) {{ {body} }}"


def places(twins: Twins, body: str) -> set[Reach]:
    kernel = accesses_of(find_toolchain().compile(source(twins.takes, body), "gfx950"))
    judged = judge_bounds(kernel, parse_contract(kernel, twins.extents, twins.ranges, twins.where))
    assert judged
    codes = {each.code for each in report_bounds(judged)}
    found = {each.reach for each in judged}
    assert codes == ({"I502"} if Reach.UNDECIDED in found else set())
    return found


def outside(twins: Twins, body: str) -> set[str]:
    """What an execution reports, with arrays of the promised sizes."""
    code = find_toolchain().compile(source(twins.takes, body), "gfx950")
    kernel = accesses_of(code)
    args: list[Any] = []
    for each in code.kernel().arguments:
        if each.kind == "by_value":
            args.append(np.uint32(twins.numbers[each.name]))
        elif each.kind == "global_buffer":
            (formula,) = (text.partition("=")[2] for text in twins.extents if text.startswith(f"{each.name}="))
            size = 0
            for factors, factor in parse_extent(formula, kernel).terms:
                product = factor
                for atom in factors:
                    product *= twins.numbers[atom.text]
                size += product
            args.append(np.ones(size // 4, np.float32))
    program = load_program(code.kernel(), code.disassembly)
    ended = run_kernel(program, args=args, grid=twins.grid, block=(64, 1, 1))
    return {each.code for each in ended.findings} & {"I105"}


@pytest.mark.parametrize("name", TWINS)
def test_the_right_twin_is_proved_and_stays_inside(name: str) -> None:
    twins = TWINS[name]
    assert places(twins, twins.right) == {Reach.INSIDE}
    assert outside(twins, twins.right) == set()


@pytest.mark.parametrize("name", TWINS)
def test_the_wrong_twin_is_not_proved_and_goes_outside(name: str) -> None:
    twins = TWINS[name]
    assert Reach.UNDECIDED in places(twins, twins.wrong)
    assert outside(twins, twins.wrong) == {"I105"}


def test_a_promise_that_is_too_weak_proves_nothing() -> None:
    twins = TWINS["rows of another length"]
    weak = Twins(takes=twins.takes, right=twins.right, wrong="", extents=twins.extents,
                 ranges=("n=1..257", "m=1..4096", "s=256..65536"))  # fmt: skip
    assert Reach.UNDECIDED in places(weak, weak.right)
