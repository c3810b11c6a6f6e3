"""What a benchmark runs: code objects, launches with their arguments as bytes, and which of them are compared.

A plan is data, written as a folder: the host program in C++ that runs it on a GPU, the plan that it reads, the code
objects, and what buffers hold.  `rota.bench.bench_results` reads what that program measured, and knows by the plan's
digest that it belongs to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, NamedTuple
from zlib import crc32

from rota.check import check_ints
from rota.errors import Concern, IsaError, several
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import Argument, KernelFacts
from rota.isa.launch.kernarg import Pointer, Triple, Value, build_kernarg, check_sizes, named_arguments
from rota.isa.launch.loaded_kernel import HostArguments, check_description, read_triple
from rota.targets.registry import architecture_named

ROUNDS = 60
"""In each round every candidate is timed once, cold and warm."""
FLUSH_BYTES = 512 << 20
"""Twice the 256 MB of the Infinity Cache (AMD CDNA 3 architecture, white paper); larger is safe, smaller is not."""
_SEED = 20_011
_ALIGNMENT = 16  # of memory that NumPy allocates: a view that starts elsewhere keeps its place within it
_DIGITS = 16  # of a digest


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchObject:
    """A code object, under the name of its file."""

    name: str
    code: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.code).hexdigest()[:_DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnElements:
    """Elements that the host program draws: each is one of the `codes`, of `width` bytes."""

    width: int
    codes: tuple[bytes, ...]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchBuffer:
    """Memory on the device, and what it holds before each launch: data, drawn elements, or zeros.

    What is left in `scratch` memory is nobody's business: it is neither compared nor restored.  `skew` is the place of
    the first byte within 16.
    """

    size: int
    data: bytes | None = None
    drawn: DrawnElements | None = None
    scratch: bool = False
    skew: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerSlot:
    """A pointer among the arguments: where it is, and the buffer and byte that it leads to."""

    offset: int
    buffer: int
    displacement: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLaunch:
    """One launch of a kernel; `segment` is what the caller passes, with zeros where pointers are."""

    obj: int  # number of the object
    kernel: str
    grid: Triple  # workgroups
    block: Triple
    dynamic_lds: int
    segment: bytes
    pointers: tuple[PointerSlot, ...]

    def __str__(self) -> str:
        grid, block = ("x".join(map(str, each)) for each in (self.grid, self.block))
        return f"grid {grid} block {block} dynamic LDS {self.dynamic_lds}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchCandidate:
    """What is timed under one name: a launch, or several one after the other."""

    name: str
    launches: tuple[KernelLaunch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchCase:
    """Candidates that compute the same from the same buffers; the first one is what the others are compared with."""

    name: str
    buffers: tuple[BenchBuffer, ...]
    candidates: tuple[BenchCandidate, ...]


class BenchKernel(NamedTuple):
    """A kernel that a candidate launches: the digest of its object, and its name."""

    case: str
    candidate: str
    obj: str
    kernel: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchSubjects:
    """What a benchmark is about: which kernels of which objects are compared, under which names.

    Launches and data are not part of it: results name the launch that they are of.
    """

    arch: str
    kernels: tuple[BenchKernel, ...]

    @property
    def digest(self) -> str:
        said = repr((self.arch, [tuple(each) for each in self.kernels]))
        return hashlib.sha256(said.encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPlan:
    """All that the host program runs; `flush_bytes` are written between cold launches."""

    arch: str
    objects: tuple[BenchObject, ...]
    cases: tuple[BenchCase, ...]
    rounds: int = ROUNDS
    flush_bytes: int = FLUSH_BYTES
    seed: int = _SEED

    def __post_init__(self) -> None:
        check_ints(self, ("rounds", "flush_bytes"), least=1, most=1 << 40)
        check_ints(self, ("seed",), most=(1 << 64) - 1)

    @property
    def subjects(self) -> BenchSubjects:
        kernels = (
            BenchKernel(case.name, each.name, self.objects[launch.obj].digest, launch.kernel)
            for case in self.cases for each in case.candidates for launch in each.launches
        )  # fmt: skip
        return BenchSubjects(arch=self.arch, kernels=tuple(kernels))


BEFORE, AFTER = "before", "after"


def pair_subjects(old: CodeObject, new: CodeObject, name: str) -> BenchSubjects:
    """What `plan_pair` is about, whatever the launch."""
    digests = ((each, BenchObject(name=each, code=code.hsaco).digest) for each, code in ((BEFORE, old), (AFTER, new)))
    return BenchSubjects(
        arch=old.arch, kernels=tuple(BenchKernel(name, each, digest, name) for each, digest in digests)
    )


def plan_pair(old: CodeObject, new: CodeObject, name: str, description: object) -> BenchPlan:
    """A kernel before and after a change, under one launch; raises I107 if HIP can't launch it so."""
    launch, buffers = _plan_launch(old.kernel(name), check_description(description))
    candidates = tuple(
        BenchCandidate(name=each, launches=(replace(launch, obj=number),))
        for number, each in enumerate((BEFORE, AFTER))
    )
    objects = (BenchObject(name=f"{BEFORE}.hsaco", code=old.hsaco), BenchObject(name=f"{AFTER}.hsaco", code=new.hsaco))
    case = BenchCase(name=name, buffers=buffers, candidates=candidates)
    return BenchPlan(arch=old.arch, objects=objects, cases=(case,))


def _plan_launch(facts: KernelFacts, given: Mapping[str, Any]) -> tuple[KernelLaunch, tuple[BenchBuffer, ...]]:
    """The launch by the first object, and the buffers that its pointers lead to."""
    grid, block = read_triple(given.get("grid", 1), "grid"), read_triple(given["block"], "block")
    held = HostArguments.of(facts, given["args"])
    more = int(given.get("dynamic_lds", 0))
    launch = plan_launch(facts, 0, held.values, grid=grid, block=block, dynamic_lds=more)
    if not launch.pointers:
        raise _refuse(facts, "no argument is an array, so nothing would be compared")
    buffers = tuple(
        BenchBuffer(size=data.nbytes, data=data.tobytes() if data.any() else None, skew=region.low % _ALIGNMENT)
        for region, data in zip(held.regions, held.before, strict=True)
    )
    return launch, buffers


def plan_launch(
    facts: KernelFacts, obj: int, values: Sequence[Value], *, grid: Triple, block: Triple, dynamic_lds: int = 0
) -> KernelLaunch:
    """A launch of a kernel of one of the objects; a `Pointer` leads to a buffer of the case.

    HIP's runtime adds the hidden arguments.  It takes each of the others from the place that the metadata says, so that
    it passes nothing to a kernel without them.
    """
    machine = architecture_named(facts.arch)
    if machine is None:
        raise _refuse(facts, f"rota doesn't know {facts.arch}")
    if not named_arguments(facts):
        raise _refuse(facts, f"its metadata doesn't describe its {several(facts.kernarg_bytes, 'byte')} of arguments")
    explicit = _list_explicit(facts)
    if any(each.kind == "dynamic_shared_pointer" for each in explicit):
        raise _refuse(facts, "it takes a pointer to LDS")
    sizes = check_sizes(facts, machine, values, grid=grid, block=block, more_lds=dynamic_lds)
    whole = build_kernarg(facts, values, lambda _: 0, sizes)
    slots = tuple(
        PointerSlot(offset=argument.offset, buffer=value.buffer, displacement=value.offset)
        for argument, value in zip(explicit, values, strict=True)
        if isinstance(value, Pointer)
    )
    return KernelLaunch(
        obj=obj, kernel=facts.name, grid=grid, block=block, dynamic_lds=dynamic_lds, pointers=slots,
        segment=whole[: max((each.offset + each.size for each in explicit), default=0)],
    )  # fmt: skip


def _list_explicit(facts: KernelFacts) -> Sequence[Argument]:
    return [each for each in facts.arguments if not each.hidden]


def _refuse(facts: KernelFacts, why: str) -> IsaError:
    concerns = (Concern(label=facts.name, role="kernel"),)
    message = "a benchmark can't launch the kernel through HIP"
    return IsaError.of("I107", message, concerns=concerns, evidence=(("reason", why),))


_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$+-")
_NO_BYTES = "-"


def write_bench(plan: BenchPlan, *, back: str) -> dict[str, bytes]:
    """The files of the folder by name; `back` is the command that reads the results."""
    found = {each.name: each.code for each in plan.objects}
    for number, case in enumerate(plan.cases):
        found |= {_data_name(number, at): each.data for at, each in enumerate(case.buffers) if each.data is not None}
    found["plan.txt"] = "\n".join([*_list_lines(plan), ""]).encode()
    words = {
        "SUBJECT": ", ".join(case.name for case in plan.cases), "ARCH": plan.arch, "BACK": back,
        "OBJECTS": ", ".join(f"`{each.name}`" for each in plan.objects), "ROUNDS": str(plan.rounds),
        "FLUSH": str(plan.flush_bytes >> 20),
    }  # fmt: skip
    for name in ("bench.cpp", "Makefile", "README.md"):
        text = files("rota.bench").joinpath("host", f"{name}.txt").read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        found[name] = text.encode()
    return found


def _list_lines(plan: BenchPlan) -> Iterator[str]:
    """Each line a word that says what it is, and its values; `end` is the last one, so that a cut file is noticed."""
    yield f"plan {plan.subjects.digest}"
    yield f"arch {plan.arch}"
    yield f"rounds {plan.rounds}"
    yield f"seed {plan.seed}"
    yield f"flush {plan.flush_bytes}"
    for each in plan.objects:
        yield f"object {_encode(each.name)} {len(each.code)} {crc32(each.code):x} {each.digest}"
    for number, case in enumerate(plan.cases):
        yield from _list_case(number, case)
    yield "end"


def _list_case(number: int, case: BenchCase) -> Iterator[str]:
    yield f"case {_encode(case.name)}"
    for at, each in enumerate(case.buffers):
        yield f"buffer {each.size} {each.skew} {_describe_fill(_data_name(number, at), each)}"
    for candidate in case.candidates:
        about = "; ".join(map(str, candidate.launches))
        yield f"candidate {_encode(candidate.name)} {_encode(about)}"
        for launch in candidate.launches:
            yield from _list_launch(launch)


def _describe_fill(name: str, buffer: BenchBuffer) -> str:
    if buffer.scratch:
        return "scratch"
    if buffer.drawn is not None:
        return f"drawn {buffer.drawn.width} {b''.join(buffer.drawn.codes).hex()} {buffer.drawn.seed}"
    return "zeros" if buffer.data is None else f"data {name} {crc32(buffer.data):x}"


def _list_launch(launch: KernelLaunch) -> Iterator[str]:
    sizes = " ".join(map(str, (*launch.grid, *launch.block, launch.dynamic_lds)))
    yield f"launch {launch.obj} {_encode(launch.kernel)} {sizes} {launch.segment.hex() or _NO_BYTES}"
    for each in launch.pointers:
        yield f"pointer {each.offset} {each.buffer} {each.displacement}"


def _data_name(case: int, buffer: int) -> str:
    return f"case{case}_buffer{buffer}.bin"


def _encode(text: str) -> str:
    """One word: other characters as %XX for each byte."""
    return "".join(chr(each) if chr(each) in _PLAIN else f"%{each:02X}" for each in text.encode())
