"""Where an address loses bits: numbers that are used in fewer bits than they may have.

What is asked is whether a product or a multiple may be larger than the bits that an instruction uses of it, and whether
the rest becomes an address. The least factors at which it does are the boundary.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from rota.errors import Finding, Severity
from rota.prove.causes import LEVEL, UNDECIDED, EvidenceLevel
from rota.prove.footprint.accesses import Footprint, KernelAccesses
from rota.prove.footprint.flow import KernelFlow
from rota.prove.footprint.polynomial import (
    Atom,
    Bounds,
    Monomial,
    Polynomial,
    atoms_inside,
    bounds_of,
    describe,
    parts_of,
    product_bounds,
)
from rota.prove.footprint.words import HeldWord, Words

_OF_LAUNCH = frozenset({"workgroup", "item", "launch"})
_ARGUMENTS = frozenset({"argument", "word of arguments"})
_LEAVES = _OF_LAUNCH | _ARGUMENTS | {"unknown", "carried"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """A product that alone is too large from `least` on; `example` are factors that reach it."""

    factors: Monomial
    least: int
    example: tuple[tuple[str, int], ...]

    @property
    def formula(self) -> str:
        return "*".join(map(_name, self.factors))


class Loss(enum.Enum):
    """What happens to the bits that a number may have beyond those that are used."""

    BITS = "the bits above are dropped"
    CARRY = "a carry into the bits above is dropped"


class Doubt(enum.Enum):
    """Why a number may not be too large, or may be meant so."""

    DIVISION_BY_ZERO = "only the quotient of a division by zero reaches it"
    LAUNCH = "the size of the launch alone reaches it"
    ONE_ARGUMENT = "one argument reaches it alone: its caller knows how large it is"
    HIGH_WORD = "it is a high word: the number would have more than 64 bits"
    LOOP = "what a loop counts isn't bounded here"
    UNKNOWN = "it depends on a number that isn't followed"
    OFFSET = "the access takes an offset of 32 bits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """A number that is used in `bits`, although it may have more, in the address of some accesses.

    `at` is the number of the instruction that made or used it so, -1 if several did. Without a `doubt` a wider
    number was possible and is missing.
    """

    whole: Polynomial
    bits: int
    signed: bool
    loss: Loss
    at: int
    doubt: Doubt | None
    boundaries: tuple[Boundary, ...]
    accesses: tuple[Footprint, ...]

    @property
    def required(self) -> bool:
        return self.doubt is None


def find_overflows(kernel: KernelAccesses) -> tuple[Overflow, ...]:
    """The numbers that lose bits on their way into an address: those without a doubt first, then by instruction."""
    walk = _Walk(kernel.words, kernel.flow)
    found: dict[_Lost, list[tuple[bool, Footprint]]] = {}
    for each in kernel.footprints:
        for lost, is_offset in walk.lost(each):
            found.setdefault(lost, []).append((is_offset, each))
    groups: dict[tuple[object, ...], list[Overflow]] = {}
    for lost, uses in found.items():
        boundaries = _list_boundaries(lost, _bounds_by_one_or_more) or _list_boundaries(lost, bounds_of)
        if not boundaries or any(_is_pointer(each) for each in lost.whole.atoms()):
            continue
        doubt = _find_doubt(lost, boundaries, walk.counts, is_offset=all(is_offset for is_offset, _ in uses))
        made = Overflow(
            whole=lost.whole, bits=lost.bits, signed=lost.signed, loss=lost.loss, at=lost.at, doubt=doubt,
            boundaries=boundaries, accesses=tuple(dict.fromkeys(each for _, each in uses)),
        )  # fmt: skip
        products = frozenset(tuple(map(_name, each.factors)) for each in boundaries)
        key = (lost.bits, lost.signed, lost.loss, doubt, products)
        groups.setdefault(key, []).append(made)
    overflows = [_join(each) for each in groups.values()]
    return tuple(sorted(overflows, key=lambda each: (not each.required, each.at)))


def _list_boundaries(lost: _Lost, of: Callable[[Atom], Bounds]) -> tuple[Boundary, ...]:
    return tuple(sorted(_boundaries(lost.whole, lost.bits - lost.signed, of), key=_is_of_launch))


def _bounds_by_one_or_more(atom: Atom) -> Bounds:
    """The bounds of an atom, where no divisor is zero: a quotient is at most what is divided."""
    inside = atom.args[0] if atom.op == "divided" else None
    if not isinstance(inside, Polynomial) or inside.bounds().low < 0:
        return atom.bounds
    return Bounds(0, min(inside.bounds().high, atom.bounds.high))


def _is_of_launch(boundary: Boundary) -> bool:
    """True for a product that the size of the launch alone makes too large: the last ones to be named."""
    dividends = atoms_inside(boundary.factors, lambda atom: _dividend_of(atom) or _parts_and_arms(atom))
    leaves = (each for each in dividends if each.op in _LEAVES)
    return all(each.op in _OF_LAUNCH or each.text.startswith("packet[") for each in leaves)


def _dividend_of(atom: Atom) -> tuple[Atom, ...]:
    """What a quotient is large by: not its divisor."""
    inside = atom.args[0] if atom.op == "divided" else None
    return tuple(inside.atoms()) if isinstance(inside, Polynomial) else ()


def _name(atom: Atom) -> str:
    """What a number is called in any lane: several lanes' words of one table are one finding."""
    while atom.op == "lane" and isinstance(atom.args[0], Atom):
        atom = atom.args[0]
    return atom.text


def _is_pointer(atom: Atom) -> bool:
    """True for an address: its low word alone isn't what a product or a sum has lost."""
    return atom.op in {"argument", "kernarg", "packet"} and atom.bounds.high >= 1 << 32


def _find_doubt(
    lost: _Lost, boundaries: tuple[Boundary, ...], counts: Callable[[Atom], bool], *, is_offset: bool
) -> Doubt | None:
    if not _list_boundaries(lost, _bounds_by_one_or_more):
        return Doubt.DIVISION_BY_ZERO
    factors = [each for boundary in boundaries for each in boundary.factors]
    doubts = {
        Doubt.LAUNCH: all(map(_is_of_launch, boundaries)),
        Doubt.ONE_ARGUMENT: all(len(each.factors) == 1 and _is_of_one_argument(each.factors[0]) for each in boundaries),
        Doubt.HIGH_WORD: all(any(factor.op == "high" for factor in each.factors) for each in boundaries),
        Doubt.LOOP: any(map(counts, _inside(lost.whole.atoms()))),
        Doubt.UNKNOWN: any(each.op == "unknown" and not _is_loaded(each) for each in _inside(factors)),
        Doubt.OFFSET: is_offset and lost.bits == 32 and lost.loss is Loss.BITS,
    }
    return next((doubt for doubt, holds in doubts.items() if holds), None)


def _leaves_of(atoms: Iterable[Atom]) -> Iterator[Atom]:
    return (each for each in _inside(atoms) if each.op in _LEAVES)


def _is_loaded(atom: Atom) -> bool:
    return atom.op == "unknown" and "[" in atom.text


def _is_of_one_argument(atom: Atom) -> bool:
    """True for an argument, or a part of it, as its quotient by a constant."""
    leaves = list(_leaves_of([atom]))
    return len(leaves) == 1 and leaves[0].op in _ARGUMENTS


def _inside(atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Atoms and those that they are made of, those of a choice's arms too."""
    return atoms_inside(atoms, _parts_and_arms)


def _parts_and_arms(atom: Atom) -> Iterator[Atom]:
    yield from parts_of(atom)
    yield from (each for word in atom.args if isinstance(word, HeldWord) for each in word.whole.atoms())


def _join(group: list[Overflow]) -> Overflow:
    """One of several sums of the same products: the one that wraps first, with the accesses of all."""
    first = min(group, key=lambda each: [boundary.least for boundary in each.boundaries])
    accesses = dict.fromkeys(each for overflow in group for each in overflow.accesses)
    return replace(first, accesses=tuple(sorted(accesses, key=lambda each: each.operation.number)))


def _boundaries(whole: Polynomial, bits: int, of: Callable[[Atom], Bounds]) -> Iterator[Boundary]:
    """The products of a sum that alone reach the limit."""
    limit = 1 << bits
    for factors, factor in whole.terms:
        unbounded = [each for each in factors if not of(each).within(0, _SMALL)]
        if factor <= 0 or not unbounded or product_bounds(factors, of).high * factor < limit:
            continue
        if bits >= 31 and len(unbounded) == 1 and factor == 1 and len(factors) == 1:
            continue  # a word by itself: what a sum adds to it isn't followed
        bounded = math.prod(of(each).high for each in factors if each not in unbounded)
        least = -(-limit // (factor * max(bounded, 1)))
        yield Boundary(factors=tuple(unbounded), least=least, example=_example(unbounded, least, of))


_ADDRESS = 48  # bits of an address: no memory is where a number has more
_SMALL = 1 << 12  # numbers of lanes, waves and the like, which the block bounds


def _example(factors: list[Atom], least: int, of: Callable[[Atom], Bounds]) -> tuple[tuple[str, int], ...]:
    """Factors whose product is at least `least`: powers of two, of about equal size."""
    found: dict[str, int] = {}
    left = least
    for place, each in enumerate(factors):
        count = len(factors) - place
        chosen = left if count == 1 else 1 << max(round(math.log2(max(left, 1)) / count), 0)
        chosen = min(chosen, of(each).high)
        found[_name(each)] = max(found.get(_name(each), 1), chosen)
        left = -(-left // max(chosen, 1))
    return tuple(found.items())


def _int(value: object) -> int:
    return value if isinstance(value, int) else -1


class _Lost(NamedTuple):
    whole: Polynomial
    bits: int
    signed: bool
    loss: Loss
    at: int


class _Walk:
    """Finds the atoms that lost bits in what an address is made of."""

    def __init__(self, words: Words, flow: KernelFlow) -> None:
        self._words, self._flow = words, flow
        self._below: dict[Atom, tuple[Atom, ...]] = {}

    def lost(self, footprint: Footprint) -> Iterator[tuple[_Lost, bool]]:
        seen: set[Atom] = set()
        for whole, is_offset in ((footprint.base, False), (footprint.offset, True)):
            for each in self._reach(whole, seen):
                inside = each.args[0] if each.args else None
                if not isinstance(inside, Polynomial):
                    continue
                if each.op in {"narrow", "signed"}:
                    _, bits, at = each.args
                    if _int(bits) < _ADDRESS:
                        yield _Lost(inside, _int(bits), each.op == "signed", Loss.BITS, _int(at)), is_offset
                elif each.op == "lost carry" and isinstance(each.args[1], Polynomial):
                    yield _Lost(inside + each.args[1], 32, signed=False, loss=Loss.CARRY, at=-1), is_offset

    def counts(self, atom: Atom) -> bool:
        """True for a number that a loop changes, unless it is a loaded word in each round."""
        if atom.op not in {"carried", "wide carried"}:
            return False
        words = [each for each in atom.args if isinstance(each, Atom)] or [atom]
        arms = [arm for each in words for arm in self._flow.arms_of(each)]
        return not all(_is_loaded(each) for arm in arms for each in _leaves_of(arm.whole.atoms()))

    def _reach(self, whole: Polynomial, seen: set[Atom]) -> Iterator[Atom]:
        work = list(whole.atoms())
        while work:
            atom = work.pop()
            if atom in seen:
                continue
            seen.add(atom)
            yield atom
            if atom not in self._below:
                self._below[atom] = tuple(dict.fromkeys(self._made_of(atom)))
            work += self._below[atom]

    def _made_of(self, atom: Atom) -> Iterator[Atom]:
        if atom.op in {"select", "carried"}:
            arms = self._flow.arms_of(atom)
            for arm in arms:
                if atom not in arm.whole.atoms():
                    yield from self._words.value(arm).atoms()
        elif atom.op in {"wide select", "wide carried"}:
            low, high = (each for each in atom.args if isinstance(each, Atom))
            for one, other in zip(self._flow.arms_of(low), self._flow.arms_of(high), strict=False):
                if low not in one.whole.atoms():
                    yield from self._words.join(one, other).atoms()
        else:
            yield from parts_of(atom)


def report_overflow(kernel: KernelAccesses, each: Overflow) -> Finding:
    """The finding I501: what is lost, from which factors on, and where the address is used."""
    first = each.accesses[0]
    concerns = [first.operation.instruction.concern()]
    if 0 <= each.at < first.operation.number:
        concerns.append(kernel.flow.operations[each.at].instruction.concern(role="computes it"))
    width = f"{each.bits} bits" + " with a sign" * each.signed
    if each.loss is Loss.CARRY:
        message = f"a carry out of 32 bits is lost in an address of {first.pointer}"
    else:
        message = f"{width} of a larger number become an address of {first.pointer}"
    evidence: list[tuple[str, str | int]] = [("number", describe(each.whole)), ("used in", width)]
    evidence += [
        ("too large from", f"{boundary.formula} = {boundary.least:,}") for boundary in each.boundaries
    ]  # fmt: skip
    example = ", ".join(f"{name} = {value:,}" for name, value in each.boundaries[0].example)
    evidence += [("for example", example), ("accesses", len(each.accesses))]
    if each.doubt:
        evidence.append((UNDECIDED, each.doubt.value))
    level = EvidenceLevel.UNDECIDED if each.doubt else EvidenceLevel.REQUIRED
    fix = "add the high word of the product, too" if each.loss is Loss.BITS else "add the low words with their carry"
    return Finding(
        "I501",
        message,
        concerns=tuple(concerns),
        evidence=((LEVEL, level.value), *evidence),
        fixes=(fix,),
        severity=Severity.WARNING if each.doubt else Severity.ERROR,
    )
