"""What is known of each opcode, once.

Its unit, the roles of its operands, what it reads and writes without naming it, the memory that it accesses, what comes
after it, and what wait states depend on. An opcode's name follows a grammar (AMD, ISA manuals of CDNA3, CDNA4 and
RDNA4, "Instructions"; LLVM prints it). `opcode_named` parses it; no other module takes a name apart. What an
instruction computes isn't here: proof and interpreter each have their own semantics, on purpose.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rota.isa.registers import (
    EXEC_ROWS,
    FLAGS,
    M0_ROWS,
    NO_ROWS,
    SCC_ROWS,
    VCC_ROWS,
    Rows,
    flags_in,
    rows_in,
    vector_rows,
)
from rota.program.kinds import OpKind
from rota.targets.architecture import Architecture, Traffic


class IsaUnit(enum.Enum):
    """The unit that executes an instruction."""

    __hash__ = object.__hash__  # members are single, and this one is fast

    SALU = "SALU"
    SMEM = "scalar memory"
    VALU = "VALU"
    MATRIX = "matrix core"
    VMEM = "vector memory"
    LDS = "LDS"
    CONTROL = "control"  # branches, waits, barriers, hints
    UNKNOWN = "unknown"

    @property
    def computes_lanes(self) -> bool:
        """True for vector instructions that use registers alone: VALU and matrix core."""
        return self in _LANE_UNITS

    @property
    def is_vector(self) -> bool:
        """True if EXEC decides which lanes take part, as a rule."""
        return self in _VECTOR_UNITS


_LANE_UNITS = frozenset({IsaUnit.VALU, IsaUnit.MATRIX})
_VECTOR_UNITS = _LANE_UNITS | {IsaUnit.VMEM, IsaUnit.LDS}


class IsaFlow(enum.Enum):
    """What comes after an instruction."""

    __hash__ = object.__hash__  # members are single, and this one is fast

    NEXT = "the next instruction"
    BRANCH = "its target, or the next instruction"
    JUMP = "its target"
    CALL = "its target, and later the next instruction"
    INDIRECT = "an address in registers"
    INDIRECT_CALL = "an address in registers, and later the next instruction"
    BARRIER = "the next instruction, once every wave is here"
    SIGNAL = "the next instruction; the wave has arrived at a barrier"
    JOIN = "the next instruction, once every wave has arrived"
    WAIT = "the next instruction, once counters are low enough"
    TRAP = "a handler"
    END = "nothing"

    @property
    def falls_through(self) -> bool:
        """True if the next instruction can follow; a call returns there by a jump of its own."""
        return self not in _LEAVING_FLOWS

    @property
    def is_call(self) -> bool:
        return self in _CALL_FLOWS

    @property
    def is_indirect(self) -> bool:
        return self in _INDIRECT_FLOWS


_CALL_FLOWS = frozenset({IsaFlow.CALL, IsaFlow.INDIRECT_CALL})
_INDIRECT_FLOWS = frozenset({IsaFlow.INDIRECT, IsaFlow.INDIRECT_CALL})
_LEAVING_FLOWS = _CALL_FLOWS | _INDIRECT_FLOWS | {IsaFlow.JUMP, IsaFlow.TRAP, IsaFlow.END}


class Trait(enum.Flag):
    """What else wait states and index mode depend on."""

    NONE = 0
    TRANSCENDENTAL = enum.auto()
    DOT = enum.auto()
    PARTIAL = enum.auto()  # writes a part of a register
    PACKED = enum.auto()  # LLVM treats it as partial
    DPP = enum.auto()
    LANE = enum.auto()  # reads or writes one lane
    READS_LANE = enum.auto()
    READS_FIRST_LANE = enum.auto()
    DIVISION = enum.auto()  # v_div_fmas
    DOUBLE_FMA = enum.auto()
    PERMLANE = enum.auto()
    COMPARES_EXEC = enum.auto()  # v_cmpx
    USES_M0 = enum.auto()
    UNLISTED = enum.auto()  # uses M0, but no row of the manual names it
    TO_LDS = enum.auto()  # a load from memory to LDS, which counts as a VALU instruction too
    SETS_MODE = enum.auto()
    READS_MODE = enum.auto()
    SETS_VSKIP = enum.auto()  # s_setreg of that bit
    SKIPS = enum.auto()  # s_setvskip
    BY_OFFSET = enum.auto()  # a buffer store whose offset is a register
    RETURNS = enum.auto()  # s_rfe
    INDEXES = enum.auto()  # changes index mode, or uses registers that it doesn't name
    MAY_WRITE = enum.auto()  # writes its target only if a condition holds
    SETS_BANKS = enum.auto()  # selects which 256 vector registers operands name
    RELATIVE = enum.auto()  # jumps by a distance in registers


class MemSpace(enum.Enum):
    """The memory that an instruction accesses."""

    __hash__ = object.__hash__  # members are single, and this one is fast

    LDS = "LDS"
    GLOBAL = "global"
    FLAT = "flat"  # global memory, LDS or private memory, by address
    PRIVATE = "private"
    SCALAR = "scalar"


class CacheWork(enum.Enum):
    """What an instruction does with caches between its wave and other workgroups."""

    __hash__ = object.__hash__  # members are single, and this one is fast

    WRITE_BACK = "writes back"
    INVALIDATE = "invalidates"
    SCALAR_INVALIDATE = "invalidates the scalar cache"


class MemVerb(enum.Enum):
    """What it does there."""

    __hash__ = object.__hash__  # members are single, and this one is fast

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    EXCHANGE = "exchange"  # lanes through the LDS unit, no memory


@dataclass(frozen=True, slots=True, kw_only=True)
class MemAccess:
    """One memory access: `pieces` of `size` bytes per lane, 0 if the name doesn't say.

    `unit` is what offsets of two pieces count, in bytes. By `buffer` a resource gives the address, by `m0` that
    register does; `private` memory is a lane's own, also for the scalar unit. `half` leaves the other half of a loaded
    register as it was; `high` is the upper half, of a load or a store. `transposed` are the bits of the elements that a
    transposing read exchanges, `atomic` is what an atomic does, in the words of memory instructions: umin, swap,
    add_f32. An LDS atomic `returns` its result by its name, others by a modifier. `asynchronous` copies go between
    memory and LDS, at an LDS address that each lane names beside the other one; a `tensor` copy is one job of the wave,
    which scalar registers describe.
    """

    space: MemSpace
    verb: MemVerb
    size: int = 0
    pieces: int = 1
    unit: int = 1
    buffer: bool = False
    private: bool = False
    m0: bool = False
    to_lds: bool = False
    half: bool = False
    high: bool = False
    signed: bool = False
    returns: bool = False
    transposed: int = 0
    atomic: str = ""
    asynchronous: bool = False
    tensor: bool = False


class RegisterUse(NamedTuple):
    """The rows that an instruction reads and writes, without the EXEC that vector instructions obey.

    `flags` are read only by a flag that asks whether they are zero; they are among the `reads`. `data` are the rows of
    the value that a memory instruction moves, `address` those of its address in vector registers or M0. `kept` are rows
    of the target that keep a part of what they held; they are among the reads, too.
    """

    reads: Rows
    writes: Rows
    flags: Rows = NO_ROWS
    data: Rows = NO_ROWS
    address: Rows = NO_ROWS
    kept: Rows = NO_ROWS


class Condition(NamedTuple):
    """When a branch is taken: SCC is 1 or not, VCC or EXEC has lanes or not."""

    register: str
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Opcode:
    """An opcode without its encoding.

    `words` are the parts of its name and `types` the types at its end: ("cmp", "eq") and ("i32",). The first `targets`
    operands are written; with `tied` the first is read too, with `swaps` all are both. A `partial` result leaves a part
    of its register as it was. `reads` and `writes` are rows that aren't named. `counters` are those that a wait names
    in its own name, `traffic` says how one without an access is counted, `cache` what it does with caches. One that is
    not `known` is refused by proof and interpreter; its roles are those of its kind. Both refuse one that is not
    `modelled`, too: its roles are sure, but what it does has no place in them.
    """

    name: str
    unit: IsaUnit
    known: bool = True
    modelled: bool = True
    flow: IsaFlow = IsaFlow.NEXT
    condition: Condition | None = None
    access: MemAccess | None = None
    traits: Trait = Trait.NONE
    targets: int = 0
    tied: bool = False
    swaps: bool = False
    partial: bool = False
    obeys_exec: bool = False
    reads: Rows = NO_ROWS
    writes: Rows = NO_ROWS
    words: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    traffic: Traffic | None = None
    cache: CacheWork | None = None

    @property
    def is_modelled(self) -> bool:
        """True if proof and interpreter may look for what it does."""
        return self.known and self.modelled

    @property
    def root(self) -> str:
        """Its name without prefix and types: add, cmp_eq, lshl2_add."""
        return "_".join(self.words)

    @property
    def type(self) -> str:
        """The last of its types, or nothing."""
        return self.types[-1] if self.types else ""

    @property
    def jumps(self) -> bool:
        """True if its encoding holds a target."""
        return self.flow in {IsaFlow.BRANCH, IsaFlow.JUMP, IsaFlow.CALL} and Trait.SKIPS not in self.traits

    @property
    def is_hint(self) -> bool:
        """True if it changes neither registers nor memory, and control goes on: caches, priorities, traces."""
        quiet = self.is_modelled and self.access is None and not self.targets and self.flow is IsaFlow.NEXT
        counted = self.traffic is not None or self.cache is not None
        return quiet and not counted and self.unit in {IsaUnit.CONTROL, IsaUnit.SMEM, IsaUnit.VMEM, IsaUnit.LDS}

    @property
    def is_scalar(self) -> bool:
        """True if a vector unit computes it once for the wave, from scalar registers."""
        return self.unit is IsaUnit.VALU and self.name.startswith(_BY_SCALARS)

    @property
    def is_wide(self) -> bool:
        """True if its last type has 64 bits."""
        return self.type.endswith("64")


_BY_SCALARS = "v_s_"

# The registers of an instruction.


_COMPARED = 2


@lru_cache(maxsize=65536)
def registers_of(name: str, operands: tuple[str, ...], modifiers: tuple[str, ...]) -> RegisterUse:
    """What an instruction reads and writes, by its opcode, operands and modifiers."""
    opcode, named = opcode_named(name), [rows_in(text) for text in operands]
    flags = NO_ROWS.union(*map(flags_in, operands)) if FLAGS.keys() & operands else NO_ROWS
    if opcode.access is not None:
        return _memory_registers(opcode, opcode.access, named, modifiers)
    # Where masks of lanes have 32 bits, v_cmpx names no target.
    targets = 0 if Trait.COMPARES_EXEC in opcode.traits and len(operands) == _COMPARED else opcode.targets
    written, read = _union(named[:targets]), _union(named[targets:])
    kept = NO_ROWS
    if opcode.swaps:
        read |= written
    elif opcode.tied or opcode.partial or (opcode.unit is IsaUnit.VALU and keeps_target(name, operands, modifiers)):
        kept = vector_rows(written) if opcode.unit is not IsaUnit.SALU else written
    read |= kept | opcode.reads
    return RegisterUse(read | flags, written | opcode.writes, flags=flags - read, kept=kept)


def _memory_registers(opcode: Opcode, access: MemAccess, named: list[Rows], modifiers: tuple[str, ...]) -> RegisterUse:
    to_lds = goes_to_lds(access, modifiers)
    loads = returns_value(access, modifiers)
    # Buffer and scalar atomics name one register for what comes and what goes.
    shared = access.buffer or access.space is MemSpace.SCALAR
    written = named[0] if loads and named else NO_ROWS
    if shared and access.atomic == "cmpswap":  # what is expected comes with the data; only the old value returns
        written = frozenset(sorted(written)[: access.size // 4])
    sources = named[1:] if loads and not (shared and access.verb is MemVerb.ATOMIC) else named
    places = sources[1:] if shared and not loads and not to_lds else sources  # a buffer store names its data first
    address, data = NO_ROWS, written
    if access.tensor:
        return RegisterUse(_union(named) | opcode.reads, NO_ROWS)
    if access.asynchronous:  # no register holds data; loads name the LDS address first, stores second
        places = named[:1] if to_lds else named[1:2]
        return RegisterUse(_union(named) | opcode.reads, NO_ROWS, address=_union(places))
    if access.m0 or to_lds:
        address = M0_ROWS
    elif access.space is not MemSpace.SCALAR and places:
        address = places[0]
    if not loads and not to_lds:
        data = named[0] if shared else _union(named[1:]) if access.space is MemSpace.LDS else _union(named[1:2])
    kept = written if access.half else NO_ROWS
    read = _union(sources) | kept | opcode.reads | (M0_ROWS if to_lds else NO_ROWS)
    return RegisterUse(read, written | opcode.writes, data=data, address=address, kept=kept)


def goes_to_lds(access: MemAccess, modifiers: tuple[str, ...]) -> bool:
    """True for a load from memory to LDS."""
    return access.to_lds or "lds" in modifiers


def returns_value(access: MemAccess, modifiers: tuple[str, ...]) -> bool:
    """True if it writes its first operand."""
    if goes_to_lds(access, modifiers) or access.verb is MemVerb.STORE:
        return False
    return access.verb is not MemVerb.ATOMIC or access.returns or not RETURNING.isdisjoint(modifiers)


def traffic_of(opcode: Opcode, modifiers: tuple[str, ...]) -> Traffic | None:
    """What its counter counts it as; a flat instruction counts as LDS, too.  None if no counter does."""
    access = opcode.access
    if access is None:
        return Traffic.SCALAR if opcode.unit is IsaUnit.SMEM and opcode.targets else opcode.traffic
    if access.tensor or access.asynchronous:
        copies = Traffic.ASYNC_LOAD if access.to_lds else Traffic.ASYNC_STORE
        return Traffic.TENSOR if access.tensor else copies
    if access.space is MemSpace.LDS:  # which counter counts a later arrival, no public document says
        return None if access.atomic == ARRIVES_LATER else Traffic.LDS
    if access.space is MemSpace.SCALAR:
        return Traffic.SCALAR
    if goes_to_lds(access, modifiers):
        return Traffic.TO_LDS
    return Traffic.LOAD if returns_value(access, modifiers) else Traffic.STORE


_GLOBAL = {
    MemVerb.LOAD: OpKind.GLOBAL_LOAD, MemVerb.STORE: OpKind.GLOBAL_STORE, MemVerb.ATOMIC: OpKind.ATOMIC,
}  # fmt: skip
_FLOW_KINDS = {IsaFlow.WAIT: OpKind.WAIT, IsaFlow.BARRIER: OpKind.BARRIER}
_SLOW = frozenset({"exp", "log", "rcp", "rsq", "sqrt", "sin", "cos", "prng"})


def op_kind_of(opcode: Opcode, modifiers: tuple[str, ...]) -> OpKind | None:
    """What an instruction is in a schedule; None where its opcode alone doesn't say."""
    access = opcode.access
    if access is not None and (access.tensor or (access.asynchronous and not access.to_lds)):
        return None  # no schedule has them yet
    if access is not None and opcode.unit is IsaUnit.VMEM and not access.private:
        return OpKind.DMA if goes_to_lds(access, modifiers) else _GLOBAL[access.verb]
    if access is not None and access.space is MemSpace.LDS and access.verb in {MemVerb.LOAD, MemVerb.STORE}:
        reads = OpKind.LDS_READ_TRANSPOSED if access.transposed else OpKind.LDS_READ
        return reads if access.verb is MemVerb.LOAD else OpKind.LDS_WRITE
    if opcode.unit is IsaUnit.MATRIX:
        return OpKind.MMA
    if opcode.unit is IsaUnit.VALU and opcode.words[0] in _SLOW:
        return OpKind.TRANSCENDENTAL
    return OpKind.PRIORITY if opcode.name == "s_setprio" else _FLOW_KINDS.get(opcode.flow)


RETURNING = frozenset({"sc0", "glc", "th:TH_ATOMIC_RETURN"})
"""Modifiers by which an atomic returns what was there."""
_DPP = re.compile(r"^(?:quad_perm|row_\w+|wave_\w+)(?::|$)")


def fields_of(modifiers: tuple[str, ...]) -> dict[str, str]:
    """Modifiers by name; a flag has no value."""
    return dict(each.partition(":")[::2] for each in modifiers)


def has_full_masks(fields: dict[str, str]) -> bool:
    """True if DPP leaves no row and no bank out."""
    return all(fields.get(f"{kind}_mask", "0xf") == "0xf" for kind in ("row", "bank"))


def is_dpp(name: str, modifiers: tuple[str, ...]) -> bool:
    """True if lanes exchange values on the way in."""
    return name.endswith("_dpp") or any(_DPP.match(each) for each in modifiers)


def is_sdwa(name: str) -> bool:
    """True if parts of registers are selected."""
    return name.endswith("_sdwa")


def keeps_target(name: str, operands: tuple[str, ...], modifiers: tuple[str, ...]) -> bool:
    """True if its encoding or a modifier leaves a part of the target, or some lanes of it, as they were."""
    fields = fields_of(modifiers)
    if is_dpp(name, modifiers):
        # A lane without a source, or with an inactive one, keeps what it had unless it reads zero.
        return not (has_full_masks(fields) and fields.get("bound_ctrl") == "1")
    if fields.get("dst_unused") == "UNUSED_PRESERVE":
        return True
    if operands and operands[0].endswith(_HALVES):
        return True
    chosen = fields.get("op_sel", "").strip("[]").split(",")
    return len(chosen) == len(operands) > 1 and chosen[-1] == "1"


_HALVES = (".l", ".h")  # of a register, as an operand by itself


def _union(rows: list[Rows]) -> Rows:
    return NO_ROWS.union(*rows)


# Waits.

_COUNTS = re.compile(r"(?P<name>\w+cnt)\((?P<count>\d+)\)")
_FIELDS = (8, 0)  # first bits of the counts of a joint wait: of loads or stores, and of LDS (as LLVM assembles them)
_COUNTED = re.compile(r"(?:\w+cnt\(\d+\)(?:\s*[&,]?\s*|$))+")


def written_counts(opcode: Opcode, text: str) -> dict[str, int]:
    """The counts of a wait by counter, as they are written; raises ValueError for a form that isn't known."""
    written = text.partition(" ")[2].strip()
    if len(opcode.counters) == 1:
        return {opcode.counters[0]: int(written, 0)}
    if len(opcode.counters) == len(_FIELDS):
        return {name: int(written, 0) >> first & 0x3F for name, first in zip(opcode.counters, _FIELDS, strict=True)}
    if _COUNTED.fullmatch(written):
        counts = {found["name"]: int(found["count"]) for found in _COUNTS.finditer(written)}
        return {name: count for name, count in counts.items() if name != "expcnt"}  # no compute kernel exports
    if opcode.counters:
        raise ValueError(written)
    bits = int(written, 0)
    return {"vmcnt": bits & 0xF | bits >> 10 & 0x30, "lgkmcnt": bits >> 8 & 0xF}


def wait_counts(opcode: Opcode, text: str, architecture: Architecture) -> dict[str, int]:
    """How many ops a wait leaves in flight, by counter; a counter that it doesn't wait for is missing.

    Raises ValueError for a form that isn't known, and for one of another architecture.
    """
    counts, names = written_counts(opcode, text), {queue.counter for queue in architecture.queues}
    if not counts.keys() <= names or (not opcode.counters and architecture.wait_encoding is None):
        raise ValueError(text)
    return {name: count for name, count in counts.items() if count < architecture.no_wait(name)}


# The grammar of names.

_ENCODING = re.compile(r"_(?:e32|e64|dpp|sdwa|e64_dpp)$")
_TYPE = re.compile(r"^(?:[uib]\d+|x?f\d+|bf\d+|fp\d|u24|i24)$")
_SIZES = {
    "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16, "dwordx8": 32, "dwordx16": 64, "ubyte": 1, "sbyte": 1,
    "byte": 1, "ushort": 2, "sshort": 2, "short": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16, "b256": 32, "b512": 64,
    "u8": 1, "i8": 1, "b8": 1, "u16": 2, "i16": 2, "b16": 2,
}  # fmt: skip
_WORDS = ("dword", "dwordx2", "dwordx3", "dwordx4", "b32", "b64", "b96", "b128")
_WIDTHS = {
    MemVerb.LOAD: frozenset((
        *_WORDS, "ubyte", "sbyte", "ushort", "sshort", "u8", "i8", "u16", "i16",
        *(f"{name}_d16{half}" for name in ("ubyte", "sbyte", "short") for half in ("", "_hi")),
        *(f"d16{half}_{name}" for name in ("u8", "i8", "b16") for half in ("", "_hi")),
    )),
    MemVerb.STORE: frozenset((
        *_WORDS, "byte", "short", "b8", "b16", "byte_d16_hi", "short_d16_hi", "d16_hi_b8", "d16_hi_b16"
    )),
}  # fmt: skip
_FORMATTED = re.compile(
    r"^(?:format_)?(?:d16_)?(?:hi_)?(?:format_)?x(?:y(?:zw?)?)?$"
)  # by the resource: no size in the name
_VECTOR_MEMORY = re.compile(
    r"^(?P<space>buffer|tbuffer|global|flat|scratch)_(?P<verb>load|store|atomic)_(?P<lds>lds_)?(?P<rest>\w+)$"
)
_CLUSTER_LOAD = re.compile(r"^cluster_load_(?P<width>b32|b64|b128)$")
_ASYNC_COPY = re.compile(
    r"^(?:(?P<loads>(?:global|cluster)_load_async_to)|global_store_async_from)_lds_(?P<width>b8|b32|b64|b128)$"
)
_TENSOR_COPY = re.compile(r"^tensor_(?:(?P<loads>load_to)|store_from)_lds$")
_SPACES = {"buffer": MemSpace.GLOBAL, "tbuffer": MemSpace.GLOBAL, "global": MemSpace.GLOBAL, "flat": MemSpace.FLAT,
           "scratch": MemSpace.PRIVATE}  # fmt: skip
_SCALAR_MEMORY = re.compile(r"^s_(?P<kind>buffer_|scratch_)?(?P<verb>load|store|atomic)_(?P<rest>\w+)$")
_LDS_MOVE = re.compile(
    r"^ds_(?P<verb>read|write|load|store)(?P<two>2|_2addr)?(?P<far>_?st(?:ride)?64)?_(?P<addtid>addtid_)?"
    r"(?P<width>[uib]\d+)(?:_tr_b(?P<element>\d+))?(?P<half>_d16)?(?P<high>_hi)?$"
)
_LDS_TRANSPOSED = re.compile(r"^ds_load_tr(?P<element>4|6|8|16)_(?P<width>b64|b96|b128)$")
ARRIVES, ARRIVES_LATER = "barrier_arrive", "async_barrier_arrive"
ARRIVALS = frozenset({ARRIVES, ARRIVES_LATER})
_LDS_ARRIVALS = {  # at a barrier that is a word of LDS; the second arrives when asynchronous copies have ended
    "ds_atomic_barrier_arrive_rtn_b64": ARRIVES, "ds_atomic_async_barrier_arrive_b64": ARRIVES_LATER,
}  # fmt: skip
_LDS_ATOMIC = re.compile(
    r"^ds_(?P<verb>add|sub|rsub|inc|dec|min|max|and|or|xor|mskor|wrxchg|storexchg|cmpst|cmpstore|wrap|pk_add|condxchg32)"
    r"(?P<two>2)?(?P<far>st64)?(?P<returns>_rtn)?_(?P<type>bf16|[uifb](?P<bits>16|32|64))$"
)
_ONLY_RETURN = frozenset({"wrxchg", "storexchg"})  # there is no form without a result
_EXCHANGES = re.compile(r"^ds_(?:permute|bpermute|swizzle)_b32$")
_LDS_LOADS = re.compile(r"^ds_(?:\w+_rtn|consume|append|ordered)")  # of those that aren't known
_COUNTED_BY_M0 = frozenset({"ds_append", "ds_consume"})
_USES_M0 = re.compile(r"^(?:s_movrel|ds_(?:read|write)_addtid|s_sendmsg|s_ttracedata|ds_gws_|ds_ordered_count)")
_UNLISTED = re.compile(r"^(?:s_ttracedata|ds_gws_|ds_ordered_count)")
_CACHES = re.compile(
    r"^(?:ds_nop|buffer_(?:inv|wbl2|wbinvl1|wbinvl1_vol|invl2)|s_dcache_(?:inv|wb)\w*|s_icache_inv"
    r"|(?P<counted>global_(?:inv|wb|wbinv))|(?:global|flat)_prefetch_b8)$"
)


_CACHE_WORK = {
    "buffer_wbl2": CacheWork.WRITE_BACK, "buffer_inv": CacheWork.INVALIDATE, "s_dcache_inv": CacheWork.SCALAR_INVALIDATE
}  # fmt: skip
PAIRED = "::"
"""Between the two names of a pair of instructions that are issued as one."""
_DUAL = "v_dual_"

# Names of newer architectures for what older ones have under another. Not here are those that differ in any case:
# max_num orders zeros and treats NaNs unlike max.
_SYNONYMS = {
    **{f"v_{each}_nc_{kind}": f"v_{each}_{kind}" for each in ("add", "sub", "subrev") for kind in ("u32", "i32")},
    "v_add_co_ci_u32": "v_addc_co_u32", "v_sub_co_ci_u32": "v_subb_co_u32", "v_subrev_co_ci_u32": "v_subbrev_co_u32",
    "v_mad_co_u64_u32": "v_mad_u64_u32", "v_mad_co_i64_i32": "v_mad_i64_i32",
    **{f"s_{each}_co_{kind}": f"s_{each}_{kind}" for each in ("add", "sub") for kind in ("u32", "i32")},
    "s_add_co_ci_u32": "s_addc_u32", "s_sub_co_ci_u32": "s_subb_u32", "s_addk_co_i32": "s_addk_i32",
    **{f"s_{each}_not1_{kind}": f"s_{each}n2_{kind}" for each in ("and", "or") for kind in ("b32", "b64")},
    **{f"s_{each}_not{which}_{form}_{kind}": f"s_{each}n{which + 1}_{form}_{kind}" for each in ("and", "or")
       for which in (0, 1) for form in ("saveexec", "wrexec") for kind in ("b32", "b64")},
    **{f"v_{each}_nc_{kind}": f"v_{each}_{kind}" for each in ("add", "sub") for kind in ("u16", "i16")},
    "s_cls_i32": "s_flbit_i32", "s_cls_i32_i64": "s_flbit_i32_i64",
    "v_cls_i32": "v_ffbh_i32", "v_clz_i32_u32": "v_ffbh_u32", "v_ctz_i32_b32": "v_ffbl_b32",
    "v_cvt_floor_i32_f32": "v_cvt_flr_i32_f32", "v_cvt_pk_rtz_f16_f32": "v_cvt_pkrtz_f16_f32",
    "v_mul_dx9_zero_f32": "v_mul_legacy_f32",
    "s_ctz_i32_b32": "s_ff1_i32_b32", "s_ctz_i32_b64": "s_ff1_i32_b64",
    "s_clz_i32_u32": "s_flbit_i32_b32", "s_clz_i32_u64": "s_flbit_i32_b64",
    "s_get_pc_i64": "s_getpc_b64", "s_set_pc_i64": "s_setpc_b64", "s_swap_pc_i64": "s_swappc_b64",
    "s_call_i64": "s_call_b64", "s_rfe_i64": "s_rfe_b64",
}  # fmt: skip


@lru_cache(maxsize=4096)
def opcode_named(name: str) -> Opcode:
    """The opcode of that name, with or without its encoding."""
    bare = _ENCODING.sub("", name)
    if PAIRED in name:
        return _pair(name)
    bare = _SYNONYMS.get(bare, bare)
    if bare.startswith("v_"):
        return _vector(bare)
    for parse in (_caches, _lds, _copies, _vector_memory, _scalar_memory, _synchronisation, _control, _scalar):
        if (found := parse(bare)) is not None:
            return found
    for prefix, unit in (
        ("ds_", IsaUnit.LDS),
        ("s_", IsaUnit.SALU),
        ("buffer_", IsaUnit.VMEM),
        ("image_", IsaUnit.VMEM),
    ):
        if bare.startswith(prefix):
            loads = unit is IsaUnit.SALU or _LDS_LOADS.match(bare) is not None
            return Opcode(name=bare, unit=unit, known=False, targets=int(loads), traits=_m0_traits(bare))
    return Opcode(name=bare, unit=IsaUnit.UNKNOWN, known=False)


def _split(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of a name without its prefix, and the types that it ends with."""
    words = name.split("_")[1:]
    count = next((place for place, word in enumerate(reversed(words)) if not _TYPE.match(word)), len(words))
    return tuple(words[: len(words) - count]), tuple(words[len(words) - count :])


def _m0_traits(name: str) -> Trait:
    if not _USES_M0.match(name):
        return Trait.NONE
    return Trait.USES_M0 | Trait.UNLISTED if _UNLISTED.match(name) else Trait.USES_M0


def _caches(name: str) -> Opcode | None:
    if (found := _CACHES.match(name)) is None:
        return None
    vector = name.startswith(("buffer_", "global_", "flat_"))
    unit = IsaUnit.LDS if name == "ds_nop" else IsaUnit.VMEM if vector else IsaUnit.SMEM
    if found["counted"] is None:
        return Opcode(name=name, unit=unit, cache=_CACHE_WORK.get(name))
    traffic = Traffic.LOAD if name == "global_inv" else Traffic.STORE
    return Opcode(name=name, unit=unit, traffic=traffic)


def _lds(name: str) -> Opcode | None:
    if _EXCHANGES.match(name):
        access = MemAccess(space=MemSpace.LDS, verb=MemVerb.EXCHANGE, size=4)
    elif (found := _LDS_TRANSPOSED.match(name)) is not None:
        size, element = _SIZES[found["width"]], int(found["element"])
        access = MemAccess(space=MemSpace.LDS, verb=MemVerb.LOAD, size=size, transposed=element)
        return Opcode(name=name, unit=IsaUnit.LDS, access=access)  # whatever EXEC holds
    elif name in _LDS_ARRIVALS:
        returns = name.endswith("_rtn_b64")
        access = MemAccess(space=MemSpace.LDS, verb=MemVerb.ATOMIC, size=8, returns=returns, atomic=_LDS_ARRIVALS[name])
        return Opcode(name=name, unit=IsaUnit.LDS, access=access, obeys_exec=True)
    elif name in _COUNTED_BY_M0:
        access = MemAccess(space=MemSpace.LDS, verb=MemVerb.ATOMIC, size=4, m0=True, returns=True)
    elif (found := _LDS_MOVE.match(name)) is not None and found["width"] in _SIZES:
        verb = MemVerb.LOAD if found["verb"] in {"read", "load"} else MemVerb.STORE
        size = _SIZES[found["width"]]
        access = MemAccess(
            space=MemSpace.LDS,
            verb=verb,
            size=size,
            pieces=2 if found["two"] else 1,
            unit=(size * (64 if found["far"] else 1)) if found["two"] else 1,
            half=found["half"] is not None and verb is MemVerb.LOAD,
            high=found["high"] is not None,
            signed=found["width"][0] == "i",
            m0=found["addtid"] is not None,
            transposed=int(found["element"] or 0),
        )
    elif (found := _LDS_ATOMIC.match(name)) is not None and _exists(found):
        size = int(found["bits"]) // 8 if found["bits"] in {"32", "64"} else 4
        access = MemAccess(
            space=MemSpace.LDS,
            verb=MemVerb.ATOMIC,
            size=size,
            pieces=2 if found["two"] else 1,
            unit=(size * (64 if found["far"] else 1)) if found["two"] else 1,
            returns=found["returns"] is not None,
            atomic=_atomic(found["verb"], found["type"]),
        )
    else:
        return None
    reads = M0_ROWS if access.m0 else NO_ROWS
    words, types = _split(name)
    return Opcode(
        name=name, unit=IsaUnit.LDS, access=access, obeys_exec=True, reads=reads, traits=_m0_traits(name), words=words,
        types=types,
    )  # fmt: skip


def _exists(found: re.Match[str]) -> bool:
    """True if LDS has an atomic with that verb, type and form."""
    verb, kind = found["verb"], found["type"]
    if "f" in kind:
        return kind in _LDS_FLOATS.get(verb, ())
    return (
        kind[0] in _LDS_INTEGERS.get(verb, "")
        and found["bits"] != "16"
        and bool(found["returns"] or verb not in _ONLY_RETURN)
    )


_LDS_FLOATS = {
    **dict.fromkeys(("add", "min", "max", "cmpst"), ("f32", "f64")), "pk_add": ("f16", "bf16"),
}  # fmt: skip
_LDS_INTEGERS = {
    **dict.fromkeys(("add", "sub", "rsub", "inc", "dec"), "u"), **dict.fromkeys(("min", "max"), "ui"),
    **dict.fromkeys(
        ("and", "or", "xor", "mskor", "wrxchg", "storexchg", "cmpst", "cmpstore", "condxchg32", "wrap"), "b"
    ),
}  # fmt: skip
_ATOMICS = {"wrxchg": "swap", "storexchg": "swap", "cmpst": "cmpswap", "cmpstore": "cmpswap", "sub_clamp": "csub"}


def _atomic(verb: str, kind: str) -> str:
    """What an atomic does, from its verb and type: min and i32 are smin; with a float the type is part of it."""
    verb = _ATOMICS.get(verb, verb.removesuffix("_num"))
    if "f" in kind:
        return f"{verb}_{kind}"
    return f"{'s' if kind.startswith('i') else 'u'}{verb}" if verb in {"min", "max"} else verb


def _copies(name: str) -> Opcode | None:
    """Copies between memory and LDS, and loads that the workgroups of a cluster share: M0 says which."""
    reads = M0_ROWS if name.startswith("cluster_") else NO_ROWS
    if (found := _CLUSTER_LOAD.match(name)) is not None:
        access = MemAccess(space=MemSpace.GLOBAL, verb=MemVerb.LOAD, size=_SIZES[found["width"]])
    elif (found := _ASYNC_COPY.match(name)) is not None:
        verb = MemVerb.LOAD if found["loads"] else MemVerb.STORE
        access = MemAccess(
            space=MemSpace.GLOBAL, verb=verb, size=_SIZES[found["width"]], to_lds=verb is MemVerb.LOAD,
            asynchronous=True,
        )  # fmt: skip
    elif (found := _TENSOR_COPY.match(name)) is not None:
        verb = MemVerb.LOAD if found["loads"] else MemVerb.STORE
        access = MemAccess(space=MemSpace.GLOBAL, verb=verb, to_lds=verb is MemVerb.LOAD, tensor=True)
    else:
        return None
    modelled = not reads  # what other workgroups of a cluster load isn't
    return Opcode(
        name=name, unit=IsaUnit.VMEM, access=access, modelled=modelled, obeys_exec=not access.tensor, reads=reads
    )


def _vector_memory(name: str) -> Opcode | None:
    found = _VECTOR_MEMORY.match(name)
    if found is None:
        return None
    verb, rest = MemVerb(found["verb"]), found["rest"]
    atomic = ""
    if verb is MemVerb.ATOMIC:
        words, types = _split(f"_{rest.removesuffix('_x2')}")
        atomic = _atomic("_".join(words), types[-1]) if types else rest.removesuffix("_x2")
        size = 8 if rest.endswith(("_x2", "64")) else 4
        known = not (types and rest.endswith("_x2"))
    else:
        known = rest in _WIDTHS[verb] or (found["space"] in {"buffer", "tbuffer"} and bool(_FORMATTED.match(rest)))
        known = known and not (found["lds"] and found["space"] == "flat")
        width = rest.removeprefix("d16_hi_").removeprefix("d16_").partition("_d16")[0]
        size = _SIZES.get(width, 0)
    access = MemAccess(
        space=_SPACES[found["space"]],
        verb=verb,
        size=size,
        buffer=found["space"] in {"buffer", "tbuffer"},
        private=found["space"] == "scratch",
        to_lds=found["lds"] is not None,
        half=verb is MemVerb.LOAD and "d16" in rest,
        high="d16_hi" in rest,
        signed=rest.startswith(("sbyte", "sshort", "i8", "i16", "d16_i8", "d16_hi_i8")),
        atomic=atomic,
    )
    words, types = _split(name)
    return Opcode(name=name, unit=IsaUnit.VMEM, known=known, access=access, obeys_exec=True, words=words, types=types)


def _scalar_memory(name: str) -> Opcode | None:
    if name in {"s_memtime", "s_memrealtime"}:
        return Opcode(name=name, unit=IsaUnit.SMEM, targets=1, words=(name[2:],))
    found = _SCALAR_MEMORY.match(name)
    if found is None:
        return None
    verb, rest = MemVerb(found["verb"]), found["rest"]
    size = (8 if rest.endswith("_x2") else 4) if verb is MemVerb.ATOMIC else _SIZES.get(rest, 0)
    access = MemAccess(
        space=MemSpace.SCALAR,
        verb=verb,
        size=size,
        buffer=found["kind"] == "buffer_",
        private=found["kind"] == "scratch_",
        atomic=rest.removesuffix("_x2") if verb is MemVerb.ATOMIC else "",
    )
    return Opcode(name=name, unit=IsaUnit.SMEM, access=access, words=tuple(name.split("_")[1:]))


# Control.

_ASKED = {
    "scc0": (SCC_ROWS, Condition("scc", holds=False)), "scc1": (SCC_ROWS, Condition("scc", holds=True)),
    "vccz": (VCC_ROWS, Condition("vcc", holds=False)), "vccnz": (VCC_ROWS, Condition("vcc", holds=True)),
    "execz": (EXEC_ROWS, Condition("exec", holds=False)), "execnz": (EXEC_ROWS, Condition("exec", holds=True)),
}  # fmt: skip
_HINTS = re.compile(
    r"^s_(?:nop|setprio|sleep|inst_prefetch|incperflevel|decperflevel|code_end|sendmsg|ttracedata|delay_alu"
    r"|clause|set_inst_prefetch_distance|version|sleep_var|monitor_sleep|prefetch_(?:inst|data)(?:_pc_rel)?"
    r"|set_vgpr_msb)$"
)
_BANKS = "s_set_vgpr_msb"
# They change which barrier a wave waits on, or how many waves it waits for; some tell by SCC.
_BARRIERS = {
    **dict.fromkeys(("s_barrier_init", "s_barrier_join"), (IsaFlow.NEXT, NO_ROWS)),
    "s_barrier_leave": (IsaFlow.NEXT, SCC_ROWS), "s_barrier_signal_isfirst": (IsaFlow.SIGNAL, SCC_ROWS),
}  # fmt: skip
_BY_M0 = frozenset({"s_sendmsg", "s_ttracedata"})
_FLOWS = {
    **dict.fromkeys(("s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done"), IsaFlow.END),
    "s_barrier": IsaFlow.BARRIER, "s_barrier_signal": IsaFlow.SIGNAL, "s_barrier_wait": IsaFlow.JOIN,
    "s_waitcnt": IsaFlow.WAIT,
    "s_branch": IsaFlow.JUMP, "s_call_b64": IsaFlow.CALL, "s_swappc_b64": IsaFlow.INDIRECT_CALL, "s_trap": IsaFlow.TRAP,
    **dict.fromkeys(("s_setpc_b64", "s_add_pc_i64", "s_rfe_b64", "s_rfe_restore_b64"), IsaFlow.INDIRECT),
    "s_setvskip": IsaFlow.BRANCH,
}  # fmt: skip


def _synchronisation(name: str) -> Opcode | None:
    if name in _BARRIERS:
        flow, writes = _BARRIERS[name]
        words = tuple(name.split("_")[1:])
        modelled = not writes  # how many waves a barrier has had isn't followed
        return Opcode(name=name, unit=IsaUnit.CONTROL, flow=flow, writes=writes, words=words, modelled=modelled)
    if name == "s_wait_idle":  # for everything
        return Opcode(name=name, unit=IsaUnit.CONTROL, flow=IsaFlow.WAIT)
    if name == "s_wait_alu":  # for registers that vector units use, where a mode says that hardware doesn't
        return Opcode(name=name, unit=IsaUnit.CONTROL)
    if name.startswith("s_wait_"):
        counters = tuple(word for word in name.removeprefix("s_wait_").split("_"))
        known = all(each.endswith("cnt") for each in counters)
        return Opcode(name=name, unit=IsaUnit.CONTROL, flow=IsaFlow.WAIT, counters=counters, known=known)
    return None


def _control(name: str) -> Opcode | None:
    traits = Trait.SKIPS if name == "s_setvskip" else Trait.RETURNS if name.startswith("s_rfe") else _m0_traits(name)
    if (flow := _FLOWS.get(name)) is not None:
        traits |= Trait.RELATIVE if name.startswith("s_add_pc") else Trait.NONE
        known, targets = not name.startswith(("s_rfe", "s_add_pc")), int(flow.is_call)
        return Opcode(name=name, unit=IsaUnit.CONTROL, flow=flow, known=known, targets=targets, traits=traits)
    if name.startswith("s_cbranch_"):
        reads, condition = _ASKED.get(name.removeprefix("s_cbranch_"), (NO_ROWS, None))
        known = condition is not None  # the others are forks, joins and the debugger's
        flow = IsaFlow.BRANCH if known or "cdbg" in name else IsaFlow.NEXT
        return Opcode(name=name, unit=IsaUnit.CONTROL, flow=flow, condition=condition, reads=reads, known=known)
    if name.startswith("s_set_gpr_idx"):
        rows = NO_ROWS if name.endswith("_off") else M0_ROWS
        traits, words = Trait.INDEXES, tuple(name.split("_")[1:])
        return Opcode(name=name, unit=IsaUnit.SALU, reads=rows, writes=rows, traits=traits, words=words)
    if _HINTS.match(name):
        sets = name == _BANKS  # what it does is in the operands of those that follow, once they are read
        traits |= Trait.SETS_BANKS if sets else Trait.NONE
        reads = M0_ROWS if name in _BY_M0 else NO_ROWS
        return Opcode(name=name, unit=IsaUnit.CONTROL, reads=reads, traits=traits, modelled=not sets)
    return None


# Scalar.

_SCALAR = re.compile(
    r"^s_(?:mov|movk|add|addk|sub|addc|subb|mul|mul_hi|mulk|lshl|lshr|ashr|lshl[1-4]_add|and|or|xor|nand|nor|xnor|andn1|andn2"
    r"|orn1|orn2|not|min|max|bfe|bfm|cselect|cmov|cmovk|abs|pack_[hl]{2}|sext|ff0|ff1|flbit|bcnt0|bcnt1|brev|wqm|quadmask"
    r"|absdiff|bitset0|bitset1|getpc|getreg|bitreplicate|movrels|movreld|cvt|ceil|floor|trunc|rndne|fmac|fmamk|fmaak"
    r"|maximum|minimum)(?:_\w+)?$"
)
_COMPARES = re.compile(r"^s_(?:cmp|cmpk|bitcmp[01])_")
_KEEPS_SCC = re.compile(
    r"^s_(?:(?:mov|movk|cmov|cmovk|cselect|mul|mulk|bfm|pack|getpc|sext|brev|ff0|ff1|flbit|bitset[01]|getreg|movrel[sd]"
    r"|bitreplicate|cvt|ceil|floor|trunc|rndne|fmac|fmamk|fmaak|maximum|minimum)_|(?:add|sub)_(?:nc_u64|f16|f32)$"
    r"|(?:min|max)_num_)"
)
_READS_SCC = re.compile(r"^s_(?:addc|subb|cselect|cmov|cmovk)_")
_TIED_SCALAR = re.compile(r"^s_(?:addk|mulk|cmov|cmovk|bitset[01]|fmac)_")
_MAY_WRITE = re.compile(r"^s_(?:cmov|movreld)")


def _scalar(name: str) -> Opcode | None:
    words, types = _split(name)
    if name.startswith("s_setreg"):
        traits = Trait.SETS_MODE | Trait.READS_MODE
        return Opcode(name=name, unit=IsaUnit.SALU, traits=traits, words=words, types=types)
    reads = SCC_ROWS if _READS_SCC.match(name) else NO_ROWS
    if _COMPARES.match(name):
        return Opcode(name=name, unit=IsaUnit.SALU, writes=SCC_ROWS, words=words, types=types)
    if not _SCALAR.match(name):
        return None
    writes = NO_ROWS if _KEEPS_SCC.match(name) else SCC_ROWS
    if words[-1] in {"saveexec", "wrexec"}:
        reads, writes = reads | EXEC_ROWS, writes | EXEC_ROWS
    traits = Trait.MAY_WRITE if _MAY_WRITE.match(name) else Trait.NONE
    if name.startswith("s_movrel"):
        reads, traits = reads | M0_ROWS, traits | _m0_traits(name) | Trait.INDEXES
    if name.startswith("s_getreg"):
        traits |= Trait.READS_MODE
    return Opcode(
        name=name, unit=IsaUnit.SALU, targets=1, tied=_TIED_SCALAR.match(name) is not None, reads=reads, writes=writes,
        traits=traits, words=words, types=types,
    )  # fmt: skip


# Vector.

_ROOTS = (
    "mov", "add", "sub", "subrev", "mul", "mad", "fma", "fmac", "fmamk", "fmaak", "mac", "madmk", "madak", "max",
    "min", "max3", "min3", "med3", "maximum3", "minimum3", "lshl", "lshlrev", "lshrrev", "ashrrev", "and", "or", "xor",
    "xnor", "not", "bfe", "bfi", "bfm", "bfrev", "bcnt", "ffbh", "ffbl", "bitop3", "add3", "or3", "xor3", "xad", "sad",
    "msad", "qsad", "mqsad", "perm", "alignbit", "alignbyte", "cndmask", "cvt", "exp", "log", "rcp", "rsq", "sqrt",
    "sin", "cos", "floor", "ceil", "trunc", "rndne", "fract", "frexp", "ldexp", "div", "dot2", "dot4", "dot8", "dot2c",
    "dot4c", "dot8c", "pk", "pack", "accvgpr", "mbcnt", "mfma", "smfmac", "prng", "readfirstlane", "readlane",
    "writelane", "cmp", "cmpx", "swap", "permlane16", "permlane32", "nop", "addc", "subb", "subbrev", "ashr", "lerp",
    "sat", "screen", "clrexcp", "cubeid", "cubema", "cubesc", "cubetc", "trig", "permlanex16", "wmma", "swmmac",
    "bitop2", "maximum", "minimum", "maxmin", "minmax", "maximumminimum", "minimummaximum", "tanh",
)  # fmt: skip
_VECTOR = re.compile(rf"^v_(?:{'|'.join(_ROOTS)})(?:_\w+)?$")
_CARRIES = re.compile(r"^v_(?:(?:add|sub|subrev|addc|subb|subbrev)_co_u32|div_scale_f\d\d|mad_[ui]64_[ui]32)$")
_SWAPS = re.compile(r"^v_(?:swap_b(?:16|32)|permlane(?:16|32)_swap_b32)$")
_TIED = re.compile(r"^v_(?:(?:pk_)?fmac|mac|dot\w*c|smfmac|swmmac)_")
_SCALES = re.compile(r"^v_wmma_ld_scale")  # for the next product, without a result
_PSEUDO_SCALAR = re.compile(r"^v_s_(?:exp|log|rcp|rsq|sqrt)_f(?:16|32)$")
# Results that fill a part of their register: of 16 bits in the long encoding, bytes, one lane.
_PARTIAL = re.compile(
    r"^v_(?:(?:min3|max3|med3)_[fiu]16|(?:mad|fma|div_fixup)_[fiu]16|(?:add|sub)_i16|(?:fma|mad)_mix(?:lo|hi)_f16"
    r"|bitop3_b16|writelane_b32|cvt_(?:scalef32_)?(?:sr_)?(?:pk_)?(?:fp8|bf8|fp4)_\w+|cvt_scalef32_(?:f16|bf16)_(?:fp8|bf8)"
    r"|cvt_pkaccum_u8_f32|cvt_sr_(?:f16|bf16)_f32)$"
)
_TRANSCENDENTAL = re.compile(r"^v_(?:exp|log|rcp|rcp_iflag|rsq|sqrt|sin|cos)(?:_legacy)?_f(?:16|32|64)$")
_PACKED = re.compile(r"^v_(?:pk_|dot\d(?!\w*c_)|(?:mad|fma)_mix)")
_LANES = {
    "v_readlane_b32": Trait.LANE | Trait.READS_LANE, "v_writelane_b32": Trait.LANE,
    "v_readfirstlane_b32": Trait.LANE | Trait.READS_LANE | Trait.READS_FIRST_LANE,
}  # fmt: skip
_PREFIXES = {
    "v_dot": Trait.DOT, "v_div_fmas_": Trait.DIVISION, "v_permlane": Trait.PERMLANE, "v_cmpx": Trait.COMPARES_EXEC,
    "v_movrel": Trait.INDEXES,
}  # fmt: skip


def _vector(name: str) -> Opcode:
    matrix = name.startswith(("v_mfma", "v_smfmac", "v_wmma", "v_swmmac"))
    words, types = _split(name)
    if name in {"v_nop", "v_clrexcp"}:
        return Opcode(name=name, unit=IsaUnit.VALU, words=words)
    traits = _LANES.get(name, Trait.NONE)
    for prefix, trait in _PREFIXES.items():
        traits |= trait if name.startswith(prefix) else Trait.NONE
    traits |= Trait.TRANSCENDENTAL if _TRANSCENDENTAL.match(name) else Trait.NONE
    traits |= Trait.DOUBLE_FMA if name in {"v_fma_f64", "v_fmac_f64"} else Trait.NONE
    traits |= Trait.PACKED if _PACKED.match(name) else Trait.NONE
    swaps, scales = _SWAPS.match(name) is not None, _SCALES.match(name) is not None
    by_scalars = name.startswith(_BY_SCALARS)
    return Opcode(
        name=name,
        unit=IsaUnit.MATRIX if matrix else IsaUnit.VALU,
        known=(_PSEUDO_SCALAR if by_scalars else _VECTOR).match(name) is not None,
        modelled=not scales,
        traits=traits,
        targets=2 if swaps or _CARRIES.match(name) else int(not scales),
        tied=_TIED.match(name) is not None,
        swaps=swaps,
        partial=_PARTIAL.match(name) is not None,
        obeys_exec=name not in {"v_readlane_b32", "v_writelane_b32"} and not by_scalars,
        reads=VCC_ROWS if Trait.DIVISION in traits else NO_ROWS,
        writes=EXEC_ROWS if Trait.COMPARES_EXEC in traits else NO_ROWS,
        words=words,
        types=types,
    )


def halves_of(name: str) -> tuple[str, ...]:
    """The two instructions of a pair, by the names that they have alone."""
    return tuple(f"v_{each.removeprefix(_DUAL)}" for each in name.split(PAIRED))


def _pair(name: str) -> Opcode:
    """Two VALU instructions in one: both read before either writes.  Both targets come first among its operands."""
    both = [opcode_named(each) for each in halves_of(name)]
    known = len(both) == 2 and name.count(_DUAL) == 2  # as many as a pair has
    return Opcode(
        name=name,
        unit=IsaUnit.VALU,
        known=known and all(each.known and each.targets == 1 and not each.access for each in both),
        targets=len(both),
        tied=any(each.tied for each in both),
        obeys_exec=True,
        # A selection without a mask among its operands takes VCC.
        reads=VCC_ROWS if any(each.root == "cndmask" for each in both) else NO_ROWS,
        words=both[0].words,
        types=both[0].types,
    )
