"""Reads and checks the tables of hipBLASLt's main-loop schedules.

A table says after which matrix instruction of the loop each other instruction is issued.  Instructions come in streams:
SYNC (waits and barriers, whose contents are a list of their own), GRA and GRB (loads to LDS, each after the update of
its address register), LRA0 .. LRB3 (LDS reads, by the part of the trip that they are for), PackA0 .. PackB3
(conversions), and pointer arithmetic.  Matrix instruction -1 means the head of the loop.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from rota.check import is_int
from rota.errors import Concern, EmissionError

T = TypeVar("T")

_NAME = re.compile(r"_get_schedule_\d+x\d+x\d+_(?P<element>[A-Za-z0-9]+?)(?:_(?P<variant>\w+))?")
_STREAM = re.compile(r"SYNC|SNOP|LCC|GR(Inc)?[AB]|L[RW]S[AB]|LR[AB]\d|Pack[AB]\d")
_LAYOUTS = ("TN", "NN", "NT", "TT")
_THREE_BUFFERS = "DPLB"  # the kernel's option for one more buffer
_MOST = 4_096  # entries of a stream: no loop has more instructions


class StoredElement(NamedTuple):
    """The bits of a stored element, and the matrix instructions for one product of two fragments."""

    bits: int
    products: int = 1


ELEMENTS: Mapping[str, StoredElement] = {
    "16bit": StoredElement(16),
    "8bit": StoredElement(8),
    "TF32": StoredElement(32, products=3),
}
"""By the word in a table's name; TF32 is three products of bfloat16 halves."""


class Stream(NamedTuple):
    """A kind of instruction: for each code path the matrix instructions after which they are issued."""

    name: str
    paths: tuple[tuple[int, ...], ...]

    def of(self, path: int) -> tuple[int, ...]:
        """The positions in one code path; a stream that is written once is the same in all."""
        return self.paths[path if len(self.paths) > 1 else 0]


class SyncOp(NamedTuple):
    """A barrier, or a wait: how many LDS ops and how many loads may stay in flight."""

    barrier: bool = False
    lds: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleTable:
    """A checked table.  `no_load_shift` and `last_shift` are subtracted from memory waits in the last two tiles."""

    name: str
    element: str
    variant: str
    layout: str
    tile: tuple[int, int, int]
    mfma: tuple[int, int, int]
    waves: tuple[int, int]
    mfmas: int
    code_paths: int
    streams: tuple[Stream, ...]
    syncs: tuple[SyncOp, ...]
    no_load_shift: int
    last_shift: int
    reorder: tuple[int, ...]
    swapped: bool
    transposing_reads: bool
    vector_widths: tuple[int, int]

    @property
    def title(self) -> str:
        """Tile, element and layout, as 256x96x64_16bit_TN."""
        variant = f"_{self.variant}" if self.variant else ""
        return f"{'x'.join(map(str, self.tile))}_{self.element}{variant}_{self.layout}"

    @property
    def stored(self) -> StoredElement:
        return ELEMENTS[self.element]

    @property
    def fragments(self) -> tuple[int, int]:
        """Rows and columns of fragments that one wave multiplies."""
        down, across = (self.tile[n] // (self.mfma[n] * self.waves[n]) for n in range(2))
        return down, across

    @property
    def buffers(self) -> int:
        return 3 if self.variant == _THREE_BUFFERS else 2

    @property
    def steps(self) -> int:
        return self.tile[2] // self.mfma[2]

    def stream(self, name: str) -> Stream:
        return next((each for each in self.streams if each.name == name), Stream(name, ((),)))

    @property
    def prefetched(self) -> str:
        """The number of the last LDS reads, which are for the beginning of the next trip."""
        return max(each.name[-1] for each in self.streams if each.name.startswith("LRA"))


def read_table(document: object) -> ScheduleTable:
    """Read a table from a JSON value; raises T302 if it is malformed."""
    fields = _Fields(document)
    name = fields.read_typed(str, "name")
    found = _NAME.fullmatch(name)
    if found is None or found["element"] not in ELEMENTS:
        raise refuse_malformed(name, f"its name has none of the known elements, {', '.join(ELEMENTS)}")
    code_paths = fields.number("code_paths", least=1)
    table = ScheduleTable(
        name=name,
        element=found["element"],
        variant=found["variant"] or "",
        layout=fields.read_typed(str, "layout"),
        tile=_three(fields.numbers("tile", 3)),
        mfma=_three(fields.numbers("mfma", 4)),
        waves=_two(fields.numbers("waves", 2)),
        mfmas=fields.number("num_mfma", least=1),
        code_paths=code_paths,
        streams=tuple(fields.streams(code_paths)),
        syncs=tuple(fields.syncs()),
        no_load_shift=fields.number("nglshift"),
        last_shift=fields.number("nllshift"),
        reorder=fields.numbers("mfma_reorder", None, least=0),
        swapped=fields.read_typed(bool, "swap_gr"),
        transposing_reads=fields.read_typed(bool, "useLDSTr"),
        vector_widths=_two(fields.numbers("vw", 2)),
    )
    for wrong in _find_inconsistencies(table):
        raise refuse_malformed(table.title, wrong)
    return table


def refuse_malformed(name: str, wrong: str) -> EmissionError:
    return EmissionError.of("T302", f"{name}: {wrong}", concerns=(Concern(label=name, role="schedule table"),))


def refuse_reading(table: ScheduleTable, why: str) -> EmissionError:
    """The T303 error about a well-formed table that no rule says how to read."""
    concerns = (Concern(label=table.title, role="schedule table"),)
    return EmissionError.of("T303", f"{table.title}: {why}", concerns=concerns)


def _find_inconsistencies(table: ScheduleTable) -> Iterator[str]:
    if table.layout not in _LAYOUTS:
        yield f"the layout is {table.layout!r}; expected one of {', '.join(_LAYOUTS)}"
    sides = (table.mfma[0] * table.waves[0], table.mfma[1] * table.waves[1], table.mfma[2])
    for extent, part in zip(table.tile, sides, strict=True):
        if extent % part:
            yield f"a tile of {extent} is not a multiple of {part}"
    down, across = table.fragments
    expected = down * across * table.steps * table.stored.products
    if table.mfmas != expected:
        yield f"it has {table.mfmas} matrix instructions; its tile needs {expected}"
    if table.reorder and sorted(table.reorder) != list(range(table.mfmas)):
        yield "mfma_reorder is no permutation of its matrix instructions"
    yield from _find_misplaced(table)


def _find_misplaced(table: ScheduleTable) -> Iterator[str]:
    if not table.stream("LRA0").of(0):
        yield "it has no reads LRA0"
    for each in table.streams:
        lengths = sorted({len(path) for path in each.paths})
        if len(lengths) > 1:
            yield f"{each.name} has {' and '.join(map(str, lengths))} instructions, depending on the path"
        last = max((position for path in each.paths for position in path), default=0)
        if last >= table.mfmas:
            yield f"{each.name} is issued after {last}; the loop has {table.mfmas} matrix instructions"
    syncs = table.stream("SYNC")
    if len(syncs.of(0)) != len(table.syncs):
        yield f"SYNC has {len(syncs.of(0))} positions for {len(table.syncs)} waits and barriers"
    if len(syncs.paths) > 1:
        yield "SYNC differs between code paths, but its contents do not"


class _Fields:
    def __init__(self, document: object) -> None:
        if not isinstance(document, dict):
            raise refuse_malformed("a schedule table", f"it is {type(document).__name__}; expected an object")
        self.document = document
        self.name = str(document.get("name", "a schedule table"))[:80]

    def _wrong(self, key: str, value: object, expected: str) -> EmissionError:
        return refuse_malformed(self.name, f"{key} is {str(value)[:60]!r}; expected {expected}")

    def _value(self, key: str) -> object:
        if key not in self.document:
            raise refuse_malformed(self.name, f"it has no field {key}")
        return self.document[key]

    def read_typed(self, kind: type[T], key: str) -> T:
        value = self._value(key)
        if not isinstance(value, kind):
            raise self._wrong(key, value, {str: "text", bool: "true or false", dict: "an object"}[kind])
        return value

    def number(self, key: str, *, least: int = 0) -> int:
        return self._number(key, self._value(key), least)

    def _number(self, key: str, value: object, least: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or not is_int(value) or not least <= value <= _MOST:
            raise self._wrong(key, value, f"an integer from {least} to {_MOST}")
        return value

    def _list(self, key: str, value: object) -> Sequence[object]:
        if not isinstance(value, list) or len(value) > _MOST:
            raise self._wrong(key, value, f"a list of at most {_MOST}")
        return value

    def numbers(self, key: str, count: int | None, *, least: int = 1) -> tuple[int, ...]:
        value = self._list(key, self._value(key))
        if count is not None and len(value) != count:
            raise self._wrong(key, value, f"{count} integers")
        return tuple(self._number(key, each, least) for each in value)

    def streams(self, code_paths: int) -> Iterator[Stream]:
        for name, paths in self.read_typed(dict, "streams").items():
            if not _STREAM.fullmatch(str(name)):
                raise refuse_malformed(self.name, f"it has an unknown stream {str(name)[:40]!r}")
            listed = self._list(name, paths)
            if len(listed) not in (1, code_paths):
                raise self._wrong(name, paths, f"one list, or one for each of {code_paths} code paths")
            yield Stream(name, tuple(tuple(self._number(name, at, -1) for at in self._list(name, p)) for p in listed))

    def syncs(self) -> Iterator[SyncOp]:
        for each in self._list("sync", self._value("sync")):
            op = each.get("op") if isinstance(each, dict) else None
            if op == "s_barrier":
                yield SyncOp(barrier=True)
                continue
            if not isinstance(each, dict) or op != "s_waitcnt":
                raise self._wrong("sync", each, "s_waitcnt or s_barrier")
            lds, memory, stores = (self._number(key, each.get(key), -1) for key in ("dscnt", "vlcnt", "vscnt"))
            if stores >= 0:
                raise self._wrong("vscnt", stores, "-1: the loop stores nothing")
            yield SyncOp(lds=None if lds < 0 else lds, memory=None if memory < 0 else memory)


def _two(numbers: tuple[int, ...]) -> tuple[int, int]:
    return numbers[0], numbers[1]


def _three(numbers: tuple[int, ...]) -> tuple[int, int, int]:
    return numbers[0], numbers[1], numbers[2]


MFMA = "MFMA"
"""The stream name of matrix instructions."""


class Body(enum.Enum):
    """Which tile is computed: one of the loop, the last but one, or the last."""

    LOOP = "loop"
    NO_LOADS = "no loads"
    LAST = "last"


class TableInstruction(NamedTuple):
    """Instruction `number` of a stream, after matrix instruction `after`; a wait or barrier has its `sync`."""

    stream: str
    number: int
    after: int
    sync: SyncOp | None = None


def iterate_instructions(table: ScheduleTable, path: int, body: Body) -> Iterator[TableInstruction]:
    """The instructions of a code path for a tile, in order; after the loop all waves take the first path."""
    if body is not Body.LOOP:
        path = 0
    left_out = set[str]()
    if body is not Body.LOOP:
        left_out |= {"GRA", "GRB", "GRIncA", "GRIncB", "LWSA", "LWSB", "LCC"}
    if body is Body.LAST:
        left_out |= {f"LRA{table.prefetched}", f"LRB{table.prefetched}", "LRSA", "LRSB"}
    following: dict[int, list[TableInstruction]] = {}
    for stream in table.streams:
        if stream.name in left_out:
            continue
        for index, after in enumerate(stream.of(path)):
            sync = _shift(table.syncs[index], table, body) if stream.name == "SYNC" else None
            following.setdefault(after, []).append(TableInstruction(stream.name, index, after, sync))
    yield from following.get(-1, ())
    for number in range(table.mfmas):
        yield TableInstruction(MFMA, number, number)
        yield from following.get(number, ())


def _shift(sync: SyncOp, table: ScheduleTable, body: Body) -> SyncOp:
    if sync.memory is None or body is Body.LOOP:
        return sync
    shift = table.no_load_shift if body is Body.NO_LOADS else table.last_shift
    return sync._replace(memory=max(sync.memory - shift, 0))
