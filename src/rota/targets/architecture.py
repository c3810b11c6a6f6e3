"""What all devices of an architecture share: takes facts, gives what code for it may say and how it must be spaced.

A code object names its architecture and no device; this is all that can be known of where it runs.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from rota.check import check_elements, check_types
from rota.errors import DeclarationError, Finding
from rota.program.machine import Confidence, Fact, Machine
from rota.targets.matrix_forms import MatrixForm
from rota.targets.wait_states import Hazards

Phases = tuple[tuple[int, ...], ...]


class Float8(enum.Enum):
    """What the bits of fp8 and bf8 stand for."""

    OCP = "OCP"
    FNUZ = "FNUZ"  # one more in the bias, no infinities, no negative zero


class WaitEncoding(enum.Enum):
    """Which bits of s_waitcnt hold which counter; all ones in a field wait for nothing."""

    SPLIT_VMCNT = "vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8"


@dataclass(frozen=True, slots=True, kw_only=True)
class BankRule:
    """How LDS serves one wave's reads of `read_bytes` a lane: the lanes of a phase together.

    Each bank gives one register's worth a clock.
    """

    read_bytes: int
    banks: Fact
    phases: Phases
    phases_known: Confidence
    source: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Architecture(Machine):
    """A machine with its instruction set: formats, hazards, how LDS serves reads, and what tools call it.

    `toolchain` is what follows -mcpu= and --offload-arch=, `elf_machine` what the flags of a code object say.
    `transposed_reads` are the LDS reads that transpose, by name; empty where there are none.  `extensions` are the
    vector instructions, matrix ones aside, that not every machine has, `matrix_forms` its matrix instructions.  Without
    a `wait_encoding` no source is written for it.  `d16_kept` is 1 if a load of half a register (d16) leaves the other
    half as it was, 0 if that is lost.
    """

    toolchain: str
    elf_machine: Fact
    lanes: Fact
    register_bytes: Fact
    d16_kept: Fact
    float8: Float8
    hazards: Hazards
    bank_rules: tuple[BankRule, ...]
    transposed_reads: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    matrix_forms: tuple[MatrixForm, ...] = ()
    wait_encoding: WaitEncoding | None = None

    def __post_init__(self) -> None:
        # Not super(): a class with slots is not the one that super() without arguments refers to.
        Machine.__post_init__(self)
        check_types(self, {"toolchain": str, "elf_machine": Fact, "lanes": Fact, "register_bytes": Fact})
        check_types(self, {"d16_kept": Fact})
        check_types(self, {"float8": Float8, "hazards": Hazards})
        check_elements("bank_rules", self.bank_rules, BankRule)
        check_elements("transposed_reads", self.transposed_reads, str)
        check_elements("extensions", self.extensions, str)
        check_elements("matrix_forms", self.matrix_forms, MatrixForm)

    def bank_rule(self, read_bytes: int) -> BankRule:
        """How LDS serves reads of so many bytes a lane."""
        for rule in self.bank_rules:
            if rule.read_bytes == read_bytes:
                return rule
        sizes = ", ".join(str(rule.read_bytes) for rule in self.bank_rules) or "none"
        raise lacks(self, f"how LDS serves reads of {read_bytes} bytes a lane", ("known for bytes a lane", sizes))


def lacks(machine: Machine, fact: str, *evidence: tuple[str, str | int]) -> DeclarationError:
    """The D114 error for a fact that a machine doesn't state."""
    who = machine.name if machine.name == machine.arch else f"{machine.name} ({machine.arch})"
    return DeclarationError(
        Finding(
            code="D114",
            message=f"{who} doesn't state {fact}; no other device's number is taken for it",
            evidence=(("machine", machine.name), ("lacks", fact), *evidence),
            fixes=(
                "state it, with its source, in the file of the device (`rota.targets.device.Device`)",
                "take a device that states it; `rota targets` lists them",
            ),
        )
    )


def has_one_wait(machine: Machine) -> bool:
    """Does one instruction wait for all counters, each in a field of its own?  A compiler makes one of several then."""
    return isinstance(machine, Architecture) and machine.wait_encoding is not None


def architecture_of(machine: Machine) -> Architecture:
    """The machine itself, if it knows its instruction set."""
    if not isinstance(machine, Architecture):
        raise lacks(machine, "its instruction set")
    return machine
