"""How long kernels may run: takes seconds, gives an I108 where a launch takes longer.

Nothing is limited unless somebody asks for it: what is long on one machine isn't on another, and how many instructions
a wave may execute (`most_instructions`) doesn't depend on that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING

from rota.errors import Finding, IsaError

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction

_until: ContextVar[tuple[float, float] | None] = ContextVar("until", default=None)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Launches inside, all together, end after so many seconds by the clock, in an I108 if not by themselves."""
    token = _until.set((monotonic() + seconds, seconds))
    try:
        yield
    finally:
        _until.reset(token)


def heed_time(wave: int, instruction: Instruction | None = None) -> None:
    """Raises if the time is over; called at loops."""
    if (until := _until.get()) is not None and monotonic() > until[0]:
        raise IsaError(
            Finding(
                code="I108",
                message=f"wave {wave} hasn't ended within {until[1]:g} seconds",
                concerns=() if instruction is None else (instruction.concern(),),
                fixes=("take a smaller problem, or allow more time if the kernel is that long",),
            )
        )
