"""One point, computed here and now: takes a job, gives its row; whatever rota finds is a row, not an error."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import RotaError, Severity
from rota.program.kinds import OpKind
from rota.solver.memory import SETTING, code_digest, remembering
from rota.targets.device import rates_of
from rota.tune.point import LoopPoint
from rota.tune.point_row import Job, JobKind, PointRow, PointStatus

if TYPE_CHECKING:
    from rota.emit.whole.whole_options import WholeGemm
    from rota.values.compiled_loop import CompiledLoop

_AUDITED_BY = ("audit", "emit", "isa")


def compute(job: Job) -> PointRow:
    """The row of a job; only what isn't rota's own finding escapes."""
    started = perf_counter()
    point = job.point
    try:
        if job.kind is JobKind.SOLVE:
            facts, answer = _solve(point)
            code, message = "", ""
        else:
            facts, answer = _audit(point, job.answer), ""
            code, message = facts.pop("code"), facts.pop("message")
        status = PointStatus.REFUSED if code else PointStatus.PROVED
    except RotaError as error:
        worst = error.findings[0]
        facts, answer, status, code, message = {}, "", PointStatus.REFUSED, worst.code, worst.message
    return PointRow(
        key=job.key,
        kind=job.kind,
        point=point,
        status=status,
        code=code,
        message=message,
        facts=facts,
        answer=answer,
        seconds=perf_counter() - started,
    )


def _solve(point: LoopPoint) -> tuple[dict[str, Any], str]:
    from rota.emit.whole.whole_kernel import emit_whole
    from rota.predict.tiled_gemm import tiled_gemm

    with tempfile.TemporaryDirectory() as folder, kept_in(Path(folder)):
        compiled = schedule_of(point)
        answer = {file.stem: json.loads(file.read_text()) for file in Path(folder).glob("*.json")}
    gemm = tiled_gemm(compiled, point.tile)
    certificate, found = compiled.certificate, compiled.modulo
    if not (certificate and found):
        raise AssertionError(f"{point.name} was given back without a proof")
    emit_whole(compiled, point.shape().geometry, whole_of())  # what can't be written may not win
    slot = rates_of(compiled.machine).clocks_per_slot.value
    facts = {
        "loop_clocks": gemm.loop_clocks,
        "matrix_clocks": gemm.matrix_clocks,
        "interval": found.ii * slot,
        "least": found.certificate.optimal,
        "certificate": str(certificate).splitlines()[0],
        "lds_bytes": compiled.lds_bytes,
        "registers": compiled.registers,
        "barriers": sum(entry.op.kind is OpKind.BARRIER for entry in compiled.kernel),
        "stages": compiled.placement.stages,
        "unroll": compiled.trip_tiles[0],
        "tiles_outside": compiled.trip_tiles[1],
        "schedule": digest_of(compiled),
    }
    return facts, json.dumps(answer)


def schedule_of(point: LoopPoint) -> CompiledLoop:
    """The loop, scheduled and proved."""
    from rota.order.modulo.scheduler import ModuloScheduler
    from rota.values.compile_loop import compile_loop

    return compile_loop(
        point.loop(),
        point.target,
        stagger=point.stagger,
        fewest_barriers=point.fewest_barriers,
        most_copies=point.depth,
        slack=point.slack,
        scheduler=ModuloScheduler(time_limit=point.effort, seed=point.seed),
    )


def schedule_again(point: LoopPoint, answer: str) -> CompiledLoop:
    """The same from what the search found, checked and proved like a new one; searched for where that doesn't hold."""
    with tempfile.TemporaryDirectory() as folder:
        for name, found in (json.loads(answer) if answer else {}).items():
            (Path(folder) / f"{name}.json").write_text(json.dumps(found))
        with kept_in(Path(folder)):
            return schedule_of(point)


def digest_of(compiled: CompiledSchedule) -> str:
    """Of the entries in their order: two points with the same digest are one kernel, but for its name."""
    listed = [str(entry.op) for phase in (compiled.prologue, compiled.kernel, compiled.epilogue) for entry in phase]
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16]


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Searches keep and recall what they find in a folder; the setting is the process's, as the memory asks for it."""
    before = os.environ.get(SETTING)
    os.environ[SETTING] = str(folder)
    try:
        with remembering():
            yield
    finally:
        if before is None:
            del os.environ[SETTING]
        else:
            os.environ[SETTING] = before


def audit_key(key: str, toolchain: str) -> str:
    """Of the audit of a point by a compiler: another compiler or another audit is another key."""
    said = json.dumps([key, toolchain, code_digest(_AUDITED_BY)])
    return hashlib.sha256(said.encode()).hexdigest()


def _audit(point: LoopPoint, answer: str) -> dict[str, Any]:
    """Emitted whole, compiled, and compared with the schedule; the first finding is why it may not win."""
    from rota.audit.audit import audit_gemm
    from rota.emit.whole.whole_kernel import emit_whole, whole_name
    from rota.isa.binary.toolchain import find_toolchain

    compiled, asked, geometry = schedule_again(point, answer), whole_of(), point.shape().geometry
    code = find_toolchain().compile(emit_whole(compiled, geometry, asked), point.target.toolchain)
    found = audit_gemm(compiled, geometry, code, kernel=whole_name(compiled, asked))
    worst = next(iter(found.findings), None)
    notes: Mapping[str, str] = {} if worst is None else {"severity": worst.severity.value}
    errors = [each for each in found.findings if each.severity is Severity.ERROR]
    first = errors[0] if errors else worst
    return {
        "code": "" if first is None else first.code,
        "message": "" if first is None else first.message,
        "toolchain": found.toolchain,
        "vgprs": found.facts.vgprs,
        **notes,
    }


def whole_of(xcds: int | None = None, group: int | None = None) -> WholeGemm:
    """The whole kernel that is audited and emitted: D in bf16, workgroups in the order of a swizzle."""
    from rota.emit.whole.whole_options import Output, WholeGemm

    plain = WholeGemm(output=Output.BF16)
    return plain if xcds is None or group is None else WholeGemm(output=Output.BF16, xcds=xcds, group=group)
