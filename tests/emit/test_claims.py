from __future__ import annotations

from dataclasses import replace

import pytest

from rota import ScheduleConfig, SchedulingStrategy, compile_schedule
from rota.emit.document.codec import CLAIMED
from rota.emit.document.exchange import StagesAgain, ValuesAgain, from_json, to_json
from rota.order.acyclic.problem import Proof
from rota.order.modulo.modulo_problem import ModuloProof
from rota.pipeline.compiled_pipeline import CompiledPipeline
from rota.values.compile_loop import unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.values.unroll import Placement
from tests.emit.kernels import SMALL_MI300X, by_values, staggered
from tests.findings.smallest import Small, raised


def searched() -> CompiledPipeline:
    return compile_schedule(Small(knobs=ScheduleConfig(scheduling=SchedulingStrategy.CSP)))


def small() -> CompiledLoop:
    compiled, _ = by_values(SMALL_MI300X)
    assert isinstance(compiled, CompiledLoop)
    return compiled


def test_an_optimal_order_stays_one_where_a_bound_shows_it() -> None:
    compiled = searched()
    assert compiled.ordering is not None
    assert compiled.ordering.certificate.proof is Proof.OPTIMAL
    assert StagesAgain().as_claimed(compiled) == compiled


@pytest.mark.parametrize("proof", [Proof.OPTIMAL, Proof.FEASIBLE])
def test_an_order_is_not_the_best_because_somebody_says_so(proof: Proof) -> None:
    """An order of 10 cycles more that is said to be as good as any."""
    compiled = searched()
    ordering = compiled.ordering
    assert ordering is not None
    more = ordering.makespan + 10
    worse = replace(ordering, makespan=more, certificate=replace(ordering.certificate, proof=proof, bound=more))
    read = StagesAgain().as_claimed(replace(compiled, ordering=worse)).ordering
    assert read is not None
    claim = read.certificate
    assert (claim.proof, claim.bound, claim.by) == (Proof.FEASIBLE, ordering.makespan, CLAIMED)


def test_an_interval_is_not_the_least_because_somebody_says_so() -> None:
    """Twice the interval, from the same starts, is a schedule, too; nothing shows that it is the least."""
    compiled = small()
    modulo, placement = compiled.modulo, compiled.placement
    assert modulo is not None
    slow = 2 * modulo.ii
    claim = replace(modulo.certificate, proof=ModuloProof.REFUTED, lower=slow, refuted=tuple(range(modulo.ii, slow)))
    idle = Placement(interval=slow, starts=placement.starts, copies=placement.copies, turns_left=placement.turns_left)
    read = (
        ValuesAgain()
        .as_claimed(
            replace(compiled, placement=idle, modulo=replace(modulo, ii=slow, certificate=claim), certificate=None)
        )
        .modulo
    )
    assert read is not None
    assert (read.certificate.proof, read.certificate.refuted, read.certificate.by) == (ModuloProof.OPEN, (), CLAIMED)
    assert read.certificate.lower == modulo.ii


def test_two_wave_groups_are_timed_as_two() -> None:
    compiled, _ = staggered("gemm_bf16_256x256x64_8wave")
    assert from_json(to_json(compiled)) == compiled


def test_without_a_search_nothing_is_claimed_about_slack() -> None:
    compiled = small()
    placement = replace(compiled.placement, barriers=(), landing_slack=0, read_slack=0)
    bare = replace(unroll_bare(compiled.loop, placement), lds_bytes=compiled.lds_bytes)
    assert from_json(to_json(bare)) == bare
    slack = replace(bare, placement=replace(placement, landing_slack=1))
    assert "schedule.placement.landing_slack" in raised("T204", lambda: from_json(to_json(slack))).message
    unplaced = replace(bare, modulo=compiled.modulo, machine=compiled.machine, placement=slack.placement)
    assert "schedule.placement.landing_slack" in raised("T204", lambda: from_json(to_json(unplaced))).message


def test_times_have_an_end() -> None:
    compiled = small()
    late = replace(compiled.placement, interval=2_000_000)
    raised("T204", lambda: ValuesAgain().as_claimed(replace(compiled, placement=late)))
