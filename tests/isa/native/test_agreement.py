"""The native core computes what NumPy computes, instruction by instruction, in the forms that compilers write."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from functools import cache

import pytest

from rota.errors import RotaError
from rota.isa.native.library import library, opcodes
from tests.isa.native.both import both, same
from tests.shared import shared

FORMS = 4  # of each opcode
LINE = re.compile(r"^\s+(?P<text>[vs]_\S+.*?)\s+//")
ELSEWHERE = (
    "s_cbranch",
    "s_branch",
    "s_load",
    "s_store",
    "s_endpgm",
    "s_barrier",
    "s_waitcnt",
    "s_set",
    "s_get",
    "s_swap",
)
ROUNDED = re.compile(r"^v_(?:mfma|exp|log|rcp|rsq|sin|cos)")  # judged within a bound elsewhere


@cache
def forms() -> dict[str, list[tuple[str, str]]]:
    """Texts by opcode, each with other registers or modifiers than the ones before."""
    found: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for path in sorted(shared("kernels/compiled").glob("*.hsaco")):
        arch = "gfx942" if "gfx942" in path.name else "gfx950"
        listing = subprocess.run(["llvm-objdump-22", "-d", path], check=True, capture_output=True, text=True).stdout
        for line in listing.splitlines():
            if (match := LINE.match(line)) and not match["text"].startswith(ELSEWHERE):
                text = match["text"].strip()
                of = found[text.split()[0]]
                if len(of) < FORMS:
                    of.setdefault(re.sub(r"\d+", "#", text), (text, arch))
    return {opcode: list(each.values()) for opcode, each in found.items()}


def test_the_core_was_built() -> None:
    assert library() is not None
    assert len(opcodes()) > 500


def test_single_instructions() -> None:
    judged, different = 0, []
    for opcode, texts in sorted(forms().items()):
        if ROUNDED.match(opcode):
            continue
        for seed, (text, arch) in enumerate(texts):
            try:
                left = both(text, arch, seed)
            except RotaError:  # the interpreter refuses it, or only with these registers
                continue
            if left is None:
                continue
            judged += 1
            one, two = left
            if not (same(one.vectors, two.vectors).all() and (one.scalars == two.scalars).all()):
                different.append(text)
    assert not different
    assert judged > 250


@pytest.mark.parametrize("text", ["v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[12:15]"])
def test_products_of_small_integers_are_exact(text: str) -> None:
    left = both(text, "gfx950", 1, floats=True)
    assert left is not None
    assert same(left[0].vectors, left[1].vectors).all()
