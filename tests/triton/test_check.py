"""`rota.triton.check`: a user's kernel is compiled and proved, or the alarm says what is wrong."""

from __future__ import annotations

import pytest
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

import rota.triton
from rota.errors import DeclarationError
from tests.wording.golden import worded


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@gluon.jit
def turned(x, out, MEETS: gl.constexpr):
    """Through LDS into another wave, by an address that Gluon doesn't follow."""
    rows: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    at = gl.arange(0, 256, layout=rows)
    memory = gl.allocate_shared_memory(gl.float32, [256], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    memory.store(gl.load(x + at))
    if MEETS:
        gl.barrier()
    gl.store(out + at, gl.inline_asm("ds_read_b32 $0, $1\ns_waitcnt lgkmcnt(0)", "=v,v", [(255 - at) * 4], at.type))


def test_a_kernel_of_triton_is_proved() -> None:
    pointers = dict.fromkeys(("x", "y", "out"), "*fp32:16")
    verdict = rota.triton.check(add, signature={**pointers, "n": "i32"}, constants={"BLOCK": 256})
    assert verdict.proved, str(verdict)


def test_a_kernel_of_gluon_is_judged_as_it_was_compiled() -> None:
    signature = {"x": "*fp32:16", "out": "*i32:16"}
    right = rota.triton.check(turned, signature=signature, constants={"MEETS": True})
    wrong = rota.triton.check(turned, signature=signature, constants={"MEETS": False})
    assert right.proved, str(right)
    assert [finding.code for finding in wrong.findings] == ["I109"]


@triton.jit
def multiply(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (start + depth)[None, :], mask=(start + depth)[None, :] < K, other=0.0)
        right = tl.load(
            b + (start + depth)[:, None] * N + columns[None, :], mask=(start + depth)[:, None] < K, other=0.0
        )
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@gluon.jit
def swapped(x, out, MEETS: gl.constexpr):
    """The other half's words, through LDS, for waves of 32 lanes."""
    rows: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    memory = gl.allocate_shared_memory(gl.float32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    at = gl.arange(0, 128, layout=rows)
    memory.store(gl.load(x + at))
    if MEETS:
        gl.barrier()
    gl.store(out + at, gl.inline_asm("ds_load_b32 $0, $1\ns_wait_dscnt 0x0", "=v,v", [(127 - at) * 4], at.type))


@pytest.mark.parametrize("stages", [1, 3])
def test_a_product_for_a_gpu_that_nobody_has_is_proved(stages: int) -> None:
    signature = {**dict.fromkeys("ab", "*fp16:16"), "c": "*fp32:16", **dict.fromkeys("MNK", "i32:16")}
    verdict = rota.triton.check(
        multiply, signature=signature, constants={"BM": 64, "BN": 64, "BK": 32}, device="gfx1250", num_stages=stages
    )
    assert (verdict.arch, verdict.proved) == ("gfx1250", True), str(verdict)


def test_a_missing_barrier_is_found_for_a_gpu_that_nobody_has() -> None:
    signature = {"x": "*fp32:16", "out": "*i32:16"}
    right, wrong = (
        rota.triton.check(swapped, signature=signature, constants={"MEETS": meets}, device="gfx1250")
        for meets in (True, False)
    )
    assert right.proved, str(right)
    assert [finding.code for finding in wrong.findings] == ["I109"]


def test_a_gpu_that_nothing_executes_is_refused_by_name() -> None:
    with pytest.raises(DeclarationError) as caught:
        rota.triton.use("gfx1201")
    (finding,) = caught.value.findings
    assert (finding.code, "rota.triton.check" in finding.fixes[0]) == ("D105", True)


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(DeclarationError) as caught:
        rota.triton.check(print, signature={})
    assert caught.value.findings[0].code == "D104"


def test_a_signature_that_leaves_something_out_is_refused() -> None:
    with pytest.raises(DeclarationError) as caught:
        rota.triton.check(add, signature={"x": "*fp32", "z": "i32"})
    assert caught.value.findings[0].code == "D102"
    worded(caught.value)
