"""What an emitter is asked and refuses, and the text that all share: names, comments, waits, barriers, the contract.

An emitter is a function from an `Emission` to text. It reads the `program`; the workgroup's tile and the shape of the
ops are there too. The contract is what the source rests on.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Concern, EmissionError, several
from rota.pipeline.geometry import KernelGeometry
from rota.program.entry import WORKGROUP, Entry
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import LoweredProgram
from rota.program.machine import Machine
from rota.targets.architecture import Architecture, WaitEncoding

if TYPE_CHECKING:
    from rota.pipeline.geometry import TileShape


class Described(Protocol):
    """What a schedule is for, beyond what it says itself."""

    def geometry(self) -> KernelGeometry:
        """The workgroup's tile and the matrix instruction."""
        ...

    def shape(self) -> TileShape | None:
        """What the ops of a body declared in tiles represent."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """A schedule to be emitted; `variant` are the words that tell its settings from others of the same kernel.

    `options` are what the caller asks of the form, as words.
    """

    compiled: CompiledSchedule
    kernel: Described
    variant: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def program(self) -> LoweredProgram:
        """What is to be written."""
        return self.compiled.lowered

    @property
    def named(self) -> CompiledSchedule:
        """The schedule under a name of its own, so that different settings of a kernel can be one program."""
        return replace(self.compiled, name="_".join([self.compiled.name, *self.variant]))


Emitter: TypeAlias = Callable[[Emission], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A wait before the data instruction of that number in its phase, for all but `count` on its counter.

    With `at_barrier` it is before the first barrier that comes before that instruction.
    """

    phase: Phase
    before: int
    counter: str
    count: int
    at_barrier: bool = False


SKELETON = "`rota emit KERNEL --form skeleton` writes the order of any loop, with calls of your own functions"
GEOMETRY = (
    "give the geometry and the waves that it was made for: `--set geometry.BM=128 --set geometry.BN=128 --set waves=4`,"
    " or KernelGeometry(BM=128, BN=128) and waves=4 in Python; `rota kernels KERNEL` lists all fields"
)
WHOLE_SLICES = "`--set instructions=false` schedules a shipped GEMM in whole slices instead of single instructions"
ATTENTION = (
    "attention forward is a whole kernel of its own: `rota emit rota.kernels.attention:HEAD_128 --form kernel`, or a"
    " ForwardShape of yours"
)
_DOCUMENT = "`rota emit KERNEL --form json` writes any schedule, for an emitter of your own"

Evidence = Iterable[tuple[str, str | int]]


@dataclass(frozen=True, slots=True)
class EmissionRefusal:
    """Makes the errors of one code; `instead` says what works for whatever is refused so."""

    code: str
    instead: tuple[str, ...] = ()

    def __call__(
        self, message: str, *, concerns: Iterable[Concern] = (), evidence: Evidence = (), fixes: Iterable[str] = ()
    ) -> EmissionError:
        """The error, to be raised."""
        fixes = (*fixes, *self.instead)
        return EmissionError.of(self.code, message, concerns=tuple(concerns), evidence=tuple(evidence), fixes=fixes)


unfit = EmissionRefusal("T203", (SKELETON,))
"""Nothing is wrong with the schedule, but no GEMM kernel is written for it."""
no_product = EmissionRefusal("T206", (SKELETON,))
"""The schedule has the parts of a GEMM and computes something else."""
refuse_count = EmissionRefusal("T202")
"""An op says of itself what its instructions don't do."""
no_word = EmissionRefusal("T207", (_DOCUMENT,))
"""Source can't say what the program does, in a GEMM or in a skeleton."""


def no_gemm_op(op: object, kind: OpKind, *concerns: Concern) -> EmissionError:
    """An op is of a kind for which a GEMM has no instruction."""
    article = "an" if kind.word[0] in "aeiou" else "a"
    return unfit(
        f"{op} is {article} {kind.word} op: the full form writes GEMMs, which are loads to LDS, LDS reads and matrix "
        "ops",
        concerns=concerns,
        evidence=(("what it does", kind.does),),
    )


_WORD = re.compile(r"@([\w.]+)@")


class Template:
    """Fixed text in a file of a package: sections, each after a line `==== NAME`.

    In a line `@word@` or `@word.attribute@` is replaced by what is given for it.  Where it is the whole line, that may
    be any number of lines, which take over its indentation.
    """

    def __init__(self, package: str, file: str) -> None:
        self._package, self._file = package, file

    @cached_property
    def _sections(self) -> dict[str, list[str]]:
        text = files(self._package).joinpath("templates", self._file).read_text(encoding="utf-8")
        sections = (section.splitlines() for section in text.removeprefix("==== ").split("\n==== "))
        return {name: lines for name, *lines in sections}

    def lines(self, section: str, **words: object) -> Iterator[str]:
        """The section with its words replaced; one that isn't given is a `KeyError`."""

        def find(match: re.Match[str]) -> object:
            name, *attributes = match[1].split(".")
            return reduce(getattr, attributes, words[name])

        for line in self._sections[section]:
            whole = _WORD.fullmatch(line.strip())
            if whole and not isinstance(found := find(whole), str) and isinstance(found, Iterable):
                indent = line[: line.index("@")]
                yield from (f"{indent}{each}" for each in found)
            else:
                yield _WORD.sub(lambda match: str(find(match)), line)


WORDS = Template("rota.emit", "words.hip.txt")
"""What several kernels in HIP share."""

# Where a schedule is in the machine code of a whole kernel.
#
# A DMA sets m0 anew before it uses it, so that these have no effect.

FIRST_MARK = 0x524F5401
LAST_MARK = 0x524F5402


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*_?")  # the standard keeps a leading _ and any __ for itself
_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq linux main unix""".split()  # noqa: SIM905  # a list literal would take a line each
)


def identifier(name: str, taken: Collection[str] = ()) -> str:
    """`name`, if it is a plain C++ identifier that neither a keyword nor the source itself takes."""
    if not _PLAIN.fullmatch(name) or name in _KEYWORDS or name in taken:
        why = "the source itself has that name" if name in taken else "C++ keeps it" if name in _KEYWORDS else ""
        raise EmissionError.of(
            "T201",
            f"{name!r} can't be a name in C++ source" + (f": {why}" if why else ""),
            evidence=(("expected", "a letter, then letters, digits and single underscores"),),
            fixes=(f"rename the loop, op, value or schedule, for example to {_plain(name)}",),
        )
    return name


def _plain(name: str) -> str:
    near = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    return near if _PLAIN.fullmatch(near) and near not in _KEYWORDS and near != name else f"my_{near}".rstrip("_")


def comment(text: str) -> str:
    """`text` after two slashes, if all of it stays there: no line ends, and none is joined to the next."""
    if not text.isprintable() or "\\" in text:
        raise EmissionError.of(
            "T201",
            f"{text!r:.80} can't be in a comment of C++ source: the compiler would read on after it",
            evidence=(("expected", "one line of printable characters, without a backslash"),),
            fixes=("take line breaks and backslashes out of names, reasons and the machine's name",),
        )
    return f"// {text}"


def remark(text: str) -> str:
    """`text` as a comment of Python or Mojo."""
    return "# " + comment(text).removeprefix("// ")


class FunctionCall(NamedTuple):
    """A function, the numbers it is specialised for, their names, and its K-tile."""

    name: str
    numbers: tuple[int, ...]
    called: tuple[str, ...]
    k_tile: int

    @property
    def declaration(self) -> str:
        template = f"template <{', '.join(f'int {each}' for each in self.called)}> " if self.called else ""
        return f"{template}void {self.name}(int k);"

    def text(self, base: str) -> str:
        """The call, where K-tiles count from `base`."""
        numbers = f"template {self.name}<{', '.join(map(str, self.numbers))}>" if self.numbers else self.name
        if not base:
            return f"ops.{numbers}({self.k_tile});"
        sign = "-" if self.k_tile < 0 else "+"
        return f"ops.{numbers}({f'{base} {sign} {abs(self.k_tile)}' if self.k_tile else base});"


# Waits, barriers and hints as source.
#
# Every statement ends in a fence that keeps the compiler from moving anything over it.

_GROUP_MASKS = (0x100, 0x200, 0x020, 0x008)  # by InstructionGroup: LLVM, SchedGroupMask in AMDGPUIGroupLP


class _Field(NamedTuple):
    """A counter's field of s_waitcnt: its word, and the count that means no wait."""

    word: str
    no_wait: int


_COUNTERS: Mapping[WaitEncoding, Mapping[str, _Field]] = {
    WaitEncoding.SPLIT_VMCNT: {"vmcnt": _Field("WAIT_VM", 63), "lgkmcnt": _Field("WAIT_LGKM", 15)}
}
"""What source has words for."""


Language = Literal["hip", "gluon", "flydsl", "mojo"]


class _Words(NamedTuple):
    """How an op is written in each language; a kernel in Mojo walks a table, in which a word is a tag."""

    hip: str
    gluon: str
    flydsl: str
    mojo: str


_WAIT = "ROTA_{word}({count})", 'gl.inline_asm("s_waitcnt {counter}({count})"); fence()'
_PRIORITY = "ROTA_PRIORITY({count})", 'gl.inline_asm("s_setprio {count}"); fence()'
_HINT = "__builtin_amdgcn_sched_group_barrier({mask:#x}, {count}, 0); ROTA_FENCE"
_SYNC: Mapping[OpKind, _Words] = {
    OpKind.WAIT: _Words(*_WAIT, "rocdl.s_waitcnt({counter}={count}); fence()", "{word}"),
    OpKind.BARRIER: _Words("ROTA_BARRIER", "gl.barrier(); fence()", "rocdl.s_barrier(); fence()", "BARRIER"),
    OpKind.PRIORITY: _Words(*_PRIORITY, "rocdl.s_setprio({count}); fence()", "SET_PRIO"),
    OpKind.FENCE: _Words("ROTA_FENCE", "fence()", "fence()", "SCHEDULE_BARRIER"),
    OpKind.HINT: _Words(_HINT, "fence()", "fence()", "SCHED_GROUP_BARRIER"),
}
"""Each kind of op that moves no data."""
_ALONE = {
    "hip": "if (wave_group == {role}) {{ ROTA_BARRIER }}",
    "flydsl": "if wave_group == {role}:\n    rocdl.s_barrier()\nfence()",
}
"""A barrier of one wave group alone."""


def check_words(program: LoweredProgram) -> None:
    """A machine, counter, barrier or role for which there are no words is refused."""
    machine = program.machine
    fields = _fields(machine)
    for counter in machine.counters:
        if counter.name not in fields:
            raise no_word(
                f"{machine.name} counts on {counter.name}, for which source has no wait",
                evidence=(("known counters", ", ".join(fields)),),
            )
    for entry in program.entries:
        _check_kind(entry)
        _check_meeting(entry)
        _check_role(program, entry)


def _fields(machine: Machine) -> Mapping[str, _Field]:
    """The counters' fields of s_waitcnt, where the machine says how it is encoded."""
    encoding = machine.wait_encoding if isinstance(machine, Architecture) else None
    if encoding is None:
        raise no_word(
            f"no source is written for {machine.name} ({machine.arch}), which doesn't state how its waits are encoded",
            evidence=(("architecture", machine.arch), ("known", "; ".join(each.value for each in _COUNTERS))),
        )
    return _COUNTERS[encoding]


def is_alone(program: LoweredProgram, entry: Entry) -> bool:
    """True if some role doesn't execute it."""
    return not all(entry.executed_by(role) for role in range(len(program.roles)))


def _check_kind(entry: Entry) -> None:
    """The effect was proved, but the op is written: they must agree."""
    if entry.op.kind is not entry.effect.kind:
        raise no_word(
            f"{entry.op} is written as one kind of op and does another",
            concerns=(entry.concern(),),
            evidence=(("written as", entry.op.kind.does), ("does", entry.effect.kind.does)),
        )


def _check_meeting(entry: Entry) -> None:
    """Only the barrier at which all waves arrive and wait at once has a word."""
    arrives, awaits = entry.effect.arrives, entry.effect.awaits
    if entry.op.kind is OpKind.BARRIER and not arrives == awaits == WORKGROUP:
        split = "arrives at" if awaits is None else "waits at" if arrives is None else "meets at"
        raise no_word(
            f"{entry.op} {split} the barrier {arrives or awaits!r}; source has a word only for the barrier at which "
            "all waves of a workgroup arrive and wait at once",
            concerns=(entry.concern(),),
            evidence=(("arrives", arrives or "nowhere"), ("waits", awaits or "nowhere")),
        )


def _check_role(program: LoweredProgram, entry: Entry) -> None:
    """Two groups of as many waves each may differ in barriers of their own, as staggering has them."""
    if not is_alone(program, entry) or entry.roles is None:
        return
    sizes = {role.waves for role in program.roles}
    if entry.op.kind is not OpKind.BARRIER or len(program.roles) != 2 or len(sizes) > 1 or not entry.roles:
        names = ", ".join(program.roles[role].name for role in entry.roles) or "no role"
        raise no_word(
            f"{entry.op} is executed by {names} alone; source is written for waves that all do the same, or for two "
            "groups of equal size, one a barrier after the other",
            concerns=(entry.concern(),),
            evidence=tuple(
                (role.name, "waves not stated" if role.waves is None else several(role.waves, "wave"))
                for role in program.roles
            ),
        )


def apart_text(states: int) -> str:
    return f"ROTA_APART({states})"


def sync_text(program: LoweredProgram, entry: Entry, language: Language = "hip") -> str:
    """The statement, of a line or more; a barrier of one wave group alone asks the variable `wave_group`."""
    effect, kind = entry.effect, entry.op.kind
    if kind is OpKind.BARRIER and entry.roles and is_alone(program, entry):
        return _ALONE[language].format(role=entry.roles[0])
    field = _fields(program.machine)[effect.counter or ""] if kind is OpKind.WAIT else None
    if field is not None and effect.wait_value >= field.no_wait:
        raise no_word(
            f"{entry.op} can't be written: from {field.no_wait} on, the field of {effect.counter} doesn't wait",
            concerns=(entry.concern(),),
            evidence=(("count", effect.wait_value), ("largest that waits", field.no_wait - 1)),
        )
    text: str = getattr(_SYNC[kind], language)
    return text.format(
        word=field and field.word,
        counter=effect.counter,
        count=effect.wait_value,
        mask=_GROUP_MASKS[effect.tokens % len(_GROUP_MASKS)],
    )


Reasons = dict[tuple[Phase, int], str]


def sync_reasons(compiled: CompiledSchedule) -> Reasons:
    """By phase and slot: a repair's own reason, and for other waits what they complete."""
    reasons = _complete(compiled.lowered)
    reasons.update({(repair.phase, repair.slot): repair.reason for repair in compiled.repairs})
    return reasons


def _find_reason(program: LoweredProgram, entry: Entry, reasons: Reasons) -> str:
    """Why an entry is there, if it synchronises; slots of `reasons` are not those of staggering's own barriers."""
    if is_alone(program, entry):
        late = entry.phase is Phase.PROLOGUE
        return "group 1 falls one barrier behind group 0" if late else "group 0 lets group 1 catch up"
    if entry.op.kind is OpKind.BARRIER:
        return reasons.get((entry.phase, entry.time_slot), "the schedule's own")
    return reasons.get((entry.phase, entry.time_slot), "")


def describe_entry(program: LoweredProgram, entry: Entry, reasons: Reasons) -> str:
    """What a comment says of an entry: its number in its phase, its op, and why it is there if it synchronises."""
    why = _find_reason(program, entry, reasons) if entry.op.is_framework else ""
    return f"{entry.phase.at(entry.time_slot)} {entry.op}" + (f": {why}" if why else "")


def _complete(program: LoweredProgram) -> Reasons:
    """Replay one wave; the second trip's waits count, since they see what the first trip leaves."""
    pending: defaultdict[str, deque[Entry]] = defaultdict(deque)
    reasons: Reasons = {}
    for phase in (Phase.PROLOGUE, Phase.KERNEL, Phase.KERNEL, Phase.EPILOGUE):
        for entry in program.phase(phase):
            effect = entry.effect
            if effect.counter is None:
                continue
            queue = pending[effect.counter]
            if effect.kind is not OpKind.WAIT:
                queue.extend([entry] * effect.tokens)
                continue
            last: Entry | None = None
            while len(queue) > effect.wait_value:
                last = queue.popleft()
            reasons[phase, entry.time_slot] = (
                f"{last.op} ({last.phase.at(last.time_slot)}) and older are over"
                if last
                else "all it could wait for is over already"
            )
    return reasons


def contract(compiled: CompiledSchedule) -> Iterator[str]:
    """What was added to a schedule that wasn't proved, the first line of the certificate, then every assumption."""
    if compiled.certificate is None:
        yield "// The schedule is not proved."
        return
    for finding in compiled.findings:
        if finding.code == "W104":
            yield f"// {finding.message[0].upper()}{finding.message[1:]}:"
            yield from (f"//   {end.role} {end.label}" for end in finding.concerns)
    yield f"// The schedule is {str(compiled.certificate).splitlines()[0]}, if"
    yield from (f"//   {text}" for text in compiled.certificate.assumptions)
