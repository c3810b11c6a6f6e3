"""What the core notes and goes on after is what NumPy finds: the same codes, ends, evidence and results."""

from __future__ import annotations

import random
import re
from unittest.mock import patch

import numpy as np
import pytest

from rota.isa.decoded import KernelProgram
from rota.isa.launch import run as engine
from rota.isa.launch.interleaving import EARLIEST, LATEST, Interleaving, backwards, behind
from rota.isa.launch.run import KernelOutcome, run_kernel
from tests.isa.native.both import Tally, compared
from tests.isa.single import fresh, loaded
from tests.isa.test_order import two_waves
from tests.isa.test_spacing import DRAWN

NOTED = {"I104", "I304"}
ORDERS = (LATEST, EARLIEST, backwards(2), behind(0))  # drawn ones are others on each engine
# v2 has lanes' own words, v5 words that four lanes share; v4 has v3's low half.
LINES = (
    "ds_write_b32 v2, v3 offset:{0}", "ds_write_b32 v2, v3 offset:{0}", "ds_write_b8 v2, v3 offset:{0}",
    "ds_write_b16 v2, v4 offset:{0}", "ds_write_b16 v2, v4 offset:{0}", "ds_write_b32 v5, v3 offset:{0}",
    "ds_write_b32 v5, v3 offset:{0}", "ds_write2_b32 v2, v3, v3 offset0:0 offset1:1", "ds_write_b64 v2, v[6:7]",
    "s_waitcnt lgkmcnt(0)", "s_waitcnt lgkmcnt(0)", "s_barrier", "s_barrier", "s_barrier",
)  # fmt: skip
BEGIN = ("v_mov_b32_e32 v4, 0x10007", "v_and_b32_e32 v5, 0xf0, v2", "v_mov_b32_e32 v6, 7", "v_mov_b32_e32 v7, 7")
RARE = ("ds_write_b32 v2, v4 offset:{0}", "ds_read_b32 v8, v2 offset:{0}", "ds_or_b32 v2, v3 offset:{0}")
FILL = ("ds_write_b32 v2, v3", "ds_write_b32 v2, v3 offset:256", "s_waitcnt lgkmcnt(0)", "s_barrier")


def on_both(program: KernelProgram, order: Interleaving, workgroups: int = 1) -> tuple[KernelOutcome, bool]:
    """NumPy's outcome, which the core's equals; and whether the core got to the end."""
    source, by_numpy = np.full(1024, 7, np.uint32), []
    how = {"args": [source], "block": (128, 1, 1), "grid": (workgroups, 1, 1), "interleaving": order}
    workgroups_of = engine.run_workgroups

    def watched(*args: object) -> int:
        by_numpy.append(True)
        return workgroups_of(*args)  # type: ignore[arg-type]

    with patch.object(engine, "run_workgroups", watched):
        core = run_kernel(program, **how)  # type: ignore[arg-type]
    native = not by_numpy
    with patch.object(engine, "run_clean", lambda *_, **__: None):
        numpy = run_kernel(program, **how)  # type: ignore[arg-type]
    assert (core.findings, core.notes, core.instructions) == (numpy.findings, numpy.notes, numpy.instructions)
    assert all(np.array_equal(one, two) for one, two in zip(core.buffers, numpy.buffers, strict=True))
    return numpy, native


def drawn_wave(chooser: random.Random) -> str:
    lines = [chooser.choice(LINES).format(4 * chooser.randrange(3)) for _ in range(8)]
    if chooser.random() < 0.4:
        lines[chooser.randrange(8)] = chooser.choice(RARE).format(0)
    barriers = lines.count("s_barrier")
    return "\n".join([*BEGIN, *FILL, *lines, *["s_barrier"] * (8 - barriers)])


def test_equal_values_in_lds() -> None:
    noted = 0
    for seed in range(24):
        chooser = random.Random(seed)
        program = two_waves(drawn_wave(chooser), drawn_wave(chooser))
        for order in ORDERS[seed % 2 :: 2]:
            outcome, native = on_both(program, order)
            assert native == ({each.code for each in outcome.findings} <= NOTED), (seed, order.label)
            noted += native and bool(outcome.findings)
    assert noted > 10


STORES = (
    "global_store_dword v2, v3, s[4:5] offset:{0}", "global_store_dword v2, v3, s[4:5] offset:{0}",
    "global_store_dwordx2 v2, v[6:7], s[4:5]", "buffer_store_dwordx2 v[6:7], v2, s[4:7], 0 offen offset:{0}",
    "global_store_dword v5, v3, s[4:5] offset:{0}", "s_store_dword s9, s[4:5], 0x{0}", "s_waitcnt vmcnt(0)",
    "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_barrier", "s_barrier",
)  # fmt: skip
RARE_STORES = (
    "global_store_dword v2, v0, s[4:5] offset:{0}", "global_load_dword v8, v2, s[4:5]",
    "global_store_short v2, v3, s[4:5]",
    "global_store_dword v2, v3, s[4:5] sc1", "global_atomic_umax v2, v3, s[4:5]",
)  # fmt: skip


def drawn_stores(chooser: random.Random) -> str:
    lines = [chooser.choice(STORES).format(4 * chooser.randrange(2)) for _ in range(7)]
    if chooser.random() < 0.4:
        lines[chooser.randrange(7)] = chooser.choice(RARE_STORES).format(0)
    barriers = lines.count("s_barrier")
    return "\n".join([*BEGIN, "s_mov_b32 s9, 7", *lines, *["s_barrier"] * (7 - barriers)])


@pytest.mark.parametrize("workgroups", [1, 3])
def test_equal_values_in_memory(workgroups: int) -> None:
    """Of one workgroup or of several; with words that two lanes write, and waits and barriers that keep waves apart."""
    noted = 0
    for seed in range(16):
        chooser = random.Random(seed)
        program = two_waves(drawn_stores(chooser), drawn_stores(chooser))
        outcome, native = on_both(program, ORDERS[seed % 4], workgroups)
        assert native <= ({each.code for each in outcome.findings} <= NOTED), seed
        noted += native and bool(outcome.findings)
    assert noted > 5


def test_a_write_does_not_hide_the_read_before_it() -> None:
    """The other wave writes what it finds; it must be kept after the read, though not after the write."""
    first = "\n".join([*FILL, "ds_read_b32 v8, v2", "ds_write_b32 v2, v3", "s_barrier"])
    second = "\n".join([*FILL, "ds_write_b32 v2, v3", "s_barrier"])
    outcome, native = on_both(two_waves(first, second), LATEST)
    assert {each.code for each in outcome.findings} == {"I109", "I304"}
    assert not native


def test_a_value_that_one_lane_changes_is_explained_by_numpy() -> None:
    """Four lanes write to a word: of each, one what it holds, and three something else."""
    first = "\n".join([*BEGIN, *FILL, "ds_write_b32 v5, v3", "s_barrier"])
    second = "\n".join([*BEGIN, *FILL, "v_mov_b32_e32 v9, v3", "v_cmp_eq_u32_e32 vcc, v2, v5"])
    second += "\nv_cndmask_b32_e32 v9, v0, v3, vcc\nds_write_b32 v5, v9\ns_barrier"
    outcome, native = on_both(two_waves(first, second), LATEST)
    assert {each.code for each in outcome.findings} - NOTED == {"I109"}
    assert not native


def test_what_a_wave_leaves_in_flight_when_it_ends_is_not_covered() -> None:
    """The barrier opens because the first wave has ended, but nothing has waited for its write."""
    first, second = "ds_write_b32 v2, v3", "s_barrier\nds_write_b32 v2, v3 offset:4\ns_waitcnt lgkmcnt(0)\ns_barrier"
    outcome, native = on_both(two_waves(first, second), LATEST)
    assert [each.code for each in outcome.findings] == ["I304"]
    assert native


def drawn_lines(chooser: random.Random, count: int) -> list[str]:
    lines = []
    for _ in range(count):
        m, o = chooser.sample((0, 2, 4, 8), 2)
        p, q = chooser.choice((0, 2, 8, 10)), chooser.choice((4, 6, 12))
        a, b, c, n = (chooser.randrange(most) for most in (12, 12, 12, 8))
        places = {"m": m, "m3": m + 3, "o": o, "o3": o + 3, "p": p, "p1": p + 1, "q": q, "q1": q + 1}
        line = chooser.choice(DRAWN).format(a=a, b=b, c=c, n=n, **places)
        lines.append(re.sub(r"(v_exp_f32_e32 v\d+), v\d+", r"\1, 0", line))  # of 0 both have the same bits
    return lines


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_wait_states(arch: str) -> None:
    """A loop: what is too early at its end is so from the second round on."""
    tally, found = Tally(), 0
    for seed in range(25):
        chooser = random.Random(seed)
        body = "\n".join(drawn_lines(chooser, 25))
        text = f"s_mov_b32 s20, 3\n.L0:\n{body}\ns_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 .L0"
        wave = fresh({row: np.arange(64, dtype=np.uint32) + row for row in range(64)}, {8: 3, 9: 5})
        program = loaded(text, arch)
        wave.architecture = program.architecture
        found += compared(program, wave, tally)
    assert [what for _, what in tally.different if "NumPy found" in what] == []  # bits of NaNs may differ
    assert tally.ran.total() == 25
    assert found > 100


def test_a_result_that_is_not_written_yet_is_poison() -> None:
    tally, vectors = Tally(), {row: np.full(64, 0x3C003C00, np.uint32) for row in range(16)}
    text = "v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]\nv_mov_b32_e32 v12, v9"
    assert compared(loaded(text), fresh(vectors), tally) == 1
    assert tally.different == []


def test_wait_states_of_several_waves() -> None:
    """Each pair of instructions has one finding, of the first wave that came too early."""
    early = "v_mov_b32_e32 v1, v2\nv_readfirstlane_b32 s8, v1\nv_readlane_b32 s9, v1, s8"
    outcome, native = on_both(two_waves(early, early), LATEST, workgroups=2)
    assert native
    assert {(each.code, dict(each.evidence)["wave"]) for each in outcome.findings} == {("I104", 0), ("I104", 1)}
