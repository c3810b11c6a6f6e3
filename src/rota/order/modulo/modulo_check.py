"""The check of a modulo schedule.

It shares nothing with the search: edges and resources are examined as the problem states them, slot by slot.
"""

from __future__ import annotations

from rota.check import is_int
from rota.errors import Concern, OrderError
from rota.order.modulo.modulo_problem import ModuloCertificate, ModuloProblem, ModuloProof, ModuloSchedule, derive_mii


def check_modulo_schedule(problem: ModuloProblem, schedule: ModuloSchedule) -> None:
    """Check starts, edges and capacities, and that the certificate doesn't contradict itself."""
    check_starts(problem, schedule)
    _check_certificate(problem, schedule)


def check_starts(problem: ModuloProblem, schedule: ModuloSchedule) -> None:
    """Check that every op has a start, and that every edge and capacity holds."""
    _check_kind(problem, schedule)
    _check_edges(problem, schedule)
    _check_resources(problem, schedule)


def _check_kind(problem: ModuloProblem, returned: object) -> None:
    if not isinstance(returned, ModuloSchedule) or not isinstance(returned.certificate, ModuloCertificate):
        kind = type(returned).__name__
        raise _broken(
            "O101", "the scheduler returned no ModuloSchedule with a ModuloCertificate", (), ("returned", kind)
        )
    if not is_int(returned.ii) or returned.ii < 1:
        raise _broken("O101", f"the initiation interval is {returned.ii!r}", (), ("least", 1))
    starts: object = returned.starts
    if not isinstance(starts, tuple) or not all(is_int(start) and start >= 0 for start in starts):
        raise _broken("O101", "the starts are not a tuple of slots, from 0 on", (), ("got", repr(starts)[:80]))
    if len(starts) != len(problem.ops):
        raise _broken(
            "O101",
            f"{len(starts)} starts for {len(problem.ops)} ops",
            (),
            ("starts", len(starts)),
            ("ops", len(problem.ops)),
        )


def _check_edges(problem: ModuloProblem, schedule: ModuloSchedule) -> None:
    for edge in problem.edges:
        producer, consumer = problem.ops[edge.producer], problem.ops[edge.consumer]
        delay = producer.latency if edge.delay is None else edge.delay
        begins = schedule.starts[edge.consumer] + edge.distance * schedule.ii
        if begins < schedule.starts[edge.producer] + delay:
            first, second = schedule.starts[edge.producer], schedule.starts[edge.consumer]
            raise _broken(
                "O102",
                f"{consumer.name} starts before {producer.name} is ready for it",
                (
                    producer.concern(edge.producer, f"starts at {first}, delay {delay}"),
                    consumer.concern(edge.consumer, f"starts at {second}, {edge.distance} iterations later"),
                ),
                ("II", schedule.ii),
                ("missing slots", first + delay - begins),
            )


def _check_resources(problem: ModuloProblem, schedule: ModuloSchedule) -> None:
    held: dict[tuple[str, int], dict[int, int]] = {}
    for index, (op, start) in enumerate(zip(problem.ops, schedule.starts, strict=True)):
        for use in op.uses:
            whole_turns, rest = divmod(use.occupancy, schedule.ii)
            for position in range(min(use.occupancy, schedule.ii)):
                cell = held.setdefault((use.resource, (start + use.offset + position) % schedule.ii), {})
                cell[index] = cell.get(index, 0) + whole_turns + (position < rest)
    capacities = {resource.name: resource.capacity for resource in problem.resources}
    for (name, slot), holders in held.items():
        if sum(holders.values()) > capacities[name]:
            raise _broken(
                "O102",
                f"{sum(holders.values())} uses of {name} meet in slot {slot}; it takes {capacities[name]}",
                tuple(problem.ops[op].concern(op, f"starts at {schedule.starts[op]}") for op in sorted(holders)),
                ("II", schedule.ii),
                ("slot modulo II", slot),
                ("capacity", capacities[name]),
            )


def _check_certificate(problem: ModuloProblem, schedule: ModuloSchedule) -> None:
    certificate, ii = schedule.certificate, schedule.ii
    mii = derive_mii(problem)
    refuted = tuple(range(mii.ii, certificate.lower))
    if certificate.mii != mii or certificate.refuted != refuted or not mii.ii <= certificate.lower <= ii:
        wrong = "its bounds don't follow from the problem and the refutations"
    elif certificate.proof is ModuloProof.MEETS_BOUND and ii != mii.ii:
        wrong = f"it says II = MII, but the MII is {mii.ii}"
    elif certificate.proof is ModuloProof.REFUTED and (certificate.lower != ii or not refuted):
        wrong = "it says that every smaller II is refuted, and doesn't list them"
    else:
        return
    raise _broken(
        "O102",
        f"the certificate of II {ii} is wrong: {wrong}",
        (),
        ("lower", certificate.lower),
        ("MII", mii.ii),
        ("by", certificate.by),
    )


def _broken(code: str, message: str, concerns: tuple[Concern, ...], *evidence: tuple[str, str | int]) -> OrderError:
    return OrderError.of(code, message, concerns=concerns, evidence=evidence)
