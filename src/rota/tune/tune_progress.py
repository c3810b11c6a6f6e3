"""How far a tuning run is: takes a `Tally`, gives one line."""

from __future__ import annotations

from time import perf_counter

from rota.tune.tune_library import Tally

_WIDTH = 24


def progress_line(tally: Tally) -> str:
    """Rate and time left count what was computed, not what was there."""
    there = tally.hits + tally.done
    filled = _WIDTH * there // max(tally.asked, 1)
    counts = f"{tally.proved} proved, {tally.refused} refused, {tally.failed} failed"
    line = f"{tally.doing} [{'#' * filled}{'.' * (_WIDTH - filled)}] {there} of {tally.asked} loops: {counts}"
    took = perf_counter() - tally.started
    if tally.done and took > 0:
        rate = tally.done / took
        line += f", {rate:.2g}/s, {(tally.asked - there) / rate:.0f} s left"
    return line


def summary(tally: Tally) -> str:
    """What a run did, when it is over."""
    evaluated = f"{tally.evaluated:,} points by formula"
    if tally.evaluated and tally.formula_seconds > 0:
        evaluated += f" in {tally.formula_seconds:.2f} s ({tally.evaluated / tally.formula_seconds:,.0f}/s)"
    return (
        f"{tally.asked} loops: {tally.done} computed, {tally.hits} in the store; {tally.proved} proved, "
        f"{tally.refused} refused, {tally.failed} failed\n{evaluated}, {tally.kept:,} chosen before"
    )
