"""`rota targets`: takes nothing or a device, gives the facts that schedules and predictions rest on, with sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

import click

from rota.cli.output import give, json_option
from rota.errors import did_you_mean

if TYPE_CHECKING:
    from rota.program.machine import Fact
    from rota.targets.device import Device
    from rota.targets.problem_facts import Fitted

_FITTED = "fitted to measurements"


@click.command(epilog="\b\nExamples:\n  rota targets\n  rota targets mi355x")
@click.argument("machine", required=False)
@json_option
def targets(machine: str | None) -> None:
    """List the machines and what is known of them.

    Each fact has a value, a confidence and a source; estimates have a range.
    """
    from rota.targets import registry

    if machine is None:
        chosen, unusable = registry.known_devices()
    elif machine.lower() in registry.names():
        chosen, unusable = (registry.device_named(machine),), ()
    else:
        known = registry.names()
        raise click.UsageError(f"no machine is named {machine!r}; " + "; ".join(did_you_mean(machine.lower(), known)))
    text = "\n\n".join([*(_text(each) for each in chosen), *(str(finding) for finding in unusable)])
    give(text, [{"name": each.name, "arch": each.arch, "facts": [*_facts(each)]} for each in chosen])


class _Row(NamedTuple):
    name: str
    fact: Fact | Fitted
    low: float | None = None
    high: float | None = None


def _facts(device: Device) -> Iterator[dict[str, object]]:
    for row in _rows(device):
        span = {"low": row.low, "high": row.high} if row.low is not None else {}
        known = row.fact._asdict()
        yield {"name": row.name, **known, "confidence": known.get("confidence", _FITTED), **span}


def _rows(device: Device) -> Iterator[_Row]:
    """Counters and memories, then rates, then what only the cycle model needs, then instructions; each fact once."""
    from rota.targets.estimate import Estimate

    ranges = {each.fact: each for _, each in device.timing.estimates}
    for counter in device.counters:
        yield _Row(f"{counter.name}_field", counter.holds)
    seen: set[str] = set()
    for owner in (device, device.rates, device.timing):
        for field in fields(owner):
            value = getattr(owner, field.name)
            fact = value.fact if isinstance(value, Estimate) else value
            if not _is_fact(fact) or field.name in seen:
                continue
            seen.add(field.name)
            own = value if isinstance(value, Estimate) and value.low != value.high else ranges.get(fact)
            yield _Row(field.name, fact, *((own.low, own.high) if own else ()))
    for field in fields(device.hazards):
        if _is_fact(states := getattr(device.hazards, field.name)):
            yield _Row(f"wait states, {field.name}", states)
    for rule in device.bank_rules:
        yield _Row(f"LDS banks, reads of {rule.read_bytes} bytes", rule.banks)
    yield from _problem_rows(device)
    for rate in device.rates.matrix:
        yield _Row(rate.instruction, rate.passes)
        if rate.narrow is not None:
            yield _Row(f"{rate.instruction}, 6 bits or fewer", rate.narrow)


def _problem_rows(device: Device) -> Iterator[_Row]:
    """What whole kernels are predicted from."""
    from rota.targets.problem_facts import Fitted

    facts = device.problems
    if facts is None:
        return
    named = [(field.name, getattr(facts, field.name)) for field in fields(facts)]
    for each in facts.types:
        named.append((f"f_busy, {each.element}", each.f_busy))
        if each.best is not None:
            named.append((f"best measured, {each.element}", each.best))
    for name, value in named:
        if isinstance(value, Fitted):
            span = (value.low, value.high) if value.low < value.high else ()
            yield _Row(f"whole kernels, {name}", value, *span)


def _is_fact(value: object) -> bool:
    from rota.program.machine import Fact

    return isinstance(value, Fact)


def _text(device: Device) -> str:
    rows = []
    for name, fact, low, high in _rows(device):
        span = f" ({low}..{high})" if low is not None else ""
        confidence = getattr(fact, "confidence", None)
        rows.append((name, f"{fact.value} {fact.unit}{span}", confidence.value if confidence else _FITTED, fact.source))
    wide = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        f"  {name:{wide[0]}}  {value:{wide[1]}}  {known:{wide[2]}}  {source}" for name, value, known, source in rows
    ]
    return "\n".join([f"{device.name} ({device.arch})", *lines])
