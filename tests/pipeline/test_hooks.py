"""Methods of a schedule that give something other than they should end in a finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from rota import DeclarationError, OpDesc, Phase, PipelineSchedule, RotaError, ScheduleEntry, compile_schedule, verify
from tests.cli.command import rota
from tests.findings.smallest import Small
from tests.wording.golden import mentions, worded

HOOKS = [name for name in vars(PipelineSchedule) if not name.startswith("_")]
JUNK = [None, "64 KiB", 3.5, -1, [None], object()]


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: type(junk).__name__)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_method_that_gives_junk_ends_in_a_finding(hook: str, junk: object) -> None:
    made = Small()
    vars(made)[hook] = lambda *_: junk
    if (hook, junk) == ("lds_bytes", None):
        assert compile_schedule(made).lds_bytes is None
        return
    with pytest.raises(RotaError) as caught:
        compile_schedule(made)
    assert hook in caught.value.findings[0].message


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def build_body(self): return ()", ("Mine", "config")),
        ("def config(self): return None\n    def build_body(self): return ()", ("config()", "NoneType")),
        (
            "config = staticmethod(rota.PipelineConfig); build_body = list; schedule_config = lambda self: None",
            ("schedule_config()", "NoneType"),
        ),
    ],
    ids=["abstract", "config", "knobs"],
)
def test_the_command_says_so_too(text: str, names: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"import rota\n\n\nclass Mine(rota.PipelineSchedule):\n    {text}\n")
    told = rota(f"check {file}:Mine --set sync=strict")
    assert told.exit_code in (1, 2)
    assert mentions(worded(told.output), *names)


class Shorter(Small):
    """Takes the fences out and leaves the numbers as they were."""

    def transform_kernel(self, ker: Sequence[ScheduleEntry], body: Sequence[OpDesc]) -> Sequence[ScheduleEntry]:
        return [entry for entry in ker if entry.op != OpDesc.schedule_barrier()]


class Misplaced(Small):
    def transform_kernel(self, ker: Sequence[ScheduleEntry], body: Sequence[OpDesc]) -> Sequence[ScheduleEntry]:
        return [replace(entry, phase=Phase.EPILOGUE) for entry in ker]


def test_a_transformed_kernel_is_numbered_anew() -> None:
    plain, shorter = compile_schedule(Small()), compile_schedule(Shorter())
    assert len(shorter.kernel) < len(plain.kernel)
    assert [entry.time_slot for entry in shorter.kernel] == list(range(len(shorter.kernel)))
    assert verify(shorter).clean


def test_a_transformed_kernel_stays_the_kernel() -> None:
    with pytest.raises(DeclarationError) as caught:
        compile_schedule(Misplaced())
    assert "transform_kernel()" in str(caught.value)
