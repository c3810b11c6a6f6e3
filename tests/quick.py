"""Which tests `.ci/quick` runs: all but those that say that they take long, and a limit that makes them say it."""

from __future__ import annotations

import resource
import time
from collections.abc import Set as AbstractSet

import pytest

LONG = frozenset({"slow", "no_cover", "thorough"})
"""A campaign or a page is marked `no_cover` anyway; what else takes long is `thorough`."""
MOST_SECONDS = 10.0
"""Processor time of a quick test.  Most take milliseconds, and a busy machine may count two or three times as many."""


def is_quick(markers: AbstractSet[str]) -> bool:
    """True if none of a test's markers says that it takes long."""
    return not markers & LONG


def seconds_used() -> float:
    """Processor time of this process, and of the compilers and commands that it started."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def check_quick(seconds: float) -> None:
    """Fail a test that took longer than a quick one may."""
    if seconds > MOST_SECONDS:
        pytest.fail(f"took {seconds:.1f} s of processor time: mark its module as thorough, or make it quick")
