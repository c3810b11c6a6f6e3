"""An operand of a pipeline's computes besides A and B: its name, its fragments and its tokens."""

from __future__ import annotations

from dataclasses import dataclass

from rota.check import bad_field, check_ints, check_types
from rota.pipeline.vocabulary import OPERAND_NAMES


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
