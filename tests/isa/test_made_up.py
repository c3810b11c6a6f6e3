"""Code of an architecture that nobody builds, executed: waves of 32 lanes, four counters, split barriers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from rota.errors import IsaError
from rota.isa.binary.kernel_facts import Argument
from rota.isa.decoded import load_program
from rota.isa.launch.interleaving import LATEST, Interleaving, backwards, draw_order
from rota.isa.launch.run import KernelOutcome, run_kernel
from tests.isa.single import facts, listing
from tests.made_up.architecture import MADE_UP, registered

WAVES, LANES = 3, MADE_UP.lanes.value
ITEMS = WAVES * LANES
POINTERS = tuple(Argument(name=name, offset=8 * at, size=8, kind="global_buffer") for at, name in enumerate("xy"))
LOADED, DONE, ARGUMENTS = "s_wait_loadcnt 0", "s_wait_dscnt 0", "s_wait_kmcnt 0"
SIGNAL, WAIT = "s_barrier_signal -1", "s_barrier_wait -1"
# Each work item hands its word to the one that counts from the other end.
HANDOVER = (
    "s_load_dwordx4 s[4:7], s[0:1], 0x0",
    ARGUMENTS,
    "v_lshlrev_b32_e32 v1, 2, v0",
    f"v_sub_u32_e32 v2, {4 * ITEMS - 4:#x}, v1",
    "global_load_dword v3, v1, s[4:5]",
    LOADED,
    "ds_write_b32 v1, v3",
    DONE,
    SIGNAL,
    WAIT,
    "ds_read_b32 v4, v2",
    DONE,
    "global_store_dword v1, v4, s[6:7]",
)
X = np.random.default_rng(35).integers(0, 2**32, ITEMS, np.uint32)


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    with registered():
        yield


def launched(*lines: str, order: Interleaving = LATEST) -> KernelOutcome:
    own = facts(MADE_UP.arch, arguments=POINTERS, kernarg_bytes=16, user_sgprs=(("kernarg_segment_ptr", 2),))
    program = load_program(own, listing("\n".join(lines)))
    return run_kernel(program, args=[X, np.zeros(ITEMS, np.uint32)], block=(ITEMS, 1, 1), interleaving=order)


def without(line: str) -> tuple[str, ...]:
    at = HANDOVER.index(line)
    return HANDOVER[:at] + HANDOVER[at + 1 :]


@pytest.mark.parametrize("order", [LATEST, backwards(WAVES), draw_order(5)])
def test_words_change_hands_across_a_split_barrier(order: Interleaving) -> None:
    outcome = launched(*HANDOVER, order=order)
    assert outcome.findings == ()
    assert outcome.buffers[1].tolist() == X[::-1].tolist()


@pytest.mark.parametrize(
    ("line", "code", "ends"),
    [
        (ARGUMENTS, "I103", ("global_load_dword v3, v1, s[4:5]",)),
        (LOADED, "I103", ("ds_write_b32 v1, v3",)),
        (DONE, "I109", ("ds_read_b32 v4, v2", "ds_write_b32 v1, v3")),
    ],
)
def test_a_wait_that_is_missing_is_noticed(line: str, code: str, ends: tuple[str, ...]) -> None:
    found = [each for each in launched(*without(line)).findings if each.code == code]
    assert found
    assert {concern.label for concern in found[0].concerns} == set(ends)


def test_a_wait_for_another_counter_covers_nothing() -> None:
    stored = tuple("s_wait_storecnt 0" if line == LOADED else line for line in HANDOVER)
    assert {each.code for each in launched(*stored).findings} == {"I103"}


def test_without_a_barrier_words_race() -> None:
    lines = tuple(line for line in HANDOVER if line not in {SIGNAL, WAIT})
    assert "I109" in {each.code for each in launched(*lines).findings}


def test_between_signal_and_wait_nothing_is_ordered() -> None:
    """The read moves in front of the wait: its wave has arrived, others may not have."""
    early = (*HANDOVER[:9], HANDOVER[10], DONE, WAIT, *HANDOVER[12:])
    assert "I109" in {each.code for each in launched(*early).findings}


def test_a_write_after_the_signal_is_not_handed_over() -> None:
    late = (*HANDOVER[:6], SIGNAL, HANDOVER[6], DONE, WAIT, *HANDOVER[10:])
    assert {each.code for each in launched(*late).findings} == {"I109"}


def test_a_wave_that_waits_without_arriving_never_ends() -> None:
    with pytest.raises(IsaError) as caught:
        launched(*without(SIGNAL))
    assert [each.code for each in caught.value.findings] == ["I108"]


def test_comparisons_fill_one_register() -> None:
    lines = (
        *HANDOVER[:3],
        "v_cmp_gt_u32_e64 s8, 8, v0",
        "s_nop 1",
        "v_cndmask_b32_e64 v3, 5, 7, s8",
        "s_and_saveexec_b32 s9, s8",
        "v_mov_b32_e32 v3, 9",
        "s_mov_b32 exec_lo, s9",
        "v_readfirstlane_b32 s10, v3",
        "global_store_dword v1, v3, s[6:7]",
    )
    outcome = launched(*lines)
    assert outcome.findings == ()
    assert outcome.buffers[1].tolist() == [9] * 8 + [5] * (ITEMS - 8)


@pytest.mark.parametrize("line", ["s_barrier", "s_waitcnt vmcnt(0)", "s_barrier_signal 1", "s_wait_expcnt 0"])
def test_instructions_of_other_architectures_are_refused(line: str) -> None:
    with pytest.raises(IsaError) as caught:
        launched(line)
    assert [each.code for each in caught.value.findings] == ["I102"]
