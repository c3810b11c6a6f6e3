"""One dependency: takes two op indices, gives a frozen `DepEdge`."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from rota.check import bad_field, is_int


class DepKind(enum.Enum):
    """Read after write, write after read, write after write."""

    FLOW = "FLOW"
    ANTI = "ANTI"
    OUTPUT = "OUTPUT"


@dataclass(frozen=True, slots=True)
class DepEdge:
    """`consumer_idx` of iteration i + `loop_distance` must come after `producer_idx` of iteration i."""

    producer_idx: int
    consumer_idx: int
    dep_kind: DepKind = DepKind.FLOW
    loop_distance: int = 0

    def __post_init__(self) -> None:
        for name in ("producer_idx", "consumer_idx", "loop_distance"):
            value = getattr(self, name)
            if type(value) is not int and not is_int(value):
                raise bad_field(self, name, value, "an integer")
        if not isinstance(self.dep_kind, DepKind):
            raise bad_field(self, "dep_kind", self.dep_kind, "a DepKind")
