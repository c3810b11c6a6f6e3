"""What emitted source rests on: takes a schedule, gives comment lines with what was proved and what is assumed."""

from __future__ import annotations

from collections.abc import Iterator

from rota.compiled.compiled_schedule import CompiledSchedule


def contract(compiled: CompiledSchedule) -> Iterator[str]:
    """What was added to a schedule that wasn't proved, the first line of the certificate, then every assumption."""
    if compiled.certificate is None:
        yield "// The schedule is not proved."
        return
    for finding in compiled.findings:
        if finding.code == "W104":
            yield f"// {finding.message[0].upper()}{finding.message[1:]}:"
            yield from (f"//   {end.role} {end.label}" for end in finding.concerns)
    yield f"// The schedule is {str(compiled.certificate).splitlines()[0]}, if"
    yield from (f"//   {text}" for text in compiled.certificate.assumptions)
