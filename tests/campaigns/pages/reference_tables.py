"""The tables of the reference: takes the code, gives a page with its commands, devices and instructions.

    python -m benchmarks.reference_tables > docs/reference_tables.md

A test compares the page with what this gives.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from rota.cli.main import main
from rota.errors import CODES
from rota.targets.registry import known_devices
from tests.campaigns.machine_code.instructions import executed_opcodes

ARCHITECTURES = ("gfx942", "gfx950")
_HEAD = """# Commands, devices, findings and instructions, as tables

Made from the code by `python -m benchmarks.reference_tables`; a test keeps it up to date.
"""
_FAMILIES = (
    ("matrix", ("v_mfma", "v_smfmac")),
    ("LDS", ("ds_",)),
    ("global, buffer, flat and scratch memory", ("global_", "buffer_", "flat_", "scratch_")),
    ("scalar memory", ("s_load", "s_buffer", "s_store", "s_dcache", "s_scratch", "s_atc")),
    ("scalar", ("s_",)),
    ("vector", ("v_",)),
)


def page() -> str:
    """The whole page."""
    return "\n".join((_HEAD, *_commands(), *_devices(), *_findings(), *_instructions()))


def _commands() -> Iterator[str]:
    context = click.Context(main, info_name="rota")
    yield "## Commands\n"
    yield "`rota COMMAND --help` has the options in full, with examples.\n"
    yield "| command | | options |\n|---|---|---|"
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        options = [
            max(parameter.opts, key=len)
            for parameter in command.params
            if isinstance(parameter, click.Option) and not parameter.hidden
        ]
        what = command.get_short_help_str(200)
        yield f"| {name} | {_cell(what)} | {', '.join(f'`{each}`' for each in options)} |"
    yield ""


def _devices() -> Iterator[str]:
    devices, _ = known_devices()
    yield "## Devices\n"
    yield "`rota targets mi355x` prints every fact of a device, with confidence and source.\n"
    yield "| device | architecture | compute units | LDS of a workgroup | registers of a lane | counters |"
    yield "|---|---|---:|---:|---:|---|"
    for device in devices:
        counters = ", ".join(f"{each.name} {each.holds.value}" for each in device.counters)
        units, lds = device.timing.compute_units.value, device.lds_bytes.value // 1024
        yield f"| {device.name} | {device.arch} | {units} | {lds} KiB | {device.vgprs_per_lane.value} | {counters} |"
    yield ""


def _findings() -> Iterator[str]:
    yield "## Findings\n"
    yield "Every code has [a page](findings.md) with its smallest example.\n"
    yield "| code | |\n|---|---|"
    yield from (f"| {{doc}}`{code} <findings/{code}>` | {_cell(meaning)} |" for code, meaning in CODES.items())
    yield ""


def _instructions() -> Iterator[str]:
    known = {arch: executed_opcodes(arch) for arch in ARCHITECTURES}
    every = sorted(frozenset().union(*known.values()))
    yield "## Instructions\n"
    yield "What the interpreter executes and the proof follows; [](instructions.md) says how that is checked.\n"
    yield f"| family | {' | '.join(ARCHITECTURES)} |\n|---|{'---:|' * len(ARCHITECTURES)}"
    groups: dict[str, list[str]] = {name: [] for name, _ in _FAMILIES}
    for opcode in every:
        groups[next(name for name, prefixes in _FAMILIES if opcode.startswith(prefixes))].append(opcode)
    for name, opcodes in groups.items():
        counts = [sum(opcode in known[arch] for opcode in opcodes) for arch in ARCHITECTURES]
        yield f"| {name} | {' | '.join(map(str, counts))} |"
    yield f"| all | {' | '.join(str(len(known[arch])) for arch in ARCHITECTURES)} |\n"
    for name, opcodes in groups.items():
        yield f"### {name[0].upper()}{name[1:]}\n"
        yield f"| opcode | {' | '.join(ARCHITECTURES)} |\n|---|{'---|' * len(ARCHITECTURES)}"
        for opcode in opcodes:
            marks = ("yes" if opcode in known[arch] else "no" for arch in ARCHITECTURES)
            yield f"| `{opcode}` | {' | '.join(marks)} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
