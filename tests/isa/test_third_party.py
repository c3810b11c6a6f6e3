"""Code objects that are not ours: HIP with and without a race, matmuls of Triton 3.8 and 3.9."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from rota.audit.audit import misfits
from rota.isa.binary.code_object import read_kernels
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.disassembly import read_listing
from rota.isa.launch.interleaving import EARLIEST, LATEST, Interleaving, backwards, draw_order, interleavings
from rota.isa.launch.run import KernelOutcome, run_kernel
from rota.isa.valu.convert import float_values
from rota.targets.architecture import Float8
from rota.targets.registry import architecture_named
from tests.shared import shared

pytestmark = pytest.mark.no_cover  # many cases: what they run is covered where it is tested by itself

FOLDER = "kernels/compiled"
SCRATCH = np.zeros(64, np.uint8)  # two pointers after Triton's own arguments


def disassembled(path: Path) -> str:
    objdump = find_toolchain("clang++-22").objdump
    assert objdump is not None
    return subprocess.run([*objdump, "-d", path], capture_output=True, text=True, check=True).stdout


@cache
def loaded(name: str) -> KernelProgram:
    path = shared(f"{FOLDER}/{name}.hsaco")
    (facts,) = read_kernels(path.read_bytes())
    return load_program(facts, disassembled(path))


def run_triton(name: str, *args: Any, order: Interleaving = LATEST) -> KernelOutcome:  # arrays and numbers
    told = json.loads(shared(f"{FOLDER}/{name}.json").read_text())
    return run_kernel(
        loaded(name),
        args=[*args, SCRATCH, SCRATCH],
        block=(64 * told["num_warps"], 1, 1),
        dynamic_lds=told["shared"],
        interleaving=order,
    )


RACES = {
    "barrier_only_nowait": "I109", "divergent_barrier": "I109", "raw_nosync": "I109", "war_nosync": "I109",
    "waw": "I109", "reduce_missing_last": "I109", "same_value_war": "I109", "oob_lds": "I105",
}  # fmt: skip
RIGHT = ("raw_sync_ok", "reduce_own", "war_ok", "u16_ok")
ORDERS = interleavings(4, 6)


@pytest.mark.parametrize("name", RACES)
def test_a_race_is_found_in_every_order(name: str) -> None:
    program = loaded(f"races/{name}.gfx950")
    for order in ORDERS:
        outcome = run_kernel(program, args=[np.zeros(256, np.int32)], block=(256, 1, 1), interleaving=order)
        assert RACES[name] in {finding.code for finding in outcome.findings}, order.label


@pytest.mark.parametrize("name", RIGHT)
def test_what_does_not_race_is_right_in_every_order(name: str) -> None:
    program = loaded(f"races/{name}.gfx950")
    for order in ORDERS:
        outcome = run_kernel(program, args=[np.zeros(256, np.int32)], block=(256, 1, 1), interleaving=order)
        assert outcome.findings == (), order.label


@cache
def product(name: str, order: Interleaving) -> tuple[bool, frozenset[str]]:
    """Is the upper left quarter of a product of 256 x 256 right, and what went wrong on the way?"""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, (256, 256)).astype(np.float32) for _ in range(2))
    outcome = run_triton(name, a, b, np.zeros((256, 256), np.float32), order=order)
    right = np.array_equal(outcome.buffers[2][:128, :128], (a @ b)[:128, :128])
    return right, frozenset(finding.code for finding in outcome.findings)


@pytest.mark.parametrize("order", [LATEST, EARLIEST, backwards(8)], ids=lambda order: order.label)
def test_the_race_in_tritons_ping_pong(order: Interleaving) -> None:
    """triton-lang/triton issue 11696: a wrong product in some orders, a race in all; mended in 3.9."""
    _, codes = product("triton-3.8.0/pp_on.gfx942", order)
    assert "I109" in codes
    assert product("pp_on.gfx942", order) == (True, frozenset())


def test_the_race_makes_the_product_wrong() -> None:
    assert not product("triton-3.8.0/pp_on.gfx942", LATEST)[0]


def test_eight_bit_floats_of_a_gfx942_object_are_fnuz() -> None:
    """It ran as gfx950, and the product was off by a factor of 4."""
    rng = np.random.default_rng(7)
    values = float_values("fp8", Float8.FNUZ)
    codes = np.array([int(np.argmin(np.abs(np.nan_to_num(values, nan=1e9) - v))) for v in range(-4, 5)], np.uint8)
    a, b = codes[rng.integers(0, 9, (128, 256))], codes[rng.integers(0, 9, (256, 128))]
    sizes = (128, 128, 256, 256, 128, 128)
    outcome = run_triton("t_matmul_fp8_s2.gfx942", a, b, np.zeros((128, 128), np.uint16), *sizes, order=draw_order(1))
    got = (outcome.buffers[2].astype(np.uint32) << 16).view(np.float32)
    due = values[a] @ values[b]
    assert outcome.findings == ()
    assert (np.abs(got - due) <= np.abs(due) * 2.0**-8).all()  # C is bf16


def test_flags_notes_descriptors_and_instructions_agree() -> None:
    """In what compilers made, by a sample; the architecture is in the file's name too."""
    paths = sorted(shared(FOLDER).rglob("*.hsaco"))
    assert len(paths) > 90
    for path in Random(11).sample(paths, 30):
        text = disassembled(path)
        for facts in read_kernels(path.read_bytes()):
            assert facts.arch == path.name.split(".")[-2]
            machine = architecture_named(facts.arch)
            assert machine is not None
            assert misfits(facts, read_listing(text, facts.name), machine) == [], path.name
