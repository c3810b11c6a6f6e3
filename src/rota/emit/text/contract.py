"""What emitted source rests on: takes a schedule, gives comment lines with what was proved and what is assumed."""

from __future__ import annotations

from collections.abc import Iterator

from rota.compiled.compiled_schedule import CompiledSchedule


def contract(compiled: CompiledSchedule) -> Iterator[str]:
    """The first line of the certificate, then every assumption of the proof."""
    if compiled.certificate is None:
        yield "// The schedule is not proved."
        return
    yield f"// The schedule is {str(compiled.certificate).splitlines()[0]}, if"
    yield from (f"//   {text}" for text in compiled.certificate.assumptions)
