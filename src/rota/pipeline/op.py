"""`OpDesc`, one operation of the loop body, and the vocabulary that describes it."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Final

from rota.check import author_line, bad_field, check_ints, check_types, is_int
from rota.errors import Concern, DeclarationError, SourceLine
from rota.order.acyclic.problem import CostedOp
from rota.printing import NamedMember, WrappedTuple
from rota.program.entry import Origin
from rota.program.kinds import OpKind, OpRole, Phase, ResourceKind


class KOffsetKind(NamedMember):
    """Which K-tile a load fetches, relative to the iteration's k."""

    K0 = 0
    K1 = 1
    K_NEXT = 2
    K_PREV = -1
    NONE = None

    def signed_bk_multiple(self) -> int:
        """The offset in K-tiles; an op without an offset is at k itself."""
        return self.value or 0

    @property
    def is_prefetch(self) -> bool:
        """A prefetch fetches a tile of this or a later iteration; K_PREV completes a tile of the one before."""
        return self is not KOffsetKind.K_PREV and self is not KOffsetKind.NONE


CHANNEL_A: Final = 0
CHANNEL_B: Final = 1
NO_CHANNEL: Final = -1
OPERAND_NAMES: Final = ("A", "B")
"""The channels that every pipeline has; further ones follow."""

MAX_KERNEL_TAG: Final = 127


class FrameworkTag(NamedMember, enum.IntEnum):
    """Tags of the ops that rota itself inserts."""

    BARRIER = 128
    WAIT_VM = 129
    WAIT_LGKM = 130
    SET_PRIO = 131
    SCHEDULE_BARRIER = 132
    SCHED_GROUP_BARRIER = 133


class DoubleBufferTag(NamedMember, enum.IntEnum):
    """Tag vocabulary of DMA-fed GEMM bodies; the MI355X target's cost model speaks it."""

    LOAD_A = 0
    LOAD_B = 1
    COMPUTE = 2
    MMA_LOAD_A = 3
    MMA_LOAD_B = 4
    MMA = 5


class SingleBufferTag(NamedMember, enum.IntEnum):
    """Tag vocabulary of register-staged GEMM bodies (load, store, fragment, compute)."""

    LOAD_DRAM = 0
    STORE_SMEM = 1
    LOAD_FRAG = 2
    COMPUTE = 3


class InstructionGroup(NamedMember, enum.IntEnum):
    """The instruction groups that a sched_group_barrier hint can name."""

    DS_READ = 0
    DS_WRITE = 1
    VMEM_READ = 2
    MFMA = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSpec:
    """An operand of every compute besides A and B: the scales of A's rows, for example.

    Its fragments belong to a compute by `match_field`, as `ch0_match_field` says for A, and multiply the rows of A
    (field 0) or the columns of B (field 1).  A load brings one subtile, or with `whole_tile` all of them at once, which
    suits operands of few bytes.  The tokens are those of one load and of one fragment that don't state their own; each
    instruction moves `lane_bytes` bytes for a lane.

    `ChannelSpec(name="A_scale", match_field=0, vm_per_load=1, lgkm_per_load=4, whole_tile=True)`
    """

    name: str
    match_field: int
    vm_per_load: int = 0
    lgkm_per_load: int = 0
    whole_tile: bool = False
    lane_bytes: int = 4

    def __post_init__(self) -> None:
        check_types(self, {"name": str, "whole_tile": bool})
        check_ints(self, ("vm_per_load", "lgkm_per_load"))
        check_ints(self, ("match_field",), most=1)
        check_ints(self, ("lane_bytes",), least=1)
        if not self.name.isidentifier() or self.name in OPERAND_NAMES:
            raise bad_field(self, "name", self.name, "an identifier other than A and B")


_KINDS = (("k_offset", KOffsetKind), ("resource", ResourceKind), ("role", OpRole), ("label", str))
_FRAMEWORK_KINDS: dict[int, OpKind] = {
    FrameworkTag.BARRIER: OpKind.BARRIER,
    FrameworkTag.WAIT_VM: OpKind.WAIT,
    FrameworkTag.WAIT_LGKM: OpKind.WAIT,
    FrameworkTag.SET_PRIO: OpKind.PRIORITY,
    FrameworkTag.SCHEDULE_BARRIER: OpKind.FENCE,
    FrameworkTag.SCHED_GROUP_BARRIER: OpKind.HINT,
}
_KIND_OF_ROLE = {
    OpRole.GLOBAL_LOAD: OpKind.DMA,
    OpRole.SHARED_STORE: OpKind.LDS_WRITE,
    OpRole.FRAGMENT_LOAD: OpKind.LDS_READ,
    OpRole.COMPUTE: OpKind.MMA,
    OpRole.VALU_COMPUTE: OpKind.VALU,
    OpRole.SYNC: OpKind.BARRIER,
    OpRole.FENCE: OpKind.FENCE,
    OpRole.NONE: OpKind.NOTHING,
}
_COUNTS = ("stage", "subtile", "vm_cost", "lgkm_cost", "wait_value", "latency", "vgpr_def", "vgpr_kill")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OpDesc(CostedOp):
    """An operation with its place in the pipeline and its cost.

    `stage` and `subtile` name an LDS tile for loads and fragments, and the (m, n) position for computes.
    `repr` is the op's name with the tokens that it states itself; `dataclasses.asdict` shows everything.
    `label` is a name of its own, `source` where the author declared it, and `origin` what put it into a schedule; none
    of them takes part in equality.
    """

    tag: int
    stage: int = 0
    subtile: int = 0
    k_offset: KOffsetKind = KOffsetKind.NONE
    vm_cost: int = 0
    lgkm_cost: int = 0
    wait_value: int = 0
    resource: ResourceKind = ResourceKind.NONE
    latency: int = 0
    role: OpRole = OpRole.NONE
    channel: int = NO_CHANNEL
    vgpr_def: int = 0
    vgpr_kill: int = 0
    label: str = field(default="", compare=False, repr=False)
    source: SourceLine | None = field(default=None, compare=False, repr=False)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if type(value) is not int and not is_int(value):
                raise bad_field(self, name, value, "an integer", self.source)
            if value < 0:
                raise bad_field(self, name, value, "an integer, at least 0", self.source)
        if not is_int(self.tag) or self.tag < 0:
            raise bad_field(self, "tag", self.tag, "an integer, at least 0", self.source)
        if not is_int(self.channel) or self.channel < NO_CHANNEL:
            raise bad_field(
                self, "channel", self.channel, "0 (A), 1 (B), a further operand, or -1 for none", self.source
            )
        for name, kind in _KINDS:
            if not isinstance(getattr(self, name), kind):
                raise bad_field(self, name, getattr(self, name), f"a {kind.__name__}", self.source)
        if self.origin is not None and not isinstance(self.origin, Origin):
            raise bad_field(self, "origin", self.origin, "an Origin, or None", self.source)
        if self.tag > MAX_KERNEL_TAG and self.role is not OpRole.SYNC and self.role is not OpRole.FENCE:
            raise DeclarationError.of(
                "D101",
                f"tag {self.tag} is outside 0..{MAX_KERNEL_TAG}; higher tags belong to rota's own ops",
                concerns=(Concern(label=f"tag {self.tag}", source=self.source),),
                evidence=(("got", self.tag), ("largest kernel tag", MAX_KERNEL_TAG)),
                fixes=(f"give the op a tag from 0 to {MAX_KERNEL_TAG}, for example a member of your own IntEnum",),
            )

    @classmethod
    def op(
        cls,
        tag: int,
        *,
        resource: ResourceKind,
        latency: int,
        role: OpRole,
        stage: int = 0,
        subtile: int = 0,
        k_offset: KOffsetKind = KOffsetKind.NONE,
        vm_cost: int = 0,
        lgkm_cost: int = 0,
        channel: int = NO_CHANNEL,
        vgpr_def: int = 0,
        vgpr_kill: int = 0,
    ) -> OpDesc:
        """A fully described op, costs included; the author's line is captured."""
        return cls(
            tag=tag,
            stage=stage,
            subtile=subtile,
            k_offset=k_offset,
            vm_cost=vm_cost,
            lgkm_cost=lgkm_cost,
            resource=resource,
            latency=latency,
            role=role,
            channel=channel,
            vgpr_def=vgpr_def,
            vgpr_kill=vgpr_kill,
            source=author_line(),
        )

    @classmethod
    def logical(
        cls,
        tag: int,
        *,
        stage: int = 0,
        subtile: int = 0,
        k_offset: KOffsetKind = KOffsetKind.NONE,
        channel: int = NO_CHANNEL,
    ) -> OpDesc:
        """An op before its target's costs are attached (see `annotate_ops`)."""
        return cls(tag=tag, stage=stage, subtile=subtile, k_offset=k_offset, channel=channel, source=author_line())

    @staticmethod
    def barrier() -> OpDesc:
        """All waves of the workgroup arrive before any leaves; waits for no memory."""
        return _framework_op(FrameworkTag.BARRIER, OpRole.SYNC, 0, 0)

    @staticmethod
    def wait_vm(count: int) -> OpDesc:
        """At most `count` vmcnt tokens stay outstanding."""
        return _framework_op(FrameworkTag.WAIT_VM, OpRole.SYNC, count, 0)

    @staticmethod
    def wait_lgkm(count: int) -> OpDesc:
        """At most `count` lgkmcnt tokens stay outstanding."""
        return _framework_op(FrameworkTag.WAIT_LGKM, OpRole.SYNC, count, 0)

    @staticmethod
    def set_prio(level: int) -> OpDesc:
        """A hint to the wave arbiter; orders nothing."""
        return _framework_op(FrameworkTag.SET_PRIO, OpRole.FENCE, level, 0)

    @staticmethod
    def schedule_barrier() -> OpDesc:
        """A fence for the compiler's scheduler; no instruction."""
        return _framework_op(FrameworkTag.SCHEDULE_BARRIER, OpRole.FENCE, 0, 0)

    @staticmethod
    def sched_group_barrier(group: int, count: int) -> OpDesc:
        """A hint to the compiler's scheduler: next come `count` instructions of `group`."""
        return _framework_op(FrameworkTag.SCHED_GROUP_BARRIER, OpRole.FENCE, count, group)

    def but(self, **changes: Any) -> OpDesc:
        """This op with some fields changed."""
        return replace(self, **changes)

    def made_by(self, rule: str, *, ops: tuple[int, ...] = (), knobs: tuple[str, ...] = (), hook: str = "") -> OpDesc:
        """This op, put into a schedule by a rule: because of ops of the body, knobs, or what a hook returned."""
        return self.with_origin(Origin(rule=rule, ops=ops, knobs=knobs, hook=hook, source=self.source))

    def and_because_of(self, other: OpDesc) -> OpDesc:
        """This op, which another op of the body keeps in place too."""
        return self.with_origin(self.origin and replace(self.origin, ops=(*self.origin.ops, *other.body_ops)))

    def with_origin(self, origin: Origin | None) -> OpDesc:
        """This op with another origin; copied, since its fields were checked when it was made."""
        made = object.__new__(OpDesc)
        for name in _FIELDS:
            object.__setattr__(made, name, getattr(self, name))
        object.__setattr__(made, "origin", origin)
        return made

    @property
    def body_ops(self) -> tuple[int, ...]:
        """The number of the body's op that this is, if it is one."""
        return self.origin.ops if self.origin else ()

    @property
    def knobs(self) -> tuple[str, ...]:
        """The knobs that put this op into a schedule."""
        return self.origin.knobs if self.origin else ()

    @property
    def is_framework(self) -> bool:
        """Inserted by rota rather than declared by the kernel."""
        return self.tag > MAX_KERNEL_TAG

    @property
    def kind(self) -> OpKind:
        """Its row in the table of kinds; what a load is depends on where the pipeline config lets it go."""
        return _FRAMEWORK_KINDS.get(self.tag, OpKind.FENCE) if self.is_framework else _KIND_OF_ROLE[self.role]

    @property
    def is_prefetch_load(self) -> bool:
        """A global load that fetches a tile of this or a later iteration."""
        return self.role is OpRole.GLOBAL_LOAD and self.k_offset.is_prefetch

    @property
    def name(self) -> str:
        """The tag's own name where the author used an enum member, else `tag N`."""
        return getattr(self.tag, "name", f"tag {self.tag}").lower()

    def __str__(self) -> str:
        if self.is_framework:
            if self.tag in (FrameworkTag.BARRIER, FrameworkTag.SCHEDULE_BARRIER):
                return self.name
            group = f"{self.subtile}, " if self.tag == FrameworkTag.SCHED_GROUP_BARRIER else ""
            return f"{self.name}({group}{self.wait_value})"
        if self.label:
            return f"{self.label} s{self.stage}"
        if self.role in (OpRole.COMPUTE, OpRole.VALU_COMPUTE):
            return f"{self.name}[{self.stage},{self.subtile}]"
        k = f" {self.k_offset.name.lower()}" if self.k_offset is not KOffsetKind.NONE else ""
        return f"{self.name} s{self.stage} t{self.subtile}{k}"

    def __repr__(self) -> str:
        stated = [f"{name}={value}" for name, value in (("vm", self.vm_cost), ("lgkm", self.lgkm_cost)) if value]
        if self.role is OpRole.NONE:
            stated.append("no role yet")
        return f"<{', '.join([str(self), *stated])}>"

    def concern(self, index: int | None = None, role: str = "") -> Concern:
        """This op as one end of a finding."""
        return Concern(label=str(self), index=index, role=role, source=self.source)


_FIELDS = tuple(each.name for each in fields(OpDesc) if each.name != "origin")


def numbers_of(ops: Iterable[OpDesc]) -> tuple[int, ...]:
    return tuple(number for op in ops for number in op.body_ops)


def number_ops(ops: Iterable[OpDesc]) -> tuple[OpDesc, ...]:
    """The ops of a body, each with its number as its origin."""
    return tuple(op.made_by("an op of the body", ops=(number,)) for number, op in enumerate(ops))


def _framework_op(tag: FrameworkTag, role: OpRole, wait_value: int, subtile: int) -> OpDesc:
    if not is_int(wait_value) or not is_int(subtile):  # checked before the cache, which needs hashable values
        bad = wait_value if not is_int(wait_value) else subtile
        raise DeclarationError.of(
            "D102",
            f"{tag.name.lower()}({bad!r}): expected an integer",
            evidence=(("got", f"{bad!r} ({type(bad).__name__})"), ("expected", "an integer, at least 0")),
        )
    return _make_framework_op(tag, role, wait_value, subtile)


@cache
def _make_framework_op(tag: FrameworkTag, role: OpRole, wait_value: int, subtile: int) -> OpDesc:
    """Framework ops are few and equal: one shared value each."""
    return OpDesc(tag=tag, subtile=subtile, wait_value=wait_value, resource=ResourceKind.SCALAR, role=role)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleEntry:
    """An op with its ordinal in its phase; a prefetch may be left out when no tile is left to fetch."""

    op: OpDesc
    time_slot: int
    phase: Phase
    is_prefetch: bool = False

    def __post_init__(self) -> None:
        kinds = (type(self.op), type(self.time_slot), type(self.phase), type(self.is_prefetch))
        if kinds != (OpDesc, int, Phase, bool) or self.time_slot < 0:  # one test: a phase has hundreds of entries
            check_types(self, {"op": OpDesc, "phase": Phase, "is_prefetch": bool})
            check_ints(self, ("time_slot",))

    @property
    def origin(self) -> Origin | None:
        """What made the entry: an op of the body, a hook, a knob, a derivation rule, a repair."""
        return self.op.origin

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return f"{self.phase.at(self.time_slot)} {self.op}" + (" (prefetch)" if self.is_prefetch else "")


def entries_of(ops: Iterable[OpDesc], phase: Phase) -> tuple[ScheduleEntry, ...]:
    """The ops of a phase, numbered; none is a prefetch."""
    return WrappedTuple(ScheduleEntry(op=op, time_slot=slot, phase=phase) for slot, op in enumerate(ops))
