"""Stabbing windows on a cycle: as few as a search over all subsets finds."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, strategies as st

from rota.values.placement import Window, stab_windows

INTERVAL = 12
WINDOWS = st.builds(
    lambda opens, length: Window(opens, opens + length), st.integers(0, 3 * INTERVAL), st.integers(0, INTERVAL + 2)
)


def stabbed(window: Window, slots: tuple[int, ...]) -> bool:
    return any(moment % INTERVAL in slots for moment in range(window.opens, window.closes + 1))


@given(st.lists(WINDOWS, max_size=6))
def test_the_fewest_slots_stab_every_window(windows: list[Window]) -> None:
    stabs = stab_windows(windows, INTERVAL)
    assert all(stabbed(window, stabs) for window in windows)
    fewest = next(
        count
        for count in range(INTERVAL + 1)
        if any(all(stabbed(w, slots) for w in windows) for slots in combinations(range(INTERVAL), count))
    )
    assert len(stabs) == fewest


def test_a_stab_stands_as_late_as_its_windows_allow() -> None:
    assert stab_windows([Window(0, 5), Window(3, 8)], INTERVAL) == (5,)
