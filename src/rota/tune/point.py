"""One loop to be scheduled, the key of its content, and the row that it becomes.

The key is a digest of everything that the schedule and its clocks depend on: the loop, the device's facts, the
settings, the seed, rota's own code and the solver's version. M, N and K are not among them: one proof covers every trip
count. Nor are the facts about whole problems: they belong to the formula.
"""

from __future__ import annotations

import enum
import hashlib
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from rota.check import bad_field, check_ints, check_seconds, check_types, is_int
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import DeclarationError, Finding, RotaError, Severity
from rota.kernels.gemm import GemmShape
from rota.pipeline.geometry import KernelGeometry, check_waves
from rota.program.kinds import OpKind
from rota.program.loop_spec import LoopSpec
from rota.solver.limits import LARGEST_SEED
from rota.solver.memory import SETTING, canonical, code_digest, remembering, solver_version
from rota.targets.cdna import element_bytes_named
from rota.targets.device import Device, rates_of
from rota.targets.registry import ARCHITECTURES, BUILT_IN, device_named
from rota.version import __version__

if TYPE_CHECKING:
    from rota.emit.whole.whole_options import WholeGemm
    from rota.values.compiled_loop import CompiledLoop

FORMAT = 1
_ENDINGS = {"bf16": ("_bf16",), "fp16": ("_f16",), "fp8": ("_f8f6f4", "_fp8_fp8")}
_WIDEST_READ = 16  # bytes that a lane gets with one LDS read
_DECIDE = ("compiled", "cycles", "emit", "order", "predict", "program", "solver", "sync", "targets", "values", "verify")
"""The folders whose code decides what becomes of a loop."""


class ShapeOfLoop(Protocol):
    """What a maker of one's own gives: `GemmShape` is one."""

    @property
    def geometry(self) -> KernelGeometry: ...

    def loop(self, *, instructions: bool = True) -> LoopSpec:
        """The loop in single instructions, or in quadrants."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopPoint:
    """Everything that a loop's schedule depends on, as numbers and words.

    `mma` is the side of the matrix instruction, whose depth the device decides; `depth` the most copies of a tile in
    LDS; `slack` how many slots late a load may be; None leaves both to rota.  `instructions` makes every instruction an
    op, else a quadrant is one.  `effort` bounds the search, in seconds as `rota.solver.limits` counts them.  `make`
    names a function, as package.module:function, that gives the shape of a loop of one's own for a point.
    """

    device: str
    element: str = "bf16"
    tile: tuple[int, int, int] = (256, 256, 64)
    waves: int = 8
    mma: int = 16
    depth: int | None = None
    stagger: bool = False
    fewest_barriers: bool = False
    slack: int | None = None
    instructions: bool = True
    seed: int = 0
    effort: float = 60.0
    make: str = ""

    def __post_init__(self) -> None:
        check_types(self, {"device": str, "element": str, "tile": tuple, "make": str})
        check_types(self, {"stagger": bool, "fewest_barriers": bool, "instructions": bool})
        check_waves(self, self.waves)
        check_ints(self, ("mma",), least=1)
        check_ints(self, ("seed",), most=LARGEST_SEED)
        check_seconds(self, "effort", zero=True)
        sides: tuple[object, ...] = self.tile
        if len(sides) != 3 or not all(isinstance(each, int) and is_int(each) and each > 0 for each in sides):
            raise bad_field(self, "tile", self.tile, "three whole numbers above 0, as 256x256x64")
        if self.element not in _ENDINGS:
            raise bad_field(self, "element", self.element, ", ".join(_ENDINGS))
        for name, least in (("depth", 1), ("slack", 0)):
            if getattr(self, name) is not None:
                check_ints(self, (name,), least=least)

    @property
    def name(self) -> str:
        """What tells it from the other points of a space, as part of a kernel's name."""
        words = [self.element, "x".join(map(str, self.tile)), f"w{self.waves}", f"mma{self.mma}"]
        optional = (
            (f"d{self.depth}", self.depth is not None),
            (f"s{self.slack}", self.slack is not None),
            ("stagger", self.stagger),
            ("fewest", self.fewest_barriers),
            ("quadrants", not self.instructions),
            (f"seed{self.seed}", self.seed),
            (self.make.rpartition(":")[2], self.make),
        )
        return "_".join([*words, *(word for word, said in optional if said), self.device.lower()])

    @property
    def target(self) -> Device:
        return device_named(self.device)

    def shape(self) -> ShapeOfLoop:
        if self.make:
            return _maker(self.make)(self)
        device = self.target
        instruction, depth = instruction_of(device, self.element, self.mma)
        size = element_bytes_named(instruction)
        rows, columns, k = self.tile
        operand = self.mma * depth * size // device.lanes.value
        return GemmShape(
            name=self.name,
            instruction=instruction,
            mma=(self.mma, depth),
            rows=rows,
            columns=columns,
            depth=k,
            waves=self.waves,
            element_bytes=size,
            dma_bytes=device.dma_width.value,
            read_bytes=min(_WIDEST_READ, operand),
        )

    def loop(self) -> LoopSpec:
        """What is scheduled; D102 where the numbers don't fit together."""
        return self.shape().loop(instructions=self.instructions)

    def key(self) -> str:
        said = [FORMAT, _facts(self.device), canonical(self.loop()), asdict(self), *versions()]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def data(self) -> dict[str, Any]:
        return asdict(self)


def point_of(data: Mapping[str, Any]) -> LoopPoint:
    own = {each.name for each in fields(LoopPoint)}
    values = {name: value for name, value in data.items() if name in own}
    return LoopPoint(**{**values, "tile": tuple(values["tile"])})


def instruction_of(device: Device, element: str, side: int) -> tuple[str, int]:
    """The matrix instruction of a device for an element and a side, and its depth; L110 if it has none."""
    known = device.rates.mfma_passes
    for ending in _ENDINGS[element]:
        found = [name for name in known if f"_{side}x{side}x" in name and name.endswith(ending) and "scale" not in name]
        if found:
            return found[0], int(found[0].split(f"_{side}x{side}x")[1].split("_")[0])
    raise DeclarationError.of(
        "L110",
        f"{device.name} has no matrix instruction of {side}x{side} for {element}",
        evidence=(("known", ", ".join(known)),),
        fixes=("mma = 16 or 32; bf16, fp16 or fp8",),
    )


def versions() -> tuple[str, str, str]:
    """rota's version, the digest of the code that decides about loops (facts are in a key by value), the solver's."""
    facts = {place.partition(":")[0].rpartition(".")[2] for place in (*BUILT_IN.values(), *ARCHITECTURES.values())}
    return __version__, code_digest(_DECIDE, frozenset(facts)), solver_version()


@cache
def _facts(device: str) -> str:
    """A device without what is known about whole problems."""
    return json.dumps(canonical(replace(device_named(device), problems=None)), sort_keys=True)


def _maker(place: str) -> Callable[[LoopPoint], ShapeOfLoop]:
    module, _, name = place.partition(":")
    try:
        return cast("Callable[[LoopPoint], ShapeOfLoop]", getattr(importlib.import_module(module), name))
    except (ImportError, AttributeError, ValueError) as error:
        raise DeclarationError.of(
            "D105",
            f"no function {place!r:.80} makes loops: {error}",
            fixes=("make = package.module:function, of a module that can be imported wherever workers run",),
        ) from error


class PointStatus(enum.Enum):
    PROVED = "proved"  # scheduled, with a certificate; of an audit: the machine code is the schedule
    REFUSED = "refused"  # rota ended in a finding
    FAILED = "failed"  # the process ended without an answer: a crash, memory, time


class JobKind(enum.Enum):
    SOLVE = "solve"
    AUDIT = "audit"


class PointJob(NamedTuple):
    """A point to be computed; an audit is told what the search has found."""

    key: str
    kind: JobKind
    point: LoopPoint
    answer: str = ""

    @property
    def trade(self) -> str:
        return __name__

    def find_mismatch(self) -> str:
        """The key that a search has here, if it isn't the one that was asked for."""
        own = self.point.key() if self.kind is JobKind.SOLVE else self.key
        return "" if own == self.key else own

    def line(self) -> str:
        said = {"key": self.key, "kind": self.kind.value, "point": self.point.data(), "answer": self.answer}
        return json.dumps(said) + "\n"

    def end(self, status: PointStatus, code: str, message: str, **more: Any) -> PointRow:  # its fields
        return PointRow(
            key=self.key, kind=self.kind, point=self.point, status=status, code=code, message=message, **more
        )

    def compute(self) -> PointRow:
        """The row; only what isn't rota's own finding escapes."""
        started = perf_counter()
        try:
            if self.kind is JobKind.SOLVE:
                facts, answer = _solve(self.point)
                code, message = "", ""
            else:
                facts, answer = _audit(self.point, self.answer), ""
                code, message = facts.pop("code"), facts.pop("message")
            status = PointStatus.REFUSED if code else PointStatus.PROVED
        except RotaError as error:
            worst = error.findings[0]
            facts, answer, status, code, message = {}, "", PointStatus.REFUSED, worst.code, worst.message
        return self.end(status, code, message, facts=facts, answer=answer, seconds=perf_counter() - started)

    def fail(self, code: str, message: str, **more: Any) -> PointRow:  # fields of the row
        return self.end(PointStatus.FAILED, code, message.strip(), **more)


@cache
def make_ready() -> None:
    """Loads what every job needs."""
    import rota.emit.whole.whole_kernel
    import rota.order.modulo.scheduler
    import rota.predict.predict_problem
    import rota.values.compile_loop  # noqa: F401  # for the jobs
    from rota.solver.cp_sat import make_ready as make_solver_ready

    make_solver_ready()


def job_of(line: str) -> PointJob:
    said = json.loads(line)
    return PointJob(said["key"], JobKind(said["kind"]), point_of(said["point"]), said["answer"])


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRow:
    """One row; a failure is one, too. `facts` are numbers of what was proved, or the limits that a failure met."""

    key: str
    kind: JobKind
    point: LoopPoint
    status: PointStatus
    code: str = ""
    message: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    answer: str = ""  # what the search found, from which the schedule is made and proved again without a search
    seconds: float = 0.0
    attempts: int = 1

    @property
    def finding(self) -> Finding | None:
        return Finding(self.code, f"{self.point.name}: {self.message}") if self.code else None

    def line(self) -> str:
        return json.dumps(asdict(self) | {"kind": self.kind.value, "status": self.status.value}) + "\n"

    def after(self, attempts: int) -> PointRow:
        return replace(self, attempts=attempts)


def row_of(line: str) -> PointRow:
    return make_row(json.loads(line))


def make_row(said: Mapping[str, Any]) -> PointRow:
    kind, status, point = JobKind(said["kind"]), PointStatus(said["status"]), point_of(said["point"])
    return PointRow(**{**said, "kind": kind, "status": status, "point": point})


_AUDITED_BY = ("audit", "emit", "isa")


def _solve(point: LoopPoint) -> tuple[dict[str, Any], str]:
    from rota.emit.whole.whole_kernel import emit_whole
    from rota.predict.predict_problem import tiled_gemm

    with tempfile.TemporaryDirectory() as folder, keep_searches_in(Path(folder)):
        compiled = schedule_of(point)
        answer = {file.stem: json.loads(file.read_text()) for file in Path(folder).glob("*.json")}
    gemm = tiled_gemm(compiled, point.tile)
    certificate, found = compiled.certificate, compiled.modulo
    if not (certificate and found):
        raise AssertionError(f"{point.name} was given back without a proof")
    emit_whole(compiled, point.shape().geometry, whole_of())  # what can't be written may not win
    slot = rates_of(compiled.machine).clocks_per_slot.value
    facts = {
        "loop_clocks": gemm.loop_clocks,
        "matrix_clocks": gemm.matrix_clocks,
        "interval": found.ii * slot,
        "least": found.certificate.optimal,
        "certificate": str(certificate).splitlines()[0],
        "lds_bytes": compiled.lds_bytes,
        "registers": compiled.registers,
        "barriers": sum(entry.op.kind is OpKind.BARRIER for entry in compiled.kernel),
        "stages": compiled.placement.stages,
        "unroll": compiled.trip_tiles[0],
        "tiles_outside": compiled.trip_tiles[1],
        "schedule": digest_of(compiled),
    }
    return facts, json.dumps(answer)


def schedule_of(point: LoopPoint) -> CompiledLoop:
    from rota.order.modulo.scheduler import ModuloScheduler
    from rota.values.compile_loop import compile_loop

    return compile_loop(
        point.loop(),
        point.target,
        stagger=point.stagger,
        fewest_barriers=point.fewest_barriers,
        most_copies=point.depth,
        slack=point.slack,
        scheduler=ModuloScheduler(time_limit=point.effort, seed=point.seed),
    )


def schedule_again(point: LoopPoint, answer: str) -> CompiledLoop:
    """The same from what the search found, checked and proved like a new one; searched for where that doesn't hold."""
    with tempfile.TemporaryDirectory() as folder:
        for name, found in (json.loads(answer) if answer else {}).items():
            (Path(folder) / f"{name}.json").write_text(json.dumps(found))
        with keep_searches_in(Path(folder)):
            return schedule_of(point)


def digest_of(compiled: CompiledSchedule) -> str:
    """Of the entries in their order: two points with the same digest are one kernel, but for its name."""
    listed = [str(entry.op) for phase in (compiled.prologue, compiled.kernel, compiled.epilogue) for entry in phase]
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]


@contextmanager
def keep_searches_in(folder: Path) -> Iterator[None]:
    """Searches keep and recall what they find in a folder; the setting is the process's, as the memory asks for it."""
    before = os.environ.get(SETTING)
    os.environ[SETTING] = str(folder)
    try:
        with remembering():
            yield
    finally:
        if before is None:
            del os.environ[SETTING]
        else:
            os.environ[SETTING] = before


def audit_key(key: str, toolchain: str) -> str:
    """Of the audit of a point by a compiler: another compiler or another audit is another key."""
    return hashlib.sha256(json.dumps([key, toolchain, code_digest(_AUDITED_BY)]).encode()).hexdigest()


def _audit(point: LoopPoint, answer: str) -> dict[str, Any]:
    """Emitted whole, compiled, and compared with the schedule; the first finding is why it may not win."""
    from rota.audit.audit import audit_gemm
    from rota.emit.whole.whole_kernel import emit_whole, whole_name
    from rota.isa.binary.toolchain import find_toolchain

    compiled, asked, geometry = schedule_again(point, answer), whole_of(), point.shape().geometry
    code = find_toolchain().compile(emit_whole(compiled, geometry, asked), point.target.toolchain)
    found = audit_gemm(compiled, geometry, code, kernel=whole_name(compiled, asked))
    facts = {"code": "", "message": "", "toolchain": found.toolchain, "vgprs": found.facts.vgprs}
    if found.findings:
        errors = [each for each in found.findings if each.severity is Severity.ERROR]
        first = (errors or found.findings)[0]
        facts |= {"code": first.code, "message": first.message, "severity": found.findings[0].severity.value}
    return facts


def whole_of(xcds: int | None = None, group: int | None = None) -> WholeGemm:
    """The whole kernel that is audited and emitted: D in bf16, workgroups in the order of a swizzle."""
    from rota.emit.whole.whole_options import Output, WholeGemm

    plain = WholeGemm(output=Output.BF16)
    return plain if xcds is None or group is None else WholeGemm(output=Output.BF16, xcds=xcds, group=group)
