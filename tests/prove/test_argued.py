"""Verdicts that needed an argument: each is held to the argument, and to what the interpreter says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise

import pytest

from rota.prove.kernel_proof import prove
from rota.prove.state import LdsUse, WaveSet
from rota.prove.verdict import Status
from rota.prove.widening import LaneAddresses, ProductState
from tests.campaigns.machine_code import proof_mutants
from tests.campaigns.machine_code.proof_agreement import compare
from tests.campaigns.machine_code.proof_mutants import JUDGED, Subject, compiled_subject, own_subject, verdict_of
from tests.campaigns.machine_code.race_edits import EDITS
from tests.isa.corpus.cases import FOLDER, Case
from tests.shared import shared


@dataclass(slots=True)
class Bytes:
    """The bytes of LDS that each wave may use, by the instruction that uses them."""

    used: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    texts: tuple[str, ...] = ()

    def record_checkpoint(self, product: ProductState, head: tuple[Hashable, ...], key: Hashable) -> None:
        """Nothing to note."""

    def record_access(
        self, _: ProductState, wave_set: WaveSet, access: LdsUse, __: LaneAddresses | None = None
    ) -> None:
        """Notes the bytes."""
        for wave, octets in zip(wave_set.waves, access.bytes, strict=True):
            self.used[self.texts[access.number]][wave] |= octets


def _case() -> Case:
    return Case(path=shared(f"{FOLDER}/h_stencil.gfx950.hsaco"), name="h_stencil.gfx950")


@cache
def stencil() -> Subject:
    """Each work item writes its own word, the first and the last one an edge more."""
    return compiled_subject(_case())


def _range(first: int, count: int) -> int:
    return (1 << count) - 1 << first


def test_the_edges_of_a_stencil_are_written_by_one_lane_each() -> None:
    """The edge's address is set to 0 under the very EXEC that its write has, which a mask saved between restores.

    Before a load was taken to end what its register held, the address was one of three, by two masks, and the proof
    lost it: an alarm.  The write of the right edge is to bytes that no other has, as is that of the left one.
    """
    subject = stencil()
    steps = subject.program.steps
    recorder = Bytes(texts=tuple(step.instruction.text for step in steps))
    instructions = tuple(step.instruction for step in steps)
    verdict = prove(subject.program.facts, instructions, block=subject.block, recorder=recorder)
    assert verdict.proved
    own, right, left = (
        recorder.used[text]
        for text in ("ds_write_b32 v4, v1 offset:4", "ds_write_b32 v0, v1 offset:1028", "ds_write_b32 v1, v0")
    )
    assert dict(own) == {wave: _range(4 + 256 * wave, 256) for wave in range(4)}
    assert {wave: octets for wave, octets in right.items() if octets} == {3: _range(1028, 4)}
    assert {wave: octets for wave, octets in left.items() if octets} == {0: _range(0, 4)}
    assert compare(_case(), orders=4, seconds=20).outcome == "both right"


def test_without_its_address_the_edge_is_anywhere() -> None:
    """The same kernel, whose lane of the left edge keeps what it has loaded for an address."""
    subject = stencil()
    steps = subject.program.steps
    write = next(at for at, step in enumerate(steps) if step.instruction.text == "ds_write_b32 v1, v0")
    at = max(at for at, step in enumerate(steps[:write]) if step.instruction.text == "v_mov_b32_e32 v1, 0")
    other = replace(steps[at].instruction, operands=("v9", "0"), text="v_mov_b32_e32 v9, 0")
    program = replace(subject.program, steps=(*steps[:at], replace(steps[at], instruction=other), *steps[at + 1 :]))
    verdict = verdict_of(subject, program, 20)
    assert verdict.status is Status.UNDECIDED
    assert "I109" in {finding.code for finding in verdict.findings}


@pytest.mark.thorough  # runs for seconds
def test_a_barrier_of_a_ping_pong_can_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each phase's barriers the one before loads to LDS that stand with no reads only keeps waves in step.

    Without it two stretches become one whose accesses use different buffers.  The next barrier has the wait before it
    that hands a buffer over: without that one the proof and the interpreter find what reads too early.
    """
    monkeypatch.setattr(proof_mutants, "ORDERS", 3)  # 8 of them: `python -m benchmarks.proof_mutants ping-pong`
    subject = own_subject("ping-pong")
    assert subject.shadow is not None
    texts = [step.instruction.text for step in subject.program.steps]
    barriers = [at for at, text in enumerate(texts) if text == "s_barrier"]
    middle, following = next(
        (first, then)
        for first, then in pairwise(barriers)
        if any(" lds" in text for text in texts[first:then])
        and not any(text.startswith(("ds_", "v_mfma")) for text in texts[first:then])
        and "setprio" in texts[first - 1]
    )
    for at, status, found in ((middle, Status.PROVED, ()), (following, Status.ALARM, ("I109",))):
        (mutant,) = EDITS["barrier gone"](subject.program, at)
        assert verdict_of(subject, mutant.program, 30).status is status
        seen, off = subject.shadow(mutant.program)
        assert tuple(sorted(set(seen) & JUDGED)) == found
        assert found or off == 0
