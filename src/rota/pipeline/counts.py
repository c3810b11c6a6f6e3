"""Waits that count ops of unstated size: takes a schedule by stages, gives a finding for each such counter.

A wait that leaves nothing under way needs no counts.  One that leaves `n` tokens does: where an op's number of
instructions isn't stated, those ops are unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rota.compiled.body_places import BodyPlaces
from rota.errors import Finding, Severity
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.pipeline.op import OpDesc
from rota.pipeline.op_effects import EffectTerms
from rota.pipeline.vocabulary import CHANNEL_A
from rota.program.entry import Entry, wait_name
from rota.program.kinds import OpKind


class _Words(NamedTuple):
    """What counts on a counter, the fields that state it, and what derives them."""

    units: str
    field: str
    derived_by: str


_VM = _Words("loads", "vm_per_load", "dma_loads")
_LGKM = _Words("LDS reads and writes", "lgkm_per_load", "fragment_reads")


def uncounted_ops(compiled: CompiledPipeline, severity: Severity = Severity.ERROR) -> Iterator[Finding]:
    """D110 for each counter on which some wait counts, and some op doesn't say how many tokens it has."""
    setting = EffectTerms(compiled.config, compiled.machine)
    for counter, words in ((setting.vm, _VM), (setting.lgkm, _LGKM)):
        own = [entry for entry in compiled.lowered.entries if entry.effect.counter == counter]
        waits = [entry for entry in own if entry.effect.kind is OpKind.WAIT and entry.effect.wait_value]
        declared = [(entry.op.declared) for entry in reversed(own) if entry.effect.kind is not OpKind.WAIT]
        ops = {
            (op.tag, op.channel): op
            for op in declared
            if isinstance(op, OpDesc) and not _stated(op, compiled, vm=words is _VM)
        }
        if waits and ops:
            yield _uncounted(compiled, words, waits[0], tuple(reversed(ops.values())), severity)


def _stated(op: OpDesc, compiled: CompiledPipeline, *, vm: bool) -> int:
    config, knobs = compiled.config, compiled.schedule_config
    if vm:
        return config.vm_tokens(op)
    return config.lgkm_tokens(op, knobs.lgkm_per_load_a, knobs.lgkm_per_load_b)


def _field(compiled: CompiledPipeline, words: _Words, channel: int) -> str:
    spec = compiled.config.further_channel(channel)
    if spec is not None:
        return f"{words.field} of {spec.name}"
    return f"{words.field}_{'a' if channel == CHANNEL_A else 'b'}"


def _uncounted(
    compiled: CompiledPipeline, words: _Words, wait: Entry, ops: tuple[OpDesc, ...], severity: Severity
) -> Finding:
    names = sorted({_field(compiled, words, op.channel) for op in ops})
    places, index = BodyPlaces(compiled), compiled.body_index()
    return Finding(
        code="D110",
        severity=severity,
        message=(
            f"{wait.op} counts {words.units}, but nothing states how many instructions "
            f"{' and '.join(str(op.name) for op in ops)} stand for"
        ),
        concerns=(
            *(op.concern(index(op), "not stated") for op in ops),
            places.concern(wait.concern(f"{wait.phase.value.lower()}, counts them")),
        ),
        evidence=(("not stated", ", ".join(names)),),
        fixes=(
            f"state {' and '.join(names)}, which KernelGeometry(...).{words.derived_by}() derives",
            f"{wait_name(wait.effect.counter or '')}(0) waits for all of them, however many they are",
        ),
    )
