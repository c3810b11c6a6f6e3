"""One dependency: takes two op indices, gives a frozen `DepEdge`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rota.check import bad_field, is_int
from rota.errors import several
from rota.printing import NamedMember, Pasted


class DepKind(NamedMember):
    """Read after write, write after read, write after write."""

    FLOW = "FLOW"
    ANTI = "ANTI"
    OUTPUT = "OUTPUT"


@dataclass(frozen=True, slots=True, repr=False)
class DepEdge(Pasted):
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

    def __rich_repr__(self) -> Iterable[object]:
        """The two ends, the kind where it isn't FLOW, and the distance."""
        yield from (self.producer_idx, self.consumer_idx)
        yield from ((self.dep_kind,) if self.dep_kind is not DepKind.FLOW else ())
        yield from ((("loop_distance", self.loop_distance),) if self.loop_distance else ())

    def __str__(self) -> str:
        later = f", {several(self.loop_distance, 'iteration')} later" if self.loop_distance else ""
        return f"{self.dep_kind.name} {self.producer_idx} -> {self.consumer_idx}{later}"
