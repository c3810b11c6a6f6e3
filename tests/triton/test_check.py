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


def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(DeclarationError) as caught:
        rota.triton.check(print, signature={})
    assert caught.value.findings[0].code == "D104"


def test_a_signature_that_leaves_something_out_is_refused() -> None:
    with pytest.raises(DeclarationError) as caught:
        rota.triton.check(add, signature={"x": "*fp32", "z": "i32"})
    assert caught.value.findings[0].code == "D102"
    worded(caught.value)
