"""Errors as data: takes facts about a mistake, gives a `Finding` and, when work can't continue, an exception.

The exception tree (every one carries the findings that caused it)::

    RotaError
    ├── DeclarationError    D   an op, a config or a target is malformed
    ├── GraphError          G   the dependency graph is malformed
    ├── OrderError          O   no order was found, or a scheduler returned a wrong one
    ├── ProgramError        P W B   blocks, phases, waits or barriers can't be built
    ├── ProofError          R V B L   the proof of a schedule fails
    ├── EmissionError       T   a schedule can't be written as source, or read from a document
    ├── ToolchainError      T   a compiler is missing or refuses its input
    ├── IsaError            I   machine code can't be read, or does what the machine forbids
    ├── MeasureError        M   a whole problem can't be predicted, or measured runs can't be used
    └── TuneError           S   a library can't be tuned: its space, its shapes, its store or its workers

Code families: D declare, G graph, O order, P program and phases, W waits, B barriers, R races, V values,
L limits (registers, LDS, counters), T toolchain, I machine code, M measurements and whole problems, S spaces and stores
of a tuned library.  `CODES` lists every code with its meaning.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from textwrap import shorten
from types import MappingProxyType
from typing import NamedTuple, Self

from rota.markup import card, lines
from rota.printing import WIDTH

CODES: Mapping[str, str] = MappingProxyType(
    {
        "D101": "a kernel op's tag lies outside 0..127, the range that kernels own",
        "D102": "a field has a value of the wrong type or outside its range",
        "D103": "the target's cost model has no entry for an op's tag",
        "D104": "a body, block list or edge list holds something that is not of its element type",
        "D105": "a name (strategy, scheduler, field, kernel, machine) is not known",
        "D106": "stages and partitions don't fit together",
        "D107": "an op names a stage or a channel that the pipeline doesn't have",
        "D108": "a loop's value or op is declared twice, or a value has the wrong number of writers",
        "D109": "a schedule doesn't say how many instructions its ops represent",
        "D110": "a wait counts ops whose number of instructions isn't stated",
        "D111": "an op reads or writes a value in a place that its kind of op can't reach",
        "D113": "a loop has more ops, values or instructions than rota accepts",
        "D114": "a machine doesn't state a fact that is needed",
        "D115": "an op has no role, so that nothing says what it does",
        "G101": "an edge points outside the body",
        "G102": "an op depends on itself within one iteration",
        "G103": "ops depend on each other in a cycle within one iteration",
        "G104": "an edge has a negative loop distance",
        "G105": "an op uses a resource that the problem doesn't have",
        "O101": "a scheduler returned something that is not an order of the body's ops",
        "O102": "a scheduler returned an order that breaks a dependency or a budget",
        "O103": "a dependency points backward across partitions that are kept apart",
        "O201": "no order fits the VGPR budget",
        "O202": "no order keeps to the load limit between two computes",
        "O203": "no order satisfies all constraints together",
        "O204": "the time limit ended the search before any order was found",
        "O301": "no schedule at this initiation interval",
        "O302": "no schedule for staggered wave groups",
        "P101": "the number of computes doesn't equal the number of blocks",
        "P102": "a load, fragment or compute would be lost or duplicated",
        "P103": "a fragment reads a stage that belongs neither to its partition nor to a rotation",
        "P104": "no load fetches a tile ahead",
        "P105": "some partitions complete another partition's stage and others don't",
        "P106": "a block holds more loads than max_globals allows",
        "P107": "a load overwrites a tile that a later block of its partition still reads",
        "P108": "a hook has no effect in this mode and would be dropped",
        "P109": "a knob has no effect on this schedule",
        "P110": "a bootstrap fragment has no prefetch that fills its tile",
        "P111": "explicit blocks don't match the program's blocks",
        "P112": "the single-buffer body lacks an op that its phases need",
        "P113": "a block issues its loads and fragments in a different order from the body",
        "P114": "max_globals moves a load to another block",
        "P115": "a hook issues ops in a different order from the body",
        "P116": "a load fills staging registers that no store takes to LDS",
        "P117": "minimal barriers leave the loop without a barrier",
        "P118": "an op whose effect the proof doesn't follow is issued against a dependency of its own",
        "W101": "a first block's lgkm wait may leave that block's own fragments in flight",
        "W102": "a repair was not shown to be the smallest before its search ended",
        "W103": "a program whose roles differ can't be repaired",
        "W104": "source was written with waits or barriers that the schedule as given lacks",
        "R101": "two loads of one wave into one tile are in flight at once",
        "R102": "a tile is read before every wave's part of it has landed",
        "R103": "a tile is overwritten before every wave has finished reading it",
        "R104": "an op uses registers whose load no planned wait covers",
        "R105": "an op writes registers while an earlier load into them may still land",
        "V101": "a compute multiplies operands of different K-tiles",
        "V102": "a K-tile is accumulated twice",
        "V103": "a K-tile is never accumulated",
        "V104": "an op reads what nothing has written",
        "V105": "a K-tile beyond the end is accumulated",
        "V106": "an op reads the wrong version of a value",
        "V107": "an op is executed twice, or never, for some iteration",
        "V108": "a certificate is about another schedule",
        "V109": "a compute belongs to no cell of the declared grid",
        "V110": "an entry differs from the op that it represents, or an operand holds the wrong block",
        "V111": "the proof did not terminate within its limit",
        "V112": "after the loop the last version of a carried value is gone",
        "B101": "roles arrive and wait different numbers of times at a barrier",
        "B102": "an op is not executed by exactly the roles that it is for",
        "B103": "a role waits at a barrier for an arrival that comes too late",
        "B104": "an op reads registers that another role writes",
        "L101": "a wait's count is encoded as no wait at all",
        "L102": "more memory ops are in flight than their counter can hold",
        "L103": "the tiles don't fit in LDS",
        "L104": "the registers don't fit in a lane's register file",
        "L105": "a workgroup has more waves than the machine runs together",
        "L106": "an op moves more bytes per lane and instruction than the machine can",
        "L107": "one iteration takes longer than any loop that can be planned",
        "L108": "more bytes are written into a tile than it holds",
        "L109": "a matrix instruction has too few registers for an operand, its scales or its result",
        "L110": "an op is of a kind for which the machine has no instruction",
        "T101": "no toolchain for the target was found",
        "T102": "the compiler refused the source",
        "T103": "a code object can't be read",
        "T104": "a code object holds no kernel",
        "T201": "a name can't be used in source",
        "T202": "what an op states is not what is emitted for it",
        "T203": "a schedule and a geometry don't make a kernel that rota can write",
        "T204": "an exchange document is malformed",
        "T206": "a schedule of GEMM ops computes something other than C = A x B^T",
        "T207": "emitted source can't express a program's machine, barriers or roles",
        "T208": "a schedule can't be written as a document, since nothing could derive it again",
        "T209": "a form of emission has no such setting, or settings that can't go together",
        "T301": "a package that an output needs is not installed",
        "T302": "a table of somebody else's schedule is malformed",
        "T303": "a table of somebody else's schedule holds something that no rule says how to read",
        "T304": "no loop of a kernel can be lifted from its machine code",
        "T305": "a program that was lifted from machine code doesn't say what it computes",
        "I101": "a listing doesn't show the instructions asked for",
        "I102": "the interpreter doesn't know an instruction",
        "I103": "an instruction uses a register that a memory op in flight still holds",
        "I104": "an instruction follows another with fewer wait states than a rule asks for",
        "I105": "a memory access lies outside every buffer, or outside LDS",
        "I106": "LDS is read or written while a write to it is in flight",
        "I107": "a launch doesn't match its kernel",
        "I108": "a wave doesn't end",
        "I109": "LDS accesses of two waves are not separated by a wait and a barrier",
        "I110": "the machine code's result is not the product of its inputs",
        "I111": "a code object is for an unknown architecture, or for a different one than expected",
        "I112": "the disassembler doesn't know words of a kernel's code",
        "I113": "which vector register an operand is depends on the path, or can't be followed",
        "I114": "an instruction uses a vector register before s_wait_alu covers it",
        "I121": "waves of a workgroup don't meet at the same barriers",
        "I122": "the outputs of a launch depend on the order in which waves run",
        "I123": "an output of a launch is not what is expected",
        "I131": "a wave goes where the interpreter can't follow it",
        "I132": "a kernel computes floats in a mode that the interpreter doesn't",
        "I201": "machine code and schedule can't be matched",
        "I202": "the machine code's order is not the schedule's",
        "I203": "an instruction works on a different tile, register or accumulator than its entry",
        "I204": "a wait in the machine code is weaker than the schedule's, or missing",
        "I205": "a barrier of the schedule is missing in the machine code, or there is an extra one",
        "I206": "the compiler spilled registers to memory",
        "I207": "a kernel takes a different amount of LDS or more registers than the schedule allows",
        "I208": "the compiler added a wait, or made one stronger",
        "I209": "a kernel descriptor doesn't match the notes or the instructions",
        "I210": "a barrier of one wave group is executed by different waves than the schedule's",
        "I301": "LDS is read where nothing was written",
        "I302": "accesses of global memory by two waves are not separated by a wait and a barrier",
        "I303": "nothing orders accesses of global memory by two workgroups",
        "I304": "two waves or workgroups write the same value to one place, in no order",
        "I305": "a hand-over of data between workgroups lacks a piece of its protocol",
        "I401": "the proof of machine code reaches something that it doesn't know",
        "I402": "the budget of a proof of machine code is used up",
        "I403": "a load to LDS is in flight when its wave ends",
        "I501": "bits of a number are lost before it becomes an address",
        "I502": "nothing keeps an access inside of the bytes that its pointer leads to",
        "I503": "nothing keeps the bytes apart that two workgroups access",
        "I601": "an LDS access takes longer than it would with its words spread over the banks",
        "I602": "a loop accesses private memory, as spilled registers do",
        "I603": "a loop copies between VGPRs and AGPRs",
        "I604": "a few registers or bytes of LDS fewer would let more waves run",
        "I605": "a wait is stronger than the proof needs",
        "I606": "a barrier orders nothing that the proof needs",
        "I607": "an instruction sets a priority without effect",
        "I608": "a loop accesses global memory in pieces that are too small, or too far apart",
        "I609": "a build is worse than an earlier one",
        "I610": "no better order of a loop is handed over",
        "M101": "a kernel is not a GEMM whose whole time could be predicted",
        "M102": "a device or a kernel doesn't multiply elements of a type",
        "M201": "a file of measured runs is malformed or truncated",
        "M202": "measured times are not in the unit that their column states",
        "M203": "runs were measured on a different device",
        "M204": "measured runs are too few, or not about one kernel",
        "M205": "a profile is not known, or is about another device or type",
        "M206": "the results of a benchmark are about other kernels",
        "M207": "a kernel left other results on a GPU than the one that it is compared with",
        "M301": "an instruction trace can't be read, or doesn't show the schedule's loop",
        "S101": "a space to be searched is malformed",
        "S102": "no configuration of a space can be a kernel on the device",
        "S103": "a file of problem shapes is malformed",
        "S201": "a store can't be read or written",
        "S202": "a store is damaged, or is not a store",
        "S203": "another process is writing to the store",
        "S301": "the process that computed a point crashed",
        "S302": "a point took more memory than it was allowed",
        "S303": "a point took longer than it was allowed",
        "S304": "a worker's rota is not the one that asked it",
        "S305": "workers end without a result",
        "S401": "no kernel was proved for some shapes, or nothing was tuned yet",
    }
)


class Severity(enum.Enum):
    """How bad a finding is."""

    ERROR = "error"  # the result is wrong or missing
    WARNING = "warning"  # suspicious by structure alone; the proof decides
    NOTE = "note"  # right, but worth knowing: a knob without effect, a full counter


class SourceLine(NamedTuple):
    """Where the author declared something; `text` is the line itself, if somebody has read it."""

    file: str
    line: int
    text: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """One end of a finding: an op, entry, edge or field, its place, and where the author wrote it.

    `index` numbers an op of the body, or, with a `phase`, an entry of that phase. `place` is shown instead of a number:
    the address of an instruction.
    """

    label: str
    index: int | None = None
    role: str = ""
    source: SourceLine | None = None
    phase: str = ""
    place: str = ""

    @property
    def number(self) -> str:
        """`#5` for an op of the body, `kernel[5]` for an entry of a phase, `0x1a40`; empty without a number."""
        if self.place or self.index is None:
            return self.place
        return f"{self.phase}[{self.index}]" if self.phase else f"#{self.index}"

    def __str__(self) -> str:
        place = f"  --> {self.source}   " if self.source else "  --> "
        number = f"{self.number} " if self.number else ""
        text = self.source.text if self.source else ""
        quoted = f"\n        {text}" if text not in {"", self.label} else ""
        return f"{place}{number}{self.label}" + (f"   {self.role}" if self.role else "") + quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """An interleaving that turns a race into a wrong result, for the executor to replay.

    Between any two barriers the wave of group `ahead` runs first and its memory ops land at once; the wave of group
    `behind` runs last and its memory ops land as late as its waits allow.
    """

    kind: str
    trip_count: int
    ahead: int
    behind: int

    def __str__(self) -> str:
        ahead, behind = "one wave", "another"
        if self.ahead != self.behind:
            ahead, behind = f"a wave of group {self.ahead}", f"one of group {self.behind}"
        return (
            f"at trip count {self.trip_count}, {ahead} runs ahead to every barrier, "
            f"{behind} stays behind with its memory ops in flight"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Finding:
    """One error, warning or note as data: what, between which ends, shown by which numbers, and how to fix it."""

    code: str = field(kw_only=False)
    message: str = field(kw_only=False)
    severity: Severity = Severity.ERROR
    concerns: tuple[Concern, ...] = ()
    evidence: tuple[tuple[str, str | int], ...] = ()
    fixes: tuple[str, ...] = ()
    witness: Witness | None = None

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise AssertionError(f"{self.code} is not in CODES: every code has a meaning, a page and a test")

    def __repr__(self) -> str:
        return f"<{shorten(f'{self.severity.value}[{self.code}]: {self.message}', WIDTH - 5, placeholder='...')}>"

    def __str__(self) -> str:
        told = [f"{self.severity.value}[{self.code}]: {self.message}"]
        told += [str(concern) for concern in self.concerns]
        told += [f"   {name}: {value}" for name, value in self.evidence]
        if self.witness is not None:
            told.append(f"   witness: {self.witness}")
        if self.fixes:
            told.append("help:")
            told += [f"   {number}. {fix}" for number, fix in enumerate(self.fixes, 1)]
        return "\n".join(told)

    def _repr_html_(self) -> str:
        head, _, rest = str(self).partition("\n")
        return card(head, lines(rest), tone=self.severity.value)


class RotaError(Exception):
    """Base of all errors that rota raises on purpose; `findings` holds the causes, worst first."""

    def __init__(self, *findings: Finding) -> None:
        self.findings: tuple[Finding, ...] = findings
        super().__init__("\n\n".join(str(finding) for finding in findings))

    @classmethod
    def of(
        cls,
        code: str,
        message: str,
        *,
        concerns: tuple[Concern, ...] = (),
        evidence: tuple[tuple[str, str | int], ...] = (),
        fixes: tuple[str, ...] = (),
    ) -> Self:
        """An error with a single finding."""
        return cls(Finding(code, message, concerns=concerns, evidence=evidence, fixes=fixes))


class DeclarationError(RotaError):
    """An op, a config or a target is malformed."""


class GraphError(RotaError):
    """The dependency graph is malformed."""


class OrderError(RotaError):
    """No order was found, or a scheduler returned a wrong one."""


class ProgramError(RotaError):
    """Blocks, phases, waits or barriers can't be built."""


class ProofError(RotaError):
    """The proof of a schedule fails."""


class EmissionError(RotaError):
    """A schedule can't be written as source, or read from an exchange document."""


class ToolchainError(RotaError):
    """A compiler is missing or refuses its input."""


class IsaError(RotaError):
    """Machine code can't be read, or does what the machine forbids."""


class MeasureError(RotaError):
    """A whole problem can't be predicted, or measured runs can't be used."""


class TuneError(RotaError):
    """A library can't be tuned: its space, its shapes, its store or its workers."""


def did_you_mean(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Fix texts for a misspelt name: the nearest known one, and the whole list; empty where no name is known."""
    names = sorted(known)
    if not names:
        return ()
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    guess = (f"did you mean {close[0]!r}?",) if close else ()
    return (*guess, f"known: {', '.join(names)}")


def several(count: int, word: str) -> str:
    """A number and its noun, in the plural if needed: 1 entry, 2 entries."""
    if count == 1:
        return f"1 {word}"
    return f"{count:,} {word[:-1]}ies" if word.endswith("ry") else f"{count:,} {word}s"
