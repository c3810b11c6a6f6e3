"""Registers that are chosen while running: takes operations, gives those between s_set_gpr_idx_on and off marked.

In index mode M0 is added to the vector registers that its bits name.  While the index is known the very registers are
used; else a read may be of any register from the named one on, and a write forgets all of these.  The mode must begin
and end in one stretch of code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rota.isa.wave.operand import ACC, M0, SCALAR, File, Operand
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.operation import Operation, OperationKind, UnknownOperationError
from rota.prove.squad import Squad
from rota.prove.symbol import LANE, WAVE
from rota.prove.vector_values import write_lane

_NAMES = re.compile(r"gpr_idx\((?P<names>[A-Z0-9,]*)\)")
_PLACES = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}


def mark_indexed(operations: Sequence[Operation]) -> list[Operation]:
    """The operations, those in index mode with all registers that they may use."""
    marked, mode = list(operations), 0
    targets = {each.instruction.target for each in operations}
    for number, each in enumerate(operations):
        opcode = each.instruction.opcode
        if opcode == "s_set_gpr_idx_on":
            mode = _mode(each)
        elif opcode == "s_set_gpr_idx_off":
            mode = 0
        elif opcode.startswith("s_set_gpr_idx") and opcode != "s_set_gpr_idx_idx":
            raise UnknownOperationError(each.instruction)
        elif mode and (number in targets or each.kind in {OperationKind.BRANCH, OperationKind.CALL, OperationKind.END}):
            raise UnknownOperationError(each.instruction, "register index")
        elif mode and each.vector:
            marked[number] = _wide(each, mode)
    return marked


def _mode(operation: Operation) -> int:
    found = _NAMES.search(operation.instruction.text.replace(" ", ""))
    if found is None:
        raise UnknownOperationError(operation.instruction, "form")
    return sum(_PLACES[name] for name in found["names"].split(",") if name)


def _wide(operation: Operation, mode: int) -> Operation:
    moves = operation.name == "v_mov_b32" or (operation.name == "v_writelane_b32" and mode == _PLACES["DST"])
    if not moves or operation.odd or mode & 6:
        raise UnknownOperationError(operation.instruction, "register index")
    target, source = operation.operands[:2]
    reads, writes = operation.reads, operation.writes
    if mode & 1 and source.file is File.VECTOR:
        reads |= _from(source)
    if mode & 8:
        writes, reads = writes | _from(target), reads | _from(target)
    return replace(operation, reads=reads, writes=writes, indexed=mode)


def _from(operand: Operand) -> int:
    """All registers of the file from an operand's on."""
    last = ACC if operand.first < ACC else SCALAR
    return (1 << last) - (1 << operand.first)


def index_of(one: Evaluator, squad: Squad, known: Decisions) -> int | None:
    """The index in M0, if it is known."""
    value = one.row(squad, SCALAR + M0, known)
    return value & 0xFF if isinstance(value, int) else None


def set_index(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """s_set_gpr_idx_on and s_set_gpr_idx_idx."""
    old, new = one.row(squad, SCALAR + M0, known), one.read(squad, operation.operands[0], known)
    on = operation.instruction.opcode == "s_set_gpr_idx_on"
    if isinstance(new, int):
        kept = (old & 0xFFFF_0F00 if on else old & 0xFFFF_FF00) if isinstance(old, int) else 0
        squad.registers[SCALAR + M0] = kept | new & 0xFF | (_mode(operation) << 12 if on else 0)
    else:
        squad.registers[SCALAR + M0] = one.symbols.fresh("index", WAVE)


def touched(operation: Operation, index: int | None) -> int:
    """The registers that a marked operation uses."""
    if index is None:
        return operation.reads | operation.writes
    target, source = operation.operands[:2]
    rows = 1 << target.first + (index if operation.indexed & 8 else 0)
    if source.file is File.VECTOR:
        rows |= 1 << source.first + (index if operation.indexed & 1 else 0)
    return rows


def move_indexed(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """v_mov_b32 or v_writelane_b32 in index mode."""
    index = index_of(one, squad, known)
    target, source = operation.operands[:2]
    if operation.indexed & 1 and source.file is File.VECTOR:
        value = one.symbols.fresh("indexed", LANE) if index is None else one.row(squad, source.first + index, known)
    else:
        value = one.read(squad, source, known)
    if not operation.indexed & 8:
        one.write(squad, target.first, value)
    elif index is not None and operation.name == "v_writelane_b32":
        write_lane(one, squad, target.first + index, value, one.read(squad, operation.operands[2], known))
    elif index is not None:
        one.write(squad, target.first + index, value)
    else:
        for row in [row for row in squad.registers if operation.writes >> row & 1 and row < SCALAR]:
            squad.registers[row] = one.symbols.fresh("indexed", LANE)
