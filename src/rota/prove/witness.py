"""Arguments that lead down a path: takes its conditions, gives a `Launch` that satisfies them, if one can be built.

Pointers go to buffers of the launch; other words are as small as the conditions allow.  Words of memory that a
condition depends on are put where the kernel will read them.  What conditions don't speak of is zero, or what `fill`
says.  Whether the launch really takes the path, only its execution shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from rota.isa.binary.kernel_facts import Argument, KernelFacts
from rota.prove.bit_vectors import EFFORT, Answer, BitVectors, Condition, PathTerms, Reply, Term
from rota.prove.decisions import Chain, Event, Path, StateGraph, events_of
from rota.prove.symbol import M32, Symbol
from rota.prove.verdict import Budget, Meter

_MOST_EVENTS = 6_000
_MOST_QUESTIONS = 60
_TO_ASK = 100  # steps for every question, besides what z3 counts
_TOO_LONG = "the path is too long to ask about"
NO_ANSWER = "z3 came to no answer within its effort"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Possible:
    """A path from the start that may be taken: its conditions, and an example."""

    terms: PathTerms
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """Neither ruled out nor shown: why."""

    why: str


class Feasibility:
    """Asks about paths of one proof."""

    def __init__(self, graph: StateGraph, make: BitVectors, meter: Meter | None = None) -> None:
        self._graph, self._make, self._meter = graph, make, meter or Meter(Budget())
        self.questions = 0

    def of(self, path: Path) -> Possible | Unsettled | None:
        """A path that leads to the same place and may be taken; None if no launch takes any."""
        doubt: Unsettled | None = None
        ends: list[tuple[int, tuple[Chain, ...]]] = [(path[0], (path[1],))]
        tried: dict[tuple[int, ...], Unsettled | None] = {}
        until = self.questions + _MOST_QUESTIONS
        while ends:
            if self.questions >= until:
                return doubt or Unsettled(why=f"{_MOST_QUESTIONS} questions about ways to it were not enough")
            state, chains = ends.pop()
            whole = self._from_start(state, chains)
            name = tuple(map(id, whole))
            if name not in tried:
                found = self._ask(0, whole)
                if isinstance(found, Possible):
                    return found
                tried[name] = found
                doubt = doubt or found
            if not state:
                if tried[name] is not None:
                    return tried[name]
            elif self._ask(state, chains) is not None:  # else it can't be, whatever comes before
                ends += [(before, (chain, *chains)) for before, chain in reversed(self._graph.arrivals[state])]
        return None

    def _from_start(self, state: int, chains: tuple[Chain, ...]) -> tuple[Chain, ...]:
        """The way by which the first path came to the state, and then the end of one."""
        before: list[Chain] = []
        while state:
            state, chain = self._graph.arrivals[state][0]
            before.append(chain)
        return (*reversed(before), *chains)

    def _ask(self, state: int, chains: tuple[Chain, ...]) -> Possible | Unsettled | None:
        """Can what happens from a state on be?  None if not."""
        events: list[Event] = [event for chain in chains for event in events_of(chain)]
        if len(events) > _MOST_EVENTS:
            return Unsettled(why=_TOO_LONG)
        if over := self._meter.exceeded:
            return Unsettled(why=f"the budget of {over} is used up")
        self.questions += 1
        self._meter.spend(_TO_ASK + len(events))
        try:
            terms = PathTerms(self._make, self._graph.known[state], events)
        except RecursionError:
            return Unsettled(why=_TOO_LONG)
        reply = self._make.ask(terms.conditions, min(EFFORT, self._meter.units_left))
        self._meter.spend(units=reply.units)
        if reply.answer is Answer.NEVER:
            return None
        if reply.answer is Answer.UNKNOWN:
            return Unsettled(why=NO_ANSWER)
        return Possible(terms=terms, reply=reply)


BUFFER_BYTES = 1 << 20
"""Of each buffer that a pointer among the arguments gets."""
FILLS = (0, 64)
"""What is tried for numbers that conditions don't speak of."""
_BOUNDS = (1, 16, 64, 256, 1024, 4096, 1 << 16, (1 << 31) - 1)
_MOST_WORKGROUP = 255
_UNKNOWN = {
    "loaded": "words that it loads into vector registers",
    "first": "words that it loads into vector registers",
    "lane": "words that it loads into vector registers",
    "start": "registers that nothing has set",
    "any": "whether lanes are left in a mask",
    "half": "masks of lanes",
}
Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word of memory: in which buffer, at which byte."""

    buffer: int
    offset: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One workgroup of a launch: its id, the words of the kernarg segment by offset, and words of memory.

    The declared pointers, in their order, go to buffers of `BUFFER_BYTES` each, and there is a spare one for pointers
    that lie in memory.  Numbers that no condition speaks of are `fill`: zeros suit most kernels, but a stride may have
    to be more than a tile.  `unknown` is what the path depends on besides, and no launch decides directly.
    """

    workgroup: Triple
    grid: Triple
    arguments: tuple[tuple[int, int], ...]
    memory: tuple[Word, ...]
    unknown: tuple[str, ...]
    fill: int = 0

    def describe(self, facts: KernelFacts, *, noise: int = 0) -> str:
        """The arguments by name; with `noise`, buffers don't hold zeros."""
        declared = [each for each in facts.arguments if not each.hidden]
        names = {each.offset: each.name for each in declared}
        pointers = pointers_of(facts)
        parts = [
            f"{names.get(offset, f'word {offset:#x}')} = {value}"
            for offset, value in self.arguments
            if not any(each.offset <= offset < each.offset + 8 for each in pointers)
        ]
        buffers = [*(each.name for each in pointers), "a spare buffer"]
        parts += [f"{buffers[each.buffer]}[{each.offset:#x}] = {each.value:#x}" for each in self.memory]
        where = f"workgroup {self.workgroup} of {self.grid}"
        data = "pseudo-random words, but for tables" if noise else "zeros"
        rest = f"other numbers {self.fill}, buffers of {data}" if self.fill or noise else "all else 0"
        return "; ".join((where, *parts, rest))


class NoLaunchError(Exception):
    """No launch can be built: why."""


def pointers_of(facts: KernelFacts) -> list[Argument]:
    """The arguments that get a buffer."""
    return [each for each in facts.arguments if each.kind == "global_buffer" and each.size == 8]


def tables_of(symbols: Iterable[Symbol]) -> frozenset[int]:
    """The words among the arguments by which scalar loads find what they read: tables, not the data of lanes."""
    left = [each for each in symbols if each.op in {"memory", "buffer"}]
    seen = set(left)
    while left:
        parts: list[object] = [*left.pop().args]
        while parts:
            part = parts.pop()
            if isinstance(part, tuple):
                parts += part
            elif isinstance(part, Symbol) and part not in seen:
                seen.add(part)
                left.append(part)
    return frozenset(int(str(each.args[0])) for each in seen if each.op == "argument")


def build_launch(facts: KernelFacts, possible: Possible, addresses: Sequence[int]) -> Launch:
    """A launch for a path, with the addresses that its buffers will have; raises if there is none."""
    terms = possible.terms
    _with_addresses(terms)
    reply = _small(terms, facts, addresses)
    value = reply.value
    words = {int(str(symbol.args[0])): value(term) for symbol, term in _of(terms, "argument")}
    ids = {str(symbol.args[0]): value(term) for symbol, term in _of(terms, "workgroup")}
    x, y, z = (ids.get(axis, 0) for axis in "xyz")
    counts = {each.kind: words.get(each.offset) for each in facts.arguments}
    grid = [
        max(counts.get(f"hidden_block_count_{axis}") or 0, place + 1)
        for axis, place in zip("xyz", (x, y, z), strict=True)
    ]
    memory = tuple(_placed(terms, reply, addresses))
    unknown = dict.fromkeys(_UNKNOWN.get(op, op) for op in sorted(terms.guessed))
    return Launch(
        workgroup=(x, y, z),
        grid=(grid[0], grid[1], grid[2]),
        arguments=tuple(sorted(words.items())),
        memory=memory,
        unknown=tuple(unknown),
    )


def _of(terms: PathTerms, *ops: str) -> list[tuple[Symbol, Term]]:
    return [(symbol, term) for symbol, term in terms.launched.items() if symbol.op in ops]


def _with_addresses(terms: PathTerms) -> None:
    """Words of memory lie somewhere: what that depends on is asked about, too."""
    done: set[Symbol] = set()
    while left := [symbol for symbol, _ in _of(terms, "memory", "buffer") if symbol not in done]:
        for symbol in left:
            done.add(symbol)
            _address(terms, symbol)


def _address(terms: PathTerms, symbol: Symbol) -> tuple[Term, Term]:
    """The low and the high word of where a word lies."""
    make = terms.make
    low, high = terms.key(symbol.args[0], 0, None), terms.key(symbol.args[1], 0, None)
    return low, make.apply("and", high, make.constant(0xFFFF)) if symbol.op == "buffer" else high


def _small(terms: PathTerms, facts: KernelFacts, addresses: Sequence[int]) -> Reply:
    """An example in which pointers are right and numbers small."""
    sure = [*terms.conditions, *_pinned(terms, facts, addresses), *_inside(terms, addresses)]
    make = terms.make
    pointers = {each.offset + part for each in pointers_of(facts) for part in (0, 4)}
    numbers = [term for symbol, term in _of(terms, "argument") if symbol.args[0] not in pointers]
    numbers += [term for _, term in _of(terms, "memory", "buffer")]
    for bound in _BOUNDS:
        limits = [make.holds("le_u", term, make.constant(bound)) for term in numbers]
        reply = make.ask([*sure, *limits])
        if reply.answer is Answer.YES:
            return reply
    reply = make.ask(sure)
    if reply.answer is Answer.YES:
        return reply
    if reply.answer is Answer.UNKNOWN:
        raise NoLaunchError(NO_ANSWER)
    raise NoLaunchError("no launch with buffers for its pointers satisfies its conditions")


def _pinned(terms: PathTerms, facts: KernelFacts, addresses: Sequence[int]) -> Iterable[Condition]:
    """Pointers are where their buffers are; what a runtime fills in is as it would be."""
    make = terms.make
    fixed: dict[int, int] = {}
    for each, address in zip(pointers_of(facts), addresses, strict=False):  # behind them a spare one
        fixed |= {each.offset: address & M32, each.offset + 4: address >> 32}
    for each in facts.arguments:
        if each.kind.startswith(("hidden_remainder", "hidden_global_offset")):
            fixed[each.offset - each.offset % 4] = 0
    ids = {str(symbol.args[0]): term for symbol, term in _of(terms, "workgroup")}
    counts = {each.offset: each.kind[-1] for each in facts.arguments if each.kind.startswith("hidden_block_count_")}
    for term in ids.values():
        yield make.holds("le_u", term, make.constant(_MOST_WORKGROUP))
    for symbol, term in _of(terms, "argument"):
        offset = int(str(symbol.args[0]))
        if offset in fixed:
            yield make.holds("eq", term, make.constant(fixed[offset]))
        elif offset in counts:
            yield make.holds("lt_u", ids.get(counts[offset], make.constant(0)), term)
            yield make.holds("le_u", term, make.constant(_MOST_WORKGROUP + 1))


def _inside(terms: PathTerms, addresses: Sequence[int]) -> Iterable[Condition]:
    """Each word of memory lies in one of the buffers, and is the same for all that read it."""
    make = terms.make
    words = [(*_address(terms, symbol), term) for symbol, term in _of(terms, "memory", "buffer")]
    for (low, _, one), (low2, _, other) in combinations(words, 2):
        apart = make.flag(make.holds("ne", low, low2))
        yield make.holds("ne", make.apply("or", apart, make.flag(make.holds("eq", one, other))), make.constant(0))
    for low, high, _ in words:
        yield make.holds("eq", make.apply("and", low, make.constant(3)), make.constant(0))
        flags = make.constant(0)
        for address in addresses:
            away = make.apply("sub", low, make.constant(address & M32))
            near = make.flag(make.holds("le_u", away, make.constant(BUFFER_BYTES - 4)))
            flags = make.apply(
                "or", flags, make.apply("and", near, make.flag(make.holds("eq", high, make.constant(address >> 32))))
            )
        yield make.holds("ne", flags, make.constant(0))


def _placed(terms: PathTerms, reply: Reply, addresses: Sequence[int]) -> Iterable[Word]:
    for symbol, term in _of(terms, "memory", "buffer"):
        low, high = (reply.value(each) for each in _address(terms, symbol))
        place = (low | high << 32) & ~3
        buffer = next(number for number, start in enumerate(addresses) if 0 <= place - start < BUFFER_BYTES)
        yield Word(buffer=buffer, offset=place - addresses[buffer], value=reply.value(term))
