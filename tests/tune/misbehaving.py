"""Loops that misbehave: takes a point, gives its shape, or does harm where a point is computed.

A space names them with `make`, as an author names a loop of their own.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rota.pipeline.geometry import KernelGeometry
from rota.program.loop_spec import LoopSpec
from rota.tune.point import LoopPoint, ShapeOfLoop
from rota.workers.nursery import INSIDE


def well(point: LoopPoint) -> ShapeOfLoop:
    return replace(point, make="").shape()


def crashing(point: LoopPoint) -> ShapeOfLoop:
    if _inside():
        ctypes.string_at(0)
    return well(point)


def greedy(point: LoopPoint) -> ShapeOfLoop:
    if _inside():
        kept = [b"x" * (1 << 26)]
        while kept:
            kept.append(bytes(1 << 28))
    return well(point)


def hanging(point: LoopPoint) -> ShapeOfLoop:
    if _inside():
        time.sleep(3600)
    return well(point)


def slow(point: LoopPoint) -> ShapeOfLoop:
    """Takes a while, so that something can happen to its process."""
    if _inside():
        time.sleep(0.2)
    return well(point)


def fatal_to_workers(point: LoopPoint) -> ShapeOfLoop:
    """Kills its worker the first time, as the system would that runs out of memory; a file remembers."""
    flag = os.environ.get("ROTA_TEST_FLAG", "")
    if _inside() and flag and not Path(flag).exists():
        Path(flag).touch()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return well(point)


def fatal_to_a_node(point: LoopPoint) -> ShapeOfLoop:
    """Kills the process that started its worker, once: that of a Ray task."""
    flag = os.environ.get("ROTA_TEST_FLAG", "")
    if _inside() and flag and not Path(flag).exists():
        Path(flag).touch()
        status = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
        time.sleep(60)
    return well(point)


def never_ending_workers(point: LoopPoint) -> ShapeOfLoop:
    """Kills every worker that touches it."""
    if _inside():
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return well(point)


class Misfit(NamedTuple):
    """A loop that is proved, beside a geometry that is another kernel's: nothing can be emitted for it."""

    shape: ShapeOfLoop

    @property
    def geometry(self) -> KernelGeometry:
        return replace(self.shape.geometry, MMA_M=32, MMA_N=32, MMA_K=16)

    def loop(self, *, instructions: bool = True) -> LoopSpec:
        return self.shape.loop(instructions=instructions)


def misfit(point: LoopPoint) -> ShapeOfLoop:
    return Misfit(well(point))


def unproved(point: LoopPoint) -> ShapeOfLoop:
    """rota itself gives up."""
    if _inside():
        raise ValueError("a mistake of whoever made the loop")
    return well(point)


def _inside() -> bool:
    return INSIDE in os.environ
