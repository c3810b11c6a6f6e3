"""Why there is no modulo schedule: takes what refutes it, gives an error that names the constraints in words."""

from __future__ import annotations

from collections.abc import Sequence

from rota.errors import Concern, Finding, OrderError
from rota.order.modulo.longest import Arc
from rota.order.modulo.mii import MII, resource_loads
from rota.order.modulo.modulo_problem import ModuloProblem
from rota.order.modulo.modulo_schedule import ANY_HORIZON

_MOST_NAMED = 8  # a finding names so many edges; the rest is a number


def below_bound(problem: ModuloProblem, ii: int, mii: MII) -> OrderError:
    """O301 without a search: a resource or a cycle needs more."""
    concerns: list[Concern] = []
    evidence: list[tuple[str, str | int]] = [("II", ii), ("MII", mii.ii)]
    if mii.resource is not None and mii.resource.ii > ii:
        full = mii.resource
        evidence.append(
            (full.resource, f"held for {full.busy:,} slots per iteration; II {ii:,} has {full.capacity * ii:,}")
        )
    if mii.recurrence is not None and mii.recurrence.ii > ii:
        evidence.append(("recurrence", str(mii.recurrence)))
        concerns = [problem.ops[op].concern(op, "in the cycle") for op in mii.recurrence.cycle[:_MOST_NAMED]]
    return _refused(problem, ii, concerns, evidence, (f"an initiation interval of at least {mii.ii}",))


def cannot_pipeline(
    problem: ModuloProblem, ii: int, resources: Sequence[str], carried: Sequence[Arc], *, minimal: bool
) -> OrderError:
    """O301: these limits and these loop-carried edges leave no schedule, together with the edges of one iteration.

    `minimal` says that each of them was shown to be needed.
    """
    loads, capacities = resource_loads(problem), problem.capacities
    ops = problem.ops
    evidence: list[tuple[str, str | int]] = [("II", ii)]
    for name in resources:
        places = "1 place" if capacities[name] == 1 else f"{capacities[name]:,} places"
        evidence.append((f"limit {name}", f"{places}, held for {loads[name]:,} of {capacities[name] * ii:,} slots"))
    for arc in carried[:_MOST_NAMED]:
        room = arc.distance * ii - arc.delay
        first, last = (f"#{op} {ops[op].name}" for op in (arc.consumer, arc.producer))
        how = f"delay {arc.delay}, distance {arc.distance}"
        evidence.append(("carried edge", f"{last} starts at most {room:,} slots after {first} ({how})"))
    if len(carried) > _MOST_NAMED:
        evidence.append(("more carried edges", len(carried) - _MOST_NAMED))
    evidence.append(("smallest set", "yes: without any one of these there is a schedule" if minimal else "not shown"))
    evidence += [("horizon", ANY_HORIZON), ("grain", f"{len(ops)} ops as declared, whole slots")]
    touched = dict.fromkeys(op for arc in carried for op in (arc.producer, arc.consumer))
    concerns = [ops[op].concern(op, "at an end of a carried edge") for op in tuple(touched)[:_MOST_NAMED]]
    fixes = ("a larger initiation interval", *(f"one more place of {name}" for name in resources))
    return _refused(problem, ii, concerns, evidence, fixes)


def never_fits(problem: ModuloProblem, ceiling: int) -> OrderError:
    """O301 at every II: within one iteration the edges bring uses together that a resource can't take."""
    return _refused(
        problem,
        None,
        [],
        [
            ("II", f"any; refuted at {ceiling:,}, at which iterations don't overlap"),
            ("horizon", ANY_HORIZON),
            ("grain", f"{len(problem.ops)} ops as declared, whole slots"),
        ],
        ("loosen the edges of distance 0 that keep ops close together", "a larger capacity"),
    )


def unscheduled(problem: ModuloProblem, ii: int | None, time_limit: float) -> OrderError:
    """O204: the time limit came before any schedule."""
    at = "" if ii is None else f" at II {ii}"
    return OrderError(
        Finding(
            code="O204",
            message=f"no schedule of {len(problem.ops)} ops{at} was found in {time_limit:g} s; one may still exist",
            evidence=(("time limit", f"{time_limit:g} s"),),
            fixes=(f"ModuloScheduler(time_limit={max(time_limit, 1.0) * 10:g})",),
        )
    )


def _refused(
    problem: ModuloProblem,
    ii: int | None,
    concerns: Sequence[Concern],
    evidence: Sequence[tuple[str, str | int]],
    fixes: tuple[str, ...],
) -> OrderError:
    what = "any initiation interval" if ii is None else f"an initiation interval of {ii}"
    return OrderError(
        Finding(
            code="O301",
            message=f"no schedule of {len(problem.ops)} ops has {what}",
            concerns=tuple(concerns),
            evidence=tuple(evidence),
            fixes=fixes,
        )
    )
