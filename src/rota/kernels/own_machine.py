"""The machine that a kernel is for: takes what an author wrote, gives the machine it names, or how to name one."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from rota.check import bad_field
from rota.errors import Concern, DeclarationError, Finding
from rota.program.loop_spec import LoopSpec
from rota.program.machine import Machine
from rota.targets.device import rates_of
from rota.targets.registry import known_devices


def own_machine(value: object) -> Machine | None:
    """What a field, a property or a method `machine` says; None where there is none, or a field left open."""
    said = getattr(value, "machine", None)
    if callable(said):
        said = said()
        if said is None:
            raise bad_field(value, "machine()", said, "a Machine")
    if said is not None and not isinstance(said, Machine):
        raise bad_field(value, "machine", said, "a Machine")
    return said


def has_machine_field(value: object) -> bool:
    """Is its machine one of a dataclass's fields, which can be set like the others?"""
    return is_dataclass(value) and any(field.name == "machine" for field in fields(value))


def check_instructions(loop: LoopSpec, machine: Machine) -> None:
    """A loop whose matrix instructions another machine has is likely meant for that one."""
    has = rates_of(machine).mfma_passes
    lacking = next((op for op in loop.ops if op.instruction and op.instruction not in has), None)
    if lacking is None:
        return
    used = {op.instruction for op in loop.ops if op.instruction}
    has_all = next((other for other in known_devices().devices if used <= other.rates.mfma_passes.keys()), None)
    if has_all is None:
        return
    raise DeclarationError(
        Finding(
            code="D105",
            message=f"{machine.arch} has no matrix instruction {lacking.instruction!r} that rota knows; "
            f"{has_all.arch} has all that {loop.name} uses",
            concerns=(Concern(label=lacking.name, source=lacking.source),),
            evidence=(("compiled for", machine.name), ("has it", has_all.name)),
            fixes=(
                f"--set machine={has_all.name.lower()}",
                f"let the kernel say it: a field, parameter or method `machine` that gives {has_all.name}",
            ),
        )
    )
