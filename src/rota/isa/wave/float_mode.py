"""How a kernel computes floats: takes the mode that it starts in, gives a finding where the interpreter has another.

The interpreter rounds to the nearest even; denormals of 32 bits are kept or flushed as the mode says, those of 16 and
64 bits kept.  What rare values decide is a warning: as long as none comes up, nothing differs.
"""

from __future__ import annotations

from rota.errors import Finding, Severity
from rota.isa.binary.kernel_facts import FloatMode, KernelFacts

_KEPT = 3
_ROUNDING = ("to the nearest even", "up", "down", "towards zero")


def unlike_ours(facts: KernelFacts) -> tuple[Finding, ...]:
    """What may come out otherwise on the machine: an error where it will, a warning where rare values decide."""
    mode = facts.descriptor.float_mode
    if mode.round_32 or mode.round_64:
        return (
            Finding(
                code="I132",
                message=f"kernel {facts.name} rounds in another way than the interpreter",
                evidence=(
                    ("floats of 32 bits", _ROUNDING[mode.round_32]),
                    ("floats of 16 and 64 bits", _ROUNDING[mode.round_64]),
                    ("the interpreter rounds", _ROUNDING[0]),
                ),
                fixes=("compile it with rounding to the nearest even",),
            ),
        )
    differs = tuple(_differences(mode))
    if not differs:
        return ()
    return (
        Finding(
            code="I132",
            message=f"kernel {facts.name} computes rare floats in another way than the interpreter",
            severity=Severity.WARNING,
            evidence=differs,
            fixes=("where such values matter, compile it with denormals kept",),
        ),
    )


def is_heeded(bits: int) -> bool:
    """Do instructions compute as these bits of MODE say?"""
    return not bits & 0xF and bits >> 4 & 3 in {0, _KEPT} and bits >> 6 & 3 == _KEPT


def _differences(mode: FloatMode) -> list[tuple[str, str]]:
    found = []
    if mode.denormals_32 not in {0, _KEPT}:
        found.append(("denormals of 32 bits", "flushed on one side only on the machine, on both here"))
    if mode.denormals_64 != _KEPT:
        found.append(("denormals of 16 and 64 bits", "flushed to zero on the machine, kept here"))
    if mode.fp16_overflow:
        found.append(("overflow of 16 bits", "gives the largest number on the machine, infinity here"))
    return found
