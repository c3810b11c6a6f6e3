"""The edge rules as data, and their evaluator.

A rule never names a kernel: it speaks of roles, of fields that must match, and of partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rota.check import check_elements, expect
from rota.order.acyclic.problem import DepEdge, DepKind
from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import KOffsetKind, OpDesc
from rota.printing import NamedMember, WrappedTuple
from rota.program.kinds import OpRole


class Match(NamedMember):
    CHANNEL = "same channel"
    STAGE = "same stage"
    SUBTILE = "same subtile"
    OPERAND = "the producer's subtile is the one the consumer's grid position needs on that channel"
    STAGE_OF_CONSUMER = "the consumer's partition computes from the producer's stage"


class Standing(NamedMember):
    """Where producer and consumer stand relative to each other."""

    ANYWHERE = "anywhere"
    SAME_PARTITION = "in the same partition"
    NEXT_PARTITION = "the consumer in the partition after the producer's"
    LAST_TO_FIRST = "the producer in the last partition, the consumer in the first"


class KFilter(NamedMember):
    """Which K offsets a load may have."""

    ANY = "any"
    NOT_PREV = "not K_PREV"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EdgeRule:
    """Connect every producer with every consumer that fits; producer-major, in body order.

    `k_prev_distance` replaces `distance` for a producer at K_PREV: it delivers to its own iteration.  `ahead` is added
    where the fragment of the pair feeds the next trip: it reads what this trip loaded, and the next load into its stage
    is the next trip's.
    A carried filter of None accepts both; an ordinal picks the n-th op of the role.
    """

    name: str
    producer: OpRole
    consumer: OpRole
    kind: DepKind = DepKind.FLOW
    distance: int = 0
    k_prev_distance: int | None = None
    ahead: int = 0
    matches: tuple[Match, ...] = ()
    placement: Standing = Standing.ANYWHERE
    consumer_k: KFilter = KFilter.ANY
    producer_carried: bool | None = None
    consumer_carried: bool | None = None
    producer_ordinal: int | None = None
    consumer_ordinal: int | None = None
    first_match_only: bool = False

    def __repr__(self) -> str:
        return f"<EdgeRule {self.name!r}>"

    def __str__(self) -> str:
        return self.name


_DOUBLE_BUFFER = (
    EdgeRule(
        name="a compute consumes the fragments of its row and column",
        producer=OpRole.FRAGMENT_LOAD,
        consumer=OpRole.COMPUTE,
        placement=Standing.SAME_PARTITION,
        matches=(Match.STAGE_OF_CONSUMER, Match.OPERAND),
    ),
    EdgeRule(
        name="an accumulator passes from partition to partition",
        producer=OpRole.COMPUTE,
        consumer=OpRole.COMPUTE,
        placement=Standing.NEXT_PARTITION,
        matches=(Match.STAGE, Match.SUBTILE),
    ),
    EdgeRule(
        name="an accumulator passes over the loop edge",
        producer=OpRole.COMPUTE,
        consumer=OpRole.COMPUTE,
        distance=1,
        placement=Standing.LAST_TO_FIRST,
        matches=(Match.STAGE, Match.SUBTILE),
    ),
    EdgeRule(
        name="a fragment reads what a load brought into its stage",
        producer=OpRole.GLOBAL_LOAD,
        consumer=OpRole.FRAGMENT_LOAD,
        distance=1,
        k_prev_distance=0,
        ahead=-1,
        matches=(Match.CHANNEL, Match.STAGE),
    ),
    EdgeRule(
        name="a load overwrites a stage after its fragments were read",
        producer=OpRole.FRAGMENT_LOAD,
        consumer=OpRole.GLOBAL_LOAD,
        kind=DepKind.ANTI,
        consumer_k=KFilter.NOT_PREV,
        ahead=1,
        matches=(Match.CHANNEL, Match.STAGE),
    ),
)

_SINGLE_BUFFER = (
    EdgeRule(
        name="a compute consumes the fragment of its K-tile",
        producer=OpRole.FRAGMENT_LOAD,
        consumer=OpRole.COMPUTE,
        matches=(Match.SUBTILE,),
        producer_carried=False,
        consumer_carried=False,
        first_match_only=True,
    ),
    EdgeRule(
        name="the store waits for the barrier that ends the reads",
        producer=OpRole.SYNC,
        consumer=OpRole.SHARED_STORE,
        producer_ordinal=0,
    ),
    EdgeRule(
        name="the second barrier publishes the store",
        producer=OpRole.SHARED_STORE,
        consumer=OpRole.SYNC,
        consumer_ordinal=1,
    ),
    EdgeRule(
        name="the carried fragment reads the published tile",
        producer=OpRole.SYNC,
        consumer=OpRole.FRAGMENT_LOAD,
        producer_ordinal=1,
        consumer_carried=True,
    ),
    EdgeRule(
        name="the first barrier waits for the reads of the tile",
        producer=OpRole.FRAGMENT_LOAD,
        consumer=OpRole.SYNC,
        kind=DepKind.ANTI,
        producer_carried=False,
        consumer_ordinal=0,
    ),
    EdgeRule(
        name="the carried compute consumes the carried fragment",
        producer=OpRole.FRAGMENT_LOAD,
        consumer=OpRole.COMPUTE,
        distance=1,
        producer_carried=True,
        consumer_carried=True,
    ),
    EdgeRule(
        name="the store takes what the load of the iteration before brought",
        producer=OpRole.GLOBAL_LOAD,
        consumer=OpRole.SHARED_STORE,
        distance=1,
    ),
    EdgeRule(
        name="the store overwrites the tile after the carried fragment was read",
        producer=OpRole.FRAGMENT_LOAD,
        consumer=OpRole.SHARED_STORE,
        kind=DepKind.ANTI,
        distance=1,
        producer_carried=True,
    ),
)

DOUBLE_BUFFER_RULES: tuple[EdgeRule, ...] = WrappedTuple(_DOUBLE_BUFFER)
SINGLE_BUFFER_RULES: tuple[EdgeRule, ...] = WrappedTuple(_SINGLE_BUFFER)


def evaluate_rules(rules: Sequence[EdgeRule], body: Sequence[OpDesc], config: PipelineConfig) -> Iterator[DepEdge]:
    by_role: dict[OpRole, list[tuple[int, OpDesc]]] = {}
    for index, op in enumerate(body):
        by_role.setdefault(op.role, []).append((index, op))
    for rule in rules:
        consumers = _side(by_role, rule.consumer, rule.consumer_carried, rule.consumer_ordinal, config)
        if rule.consumer_k is KFilter.NOT_PREV:
            consumers = [pair for pair in consumers if pair[1].k_offset is not KOffsetKind.K_PREV]
        for producer in _side(by_role, rule.producer, rule.producer_carried, rule.producer_ordinal, config):
            distance, ahead = rule.distance, rule.ahead
            if rule.k_prev_distance is not None and producer[1].k_offset is KOffsetKind.K_PREV:
                distance, ahead = rule.k_prev_distance, 0
            for consumer in consumers:
                if _fits(rule, producer, consumer, len(body), config):
                    trips = ahead and ahead * _trips_ahead(producer, consumer, len(body), config)
                    yield DepEdge(producer[0], consumer[0], rule.kind, distance + trips)
                    if rule.first_match_only:
                        break


def _trips_ahead(
    producer: tuple[int, OpDesc], consumer: tuple[int, OpDesc], length: int, config: PipelineConfig
) -> int:
    """How many trips ahead the fragment of the pair feeds a compute: 1 if it rotates over the loop edge, else 0."""
    index, fragment = producer if producer[1].role is OpRole.FRAGMENT_LOAD else consumer
    return config.partition_fed(fragment, config.partition_of_index(index, length))[1]


def _side(
    by_role: dict[OpRole, list[tuple[int, OpDesc]]],
    role: OpRole,
    carried: bool | None,
    ordinal: int | None,
    config: PipelineConfig,
) -> list[tuple[int, OpDesc]]:
    ops = by_role.get(role, [])
    if ordinal is not None:
        ops = ops[ordinal : ordinal + 1]
    if carried is not None:
        ops = [pair for pair in ops if config.loop_carried.carries(pair[1]) is carried]
    return ops


def _fits(
    rule: EdgeRule, producer: tuple[int, OpDesc], consumer: tuple[int, OpDesc], length: int, config: PipelineConfig
) -> bool:
    made, used = producer[1], consumer[1]
    for match in rule.matches:
        if match is Match.CHANNEL:
            fits = made.channel == used.channel
        elif match is Match.STAGE:
            fits = made.stage == used.stage
        elif match is Match.SUBTILE:
            fits = made.subtile == used.subtile
        elif match is Match.OPERAND:
            fits = config.compute_match_key(made.channel, used) == made.subtile
        else:
            stands_in = config.partition_of_index(consumer[0], length)
            fits = config.stage_of_partition(stands_in) == made.stage
        if not fits:
            return False
    if rule.placement is Standing.ANYWHERE:
        return True
    first = config.partition_of_index(producer[0], length)
    second = config.partition_of_index(consumer[0], length)
    if rule.placement is Standing.SAME_PARTITION:
        return first == second
    if rule.placement is Standing.NEXT_PARTITION:
        return second == first + 1
    return first == config.num_partitions - 1 and second == 0


def derive_edges_from_ops(body: Iterable[OpDesc], config: PipelineConfig) -> tuple[DepEdge, ...]:
    """The rule table that fits the config's depth, evaluated on the body."""
    ops = check_elements("a body", body, OpDesc)
    expect("the pipeline config", config, PipelineConfig)
    rules = DOUBLE_BUFFER_RULES if config.depth >= 2 else SINGLE_BUFFER_RULES
    return WrappedTuple(evaluate_rules(rules, ops, config))
