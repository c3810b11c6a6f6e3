"""Whether each access lies within the bytes that its pointer leads to.

An extent is a polynomial of arguments, which keep the ranges and the relations that are stated.  An access through a
raw buffer resource lies inside if the resource does: words that don't lie in it aren't accessed.  Any other one lies
inside if no numbers that satisfy what is known of it lead before the beginning or beyond the end; what a loop carries
is what it was in the first round, or what it has become after a number of them.
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rota.errors import Finding, IsaError, Severity
from rota.prove.causes import LEVEL, UNDECIDED, EvidenceLevel
from rota.prove.footprint.accesses import Footprint, KernelAccesses, list_cases
from rota.prove.footprint.known_sums import GIVEN, Contract, KnownSums, NewNumbers, in_range, inequalities_of, leaves_of
from rota.prove.footprint.polynomial import (
    Atom,
    Bounds,
    Polynomial,
    atoms_inside,
    bounds_of_bits,
    number,
    of_atom,
    substitute,
)
from rota.prove.footprint.words import HeldWord, Predicate


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


_RANGE = re.compile(r"(?P<name>[\w.]+)=(?P<low>\d+)\.\.(?P<high>\d+)")
_GROUP = re.compile(r"group_([xyz])")


def parse_contract(
    kernel: KernelAccesses, extents: Sequence[str], ranges: Sequence[str], where: Sequence[str] = ()
) -> Contract:
    """What is stated as `A=M*K*2`, `n=1..65536` and `ldc >= N`.

    A range may be of a number that the kernel doesn't have, such as how many workgroups there are; it has that name in
    the other two.
    """
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
        stated[name.strip()] = parse_extent(formula, kernel, found)
    facts = [fact for text in where for fact in _parse_relation(text, kernel, found)]
    relations = tuple(fact for fact in facts if not _narrow_range(fact, found))
    return Contract(extents=stated, ranges=found, relations=relations)


def _narrow_range(fact: Polynomial, ranges: dict[str, Bounds]) -> bool:
    """Take a fact about one argument alone into its range."""
    rest = fact - number(fact.offset)
    below, above = rest.atom, rest.times(-1).atom
    atom = below or above
    if atom is None or atom.op not in GIVEN:
        return False
    low, high = ranges.get(atom.text, atom.bounds)
    ranges[atom.text] = Bounds(max(low, -fact.offset), high) if below else Bounds(low, min(high, fact.offset))
    return True


def parse_extent(text: str, kernel: KernelAccesses, ranges: Mapping[str, Bounds] | None = None) -> Polynomial:
    """Sums, products, and quotients and remainders by numbers: `M*K*2`, `4*n + 64`, `(n + 63)//64*256`."""
    return _Formula(text, kernel, ranges or {}).read(_parse(text))


def _parse_relation(text: str, kernel: KernelAccesses, ranges: Mapping[str, Bounds]) -> Iterator[Polynomial]:
    formula, tree = _Formula(text, kernel, ranges), _parse(text)
    if not isinstance(tree, ast.Compare):
        raise formula.refuse("compare two formulas: ldc >= N, K % 64 == 0")
    sides = [formula.read(each) for each in (tree.left, *tree.comparators)]
    for (one, other), relation in zip(pairwise(sides), tree.ops, strict=True):
        make = _RELATIONS.get(type(relation))
        if make is None:
            raise formula.refuse("relations are <, <=, ==, >= and >")
        yield from make(one, other)


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise IsaError.of("I107", f"{text!r} is no formula") from error


_RELATIONS: dict[type[ast.cmpop], Callable[[Polynomial, Polynomial], tuple[Polynomial, ...]]] = {
    ast.Lt: lambda one, other: (other - one - number(1),),
    ast.LtE: lambda one, other: (other - one,),
    ast.Eq: lambda one, other: (other - one, one - other),
    ast.GtE: lambda one, other: (one - other,),
    ast.Gt: lambda one, other: (one - other - number(1),),
}


class _Formula:
    """A formula over the arguments of a kernel, and what else has a range."""

    def __init__(self, text: str, kernel: KernelAccesses, ranges: Mapping[str, Bounds]) -> None:
        self._text, self._kernel, self._ranges = text, kernel, ranges

    def refuse(self, fix: str) -> IsaError:
        return IsaError.of("I107", f"{self._text!r} is no formula of arguments and numbers", fixes=(fix,))

    def read(self, node: ast.expr) -> Polynomial:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return number(node.value)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._named(ast.unparse(node))
        if isinstance(node, ast.BinOp):
            return self._combine(node.op, self.read(node.left), self.read(node.right))
        raise self.refuse("+, -, *, and // and % by a number, are known")

    def _combine(self, op: ast.operator, one: Polynomial, other: Polynomial) -> Polynomial:
        if isinstance(op, ast.Add | ast.Sub):
            return one + other if isinstance(op, ast.Add) else one - other
        if isinstance(op, ast.Mult):
            return one * other
        by = other.constant
        if by is None or by < 1 or not isinstance(op, ast.FloorDiv | ast.Mod):
            raise self.refuse("+, -, *, and // and % by a number, are known")
        quotient = self._kernel.words.quotient(one, by)
        return quotient if isinstance(op, ast.FloorDiv) else one - quotient.times(by)

    def _named(self, name: str) -> Polynomial:
        atoms = self._kernel.words.atoms
        if (axis := _GROUP.fullmatch(name)) is not None:
            return atoms.make("workgroup", (axis[1],), name, bounds_of_bits(32))
        try:
            return argument_of(self._kernel, name)
        except IsaError:
            if (bounds := self._ranges.get(name)) is None:
                raise
            return atoms.make("stated", (name,), name, bounds)


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


def are_inside(kernel: KernelAccesses, contract: Contract) -> bool:
    """True if each access of a pointer whose extent is stated lies inside; stops at the first that isn't proved."""
    judge = _Judge(kernel, contract)
    accesses = (each for each in kernel.footprints if not each.is_argument)
    return not kernel.refused and all(judge.place(each).reach is not Reach.UNDECIDED for each in accesses)


class _Judge:
    def __init__(self, kernel: KernelAccesses, contract: Contract) -> None:
        self._words, self._contract, self._flow = kernel.words, contract, kernel.flow
        self._proved: dict[object, bool] = {}
        self._facts: dict[tuple[frozenset[Predicate], tuple[Polynomial, ...]], KnownSums] = {}
        self._in_loop: dict[tuple[KnownSums, int], tuple[KnownSums, KnownSums]] = {}
        self._rounds = _Rounds(kernel, KnownSums(kernel.words, contract, frozenset()))

    def place(self, access: Footprint) -> Judged:
        pointer = self._pointer_of(access)
        if pointer is None:
            return Judged(access=access, reach=Reach.NO_EXTENT)
        if access.records is not None and self._is_resource_inside(access, access.base - pointer):
            return Judged(access=access, reach=Reach.INSIDE)
        for case in list_cases(access, self._words):
            if side := self._find_side(case, case.base - pointer + case.offset):
                return Judged(access=access, reach=Reach.UNDECIDED, side=side)
        return Judged(access=access, reach=Reach.INSIDE)

    def _find_side(self, access: Footprint, start: Polynomial) -> str:
        """The end of the extent beyond which an access may lie, if any."""
        parts, extent = access.active.parts | access.known, self._contract.extents[access.pointer]
        kept = self._in_range(access, parts)
        rooms = (("before its beginning", start), ("after its end", extent - start - number(access.size)))
        return next((side for side, room in rooms if not self._asks(room, parts, kept)), "")

    def _in_range(self, access: Footprint, parts: frozenset[Predicate]) -> tuple[Polynomial, ...]:
        return in_range(access, lambda room: self._asks(room, parts))

    def _is_resource_inside(self, access: Footprint, start: Polynomial) -> bool:
        """True if all bytes of its buffer resource lie within the extent: words that don't lie there are dropped."""
        if access.records is None:
            return False
        room = self._contract.extents[access.pointer] - start - access.records
        for parts in dict.fromkeys((frozenset[Predicate](), access.known, access.known | access.active.parts)):
            if all(self._asks(each, parts) for each in (start, room)):
                return True
        return False

    def _asks(self, room: Polynomial, parts: frozenset[Predicate], more: tuple[Polynomial, ...] = ()) -> bool:
        """True if a number is never negative where these conditions hold, and more numbers aren't."""
        key = (room, parts, more)
        if key not in self._proved:
            if (parts, more) not in self._facts:
                self._facts[parts, more] = KnownSums(self._words, self._contract, parts, more)
            loops = [first for first in _list_loops(room) if self._flow.headers[first].parts <= parts]
            self._proved[key] = self._is_inside(self._facts[parts, more], room, loops)
        return self._proved[key]

    def _is_inside(self, facts: KnownSums, room: Polynomial, loops: Sequence[int]) -> bool:
        """In the first round of each loop, and in every later one."""
        if not loops:
            return facts.is_never_negative(facts.resolve(room))
        first, rest = loops[0], loops[1:]
        begun, counted = self._rounds.begin(first), self._rounds.count(first)
        if (facts, first) not in self._in_loop:
            later = facts.with_facts(self._rounds.go_on(first)).with_numbers(counted)
            self._in_loop[facts, first] = facts.with_numbers(begun), later
        in_first, later = self._in_loop[facts, first]
        return self._is_inside(in_first, begun.apply(room), rest) and self._is_inside(later, counted.apply(room), rest)

    def _pointer_of(self, access: Footprint) -> Polynomial | None:
        if access.pointer not in self._contract.extents:
            return None
        found = self._words.atoms.find("argument", (access.pointer,))
        return None if found is None else of_atom(found)


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
        return NewNumbers(self._words, numbers)

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
            counted = NewNumbers(self._words, {atom: begun + step * rounds for atom, begun, step in steps})
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
            if all(each.op in GIVEN for each in leaves_of(step))
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
                if all(atom.op in GIVEN or of_atom(atom) in kept for atom in leaves_of(said)):
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


def report_bounds(judged: Sequence[Judged]) -> tuple[Finding, ...]:
    """A finding I502 for each pointer, side and verb of accesses that aren't proved to lie inside."""
    groups: dict[tuple[str, str, str], list[Footprint]] = {}
    for each in judged:
        if each.reach is Reach.UNDECIDED:
            groups.setdefault((each.access.pointer, each.side, each.access.verb), []).append(each.access)
    return tuple(_report(*key, accesses) for key, accesses in groups.items())


def describe_doubt(pointer: str, side: str, verb: str) -> str:
    return f"nothing that is known keeps a {verb} of {pointer} from lying {side}"


def _report(pointer: str, side: str, verb: str, accesses: Sequence[Footprint]) -> Finding:
    first = accesses[0]
    known = [f"{fact} >= 0" for each in sorted(first.active.parts | first.known, key=lambda each: each.number)
             for fact in inequalities_of(each, first.active.parts)]  # fmt: skip
    return Finding(
        "I502",
        describe_doubt(pointer, side, verb),
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
