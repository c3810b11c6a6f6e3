"""What instructions that compute numbers do: moves, sums, products, shifts and bits."""

from __future__ import annotations

from collections.abc import Callable

from rota.isa.opcodes import IsaUnit
from rota.isa.registers import SCALAR
from rota.prove.footprint.flow import EXEC_ROW, as_word
from rota.prove.footprint.lanes import compare
from rota.prove.footprint.polynomial import Bounds, Polynomial, number
from rota.prove.footprint.step import Action, WordStep, forget
from rota.prove.footprint.words import ANY_WORD, ESTIMATE, WORD, HeldWord, Predicate, PredicateHalf, constant

# Moves, sums and products.


def _move(step: WordStep) -> None:
    step.write(step.word(1))


def _reverse_bits(step: WordStep) -> None:
    known = step.word(1).constant
    if known is None:
        forget(step)
    else:  # as compilers write 2**31 in one word
        step.write(constant(int(f"{known & (WORD - 1):032b}"[::-1], 2)))


def _move_immediate(step: WordStep) -> None:
    step.write(constant(_extend(step.word(1))))


def _extend(word: HeldWord) -> int:
    value = (word.constant or 0) & 0xFFFF
    return value - (value >> 15 << 16)


def _move_wide(step: WordStep) -> None:
    target, source = step.operation.operands[:2]
    if target.rows and target.rows[0] == EXEC_ROW:
        step.write_mask(step.mask(source))
    elif source.rows and source.rows[0] == EXEC_ROW:
        step.write_mask(step.state.exec)
    elif source.rows:
        held = [step.state.held.get(row) if row >= SCALAR else step.row(row) for row in source.rows]
        for row, each, old in zip(target.rows, held, source.rows, strict=False):
            if isinstance(each, PredicateHalf):
                step.state.held[row] = each
            else:
                step.put(row, as_word(each, step.words, old))
    elif step.holds_mask(source) and target.rows and target.rows[0] >= SCALAR:
        step.write_mask(step.mask(source))
    else:
        step.write_wide(step.wide(1))


def _add(step: WordStep, first: int = 1, sign: int = 1, *, swapped: bool = False) -> tuple[HeldWord, HeldWord]:
    one, other = step.word(first), step.word(first + 1)
    if swapped:
        one, other = other, one
    step.write(step.words.add(one, other, step.at, sign))
    return one, other


def _add_scalar(step: WordStep) -> None:
    sign = -1 if step.operation.spec.words[0] == "sub" else 1
    one, other = _add(step, sign=sign)
    carries = step.operation.spec.type == "u32"  # of signed numbers it is an overflow
    step.write_scc(step.words.carry(one, other, sign) if carries else Predicate("unknown", (step.at, "scc")))


def _add_scalar_high(step: WordStep) -> None:
    sign = -1 if step.operation.spec.words[0] == "subb" else 1
    one, other, carry = step.word(1), step.word(2), step.scc()
    step.write(step.words.add_high(one, other, carry, step.at, sign))
    step.write_scc(Predicate("unknown", (step.at, "carry")))


def _add_plain(step: WordStep) -> None:
    words = step.operation.spec.words
    sign = -1 if words[0] in {"sub", "subrev"} else 1
    _add(step, sign=sign, swapped=words[0] == "subrev")


def _add_carry_out(step: WordStep) -> None:
    words = step.operation.spec.words
    sign = -1 if words[0] in {"sub", "subrev"} else 1
    one, other = _add(step, first=2, sign=sign, swapped=words[0] == "subrev")
    step.write_lanes(step.words.carry(one, other, sign), place=1)


def _add_carry_in(step: WordStep) -> None:
    words = step.operation.spec.words
    sign = -1 if words[0] in {"subb", "subbrev"} else 1
    one, other = step.word(2), step.word(3)
    if words[0] == "subbrev":
        one, other = other, one
    step.write(step.words.add_high(one, other, step.carry_in(4), step.at, sign))
    step.write_mask(Predicate("unknown", (step.at, "carry")), place=1)


def _multiply(step: WordStep) -> None:
    one, other = step.word(1), step.word(2)
    wholes = [step.words.value(each) if each.part else each.whole for each in (one, other)]
    step.write(HeldWord(wholes[0] * wholes[1]))


def _multiply_high(step: WordStep) -> None:
    step.write(HeldWord(step.value(1) * step.value(2), 1))


def _multiply_high_signed(step: WordStep) -> None:
    step.write(HeldWord(step.signed(1) * step.signed(2), 1))


def _multiply24(step: WordStep, *, add: bool = False, high: bool = False, signed: bool = False) -> None:
    product = step.bits(1, 24, signed=signed) * step.bits(2, 24, signed=signed)
    if add:
        other = step.word(3)
        product = product + (step.words.value(other) if other.part else other.whole)
    step.write(HeldWord(product, int(high)))


def _halves(step: WordStep) -> None:
    """Sums and products of 16 bits, which leave zeros above."""
    one, other = (step.bits(place, 16) for place in (1, 2))
    words = step.operation.spec.words
    if words[0] == "mul":
        whole = one * other
    elif words[0] == "add":
        whole = one + other
    else:
        whole = other - one if words[0] == "subrev" else one - other
    step.write(HeldWord(step.words.narrow(whole, 16, at=step.at)))


def _multiply_add_wide(step: WordStep) -> None:
    spec = step.operation.spec
    signed = spec.type == "i32"
    factors = [step.signed(place) if signed else step.value(place) for place in (2, 3)]
    step.write_wide(factors[0] * factors[1] + step.wide(4))
    step.write_mask(Predicate("unknown", (step.at, "carry")), place=1)


def _add_three(step: WordStep) -> None:
    step.write(step.words.add(step.words.add(step.word(1), step.word(2), step.at), step.word(3), step.at))


def _shifted(step: WordStep, word: HeldWord, by: int) -> HeldWord:
    whole = step.words.value(word) if word.part else word.whole
    return HeldWord(whole.times(1 << by), 0, step.at)


def _amount(step: WordStep, place: int, most: int = 31) -> int | None:
    found = step.word(place).constant
    return None if found is None else found & most


def _shift_left(step: WordStep, source: int = 1, by: int = 2) -> None:
    amount = _amount(step, by)
    step.write(step.opaque() if amount is None else _shifted(step, step.word(source), amount))


def _shift_right(step: WordStep, source: int = 1, by: int = 2) -> None:
    amount = _amount(step, by)
    step.write(step.opaque() if amount is None else HeldWord(step.words.quotient(step.value(source), 1 << amount)))


def _shift_sign(step: WordStep, source: int = 1, by: int = 2) -> None:
    amount = _amount(step, by)
    word = step.word(source)
    if amount == 31:
        step.write(step.words.sign_of(word, step.at))
    elif amount is None:
        step.write(step.opaque())
    else:
        step.write(HeldWord(step.words.quotient(step.words.signed_value(word), 1 << amount)))


def _shift_wide(step: WordStep, source: int = 1, by: int = 2) -> None:
    amount = _amount(step, by, 63)
    word = step.operation.spec.words[0]
    left, whole = word in {"lshl", "lshlrev"}, step.wide(source)
    if not left:
        whole = step.words.narrow(whole, 64, at=step.at, signed=word in {"ashr", "ashrrev"})
    if amount is None:
        forget(step)
        return
    step.write_wide(whole.times(1 << amount) if left else step.words.quotient(whole, 1 << amount))
    if step.operation.spec.unit is IsaUnit.SALU:
        step.write_scc(Predicate("unknown", (step.at, "scc")))


def _shift_add(step: WordStep) -> None:
    """(a << b) + c, where b is a constant."""
    amount = _amount(step, 2)
    if amount is None:
        step.write(step.opaque())
        return
    step.write(step.words.add(_shifted(step, step.word(1), amount), step.word(3), step.at))


def _shift_add_wide(step: WordStep) -> None:
    amount = _amount(step, 2, 7)
    if amount is None:
        forget(step)
    else:
        step.write_wide(step.wide(1).times(1 << amount) + step.wide(3))


def _add_shift(step: WordStep) -> None:
    """(a + b) << c, where c is a constant."""
    amount = _amount(step, 3)
    if amount is None:
        step.write(step.opaque())
    else:
        step.write(_shifted(step, step.words.add(step.word(1), step.word(2), step.at), amount))


def _shift_or(step: WordStep) -> None:
    """(a << b) | c, where b is a constant."""
    amount = _amount(step, 2)
    step.write(step.opaque() if amount is None else _or(step, _shifted(step, step.word(1), amount), step.word(3)))


def _add_scalar_shifted(step: WordStep) -> None:
    spec = step.operation.spec
    by = next(each for each in range(1, 5) if spec.root == f"lshl{each}_add")
    step.write(step.words.add(_shifted(step, step.word(1), by), step.word(2), step.at))
    step.write_scc(Predicate("unknown", (step.at, "scc")))


def _add_wide(step: WordStep) -> None:
    sign = -1 if step.operation.spec.words[0] == "sub" else 1
    step.write_wide(step.wide(1) + step.wide(2).times(sign))


def _multiply_wide(step: WordStep) -> None:
    step.write_wide(step.wide(1) * step.wide(2))


def _add_immediate(step: WordStep) -> None:
    value = _extend(step.word(1))
    word = step.row(step.operation.operands[0].rows[0])
    if step.operation.spec.words[0] == "addk":
        step.write(step.words.add(word, HeldWord(number(value)), step.at))
        step.write_scc(Predicate("unknown", (step.at, "scc")))
    else:
        step.write(HeldWord((step.words.value(word) if word.part else word.whole).times(value)))


# The reciprocal of a number in fp32, from which compilers make its quotients. Other numbers in fp32 are any bits.

_FLOAT, _RECIPROCAL, _SCALED = "fp32 of", "reciprocal in fp32 of", "scaled reciprocal of"
_BELOW_2_32 = 0x4F7FFFFE  # 2**32 - 512 in fp32


def _make_float(step: WordStep, op: str, inside: Polynomial) -> None:
    text = f"{op} {inside}"
    made = step.words.atoms.make(op, (inside,), text, ANY_WORD, by_lane=inside.by_lane)
    step.write(HeldWord(made, 0, step.at))


def _made_from(word: HeldWord, op: str) -> Polynomial | None:
    atom = None if word.part else word.whole.atom
    inside = atom.args[0] if atom is not None and atom.op == op else None
    return inside if isinstance(inside, Polynomial) else None


def _to_float(step: WordStep) -> None:
    _make_float(step, _FLOAT, step.value(1))


def _byte_to_float(step: WordStep) -> None:
    _make_float(step, _FLOAT, step.words.remainder(step.value(1), 1 << 8))


def _reciprocal(step: WordStep) -> None:
    inside = _made_from(step.word(1), _FLOAT)
    forget(step) if inside is None else _make_float(step, _RECIPROCAL, inside)


def _multiply_float(step: WordStep) -> None:
    words = [step.word(place) for place in (1, 2)]
    found = [_made_from(each, _RECIPROCAL) for each in words]
    inside = next((each for each in found if each is not None), None)
    if inside is None or _BELOW_2_32 not in [each.constant for each in words]:
        forget(step)
    else:
        _make_float(step, _SCALED, inside)


def _from_float(step: WordStep) -> None:
    inside = _made_from(step.word(1), _SCALED)
    forget(step) if inside is None else _make_float(step, ESTIMATE, inside)


# Bits.


def _mask_word(step: WordStep, word: HeldWord, mask: int, inside: str = "") -> HeldWord:
    """The bits of a word that a constant keeps."""
    low = mask & -mask
    if mask in (0, WORD - 1):
        return word if mask else constant(0)
    if low == 1 and mask & mask + 1 == 0:
        return _keep_low_bits(step, word, mask)
    if mask // low & mask // low + 1:  # with a hole
        most = step.words.value(word).bounds().high
        return step.opaque(Bounds(0, min(mask, most)), inside=inside)
    if mask + low < WORD:
        shifted = step.words.quotient(step.words.value(word), low)
        return HeldWord(step.words.remainder(shifted, mask // low + 1).times(low))
    whole = step.words.value(word) if word.part else word.whole
    multiple, rest = whole.split(low)
    if rest.bounds().within(0, low - 1):
        return HeldWord(multiple)
    value = step.words.value(word)
    return HeldWord(value - step.words.remainder(value, low))


def _keep_low_bits(step: WordStep, word: HeldWord, mask: int) -> HeldWord:
    if not word.part:
        return HeldWord(step.words.remainder(word.whole, mask + 1))
    within = step.words.value(word).bounds().within(0, mask)
    return word if within else step.words.mask_high(word, mask.bit_length(), step.at)


def _and_words(step: WordStep, inside: str = "") -> HeldWord:
    one, other = step.word(1), step.word(2)
    for word, mask in ((one, other), (other, one)):
        known = mask.constant
        if known is not None:
            return _mask_word(step, word, known % WORD, inside)
    most = [step.words.value(each).bounds().high for each in (one, other)]
    return step.opaque(Bounds(0, min(most)), inside=inside)


def _and(step: WordStep) -> None:
    step.write(_and_words(step))


def _and_or(step: WordStep) -> None:
    step.write(_or(step, _and_words(step, "and"), step.word(3)))


def _possible_bits(step: WordStep, word: HeldWord) -> int:
    value = step.words.value(word)
    if value.constant is not None:
        return value.constant
    high = value.bounds().high
    bits = (1 << high.bit_length()) - 1
    step_size = 0
    for _, factor in value.terms:
        step_size |= abs(factor)
    low = step_size & -step_size
    return bits & ~(low - 1)


def _or(step: WordStep, one: HeldWord, other: HeldWord, inside: str = "") -> HeldWord:
    """The bits of two words: their sum, where one is a multiple of a power of two above all bits of the other."""
    for word, small in ((one, other), (other, one)):
        low = 0
        for _, factor in word.whole.terms:
            low |= factor
        if not word.part and small.whole.bounds().within(0, (low & -low) - 1) and not small.part:
            return HeldWord(word.whole + small.whole)
    bits = [_possible_bits(step, each) for each in (one, other)]
    if not bits[0] & bits[1]:
        return HeldWord(step.words.value(one) + step.words.value(other))
    return step.opaque(Bounds(0, bits[0] | bits[1]), inside=inside)


def _or_words(step: WordStep) -> None:
    count = len(step.operation.operands)
    word = step.word(1)
    for place in range(2, count):
        word = _or(step, word, step.word(place), "or" if place < count - 1 else "")
    step.write(word)


def _xor(step: WordStep) -> None:
    one, other = step.word(1), step.word(2)
    bits = _possible_bits(step, one) | _possible_bits(step, other)
    if not _possible_bits(step, one) & _possible_bits(step, other):
        step.write(_or(step, one, other))
    else:
        step.write(step.opaque(Bounds(0, bits)))


def _extract(step: WordStep) -> None:
    spec = step.operation.spec
    if spec.unit is IsaUnit.SALU:
        field = step.value(2).constant
        first, width = (None, None) if field is None else (field & 31, field >> 16 & 0x7F)
    else:
        first, width = _amount(step, 2), _amount(step, 3)
    if first is None or width is None or spec.type != "u32":
        step.write(step.opaque())
    else:
        value = step.words.quotient(step.value(1), 1 << (first & 31))
        step.write(HeldWord(step.words.remainder(value, 1 << width)) if width < 32 else HeldWord(value))
    if spec.unit is IsaUnit.SALU:
        step.write_scc(Predicate("unknown", (step.at, "scc")))


def _find_extreme(step: WordStep) -> None:
    spec = step.operation.spec
    signed, least = spec.type.startswith("i"), spec.words[0] == "min"
    values = [step.signed(place) if signed else step.value(place) for place in (1, 2)]
    step.write(HeldWord(step.words.extreme(spec.words[0], *values)))
    if spec.unit is IsaUnit.SALU:
        step.write_scc(compare("lt" if least else "gt", values[0], values[1]))


def _sets_scc(act: Action) -> Action:
    def both_of(step: WordStep) -> None:
        act(step)
        step.write_scc(Predicate("unknown", (step.at, "scc")))

    return both_of


def _reversed(act: Callable[[WordStep, int, int], None]) -> Action:
    """The same with the amount as its first operand."""

    def turned(step: WordStep) -> None:
        act(step, 2, 1)

    return turned


ON_NUMBERS: dict[str, Action] = {
    "s_mov_b32": _move, "v_mov_b32": _move, "v_accvgpr_read_b32": _move, "v_accvgpr_write_b32": _move,
    "v_accvgpr_mov_b32": _move, "v_mov_b64": _move_wide, "s_movk_i32": _move_immediate,
    "v_bfrev_b32": _reverse_bits, "s_brev_b32": _reverse_bits, "s_add_u32": _add_scalar,
    "s_add_i32": _add_scalar, "s_sub_u32": _add_scalar, "s_sub_i32": _add_scalar, "s_add_co_u32": _add_scalar,
    "s_add_co_i32": _add_scalar, "s_sub_co_u32": _add_scalar, "s_sub_co_i32": _add_scalar,
    "s_addc_u32": _add_scalar_high, "s_subb_u32": _add_scalar_high, "s_add_co_ci_u32": _add_scalar_high,
    "s_sub_co_ci_u32": _add_scalar_high, "s_add_nc_u64": _add_wide, "s_sub_nc_u64": _add_wide, "s_add_u64": _add_wide,
    "s_sub_u64": _add_wide, "s_mul_u64": _multiply_wide, "s_mul_i32": _multiply, "s_mul_hi_u32": _multiply_high,
    "s_mul_hi_i32": _multiply_high_signed, "s_addk_i32": _add_immediate, "s_mulk_i32": _add_immediate,
    **{f"s_lshl{by}_add_u32": _add_scalar_shifted for by in range(1, 5)}, "v_add_u32": _add_plain,
    "v_sub_u32": _add_plain, "v_subrev_u32": _add_plain, "v_add_nc_u32": _add_plain, "v_sub_nc_u32": _add_plain,
    "v_subrev_nc_u32": _add_plain, "v_add_i32": _add_plain, "v_sub_i32": _add_plain, "v_add_co_u32": _add_carry_out,
    "v_sub_co_u32": _add_carry_out, "v_subrev_co_u32": _add_carry_out, "v_addc_co_u32": _add_carry_in,
    "v_subb_co_u32": _add_carry_in, "v_subbrev_co_u32": _add_carry_in, "v_add_co_ci_u32": _add_carry_in,
    "v_sub_co_ci_u32": _add_carry_in, "v_subrev_co_ci_u32": _add_carry_in, "v_mul_lo_u32": _multiply,
    **dict.fromkeys(("v_add_u16", "v_sub_u16", "v_subrev_u16", "v_mul_lo_u16"), _halves),
    "v_mul_hi_u32": _multiply_high, "v_mul_hi_i32": _multiply_high_signed, "v_mul_u32_u24": _multiply24,
    "v_mul_i32_i24": lambda step: _multiply24(step, signed=True),
    "v_mul_hi_u32_u24": lambda step: _multiply24(step, high=True),
    "v_mad_u32_u24": lambda step: _multiply24(step, add=True),
    "v_mad_i32_i24": lambda step: _multiply24(step, add=True, signed=True), "v_mad_u64_u32": _multiply_add_wide,
    "v_mad_i64_i32": _multiply_add_wide, "v_mad_co_u64_u32": _multiply_add_wide,
    "v_mad_co_i64_i32": _multiply_add_wide, "v_add3_u32": _add_three, "v_add_lshl_u32": _add_shift,
    "v_lshl_add_u32": _shift_add, "v_lshl_or_b32": _shift_or, "v_lshl_add_u64": _shift_add_wide,
    "v_add_nc_u64": _add_wide, "s_lshl_b32": _sets_scc(_shift_left), "s_lshr_b32": _sets_scc(_shift_right),
    "s_ashr_i32": _sets_scc(_shift_sign), "s_lshl_b64": _shift_wide, "s_lshr_b64": _shift_wide,
    "s_ashr_i64": _shift_wide, "v_lshlrev_b32": _reversed(_shift_left), "v_lshrrev_b32": _reversed(_shift_right),
    "v_ashrrev_i32": _reversed(_shift_sign), "v_lshlrev_b64": _reversed(_shift_wide),
    "v_lshrrev_b64": _reversed(_shift_wide), "v_ashrrev_i64": _reversed(_shift_wide), "v_and_b32": _and,
    "v_or_b32": _or_words, "v_or3_b32": _or_words, "v_xor_b32": _xor, "v_and_or_b32": _and_or, "s_bfe_u32": _extract,
    "s_bfe_i32": _extract, "v_bfe_u32": _extract, "v_bfe_i32": _extract,
    **{f"{unit}_{which}_{kind}": _find_extreme for unit in "sv" for which in ("min", "max") for kind in ("u32", "i32")},
    "s_mov_b64": _move_wide, "v_cvt_f32_u32": _to_float, "v_cvt_f32_ubyte0": _byte_to_float,
    "v_rcp_iflag_f32": _reciprocal, "v_mul_f32": _multiply_float, "v_cvt_u32_f32": _from_float,
}  # fmt: skip
ON_WORDS: dict[str, Action] = {
    "and": _sets_scc(_and), "or": _sets_scc(_or_words), "xor": _sets_scc(_xor),
}  # fmt: skip
