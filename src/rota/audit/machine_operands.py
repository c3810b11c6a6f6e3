"""Operands of machine code: takes one as it is written, gives its registers; and what is said of a wrong one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rota.audit.expected import ExpectedEvent
from rota.audit.machine_loop import MachineEvent
from rota.errors import Concern, Finding

_SPAN = re.compile(r"([va])(?:\[(\d+):(\d+)\]|(\d+))")


def named_registers(operand: str) -> Iterator[str]:
    """The vector registers that an operand names, one after the other; none if it names no such."""
    match = _SPAN.fullmatch(operand)
    if match is not None:
        first, last = (match[2], match[3]) if match[2] else (match[4], match[4])
        for number in range(int(first), int(last) + 1):
            yield f"{match[1]}{number}"


def wrong_operand(planned: ExpectedEvent, found: MachineEvent, what: str, due: object, have: object) -> Finding:
    """I203: an instruction works on something else than its op."""
    return Finding(
        code="I203",
        message=f"{planned.entry.op} works on another {what} than the schedule says",
        concerns=(
            planned.entry.concern(),
            Concern(label=found.instruction.text, index=found.number, role="in machine code"),
        ),
        evidence=(("due", str(due)), ("found", str(have))),
    )
