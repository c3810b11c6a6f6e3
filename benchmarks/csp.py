"""The exact scheduler against the reference's recorded search times: takes the corpus, prints one line per case.

Run `python -m benchmarks.csp [folder]` from the repository's root; the folder holds the corpus, by default the one of
the conformance tests.  The last lines say what is slow, unproved or at odds with the reference; the exit status is 1 if
any case is over the limit, unproved or at odds.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from rota.errors import OrderError
from rota.order.acyclic.cpsat import CpSatScheduler
from rota.order.acyclic.problem import UNLIMITED_VGPR, DepEdge, DepKind, LoopBody, OrderProblem, Proof
from rota.pipeline.op import OpDesc
from rota.program.kinds import OpRole, ResourceKind

CORPUS = Path(__file__).parents[1] / "tests" / "conformance" / "data"
GOAL_SECONDS = 2.0
LIMIT_SECONDS = 20.0

Case = dict[str, Any]


class Task(NamedTuple):
    """A problem, and what the reference did with it."""

    name: str
    problem: OrderProblem
    reference: str
    makespan: int | None


class Result(NamedTuple):
    """What our search did with it."""

    task: Task
    seconds: float
    makespan: int | None
    vgpr_peak: int | None
    verdict: str

    @property
    def proved(self) -> bool:
        """Optimal or infeasible, not merely found."""
        return self.verdict.startswith("proved")

    @property
    def agrees(self) -> bool:
        """The reference's makespan, where it found one."""
        return self.task.makespan is None or self.task.makespan == self.makespan


def speed_tasks(folder: Path) -> Iterator[Task]:
    """Families of growing bodies; `halves_penP` keeps two halves apart, with penalty P."""
    for case in _cases(folder, "speed"):
        if case["type"] != "speed":
            continue
        halves = case["scheduler"] == "optimal_schedule_with_halves"
        body = LoopBody([_op(*columns) for columns in case["body"]], _edges(case))
        problem = OrderProblem(
            body=body,
            partitions=2 if halves else 1,
            lds_contention_penalty=int(case["family"].removeprefix("halves_pen")) if halves else 0,
        )
        seconds = case["seconds"]
        reference = f"{seconds:.4f} s" if seconds is not None else case["outcome"].replace("_", " ")
        yield Task(case["family"], problem, reference, case["optimal"])


def ping_pong_tasks(folder: Path) -> Iterator[Task]:
    """The ping-pong cases that the reference did not finish."""
    for case in _cases(folder, "ping_pong_csp"):
        if case["outcome"] == "ok":
            continue
        columns = _columns(folder, "ping_pong_csp", ("role", "resource", "latency", "vgpr_def", "vgpr_kill"))
        ops = [_op(*(case["ops"][index][column] for column in columns)) for index in case["body"]]
        knobs = case["schedule_config"]
        problem = OrderProblem(
            body=LoopBody(ops, _edges(case)),
            partitions=case["pipeline_config"]["num_partitions"],
            max_globals=case["pipeline_config"]["block_sizing"]["max_globals"],
            lds_contention_penalty=knobs["lds_contention_penalty"],
            max_vgpr=knobs["max_vgpr"],
        )
        yield Task(case["id"], problem, case["outcome"].replace("_", " "), None)


def run(task: Task, scheduler: CpSatScheduler) -> Result:
    """One case, timed by the wall clock."""
    started = perf_counter()
    try:
        ordering = scheduler.order(task.problem)
    except OrderError as error:
        code = error.findings[0].code
        verdict = f"unanswered {code}" if code == "O204" else f"proved infeasible {code}"
        return Result(task, perf_counter() - started, None, None, verdict)
    seconds = perf_counter() - started
    optimal = ordering.certificate.proof is Proof.OPTIMAL
    verdict = f"proved optimal by {ordering.certificate.by}" if optimal else f"bound {ordering.certificate.bound}"
    return Result(task, seconds, ordering.makespan, ordering.vgpr_peak, verdict)


def main(arguments: list[str]) -> int:
    """Print the table; 0 if every case is proved, within the limit, and no worse than recorded."""
    folder = Path(arguments[0]) if arguments else CORPUS
    started = perf_counter()
    import_module("ortools.sat.python.cp_model")  # a search loads it once per process
    print(f"ortools loaded in {perf_counter() - started:.2f} s, not counted below\n")
    print(f"{'case':14} ops  limits                {'reference':>14} {'ours':>9}  makespan  peak  verdict")
    results = []
    for task in (*speed_tasks(folder), *ping_pong_tasks(folder)):
        result = run(task, CpSatScheduler())
        results.append(result)
        mark = "" if result.agrees else f"  NOT {task.makespan} as recorded"
        print(
            f"{task.name:14} {len(task.problem.body.ops):3}  {_limits(task.problem):20}  {task.reference:>14} "
            f"{result.seconds:7.3f} s  {_number(result.makespan):>8}  {_number(result.vgpr_peak):>4}  "
            f"{result.verdict}{mark}",
            flush=True,
        )
    return _summarise(results)


def _summarise(results: list[Result]) -> int:
    slowest = max(results, key=lambda result: result.seconds)
    slow = sum(result.seconds > GOAL_SECONDS for result in results)
    bad = [r for r in results if not r.proved or not r.agrees or r.seconds > LIMIT_SECONDS]
    unfinished = sum("timeout" in result.task.reference for result in results)
    print(
        f"\n{len(results)} cases, {sum(r.proved for r in results)} proved; the reference left {unfinished} unfinished"
    )
    print(f"slowest: {slowest.task.name} with {len(slowest.task.problem.body.ops)} ops, {slowest.seconds:.3f} s")
    print(
        f"{slow} over {GOAL_SECONDS:g} s; {len(bad)} over {LIMIT_SECONDS:g} s, unproved or at odds with the reference"
    )
    return 1 if bad else 0


def _limits(problem: OrderProblem) -> str:
    limits = (
        ("penalty", problem.lds_contention_penalty),
        ("loads", problem.max_globals),
        ("vgpr", problem.max_vgpr if problem.max_vgpr < UNLIMITED_VGPR else 0),
    )
    return " ".join(f"{name} {value}" for name, value in limits if value) or "-"


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _lines(folder: Path, name: str) -> Iterator[Case]:
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _cases(folder: Path, name: str) -> Iterator[Case]:
    return (case for case in _lines(folder, name) if case["type"] != "header")


def _columns(folder: Path, name: str, wanted: tuple[str, ...]) -> list[int]:
    header: list[str] = next(_lines(folder, name))["op_columns"]
    return [header.index(column) for column in wanted]


def _op(role: str, resource: str, latency: int, vgpr_def: int, vgpr_kill: int) -> OpDesc:
    return OpDesc(
        tag=0,
        role=OpRole[role],
        resource=ResourceKind[resource],
        latency=latency,
        vgpr_def=vgpr_def,
        vgpr_kill=vgpr_kill,
    )


def _edges(case: Case) -> list[DepEdge]:
    return [DepEdge(first, second, DepKind[kind], distance) for first, second, kind, distance in case["edges"]]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
