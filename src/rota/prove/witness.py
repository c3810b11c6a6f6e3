"""Witnesses: whether a launch can take a path, and with which arguments.

A pointer gets a buffer; other numbers are as small as the conditions of the path allow.  Words of memory that a
condition depends on are placed where the kernel reads them.  All other words are zero, or `Launch.fill`.  Only a replay
shows whether the launch really takes the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from rota.isa.binary.kernel_facts import Argument, KernelFacts
from rota.prove.bit_vectors import EFFORT, Answer, BitVectors, Condition, PathTerms, Reply, Term
from rota.prove.decisions import Chain, Event, Path, StateGraph, events_of
from rota.prove.guesses import Guesses
from rota.prove.symbol import FROM_LDS, LOADED, M32, Symbol
from rota.prove.verdict import Budget, Meter

_MOST_EVENTS = 6_000
_MOST_QUESTIONS = 60
_STEPS_PER_QUERY = 100  # besides z3's own effort
_TOO_LONG = "the path is too long for z3"
NO_ANSWER = "z3 found no answer within its effort"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Possible:
    """A path that some launch takes; `guessed` are the numbers of one, by name, if it was guessed."""

    terms: PathTerms
    reply: Reply
    guessed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """Neither feasible nor infeasible as far as is known, and why."""

    why: str


class Feasibility:
    def __init__(self, graph: StateGraph, builder: BitVectors, meter: Meter | None = None) -> None:
        self._graph, self._builder, self._meter = graph, builder, meter or Meter(Budget())
        self.questions = 0

    def find(self, path: Path, most: int | None = None) -> Possible | Unsettled | None:
        """A feasible path to the same place, searched backwards from the end; None if no launch takes any.

        The search ends when so many steps of the budget are spent in all.
        """
        doubt: Unsettled | None = None
        ends: list[tuple[int, tuple[Chain, ...]]] = [(path[0], (path[1],))]
        tried: dict[tuple[int, ...], Unsettled | None] = {}
        until = self.questions + _MOST_QUESTIONS
        while ends:
            if self.questions >= until:
                return doubt or Unsettled(why=f"{_MOST_QUESTIONS} queries about paths to it did not decide it")
            if most is not None and self._meter.spent > most:
                return doubt or Unsettled(why="its share of the budget is used up")
            state, chains = ends.pop()
            at, before = state, list[Chain]()
            while at:  # by the first path to each state
                at, chain = self._graph.arrivals[at][0]
                before.append(chain)
            self._meter.spend(len(before))
            whole = (*reversed(before), *chains)
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
            elif self._ask(state, chains) is not None:  # else it is infeasible, whatever comes before
                ends += [(before, (chain, *chains)) for before, chain in reversed(self._graph.arrivals[state])]
        return None

    def _ask(self, state: int, chains: tuple[Chain, ...]) -> Possible | Unsettled | None:
        """Ask z3 about the events since a state; None if they are infeasible."""
        events: list[Event] = [event for chain in chains for event in events_of(chain)]
        self._meter.spend(len(chains) + len(events))
        if len(events) > _MOST_EVENTS:
            return Unsettled(why=_TOO_LONG)
        if over := self._meter.exceeded:
            return Unsettled(why=f"the budget of {over} is used up")
        self.questions += 1
        self._meter.spend(_STEPS_PER_QUERY + len(events))
        try:
            terms = PathTerms(self._builder, self._graph.known[state], events)
        except RecursionError:
            return Unsettled(why=_TOO_LONG)
        guess = self._guess(state, events)
        for numbers in (guess, {}) if guess else ({},):
            conditions = [*terms.conditions, *self._builder.pin(numbers)]
            reply = self._builder.ask(conditions, min(EFFORT, self._meter.units_left))
            self._meter.spend(units=reply.units)
            if reply.answer is Answer.YES:
                return Possible(terms=terms, reply=reply, guessed=numbers)
        if reply.answer is Answer.NEVER:
            return None
        return Unsettled(why=NO_ANSWER)

    def _guess(self, state: int, events: Sequence[Event]) -> dict[str, int]:
        """Numbers for which the conditions of a path seem to hold; none if no guess is right."""
        guesses = Guesses()
        self._meter.spend(len(events))
        return guesses.find(PathTerms(guesses, self._graph.known[state], events).conditions) or {}


# Launches.

BUFFER_BYTES = 1 << 20  # the size of the buffer that each pointer among the arguments gets
FILLS = (0, 64)  # values to try for numbers that no condition constrains
_BOUNDS = (1, 64, 4096, 1 << 16)
_MOST_WORKGROUP = 255
_UNKNOWN = {
    **dict.fromkeys((LOADED, FROM_LDS, "first", "lane"), "words that it loads into vector registers"),
    "start": "registers that nothing has written",
    "any": "whether a mask has lanes",
    "half": "masks of lanes",
}
DATA = frozenset({LOADED, FROM_LDS, "first", "lane", "any", "half"})
"""Ops of symbols that follow from what memory holds: some contents give them any value."""
Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    buffer: int
    offset: int
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One workgroup of a launch: its id, the words of the kernarg segment by offset, and words of memory.

    The declared pointers, in their order, point to buffers of `BUFFER_BYTES` each; a spare buffer serves pointers in
    memory.  Numbers that no condition constrains are `fill`: zeros suit most kernels, but a stride may have to exceed a
    tile.  `unknown` names what the path depends on besides, and no launch decides directly.
    """

    workgroup: Triple
    grid: Triple
    arguments: tuple[tuple[int, int], ...]
    memory: tuple[Word, ...]
    unknown: tuple[str, ...]
    fill: int = 0

    def describe(self, facts: KernelFacts, *, noise: int = 0) -> str:
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
        data = "pseudo-random words, except tables" if noise else "zeros"
        rest = f"other numbers {self.fill}, buffers of {data}" if self.fill or noise else "all else 0"
        return "; ".join((where, *parts, rest))


class NoLaunchError(Exception):
    """No launch can be built, and why."""


def pointers_of(facts: KernelFacts) -> list[Argument]:
    return [each for each in facts.arguments if each.kind == "global_buffer" and each.size == 8]


def tables_of(symbols: Iterable[Symbol]) -> frozenset[int]:
    """The offsets of arguments that the addresses of scalar loads depend on: pointers to tables, not to lanes' data."""
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


def build_launch(facts: KernelFacts, possible: Possible, addresses: Sequence[int], meter: Meter) -> Launch:
    """Build a launch that takes a path, for buffers at these addresses; raises NoLaunchError if there is none."""
    terms, done = possible.terms, set[Symbol]()
    # Make the terms of the addresses of words in memory, until no more words appear.
    while left := [symbol for symbol, _ in _select(terms, "memory", "buffer") if symbol not in done]:
        for symbol in left:
            done.add(symbol)
            _address(terms, symbol)
    reply = _find_small_example(possible, facts, addresses, meter)
    value = reply.value
    words = {int(str(symbol.args[0])): value(term) for symbol, term in _select(terms, "argument")}
    ids = {str(symbol.args[0]): value(term) for symbol, term in _select(terms, "workgroup")}
    x, y, z = (ids.get(axis, 0) for axis in "xyz")
    counts = {each.kind: words.get(each.offset) for each in facts.arguments}
    grid = [
        max(counts.get(f"hidden_block_count_{axis}") or 0, place + 1)
        for axis, place in zip("xyz", (x, y, z), strict=True)
    ]
    memory = []
    for symbol, term in _select(terms, "memory", "buffer"):
        low, high = (value(each) for each in _address(terms, symbol))
        place = (low | high << 32) & ~3
        buffer = next(number for number, start in enumerate(addresses) if 0 <= place - start < BUFFER_BYTES)
        memory.append(Word(buffer=buffer, offset=place - addresses[buffer], value=value(term)))
    unknown = dict.fromkeys(_UNKNOWN.get(op, op) for op in sorted(terms.guessed))
    return Launch(
        workgroup=(x, y, z),
        grid=(grid[0], grid[1], grid[2]),
        arguments=tuple(sorted(words.items())),
        memory=tuple(memory),
        unknown=tuple(unknown),
    )


def _select(terms: PathTerms, *ops: str) -> list[tuple[Symbol, Term]]:
    return [(symbol, term) for symbol, term in terms.launched.items() if symbol.op in ops]


def _address(terms: PathTerms, symbol: Symbol) -> tuple[Term, Term]:
    builder = terms.builder
    low, high = terms.key(symbol.args[0], 0, None), terms.key(symbol.args[1], 0, None)
    return low, builder.apply("and", high, builder.constant(0xFFFF)) if symbol.op == "buffer" else high


def _find_small_example(possible: Possible, facts: KernelFacts, addresses: Sequence[int], meter: Meter) -> Reply:
    terms = possible.terms
    sure = [*terms.conditions, *_fix_pointers(terms, facts, addresses), *_keep_inside(terms, addresses)]
    builder = terms.builder

    def ask(more: Iterable[Condition], effort: int) -> Reply:
        reply: Reply = builder.ask([*sure, *more], min(effort, meter.units_left))
        meter.spend(units=reply.units)
        return reply

    pointers = {each.offset + part for each in pointers_of(facts) for part in (0, 4)}
    numbers = [term for symbol, term in _select(terms, "argument") if symbol.args[0] not in pointers]
    numbers += [term for _, term in _select(terms, "memory", "buffer")]
    given = (*numbers, *(term for _, term in _select(terms, "workgroup")))
    free = {str(term) for symbol, term in _select(terms, "argument") if symbol.args[0] in pointers}
    guessed = builder.pin({name: number for name, number in possible.guessed.items() if name not in free})
    same = [term == builder.constant(possible.reply.value(term)) for term in given]
    found = ask([*guessed, *same], EFFORT // 4)
    if found.answer is Answer.YES:  # with the numbers of the path's own example
        return found
    found = ask((), EFFORT)
    if found.answer is Answer.UNKNOWN:
        raise NoLaunchError(NO_ANSWER)
    if found.answer is Answer.NEVER:
        raise NoLaunchError("no launch with buffers for its pointers satisfies its conditions")
    for bound in _BOUNDS:  # small numbers read better, but aren't worth much effort
        reply = ask((builder.compare("le_u", term, builder.constant(bound)) for term in numbers), EFFORT // 20)
        if reply.answer is Answer.YES:
            return reply
    return found


def _fix_pointers(terms: PathTerms, facts: KernelFacts, addresses: Sequence[int]) -> Iterable[Condition]:
    """Pointers point to their buffers; hidden arguments are what a runtime would pass."""
    builder = terms.builder
    fixed: dict[int, int] = {}
    for each, address in zip(pointers_of(facts), addresses, strict=False):  # the last address is the spare one
        fixed |= {each.offset: address & M32, each.offset + 4: address >> 32}
    for each in facts.arguments:
        if each.kind.startswith(("hidden_remainder", "hidden_global_offset")):
            fixed[each.offset - each.offset % 4] = 0
    ids = {str(symbol.args[0]): term for symbol, term in _select(terms, "workgroup")}
    counts = {each.offset: each.kind[-1] for each in facts.arguments if each.kind.startswith("hidden_block_count_")}
    for term in ids.values():
        yield builder.compare("le_u", term, builder.constant(_MOST_WORKGROUP))
    for symbol, term in _select(terms, "argument"):
        offset = int(str(symbol.args[0]))
        if offset in fixed:
            yield builder.compare("eq", term, builder.constant(fixed[offset]))
        elif offset in counts:
            yield builder.compare("lt_u", ids.get(counts[offset], builder.constant(0)), term)
            yield builder.compare("le_u", term, builder.constant(_MOST_WORKGROUP + 1))


def _keep_inside(terms: PathTerms, addresses: Sequence[int]) -> Iterable[Condition]:
    """Each word of memory is inside of a buffer, and words at one address are equal."""
    builder = terms.builder
    words = [(*_address(terms, symbol), term) for symbol, term in _select(terms, "memory", "buffer")]
    for (low, _, one), (low2, _, other) in combinations(words, 2):
        differ, same = builder.flag(builder.compare("ne", low, low2)), builder.flag(builder.compare("eq", one, other))
        yield builder.compare("ne", builder.apply("or", differ, same), builder.constant(0))
    for low, high, _ in words:
        yield builder.compare("eq", builder.apply("and", low, builder.constant(3)), builder.constant(0))
        flags = builder.constant(0)
        for address in addresses:
            away = builder.apply("sub", low, builder.constant(address & M32))
            near = builder.flag(builder.compare("le_u", away, builder.constant(BUFFER_BYTES - 4)))
            there = builder.flag(builder.compare("eq", high, builder.constant(address >> 32)))
            flags = builder.apply("or", flags, builder.apply("and", near, there))
        yield builder.compare("ne", flags, builder.constant(0))
