"""What all devices of an architecture share: instruction formats, wait states, encodings, LDS banks.

A code object names its architecture and no device; this is all that can be known of where it runs.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from types import MappingProxyType

from rota.check import bad_field, check_elements, check_types
from rota.errors import DeclarationError
from rota.program.machine import Confidence, Fact, Machine

# Wait states that software has to keep.
#
# The hardware doesn't interlock these; a compiler puts `s_nop` where they are short. A number counts the wait
# states between the two instructions: every instruction passes one, `s_nop N` passes N + 1.

SOURCES = MappingProxyType(
    {
        Confidence.DOCUMENTED: "AMD's manual",
        Confidence.COMPILER_MODEL: "LLVM alone",
        Confidence.MEASURED_BY_THIRD_PARTY: "measured",
    }
)
"""Whose rule it is: a finding says so.  The `source` of its fact names the table and the row."""


VECTOR_SLOTS = "vector instructions"
"""What a wait state of later architectures is: only a vector instruction passes one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRule:
    """Wait states between an instruction and a later one.

    `after` and `then` are the classes that the two must be of, or not: "valu", "not dot" (`rota.isa.hazards.spacing`
    has them). If there are `gives` and `takes`, the rule holds where rows that the first one gives are among those that
    the second one takes. `when` adds "same opcode", "other opcode" or "same register" of the hardware. A rule without
    classes is about results of MFMAs: `rota.isa.hazards.wait_states` knows when its number holds.
    """

    name: str
    states: Fact
    after: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    gives: str = ""
    takes: str = ""
    why: str = ""
    when: str = ""


@dataclass(frozen=True, kw_only=True)  # without slots, for what is kept of it
class Hazards:
    """The wait states that software has to keep on an architecture.

    With `by_vectors` the numbers count vector instructions, and nothing else passes one.
    """

    rules: tuple[WaitRule, ...]
    by_vectors: bool = False

    @cached_property
    def _facts(self) -> dict[str, Fact]:
        return {rule.name: rule.states for rule in self.rules}

    @cached_property
    def _hash(self) -> int:
        return hash(self.rules)

    def __hash__(self) -> int:  # rules of pairs are looked up by it
        return self._hash

    def __getitem__(self, name: str) -> Fact:
        return self._facts[name]

    def __contains__(self, name: str) -> bool:
        return name in self._facts


# Matrix instructions that an architecture has.
#
# Shapes and formats are those of the assembler, passes those of LLVM's scheduling model. Layouts, modifiers and
# index sets follow from the form (AMD, CDNA3 ISA manual, "Matrix Arithmetic Instructions", and AMD's matrix
# instruction calculator); what CDNA4 adds is documented by AMD's article on matrix core programming.

_PASSES = "LLVM 22, scheduling model of the matrix pipeline"
_BITS = {"f32": 32, "xf32": 32, "f64": 64, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8}
ANY = "f8f6f4"
"""Instead of a format: each operand's own, by a field of the instruction."""


class Pipe(enum.Enum):
    """Which of three kinds of matrix instruction, as far as wait states tell them apart."""

    __hash__ = object.__hash__  # members are single, and this one is fast

    XDL = "products of up to 16 bits and of xf32"
    SINGLE = "products of float32"
    DOUBLE = "products of float64"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixForm:
    """One matrix instruction: sides, depth and blocks of its product, formats of its factors and of its sum.

    `narrow_passes` are those where neither factor is wider than 6 bits, of instructions that take any format.
    """

    name: str
    rows: int
    columns: int
    depth: int
    blocks: int
    left: str
    right: str
    total: str
    passes: Fact
    narrow_passes: Fact | None = None
    sparse: bool = False
    scaled: bool = False

    @property
    def pipe(self) -> Pipe:
        """Where its wait states come from."""
        return {"f64": Pipe.DOUBLE, "f32": Pipe.SINGLE}.get(self.left, Pipe.XDL)

    @property
    def broadcasts(self) -> bool:
        """True if cbsz and abid give one block of A to several."""
        return self.blocks > 1 and self.pipe is not Pipe.DOUBLE and not self.sparse

    @property
    def permutes(self) -> bool:
        """True if blgp permutes the lanes of B."""
        return self.broadcasts or self.pipe is Pipe.SINGLE


def dense(shape: str, left: str, right: str, passes: int, *, total: str = "f32") -> MatrixForm:
    """An MFMA, by its shape as it is written: 32x32x4_2b."""
    types = left if left == right else f"{left}_{right}"
    if {left, right} <= {"fp8", "bf8"}:
        types = f"{left}_{right}"
    return _form(f"v_mfma_{total}_{shape}_{types}", shape, (left, right, total), passes)


def sparse(shape: str, left: str, right: str, passes: int, *, total: str = "f32") -> MatrixForm:
    """A multiplication whose A has two of four elements."""
    types = left if left == right and left not in {"fp8", "bf8"} else f"{left}_{right}"
    return _form(f"v_smfmac_{total}_{shape}_{types}", shape, (left, right, total), passes, sparse=True)


def any_format(shape: str, passes: int, narrow: int, *, scaled: bool) -> MatrixForm:
    """An MFMA whose fields say what its factors are."""
    name = f"v_mfma_{'scale_' if scaled else ''}f32_{shape}_{ANY}"
    return _form(name, shape, (ANY, ANY, "f32"), passes, narrow=narrow, scaled=scaled)


def _form(
    name: str,
    shape: str,
    kinds: tuple[str, str, str],
    passes: int,
    *,
    narrow: int | None = None,
    sparse: bool = False,
    scaled: bool = False,
) -> MatrixForm:
    sides, _, blocks = shape.partition("_")
    rows, columns, depth = (int(part) for part in sides.split("x"))
    left, right, total = kinds
    return MatrixForm(
        name=name,
        rows=rows,
        columns=columns,
        depth=depth,
        blocks=int(blocks.removesuffix("b") or "1"),
        left=left,
        right=right,
        total=total,
        passes=_passes(passes),
        narrow_passes=None if narrow is None else _passes(narrow),
        sparse=sparse,
        scaled=scaled,
    )


def _passes(count: int) -> Fact:
    return Fact(count, "passes of 4 clocks", Confidence.COMPILER_MODEL, _PASSES)


def _halves(shape: str, passes: int) -> tuple[MatrixForm, ...]:
    return tuple(dense(shape, kind, kind, passes) for kind in ("f16", "bf16"))


def _eighths(shape: str, passes: int) -> tuple[MatrixForm, ...]:
    return tuple(dense(shape, left, right, passes) for left, right in product(("fp8", "bf8"), repeat=2))


def _sparse_all(halves: str, octets: str, passes: int) -> tuple[MatrixForm, ...]:
    return (
        *(sparse(halves, kind, kind, passes) for kind in ("f16", "bf16")),
        sparse(octets, "i8", "i8", passes, total="i32"),
        *(sparse(octets, left, right, passes) for left, right in product(("fp8", "bf8"), repeat=2)),
    )


def list_shared_forms(large_double: int) -> tuple[MatrixForm, ...]:
    """What CDNA3 and CDNA4 have in common; they differ in the passes of the large product of float64."""
    return (
        *(dense(shape, "f32", "f32", passes) for shape, passes in (
            ("32x32x1_2b", 16), ("16x16x1_4b", 8), ("4x4x1_16b", 2), ("32x32x2", 16), ("16x16x4", 8),
        )),
        *(form for shape, passes in (
            ("32x32x4_2b", 16), ("16x16x4_4b", 8), ("4x4x4_16b", 2), ("32x32x8", 8), ("16x16x16", 4),
        ) for form in _halves(shape, passes)),
        *(dense(shape, "i8", "i8", passes, total="i32") for shape, passes in (
            ("32x32x4_2b", 16), ("16x16x4_4b", 8), ("4x4x4_16b", 2), ("32x32x16", 8), ("16x16x32", 4),
        )),
        *_eighths("32x32x16", 8),
        *_eighths("16x16x32", 4),
        dense("16x16x4", "f64", "f64", large_double, total="f64"),
        dense("4x4x4_4b", "f64", "f64", 4, total="f64"),
        *_sparse_all("16x16x32", "16x16x64", 4),
        *_sparse_all("32x32x16", "32x32x32", 8),
    )  # fmt: skip


CDNA3_FORMS = (
    *list_shared_forms(large_double=8),
    dense("16x16x8", "xf32", "xf32", 4),
    dense("32x32x4", "xf32", "xf32", 8),
)
CDNA4_FORMS = (
    *list_shared_forms(large_double=16),
    *_halves("16x16x32", 4),
    *_halves("32x32x16", 8),
    dense("16x16x64", "i8", "i8", 4, total="i32"),
    dense("32x32x32", "i8", "i8", 8, total="i32"),
    *(any_format("16x16x128", 8, 4, scaled=scaled) for scaled in (False, True)),
    *(any_format("32x32x64", 16, 8, scaled=scaled) for scaled in (False, True)),
    *_sparse_all("16x16x64", "16x16x128", 4),
    *_sparse_all("32x32x32", "32x32x64", 8),
)


Phases = tuple[tuple[int, ...], ...]


class Float8(enum.Enum):
    """What the bits of fp8 and bf8 mean."""

    OCP = "OCP"
    FNUZ = "FNUZ"  # one more in the bias, no infinities, no negative zero


class WaitEncoding(enum.Enum):
    """Which bits of s_waitcnt hold which counter; all ones in a field wait for nothing."""

    SPLIT_VMCNT = "vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8"


class Traffic(enum.Enum):
    """Memory instructions, as far as counters tell them apart."""

    __hash__ = object.__hash__  # members are single, and this one is fast

    LOAD = "vector loads"
    STORE = "vector stores"
    TO_LDS = "loads to LDS"
    LDS = "LDS"
    SCALAR = "scalar memory"
    ASYNC_LOAD = "asynchronous loads to LDS"
    ASYNC_STORE = "asynchronous stores from LDS"
    TENSOR = "tensor copies"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The memory instructions that a wave's counter counts: those that return in the order of issue, and the others.

    A flat instruction counts as vector memory and as LDS, in no order. With `by_kind`, those in order are so only among
    their own kind of traffic. `most_tokens` is what one instruction may add to the counter.
    """

    counter: str
    in_order: frozenset[Traffic]
    in_any_order: frozenset[Traffic] = frozenset()
    by_kind: bool = False
    most_tokens: int = 1

    @property
    def counts(self) -> frozenset[Traffic]:
        return self.in_order | self.in_any_order

    @property
    def lines(self) -> tuple[str, ...]:
        """The orders of return that it counts: one, or one for each kind of traffic."""
        return tuple(sorted({self.line_of(each) for each in self.in_order} or {self.counter}))

    def line_of(self, traffic: Traffic) -> str:
        """By name the order in which such an instruction returns."""
        return f"{self.counter} of {traffic.value}" if self.by_kind else self.counter

    def orders(self, traffic: Traffic) -> bool:
        """True if such an instruction returns after all older ones that the counter counts."""
        return traffic in self.in_order and not (self.by_kind and len(self.in_order) > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Respelling:
    """Two words that a disassembler doesn't know, and how it wants them.

    For each word: the bits to compare, their value, the bits that stay, the bits to set.

    It is for encodings that assemblers write differently where the hardware doesn't look.
    """

    what: str
    masks: tuple[int, int]
    values: tuple[int, int]
    keeps: tuple[int, int]
    sets: tuple[int, int]
    source: str

    def apply(self, words: tuple[int, int]) -> tuple[int, int] | None:
        """The words as the disassembler knows them; None if these are others."""
        if any(word & mask != value for word, mask, value in zip(words, self.masks, self.values, strict=True)):
            return None
        first, second = (word & kept | put for word, kept, put in zip(words, self.keeps, self.sets, strict=True))
        return first, second


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingRules:
    """How LLVM's disassembler reads an architecture whole: its options, and the words to respell first.

    A word of reachable code that it then doesn't know is refused (I112), because everything after it may be invented.
    """

    options: tuple[str, ...]
    respellings: tuple[Respelling, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorLayout:
    """How a kernel descriptor's fields count (LLVM, User Guide for AMDGPU Backend, "Kernel Descriptor").

    Without `scalar_registers` the descriptor says how many there are. `workgroup_ids` says whether workgroup ids follow
    the user SGPRs, `preload_prologue` how many bytes of code hardware skips that preloads arguments.
    """

    vector_granule: int = 8
    scalar_registers: int | None = None
    user_bits: int = 5
    accumulators: bool = True
    workgroup_ids: bool = True
    preload_prologue: int = 256
    float_modes: bool = True  # dx10_clamp and ieee are bits of it; else their bits mean something else
    named_barriers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLayout:
    """Where a buffer resource of 128 bits holds what: its base from bit 0 on, how many records, their stride."""

    base_bits: int = 48
    records_at: int = 64
    records_bits: int = 32
    stride_at: int = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class BankRule:
    """How LDS serves one wave's reads of `read_bytes` a lane, or its `writes`: the lanes of a phase together.

    Each bank gives or takes one register's worth a clock.
    """

    read_bytes: int
    banks: Fact
    phases: Phases
    phases_known: Confidence
    source: str
    writes: bool = False

    def count_turns(self, words: Iterable[int]) -> int:
        """Clocks of a phase whose lanes want these words: a bank serves one a clock, and lanes may share a word."""
        return max(Counter(word % self.banks.value for word in set(words)).values(), default=1)


_NAMEABLE = 256  # vector registers of an operand's bits


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Architecture(Machine):
    """A machine with its instruction set: formats, hazards, how LDS serves reads, and what tools call it.

    `toolchain` is what follows -mcpu= and --offload-arch=, `elf_machine` what the flags of a code object say.
    `transposed_reads` are the LDS reads that transpose, by name; empty where there are none.  `extensions` are the
    vector instructions, matrix ones aside, that not every machine has, `matrix_forms` its matrix instructions.  Without
    a `wait_encoding` no source is written for it.  `d16_kept` is 1 if a load of half a register (d16) leaves the other
    half as it was, 0 if that is lost.  `queues` say which counter counts which memory instructions of machine code.
    `listing` is there if its code can be listed only in a special way.  `lds_nowhere` is the address by which compilers
    keep a lane from accessing LDS, `waves_per_simd` how many waves a SIMD holds at most.  With `signed_lane_offsets` a
    lane's 32 bits beside a scalar base have a sign; with `pairs_repeat_scalars` both halves of a pair of floats take
    the low 32 bits of a scalar.  `memory_model` is the document by which caches are written back and invalidated
    between workgroups; without one, nobody looks at that.
    What is `unmodelled` are rules of the machine that neither proof nor interpreter has yet: both refuse its kernels,
    and name them.  What is `assumed` of them, a verdict says; then the proof refuses the instructions that it knows to
    depend on more.
    """

    toolchain: str
    elf_machine: Fact
    lanes: Fact
    register_bytes: Fact
    d16_kept: Fact
    float8: Float8
    hazards: Hazards
    bank_rules: tuple[BankRule, ...]
    transposed_reads: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    matrix_forms: tuple[MatrixForm, ...] = ()
    wait_encoding: WaitEncoding | None = None
    queues: tuple[Queue, ...] = ()
    descriptor: DescriptorLayout = DescriptorLayout()
    listing: ListingRules | None = None
    resource: ResourceLayout = ResourceLayout()
    signed_lane_offsets: bool = False
    pairs_repeat_scalars: bool = False
    lds_nowhere: Fact | None = None
    waves_per_simd: Fact | None = None
    memory_model: str = ""
    unmodelled: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Not super(): a class with slots is not the one that super() without arguments refers to.
        Machine.__post_init__(self)
        check_types(self, {"toolchain": str, "elf_machine": Fact, "lanes": Fact, "register_bytes": Fact})
        check_types(self, {"d16_kept": Fact, "float8": Float8, "hazards": Hazards})
        lists = {
            "bank_rules": BankRule, "transposed_reads": str, "extensions": str, "matrix_forms": MatrixForm,
            "queues": Queue, "unmodelled": str,
            "assumed": str,
        }  # fmt: skip
        for name, kind in lists.items():
            check_elements(name, getattr(self, name), kind)
        counted = [traffic for queue in self.queues for traffic in queue.counts]
        if len(set(counted)) < len(counted):
            raise bad_field(self, "queues", self.queues, "every instruction on at most one counter")

    @property
    def has_banks(self) -> bool:
        """True if operands name 256 vector registers of more, and a state says which."""
        return not self.descriptor.accumulators and self.vgprs_per_lane.value > _NAMEABLE

    @property
    def vector_rows(self) -> int:
        """How many vector registers a lane has, accumulators included, which are half of them if there are any."""
        return max(self.vgprs_per_lane.value, 2 * _NAMEABLE if self.descriptor.accumulators else 0)

    def queue_of(self, traffic: Traffic) -> Queue:
        """The queue of the counter that counts such instructions."""
        for each in self.queues:
            if traffic in each.counts:
                return each
        raise lacks(self, f"which counter counts {traffic.value}")

    def find_bank_rule(self, size: int, *, writes: bool) -> BankRule | None:
        """How accesses of `size` bytes a lane are served; None if nobody has said so yet."""
        return next((rule for rule in self.bank_rules if (rule.read_bytes, rule.writes) == (size, writes)), None)

    def bank_rule(self, read_bytes: int) -> BankRule:
        rule = self.find_bank_rule(read_bytes, writes=False)
        if rule is not None:
            return rule
        sizes = ", ".join(str(each.read_bytes) for each in self.bank_rules if not each.writes) or "none"
        raise lacks(self, f"how LDS serves reads of {read_bytes} bytes a lane", ("known for bytes a lane", sizes))


def lacks(machine: Machine, fact: str, *evidence: tuple[str, str | int]) -> DeclarationError:
    """The D114 error for a fact that a machine doesn't state."""
    who = machine.name if machine.name == machine.arch else f"{machine.name} ({machine.arch})"
    return DeclarationError.of(
        "D114",
        f"{who} doesn't state {fact}; no other device's number is taken for it",
        evidence=(("machine", machine.name), ("lacks", fact), *evidence),
        fixes=(
            "state it, with its source, in the file of the device (`rota.targets.device.Device`)",
            "take a device that states it; `rota targets` lists them",
        ),
    )


def has_one_wait(machine: Machine) -> bool:
    """True if one instruction waits for all counters, each in its own field; compilers then fuse waits."""
    return isinstance(machine, Architecture) and machine.wait_encoding is not None


def architecture_of(machine: Machine) -> Architecture:
    """The machine itself, if it knows its instruction set."""
    if not isinstance(machine, Architecture):
        raise lacks(machine, "its instruction set")
    return machine
