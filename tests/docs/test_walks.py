"""The walks of ARCHITECTURE.md name files that are really passed through, and as many as they say."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import rota
from rota.audit.audit import audit_gemm
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import find_toolchain
from rota.kernels.catalogue import shipped_kernels
from rota.prove.kernel_proof import prove_object
from tests.isa.assembly import kernel as assembly

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "rota"
KERNEL = """
v_lshlrev_b32_e32 v1, 2, v0
v_xor_b32_e32 v2, 0x100, v1
ds_write_b32 v1, v0
s_waitcnt lgkmcnt(0)
s_barrier
ds_read_b32 v3, v2
s_waitcnt lgkmcnt(0)
s_endpgm
"""


def set_a_knob() -> None:
    knobs = rota.ScheduleConfig(minimal_barriers=True)

    class Minimal(rota.DeclarativeSchedule):
        def schedule_config(self) -> rota.ScheduleConfig:
            return knobs

    rota.compile_schedule(Minimal(), sync="as_written")


def emit_an_op() -> None:
    chosen = shipped_kernels()["gemm_small"]
    compiled, geometry = chosen.compile(), chosen.geometry()
    code = find_toolchain().compile(emit_gemm(compiled, geometry), "gfx950")
    assert audit_gemm(compiled, geometry, code).clean


def judge_an_instruction() -> None:
    code = find_toolchain().assemble(assembly(KERNEL), "gfx950")
    assert prove_object(code, block=128)


def files_passed(do: Callable[[], None]) -> set[str]:
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        do()
    finally:
        sys.setprofile(None)
    return {str(Path(each).relative_to(SOURCE)) for each in seen if Path(each).is_relative_to(SOURCE)}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("walk", "do"),
    [("A knob", set_a_knob), ("An op", emit_an_op), ("An instruction", judge_an_instruction)],
    ids=["knob", "op", "instruction"],
)
def test_a_walk_passes_through_the_files_that_it_names(walk: str, do: Callable[[], None]) -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("## Three walks")[2].partition("\n## ")[0]
    text = section.partition(f"**{walk}")[2].partition("\n**")[0]
    named = set(re.findall(r"`([\w/]+\.py)`", text))
    stated = re.search(r"\((\d+) files\)", text)
    assert stated is not None
    assert len(named) == int(stated[1])
    assert named <= files_passed(do)
