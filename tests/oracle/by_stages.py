"""What ops of a pipeline by stages do: takes them and the pipeline config, gives the effects that lowering should give.

A pipeline of one stage moves tiles through staging registers; each compute takes a slice of K.  Any other one moves
them by DMA, and computes a grid.  The counters are those of gfx9.
"""

from __future__ import annotations

from typing import NamedTuple

from rota.pipeline.config import PipelineConfig
from rota.pipeline.op import OpDesc
from rota.pipeline.vocabulary import FrameworkTag
from rota.program.effects import WORKGROUP, Effect, Place, Space
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
            return self._moved(op, OpKind.LDS_WRITE, _staging(op), self._tile(op))
        if op.role is OpRole.FRAGMENT_LOAD:
            return self._moved(op, OpKind.LDS_READ, self._tile(op), _fragment(op.channel, op.subtile))
        if op.role is OpRole.COMPUTE:
            return self._compute(op)
        return Effect(kind=OpKind.NOTHING)

    @property
    def staged(self) -> bool:
        """One buffer, filled through registers."""
        return self.config.depth == 1

    def _tile(self, op: OpDesc) -> Place:
        return Place(Space.LDS, _operand(op.channel), op.stage, 0 if self.staged else op.subtile)

    def _load(self, op: OpDesc) -> Effect:
        of_channel = self.config.vm_per_load_a if op.channel == _A else self.config.vm_per_load_b
        tokens = max(op.vm_cost or of_channel, 1)
        if self.staged:
            return Effect(kind=OpKind.GLOBAL_LOAD, counter=VM, tokens=tokens, writes=(_staging(op),))
        tile = op.k_offset.value or 0
        return Effect(kind=OpKind.DMA, counter=VM, tokens=tokens, writes=(self._tile(op),), fetches=tile)

    def _moved(self, op: OpDesc, kind: OpKind, source: Place, target: Place) -> Effect:
        config, fallback = self.config, self.fallback
        stated = (config.lgkm_per_load_a, fallback[0]) if op.channel == _A else (config.lgkm_per_load_b, fallback[1])
        tokens = max(op.lgkm_cost or stated[0] or stated[1], 1)
        return Effect(kind=kind, counter=LGKM, tokens=tokens, reads=(source,), writes=(target,))

    def _compute(self, op: OpDesc) -> Effect:
        if self.staged:
            total = Place(Space.ACCUMULATOR, "")
            return Effect(kind=OpKind.MMA, reads=(_fragment(_A, op.subtile),), writes=(total,))
        fields = (op.stage, op.subtile)
        operands = (
            _fragment(_A, fields[self.config.ch0_match_field]),
            _fragment(_B, fields[self.config.ch1_match_field]),
        )
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


def _operand(channel: int) -> str:
    return {_A: "A", _B: "B"}.get(channel, str(channel))


def _staging(op: OpDesc) -> Place:
    return Place(Space.REGISTER, f"staging {_operand(op.channel)}")


def _fragment(channel: int, subtile: int) -> Place:
    return Place(Space.REGISTER, _operand(channel), subtile)
