"""The instructions of a kernel, from a listing of llvm-objdump or an assembly file.

A listing becomes `Instruction` values; control flow says every place the kernel can go. What can't be followed, or
doesn't match the kernel's descriptor, is a finding.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING

from rota.errors import Concern, Finding, IsaError, SourceLine
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.opcodes import (
    PAIRED,
    IsaFlow,
    IsaUnit,
    MemSpace,
    Opcode,
    RegisterUse,
    Trait,
    fields_of,
    goes_to_lds,
    halves_of,
    is_dpp,
    is_sdwa,
    op_kind_of,
    opcode_named,
    registers_of,
    returns_value,
    traffic_of,
)
from rota.isa.registers import SCC_ROWS, ranges_in
from rota.program.kinds import OpKind
from rota.targets.architecture import Traffic

if TYPE_CHECKING:
    from rota.isa.binary.elf import LineTable

# Parsing. An instruction's place is its byte address if the text has addresses, else its number. The target of a
# branch comes from its encoding, and from its label only in assembly, which has no encodings.

_FUNCTION = re.compile(r"^(?P<address>[0-9a-fA-F]+) <(?P<name>.+)>:$")
_ENCODED = re.compile(r"//\s*(?P<address>[0-9A-Fa-f]+):(?P<words>(?: [0-9A-Fa-f]{8})+)")
# What the disassembler guesses of a register's bank: it forgets it at branches. `rota.isa.register_banks` follows it.
_GUESS = re.compile(r"\s*/\*[va](?:\d+|\[\d+:\d+\])(?:\.[lh])?\*/")
_LABEL = re.compile(r"^(?P<name>[\w.$@]+):")
_COMMENT = re.compile(r"(?:;|//).*$")
_NUMBERED = re.compile(r"^(?P<name>\d+)(?P<way>[bf])$")  # the label before or after this line
_DATA = (".long", ".byte", ".short", ".quad", ".ascii", ".asciz", ".zero", ".fill", ".space", ".section", ".rodata",
         ".text", ".data")  # fmt: skip
_WORD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeLine:
    """One instruction of a listing; `follows` and `target` are byte addresses, or numbers in assembly."""

    number: int
    text: str
    follows: int
    words: tuple[int, ...] = ()
    target: int | None = None  # of a jump
    label: str = ""  # its name, in assembly
    spec: Opcode = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", opcode_named(name_in(self.text)))

    def concern(self) -> Concern:
        return Concern(label=self.text, index=self.number, role="line of the listing")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeListing:
    """Instructions and names by place; places are byte addresses if `addressed`."""

    lines: Mapping[int, CodeLine]
    names: Mapping[str, int]
    addressed: bool


def name_in(text: str) -> str:
    """The opcode that a line begins with, or both of a pair."""
    if _PAIR not in text:
        return text.partition(" ")[0]
    return PAIRED.join(part.partition(" ")[0] for part in text.split(_PAIR))


_PAIR = f" {PAIRED} "


@lru_cache(maxsize=4)  # kernel after kernel is read from one listing
def parse_listing(text: str) -> CodeListing:
    lines = text.splitlines()
    return _parse_disassembly(lines) if any(_ENCODED.search(line) for line in lines) else _parse_assembly(lines)


def _parse_disassembly(text: list[str]) -> CodeListing:
    lines: dict[int, CodeLine] = {}
    names: dict[str, int] = {}
    for number, raw in enumerate(text, 1):
        encoded = _ENCODED.search(raw)
        if encoded is None:
            if (function := _FUNCTION.match(raw)) is not None:
                names.setdefault(function["name"], int(function["address"], 16))
            continue
        address = int(encoded["address"], 16)
        words = tuple(int(word, 16) for word in encoded["words"].split())
        code = _GUESS.sub("", raw[: encoded.start()]).strip()
        follows = address + _WORD * len(words)
        target = None
        if opcode_named(name_in(code)).jumps:
            away = words[0] & 0xFFFF
            target = address + _WORD + _WORD * (away - (away >> 15 << 16))
        lines[address] = CodeLine(number=number, text=code, follows=follows, words=words, target=target)
    return CodeListing(lines=MappingProxyType(lines), names=MappingProxyType(names), addressed=True)


def _parse_assembly(text: list[str]) -> CodeListing:
    """Numbers the instructions; skips a number at data and at a new section, so that no path runs across them."""
    lines: dict[int, CodeLine] = {}
    labels: dict[str, list[int]] = {}
    place = 0
    for number, raw in enumerate(text, 1):
        code = _COMMENT.sub("", raw).strip()
        while (label := _LABEL.match(code)) is not None:
            labels.setdefault(label["name"], []).append(place)
            code = code[label.end() :].strip()
        if not code:
            continue
        if code.startswith("."):
            place += code.startswith(_DATA) and place - 1 in lines
            continue
        jump = code.rsplit(maxsplit=1)[-1] if opcode_named(code.split()[0]).jumps else ""
        lines[place] = CodeLine(number=number, text=code, follows=place + 1, label=jump)
        place += 1
    for at, line in lines.items():
        if line.label:
            found = labels.get(line.label, [])
            chosen = found if len(found) == 1 else []
            if (numbered := _NUMBERED.match(line.label)) is not None:
                found = labels.get(numbered["name"], [])
                before, after = [each for each in found if each <= at], [each for each in found if each > at]
                chosen = before[-1:] if numbered["way"] == "b" else after[:1]
            lines[at] = replace(line, target=chosen[0] if chosen else None)
    return CodeListing(lines=lines, names={name: places[0] for name, places in labels.items()}, addressed=False)


# Code addresses in registers. Compilers compute the address of a function with s_getpc_b64 and a sum, and save return
# addresses in lanes of a vector register. The analysis follows that; all other results are unknown.

Key = str | int | tuple[int, int]  # SCC, a scalar register, or a lane of a vector register
Values = frozenset[int]
State = dict[Key, Values]  # registers that are missing are unknown
_Written = dict[Key, Values | None]

_MOST_VALUES = 16  # per register: a function may have this many call sites
_ANY_LANE = -1
_SCC = "scc"
_M32 = 0xFFFF_FFFF
_SUMS = {"s_add_u32": (1, False), "s_addc_u32": (1, True), "s_sub_u32": (-1, False), "s_subb_u32": (-1, True)}


def join_states(state: State, other: State) -> State:
    """Join of two paths: keeps what both know, and drops registers with too many values."""
    both = {key: state[key] | other[key] for key in state.keys() & other.keys()}
    return {key: values for key, values in both.items() if len(values) <= _MOST_VALUES}


def state_after(line: CodeLine, state: State) -> State:
    """Transfer function: what the registers may hold after an instruction."""
    spec = line.spec
    if Trait.INDEXES in spec.traits:  # it writes registers that it doesn't name
        return {}
    operands = [operand.strip() for operand in line.text.partition(" ")[2].split(",")]
    follow = _TRANSFER.get(spec.name)
    try:
        written = None if follow is None else follow(line, operands, state)
    except (IndexError, ValueError):  # malformed: the decoder reports it
        written = None
    if written is None:
        named = {key for operand in operands for key in _registers_in(operand)}
        written = {
            key: None for key in state if key in named or (isinstance(key, tuple) and (key[0], _ANY_LANE) in named)
        }
    after = dict(state)
    if not spec.known or spec.writes >= SCC_ROWS:
        after.pop(_SCC, None)
    for key, values in written.items():
        if values is not None and 0 < len(values) <= _MOST_VALUES:
            after[key] = values
        else:
            after.pop(key, None)
    return after


def _registers_in(operand: str) -> list[Key]:
    keys: list[Key] = []
    for file, first, count in ranges_in(operand):
        numbers = range(first, first + min(count, 32)) if file != "a" else ()
        keys += [number if file == "s" else (number, _ANY_LANE) for number in numbers]
    return keys


def _write_return_address(line: CodeLine, operands: list[str], _: State) -> _Written:
    halves = (frozenset({line.follows & _M32}), frozenset({line.follows >> 32}))
    return dict(zip(_registers_in(operands[0]), halves, strict=True))


def _move_pair(_: CodeLine, operands: list[str], state: State) -> _Written:
    targets, sources = _registers_in(operands[0]), _registers_in(operands[1])
    if sources:
        return {target: state.get(source) for target, source in zip(targets, sources, strict=True)}
    literal = _literal(operands[1])
    if literal is None:
        return dict.fromkeys(targets)
    return dict(zip(targets, (frozenset({literal & _M32}), frozenset({literal >> 32 & _M32})), strict=True))


def _add(line: CodeLine, operands: list[str], state: State) -> _Written:
    sign, takes = _SUMS[line.spec.name]
    target = _registers_in(operands[0])[0]
    left, right = (_value(state, operand) for operand in operands[1:3])
    carry = state.get(_SCC) if takes else frozenset({0})
    if left is None or right is None or carry is None:
        return {target: None, _SCC: None}
    totals = {a + sign * (b + c) for a, b, c in product(left, right, carry)}
    return {
        target: frozenset(total & _M32 for total in totals),
        _SCC: frozenset(int(not 0 <= total <= _M32) for total in totals),
    }


def _write_lane(_: CodeLine, operands: list[str], state: State) -> _Written:
    vector, lane = _vector_number(operands[0]), _literal(operands[2])
    if lane is None:
        return {key: None for key in state if isinstance(key, tuple) and key[0] == vector}
    return {(vector, lane & 63): _value(state, operands[1])}


def _read_lane(_: CodeLine, operands: list[str], state: State) -> _Written:
    vector, lane = _vector_number(operands[1]), _literal(operands[2])
    return {_registers_in(operands[0])[0]: None if lane is None else state.get((vector, lane & 63))}


_TRANSFER: dict[str, Callable[[CodeLine, list[str], State], _Written]] = {
    **dict.fromkeys(("s_getpc_b64", "s_swappc_b64", "s_call_b64"), _write_return_address),
    "s_setpc_b64": lambda *_: {},
    "s_mov_b32": lambda _, operands, state: {_registers_in(operands[0])[0]: _value(state, operands[1])},
    "s_mov_b64": _move_pair,
    "v_writelane_b32": _write_lane,
    "v_readlane_b32": _read_lane,
    **dict.fromkeys(_SUMS, _add),
}


def _vector_number(operand: str) -> int:
    (key,) = _registers_in(operand)
    if not isinstance(key, tuple):
        raise ValueError(f"{operand} is no vector register")  # noqa: TRY004  # caught above
    return key[0]


def _value(state: State, operand: str) -> Values | None:
    keys = _registers_in(operand)
    if keys:
        return state.get(keys[0])
    literal = _literal(operand)
    return None if literal is None else frozenset({literal & _M32})


def _literal(operand: str) -> int | None:
    try:
        return int(operand.removeprefix("lit(").removesuffix(")"), 0)
    except ValueError:
        return None


# Control flow. Calls and returns go to addresses in registers; one that the analysis above can't resolve may go to any
# function of the code object.

_MOST_VISITS = 16  # per place, on average; real code needs 1 to 4
_FREE_VISITS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFlow:
    """The places that a kernel can reach, jumps with unknown targets, and places with the successor that is missing."""

    places: frozenset[int]
    unresolved: tuple[int, ...] = ()
    missing: tuple[tuple[int, int], ...] = ()


def derive_flow(listing: CodeListing, entry: int, functions: Iterable[int] = ()) -> CodeFlow:
    """Follows all paths from `entry`; an unresolved jump may go to each of the `functions`."""
    walk = _Walk(listing.lines)
    walk.start(entry)
    if walk.unresolved:
        for function in sorted(functions):
            walk.start(function)
    places = frozenset(place for place in walk.states if place in listing.lines)
    return CodeFlow(places=places, unresolved=tuple(sorted(walk.unresolved)), missing=tuple(sorted(walk.missing)))


class _Walk:
    def __init__(self, lines: Mapping[int, CodeLine]) -> None:
        self._lines = lines
        self._plain = not any(line.spec.flow.is_indirect for line in lines.values())  # then no register matters
        self._returns: set[int] = set()
        self.states: dict[int, State] = {}
        self.missing: set[tuple[int, int]] = set()
        self.unresolved: set[int] = set()
        self._left = _FREE_VISITS + _MOST_VISITS * len(lines)

    def start(self, place: int) -> None:
        """Follows paths from `place` with unknown registers, then from returns that no path has reached."""
        self._go({place: {}})
        while late := sorted(self._returns - self.states.keys()):
            self._go({late[0]: {}})

    def _go(self, work: dict[int, State]) -> None:
        while work:
            place, state = work.popitem()
            self._left -= 1
            if self._left < 0:
                message = "the search for the targets of the kernel's jumps was given up"
                near = (self._lines[place].concern(),) if place in self._lines else ()
                count = len(self._lines)
                evidence = (("instructions", count), ("visits", _FREE_VISITS + _MOST_VISITS * count))
                raise IsaError.of("I131", message, concerns=near, evidence=evidence)
            known = self.states.get(place)
            now = state if known is None else join_states(known, state)
            if now == known:
                continue
            self.states[place] = now
            line = self._lines.get(place)
            if line is None:
                continue
            after = {} if self._plain else state_after(line, now)
            for to in self._successors(line, place, now):
                if to not in self._lines:
                    self.missing.add((place, to))
                else:
                    work[to] = join_states(work[to], after) if to in work else after

    def _successors(self, line: CodeLine, place: int, state: State) -> list[int]:
        flow = line.spec.flow
        if flow.is_call:
            self._returns.add(line.follows)
        if flow.is_indirect:
            absolute = Trait.RELATIVE not in line.spec.traits
            halves = [state.get(key, Values()) for key in _registers_in(line.text.split()[-1]) if absolute]
            targets = {low | high << 32 for low, high in product(*halves)} if len(halves) == 2 else None
            (self.unresolved.discard if targets else self.unresolved.add)(place)
            return sorted(targets or ())
        jumps = [] if line.target is None else [line.target]
        return [*jumps, line.follows] if flow.falls_through else jumps


_OPERANDS = re.compile(r",\s*(?![^\[\]]*\])(?![^()]*\))")
_LITERAL = re.compile(r"^lit\(([^()]+)\)$")
_SPACES = re.compile(r"\s+(?![^()]*\))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction of a kernel.

    The operands of a pair that is issued as one are both targets, then what the first reads, and what the second does.
    `line` is its line in the listing, `address` its byte address in the code object, `target` the number of the
    instruction that a branch goes to, `symbol` its function, `source` the line it was compiled from, `encoding` its
    words.
    """

    opcode: str
    operands: tuple[str, ...]
    modifiers: tuple[str, ...]
    text: str
    line: int
    address: int | None = None
    target: int | None = None
    symbol: str | None = None
    source: SourceLine | None = None
    encoding: tuple[int, ...] = ()

    @property
    def spec(self) -> Opcode:
        """What is known of its opcode."""
        return opcode_named(self.opcode)

    @property
    def mnemonic(self) -> str:
        """Its opcode without the encoding."""
        return self.spec.name

    @property
    def registers(self) -> RegisterUse:
        """The rows that it reads and writes."""
        return registers_of(self.opcode, self.operands, self.modifiers)

    @property
    def fields(self) -> dict[str, str]:
        """Its modifiers by name; a flag has no value."""
        return fields_of(self.modifiers)

    @property
    def offset(self) -> int:
        return int(self.fields.get("offset", "0"), 0)

    @property
    def piece_offsets(self) -> tuple[int, ...]:
        """Where the pieces of an LDS access start, in bytes from its address."""
        access, fields = self.spec.access, self.fields
        if access is None or access.pieces == 1:
            return (self.offset,)
        return tuple(int(fields.get(name, "0"), 0) * access.unit for name in ("offset0", "offset1"))

    @property
    def is_dpp(self) -> bool:
        return is_dpp(self.opcode, self.modifiers)

    @property
    def is_sdwa(self) -> bool:
        return is_sdwa(self.opcode)

    @property
    def to_lds(self) -> bool:
        """True for a load from memory to LDS."""
        return self.spec.access is not None and goes_to_lds(self.spec.access, self.modifiers)

    @property
    def traffic(self) -> Traffic | None:
        """What its counter counts it as; a flat instruction counts as LDS, too."""
        return traffic_of(self.spec, self.modifiers)

    @property
    def op_kind(self) -> OpKind | None:
        """What it is in a schedule; None where its opcode alone doesn't say."""
        return op_kind_of(self.spec, self.modifiers)

    @property
    def is_flat(self) -> bool:
        return self.spec.access is not None and self.spec.access.space is MemSpace.FLAT

    @property
    def returns(self) -> bool:
        """True for a memory instruction that writes registers."""
        return self.spec.access is not None and returns_value(self.spec.access, self.modifiers)

    @property
    def place(self) -> str:
        """Its address, else its line of the listing."""
        return f"line {self.line}" if self.address is None else f"{self.address:#x}"

    def concern(self, role: str = "") -> Concern:
        place = "" if self.address is None else self.place
        role = role or ("" if place else "line of the listing")
        return Concern(label=self.text, index=self.line, role=role, source=self.source, place=place)

    @property
    def follows(self) -> int | None:
        return None if self.address is None else self.address + 4 * len(self.encoding)


def read_listing(
    text: str, kernel: str, *, entry: int | None = None, kernels: Collection[str] = (), lines: LineTable | None = None
) -> tuple[Instruction, ...]:
    """Reads the instructions of `kernel`: from its entry on in address order, then those before the entry.

    `entry` is the address of the first instruction, for listings where the name isn't enough. An unresolved jump may go
    to any function in the listing except the `kernels`, which are launched and never called.
    """
    listing = parse_listing(text)
    start = entry if entry is not None and listing.addressed else listing.names.get(kernel)
    if start is None or start not in listing.lines:
        wanted = f"<{kernel}>: or {kernel}:" if start is None else f"{start:#x}"
        message = f"the listing has no instructions of a kernel named {kernel!r}"
        raise IsaError.of("I101", message, evidence=(("looked for", wanted), ("lines", len(text.splitlines()))))
    functions = [place for name, place in listing.names.items() if listing.addressed and name not in kernels]
    flow = derive_flow(listing, start, functions)
    found = [listing.lines[place] for place in sorted(flow.places)]
    lost = [line for line in found if line.label and line.target is None]
    if lost or flow.missing:
        line = lost[0] if lost else listing.lines[flow.missing[0][0]]
        branches = lost or line.follows != flow.missing[0][1]
        what = "branches to a place that the listing lacks" if branches else "runs into a place without instructions"
        evidence = () if lost or not listing.addressed else (("place", f"{flow.missing[0][1]:#x}"),)
        raise IsaError.of("I101", f"{line.text!r} {what}", concerns=(line.concern(),), evidence=evidence)
    return tuple(_select_instructions(listing, flow, start, lines))


def _select_instructions(
    listing: CodeListing, flow: CodeFlow, start: int, lines: LineTable | None
) -> Iterable[Instruction]:
    before = sorted(place for place in flow.places if place < start)
    order = [*sorted(place for place in flow.places if place >= start), *before]
    if before and (last := listing.lines[before[-1]]).spec.flow.falls_through and last.follows == start:
        message = f"{last.text!r} runs into the beginning of its own kernel"
        raise IsaError.of("I101", message, concerns=(last.concern(),))
    numbers = {place: number for number, place in enumerate(order)}
    names = sorted((place, name) for name, place in listing.names.items()) if listing.addressed else []
    starts = [place for place, _ in names]
    for place in order:
        line = listing.lines[place]
        at = bisect_right(starts, place) - 1
        target, symbol = None if line.target is None else numbers[line.target], names[at][1] if at >= 0 else None
        source = None if lines is None or not listing.addressed else lines.at(place)
        yield instruction_of(line, place if listing.addressed else None, target, symbol, source)


def instruction_of(
    line: CodeLine,
    address: int | None = None,
    target: int | None = None,
    symbol: str | None = None,
    source: SourceLine | None = None,
) -> Instruction:
    parts = [(operands, modifiers) for _, operands, modifiers in split_line(line.text)]
    targets = [operands.pop(0) for operands, _ in parts if operands] if len(parts) > 1 else []
    return Instruction(
        opcode=name_in(line.text),
        operands=(*targets, *(each for operands, _ in parts for each in operands)),
        modifiers=tuple(each for _, modifiers in parts for each in modifiers),
        text=line.text,
        line=line.number,
        address=address,
        target=target,
        symbol=symbol,
        source=source,
        encoding=line.words,
    )


def split_line(text: str) -> list[tuple[str, list[str], list[str]]]:
    """The opcode, the operands and the modifiers of an instruction, or of both of a pair."""
    return [_split_instruction(part) for part in text.split(_PAIR)]


def _split_instruction(text: str) -> tuple[str, list[str], list[str]]:
    name, _, rest = text.partition(" ")
    spec = opcode_named(name)
    operands = [part.strip() for part in _OPERANDS.split(rest.strip())] if rest.strip() else []
    modifiers: list[str] = []
    if spec.cache is not None:
        return name, [], rest.split()
    if operands and " " in operands[-1] and spec.flow is not IsaFlow.WAIT:
        operands[-1], *modifiers = _SPACES.split(operands[-1])
    if not spec.is_wide:  # of 32 bits, a number is the same wherever it is encoded
        operands = [_LITERAL.sub(r"\1", operand) for operand in operands]
    return name, operands, modifiers


def expand_pairs(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Replaces each pair by its two instructions, in an order in which neither reads what the other has written.

    A pair without such an order, which exchanges registers, stays one instruction.
    """
    if not any(PAIRED in each.opcode for each in instructions):
        return tuple(instructions)
    expanded: list[Instruction] = []
    places: list[int] = []
    for each in instructions:
        places.append(len(expanded))
        expanded += _split_pair(each) if PAIRED in each.opcode else [each]
    return tuple(each if each.target is None else replace(each, target=places[each.target]) for each in expanded)


_SELECTS, _WITHOUT_MASK = "v_cndmask_b32", 3
# A table of two operands is one of three, as far as it is about a third operand that is 0.
_COMBINES, _COMBINES_THREE, _WITH_THIRD = "v_bitop2_b32", "v_bitop3_b32", 0b10101010


def _split_pair(pair: Instruction) -> list[Instruction]:
    first, second = pair_halves(pair)
    if second.registers.reads.isdisjoint(first.registers.writes):
        return [first, second]
    return [second, first] if first.registers.reads.isdisjoint(second.registers.writes) else [pair]


def pair_halves(pair: Instruction) -> tuple[Instruction, Instruction]:
    """The two instructions of a pair, each as it is written alone."""
    halves = []
    for name, (_, operands, modifiers) in zip(halves_of(pair.opcode), split_line(pair.text), strict=True):
        opcode = name
        if name == _SELECTS and len(operands) == _WITHOUT_MASK:
            operands.append("vcc_lo")
        elif name == _COMBINES and not int(fields_of(tuple(modifiers)).get("bitop3", "1"), 0) & _WITH_THIRD:
            opcode = _COMBINES_THREE
            operands.append("0")
        halves.append(replace(pair, opcode=opcode, operands=tuple(operands), modifiers=tuple(modifiers)))
    first, second = halves
    return first, second


def find_endless(instructions: Sequence[Instruction]) -> frozenset[int]:
    """The instructions from which no path reaches an end, a trap or an indirect jump: a wave there never ends."""
    into: dict[int, list[int]] = defaultdict(list)
    ending = []
    for number, each in enumerate(instructions):
        follows = each.spec.flow.falls_through or each.spec.flow is IsaFlow.CALL
        leads = [] if each.target is None else [each.target]
        leads += [number + 1] if follows and number + 1 < len(instructions) else []
        for to in leads:
            into[to].append(number)
        if not leads:
            ending.append(number)
    reached = set(ending)
    while ending:
        for before in into[ending.pop()]:
            if before not in reached:
                reached.add(before)
                ending.append(before)
    return frozenset(range(len(instructions))) - reached


# Descriptor checks. The notes say what the compiler meant; the hardware reads the descriptor only.


def check_descriptor(facts: KernelFacts, instructions: Sequence[Instruction]) -> list[Finding]:
    """Compares the descriptor with the notes and with the registers that the instructions use."""
    return [*_check_notes(facts), *_check_registers(facts, instructions)]


def _check_notes(facts: KernelFacts) -> Iterator[Finding]:
    # Memory sizes must be equal; registers are allocated in granules, so the descriptor may have more. Hardware ignores
    # the size of the arguments, and hand-written descriptors leave it at 0.
    descriptor = facts.descriptor
    named = sum(size for _, size in facts.user_sgprs)
    for what, described, noted, fits in (
        ("bytes of LDS", descriptor.lds_bytes, facts.lds_bytes, descriptor.lds_bytes == facts.lds_bytes),
        ("bytes of private memory", descriptor.private_bytes, facts.private_bytes,
         descriptor.private_bytes == facts.private_bytes),
        ("bytes of arguments", descriptor.kernarg_bytes, facts.kernarg_bytes,
         descriptor.kernarg_bytes in {0, facts.kernarg_bytes}),
        ("vector registers", descriptor.vgprs, facts.vgprs, facts.vgprs <= descriptor.vgprs),
        ("scalar registers", descriptor.sgprs, facts.sgprs, facts.sgprs <= descriptor.sgprs),
    ):  # fmt: skip
        if not fits:
            message = f"the kernel descriptor has {described} {what}, but the notes {noted}"
            yield _misfit(message, described, ("notes", noted))
    if descriptor.user_sgprs != named:
        message = f"the kernel descriptor counts {descriptor.user_sgprs} user SGPRs and enables {named}"
        yield _misfit(message, descriptor.user_sgprs, ("enabled", named))


def _check_registers(facts: KernelFacts, instructions: Sequence[Instruction]) -> Iterator[Finding]:
    descriptor = facts.descriptor
    highest: dict[str, tuple[int, Instruction]] = {}
    for instruction in instructions:
        for operand in instruction.operands:
            for file, first, count in ranges_in(operand):
                if first + count > highest.get(file, (0, instruction))[0]:
                    highest[file] = first + count - 1, instruction
    vgprs, accum = descriptor.vgprs, descriptor.accum_offset
    rooms = {"v": min(vgprs, accum), "a": vgprs - accum, "s": descriptor.sgprs}
    for file, (number, instruction) in highest.items():
        if number >= (room := rooms[file]):
            message = f"an instruction uses {file}{number}, but the kernel descriptor allocates {max(room, 0)}"
            yield _misfit(message, room, ("highest register", f"{file}{number}"), instruction)
    shared = next(
        (each for each in instructions if each.spec.flow is IsaFlow.BARRIER or each.spec.unit is IsaUnit.LDS), None
    )
    if descriptor.tg_split and (shared is not None or descriptor.lds_bytes):
        message = "the kernel descriptor lets the waves of a workgroup run on several compute units, without LDS"
        yield _misfit(message, "tg_split 1", ("due", "tg_split 0"), shared)


def _misfit(
    message: str, described: int | str, other: tuple[str, int | str], instruction: Instruction | None = None
) -> Finding:
    concerns = () if instruction is None else (instruction.concern(),)
    return Finding("I209", message, concerns=concerns, evidence=(("descriptor", described), other))


# VSKIP. While it is on, the hardware skips vector instructions as if they were absent (CDNA3 ISA, "S_SETVSKIP"). A
# second copy of the code has s_nop in their place, and s_setvskip branches from one copy to the other, so that nothing
# else has to know the mode.

SKIPPING = "skipping"
"""Modifier of the s_setvskip in the second copy, which branches back if its bit is 0; no listing has it."""
_MODE = re.compile(r"hwreg\(HW_REG_MODE(?:, *(?P<first>\d+), *(?P<bits>\d+))?\)")
VSKIP = 28  # its bit


def expand_vskip(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Replaces VSKIP by control flow: two copies of the code.  Raises I102 for an indirect jump and some s_setreg."""
    from rota.isa.wave.operand import unknown  # brings numpy, which reading a listing doesn't need

    traits = {name: opcode_named(name).traits for name in {each.opcode for each in instructions}}
    skips = any(Trait.SKIPS in each for each in traits.values())
    modes = {name for name, each in traits.items() if Trait.SETS_MODE in each}
    for each in instructions:
        if each.opcode in modes and _may_set_vskip(each, skips=skips):
            raise unknown(each, "VSKIP, a bit of MODE,")
    if not skips:
        return tuple(instructions)
    count = len(instructions)
    plain, skipping = list(instructions), list(instructions)
    for number, each in enumerate(instructions):
        if each.spec.flow.is_call or each.spec.flow.is_indirect:
            raise unknown(each, "target in code that sets VSKIP")
        if Trait.SKIPS in each.spec.traits:
            plain[number] = replace(each, target=count + number + 1)
            skipping[number] = replace(each, target=number + 1, modifiers=(SKIPPING,))
        elif each.spec.unit.is_vector or each.spec.unit is IsaUnit.UNKNOWN:
            skipping[number] = replace(each, opcode="s_nop", operands=("0",), modifiers=(), target=None)
        elif each.target is not None:
            skipping[number] = replace(each, target=each.target + count)
    return (*plain, *skipping)


def _may_set_vskip(instruction: Instruction, *, skips: bool) -> bool:
    """True if an s_setreg may change VSKIP; after s_setvskip, writing 0 is a change too."""
    found = _MODE.search(instruction.text)
    first, bits = (int(found["first"] or 0), int(found["bits"] or 32)) if found else (0, 0)
    if not first <= VSKIP < first + bits:
        return False
    try:
        return skips or bool(int(instruction.operands[-1], 0) >> VSKIP - first & 1)
    except ValueError:  # a register
        return True
