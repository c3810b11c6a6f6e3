"""What is known of numbers at a place, as sums that aren't negative, and what follows of others.

Facts are what a caller promises, the comparisons on the way to the place, and what remainders, quotients, minima and
choices are made of.  Taking each product of unknown numbers for a number of its own, the question whether a number may
be negative is one of linear arithmetic, which z3 decides; "no" is a proof.  Products of facts are facts: of two of
them, and of one with numbers that aren't negative, where the product is one that the question or another fact has.  A
minimum, or maximum, is one of its two numbers: each case is asked about by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from math import gcd

from rota.prove.bit_vectors import EFFORT, has_no_solution
from rota.prove.footprint.accesses import Footprint
from rota.prove.footprint.polynomial import (
    Atom,
    Bounds,
    Monomial,
    Polynomial,
    bounds_of_bits,
    number,
    of_atom,
    substitute,
)
from rota.prove.footprint.words import HeldWord, Predicate, Words, negated

_MOST_PRODUCTS = 400
_MOST_ROUNDS = 4  # of numbers that are inside of others
_PARTS = frozenset({"quotient", "high", "remainder"})
_MOST_NEW = 2  # products of a product of facts that neither the question nor a fact has
_MOST_CASES = 3  # minima and maxima of which each is taken apart
PRIME = "'"  # ends the name of a number that another workgroup has
GIVEN = frozenset({"argument", "word of arguments", "workgroup", "item", "launch", "stated"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a caller promises: the bytes that pointers lead to, arguments' ranges, and sums that aren't negative."""

    extents: Mapping[str, Polynomial]
    ranges: Mapping[str, Bounds]
    relations: tuple[Polynomial, ...] = field(default=())


class NewNumbers:
    """Numbers instead of atoms, and instead of those inside of others."""

    def __init__(self, words: Words, numbers: Mapping[Atom, Polynomial]) -> None:
        self._words, self._numbers = words, numbers
        self._known: dict[Atom, Polynomial] = {}

    def apply(self, whole: Polynomial) -> Polynomial:
        return substitute(whole, self._find) if self._numbers else whole

    def _find(self, atom: Atom) -> Polynomial:
        if atom in self._numbers:
            return self._numbers[atom]
        if atom not in self._known:
            self._known[atom] = of_atom(atom)
            self._known[atom] = rebuild(self._words, atom, self.apply)
        return self._known[atom]


def rebuild(words: Words, atom: Atom, change: Callable[[Polynomial], Polynomial]) -> Polynomial:
    """A number that is made of others by arithmetic, made of changed ones."""
    inside = [each for each in atom.args if isinstance(each, Polynomial)]
    make = MADE.get(atom.op)
    if make is None or not inside:
        return of_atom(atom)
    new = [change(each) for each in inside]
    return of_atom(atom) if new == inside else make(words, new, atom)


def _last_number(atom: Atom) -> int:
    """The bits of a number, or what it is divided by."""
    return next(each for each in atom.args[1:] if isinstance(each, int))


MADE: dict[str, Callable[[Words, list[Polynomial], Atom], Polynomial]] = {
    "divided": lambda words, new, _: words.divide(*new),
    "sign": lambda words, new, _: words.sign_of(HeldWord(new[0]), -1).whole,
    "remainder": lambda words, new, atom: words.remainder(new[0], _last_number(atom)),
    "signed": lambda words, new, atom: words.narrow(new[0], _last_number(atom), signed=True),
    "narrow": lambda words, new, atom: words.narrow(new[0], _last_number(atom)),
    **dict.fromkeys(("min", "max"), lambda words, new, atom: words.extreme(atom.op, *new)),
    **dict.fromkeys(("quotient", "high"), lambda words, new, atom: words.quotient(new[0], _last_number(atom))),
}


_Multiple = tuple[Polynomial, list[Monomial]]  # a product, and the products in it that are new


def in_range(access: Footprint, is_never_negative: Callable[[Polynomial], bool]) -> tuple[Polynomial, ...]:
    """What is known of an access that its buffer's range doesn't drop, where its offset keeps 32 bits."""
    if access.records is None or not is_never_negative(number((1 << 32) - 1) - access.offset):
        return ()
    return (access.records - access.offset - number(1),)


def leaves_of(whole: Polynomial) -> Iterator[Atom]:
    """The atoms that a number is made of by arithmetic, and that aren't made of others."""
    work, seen = list(whole.atoms()), set[Atom]()
    while work:
        atom = work.pop()
        if atom in seen:
            continue
        seen.add(atom)
        inside = [each for each in atom.args if isinstance(each, Polynomial)] if atom.op in MADE else []
        if inside:
            work += [each for one in inside for each in one.atoms()]
        else:
            yield atom


class KnownSums:
    """What is known on the way to an access, and what follows of numbers that are made of others."""

    def __init__(
        self, words: Words, contract: Contract, predicates: frozenset[Predicate], more: tuple[Polynomial, ...] = (),
        changes: tuple[NewNumbers, ...] = (),
    ) -> None:  # fmt: skip
        self._words, self._contract, self.predicates = words, contract, predicates
        self._more, self._changes = more, changes
        self._resolved: dict[Atom, Polynomial] = {}
        self._answers: dict[Polynomial, bool] = {}
        self._learned: list[Polynomial] = []
        self._tighter: dict[Atom, Bounds] = {}
        self._limited: set[Polynomial] = set()

    def with_facts(self, more: tuple[Polynomial, ...]) -> KnownSums:
        return KnownSums(self._words, self._contract, self.predicates, (*self._more, *more), self._changes)

    def elsewhere(self, predicates: frozenset[Predicate], more: tuple[Polynomial, ...]) -> KnownSums:
        """What is known at another place, under the same contract."""
        return KnownSums(self._words, self._contract, predicates, more)

    def keeps(self, whole: Polynomial) -> bool:
        """True if a number fits 32 bits."""
        whole = self.resolve(whole)
        return self.is_never_negative(whole) and self.is_never_negative(number((1 << 32) - 1) - whole)

    def with_numbers(self, change: NewNumbers) -> KnownSums:
        more = tuple(map(change.apply, self._more))
        return KnownSums(self._words, self._contract, self.predicates, more, (*self._changes, change))

    # Numbers that kept their bits.

    def resolve(self, whole: Polynomial) -> Polynomial:
        """The number, where what lost no bits here is what it was before."""
        return _join_words(substitute(whole, self._resolve_atom), self._words)

    def _resolve_atom(self, atom: Atom) -> Polynomial:
        if atom not in self._resolved:
            self._resolved[atom] = of_atom(atom)  # for what is asked meanwhile
            self._resolved[atom] = self._simpler(atom)
        return self._resolved[atom]

    def _simpler(self, atom: Atom) -> Polynomial:
        whole = rebuild(self._words, atom, self.resolve)
        bounds = self._range(whole)
        if whole != of_atom(atom) and not bounds.within(*atom.bounds):  # the same number
            self._learn(whole - number(atom.bounds.low), number(atom.bounds.high) - whole)
        again = whole.atom
        return whole if again is None else self._shorten(again)

    def _shorten(self, atom: Atom) -> Polynomial:
        """What an atom is that lost no bits, is a quotient of less than its divisor, or the surely smaller number."""
        inside, other = (*atom.args, None, None)[:2]
        if not isinstance(inside, Polynomial):
            return of_atom(atom)
        if atom.op in {"min", "max"} and isinstance(other, Polynomial):
            return self._pick(atom, inside, other)
        if atom.op == "sign":
            return number(0) if self._proves(inside, number((1 << 31) - 1) - inside) else of_atom(atom)
        if atom.op in {"narrow", "signed"} and isinstance(other, int):
            low, high = bounds_of_bits(other, signed=atom.op == "signed")
            for same in dict.fromkeys((_balance(inside, 1 << other), inside)):  # adding 4294967295 subtracts 1
                if self._proves(same - number(low), number(high) - same):
                    return same
        elif isinstance(other, int) and atom.op in _PARTS and self._proves(inside, number(other - 1) - inside):
            return inside if atom.op == "remainder" else number(0)
        return of_atom(atom)

    def _pick(self, atom: Atom, one: Polynomial, other: Polynomial) -> Polynomial:
        for each, two in ((one, other), (other, one)):
            if self._proves(two - each if atom.op == "min" else each - two):
                return each
        for least in (1, 0):
            if self._proves(one - number(least), other - number(least)):
                self._learn(of_atom(atom) - number(least))
                break
        return of_atom(atom)

    def _proves(self, *rooms: Polynomial) -> bool:
        """True if none is ever negative; then they are facts from now on."""
        if not all(map(self.is_never_negative, rooms)):
            return False
        self._learn(*rooms)
        return True

    def _learn(self, *rooms: Polynomial) -> None:
        for room in rooms:
            rest = room - number(room.offset)
            if (atom := rest.atom) is not None:
                low, high = self._bounds(atom)
                self._tighter[atom] = Bounds(max(low, -room.offset), high)
            elif (atom := rest.times(-1).atom) is not None:
                low, high = self._bounds(atom)
                self._tighter[atom] = Bounds(low, min(high, room.offset))
            elif room.constant is None and room not in self._learned:
                self._learned.append(room)

    # Sums that aren't negative.

    def is_never_negative(self, room: Polynomial) -> bool:
        """True if no numbers that satisfy the facts make it negative."""
        if self._range(room).low >= 0:
            return True
        if self._range(room).high < 0 and not self._more:  # which may exclude each other
            return False
        if room not in self._answers:
            self._answers[room] = False  # for what is asked meanwhile
            self._answers[room] = self._decide(room)
        return self._answers[room]

    def _decide(self, room: Polynomial) -> bool:
        facts = list(dict.fromkeys(self._collect(room)))
        wanted = {factors for factors, _ in room.terms if len(factors) > 1}
        related = bool(self._contract.relations)
        if _is_refuted([*facts, *self._products(facts, wanted), number(-1) - room], fractions=related):
            return True
        if not related:
            return False
        facts.append(number(-1) - room)
        return self._is_refuted_by_cases(facts, self._list_choices(facts))

    def _list_choices(self, facts: Sequence[Polynomial]) -> list[Atom]:
        """Minima and maxima in facts, of which each is one of two numbers."""
        found = dict.fromkeys(atom for fact in facts for atom in fact.atoms() if atom.op in {"min", "max"})
        return list(found)[:_MOST_CASES]

    def _is_refuted_by_cases(self, facts: Sequence[Polynomial], choices: Sequence[Atom]) -> bool:
        if _is_refuted([*facts, *self._multiples(facts)], fractions=True):
            return True
        if not choices:
            return _is_refuted([*facts, *self._multiples(facts, again=True)], fractions=True) or _is_refuted(facts)
        choice, rest = choices[0], choices[1:]
        one, other = (self.resolve(each) for each in choice.args if isinstance(each, Polynomial))
        for arm, two in ((one, other), (other, one)):
            more = two - arm if choice.op == "min" else arm - two
            same = of_atom(choice) - arm
            changed = [_put(each, choice, arm) for each in facts]  # beside the facts themselves
            case = dict.fromkeys((more, same, number(0) - same, *changed, *facts))
            if not self._is_refuted_by_cases(list(case), rest):
                return False
        return True

    def _multiples(self, facts: Sequence[Polynomial], *, again: bool = False) -> list[Polynomial]:
        """Facts times numbers that aren't negative, where other facts have the products that it consists of.

        With `again`, the products that a first such step leads to count as those that facts have.
        """
        wanted = {factors for fact in facts for factors, _ in fact.terms if len(factors) > 1}
        found = list(self._list_multiples(facts, wanted))
        if again:
            wanted |= {new[0] for _, new in found if len(new) == 1}
            found = list(self._list_multiples(facts, wanted))
        closed = [product for product, new in found if not new]
        return [*closed[:_MOST_PRODUCTS], *_list_matching([each for each in found if each[1]])[:_MOST_PRODUCTS]]

    def _list_multiples(self, facts: Sequence[Polynomial], wanted: set[Monomial]) -> Iterator[_Multiple]:
        by: dict[Atom, dict[Monomial, None]] = {}
        for factors in sorted(wanted, key=lambda each: (len(each), [atom.number for atom in each])):
            for place, atom in enumerate(factors):
                rest = factors[:place] + factors[place + 1 :]
                if all(self._bounds(each).low >= 0 for each in rest):
                    by.setdefault(atom, {})[rest] = None
        for fact in facts:
            for rest in dict.fromkeys(rest for atom in fact.atoms() for rest in by.get(atom, ())):
                product = fact * self._from_least(rest)
                new = [factors for factors, _ in product.terms if len(factors) > 1 and factors not in wanted]
                if len(new) <= _MOST_NEW:
                    yield product, new

    def _from_least(self, factors: Monomial) -> Polynomial:
        """The product of numbers; of a single one, what it is more than the least that it can be."""
        product = number(1)
        for each in factors:
            product = product * of_atom(each)
        return product - number(self._bounds(factors[0]).low) if len(factors) == 1 else product

    def _range(self, whole: Polynomial) -> Bounds:
        return whole.bounds(self._bounds)

    def _bounds(self, atom: Atom) -> Bounds:
        if atom in self._tighter:
            return self._tighter[atom]
        return self._contract.ranges.get(atom.text.rstrip(PRIME), atom.bounds) if atom.op in GIVEN else atom.bounds

    def _collect(self, room: Polynomial) -> Iterator[Polynomial]:
        """The facts about the atoms of a number, and about those that these facts name."""
        seen: set[Atom] = set()
        work = list(room.atoms())
        for fact in self._read_predicates():
            work += fact.atoms()
            yield fact
        general = list(dict.fromkeys((*map(self.resolve, self._contract.relations), *self._learned)))
        for _ in range(_MOST_ROUNDS):
            new = [each for each in dict.fromkeys(work) if each not in seen]
            work = []
            for atom in new:
                seen.add(atom)
                bounds = self._bounds(atom)
                yield of_atom(atom) - number(bounds.low)
                yield number(bounds.high) - of_atom(atom)
                for fact in self._definition(atom):
                    yield fact
                    work += fact.atoms()
            for fact in [each for each in general if not seen.isdisjoint(each.atoms())]:
                general.remove(fact)
                yield fact
                work += fact.atoms()

    def _read_predicates(self) -> Iterator[Polynomial]:
        for each in self.predicates:
            for fact in inequalities_of(each, self.predicates):
                for change in self._changes:
                    fact = change.apply(fact)  # noqa: PLW2901
                yield self.resolve(fact)
        yield from map(self.resolve, self._more)

    def _definition(self, atom: Atom) -> Iterator[Polynomial]:
        """What an atom is made of, as sums that aren't negative."""
        value, args = of_atom(atom), atom.args
        inside = args[0] if args and isinstance(args[0], Polynomial) else None
        if atom.op in {"quotient", "high"} and inside is not None and isinstance(args[1], int):
            rest = self.resolve(inside) - value.times(args[1])
            yield rest
            yield number(args[1] - 1) - rest
        elif atom.op == "remainder" and inside is not None and isinstance(args[1], int):
            whole = self.resolve(inside)
            if self._range(whole).low >= 0:
                yield whole - value
                quotient = self._words.quotient(inside, args[1])
                yield whole - value - quotient.times(args[1])
                yield value + quotient.times(args[1]) - whole
        elif atom.op in {"min", "max"}:
            for each in args:
                if isinstance(each, Polynomial):
                    other = self.resolve(each)
                    yield other - value if atom.op == "min" else value - other
        elif atom.op == "divided" and inside is not None and isinstance(args[1], Polynomial):
            yield from self._quotient_facts(value, inside, args[1])
        elif atom.op == "select":
            yield from self._hull(value, [each for each in args if isinstance(each, HeldWord)])

    def _quotient_facts(self, value: Polynomial, inside: Polynomial, by: Polynomial) -> Iterator[Polynomial]:
        """What a quotient leaves is less than the divisor, if that isn't zero."""
        inside, by = self.resolve(inside), self.resolve(by)
        if not self._proves(by - number(1)):
            return
        rest = inside - value * by
        yield rest
        yield by - rest - number(1)
        yield inside - value
        if value not in self._limited:  # is it less than one of the numbers that the caller's relations are about?
            self._limited.add(value)
            for limit in self._list_limits():
                self._proves(limit - inside - number(1))
            for count in self._list_counts():
                self._proves(count - value - number(1))

    def _list_limits(self) -> Iterator[Polynomial]:
        """What the caller promises that a workgroup's number is below; a number may be a permutation of it."""
        for fact in map(self.resolve, self._contract.relations):
            for factors, factor in fact.terms if any(len(each) > 1 for each, _ in fact.terms) else ():
                if factor == -1 and len(factors) == 1 and factors[0].op == "workgroup":
                    yield fact + of_atom(factors[0]) + number(1)

    def _list_counts(self) -> Iterator[Polynomial]:
        """Quotients of arguments in what the caller promises, such as how many tiles there are."""
        terms = (factors for fact in self._contract.relations for factors, _ in self.resolve(fact).terms)
        atoms = (atom for factors in terms if len(factors) > 1 for atom in factors)
        yield from (of_atom(atom) for atom in dict.fromkeys(atoms) if atom.op == "quotient")

    def _hull(self, value: Polynomial, arms: Sequence[HeldWord]) -> Iterator[Polynomial]:
        """A choice lies between its arms, if one of them is always the larger one."""
        numbers = [self.resolve(self._words.value(each)) for each in arms]
        if len(numbers) == 2:
            for one, other in (numbers, numbers[::-1]):
                if self._range(other - one).low >= 0:
                    yield value - one
                    yield other - value

    def _products(self, facts: Sequence[Polynomial], wanted: set[Monomial]) -> Iterator[Polynomial]:
        """Products of two facts in which a product is that the question has, or that another one of these has."""
        made = 0
        for one, other in combinations_with_replacement([each for each in facts if _is_linear(each)], 2):
            product = one * other
            if any(factors in wanted for factors, _ in product.terms):
                made += 1
                yield product
            if made >= _MOST_PRODUCTS:
                return


def _is_refuted(sums: Sequence[Polynomial], *, fractions: bool = False) -> bool:
    """True if no whole numbers satisfy all sums; of fractions z3 is asked first, which takes a tenth of the time."""
    given = [_as_sum(_divide_all(each)) for each in dict.fromkeys(sums)]
    return has_no_solution(given, EFFORT, fractions=True) or (not fractions and has_no_solution(given, EFFORT))


def _divide_all(whole: Polynomial) -> Polynomial:
    """A sum that isn't negative, by what all its factors are multiples of; of the constant, what is left is lost."""
    common = gcd(*(factor for factors, factor in whole.terms if factors))
    if common < 2:
        return whole
    return Polynomial(tuple((factors, factor // common) for factors, factor in whole.terms if factor // common))


def _list_matching(products: Sequence[_Multiple]) -> list[Polynomial]:
    """Products of which several have what is new in each: what only one has, tells nothing."""
    kept, before = list(products), -1
    while len(kept) != before:
        before = len(kept)
        count = Counter(factors for _, new in kept for factors in new)
        kept = [each for each in kept if all(count[factors] > 1 for factors in each[1])]
    return [product for product, _ in kept]


def _join_words(whole: Polynomial, words: Words) -> Polynomial:
    """The number where low and high words of another one, in the same products, are that one."""
    highs = [each for each in dict.fromkeys(whole.atoms()) if each.op == "high"]
    for low in dict.fromkeys(each for each in whole.atoms() if each.op == "narrow" and each.args[1] == 32):
        for high in highs:
            one, other = low.args[0], high.args[0]
            if isinstance(one, Polynomial) and isinstance(other, Polynomial) and words.congruent(one, other):
                joined = _put(whole, low, other - of_atom(high).times(1 << 32))
                whole = whole if high in joined.atoms() else joined
    return whole


def _put(whole: Polynomial, atom: Atom, instead: Polynomial) -> Polynomial:
    return substitute(whole, lambda each: instead if each is atom else of_atom(each))


def _balance(whole: Polynomial, wrap: int) -> Polynomial:
    """The number with factors that are as small as they can be and leave the same low bits."""
    half = wrap >> 1
    terms = ((factors, (factor + half) % wrap - half) for factors, factor in whole.terms)
    return Polynomial(tuple((factors, factor) for factors, factor in terms if factor))


def _is_linear(whole: Polynomial) -> bool:
    return all(len(factors) <= 1 for factors, _ in whole.terms)


def _as_sum(whole: Polynomial) -> tuple[dict[Monomial, int], int]:
    return {factors: factor for factors, factor in whole.terms if factors}, whole.offset


def inequalities_of(predicate: Predicate, known: frozenset[Predicate] = frozenset()) -> Iterator[Polynomial]:
    """The sums that aren't negative where a predicate holds, and others that are known."""
    inside = predicate.args[0] if predicate.op == "not" else None
    if isinstance(inside, Predicate):
        yield from _inequalities_of_not(inside, known)
    elif predicate.op == "and":
        for each in predicate.parts:
            yield from inequalities_of(each, known)
    elif (sides := _sides(predicate)) is not None:
        one, other = sides
        if predicate.op in {"lt", "le", "eq"}:
            yield other - one - number(int(predicate.op == "lt"))
        if predicate.op == "eq":
            yield one - other


def _inequalities_of_not(predicate: Predicate, known: frozenset[Predicate]) -> Iterator[Polynomial]:
    sides = _sides(predicate)
    if sides is not None and predicate.op == "eq":
        for room in (sides[0] - sides[1], sides[1] - sides[0]):
            if room.bounds().low >= 0:
                yield room - number(1)
    elif sides is not None and predicate.op in {"lt", "le"}:
        yield sides[0] - sides[1] - number(int(predicate.op == "le"))
    elif predicate.op == "or":
        for each in predicate.args:
            if isinstance(each, Predicate):
                yield from inequalities_of(negated(each), known)
    elif predicate.op == "and" and len(rest := predicate.parts - known) == 1:  # the other parts hold
        yield from inequalities_of(negated(next(iter(rest))), known)


def _sides(predicate: Predicate) -> tuple[Polynomial, Polynomial] | None:
    one, other = predicate.args[:2] if len(predicate.args) > 1 else (None, None)
    return (one, other) if isinstance(one, Polynomial) and isinstance(other, Polynomial) else None
