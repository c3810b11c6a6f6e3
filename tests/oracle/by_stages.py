"""What ops of a pipeline by stages do: takes them and the pipeline config, gives the effects that lowering should give.

A pipeline of one stage moves tiles through staging registers; each compute takes a slice of K.  Any other one moves
them by DMA, and computes a grid.  The counters are those of gfx9.
"""

from __future__ import annotations

from typing import NamedTuple

from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import FrameworkTag, OpDesc
from rota.program.entry import WORKGROUP, Effect, Place, Space
from rota.program.kinds import OpKind, OpRole

VM, LGKM = "vmcnt", "lgkmcnt"
_A, _B = 0, 1


class Stages(NamedTuple):
    """The config, and the tokens of an LDS access to A and to B where neither op nor config states them."""

    config: PipelineConfig
    fallback: tuple[int, int]

    def effect(self, op: OpDesc) -> Effect:
        """What the op's tag or role says."""
        if op.is_framework:
            return _framework(op)
        if op.role is OpRole.GLOBAL_LOAD:
            return self._load(op)
        if op.role is OpRole.SHARED_STORE:
            return self._moved(op, OpKind.LDS_WRITE, self._staging(op), self._tile(op))
        if op.role is OpRole.FRAGMENT_LOAD:
            return self._moved(op, OpKind.LDS_READ, self._tile(op), self._fragment(op.channel, op.subtile))
        if op.role is OpRole.COMPUTE:
            return self._compute(op)
        return Effect(kind=OpKind.NOTHING)

    @property
    def staged(self) -> bool:
        """One buffer, filled through registers."""
        return self.config.depth == 1

    def _tile(self, op: OpDesc, part: int | None = None) -> Place:
        chosen = op.subtile if part is None else part
        return Place(Space.LDS, self._operand(op.channel), op.stage, 0 if self.staged else chosen)

    def _operand(self, channel: int) -> str:
        names = ["A", "B", *(spec.name for spec in self.config.further_channels)]
        return names[channel] if 0 <= channel < len(names) else str(channel)

    def _fragment(self, channel: int, subtile: int) -> Place:
        return Place(Space.REGISTER, self._operand(channel), subtile)

    def _staging(self, op: OpDesc) -> Place:
        return Place(Space.REGISTER, f"staging {self._operand(op.channel)}")

    def _load(self, op: OpDesc) -> Effect:
        config = self.config
        declared = [config.vm_per_load_a, config.vm_per_load_b, *(spec.vm_per_load for spec in config.further_channels)]
        tokens = max(op.vm_cost or declared[op.channel if op.channel >= _A else _B], 1)
        if self.staged:
            return Effect(kind=OpKind.GLOBAL_LOAD, counter=VM, tokens=tokens, writes=(self._staging(op),))
        tile = op.k_offset.value or 0
        parts = [op.subtile]
        if op.channel > _B and (spec := config.further_channels[op.channel - 2]).whole_tile:
            parts = [*range((config.m_mmas, config.n_mmas)[spec.match_field])]
        written = tuple(self._tile(op, part) for part in parts)
        return Effect(kind=OpKind.DMA, counter=VM, tokens=tokens, writes=written, fetches=tile)

    def _moved(self, op: OpDesc, kind: OpKind, source: Place, target: Place) -> Effect:
        config, fallback = self.config, self.fallback
        stated = (config.lgkm_per_load_a, fallback[0]) if op.channel == _A else (config.lgkm_per_load_b, fallback[1])
        if op.channel > _B:
            stated = (config.further_channels[op.channel - 2].lgkm_per_load, 0)
        tokens = max(op.lgkm_cost or stated[0] or stated[1], 1)
        return Effect(kind=kind, counter=LGKM, tokens=tokens, reads=(source,), writes=(target,))

    def _compute(self, op: OpDesc) -> Effect:
        if self.staged:
            total = Place(Space.ACCUMULATOR, "")
            return Effect(kind=OpKind.MMA, reads=(self._fragment(_A, op.subtile),), writes=(total,))
        fields, config = (op.stage, op.subtile), self.config
        matched = [config.ch0_match_field, config.ch1_match_field, *(s.match_field for s in config.further_channels)]
        operands = tuple(self._fragment(channel, fields[field]) for channel, field in enumerate(matched))
        return Effect(kind=OpKind.MMA, reads=operands, writes=(Place(Space.ACCUMULATOR, "", *fields),))


def _framework(op: OpDesc) -> Effect:
    if op.tag == FrameworkTag.BARRIER:
        return Effect(kind=OpKind.BARRIER, arrives=WORKGROUP, awaits=WORKGROUP)
    if op.tag in (FrameworkTag.WAIT_VM, FrameworkTag.WAIT_LGKM):
        counter = VM if op.tag == FrameworkTag.WAIT_VM else LGKM
        return Effect(kind=OpKind.WAIT, counter=counter, wait_value=op.wait_value)
    if op.tag == FrameworkTag.SET_PRIO:
        return Effect(kind=OpKind.PRIORITY, wait_value=op.wait_value)
    if op.tag == FrameworkTag.SCHED_GROUP_BARRIER:
        return Effect(kind=OpKind.HINT, tokens=op.subtile, wait_value=op.wait_value)
    return Effect(kind=OpKind.FENCE)
