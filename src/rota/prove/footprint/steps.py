"""What an instruction does to the words that registers hold.

An instruction that isn't listed leaves an unknown word: its number is the name.
"""

from __future__ import annotations

from rota.isa.opcodes import IsaUnit, MemSpace
from rota.isa.registers import SCALAR
from rota.isa.wave.operand import File, Operand
from rota.prove.footprint.flow import EXEC_ROW
from rota.prove.footprint.lanes import ON_LANES, ON_MASKS, compare_operands, compares, save_exec
from rota.prove.footprint.numbers import ON_NUMBERS, ON_WORDS
from rota.prove.footprint.polynomial import ZERO, Bounds, Polynomial, number
from rota.prove.footprint.step import Action, WordStep, forget
from rota.prove.footprint.words import WORD, HeldWord, Predicate
from rota.prove.operation import Operation, OperationKind, rows_of

_ACTIONS = {**ON_NUMBERS, **ON_LANES}


def take_step(step: WordStep) -> None:
    """Change the state by one operation."""
    operation, state = step.operation, step.state
    before = state.exec
    if operation.kind in {OperationKind.SMEM, OperationKind.VMEM, OperationKind.LDS, OperationKind.EXCHANGE}:
        _load(step)
    elif operation.writes:
        action = _find_action(step)
        forget(step) if action is None else action(step)
    if operation.writes >> EXEC_ROW & 1 and state.exec is before and not _names_exec(operation):
        state.exec = Predicate("unknown", (operation.number, "exec"))


def _names_exec(operation: Operation) -> bool:
    return any(EXEC_ROW in each.rows for each in operation.operands[:1]) or operation.spec.words[-1:] == ("saveexec",)


def _find_action(step: WordStep) -> Action | None:
    operation, spec = step.operation, step.operation.spec
    if not step.is_plain or spec.unit is IsaUnit.MATRIX or not operation.operands:
        return None
    if compares(step):
        return compare_operands
    if spec.name in _ACTIONS or spec.unit is not IsaUnit.SALU:
        return _ACTIONS.get(spec.name)
    return _find_scalar_action(step)


def _find_scalar_action(step: WordStep) -> Action | None:
    spec = step.operation.spec
    if spec.words[-1:] == ("saveexec",):
        return save_exec
    if spec.root in ON_WORDS and spec.type == "b32" and not _is_about_lanes(step):
        return ON_WORDS[spec.root]
    return ON_MASKS.get(spec.root) if spec.is_wide or step.mask_rows == 1 else None


def _is_about_lanes(step: WordStep) -> bool:
    """True if an instruction on 32 bits combines masks, as waves of 32 lanes have them."""
    return step.mask_rows == 1 and any(
        step.holds_mask(each) for each in step.operation.operands if each.file is not File.LITERAL
    )


# Loads. A word is named by the pointer that it is loaded from.

_BYTES = {1: 0xFF, 2: 0xFFFF}


def _load(step: WordStep) -> None:
    operation = step.operation
    access = operation.access
    if operation.verb == "time" or access is None:
        _forget_data(step, "time")
        return
    if operation.kind is OperationKind.SMEM and operation.verb == "load" and not access.buffer:
        _load_scalar(step)
        return
    source = "LDS" if access.space is MemSpace.LDS else f"{step.source}[...]"
    bounds = Bounds(0, WORD - 1)
    if access.size in _BYTES and not access.signed and not access.half and operation.data.bit_count() == 1:
        bounds = Bounds(0, _BYTES[access.size])
    _forget_data(step, source, bounds)


def _forget_data(step: WordStep, source: str, bounds: Bounds = Bounds(0, WORD - 1)) -> None:  # noqa: B008
    for place, row in enumerate(rows_of(step.operation.data or step.operation.writes)):
        word = step.words.unknown(source, step.at, place, bounds=bounds, by_lane=row < SCALAR)
        step.put(row, word)


def _load_scalar(step: WordStep) -> None:
    operation = step.operation
    base = step.wide(1)
    offset = step.value(2) if len(operation.operands) > 2 else ZERO
    whole = base + offset + number(operation.instruction.offset)
    place = (whole - step.launch.kernarg).constant
    for part, row in enumerate(rows_of(operation.data)):
        if place is not None and place >= 0 and place % 4 == 0:
            step.put(row, step.launch.argument(place + 4 * part))
        else:
            name = _name_loaded(whole, part)
            op = "launch" if root_of(base) == "packet" else "unknown"
            step.put(row, HeldWord(step.words.atoms.make(op, (name, step.at, part), name, Bounds(0, WORD - 1))))


def _name_loaded(address: Polynomial, part: int) -> str:
    """A word in memory by its pointer, and by its place if that is constant."""
    root = root_of(address)
    rest = [term for term in address.terms if term[0] and not (len(term[0]) == 1 and term[0][0].text == root)]
    place = sum(factor for factors, factor in address.terms if not factors) + 4 * part
    return f"{root}[...]" if rest else f"{root}[{place:#x}]"


def root_of(base: Polynomial) -> str:
    """The pointer that an address is counted from, by name."""
    single = [factors[0] for factors, factor in base.terms if len(factors) == 1 and factor == 1]
    return next((each.text for each in single if each.op in _ROOTS), UNNAMED)


UNNAMED = "memory"
_ROOTS = frozenset({"argument", "kernarg", "packet", "word of arguments", "pointer of arguments", "unknown"})


def resource_base(step: WordStep, operand: Operand) -> Polynomial:
    """The address that a buffer resource begins at: 48 bits, of which the second word holds 16."""
    low, high = (step.row(row) for row in operand.rows[:2])
    whole = step.words.drop_multiples(step.words.join(low, high), 1 << 48)
    kept = step.words.remainder(step.words.value(high), 1 << 16).atom
    inside = kept.args[0] if kept is not None and kept.op in {"field", "high"} else None
    if isinstance(inside, Polynomial) and not low.part and step.words.congruent(low.whole, inside):
        return inside
    return whole
