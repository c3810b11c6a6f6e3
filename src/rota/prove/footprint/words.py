"""What registers hold: 32 bits of a whole number, or one bit for each lane.

A word is named by the number whose bits it has, without a loss: the low word of a product and its high word, computed
by two instructions, are known to be parts of one product. Where an instruction then uses 32 bits as a number, although
the number may be larger, bits are dropped, and an atom `narrow` says which.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import count
from typing import ClassVar, Self
from weakref import WeakValueDictionary

from rota.prove.footprint.polynomial import (
    ZERO,
    Atom,
    Atoms,
    Bounds,
    Polynomial,
    bounds_of_bits,
    number,
    of_atom,
    substitute,
)

WORD = 1 << 32
ANY_WORD = bounds_of_bits(32)


class Predicate:
    """A bit for each lane, or one for all: a comparison, a carry, or a combination of others.

    Equal conditions are one object, so that comparing large ones costs nothing.
    """

    __slots__ = ("__weakref__", "args", "number", "op", "parts")
    _known: ClassVar[WeakValueDictionary[Hashable, Self]] = WeakValueDictionary()
    _count: ClassVar[Iterator[int]] = count()

    op: str
    args: tuple[Hashable, ...]
    number: int
    parts: frozenset[Predicate]
    """Those that all hold where it does."""

    def __new__(cls, op: str, args: tuple[Hashable, ...] = ()) -> Self:
        found = cls._known.get((op, args))
        if found is None:
            found = super().__new__(cls)
            found.op, found.args, found.number = op, args, next(cls._count)
            if op == "and":
                found.parts = frozenset[Predicate]().union(
                    *(each.parts for each in args if isinstance(each, Predicate))
                )
            else:
                found.parts = frozenset() if op == "true" else frozenset({found})
            cls._known[op, args] = found
        return found


TRUE, FALSE = Predicate("true"), Predicate("false")


def both(one: Predicate, other: Predicate) -> Predicate:
    parts = one.parts | other.parts
    if FALSE in parts or any(negated(each) in parts for each in parts):
        return FALSE
    if parts in (one.parts, other.parts):
        return one if parts == one.parts else other
    return Predicate("and", (one, other))


def either(one: Predicate, other: Predicate) -> Predicate:
    if other == FALSE or other.parts >= one.parts:
        return one
    if one == FALSE or one.parts >= other.parts:
        return other
    split_one, split_other = one.parts - other.parts, other.parts - one.parts
    if len(split_one) == 1 and {negated(each) for each in split_one} == split_other:
        return _all_of(one.parts & other.parts)  # a branch and its other way meet again
    return Predicate("or", (one, other))


def _all_of(parts: frozenset[Predicate]) -> Predicate:
    return reduce(both, sorted(parts, key=lambda each: each.number), TRUE)


def negated(condition: Predicate) -> Predicate:
    inside = condition.args[0] if condition.op == "not" else None
    if isinstance(inside, Predicate):
        return inside
    if condition in (TRUE, FALSE):
        return FALSE if condition == TRUE else TRUE
    return Predicate("not", (condition,))


def implies(one: Predicate, other: Predicate) -> bool:
    return one == FALSE or other.parts <= one.parts


def differs_by_lane(predicate: Predicate) -> bool:
    """True unless it is surely the same in all lanes."""
    if predicate.op in {"lanes", "unknown", "met", "carried"}:
        return True
    return any(
        differs_by_lane(each) if isinstance(each, Predicate) else isinstance(each, Polynomial) and each.by_lane
        for each in predicate.args
    )


@dataclass(frozen=True, slots=True)
class HeldWord:
    """32 bits of a whole number: the low ones, or with `part` 1 the next ones. `at` is the instruction that made it."""

    whole: Polynomial
    part: int = 0
    at: int = -1

    @property
    def constant(self) -> int | None:
        """Its bits, if nothing in it is unknown."""
        whole = self.whole.constant
        return None if whole is None else whole // WORD**self.part % WORD

    def same(self, other: HeldWord) -> bool:
        return self.whole == other.whole and self.part == other.part


@dataclass(frozen=True, slots=True)
class PredicateHalf:
    """32 lanes of a condition: those from 0 on, or from 32 on."""

    condition: Predicate
    which: int


Held = HeldWord | PredicateHalf | Predicate


class Words:
    """The arithmetic of words, over the atoms of one kernel."""

    def __init__(self) -> None:
        self.atoms = Atoms()

    def unknown(self, text: str, *key: Hashable, bounds: Bounds = ANY_WORD, by_lane: bool = True) -> HeldWord:
        return HeldWord(self.atoms.make("unknown", (text, *key), text, bounds, by_lane=by_lane))

    # A word as a number.

    def value(self, word: HeldWord) -> Polynomial:
        """The number that its 32 bits are without a sign."""
        if not word.part:
            return self.narrow(word.whole, 32, at=word.at)
        return self.narrow(self.quotient(word.whole, WORD), 32, at=word.at)

    def signed_value(self, word: HeldWord) -> Polynomial:
        return self.narrow(self.value(word) if word.part else word.whole, 32, at=word.at, signed=True)

    def narrow(self, whole: Polynomial, bits: int, *, at: int = -1, signed: bool = False) -> Polynomial:
        """The number that is left of the low bits."""
        if (known := whole.constant) is not None:
            known %= 1 << bits
            return number(known - (1 << bits) if signed and known >> bits - 1 else known)
        fits = bounds_of_bits(bits, signed=signed)
        if whole.bounds().within(*fits):
            return whole
        whole = self.drop_multiples(whole, 1 << bits)
        if whole.bounds().within(*fits):
            return whole
        op = "signed" if signed else "narrow"
        text = f"{'i' if signed else 'u'}{bits}({whole})"
        kept = whole if bits >= 32 else None
        return self.atoms.make(
            op, (whole, bits, at), text, fits, by_lane=whole.by_lane, low=kept
        )  # fmt: skip

    def drop_multiples(self, whole: Polynomial, of: int) -> Polynomial:
        """The number without terms that are surely multiples; a number of few bits that were dropped before stays."""
        return Polynomial(tuple(each for each in whole.terms if each[1] % of))

    def quotient(self, whole: Polynomial, by: int) -> Polynomial:
        """The number divided by a power of two, rounded down."""
        multiple, rest = whole.split(by)
        if rest.bounds().within(0, by - 1):
            return multiple.divided(by)
        low, high = whole.bounds()
        text = f"({whole})/{by}"
        op = "high" if by == WORD else "quotient"
        return self.atoms.make(op, (whole, by), text, Bounds(low // by, high // by), by_lane=whole.by_lane)

    def remainder(self, whole: Polynomial, by: int) -> Polynomial:
        """What is left by a power of two, on purpose: a mask of low bits."""
        rest = whole.split(by)[1]
        if rest.bounds().within(0, by - 1):
            return rest
        kept = rest if by == WORD else None
        text = f"({rest})%{by}"
        return self.atoms.make("remainder", (rest, by), text, Bounds(0, by - 1), by_lane=rest.by_lane, low=kept)

    def extreme(self, op: str, one: Polynomial, other: Polynomial) -> Polynomial:
        """The smaller one of two numbers, or with `max` the larger one."""
        if one == other:
            return one
        bounds, pick = (one.bounds(), other.bounds()), min if op == "min" else max
        hull = Bounds(pick(each.low for each in bounds), pick(each.high for each in bounds))
        by_lane = one.by_lane or other.by_lane
        return self.atoms.make(op, (one, other), f"{op}({one}, {other})", hull, by_lane=by_lane)

    # Two words as a number.

    def join(self, low: HeldWord, high: HeldWord) -> Polynomial:
        """The number of 64 bits that two words are."""
        found = None if low.part else self._join_to_high(low, high)
        if found is None and not high.part:
            found = self._join_made(low, high)
        return self.value(low) + self.value(high).times(WORD) if found is None else found

    def _join_to_high(self, low: HeldWord, high: HeldWord) -> Polynomial | None:
        """A number, of which one word is the low one and the other one what is above."""
        above = self._high_of(high)
        if above is None or self.congruent(low.whole, above):
            return above
        if self.congruent(restore(low.whole), above):
            return low.whole  # bits that its factors lost are said by them
        rest = low.whole - above
        return above + self._lose_carry(above, rest) if len(rest.terms) < len(low.whole.terms) else None

    def _join_made(self, low: HeldWord, high: HeldWord) -> Polynomial | None:
        """A number whose high word was made for its low one: by its sign, by a choice, or as an address's stride."""
        if (atom := high.whole.atom) is not None:
            if atom.op == "sign" and isinstance(atom.args[0], Polynomial) and self._same_low(low, atom.args[0]):
                return self.signed_value(low)
            return self._join_chosen(low, atom)
        factor = high.whole.offset
        if not factor or high.whole.constant is not None:
            return None
        return self.join(low, HeldWord(high.whole - number(factor), 0, high.at)) + number(factor * WORD)

    def _high_of(self, high: HeldWord) -> Polynomial | None:
        """The number whose bits from 32 on a word holds, or the lowest of them."""
        if high.part == 1:
            return high.whole
        atom = high.whole.atom
        whole = atom.args[0] if atom is not None and atom.op in {"field", "high"} else None
        return whole if isinstance(whole, Polynomial) else None

    def _lose_carry(self, above: Polynomial, rest: Polynomial) -> Polynomial:
        """What is added to the low word alone: where the two carry, 2**32 is missing."""
        bounds = rest.bounds()
        text = f"({rest} without carry)"
        bounds = Bounds(bounds.low - WORD, bounds.high)
        by_lane = rest.by_lane or above.by_lane
        return self.atoms.make("lost carry", (above, rest), text, bounds, by_lane=by_lane, low=rest)

    def _join_chosen(self, low: HeldWord, high: Atom) -> Polynomial | None:
        """Two words that one choice gives, or one loop carries."""
        lower = None if low.part else low.whole.atom
        if lower is None or lower.op != high.op or lower.op not in {"select", "carried"}:
            return None
        if lower.args[0] != high.args[0]:
            return None
        text = lower.text if lower.op == "carried" else f"{lower.text}, 64 bits"
        wide = bounds_of_bits(64)
        by_lane = lower.by_lane or high.by_lane
        return self.atoms.make(f"wide {lower.op}", (lower, high), text, wide, by_lane=by_lane, low=of_atom(lower))

    def _same_low(self, low: HeldWord, whole: Polynomial) -> bool:
        return not low.part and self.congruent(low.whole, whole)

    def congruent(self, one: Polynomial, other: Polynomial) -> bool:
        """True if two numbers have the same low 32 bits, as far as their terms show it."""
        return one == other or self._low_terms(one) == self._low_terms(other)

    def _low_terms(self, whole: Polynomial) -> Polynomial:
        while True:
            lower = substitute(whole, lambda atom: of_atom(atom) if atom.low is None else atom.low)
            lower = Polynomial(tuple((each, factor % WORD) for each, factor in lower.terms if factor % WORD))
            if lower == whole:
                return lower
            whole = lower

    # Sums of two words with a carry between them.

    def add(self, one: HeldWord, other: HeldWord, at: int, sign: int = 1) -> HeldWord:
        highs = [self._high_of(each) for each in (one, other)]
        if sign > 0 and highs[0] is not None and highs[1] is not None:
            if (total := self._add_above_low(one, other)) is not None:
                return HeldWord(total, 1, at)
            # A carry into them may be added later.
            by_lane = any(each.by_lane for each in highs if each is not None)
            text = f"high words of {highs[0]} and {highs[1]}"
            return HeldWord(self.atoms.make("high sum", tuple(highs), text, ANY_WORD, by_lane=by_lane), 0, at)
        if one.part != other.part and (sign > 0 or one.part):  # what is added to a high word counts 2**32 times
            above, below = (one, other) if one.part else (other, one)
            added = restore(below.whole, bits=32)  # 2**32 times what 32 bits lose is nothing of 64 bits
            return HeldWord(self._restore_low(above.whole + added.times(sign * WORD)), 1, at)
        if one.part or other.part:
            return HeldWord(self.atoms.limit(self.value(one) + self.value(other).times(sign)), 0, at)
        return HeldWord(self.atoms.limit(one.whole + other.whole.times(sign)), 0, at)

    def _add_above_low(self, one: HeldWord, other: HeldWord) -> Polynomial | None:
        """The number of two high words, if the low word of one was added to the number of the other one before."""
        for above, below in ((one, other), (other, one)):
            total = above.whole + self.value(below).times(WORD)
            if above.part == 1 and (whole := self._restore_low(total)) != total:
                return whole
        return None

    def _restore_low(self, whole: Polynomial) -> Polynomial:
        """The same number, where products of a low word and of the high one above it are products of both."""
        highs = [(each, inside) for each in whole.atoms() if (inside := self._with_low(each)) is not None]
        changed: dict[Atom, Polynomial] = {}
        above = set[Atom]()
        for each in whole.atoms() if highs else ():
            low = each.args[0] if each.op == "narrow" and each.args[1] == 32 else None
            for high, inside in highs:
                if isinstance(low, Polynomial) and self.congruent(low, inside):
                    changed[each] = inside - of_atom(high).times(WORD)
                    above.add(high)
        found = substitute(whole, lambda atom: changed.get(atom, of_atom(atom)))
        return found if changed and not above & set(found.atoms()) else whole

    def _with_low(self, high: Atom) -> Polynomial | None:
        """The number whose bits from 32 on an atom is; of a masked high word, what the mask leaves of the number."""
        inside, bits = high.args if high.op == "field" else (None, None)
        return (
            self.narrow(inside, 32 + bits) if isinstance(inside, Polynomial) and isinstance(bits, int) else _below(high)
        )

    def carry(self, one: HeldWord, other: HeldWord, sign: int = 1) -> Predicate:
        return Predicate("carry", (one.whole, other.whole, one.part, other.part, sign))

    def add_high(self, one: HeldWord, other: HeldWord, carry: Predicate | None, at: int, sign: int = 1) -> HeldWord:
        """The high word of a sum whose low word left a carry."""
        if carry is None or carry.op != "carry" or carry.args[2:] != (0, 0, sign):
            return self.unknown(f"word@{at}", at)
        lows = [HeldWord(each, 0, at) for each in carry.args[:2] if isinstance(each, Polynomial)]
        if (total := self._add_to_both(one, other, lows)) is not None:
            return HeldWord(total, 1, at)
        highs = [one, other]
        straight = sum(self._belong(low, high) for low, high in zip(lows, highs, strict=True))
        crossed = sum(self._belong(low, high) for low, high in zip(lows, reversed(highs), strict=True))
        if sign > 0 and crossed > straight:
            highs.reverse()
        parts = [self.join(low, high) for low, high in zip(lows, highs, strict=True)]
        return HeldWord(self.atoms.limit(parts[0] + parts[1].times(sign)), 1, at)

    def _add_to_both(self, one: HeldWord, other: HeldWord, lows: list[HeldWord]) -> Polynomial | None:
        """The sum of two numbers whose high words were added before the carry of the low ones."""
        both_high = one.whole.atom or other.whole.atom
        if both_high is None or both_high.op != "high sum" or ZERO not in (one.whole, other.whole):
            return None
        found = [each for each in both_high.args if isinstance(each, Polynomial)]
        for order in (found, found[::-1]):
            if all(self.congruent(low.whole, each) for low, each in zip(lows, order, strict=True)):
                return found[0] + found[1]
        return None

    def _belong(self, low: HeldWord, high: HeldWord) -> bool:
        if high.part:
            return self.congruent(low.whole, high.whole)
        atom, below = high.whole.atom, low.whole.atom
        if atom is None:
            return False
        if atom.op in {"sign", "field"} and isinstance(atom.args[0], Polynomial):
            return self.congruent(low.whole, atom.args[0])
        return below is not None and below.op == atom.op and below.args[0] == atom.args[0]

    def sign_of(self, word: HeldWord, at: int) -> HeldWord:
        """The word that a sign fills."""
        whole = self.value(word) if word.part else word.whole
        if whole.bounds().within(0, (1 << 31) - 1):
            return HeldWord(ZERO, 0, at)
        return HeldWord(self.atoms.make("sign", (whole,), f"sign of {whole}", ANY_WORD, by_lane=whole.by_lane), 0, at)

    def mask_high(self, word: HeldWord, bits: int, at: int) -> HeldWord:
        """The low bits of a high word, such as those of an address of 48 bits."""
        key = (word.whole, bits)
        text = f"bits 32 to {31 + bits} of {word.whole}"
        by_lane = word.whole.by_lane
        return HeldWord(self.atoms.make("field", key, text, bounds_of_bits(bits), by_lane=by_lane), 0, at)

    def choose(self, key: Predicate | tuple[str, int], arms: tuple[HeldWord, ...], at: int) -> HeldWord:
        """One of several words; by a condition, the first where it holds and the second elsewhere."""
        if all(each.same(arms[0]) for each in arms):
            return arms[0]
        if isinstance(key, Predicate):
            if (division := self._find_division(key, arms)) is not None:
                return HeldWord(self.divide(*division), 0, at)
            if (division := self._find_rest(key, arms)) is not None:
                one, by = division
                return HeldWord(one - self.divide(one, by) * by, 0, at)
        bounds = [self._bounds_of(each) for each in arms]
        hull = Bounds(min(each.low for each in bounds), max(each.high for each in bounds))
        by_lane = isinstance(key, Predicate) or any(each.whole.by_lane for each in arms)
        return HeldWord(self.atoms.make("select", (key, *arms), f"choice@{at}", hull, by_lane=by_lane), 0, at)

    # Division by a number that isn't constant.
    #
    # LLVM computes x / d of 32 bits as (AMDGPUCodeGenPrepare, expandDivRem32): z is the reciprocal of d in fp32 times
    # 2**32 - 512, as an integer; one step of Newton's method, z += high(z * u32(-d * z)); q = high(x * z) and
    # r = x - q * d; and twice, if r >= d, q + 1 and r - d instead.  For every d from 1 on, q is then x / d, rounded
    # down, and r what is left.

    def divide(self, one: Polynomial, by: Polynomial) -> Polynomial:
        """A number divided by another one, rounded down; any word if the other one is zero."""
        if (known := by.constant) is not None and known > 0 and known & known - 1 == 0:
            return self.quotient(one, known)
        whole, least = one.bounds(), by.bounds().low
        bounds = Bounds(0, whole.high // least) if least > 0 and whole.within(0, WORD - 1) else ANY_WORD
        text = f"({one})/({by})"
        return self.atoms.make("divided", (one, by), text, bounds, by_lane=one.by_lane or by.by_lane)

    def _find_division(self, key: Predicate, arms: tuple[HeldWord, ...]) -> tuple[Polynomial, Polynomial] | None:
        """What is divided and by what, if this choice is the second correction of the quotient."""
        test = _find_at_least(key)
        chosen, rest = arms[1].whole.atom, None if test is None else test[1].atom
        if test is None or chosen is None or rest is None or arms[1].part or arms[0].part:
            return None
        if arms[0].whole - arms[1].whole != number(1):
            return None
        found = self._find_first_correction(chosen, rest)
        return found if found is not None and self.congruent(test[0], found[1]) else None

    def _find_first_correction(self, chosen: Atom, rest: Atom) -> tuple[Polynomial, Polynomial] | None:
        """The same of the quotient and the rest before the second correction."""
        if {chosen.op, rest.op} != {"select"} or chosen.args[0] != rest.args[0]:
            return None
        key, more, same = chosen.args
        less, kept = rest.args[1:]
        test = _find_at_least(key) if isinstance(key, Predicate) else None
        words = [each for each in (more, same, less, kept) if isinstance(each, HeldWord)]
        if test is None or [each.part for each in words] != [1, 1, 0, 0]:
            return None
        more, same, less, kept = words
        found = self._find_estimate(same.whole)
        if found is None or more.whole - same.whole != number(WORD):
            return None
        one, by = found
        right = (
            self.congruent(kept.whole, one - self.quotient(same.whole, WORD) * by)
            and self.congruent(test[0], by)
            and self._corrects(test, (less, kept))
        )
        return found if right else None

    def _find_rest(self, key: Predicate, arms: tuple[HeldWord, ...]) -> tuple[Polynomial, Polynomial] | None:
        """The same if this choice is the second correction of the rest, whose quotient is dropped."""
        test, kept = _find_at_least(key), arms[1].whole.atom
        if test is None or kept is None or kept.op != "select" or not self._corrects(test, arms):
            return None
        first, words = kept.args[0], tuple(each for each in kept.args[1:] if isinstance(each, HeldWord))
        before = _find_at_least(first) if isinstance(first, Predicate) else None
        if before is None or not self._corrects(before, words) or not self.congruent(before[0], test[0]):
            return None
        for quotient in (each for each in words[1].whole.atoms() if each.op == "high" and each.args[1] == WORD):
            inside = quotient.args[0]
            found = self._find_estimate(inside) if isinstance(inside, Polynomial) else None
            if found is not None and self.congruent(found[1], test[0]):
                one, by = found
                return found if self.congruent(words[1].whole, one - of_atom(quotient) * by) else None
        return None

    def _corrects(self, test: tuple[Polynomial, Polynomial], arms: tuple[HeldWord, ...]) -> bool:
        """True if a choice subtracts a number from what is at least that."""
        by, rest = test
        less, kept = arms
        right = self.congruent(rest, kept.whole) and self.congruent(less.whole, kept.whole - by)
        return right and not less.part and not kept.part

    def _find_estimate(self, product: Polynomial) -> tuple[Polynomial, Polynomial] | None:
        """What a product multiplies with the reciprocal of a number, and that number."""
        for factor in product.terms[0][0] if product.terms else ():
            inside = factor.args[0] if factor.op == "narrow" and factor.args[1] == 32 else None
            by = self._find_reciprocal(inside) if isinstance(inside, Polynomial) else None
            one = _divide_out(product, factor)
            if by is not None and one is not None:
                return one, by
        return None

    def _find_reciprocal(self, whole: Polynomial) -> Polynomial | None:
        """The number whose reciprocal it is, after a step of Newton's method: z + high(z * u32(-d * z))."""
        better = whole.atom
        inside = better.args[0] if better is not None and better.op == "high" else None
        if not isinstance(inside, Polynomial):
            return None
        first = next((each for each in inside.atoms() if each.op == ESTIMATE), None)
        rest = None if first is None else _divide_out(inside, first)
        lost = None if rest is None else (rest - number(WORD)).atom
        if first is None or lost is None or lost.op != "narrow" or lost.args[1] != 32:
            return None
        by, wrapped = first.args[0], lost.args[0]
        if not isinstance(by, Polynomial) or not isinstance(wrapped, Polynomial):
            return None
        return by if self.congruent(wrapped, by.times(-1) * of_atom(first)) else None

    def _bounds_of(self, word: HeldWord) -> Bounds:
        bounds = word.whole.bounds()
        return bounds if not word.part and bounds.within(0, WORD - 1) else ANY_WORD


ESTIMATE = "reciprocal of 32 bits"  # 2**32 - 512 times the reciprocal in fp32 of a number, as an integer


def _find_at_least(key: Predicate) -> tuple[Polynomial, Polynomial] | None:
    """Of a condition that the second number is at least the first, both."""
    one, other = key.args if key.op == "le" else (None, None)
    return (one, other) if isinstance(one, Polynomial) and isinstance(other, Polynomial) else None


def _divide_out(product: Polynomial, factor: Atom) -> Polynomial | None:
    """The other factor of a product, if each of its terms has this one once."""
    terms = []
    for factors, times in product.terms:
        if factors.count(factor) != 1:
            return None
        terms.append((tuple(each for each in factors if each is not factor), times))
    return sum((Polynomial((each,)) for each in terms), ZERO)


def _below(atom: Atom) -> Polynomial | None:
    """The number whose high word an atom is."""
    inside = atom.args[0] if atom.op in {"narrow", "high"} else None
    if not isinstance(inside, Polynomial):
        return None
    if atom.op == "high":
        return inside
    above = inside.atom
    return _below(above) if above is not None and above.op == "high" else None


def restore(whole: Polynomial, *, bits: int = 0) -> Polynomial:
    """The number that would be there if its factors had kept their bits; with `bits`, only those that have so many."""

    def find(atom: Atom) -> Polynomial:
        inside = atom.args[0] if atom.op in {"narrow", "signed"} and bits in {0, atom.args[1]} else None
        return inside if isinstance(inside, Polynomial) else of_atom(atom)

    return substitute(whole, find)


def constant(value: int) -> HeldWord:
    return HeldWord(number(value % WORD))
