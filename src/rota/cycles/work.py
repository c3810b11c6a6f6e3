"""What a wave issues: takes a program, gives it with the work of every op and the waves of every role, or D109."""

from __future__ import annotations

import re
from math import prod
from typing import Protocol

from rota.errors import DeclarationError, Finding
from rota.program.entry import Entry, Work
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable, LoweredProgram
from rota.targets.mfma import shape_named

_BLOCKS = re.compile(r"x\d+_(\d+)b_")
_SYNCHRONISING = {OpKind.WAIT: Work(1), OpKind.BARRIER: Work(1), OpKind.PRIORITY: Work(1)}
"""These are one instruction whoever declares them; fences and hints to a compiler are none."""


class WorkSource(Protocol):
    """What says how many instructions the ops of a program stand for, where they don't say it themselves.

    `rota.pipeline.tile_shape.TileShape` does so for a body declared in tiles.
    """

    def fill(self, program: LoweredProgram) -> LoweredProgram:
        """The program with the work of its ops and the number of its waves."""
        ...


def program_of(schedule: Lowerable, shape: WorkSource | None) -> LoweredProgram:
    """The program to run, with the work of its ops filled in."""
    program = schedule.lowered
    if shape is not None:
        program = shape.fill(program)
    silent = [entry for entry in program.entries if not entry.op.is_framework and entry.op.work is None]
    if silent:
        raise DeclarationError(
            Finding(
                code="D109",
                message=f"{program.name} is declared in tiles: nothing says how many instructions an op stands for",
                concerns=(silent[0].concern(),),
                fixes=("pass shape=TileShape(geometry=..., waves=..., instruction=...)",),
            )
        )
    return program


def work_of(entry: Entry) -> Work:
    """What one wave issues for an entry of a program that `program_of` gave."""
    return entry.op.work or _SYNCHRONISING.get(entry.op.kind, Work(0))


def waves_of(program: LoweredProgram) -> tuple[int, ...]:
    """The role of each wave: those of the first role come first.

    Where only the program says how many waves there are, its roles have equal shares.
    """
    own = [role.waves for role in program.roles]
    if None in own and program.waves is not None:
        count = len(own)
        own = [program.waves // count + (number < program.waves % count) for number in range(count)]
    waves = tuple(role for role, count in enumerate(own) for _ in range(count or 0))
    if None in own or not waves:
        raise DeclarationError(
            Finding(
                code="D109",
                message=f"{program.name} doesn't say how many waves run it",
                evidence=tuple((role.name, f"{role.waves} waves") for role in program.roles),
                fixes=("give every role its waves, or the program", "pass shape=TileShape(...), which has waves"),
            )
        )
    return waves


def flops_of(instruction: str) -> int:
    """Floating-point (or integer) operations of one MFMA, from its name: v_mfma_f32_16x16x32_bf16, 4x4x4_16b for 16."""
    shape = shape_named(instruction)
    if shape is None:
        raise DeclarationError(Finding(code="D105", message=f"{instruction!r} doesn't name its shape, as 16x16x32"))
    blocks = _BLOCKS.search(instruction)
    return 2 * prod(shape) * (int(blocks[1]) if blocks else 1)
