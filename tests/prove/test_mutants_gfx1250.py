"""Mutants of gfx1250's kernels: none is proved that execution shows to be wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.isa.binary.toolchain import read_object
from tests.campaigns.machine_code.mutants_gfx1250 import KINDS, Fate, Mutant, edits_of, judge, kernels
from tests.isa.gfx1250 import assembled
from tests.prove.test_gfx1250 import LOADED


def test_every_wait_and_barrier_is_changed() -> None:
    instructions = assembled(*LOADED).instructions()
    texts = [each.text for each in instructions]
    changed = {
        (kind, *(f"{old}: {new}" for old, new in zip(texts, [each.text for each in made], strict=True) if old != new))
        for kind, _, made in edits_of(instructions)
    }
    wait = "s_wait_asynccnt 0x0"
    assert ("wait gone", f"{wait}: s_nop 0") in changed
    assert ("wait +1", f"{wait}: s_wait_asynccnt 0x1") in changed
    assert ("barrier gone", "s_barrier_signal -1: s_nop 0", "s_barrier_wait 0xffff: s_nop 0") in changed
    assert {kind for kind, *_ in changed} == {"wait gone", "wait +1", "barrier gone", "copy moved"}


def edits(path: Path) -> Iterator[Mutant]:
    return edits_of(read_object(path).instructions())


def test_every_kind_has_mutants() -> None:
    found = {kind for path in kernels("h_named_pair|h_mbarrier_count|h_tdm_ring") for kind, _, _ in edits(path)}
    assert found == {*KINDS}


@pytest.mark.thorough
def test_no_mutant_is_proved_that_execution_shows_to_be_wrong() -> None:
    fates: list[Fate] = []
    for path in kernels("h_async_double|h_named_ring|h_tdm_ring|h_mbarrier_count|g_async_store_reuse"):
        fates += judge(path, count=3, seed=0)
    assert [each for each in fates if each.fate == "MISSED"] == []
    assert sum(each.fate == "flagged" for each in fates) > len(fates) // 3
