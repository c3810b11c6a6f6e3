"""One instruction of a loop as ops and effects: takes an operation with its places, gives what the waist calls it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from rota.isa.mfma.formats import BITS, BY_FIELD
from rota.lift.natural_loops import MATRIX
from rota.program.effects import Effect, Place, Version
from rota.program.element import WIDEST, takes_formats
from rota.program.entry import BARRIER, MEETS, Op, Work, wait_effect, wait_op
from rota.program.kinds import OpKind
from rota.program.machine import LANES, Machine
from rota.prove.operation import Operation, OperationKind

_TRANSCENDENTAL = re.compile(r"^v_(?:exp|log|rcp|rsq|sqrt|sin|cos|prng)_")
_WIDTH = re.compile(r"dword(?:x(\d))?$")
_SHORT = {"ubyte": 1, "sbyte": 1, "byte": 1, "ushort": 2, "sshort": 2, "short": 2}
_MACHINE_COUNTERS = ("vmcnt", "lgkmcnt")


class OperationPlaces(NamedTuple):
    """What an operation reads and writes."""

    reads: tuple[Place, ...] = ()
    writes: tuple[Place, ...] = ()
    lds: tuple[Place, ...] = ()


def derive_ops(
    operation: Operation, places: OperationPlaces, machine: Machine, copy: int | None
) -> Iterator[tuple[Op, Effect]]:
    """What a wave does with one instruction: usually one op, of a wait one for each counter."""
    if operation.kind is OperationKind.WAIT:
        for op, effect in _waits(operation, machine):
            yield replace(op, source=operation.instruction.source, declared=_text(operation)), effect
        return
    if operation.kind is OperationKind.BARRIER:
        yield replace(BARRIER, source=operation.instruction.source, declared=_text(operation)), MEETS
        return
    if operation.name == "s_setprio":
        level = int(operation.instruction.operands[0], 0)
        yield (
            _op(operation, OpKind.PRIORITY, Work(1), f"priority({level})"),
            Effect(kind=OpKind.PRIORITY, wait_value=level),
        )
        return
    kind = _kind(operation)
    tracked = machine.counter_of(kind)
    reads, writes = places.reads, places.writes
    into_lds = kind in {OpKind.LDS_WRITE, OpKind.DMA}
    name = operation.name + (" lds" if kind is OpKind.DMA and "_lds_" not in operation.name else "")
    buffers = dict.fromkeys(f"{place.name}[{place.copy}]" for place in places.lds)
    if buffers:
        name += f" {next(iter(buffers))}" if len(buffers) == 1 else " lds?"
    effect = Effect(
        kind=kind,
        counter=tracked,
        tokens=1 if tracked else 0,
        reads=reads if into_lds else (*places.lds, *reads),
        writes=(*places.lds, *writes) if into_lds else writes,
        instance=Version(operation.name, copy or 0),
    )
    yield _op(operation, kind, _work(operation, kind), name, copy), effect


def _op(operation: Operation, kind: OpKind, work: Work, name: str, copy: int | None = None) -> Op:
    return Op(
        kind=kind,
        name=name,
        copy=copy,
        work=work,
        source=operation.instruction.source,
        declared=_text(operation),
    )


def _text(operation: Operation) -> str:
    instruction = operation.instruction
    at = "" if instruction.address is None else f"{instruction.address:#x}: "
    return at + instruction.text


def _waits(operation: Operation, machine: Machine) -> Iterator[tuple[Op, Effect]]:
    for counter, count in zip(_MACHINE_COUNTERS, operation.waits, strict=True):
        if count is not None and count < machine.no_wait(counter):
            yield wait_op(counter, count), wait_effect(counter, count)


def _kind(operation: Operation) -> OpKind:  # noqa: PLR0911  # a table with conditions
    name = operation.name
    if operation.kind is OperationKind.LDS:
        if operation.data:
            return OpKind.LDS_READ_TRANSPOSED if "_tr_" in name else OpKind.LDS_READ
        return OpKind.LDS_WRITE
    if operation.kind is OperationKind.EXCHANGE:
        return OpKind.LDS_READ
    if operation.kind is OperationKind.VMEM:
        if operation.to_lds:
            return OpKind.DMA
        return {"load": OpKind.GLOBAL_LOAD, "store": OpKind.GLOBAL_STORE, "atomic": OpKind.ATOMIC}[operation.verb]
    if name.startswith(MATRIX):
        return OpKind.MMA
    if name.startswith("v_"):
        return OpKind.TRANSCENDENTAL if _TRANSCENDENTAL.match(name) else OpKind.VALU
    return OpKind.SCALAR


def _work(operation: Operation, kind: OpKind) -> Work:
    """One instruction for all lanes; s_nop takes as many turns as it says."""
    if kind is OpKind.MMA:
        return Work(1, 0, operation.name, _bits(operation))
    if operation.kind is OperationKind.LDS:
        return Work(1, LANES * sum(size for _, size in operation.spots))
    if operation.kind is OperationKind.EXCHANGE:
        return Work(1, LANES * 4)
    if operation.kind is OperationKind.VMEM:
        return Work(1, LANES * (operation.to_lds or _moved(operation)))
    if operation.name == "s_nop":
        return Work(1 + int(operation.instruction.operands[0], 0))
    return Work(1)


def _moved(operation: Operation) -> int:
    found = _WIDTH.search(operation.name)
    if found is not None:
        return 4 * int(found[1] or 1)
    return next((size for word, size in _SHORT.items() if word in operation.name), 4)


def _bits(operation: Operation) -> int:
    """Of the wider factor of an instruction that takes several formats."""
    if not takes_formats(operation.name):
        return WIDEST
    fields = dict.fromkeys(("cbsz", "blgp"), 0)
    for modifier in operation.instruction.modifiers:
        key, _, value = modifier.partition(":")
        if key in fields:
            fields[key] = int(value, 0)
    return max(BITS[BY_FIELD[value]] for value in fields.values())
