"""What is asked of an emitter, what an emitter refuses, and the waits it adds or announces.

An emitter is a function from an `Emission` to text. It reads the `program`; the workgroup's tile and the shape of the
ops are there too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.compiled.proved import repaired
from rota.errors import Concern, EmissionError, Finding, Severity
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import LoweredProgram
from rota.sync.repair import Repair

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
_DOCUMENT = "`rota emit KERNEL --form json` writes any schedule, for an emitter of your own"

Evidence = Iterable[tuple[str, str | int]]


def unfit(
    message: str, *, concerns: Iterable[Concern] = (), evidence: Evidence = (), fixes: Iterable[str] = ()
) -> EmissionError:
    """Nothing is wrong with the schedule, but no GEMM kernel is written for it."""
    return _refusal("T203", message, concerns, evidence, (*fixes, SKELETON))


def no_product(
    message: str, *, concerns: Iterable[Concern] = (), evidence: Evidence = (), fixes: Iterable[str] = ()
) -> EmissionError:
    """The schedule has the parts of a GEMM and computes something else."""
    return _refusal("T206", message, concerns, evidence, (*fixes, SKELETON))


def no_gemm_op(op: object, kind: OpKind, *concerns: Concern) -> EmissionError:
    """An op is of a kind for which a GEMM has no instruction."""
    article = "an" if kind.word[0] in "aeiou" else "a"
    return unfit(
        f"{op} is {article} {kind.word} op: the full form writes GEMMs, which are loads to LDS, LDS reads and matrix "
        "ops",
        concerns=concerns,
        evidence=(("what it does", kind.does),),
    )


def refuse_count(
    message: str, *, concerns: Iterable[Concern], evidence: Evidence, fixes: Iterable[str]
) -> EmissionError:
    """An op says of itself what its instructions don't do."""
    return _refusal("T202", message, concerns, evidence, tuple(fixes))


def no_word(message: str, *, concerns: Iterable[Concern] = (), evidence: Evidence = ()) -> EmissionError:
    """Source can't say what the program does, in a GEMM or in a skeleton."""
    return _refusal("T207", message, concerns, evidence, (_DOCUMENT,))


def _refusal(
    code: str, message: str, concerns: Iterable[Concern], evidence: Evidence, fixes: tuple[str, ...]
) -> EmissionError:
    return EmissionError.of(code, message, concerns=tuple(concerns), evidence=tuple(evidence), fixes=fixes)


# Register waits made explicit.
#
# LLVM adds a wait of its own before a register is used while its load is in flight. Planned waits take their place,
# so that the machine code holds no wait which the schedule doesn't.

_Compiled = TypeVar("_Compiled", bound=CompiledSchedule)

_FOUND_BY_THE_PROOF = ("R", "V", "B", "L")


def with_register_waits(compiled: _Compiled) -> _Compiled:
    """The schedule, repaired and proved without help from a compiler; repairs of before keep their reasons."""
    if not compiled.compiler_tracks_registers and compiled.certificate is not None:
        return compiled
    found = tuple(finding for finding in compiled.findings if not finding.code.startswith(_FOUND_BY_THE_PROOF))
    done = repaired(replace(compiled, compiler_tracks_registers=False, repairs=(), findings=found, certificate=None))
    if compiled.certificate is None and done.repairs:
        done = replace(done, findings=(*done.findings, _not_as_given(done.repairs)))
    return replace(done, repairs=tuple(_merge_waits(compiled, done)))


def _not_as_given(repairs: Sequence[Repair]) -> Finding:
    """The source differs from the schedule that was given, which nobody proved: its reader must know."""
    return Finding(
        "W104",
        "the schedule as given is not proved; waits or barriers were added before it was written",
        severity=Severity.WARNING,
        concerns=tuple(Concern(label=str(each.op), role=each.phase.at(each.slot)) for each in repairs),
        evidence=(("added or strengthened", len(repairs)),),
        fixes=("verify() says what the schedule as given lacks",),
    )


def _merge_waits(before: CompiledSchedule, after: CompiledSchedule) -> list[Repair]:
    new = {(repair.phase, repair.slot): repair for repair in after.repairs}
    merged = dict(new)
    for phase in Phase:
        added = {slot for (where, slot), repair in new.items() if where is phase and repair.before is None}
        kept = [slot for slot in range(len(after.phase(phase))) if slot not in added]
        for repair in before.repairs:
            if repair.phase is phase:
                slot = kept[repair.slot]
                again = new.get((phase, slot))
                merged[phase, slot] = _twice(repair, again) if again else replace(repair, slot=slot)
    order = list(Phase)
    return sorted(merged.values(), key=lambda repair: (order.index(repair.phase), repair.slot))


def _twice(first: Repair, again: Repair) -> Repair:
    """Two changes of one entry as one: from the first state to the last."""
    return replace(again, before=first.before, count_before=first.count_before)
