"""What is asked of an emitter, what an emitter refuses, and the waits that a compiler is known to add.

An emitter is a function from an `Emission` to text. It reads the `program`; the workgroup's tile and the shape of the
ops are there too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeAlias

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Concern, EmissionError
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import LoweredProgram

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
