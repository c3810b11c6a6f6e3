"""How much of the documentation was executed: takes a run's reports, writes one line; worker processes count too."""

from __future__ import annotations

import pytest


def write_documentation(terminalreporter: pytest.TerminalReporter) -> None:
    """Blocks, commands and excuses of all tests that passed."""
    reports = terminalreporter.stats.get("passed", [])
    counts = [value for report in reports for name, value in report.user_properties if name == "documentation"]
    if not counts:
        return
    blocks, commands, excused = (sum(column) for column in zip(*counts, strict=True))
    terminalreporter.section("documentation")
    terminalreporter.write_line(
        f"{blocks} blocks of code and {commands} commands of the documentation executed; "
        f"{excused} not run, each with its reason in the page"
    )
