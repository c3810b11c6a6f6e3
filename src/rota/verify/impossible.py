"""Numbers that can't be: takes a loop by values and its machine, gives a finding for each that no kernel could have."""

from __future__ import annotations

from collections.abc import Iterator

from rota.declare.mfma import registers_named
from rota.declare.values import Home, LoopOp, LoopSpec, Work
from rota.errors import Concern, Finding
from rota.targets.machine import Machine

_LANES = 64
_WIDEST = 16  # bytes that a lane moves with one ds_read, ds_write or load into registers
_MOVES = (Work.LOAD, Work.FRAGMENT, Work.STORE)


def impossible(loop: LoopSpec, machine: Machine) -> Iterator[Finding]:
    """More waves than a workgroup has, tiles that are overfilled, widths and registers that no instruction has."""
    most = machine.waves_per_workgroup.value
    if loop.waves > most:
        yield Finding(
            code="L105",
            message=f"{loop.name} has {loop.waves} waves; a workgroup of {machine.name} has at most {most}",
            evidence=(("waves", loop.waves), ("limit", most)),
        )
    yield from _overfilled(loop)
    for op in loop.ops:
        if op.work in _MOVES and op.moved:
            yield from _too_wide(loop, op, machine)
        elif op.work is Work.MMA:
            yield from _too_few_registers(loop, op)


def _overfilled(loop: LoopSpec) -> Iterator[Finding]:
    for value in loop.values:
        writers = loop.writers(value.name)
        moved = sum(op.moved for op in writers)
        if value.home is Home.LDS and moved > value.size:
            yield Finding(
                code="L108",
                message=f"{moved} bytes are written into {value.name}, which holds {value.size}",
                concerns=tuple(Concern(label=op.name, role=f"{op.moved} bytes", source=op.source) for op in writers),
                evidence=(("bytes written", moved), ("bytes of the tile", value.size)),
            )


def _too_wide(loop: LoopSpec, op: LoopOp, machine: Machine) -> Iterator[Finding]:
    """What one lane moves with one instruction is no more than the machine's widest instruction moves."""
    to_lds = op.work is Work.LOAD and any(loop.value(name).home is Home.LDS for name in op.writes)
    widest = machine.dma_width.value if to_lds else _WIDEST
    lanes = op.instructions * loop.waves * _LANES
    if op.moved > widest * lanes:
        path = "a DMA into LDS" if to_lds else "a load into registers" if op.work is Work.LOAD else "an LDS access"
        yield Finding(
            code="L106",
            message=f"{op.name} would move {-(-op.moved // lanes)} bytes per lane and instruction; "
            f"{path} of {machine.name} moves at most {widest}",
            concerns=(Concern(label=op.name, source=op.source),),
            evidence=(("bytes", op.moved), ("instructions x waves x lanes", lanes), ("widest", widest)),
            fixes=(f"instructions={-(-op.moved // (widest * loop.waves * _LANES))}",),
        )


def _too_few_registers(loop: LoopSpec, op: LoopOp) -> Iterator[Finding]:
    """Every operand and result has at least the registers of one instruction."""
    needed = registers_named(op.instruction)
    if needed is None:
        return
    operands = [read.value for read in op.reads] + list(op.inputs)
    taken = dict.fromkeys((name for name in operands if name not in op.writes), min(needed.a, needed.b))
    for name, least in (taken | dict.fromkeys(op.writes, needed.result)).items():
        size = loop.value(name).size
        if size < least:
            yield Finding(
                code="L109",
                message=f"{name} has {size} registers; one {op.instruction} takes {least}",
                concerns=(Concern(label=op.name, source=op.source),),
                evidence=(("registers", size), ("of one instruction", least)),
                fixes=(f"registers={least} or a multiple of it",),
            )
