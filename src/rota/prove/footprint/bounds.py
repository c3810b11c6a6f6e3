"""Whether each access lies within the bytes that its pointer leads to.

An extent is a polynomial of arguments.  What is known of an access (the comparisons on the way to it and in EXEC, the
bounds of what the launch and the caller give, what remainders, minima and choices are made of) are sums that aren't
negative; so are products of two of them.  Taking each product of unknown numbers for a number of its own, the question
whether the access may lie outside is one of linear arithmetic, which z3 decides; "no" is a proof.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from rota.errors import Finding, IsaError, Severity
from rota.prove.bit_vectors import has_no_solution
from rota.prove.causes import LEVEL, UNDECIDED, EvidenceLevel
from rota.prove.footprint.accesses import Footprint, KernelAccesses
from rota.prove.footprint.polynomial import (
    Atom,
    Bounds,
    Monomial,
    Polynomial,
    atoms_inside,
    bounds_of_bits,
    number,
    of_atom,
    substitute,
)
from rota.prove.footprint.words import HeldWord, Predicate, Words, negated

_MOST_PRODUCTS = 400
_MOST_ROUNDS = 4  # of numbers that are inside of others


class Reach(enum.Enum):
    """What was shown of an access."""

    INSIDE = "inside"
    UNDECIDED = "undecided"
    NO_EXTENT = "no extent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """An access and what was shown of it; `side` is the end that isn't proved."""

    access: Footprint
    reach: Reach
    side: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a caller promises: how many bytes pointers lead to, as polynomials of arguments, and arguments' ranges."""

    extents: Mapping[str, Polynomial]
    ranges: Mapping[str, Bounds]


_TERM = re.compile(r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_.][\w.]*))\s*(?P<then>[*+]|$)")
_RANGE = re.compile(r"(?P<name>[\w.]+)=(?P<low>\d+)\.\.(?P<high>\d+)")


def parse_contract(kernel: KernelAccesses, extents: Sequence[str], ranges: Sequence[str]) -> Contract:
    """What is stated as `A=M*K*2` and `n=1..65536`."""
    found = {}
    for text in ranges:
        said = _RANGE.fullmatch(text.replace(" ", ""))
        if said is None:
            raise IsaError.of("I107", f"{text!r} is no range", fixes=("write NAME=LOW..HIGH: n=1..65536",))
        found[said["name"]] = Bounds(int(said["low"]), int(said["high"]))
    stated = {}
    for text in extents:
        name, equals, formula = text.partition("=")
        if not equals:
            raise IsaError.of("I107", f"{text!r} is no extent", fixes=("write POINTER=BYTES: A=M*K*2",))
        stated[name.strip()] = parse_extent(formula, kernel)
    return Contract(extents=stated, ranges=found)


def parse_extent(text: str, kernel: KernelAccesses) -> Polynomial:
    """A sum of products of arguments and numbers: `M*K*2`, `4*n + 64`."""
    total, product, at = number(0), number(1), 0
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None or (not found["then"] and found.end() < len(text)):
            raise IsaError.of("I107", f"{text!r} is no extent: a sum of products of arguments and numbers")
        value = number(int(found["number"])) if found["number"] else argument_of(kernel, found["name"])
        product, at = product * value, found.end()
        if found["then"] != "*":
            total, product = total + product, number(1)
    return total


def argument_of(kernel: KernelAccesses, name: str) -> Polynomial:
    for op in ("argument", "word of arguments"):
        for atom in kernel.words.atoms.every():
            if atom.op == op and atom.text == name:
                return of_atom(atom)
    for each in kernel.arguments:  # which the kernel doesn't read
        if each.name == name:
            return kernel.words.atoms.make("argument", (name,), name, bounds_of_bits(8 * each.size))
    names = ", ".join(each.name for each in kernel.arguments)
    raise IsaError.of("I107", f"the kernel has no argument {name!r}", fixes=(f"it has: {names}",))


def judge_bounds(kernel: KernelAccesses, contract: Contract) -> tuple[Judged, ...]:
    """Each access of a pointer whose extent is stated, or that it has none."""
    judge = _Judge(kernel, contract)
    return tuple(judge.place(each) for each in kernel.footprints if not each.is_argument)


class _Judge:
    def __init__(self, kernel: KernelAccesses, contract: Contract) -> None:
        self._words, self._contract, self._flow = kernel.words, contract, kernel.flow
        self._proved: dict[object, bool] = {}
        self._rounds = _Rounds(kernel, KnownSums(kernel.words, contract, frozenset()))

    def place(self, access: Footprint) -> Judged:
        pointer = self._pointer_of(access)
        if pointer is None:
            return Judged(access=access, reach=Reach.NO_EXTENT)
        facts = KnownSums(self._words, self._contract, access.active.parts | access.known)
        start, extent = access.base - pointer + access.offset, self._contract.extents[access.pointer]
        for side, room in (("before its beginning", start), ("after its end", extent - start - number(access.size))):
            key = (room, facts.predicates)
            if key not in self._proved:
                # What lanes carry is known of those that go through the loop.
                loops = [
                    first for first in _list_loops(room) if self._flow.headers[first].parts <= facts.predicates
                ]  # fmt: skip
                self._proved[key] = self._is_inside(facts, room, loops)
            if not self._proved[key]:
                return Judged(access=access, reach=Reach.UNDECIDED, side=side)
        return Judged(access=access, reach=Reach.INSIDE)

    def _is_inside(self, facts: KnownSums, room: Polynomial, loops: Sequence[int]) -> bool:
        """In the first round of each loop, and in every later one."""
        if not loops:
            return facts.is_never_negative(facts.resolve(room))
        first, rest = loops[0], loops[1:]
        begun = self._rounds.begin(first)
        if not self._is_inside(facts.with_numbers(begun), begun.apply(room), rest):
            return False
        counted = self._rounds.count(first)
        later = facts.with_facts(self._rounds.go_on(first)).with_numbers(counted)
        return self._is_inside(later, counted.apply(room), rest)

    def _pointer_of(self, access: Footprint) -> Polynomial | None:
        if access.pointer not in self._contract.extents:
            return None
        found = self._words.atoms.find("argument", (access.pointer,))
        return None if found is None else of_atom(found)


class NewNumbers:
    """Numbers instead of atoms."""

    def __init__(self, numbers: Mapping[Atom, Polynomial]) -> None:
        self._numbers = numbers

    def apply(self, whole: Polynomial) -> Polynomial:
        return substitute(whole, lambda atom: self._numbers.get(atom, of_atom(atom)))


class _Rounds:
    """What a loop carries, in its first round and in a later one."""

    def __init__(self, kernel: KernelAccesses, nothing: KnownSums) -> None:
        self._words, self._flow, self._nothing = kernel.words, kernel.flow, nothing
        self._counted: dict[int, NewNumbers] = {}

    def _list_carried(self, first: int) -> Iterator[tuple[Atom, HeldWord]]:
        """The words of a loop, each with the one that it begins with."""
        for atom, each in self._flow.carried.items():
            if each.first == first:
                yield atom, each.arms[0]

    def _list_pairs(self, first: int) -> Iterator[tuple[Atom, Atom, Atom]]:
        """The numbers of 64 bits of a loop, each with its words."""
        for atom in self._words.atoms.every():
            if atom.op == "wide carried":
                low, high = (each for each in atom.args if isinstance(each, Atom))
                if self._flow.carried[low].first == first:
                    yield atom, low, high

    def begin(self, first: int) -> NewNumbers:
        """What each carried word is in the first round."""
        numbers = {atom: self._words.value(word) for atom, word in self._list_carried(first)}
        for atom, *pair in self._list_pairs(first):
            low, high = (self._flow.carried[each].arms[0] for each in pair)
            numbers[atom] = self._words.join(low, high)
        return NewNumbers(numbers)

    def count(self, first: int) -> NewNumbers:
        """What each carried word is after so many rounds, for those that never wrap: by induction over the rounds.

        All are assumed to be what they were at the beginning and a step for each round; those that may wrap in the
        next round, by what is known on the way back, are left out, until none is.
        """
        if first not in self._counted:
            self._counted[first] = self._count(first)
        return self._counted[first]

    def _count(self, first: int) -> NewNumbers:
        rounds = self._words.atoms.make("rounds", (first,), f"rounds_{first}", bounds_of_bits(64))
        steps, back = self._steps(first), self._flow.latches.get(first, frozenset())
        while True:
            counted = NewNumbers({atom: begun + step * rounds for atom, begun, step in steps})
            later = self._nothing.elsewhere(back, self.go_on(first)).with_numbers(counted)
            begin = self._nothing.elsewhere(back, (number(0) - rounds,)).with_numbers(counted)
            kept = [
                each for each in steps
                if each[0].op != "carried" or _stays(counted.apply(of_atom(each[0])) + each[2], later, begin)
            ]  # fmt: skip
            if len(kept) == len(steps):
                return counted
            steps = kept

    def _steps(self, first: int) -> list[tuple[Atom, Polynomial, Polynomial]]:
        """The words that change by the same number in each round: what they begin with, and that number."""
        begun, after = self.begin(first), dict[Atom, Polynomial]()
        for atom, _ in self._list_carried(first):
            arms = self._flow.carried[atom].arms
            if len(arms) == _ONE_WAY and not arms[1].part:
                after[atom] = arms[1].whole
        for atom, *pair in self._list_pairs(first):
            low, high = (self._flow.carried[each].arms for each in pair)
            if len(low) == len(high) == _ONE_WAY:
                after[atom] = self._words.join(low[1], high[1])
        steps = {atom: _wrapped(whole - of_atom(atom)) for atom, whole in after.items()}
        return [
            (atom, begun.apply(of_atom(atom)), step)
            for atom, step in steps.items()
            if all(each.op in _GIVEN for each in step.atoms())
        ]

    def go_on(self, first: int) -> tuple[Polynomial, ...]:
        """What held when the loop came back, said of what it carries now."""
        renamed: dict[object, Polynomial] = {}
        for atom, _ in self._list_carried(first):
            arms, now = self._flow.carried[atom].arms, of_atom(atom)
            if len(arms) != _ONE_WAY:
                continue
            for before, here in (
                (self._words.value(arms[1]), now),
                (self._words.signed_value(arms[1]), self._words.narrow(now, 32, signed=True)),
            ):
                if (one := before.atom) is not None:
                    renamed[_meaning_of(one)] = here
        kept = set(renamed.values())
        found = []
        known = self._flow.latches.get(first, frozenset())
        for predicate in known:
            for fact in inequalities_of(predicate, known):
                said = substitute(fact, lambda atom: renamed.get(_meaning_of(atom), of_atom(atom)))
                if all(atom.op in _GIVEN or of_atom(atom) in kept for atom in said.atoms()):
                    found.append(said)
        return tuple(found)


def _meaning_of(atom: Atom) -> object:
    """What an atom is, wherever it was made: numbers that lose bits know the place, too."""
    return (atom.op, *atom.args[:2]) if atom.op in {"narrow", "signed"} else atom


_ONE_WAY = 2  # arms of a word, with the one that it begins with: it comes back by one way


def _stays(whole: Polynomial, *known: KnownSums) -> bool:
    return all(each.keeps(whole) for each in known)


def _wrapped(step: Polynomial) -> Polynomial:
    """A step of 32 bits as the smaller one of two that are the same: 4294967295 is -1."""
    constant = step.constant
    return step if constant is None or abs(constant) < 1 << 31 else number(constant - (1 << 32))


def _list_loops(room: Polynomial) -> tuple[int, ...]:
    """The first operations of the loops that carry something of a number."""
    found = (each.args[0] for each in atoms_inside(room.atoms()) if each.op == "carried")
    return tuple(dict.fromkeys(each for each in found if isinstance(each, int)))


class KnownSums:
    """What is known on the way to an access, and what follows of numbers that are made of others."""

    def __init__(
        self, words: Words, contract: Contract, predicates: frozenset[Predicate], more: tuple[Polynomial, ...] = (),
        changes: tuple[NewNumbers, ...] = (),
    ) -> None:  # fmt: skip
        self._words, self._contract, self.predicates = words, contract, predicates
        self._more, self._changes = more, changes
        self._resolved: dict[Atom, Polynomial] = {}

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
        """The number, where what lost no bits here is what it was before, and with numbers instead of atoms."""
        for change in self._changes:
            whole = change.apply(whole)
        return substitute(whole, self._resolve_atom)

    def _resolve_atom(self, atom: Atom) -> Polynomial:
        if atom not in self._resolved:
            self._resolved[atom] = of_atom(atom)  # for what is asked meanwhile
            self._resolved[atom] = self._simpler(atom)
        return self._resolved[atom]

    def _simpler(self, atom: Atom) -> Polynomial:
        inside = atom.args[0] if atom.args else None
        if atom.op in {"narrow", "signed"} and isinstance(inside, Polynomial) and isinstance(atom.args[1], int):
            bits = atom.args[1]
            low, high = bounds_of_bits(bits, signed=atom.op == "signed")
            whole = self.resolve(inside)
            for same in (whole, whole - number(1 << bits)):  # adding 4294967295 subtracts 1
                if self.is_never_negative(same - number(low)) and self.is_never_negative(number(high) - same):
                    return same
        if atom.op == "high" and isinstance(inside, Polynomial):
            whole = self.resolve(inside)
            if self.is_never_negative(whole) and self.is_never_negative(number((1 << 32) - 1) - whole):
                return number(0)
        return of_atom(atom)

    # Sums that aren't negative.

    def is_never_negative(self, room: Polynomial) -> bool:
        """True if no numbers that satisfy the facts make it negative."""
        if self._range(room).low >= 0:
            return True
        if self._range(room).high < 0:
            return False
        facts = list(dict.fromkeys(self._collect(room)))
        wanted = {factors for factors, _ in room.terms if len(factors) > 1}
        products = list(self._products(facts, wanted))
        sums = [*facts, *products, number(-1) - room]
        return has_no_solution([_as_sum(each) for each in sums])

    def _range(self, whole: Polynomial) -> Bounds:
        return whole.bounds(self._bounds)

    def _bounds(self, atom: Atom) -> Bounds:
        return self._contract.ranges.get(atom.text.rstrip(PRIME), atom.bounds) if atom.op in _GIVEN else atom.bounds

    def _collect(self, room: Polynomial) -> Iterator[Polynomial]:
        """The facts about the atoms of a number, and about those that these facts name."""
        seen: set[Atom] = set()
        work = list(room.atoms())
        predicates = list(self._read_predicates())
        for each in predicates:
            work += each.atoms()
            yield each
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

    def _read_predicates(self) -> Iterator[Polynomial]:
        for each in self.predicates:
            yield from map(self.resolve, inequalities_of(each, self.predicates))
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
        elif atom.op == "select":
            yield from self._hull(value, [each for each in args if isinstance(each, HeldWord)])

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


def report_bounds(judged: Sequence[Judged]) -> tuple[Finding, ...]:
    """A finding I502 for each pointer, side and verb of accesses that aren't proved to lie inside."""
    groups: dict[tuple[str, str, str], list[Footprint]] = {}
    for each in judged:
        if each.reach is Reach.UNDECIDED:
            groups.setdefault((each.access.pointer, each.side, each.access.verb), []).append(each.access)
    return tuple(_report(*key, accesses) for key, accesses in groups.items())


def _report(pointer: str, side: str, verb: str, accesses: Sequence[Footprint]) -> Finding:
    first = accesses[0]
    known = [f"{fact} >= 0" for each in sorted(first.active.parts | first.known, key=lambda each: each.number)
             for fact in inequalities_of(each, first.active.parts)]  # fmt: skip
    return Finding(
        "I502",
        f"nothing that is known keeps a {verb} of {pointer} from lying {side}",
        concerns=tuple(each.operation.instruction.concern() for each in accesses[:2]),
        evidence=(
            (LEVEL, EvidenceLevel.UNDECIDED.value),
            (UNDECIDED, "the bounds of arguments, workgroups or loaded words that the address is made of"),
            ("address", first.formula),
            ("bytes", first.size),
            *(("known there", text) for text in known),
            ("accesses", len(accesses)),
        ),
        fixes=("state ranges of what the address is made of: --range n=0..65536, --range group_x=0..65535",),
        severity=Severity.WARNING,
    )


PRIME = "'"  # ends the name of a number that another workgroup has
_GIVEN = frozenset({"argument", "word of arguments", "workgroup", "item", "launch"})


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
