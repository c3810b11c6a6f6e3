"""Drawn programs of neither front end: takes a random generator, gives roles that hand tiles over, on odd machines."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from rota import GFX950
from rota.program.lowered import LoweredProgram
from tests.programs.made_up_machine import MADE_UP
from tests.programs.producer_consumer import SPLIT_BARRIERS, producer_consumer


def draw_roles(random: Random) -> LoweredProgram:
    """A producer and a consumer, mostly right, on machines with and without order."""
    machine = random.choice((SPLIT_BARRIERS, SPLIT_BARRIERS, MADE_UP, GFX950))
    if random.random() < 0.2:
        machine = machine.doubting(random.choice([counter.name for counter in machine.counters]))
    unordered = not machine.counts_in_order(machine.counters[0].name)
    program = producer_consumer(machine, left=0 if unordered and random.random() < 0.8 else random.choice((0, 1, 2)))
    return replace(program, compiler_tracks_registers=random.random() < 0.3)
