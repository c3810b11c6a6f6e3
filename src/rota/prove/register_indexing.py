"""Registers that are chosen while running: takes operations, gives those between s_set_gpr_idx_on and off marked.

In index mode M0 is added to the vector registers that its bits name.  While the index is known the very registers are
used; else a read may be of any register from the named one on, and a write forgets all of these.  The mode must begin
and end in one stretch of code, and what stands there makes single registers of others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

import numpy as np

from rota.isa.wave.operand import ACC, M0, SCALAR, File, Operand
from rota.prove.decisions import Decisions
from rota.prove.evaluation import Evaluator
from rota.prove.operation import VECTORS, Operation, OperationKind, UnknownOperationError
from rota.prove.squad import Squad
from rota.prove.symbol import LANE, WAVE, Linear, Plain, Value, of_waves, simple
from rota.prove.vector_values import evaluate_vector

_NAMES = re.compile(r"gpr_idx\((?P<names>[A-Z0-9,]*)\)")
_PLACES = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}
_OWN_WAYS = ("v_mfma", "v_smfmac", "v_accvgpr", "v_swap", "v_permlane")  # of using registers


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
    if not _is_plain(operation, mode):
        raise UnknownOperationError(operation.instruction, "register index")
    reads, writes = operation.reads, operation.writes
    for place, operand in _meant(operation.operands, mode):
        if place:
            reads |= _from(operand)
        else:  # what lies beyond the last register is the first
            writes, reads = writes | _from(operand) | 1, reads | _from(operand) | 1
    return replace(operation, reads=reads, writes=writes, indexed=mode)


def _is_plain(operation: Operation, mode: int) -> bool:
    """Does it make one register of others, each as its operand names it?"""
    if operation.name == "v_writelane_b32":
        return mode == _PLACES["DST"] and not operation.odd
    vectors = [operand for operand in operation.operands if operand.file is File.VECTOR]
    return (
        bool(vectors)
        and operation.operands[0] is vectors[0]
        and operation.targets == 1
        and not (operation.odd or operation.keeps or operation.name.startswith(_OWN_WAYS))
        and all(operand.count == 1 and operand.first < ACC for operand in vectors)
    )


def _meant(operands: Sequence[Operand], mode: int) -> Iterator[tuple[int, Operand]]:
    """The vector registers that the mode adds the index to: the target's place is 0, sources follow."""
    for place, operand in enumerate(operands[: len(_PLACES)]):
        if mode >> (place - 1) % len(_PLACES) & 1 and operand.file is File.VECTOR:
            yield place, operand


def _from(operand: Operand) -> int:
    """All registers of the file from an operand's on."""
    return (1 << ACC) - (1 << operand.first)


def in_place(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> Operation | None:
    """The operation with the registers that are meant, of all waves together; None if these are not known."""
    found = _by_index(one, squad, operation, known)
    if not found:
        return None
    reads, writes = (reduce(or_, (getattr(each, name) for each in found.values())) for name in ("reads", "writes"))
    return replace(next(iter(found.values())), reads=reads, writes=writes)


def _by_index(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> dict[int, Operation]:
    """By each index that a wave has: the operation on the very registers that are meant; nothing if it isn't known."""
    index = one.row(squad, SCALAR + M0, known)
    if isinstance(index, Linear):
        return {}
    indices = {int(each) & 0xFF for each in np.asarray(index).flat}
    last = max((operand.first for _, operand in _meant(operation.operands, operation.indexed)), default=0)
    if last + max(indices) >= ACC or (len(indices) > 1 and operation.indexed & _PLACES["DST"]):
        return {}
    return {each: _moved(operation, each) for each in sorted(indices)}


def _moved(operation: Operation, index: int) -> Operation:
    operands = list(operation.operands)
    for place, operand in _meant(operation.operands, operation.indexed):
        operands[place] = replace(operand, first=operand.first + index)
    target, *sources = (sum(1 << row for row in operand.rows) & VECTORS for operand in operands)
    reads, writes = operation.reads & ~VECTORS | reduce(or_, sources, 0), operation.writes & ~VECTORS | target
    return replace(operation, operands=tuple(operands), reads=reads, writes=writes, indexed=0)


def set_index(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """s_set_gpr_idx_on and s_set_gpr_idx_idx."""
    old, new = one.row(squad, SCALAR + M0, known), one.read(squad, operation.operands[0], known)
    on = operation.instruction.opcode == "s_set_gpr_idx_on"
    if isinstance(new, Linear):
        squad.registers[SCALAR + M0] = one.symbols.fresh("index", WAVE)
        return
    kept = 0 if isinstance(old, Linear) else old & (0xFFFF_0F00 if on else 0xFFFF_FF00)
    squad.registers[SCALAR + M0] = simple(kept | new & 0xFF | (_mode(operation) << 12 if on else 0))


def evaluate_indexed(one: Evaluator, squad: Squad, operation: Operation, known: Decisions) -> None:
    """An operation in index mode."""
    found = _by_index(one, squad, operation, known)
    row = operation.operands[0].first
    if len(found) == 1:
        evaluate_vector(one, squad, next(iter(found.values())), known)
    elif found:  # waves have an index each
        index = np.broadcast_to(np.asarray(one.row(squad, SCALAR + M0, known)) & 0xFF, (len(squad.waves), 1))
        before, made = squad.registers.get(row), list[Value]()
        for number in index[:, 0].tolist():
            evaluate_vector(one, squad, found[number], known)
            made.append(one.row(squad, row, known, everywhere=True))
            if before is None:
                del squad.registers[row]
            else:
                squad.registers[row] = before
        squad.registers[row] = _of_each(one, made)
    elif operation.indexed & _PLACES["DST"]:
        for each in range(ACC):
            if operation.writes >> each & 1:
                squad.registers[each] = one.symbols.fresh("indexed", LANE)
    else:
        one.write(squad, row, one.symbols.fresh("indexed", LANE))


def _of_each(one: Evaluator, values: Sequence[Value]) -> Value:
    """The first wave's part of the first value, the second's of the second, and so on."""
    own = [of_waves(value, [wave]) for wave, value in enumerate(values)]
    first = own[0]
    if isinstance(first, Linear):
        if not all(isinstance(each, Linear) and (each.base, each.scale) == (first.base, first.scale) for each in own):
            return one.symbols.fresh("indexed", LANE)
        return Linear(first.base, first.scale, _stacked([each.offset for each in own if isinstance(each, Linear)]))
    plain = [each for each in own if not isinstance(each, Linear)]
    return _stacked(plain) if len(plain) == len(own) else one.symbols.fresh("indexed", LANE)


def _stacked(rows: Sequence[Plain]) -> Plain:
    each = [np.atleast_2d(np.asarray(row, np.int64)) for row in rows]
    wide = max(row.shape[1] for row in each)
    return simple(np.concatenate([np.broadcast_to(row, (1, wide)) for row in each]))
