"""Every rule of wait states, both ways: one state fewer is a finding that names it, as many as are due are none."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from rota.errors import Finding, IsaError
from rota.isa.disassembly import read_listing
from rota.isa.hazards.wait_states import check_spacing
from rota.prove.verdict import Status
from rota.targets.architecture import SOURCES
from rota.targets.cdna4 import CDNA4
from rota.targets.registry import architecture_named
from tests.campaigns.hazards.hazard_rows import ARCHITECTURES, Twin
from tests.campaigns.hazards.hazard_twins import page, proved, twins
from tests.docs.blocks import ROOT
from tests.isa.single import execute, fresh, listing

CASES = [
    pytest.param(arch, twin, states, id=f"{arch} {number} {twin.rule}")
    for number, twin in enumerate(twins())
    for arch, states in zip(ARCHITECTURES, twin.states, strict=True)
    if states is not None
]
UNKNOWN = (
    "s_rfe_b64",
    "HW_REG_TRAPSTS",
    "HW_REG_MODE, 28",
    "ds_write_addtid",
    "scratch_load_lds",
    "_format_",
    "_legacy_",
)
"""The interpreter doesn't execute these: the walk judges them."""
UNFOLLOWED = ("s_rfe_b64", "ds_write_addtid", "s_movrels")
"""Nor does the proof follow these to their end."""


def by_walk(text: str, arch: str) -> list[Finding]:
    architecture = architecture_named(arch)
    assert architecture is not None
    return [*check_spacing(read_listing(listing(text), "k"), architecture)]


def test_no_message_repeats_a_word() -> None:
    kernels = [
        (arch, twin.text(arch, fewer=1))
        for twin in twins()
        for arch, states in zip(ARCHITECTURES, twin.states, strict=True)
        if states
    ]
    messages = [each.message for arch, text in kernels for each in by_walk(text, arch)]
    assert any("m0" in each.split() for each in messages)
    assert [each for each in messages if re.search(r"\b(\w+) \1\b", each)] == []


def by_run(text: str, arch: str) -> list[Finding]:
    wave = fresh(dict.fromkeys(range(512), 0), dict.fromkeys(range(128), 0))
    return [each for each in execute(text, wave, arch).faults.findings() if each.code == "I104"]


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize(
    ("arch", "twin"), [pytest.param(*case.values[:2], id=case.id) for case in CASES if case.values[2]]
)
def test_one_state_fewer_breaks_a_rule(arch: str, twin: Twin) -> None:
    text = twin.text(arch, fewer=1)
    source = SOURCES[architecture_named(arch).hazards[twin.rule].confidence]  # type: ignore[union-attr]
    assert [dict(each.evidence)["rule"] for each in by_walk(text, arch)] == [twin.rule]
    verdict = proved(text, arch)
    assert verdict.status is (Status.ONE_SOURCE if source == "LLVM alone" else Status.BROKEN)
    (told,) = (dict(each.evidence) for each in verdict.findings if each.code == "I104")
    assert (told["rule"], told["source"]) == (twin.rule, source)
    if not any(part in text for part in UNKNOWN):
        assert twin.rule in {dict(each.evidence)["rule"] for each in by_run(text, arch)}


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize(("arch", "twin", "states"), CASES)
def test_as_many_as_are_due_keep_it(arch: str, twin: Twin, states: int) -> None:
    text = twin.text(arch)
    assert len(text.splitlines()) > 1 + bool(states)
    assert by_walk(text, arch) == []
    followed = not any(part in text for part in UNFOLLOWED)
    assert proved(text, arch).status is (Status.PROVED if followed else Status.INCONCLUSIVE)
    if any(part in text for part in UNKNOWN):
        with pytest.raises(IsaError):
            by_run(text, arch)
    else:
        assert by_run(text, arch) == []


def test_every_rule_has_twins() -> None:
    assert {rule.name for rule in CDNA4.hazards.rules} == {twin.rule for twin in twins() if twin.rule}


@pytest.mark.skipif(not shutil.which("llvm-mc-22") and not shutil.which("llvm-mc"), reason="llvm-mc is not installed")
@pytest.mark.parametrize(("place", "arch"), [*enumerate(ARCHITECTURES)])
def test_the_assembler_knows_them(place: int, arch: str) -> None:
    text = "\n".join(twin.text(arch) for twin in twins() if twin.states[place] is not None)
    tool = shutil.which("llvm-mc-22") or shutil.which("llvm-mc") or ""
    done = subprocess.run(
        (tool, "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}"), input=f"{text}\n", capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stderr == ""


@pytest.mark.thorough  # runs for seconds
def test_the_page_is_what_they_say() -> None:
    kept = (ROOT / "docs" / "wait_states.md").read_text("utf-8")
    assert kept == page(), "python -m benchmarks.hazard_twins > docs/wait_states.md"
