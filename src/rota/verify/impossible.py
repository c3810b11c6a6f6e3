"""Impossible numbers: takes a loop by values and its machine, gives a finding for each that no kernel could have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rota.errors import Concern, Finding
from rota.program.element import BITS, takes_scales
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Value
from rota.program.machine import LANES, Machine
from rota.targets.mfma import registers_named

_PATHS = {
    OpKind.DMA: "a DMA into LDS",
    OpKind.GLOBAL_LOAD: "a load into registers",
    OpKind.GLOBAL_STORE: "a store to memory",
    OpKind.ATOMIC: "an atomic",
}
_WIDEST = 16  # bytes that a lane moves with one ds_read, ds_write or load into registers


def impossible(loop: LoopSpec, machine: Machine) -> Iterator[Finding]:
    """More waves than a workgroup has, tiles that are overfilled, widths and registers that no instruction has."""
    most = machine.waves_per_workgroup.value
    if loop.waves > most:
        yield Finding(
            code="L105",
            message=f"{loop.name} has {loop.waves} waves; a workgroup of {machine.name} has at most {most}",
            evidence=(("waves", loop.waves), ("limit", most)),
        )
    values = {value.name: value for value in loop.values}
    yield from _overfilled(loop, values)
    for op in loop.ops:
        yield from _nowhere(op, machine)
        if op.kind.asynchronous and op.moved:
            yield from _too_wide(op, loop.waves * LANES, machine)
        elif op.kind is OpKind.MMA:
            yield from _too_few_registers(op, values)


def _nowhere(op: LoopOp, machine: Machine) -> Iterator[Finding]:
    """A memory op that no counter tracks: the machine has no such instruction."""
    if op.kind.asynchronous and machine.counter_of(op.kind) is None:
        yield Finding(
            code="L110",
            message=f"{op.name} is an op of kind {op.kind.word} ({op.kind.does}); "
            f"{machine.name} has no such instruction",
            concerns=(Concern(label=op.name, source=op.source),),
            evidence=(("kind", op.kind.word), ("machine", machine.name)),
        )


def _overfilled(loop: LoopSpec, values: Mapping[str, Value]) -> Iterator[Finding]:
    writers: dict[str, list[LoopOp]] = {}
    for op in loop.ops:
        for name in op.writes if op.moved else ():
            writers.setdefault(name, []).append(op)
    for name, ops in writers.items():
        moved, size = sum(op.moved for op in ops), values[name].size
        if values[name].home is Home.LDS and moved > size:
            yield Finding(
                code="L108",
                message=f"{moved} bytes are written into {name}, which holds {size}",
                concerns=tuple(Concern(label=op.name, role=f"{op.moved} bytes", source=op.source) for op in ops),
                evidence=(("bytes written", moved), ("bytes of the tile", size)),
            )


def _too_wide(op: LoopOp, lanes: int, machine: Machine) -> Iterator[Finding]:
    """What one lane moves with one instruction is no more than the machine's widest instruction moves."""
    to_lds = op.kind is OpKind.DMA
    widest = machine.dma_width.value if to_lds else _WIDEST
    turns = op.instructions * lanes
    if op.moved > widest * turns:
        path = _PATHS.get(op.kind, "an LDS access")
        yield Finding(
            code="L106",
            message=f"{op.name} would move {-(-op.moved // turns)} bytes per lane and instruction; "
            f"{path} of {machine.name} moves at most {widest}",
            concerns=(Concern(label=op.name, source=op.source),),
            evidence=(("bytes", op.moved), ("instructions x waves x lanes", turns), ("widest", widest)),
            fixes=(f"instructions={-(-op.moved // (widest * lanes))}",),
        )


def _too_few_registers(op: LoopOp, values: Mapping[str, Value]) -> Iterator[Finding]:
    """Operands together, and the result, have the registers of one instruction; several values may make a factor."""
    needed = registers_named(op.instruction, *(BITS[each] for each in op.formats))
    if needed is None:
        return
    named = [*(read.value for read in op.reads), *op.inputs]
    operands = [name for name in named if name not in op.scales]
    factors = needed.a + needed.b if len(operands) > 1 else min(needed.a, needed.b)
    checks = [("operands", operands, factors), ("result", op.writes, needed.result)]
    if takes_scales(op.instruction):
        checks.append(("scales", op.scales, 1))
    for what, names, least in checks:
        size = sum(values[name].size for name in names)
        if size < least:
            yield Finding(
                code="L109",
                message=f"the {what} of {op.name}, {' and '.join(names) or 'none'}, "
                f"{'has' if what == 'result' else 'have'} {size} registers; one {op.instruction} takes {least}",
                concerns=(Concern(label=op.name, source=op.source),),
                evidence=(("registers", size), ("of one instruction", least)),
            )
