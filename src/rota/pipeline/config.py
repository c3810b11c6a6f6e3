"""What a kernel author says of a pipeline and its device: `PipelineConfig`, costs per op tag, and `TargetProfile`.

A `PipelineConfig` is the shape of a pipeline: depth, grid and per-load costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rota.check import bad_field, check_elements, check_ints, check_types, expect, is_int
from rota.errors import DeclarationError
from rota.pipeline.op import CHANNEL_A, CHANNEL_B, MAX_KERNEL_TAG, OPERAND_NAMES, ChannelSpec, KOffsetKind, OpDesc
from rota.printing import Pasted, WrappedTuple
from rota.program.kinds import OpRole, ResourceKind
from rota.program.machine import Machine
from rota.targets.devices import DEFAULT

LEAST_BLOCK_DEPTH = 2
"""A body with fewer stages isn't cut into blocks: it is the kernel as it is."""
_STAGE_OFFSETS = (KOffsetKind.K0, KOffsetKind.K1, KOffsetKind.K_NEXT)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LoopCarriedSpec(Pasted):
    """Which op's result is carried over the loop edge: its role and subtile."""

    role: OpRole = OpRole.NONE
    subtile: int = 0

    def __post_init__(self) -> None:
        check_types(self, {"role": OpRole})
        check_ints(self, ("subtile",))

    @classmethod
    def fragment_zero(cls) -> LoopCarriedSpec:
        """The fragment of subtile 0 is loaded at the end of the iteration before."""
        return cls(role=OpRole.FRAGMENT_LOAD, subtile=0)

    @classmethod
    def none(cls) -> LoopCarriedSpec:
        """Nothing is carried."""
        return cls()

    def carries(self, op: OpDesc) -> bool:
        """True if `op` is the carried op, or a compute that consumes it."""
        if self.role is OpRole.NONE:
            return False
        return op.subtile == self.subtile and op.role in (self.role, OpRole.COMPUTE)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BlockSizing(Pasted):
    """Ops per interleaved block: `heavy` at a new MMA row, else `light`; `max_globals` 0 means no limit."""

    heavy: int
    light: int
    max_globals: int = 0

    def __post_init__(self) -> None:
        check_ints(self, ("heavy", "light", "max_globals"))

    @classmethod
    def default_2x2(cls) -> BlockSizing:
        """Four ops in a heavy block, two in a light one, loads unlimited."""
        return cls(heavy=4, light=2, max_globals=0)

    @classmethod
    def uniform(cls, n: int) -> BlockSizing:
        """The same size everywhere."""
        return cls(heavy=n, light=n, max_globals=0)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FragOrder(Pasted):
    """Which operand's fragment is loaded first."""

    b_before_a: bool

    def __post_init__(self) -> None:
        check_types(self, {"b_before_a": bool})

    @classmethod
    def b_first(cls) -> FragOrder:
        """B before A."""
        return cls(b_before_a=True)

    @classmethod
    def a_first(cls) -> FragOrder:
        """A before B."""
        return cls(b_before_a=False)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WarpStaggerRule(Pasted):
    """Whether the second wave group runs one barrier behind, and after how many prologue entries it falls back."""

    enabled: bool = False
    compute_from_body: bool = False
    fixed_amount: int = 0

    def __post_init__(self) -> None:
        check_types(self, {"enabled": bool, "compute_from_body": bool})
        check_ints(self, ("fixed_amount",))

    @classmethod
    def none(cls) -> WarpStaggerRule:
        """All waves run in step."""
        return cls()

    @classmethod
    def auto(cls) -> WarpStaggerRule:
        """After the first stage's prefetches."""
        return cls(enabled=True, compute_from_body=True)

    @classmethod
    def fixed(cls, amount: int) -> WarpStaggerRule:
        """After `amount` prologue entries."""
        return cls(enabled=True, fixed_amount=amount)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PipelineConfig(Pasted):
    """Depth, MMA grid, partitions and per-load counter costs of a pipeline.

    `depth` is the number of LDS stages; the loop body is unrolled into `num_partitions` K-tiles, partition p using
    stage p mod depth, so that every LDS slot is a constant.  A channel's match field says which field of a compute
    its fragments' subtile must equal: 0 the compute's stage (row), 1 its subtile (column).  `further_channels` are the
    operands of every compute after A and B: the first of them is channel 2.
    """

    depth: int = 2
    prefetch: int = 1
    drain_passes: int = 2
    prologue_fill: int = 1
    loop_carried: LoopCarriedSpec = LoopCarriedSpec()
    block_sizing: BlockSizing = BlockSizing(heavy=4, light=2)
    frag_order: FragOrder = FragOrder(b_before_a=True)
    m_mmas: int = 2
    n_mmas: int = 2
    num_partitions: int = 2
    mma_serial: bool = True
    mma_latency: int = 16
    vm_per_load_a: int = 4
    vm_per_load_b: int = 4
    lgkm_per_load_a: int = 0
    lgkm_per_load_b: int = 0
    ch0_match_field: int = 0
    ch1_match_field: int = 1
    warp_stagger: WarpStaggerRule = WarpStaggerRule()
    cross_stage_rotation: bool = False
    further_channels: tuple[ChannelSpec, ...] = ()

    @property
    def has_blocks(self) -> bool:
        """True if the body is cut into blocks; a single buffer's body is its kernel."""
        return self.depth >= LEAST_BLOCK_DEPTH

    def __post_init__(self) -> None:
        check_ints(self, ("depth", "m_mmas", "n_mmas", "num_partitions"), least=1)
        check_ints(self, ("prefetch", "drain_passes", "prologue_fill", "mma_latency"))
        check_ints(self, ("vm_per_load_a", "vm_per_load_b", "lgkm_per_load_a", "lgkm_per_load_b"))
        check_ints(self, ("ch0_match_field", "ch1_match_field"), most=1)
        check_types(
            self,
            {
                "loop_carried": LoopCarriedSpec,
                "block_sizing": BlockSizing,
                "frag_order": FragOrder,
                "warp_stagger": WarpStaggerRule,
                "mma_serial": bool,
                "cross_stage_rotation": bool,
            },
        )
        check_types(self, {"further_channels": tuple})
        check_elements("further_channels", self.further_channels, ChannelSpec)
        names = [each.name for each in self.further_channels]
        if len(set(names)) < len(names):
            raise bad_field(self, "further_channels", ", ".join(names), "a name of its own for every channel")
        if self.depth == 1 and self.further_channels:
            raise _misfit(
                "a single buffer has one operand and no further channels",
                "a fragment of a single buffer holds what its compute needs of both A and B",
                "depth=2 or more",
            )
        if self.depth >= 2 and self.num_partitions % self.depth:
            unrolled = (self.num_partitions // self.depth + 1) * self.depth
            raise _misfit(
                f"{self.num_partitions} partitions can't rotate through {self.depth} stages",
                f"partition p uses stage p mod {self.depth}; the loop edge must come back to stage 0, "
                "or LDS slots would not be constants",
                f"num_partitions={unrolled}",
            )
        if self.depth > len(_STAGE_OFFSETS):
            raise _misfit(
                f"{self.depth} stages need a K offset of {self.depth - 1} tiles; the largest is K_NEXT, 2 tiles",
                "the prologue fills stage s with the tile at k-offset s: K0, K1, K_NEXT",
                f"depth={len(_STAGE_OFFSETS)} or fewer",
            )

    def but(self, **changes: Any) -> PipelineConfig:
        """This config with some fields changed."""
        return replace(self, **changes)

    # How many ops of each kind a partition, and the whole body, holds.

    @property
    def mmas_per_partition(self) -> int:
        """One MMA per cell of the grid."""
        return self.m_mmas * self.n_mmas

    @property
    def globals_per_partition(self) -> int:
        """One load per A row tile and B column tile, and those of further channels."""
        further = (1 if each.whole_tile else self.subtiles(each) for each in self.further_channels)
        return self.m_mmas + self.n_mmas + sum(further)

    @property
    def frags_per_partition(self) -> int:
        """One fragment per A row tile and B column tile, and those of further channels."""
        return self.m_mmas + self.n_mmas + sum(map(self.subtiles, self.further_channels))

    @property
    def ops_per_partition(self) -> int:
        """Loads, fragments and MMAs."""
        return self.globals_per_partition + self.frags_per_partition + self.mmas_per_partition

    @property
    def blocks_per_partition(self) -> int:
        """One block per MMA."""
        return self.mmas_per_partition

    @property
    def total_mmas(self) -> int:
        """MMAs of the body."""
        return self.mmas_per_partition * self.num_partitions

    @property
    def total_globals(self) -> int:
        """Global loads of the body."""
        return self.globals_per_partition * self.num_partitions

    @property
    def total_frags(self) -> int:
        """Fragment loads of the body."""
        return self.frags_per_partition * self.num_partitions

    @property
    def total_ops(self) -> int:
        """Data ops of the body."""
        return self.ops_per_partition * self.num_partitions

    @property
    def total_blocks(self) -> int:
        """Blocks of the body."""
        return self.blocks_per_partition * self.num_partitions

    @property
    def total_edges(self) -> int:
        """Edges the default rules derive from the canonical body of this shape.

        With rotation every load is a prefetch, and each rotating fragment waits for the computes it takes registers
        from; without, one A load in all completes a tile of the iteration before (K_PREV) and needs no ANTI edges.
        A single buffer has `frags_per_partition` fragments and as many computes.
        """
        if self.depth == 1:
            return 2 * (self.frags_per_partition - 1) + 6
        m, n, partitions = self.m_mmas, self.n_mmas, self.num_partitions
        operand_flow = (2 + len(self.further_channels)) * m * n * partitions
        accumulate = m * n * partitions
        tiles_per_stage = partitions // self.depth
        pairs = m * m + n * n  # of a load and a fragment that share channel and stage
        for each in self.further_channels:
            pairs += self.subtiles(each) * (1 if each.whole_tile else self.subtiles(each))
        load_flow = anti = pairs * tiles_per_stage * partitions
        rotating = -m * tiles_per_stage
        if self.cross_stage_rotation:
            rotating = (m + n + sum(m if each.match_field else n for each in self.further_channels)) * partitions
        return operand_flow + accumulate + load_flow + anti + rotating

    # Meaning of an op inside this pipeline.

    def stage_of_partition(self, partition: int) -> int:
        """The LDS stage that a partition computes from."""
        return partition % self.depth

    def rotates(self, op: OpDesc, partition: int) -> bool:
        """True if `op`, in `partition`, is a rotating fragment: of subtile 0 and of another partition's stage."""
        return op.role is OpRole.FRAGMENT_LOAD and op.subtile == 0 and op.stage != self.stage_of_partition(partition)

    def partition_fed(self, fragment: OpDesc, partition: int) -> tuple[int, int]:
        """The partition whose computes use `fragment`, and how many trips later.

        A fragment feeds its own partition; one that rotates feeds the next partition, going round, that computes from
        its stage.
        """
        if self.rotates(fragment, partition):
            for fed in range(partition + 1, partition + self.num_partitions + 1):
                if self.stage_of_partition(fed) == fragment.stage:
                    return fed % self.num_partitions, fed // self.num_partitions
        return partition, 0

    def stage_k_offset(self, stage: int) -> KOffsetKind:
        """The K offset at which the prologue fills a stage."""
        return _STAGE_OFFSETS[stage]

    def further_channel(self, channel: int) -> ChannelSpec | None:
        """What is declared of a channel after A and B; None for these, and for one that isn't declared."""
        place = channel - len(OPERAND_NAMES)
        return self.further_channels[place] if 0 <= place < len(self.further_channels) else None

    @property
    def channels(self) -> tuple[int, ...]:
        """The operands of a compute."""
        return tuple(range(len(OPERAND_NAMES) + len(self.further_channels)))

    def operand_name(self, channel: int) -> str:
        """A, B, the name of a further channel, or the number of one that isn't declared."""
        if channel in (CHANNEL_A, CHANNEL_B):
            return OPERAND_NAMES[channel]
        spec = self.further_channel(channel)
        return str(channel) if spec is None else spec.name

    def subtiles(self, spec: ChannelSpec) -> int:
        """How many subtiles a further channel has: one for each row of the grid, or for each column."""
        return self.n_mmas if spec.match_field else self.m_mmas

    def compute_match_key(self, channel: int, compute: OpDesc) -> int:
        """The fragment subtile of `channel` that `compute` consumes."""
        spec = self.further_channel(channel)
        if spec is not None:
            field = spec.match_field
        else:
            field = self.ch0_match_field if channel == CHANNEL_A else self.ch1_match_field
        return compute.stage if field == 0 else compute.subtile

    def vm_per_channel(self, channel: int) -> int:
        """vmcnt tokens of one global load of `channel`."""
        if (spec := self.further_channel(channel)) is not None:
            return spec.vm_per_load
        return self.vm_per_load_a if channel == CHANNEL_A else self.vm_per_load_b

    def lgkm_per_channel(self, channel: int, fallback_a: int = 0, fallback_b: int = 0) -> int:
        """lgkmcnt tokens of one load of `channel`; of A and B, 0 here falls back to the schedule config's value."""
        if (spec := self.further_channel(channel)) is not None:
            return spec.lgkm_per_load
        if channel == CHANNEL_A:
            return self.lgkm_per_load_a or fallback_a
        return self.lgkm_per_load_b or fallback_b

    def vm_tokens(self, op: OpDesc) -> int:
        """vmcnt tokens of one load: its own count if it states one, else its channel's; 0 where neither says."""
        return op.vm_cost or self.vm_per_channel(op.channel)

    def lgkm_tokens(self, op: OpDesc, fallback_a: int = 0, fallback_b: int = 0) -> int:
        """lgkmcnt tokens of one op: its own count, else its channel's, else the fallback; 0 where none says."""
        return op.lgkm_cost or self.lgkm_per_channel(op.channel, fallback_a, fallback_b)

    def partition_of_index(self, index: int, length: int) -> int:
        """Which partition the op at `index` of a body of `length` ops is in: the list is cut evenly."""
        return ((index + 1) * self.num_partitions - 1) // length

    def check_stage(self, op: OpDesc, index: int | None = None) -> None:
        """Loads and fragments must name a stage and a channel the pipeline has."""
        if op.role not in (OpRole.GLOBAL_LOAD, OpRole.FRAGMENT_LOAD, OpRole.SHARED_STORE):
            return
        if op.stage >= self.depth:
            raise DeclarationError.of(
                "D107",
                f"{op} names stage {op.stage}, but the pipeline has depth {self.depth}",
                concerns=(op.concern(index),),
                evidence=(("stage", op.stage), ("largest stage", self.depth - 1)),
            )
        if op.channel > self.channels[-1]:
            raise DeclarationError.of(
                "D107",
                f"{op} names channel {op.channel}, and no compute has an operand of that number",
                concerns=(op.concern(index),),
                evidence=(("channel", op.channel), ("largest channel", self.channels[-1])),
                fixes=("declare it: PipelineConfig(further_channels=(ChannelSpec(name=..., match_field=...),))",),
            )


def _misfit(message: str, rule: str, fix: str) -> DeclarationError:
    return DeclarationError.of("D106", message, evidence=(("rule", rule),), fixes=(fix,))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OpCost(Pasted):
    """What an op of some tag occupies, for how long, and which registers it defines and frees."""

    resource: ResourceKind
    latency: int
    role: OpRole
    vgpr_def: int = 0
    vgpr_kill: int = 0

    def __post_init__(self) -> None:
        check_types(self, {"resource": ResourceKind, "role": OpRole})
        check_ints(self, ("latency", "vgpr_def", "vgpr_kill"))


@dataclass(frozen=True, slots=True, repr=False)
class TargetCostModel(Pasted):
    """tag -> OpCost, kept as sorted pairs so that the model is a hashable value."""

    costs: tuple[tuple[int, OpCost], ...]

    def __init__(self, costs: Mapping[int, OpCost]) -> None:
        if not isinstance(costs, Mapping):
            raise DeclarationError.of(
                "D104",
                f"a cost model maps tags to OpCost, got {type(costs).__name__}",
                evidence=(("got", type(costs).__name__), ("expected", "a mapping")),
            )
        for tag in costs:
            if not is_int(tag) or not 0 <= tag <= MAX_KERNEL_TAG:
                raise DeclarationError.of(
                    "D101",
                    f"cost model tag {tag!r} is outside 0..{MAX_KERNEL_TAG}",
                    evidence=(("got", repr(tag)), ("largest kernel tag", MAX_KERNEL_TAG)),
                )
        check_elements("a cost model", costs.values(), OpCost)
        object.__setattr__(self, "costs", tuple(sorted(costs.items(), key=lambda pair: pair[0])))

    def __rich_repr__(self) -> Iterable[object]:
        """The table that it was made from."""
        return (dict(self.costs),)

    def cost_of(self, tag: int) -> OpCost | None:
        """The cost of ops with this tag, or None."""
        return next((cost for known, cost in self.costs if known == tag), None)

    def with_cost(self, tag: int, **changes: Any) -> TargetCostModel:
        """This model with some fields of one tag's cost changed."""
        table = dict(self.costs)
        if tag not in table:
            raise _no_cost(f"tag {tag}", tag, self)
        return TargetCostModel({**table, tag: replace(table[tag], **changes)})


def annotate_ops(ops: Iterable[OpDesc], model: TargetCostModel) -> tuple[OpDesc, ...]:
    """Stamp costs on logical ops; rota's own ops pass through unchanged."""
    table = dict(expect("the cost model", model, TargetCostModel).costs)
    return WrappedTuple(
        op if op.is_framework else _annotate(op, table, model) for op in check_elements("a body", ops, OpDesc)
    )


def _annotate(op: OpDesc, table: Mapping[int, OpCost], model: TargetCostModel) -> OpDesc:
    cost = table.get(op.tag)
    if cost is None:
        error = _no_cost(str(op), op.tag, model)
        raise DeclarationError(replace(error.findings[0], concerns=(op.concern(),)))
    return replace(
        op,
        resource=cost.resource,
        latency=cost.latency,
        role=cost.role,
        vgpr_def=cost.vgpr_def,
        vgpr_kill=cost.vgpr_kill,
    )


def _no_cost(label: str, tag: int, model: TargetCostModel) -> DeclarationError:
    known = ", ".join(str(getattr(t, "name", t)) for t, _ in model.costs)
    return DeclarationError.of(
        "D103",
        f"the cost model has no entry for {label} (tag {int(tag) if is_int(tag) else tag!r})",
        evidence=(("known tags", known or "none"),),
        fixes=("add the tag to the target's cost model: TargetCostModel({tag: OpCost(...), ...})",),
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TargetProfile(Pasted):
    """Costs per op, the pipeline configuration that suits the device, and the machine itself."""

    cost_model: TargetCostModel
    pipeline: PipelineConfig
    name: str = "custom"
    machine: Machine = DEFAULT

    def __post_init__(self) -> None:
        check_types(self, {"cost_model": TargetCostModel, "pipeline": PipelineConfig, "name": str, "machine": Machine})

    def with_pipeline(self, **changes: Any) -> TargetProfile:
        """This target with some pipeline fields changed."""
        return replace(self, pipeline=self.pipeline.but(**changes))
