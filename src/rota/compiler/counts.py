"""Waits that count what nobody has counted: takes a schedule by stages, gives a finding for each such counter.

A wait that leaves nothing under way needs no counts.  One that leaves `n` tokens does: where an op's number of
instructions isn't stated, nobody can say which ops those are.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.compiler.compiled import CompiledSchedule
from rota.compiler.places import BodyPlaces
from rota.declare.effects import Action, Counter
from rota.declare.op import OpDesc
from rota.declare.vocabulary import CHANNEL_A
from rota.errors import Finding, Severity
from rota.program.loop import Step, steps_of

_FIELDS = {Counter.VM: "vm_per_load", Counter.LGKM: "lgkm_per_load"}
_DERIVED_BY = {Counter.VM: "dma_loads", Counter.LGKM: "fragment_reads"}
_UNITS = {Counter.VM: "loads", Counter.LGKM: "LDS reads and writes"}


def uncounted_ops(compiled: CompiledSchedule, severity: Severity = Severity.ERROR) -> Iterator[Finding]:
    """D110 for each counter on which some wait counts, and some op doesn't say how many tokens it has.

    The ops of a loop by values all say it.
    """
    if compiled.loop is not None:
        return
    loop = steps_of(compiled)
    steps = (*loop.prologue, *loop.kernel, *loop.epilogue)
    for counter in Counter:
        own = [step for step in steps if step.effect.counter is counter]
        waits = [step for step in own if step.effect.action is Action.WAIT and step.effect.wait_value]
        ops = {
            (step.entry.op.tag, step.entry.op.channel): step.entry.op
            for step in reversed(own)
            if step.effect.action is not Action.WAIT and not _stated(step.entry.op, counter, compiled)
        }
        if waits and ops:
            yield _uncounted(compiled, counter, waits[0], tuple(reversed(ops.values())), severity)


def _stated(op: OpDesc, counter: Counter, compiled: CompiledSchedule) -> int:
    config, knobs = compiled.config, compiled.schedule_config
    if counter is Counter.VM:
        return op.vm_cost or config.vm_per_channel(op.channel)
    return op.lgkm_cost or config.lgkm_per_channel(op.channel, knobs.lgkm_per_load_a, knobs.lgkm_per_load_b)


def _uncounted(
    compiled: CompiledSchedule, counter: Counter, wait: Step, ops: tuple[OpDesc, ...], severity: Severity
) -> Finding:
    names = sorted({f"{_FIELDS[counter]}_{'a' if op.channel == CHANNEL_A else 'b'}" for op in ops})
    places = BodyPlaces(compiled)
    return Finding(
        code="D110",
        severity=severity,
        message=(
            f"{wait.entry.op} counts {_UNITS[counter]}, but nobody states how many instructions "
            f"{' and '.join(str(op.name) for op in ops)} stand for"
        ),
        concerns=(
            *(op.concern(places.index(op), "not stated") for op in ops),
            places.concern(wait.concern(f"{wait.entry.phase.value.lower()}, counts them")),
        ),
        evidence=(("not stated", ", ".join(names)),),
        fixes=(
            f"state {' and '.join(names)}, which KernelGeometry(...).{_DERIVED_BY[counter]}() derives",
            f"{wait.entry.op.name}(0) waits for all of them, however many they are",
        ),
    )
