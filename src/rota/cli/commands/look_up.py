"""`rota kernels`, `rota targets` and `rota explain`: what rota knows, by name."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import fields
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

import click

from rota.cli.arguments import find_kernel, leaves, set_option
from rota.cli.output import give, json_option
from rota.errors import CODES, did_you_mean
from rota.kernels.catalogue import KERNELS, full_names, shipped_kernels
from rota.program.machine import Machine

if TYPE_CHECKING:
    from rota.program.machine import Fact
    from rota.targets.device import Device, Fitted

_INLINE = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|(?<!\*)\*([^*\s][^*]*)\*(?!\*)|\[([^\]]*)\]\([^)]*\)")


def render(markdown: str) -> str:
    """What a finding's page needs: headings, fenced code, inline code, emphasis and links."""
    return "\n".join(_lines(markdown.rstrip().splitlines()))


def _lines(lines: list[str]) -> Iterator[str]:
    code = False
    for line in lines:
        if line.startswith("```"):
            code = not code
        elif code:
            yield click.style(f"    {line}", fg="cyan") if line else ""
        elif line.startswith("#"):
            yield click.style(_INLINE.sub(_plain, line.lstrip("# ")), bold=True)
        else:
            yield _INLINE.sub(_style, line)


def _style(found: re.Match[str]) -> str:
    code, strong, slanted, link = found.groups()
    if code is not None:
        return click.style(code, fg="cyan")
    return click.style(strong, bold=True) if strong is not None else click.style(slanted or link or "", italic=True)


def _plain(found: re.Match[str]) -> str:
    return next(part for part in found.groups() if part is not None)


@click.command(epilog="\b\nExamples:\n  rota kernels\n  rota kernels four_wave")
@click.argument("kernel", required=False)
@set_option
@json_option
def kernels(kernel: str | None, settings: tuple[str, ...]) -> None:
    """List the kernels that are known by name, or KERNEL's settings."""
    if kernel is None:
        _list()
        return
    found = leaves(find_kernel(kernel, settings))
    if not found:
        raise click.UsageError(f"{kernel} has no field that --set could change")
    wide = max(len(leaf.name) for leaf in found)
    text = "\n".join(f"{leaf.name:{wide}}  {_show_value(leaf.value)}" for leaf in found)
    give(text, {leaf.name: _show_value(leaf.value) for leaf in found})


def _list() -> None:
    """Those of other packages are named, not loaded: one that is broken hides no other."""
    rows = [(name, one.machine.name, one.about) for name, one in shipped_kernels().items()]
    rows += [(name, "", f"registered by {package}") for name, package in KERNELS.names().items() if package is not None]
    full = {short: name for name, short in full_names().items()}
    data = [dict(zip(("name", "machine", "about"), row, strict=True), also=full.get(row[0])) for row in rows]
    wide, across = (max(len(row[column]) for row in rows) for column in (0, 1))
    give("\n".join(f"{name:{wide}}  {machine:{across}}  {about}" for name, machine, about in rows), data)


def _show_value(value: object) -> object:
    """A value as a user would type it after `--set`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return value.name.lower() if isinstance(value, Machine) else value


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
    from rota.targets.device import Estimate

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
        yield _Row(f"LDS banks, {'writes' if rule.writes else 'reads'} of {rule.read_bytes} bytes", rule.banks)
    yield from _problem_rows(device)
    for rate in device.rates.matrix:
        yield _Row(rate.instruction, rate.passes)
        if rate.narrow is not None:
            yield _Row(f"{rate.instruction}, 6 bits or fewer", rate.narrow)


def _problem_rows(device: Device) -> Iterator[_Row]:
    from rota.targets.device import Fitted

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


_FAMILIES = {
    "D": "declare",
    "G": "graph",
    "O": "order",
    "P": "program and phases",
    "W": "waits",
    "B": "barriers",
    "R": "races",
    "V": "values",
    "L": "limits",
    "T": "toolchain",
    "I": "isa audit",
    "M": "measurements and whole problems",
    "S": "spaces and stores of a tuned library",
}


@click.command(epilog="\b\nExamples:\n  rota explain R102\n  rota explain")
@click.argument("code", required=False)
@json_option
def explain(code: str | None) -> None:
    """Say what a finding's CODE means.

    With the smallest example that ends in it, and how to fix it.  Without a code, list them all.
    """
    if code is None:
        give("\n".join(f"{each}  {meaning}" for each, meaning in CODES.items()), CODES)
        return
    known = code.upper()
    if known not in CODES:
        guesses = did_you_mean(known, CODES)[:-1]
        raise click.UsageError("; ".join([f"no finding has the code {code!r}", *guesses, "`rota explain` lists them"]))
    page = resources.files("rota").joinpath("findings", f"{known}.md").read_text("utf-8")
    data = {"code": known, "meaning": CODES[known], "family": _FAMILIES[known[0]], "page": page}
    give(page.removeprefix("# ").rstrip(), data, rendered=lambda: render(page))
