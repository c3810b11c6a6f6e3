"""What instructions do that move words between lanes, compare, or combine masks of lanes."""

from __future__ import annotations

from collections.abc import Callable

from rota.isa.opcodes import IsaUnit, Trait
from rota.isa.wave.operand import File, constant_bits
from rota.prove.footprint.flow import as_word
from rota.prove.footprint.polynomial import Bounds, Polynomial, number
from rota.prove.footprint.step import Action, WordStep, forget
from rota.prove.footprint.words import ANY_WORD, FALSE, TRUE, WORD, HeldWord, Predicate, both, either, negated

_LANE_BITS = 64

# Lanes.


def _read_first_lane(step: WordStep) -> None:
    """The first active lane's word; lane 0 has it if none is active, whether or not it was written there."""
    row = step.operation.operands[1].rows[0]
    word = as_word(step.state.held.get(row), step.words, row)
    lane = ("first lane", step.state.exec)
    step.write(HeldWord(step.words.atoms.at_lane(word.whole, lane), word.part))


def _read_lane(step: WordStep) -> None:
    lane, row = step.word(2).constant, step.operation.operands[1].rows[0]
    kept = None if lane is None else step.state.lanes.get((row, lane % _LANE_BITS))
    if kept is not None:
        step.write(kept)
        return
    word = as_word(step.state.held.get(row), step.words, row)
    which = (f"lane@{step.at}", ("at", step.at)) if lane is None else (f"lane {lane % _LANE_BITS}", lane % _LANE_BITS)
    step.write(HeldWord(step.words.atoms.at_lane(word.whole, which), word.part))


def _write_lane(step: WordStep) -> None:
    lane, row = step.word(2).constant, step.operation.operands[0].rows[0]
    word = step.word(1)
    kept = dict(step.state.lanes)
    step.state.held[row] = step.words.unknown(f"lanes@{step.at}", step.at, row)
    if lane is not None:
        kept[row, lane % _LANE_BITS] = word
        step.state.lanes = kept
    else:
        step.state.lanes = {key: each for key, each in kept.items() if key[0] != row}


def _count_lanes(step: WordStep) -> None:
    other = step.value(2).bounds()
    fits = other.high + 32 < WORD
    bounds = Bounds(other.low, other.high + 32) if fits else ANY_WORD
    step.write(step.opaque(bounds, f"lanes before@{step.at}"))


# Conditions.

_RELATIONS = {"eq": "eq", "ne": "ne", "lg": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_INTEGERS = frozenset({"i32", "u32", "i64", "u64"})


def compares(step: WordStep) -> bool:
    """True for comparisons of numbers; the relation is in the instruction's name."""
    words = step.operation.spec.words
    return len(words) > 1 and words[0] in {"cmp", "cmpx", "cmpk"} and words[1] in _RELATIONS


def compare_operands(step: WordStep) -> None:
    spec, operands = step.operation.spec, step.operation.operands
    first = 0 if spec.unit is IsaUnit.SALU else 1
    if spec.type in _INTEGERS:
        if spec.words[0] == "cmpk":
            literal = constant_bits(operands[1], "u") & 0xFFFF
            other = number(literal - (literal >> 15 << 16) if spec.type == "i32" else literal)
            values = [step.value(0) if spec.type == "u32" else step.signed(0), other]
        else:
            values = [_compared(step, place) for place in (first, first + 1)]
        condition = compare(_RELATIONS[spec.words[1]], values[0], values[1])
    else:
        condition = Predicate("unknown", (step.at, "compare"))
    if spec.unit is IsaUnit.SALU:
        step.write_scc(condition)
    elif Trait.COMPARES_EXEC in spec.traits:
        step.state.exec = both(step.state.exec, condition)
        step.write_mask(step.state.exec)
    else:
        step.write_lanes(condition, place=0)


def _compared(step: WordStep, place: int) -> Polynomial:
    kind = step.operation.spec.type
    if kind in {"i64", "u64"}:
        return step.words.narrow(step.wide(place), 64, at=step.at, signed=kind == "i64")
    return step.value(place) if kind == "u32" else step.signed(place)


def compare(relation: str, one: Polynomial, other: Polynomial) -> Predicate:
    if relation in {"gt", "ge"}:
        relation, one, other = {"gt": "lt", "ge": "le"}[relation], other, one
    if relation == "ne":
        return negated(compare("eq", one, other))
    low, high = (other - one).bounds()
    if relation == "eq":
        return TRUE if low == high == 0 else FALSE if low > 0 or high < 0 else Predicate("eq", (one, other))
    least = 1 if relation == "lt" else 0
    return TRUE if low >= least else FALSE if high < least else Predicate(relation, (one, other))


def _and_masks(step: WordStep) -> None:
    _combine(step, both)


def _or_masks(step: WordStep) -> None:
    _combine(step, either)


def _and_not_masks(step: WordStep) -> None:
    _combine(step, lambda one, other: both(one, negated(other)))


def _or_not_masks(step: WordStep) -> None:
    _combine(step, lambda one, other: either(one, negated(other)))


def _xor_masks(step: WordStep) -> None:
    _combine(step, _exclusive)


def _exclusive(one: Predicate, other: Predicate) -> Predicate:
    if TRUE in (one, other):
        return negated(other if one == TRUE else one)
    for whole, part in ((one, other), (other, one)):
        rest = part.parts - whole.parts
        if whole.parts <= part.parts and len(rest) == 1:  # the lanes of a mask without a part, as compilers say `else`
            return both(whole, negated(next(iter(rest))))
    return Predicate("xor", (one, other))


def _combine(step: WordStep, do: Callable[[Predicate, Predicate], Predicate]) -> None:
    operands = step.operation.operands
    if not (step.holds_mask(operands[1]) or step.holds_mask(operands[2])) or operands[0].count > step.mask_rows:
        _combine_numbers(step)
        return
    step.write_mask(do(step.mask(operands[1]), step.mask(operands[2])))
    step.write_scc(Predicate("unknown", (step.at, "scc")))


def _combine_numbers(step: WordStep) -> None:
    """Bits of 64, of which a constant keeps some."""
    literal = next((each for each in step.operation.operands[1:3] if each.file is File.LITERAL), None)
    kept = None if literal is None else constant_bits(literal, "I")
    place = 2 if literal is step.operation.operands[1] else 1
    if step.operation.spec.root == "and" and kept is not None and kept & kept + 1 == 0:
        step.write_wide(step.words.remainder(step.wide(place), kept + 1))
        step.write_scc(Predicate("unknown", (step.at, "scc")))
    else:
        forget(step)


def _not_mask(step: WordStep) -> None:
    step.write_mask(negated(step.mask(step.operation.operands[1])))
    step.write_scc(Predicate("unknown", (step.at, "scc")))


def save_exec(step: WordStep) -> None:
    spec, old = step.operation.spec, step.state.exec
    source = step.mask(step.operation.operands[1])
    combine = _SAVES.get(spec.words[0])
    new = Predicate("unknown", (step.at, "exec")) if combine is None else combine(source, old)
    if step.operation.operands[0].rows:
        step.write_mask(old)
    step.state.exec = new
    step.write_scc(Predicate("unknown", (step.at, "scc")))


_SAVES: dict[str, Callable[[Predicate, Predicate], Predicate]] = {
    "and": both, "or": either, "andn2": lambda source, old: both(source, negated(old)),
    "andn1": lambda source, old: both(negated(source), old), "xor": lambda source, old: _exclusive(old, source),
    "orn1": lambda source, old: either(negated(source), old), "orn2": lambda source, old: either(source, negated(old)),
}  # fmt: skip


def _select_scalar(step: WordStep) -> None:
    if step.operation.spec.is_wide:
        _select_scalar_wide(step)
        return
    step.write(_chosen(step, step.scc(), step.word(1), step.word(2)))


def _chosen(step: WordStep, condition: Predicate, one: HeldWord, other: HeldWord) -> HeldWord:
    if condition in (TRUE, FALSE):
        return one if condition == TRUE else other
    return step.words.choose(condition, (one, other), step.at)


def _select_scalar_wide(step: WordStep) -> None:
    operands, condition = step.operation.operands, step.scc()
    if step.holds_mask(operands[1]) and step.holds_mask(operands[2]):
        one, other = step.mask(operands[1]), step.mask(operands[2])
        if condition in (TRUE, FALSE):
            step.write_mask(one if condition == TRUE else other)
        else:
            step.write_mask(either(both(condition, one), both(negated(condition), other)))
        return
    wholes = [step.wide(place) for place in (1, 2)]
    for part, row in enumerate(operands[0].rows):
        step.put(row, _chosen(step, condition, HeldWord(wholes[0], part), HeldWord(wholes[1], part)))


def _select_by_lane(step: WordStep) -> None:
    operands = step.operation.operands
    condition = step.mask(operands[3]) if len(operands) > 3 else Predicate("unknown", (step.at, "mask"))
    step.write(_chosen(step, condition, step.word(2), step.word(1)))


ON_LANES: dict[str, Action] = {
    "v_readfirstlane_b32": _read_first_lane, "v_readlane_b32": _read_lane, "v_writelane_b32": _write_lane,
    "v_mbcnt_lo_u32_b32": _count_lanes, "v_mbcnt_hi_u32_b32": _count_lanes, "s_cselect_b32": _select_scalar,
    "s_cselect_b64": _select_scalar, "v_cndmask_b32": _select_by_lane,
}  # fmt: skip
ON_MASKS: dict[str, Action] = {
    "and": _and_masks, "or": _or_masks, "andn2": _and_not_masks, "orn2": _or_not_masks, "xor": _xor_masks,
    "not": _not_mask, "cselect": _select_scalar, "and_not1": _and_not_masks,
    "or_not1": _or_not_masks,
}  # fmt: skip
