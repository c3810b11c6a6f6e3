"""Frozen values as JSON, and back.

The fields of the values are the fields of the document; a field at its default is left out. What is read is bounded:
numbers, and with them everything that is later counted out, have a limit.
"""

from __future__ import annotations

import enum
import reprlib
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache, partial
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import DeclarationError, EmissionError, Finding, RotaError, SourceLine, did_you_mean
from rota.pipeline.op import DoubleBufferTag, FrameworkTag, OpDesc, SingleBufferTag
from rota.program.entry import ARRIVE, AWAIT, BARRIER, Op, Origin, Work, wait_op
from rota.program.kinds import KIND_NAMED, OpKind, Phase
from rota.program.lowered import LoweredProgram
from rota.program.machine import Machine
from rota.targets.registry import device_named
from rota.verify.prove import verify
from rota.verify.report import Certificate

if TYPE_CHECKING:
    from rota.sync.repair import Repair

Json = Any  # what json.dumps takes
Hint = Any  # a type as an annotation spells it
Decoded = Any  # a value of such a type
Reader = Callable[[object], Decoded]

LARGEST = 2**31 - 1
"""The largest number that a document may hold, a mask of blocks aside."""

_MASKS = frozenset({"sched_barrier_mask", "drain_lgkm_mask"})  # a bit for each block
_LONGEST_MASK = 4096  # bits
_MOST_ELEMENTS = 50_000  # ten times the entries of the largest programs we know
_MOST_OPS = dict.fromkeys(("body", "ops", "values", "copies", "blocks"), 4096)  # checks compare each with each
_NOT_TOLD = (SourceLine | None, Origin | None, LoweredProgram | None, Work | None, object)
"""Where an op was written, what made it, what a certificate is about, what a wave issues for it, what was declared."""

_TAGS: dict[str, type[enum.IntEnum]] = {
    tags.__name__: tags for tags in (DoubleBufferTag, FrameworkTag, SingleBufferTag)
}


def encode(value: object) -> Json:
    """A value as JSON knows it."""
    if isinstance(value, OpKind):
        return value.word
    if isinstance(value, enum.Enum):
        known = _TAGS.get(type(value).__name__)
        if isinstance(value, enum.IntEnum):  # an author's own tags are plain numbers elsewhere
            return f"{known.__name__}.{value.name}" if known is type(value) else value.value
        return value.name
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: encode(getattr(value, each.name)) for each in _fields_of(type(value)) if _differs(value, each)
        }
    if isinstance(value, tuple):
        return [encode(each) for each in value]
    return value


def decode(value: object, hint: Hint, path: str) -> Decoded:
    """The value of a type that is at a path of the document, or a T204 error that names the path."""
    return _read(_reader(hint), value, path)


def decode_record(value: object, kind: type, path: str, **ready: object) -> Decoded:
    """The same for a value whose known fields can't be given."""
    return _read(partial(_fields(kind, frozenset(ready)), ready=ready), value, path)


def _read(reader: Reader, value: object, path: str) -> Decoded:
    try:
        return reader(value)
    except _WrongError as wrong:
        raise refuse_malformed(path + "".join(reversed(wrong.steps)), wrong.message, **wrong.both) from wrong


def refuse_malformed(path: str, message: str, **both: object) -> EmissionError:
    """The T204 error for a path; `both` are what is there and what should be."""
    told = tuple((name, str(value)) for name, value in both.items())
    return EmissionError.of("T204", f"{path}: {message}", evidence=(("at", path), *told))


@cache
def _fields_of(kind: type) -> tuple[Field[Any], ...]:
    hints = _hints(kind)
    return tuple(each for each in fields(kind) if each.compare or (each.init and hints[each.name] not in _NOT_TOLD))


def _differs(value: object, each: Field[Any]) -> bool:
    return each.default is MISSING or getattr(value, each.name) != each.default


@cache
def _hints(kind: type) -> dict[str, Any]:
    from rota.order.modulo.modulo_problem import ModuloSchedule
    from rota.sync.repair import Repair

    late = {"ModuloSchedule": ModuloSchedule, "Repair": Repair}
    return typing.get_type_hints(kind, localns=late)


class _WrongError(Exception):
    """What is wrong, and the steps to it, the innermost first; each container adds its own on the way out."""

    def __init__(self, message: str, *steps: str, **both: object) -> None:
        super().__init__(message)
        self.message = message
        self.steps = [*steps]
        self.both = both


@cache
def _reader(hint: Hint) -> Reader:
    """Reads values of a type; made once for each type."""
    origin: object = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _one_of(typing.get_args(hint))
    if origin is tuple:
        return _tuple(typing.get_args(hint))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _member(KIND_NAMED if hint is OpKind else hint.__members__)
    if is_dataclass(hint) and isinstance(hint, type):
        return partial(_fields(hint, frozenset()), ready={})
    if isinstance(hint, type) and issubclass(hint, tuple):  # a NamedTuple
        elements = _tuple(tuple(_hints(hint).values()))
        return lambda value: hint(*elements(value))
    return _plain(hint)


def _one_of(hints: tuple[Hint, ...]) -> Reader:
    readers = [_reader(hint) for hint in hints if hint is not type(None)]
    nothing = type(None) in hints

    def read(value: object) -> Decoded:
        if value is None and nothing:
            return None
        failures: list[_WrongError] = []
        for reader in readers:
            try:
                return reader(value)
            except _WrongError as wrong:
                failures.append(wrong)
        raise failures[0]

    return read


def _tuple(hints: tuple[Hint, ...]) -> Reader:
    any_length = len(hints) == 2 and hints[1] is Ellipsis
    readers = [_reader(hint) for hint in hints if hint is not Ellipsis]

    def read(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _WrongError(f"expected a list, got {show_value(value)}")
        _check_length(value, _MOST_ELEMENTS)
        if not any_length and len(value) != len(readers):
            raise _WrongError(f"expected {len(readers)} elements, got {len(value)}")
        found: list[Any] = []
        try:
            for reader, each in zip(repeat(readers[0]) if any_length else readers, value, strict=False):
                found.append(reader(each))
        except _WrongError as wrong:
            wrong.steps.append(f"[{len(found)}]")
            raise
        return tuple(found)

    return read


def _check_length(value: object, most: int) -> None:
    if isinstance(value, list) and len(value) > most:
        raise _WrongError(f"{len(value)} elements are more than a schedule has", most=most)


def _member(members: Mapping[str, enum.Enum]) -> Reader:
    def read(value: object) -> enum.Enum:
        if not isinstance(value, str) or value not in members:
            raise _WrongError(f"expected one of {', '.join(members)}, got {show_value(value)}")
        return members[value]

    return read


@cache
def _fields(kind: type, known: frozenset[str]) -> Callable[..., Decoded]:
    hints, told = _hints(kind), [each for each in _fields_of(kind) if each.name not in known]
    readers = {each.name: _tag if (kind, each.name) == (OpDesc, "tag") else _reader(hints[each.name]) for each in told}
    readers |= {name: _mask for name in readers if name in _MASKS}
    needed = [each.name for each in told if each.default is MISSING]

    def read(value: object, ready: Mapping[str, object]) -> Decoded:
        if not isinstance(value, dict):
            raise _WrongError(f"expected the fields of {kind.__name__}, got {show_value(value)}")
        for name in value:
            if name not in readers:
                raise _WrongError(f"{kind.__name__} has no such field", f".{name:.60}")
        for name in needed:
            if name not in value:
                raise _WrongError(f"{kind.__name__} needs it", f".{name}")
        name, found = "", {}
        try:
            for name, each in value.items():
                _check_length(each, _MOST_OPS.get(name, _MOST_ELEMENTS))
                found[name] = readers[name](each)
        except _WrongError as wrong:
            wrong.steps.append(f".{name}")
            raise
        return _make(kind, {**found, **ready})

    return read


def _make(kind: type, found: dict[str, Any]) -> Decoded:
    try:
        return kind(**found)
    except RotaError as error:
        raise _WrongError(error.findings[0].message) from error
    except AssertionError as error:  # a finding with a code that this version doesn't know
        raise _WrongError(str(error)) from error


def _plain(kind: Hint) -> Reader:
    def read(value: object) -> Decoded:
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise _WrongError(f"expected {getattr(kind, '__name__', kind)}, got {show_value(value)}")
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise _WrongError(f"no text: {error}") from error
        elif isinstance(value, int | float) and not -LARGEST <= value <= LARGEST:
            raise _WrongError(f"{show_value(value)} is more than any schedule has", most=LARGEST)
        return value

    return read


def _tag(value: object) -> int:
    """A tag of rota's own by its name, an author's by its number."""
    if isinstance(value, str):
        tags, _, name = value.partition(".")
        if tags in _TAGS and name in _TAGS[tags].__members__:
            return _TAGS[tags][name]
        raise _WrongError(f"expected a number or the name of a tag, got {show_value(value)}")
    number: int = _reader(int)(value)
    return number


def _mask(value: object) -> int:
    """A bit for each block."""
    if type(value) is not int or value.bit_length() > _LONGEST_MASK:
        raise _WrongError(f"expected a mask of at most {_LONGEST_MASK} bits, got {show_value(value)}")
    return value


def show_value(value: object) -> str:
    return f"{reprlib.repr(value):.60} ({type(value).__name__})"


def disagreement(field: str, message: str) -> EmissionError:
    return refuse_malformed(f"schedule.{field}", message)


def compare_whole(said: object, found: object, field: str, not_said: Container[str] = ()) -> None:
    """Refuse the first part in which a value of the document differs from the one that was derived again."""
    if said == found:
        return
    if is_dataclass(said) and type(said) is type(found):
        for each in fields(said):
            if each.compare and each.name not in not_said:
                compare_whole(getattr(said, each.name), getattr(found, each.name), f"{field}.{each.name}".lstrip("."))
        return
    if isinstance(said, tuple) and isinstance(found, tuple) and len(said) == len(found):
        for number, (one, other) in enumerate(zip(said, found, strict=True)):
            compare_whole(one, other, f"{field}[{number}]")
        return
    message = "is not what follows from the rest"
    if isinstance(said, int | str | None) and isinstance(found, int | str | None):
        message = f"is {said!r:.60}, but {found!r:.60} follows from the rest"
    both = {"in the document": reprlib.repr(said), "derived": reprlib.repr(found)}
    raise refuse_malformed(f"schedule.{field}", message, **both)


@contextmanager
def derive_again(field: str) -> Iterator[None]:
    """What goes wrong while a part is derived again is wrong with what the document says there."""
    try:
        yield
    except EmissionError:
        raise
    except RotaError as error:
        finding = error.findings[0]
        raise disagreement(field, f"{finding.code}, {finding.message}") from error


# The machine of a document.
#
# A device is looked up, not believed: a document names it. How far its counters are trusted is the author's own
# choice.


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSaid:
    """A machine by name; `out_of_order` are the counters among whose ops the proof takes no order for granted."""

    name: str
    arch: str
    out_of_order: tuple[str, ...] = ()


def machine_said(machine: Machine) -> MachineSaid:
    doubted = tuple(counter.name for counter in machine.counters if not counter.in_order)
    return MachineSaid(name=machine.name, arch=machine.arch, out_of_order=doubted)


def machine_meant(said: MachineSaid, machines: Iterable[Machine] | None) -> Machine:
    """The machine of that name, trusted as far as the document does; without `machines`, any that is registered."""
    if machines is None:
        try:
            machine: Machine = device_named(said.name)
        except DeclarationError as error:
            found = error.findings[0]
            raise disagreement("machine.name", "; ".join((found.message, *found.fixes))) from error
    else:
        known = {each.name: each for each in machines}
        if said.name not in known:
            fixes = "; ".join(did_you_mean(said.name, known))
            raise disagreement("machine.name", f"no machine is named {said.name!r:.60}; {fixes}")
        machine = known[said.name]
    names = [counter.name for counter in machine.counters]
    for number, name in enumerate(said.out_of_order):
        if name not in names:
            fixes = "; ".join(did_you_mean(name, names))
            raise disagreement(
                f"machine.out_of_order[{number}]", f"{machine.name} has no counter {name!r:.60}; {fixes}"
            )
        machine = machine.doubting(name)
    compare_whole(said, machine_said(machine), "machine")
    return machine


CLAIMED = "the document"
"""Who says that nothing better was found, where rota hasn't shown it."""

S = TypeVar("S", bound=CompiledSchedule)


class Waits(NamedTuple):
    """The counter that a wait is for, and how many of its tokens it leaves."""

    counter: str
    tokens: int


class DerivedAgain(ABC, Generic[S]):
    """What is derived again of the schedules that one front end makes.

    `optional` are fields that a document may leave out, since they follow from the rest; `structure_codes` those of
    the findings that `structure` finds again.
    """

    result: ClassVar[type[CompiledSchedule]]
    optional: ClassVar[tuple[str, ...]] = ()
    structure_codes: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def rebuild(self, schedule: S) -> S:
        """The schedule with everything that follows from its inputs derived from them again."""

    @abstractmethod
    def waits(self, schedule: S, entry: Any) -> Waits | None:  # noqa: ANN401  # the front end's own entry
        """What an entry waits for, if it is a wait."""

    def structure(self, schedule: S) -> Iterable[Finding]:
        """The findings that the structure alone shows."""
        return ()

    @abstractmethod
    def as_claimed(self, schedule: S) -> S:
        """The claims about its quality that can be shown again; the rest is left open."""


# Do the parts of a schedule agree.
#
# A document repeats itself: entries follow from the loop and its placement, blocks from the order, a certificate
# from the entries. Each could have been changed without the other, and what is emitted later trusts them. So
# everything that rota derives is derived again. What only the author can know is held to the declared limits by the
# proof, and the rest is names and reasons, on which nothing depends.

_BARRIERS = {op.name: op for op in (BARRIER, ARRIVE, AWAIT)}
_OF_THE_PROOF = ("R", "V", "B", "L")
_TAKEN_OFF = "V108"  # says that there is no certificate, and so may be where there is none


def check_agreement(front_end: DerivedAgain[S], schedule: S, terms: Certificate | None, said: Container[str]) -> S:
    """The schedule, with the certificate of a new proof if the document has the terms of one; else the first mistake.

    `said` are the fields that the document has.  It is compared before the proof, which takes entries for granted.
    """
    found = front_end.rebuild(schedule)
    compare_whole(schedule, found, "", [name for name in front_end.optional if name not in said])
    schedule = found
    if terms is None:  # what an earlier proof found is about an earlier schedule
        schedule = replace(schedule, findings=tuple(each for each in schedule.findings if not _of_a_proof(each)))
        _check_findings(front_end, schedule, ())
    else:
        report = verify(schedule)
        if report.certificate is None:
            first = report.errors[0]
            raise disagreement("certificate", f"the proof fails, {first.code}: {first.message}")
        compare_whole(terms, report.certificate, "certificate")
        _check_findings(front_end, schedule, report.findings)
        schedule = replace(schedule, certificate=report.certificate)
    return front_end.as_claimed(schedule)


def rebuild_repairs(front_end: DerivedAgain[S], schedule: S) -> S:
    """The schedule with its repairs as they follow from their entries, except for what was there before.

    That was a weaker wait, or nothing.
    """
    taken: set[tuple[Phase, int]] = set()
    own: list[Repair] = []
    for number, repair in enumerate(schedule.repairs):
        where, entries = f"repairs[{number}]", schedule.phase(repair.phase)
        if not 0 <= repair.slot < len(entries):
            raise disagreement(where, f"nothing is at {repair.phase.at(repair.slot)}")
        if (repair.phase, repair.slot) in taken:
            raise disagreement(where, "another repair has the same place")
        taken.add((repair.phase, repair.slot))
        entry = entries[repair.slot]
        waits = front_end.waits(schedule, entry)
        due: Op | None = wait_op(*waits) if waits else _BARRIERS.get(str(entry.op))
        if due is None or entry.op.kind not in (OpKind.WAIT, OpKind.BARRIER):
            raise disagreement(f"{where}.op", "a repair adds waits and barriers only")
        before = None
        if repair.before is not None:
            if waits is None or repair.count_before <= waits.tokens:
                raise disagreement(f"{where}.before", f"{repair.before} can't have become {repair.op}")
            before = wait_op(waits.counter, repair.count_before)
        own.append(replace(repair, op=due, before=before, count_before=repair.count_before if before else 0))
    return replace(schedule, repairs=tuple(own))


def _check_findings(front_end: DerivedAgain[S], schedule: S, of_the_proof: Iterable[Finding]) -> None:
    """Those of the proof, and of the program's structure, are found again; the words may be another machine's."""
    codes = front_end.structure_codes
    said = _tally((each for each in schedule.findings if each.code in codes or _of_a_proof(each)), codes)
    found = _tally((*front_end.structure(schedule), *of_the_proof), codes)
    compare_whole(said, found, "findings")


def _of_a_proof(finding: Finding) -> bool:
    return finding.code.startswith(_OF_THE_PROOF) and finding.code != _TAKEN_OFF


def _tally(findings: Iterable[Finding], structure: frozenset[str]) -> list[str]:
    # Of what the structure alone shows, the proof decides how bad it is.
    return sorted(
        finding.code if finding.code in structure else f"{finding.severity.value} {finding.code}"
        for finding in findings
    )
