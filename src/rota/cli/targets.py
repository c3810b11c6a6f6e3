"""`rota targets`: takes nothing or a machine, gives the facts that schedules and predictions rest on, with sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

import click

from rota.cli.output import give, json_option
from rota.errors import did_you_mean
from rota.targets.machine import MACHINES, NAMED, Fact, Machine


@click.command(epilog="\b\nExamples:\n  rota targets\n  rota targets mi355x")
@click.argument("machine", required=False)
@json_option
def targets(machine: str | None) -> None:
    """List the machines and what is known of them.

    Each fact has a value, a confidence and a source; estimates have a range.
    """
    if machine is not None and machine.lower() not in NAMED:
        raise click.UsageError(f"no machine is named {machine!r}; " + "; ".join(did_you_mean(machine.lower(), NAMED)))
    chosen = MACHINES if machine is None else (NAMED[machine.lower()],)
    text = "\n\n".join(_text(each) for each in chosen)
    give(text, [{"name": each.name, "arch": each.arch, "facts": [*_facts(each)]} for each in chosen])


def _facts(machine: Machine) -> Iterator[dict[str, object]]:
    """Counters and memories, then rates, then what only the cycle model needs; each fact once."""
    from rota.targets.rates import rates_of
    from rota.targets.timing import Estimate, timing_of

    rates, timing = rates_of(machine), timing_of(machine)
    ranges = dict(timing.estimates)
    seen: set[str] = set()
    for owner in (machine, rates, timing):
        for field in fields(owner):
            value = getattr(owner, field.name)
            fact = value.fact if isinstance(value, Estimate) else value
            if isinstance(fact, Fact) and field.name not in seen:
                seen.add(field.name)
                estimate = ranges.get(field.name)
                span = {"low": estimate.low, "high": estimate.high} if estimate else {}
                yield {"name": field.name, **fact._asdict(), **span}
    for instruction, fact in rates.mfma_passes.items():
        yield {"name": instruction, **fact._asdict()}


def _text(machine: Machine) -> str:
    rows = []
    for fact in _facts(machine):
        span = f" ({fact['low']}..{fact['high']})" if "low" in fact else ""
        confidence = getattr(fact["confidence"], "value", "")
        rows.append((str(fact["name"]), f"{fact['value']} {fact['unit']}{span}", confidence, str(fact["source"])))
    wide = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        f"  {name:{wide[0]}}  {value:{wide[1]}}  {known:{wide[2]}}  {source}" for name, value, known, source in rows
    ]
    return "\n".join([f"{machine.name} ({machine.arch})", *lines])
