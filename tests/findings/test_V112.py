from __future__ import annotations

from dataclasses import replace

from rota import verify
from rota.errors import Finding
from rota.program.entry import Effect
from tests.findings.test_V106 import make, spec, use
from tests.programs.tiny import tiny
from tests.wording.golden import worded


def findings(*effects: Effect) -> tuple[Finding, ...]:
    """A loop that sums up the x of the iteration before; its last two iterations run behind it, in this order."""
    made = tiny(spec(distance=1), (use(-1, -2), make(-1)), epilogue=effects)
    return tuple(worded(finding) for finding in verify(replace(made, tiles_outside=2)).errors)


def test_the_last_version_is_there_for_whoever_comes_behind_the_loop() -> None:
    assert findings(use(-1, -2), make(-1), use(0, -1), make(0)) == ()


def test_a_last_version_that_an_older_one_overwrites_is_reported() -> None:
    """Every op runs once, and every read finds what it wants; but x of the last iteration is made too early."""
    (finding, *_) = findings(use(-1, -2), make(0), make(-1), use(0, -1))
    assert finding.code == "V112"
    assert finding.evidence == (("due", "x of iteration 1"), ("iterations", 2))
