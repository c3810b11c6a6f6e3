"""One kernel to be judged, the key of its content, and the row that it becomes.

The key is a digest of everything that the verdict depends on: the code object, the kernel's name, the options, rota's
own code, and the versions of the disassembler and of z3. Where the object lies and what it is called don't count, so
that a second run reads what the first one found.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import linecache
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from rota.errors import Concern, Finding, RotaError, Severity, SourceLine
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_objdump, read_object
from rota.isa.disassembly import Instruction
from rota.prove.causes import EvidenceLevel, level_of
from rota.prove.kernel_proof import Policies, ReadsAtBarrier, VmcntOrder, prove_object
from rota.prove.verdict import Budget, Statistics, Status, Verdict
from rota.solver.memory import code_digest
from rota.version import __version__

FORMAT = 1
FAILED, NOT_READ, NO_KERNEL = "failed", "not read", "no kernel"
"""What a row says instead of a verdict's status: its process ended without one; its file can't be read, or compiled; it
holds nothing to judge."""
_KILLED = "S301"  # a tool was, by somebody else: that says nothing about the kernel, so no row is kept
_DECIDE = ("isa", "prove", "targets")
_AROUND = 3  # instructions of the listing before and after each end


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofOptions:
    """What a verdict depends on beside the code: the block, the policies, the assumptions, the budget."""

    block: int | tuple[int, int, int] | None = None
    lds_reads: str = "strict"
    vmcnt: str = "in-order"
    assume: tuple[str, ...] = ()
    steps: int = Budget().steps
    seconds: float | None = None

    def policies(self) -> Policies:
        return Policies(
            reads=ReadsAtBarrier.STRICT if self.lds_reads == "strict" else ReadsAtBarrier.LENIENT,
            order=VmcntOrder.IN_ORDER if self.vmcnt == "in-order" else VmcntOrder.ANY_ORDER,
            lds_in_bounds="lds-in-bounds" in self.assume,
        )

    def budget(self) -> Budget:
        return Budget(steps=self.steps, seconds=self.seconds)


def options_of(data: Mapping[str, Any]) -> ProofOptions:
    block = data["block"]
    return ProofOptions(
        **{**data, "assume": tuple(data["assume"]), "block": tuple(block) if isinstance(block, list) else block}
    )


@cache
def judge_version() -> tuple[str, ...]:
    """rota's version, the digest of the code that decides, and the versions of the tools that it asks."""
    z3 = "none"
    with suppress(importlib.metadata.PackageNotFoundError):
        z3 = importlib.metadata.version("z3-solver")
    said = subprocess.run((*find_objdump(), "--version"), capture_output=True, text=True, check=False).stdout  # noqa: S603  # found by rota.isa.binary.toolchain
    return __version__, code_digest(_DECIDE), z3, said


def digest_of(contents: bytes) -> str:
    """What `sha256sum` prints of a code object."""
    return hashlib.sha256(contents).hexdigest()


def key_of(contents: bytes, kernel: str, options: ProofOptions) -> str:
    about = [FORMAT, digest_of(contents), kernel, asdict(options), *judge_version()]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelJob:
    """A kernel of a code object to be judged."""

    key: str
    kernel: str
    options: ProofOptions
    contents: bytes = field(repr=False)

    @property
    def trade(self) -> str:
        return __name__

    def find_mismatch(self) -> str:
        own = key_of(self.contents, self.kernel, self.options)
        return "" if own == self.key else own

    def line(self) -> str:
        packed = base64.b64encode(self.contents).decode()
        said = {"key": self.key, "kernel": self.kernel, "options": asdict(self.options), "contents": packed}
        return json.dumps(said) + "\n"

    def compute(self) -> KernelRow:
        started = perf_counter()
        try:
            row = judge_kernel(read_object(self.contents), self.kernel, self.options)
        except RotaError as error:  # what rota can't read, or doesn't know
            if error.findings[0].code == _KILLED:
                return self.fail(_KILLED, error.findings[0].message, seconds=perf_counter() - started)
            return KernelRow(
                key=self.key, kernel=self.kernel, status=NOT_READ, findings=error.findings,
                seconds=perf_counter() - started, object=digest_of(self.contents),
            )  # fmt: skip
        verdict = None if row.verdict is None else replace(row.verdict, remedies=())  # only advice needs them
        took = perf_counter() - started
        return replace(row, key=self.key, verdict=verdict, seconds=took, object=digest_of(self.contents))

    def fail(self, code: str, message: str, **more: Any) -> KernelRow:  # fields of the row
        finding = Finding(code, message.strip())
        digest = digest_of(self.contents)
        return KernelRow(key=self.key, kernel=self.kernel, status=FAILED, findings=(finding,), object=digest, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """What became of one kernel; `verdict` is None if its process failed, or if it can't be read.

    `listings` has, for each finding, the listing around its ends. `facts` are the limits that a failure exceeded.
    `object` is the digest of the code object; a row that an older rota kept has none.
    """

    key: str
    kernel: str
    status: str
    findings: tuple[Finding, ...] = ()
    listings: tuple[str, ...] = ()
    verdict: Verdict | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    attempts: int = 1
    object: str = ""

    @property
    def level(self) -> EvidenceLevel | None:
        """The level of the surest finding; None if there is none but notes."""
        return min(filter(None, map(level_of, self.findings)), key=lambda each: each.rank, default=None)

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(sorted({finding.code for finding in self.findings}))

    @property
    def judged(self) -> bool:
        return self.verdict is not None

    @property
    def fails(self) -> bool:
        """True if there should be a verdict, and is none."""
        return self.verdict is None and self.status != NO_KERNEL

    def after(self, attempts: int) -> KernelRow:
        return replace(self, attempts=attempts)

    def data(self) -> dict[str, Any]:
        said = {
            "key": self.key, "kernel": self.kernel, "status": self.status, "facts": dict(self.facts),
            "findings": [finding_data(each) for each in self.findings], "listings": list(self.listings),
            "seconds": self.seconds, "attempts": self.attempts, "object": self.object, "verdict": None,
        }  # fmt: skip
        if self.verdict is not None:
            made = self.verdict
            said["verdict"] = {
                "arch": made.arch, "assumptions": made.assumptions, "policies": made.policies, "waves": made.waves,
                "dropped": made.dropped, "pairs": made.pairs, "statistics": asdict(made.statistics),
            }  # fmt: skip
        return said

    def line(self) -> str:
        return json.dumps(self.data()) + "\n"


def row_without_kernels(findings: tuple[Finding, ...]) -> KernelRow:
    """The row of a file from which no kernel was read; `findings` say why."""
    is_empty = {finding.code for finding in findings} == {"T104"}
    return KernelRow(key="", kernel="", status=NO_KERNEL if is_empty else NOT_READ, findings=findings)


@cache
def make_ready() -> None:
    """Loads what every proof needs, and what a replay needs."""
    import rota.prove.confirmation
    import rota.prove.witness  # noqa: F401  # for the children

    judge_version()


def job_of(line: str) -> KernelJob:
    said = json.loads(line)
    return KernelJob(
        key=said["key"], kernel=said["kernel"], options=options_of(said["options"]),
        contents=base64.b64decode(said["contents"]),
    )  # fmt: skip


def row_of(line: str) -> KernelRow:
    return make_row(json.loads(line))


def make_row(said: Mapping[str, Any]) -> KernelRow:
    findings = tuple(map(finding_of, said["findings"]))
    verdict = None
    if (made := said["verdict"]) is not None:
        verdict = Verdict(
            kernel=said["kernel"], arch=made["arch"], status=Status(said["status"]), findings=findings,
            assumptions=tuple(made["assumptions"]), policies=tuple(made["policies"]),
            statistics=Statistics(**made["statistics"]), waves=made["waves"], dropped=made["dropped"],
            pairs=tuple(tuple(map(tuple, pairs)) for pairs in made["pairs"]),
        )  # fmt: skip
    return KernelRow(**{**said, "findings": findings, "listings": tuple(said["listings"]), "verdict": verdict})


def finding_data(finding: Finding) -> dict[str, Any]:
    ends = [
        {
            "label": each.label, "index": each.index, "role": each.role, "phase": each.phase, "place": each.place,
            "source": None if each.source is None else each.source._asdict(),
        }
        for each in finding.concerns
    ]  # fmt: skip
    return {
        "code": finding.code, "message": finding.message, "severity": finding.severity.value, "concerns": ends,
        "evidence": finding.evidence, "fixes": finding.fixes,
    }  # fmt: skip


def finding_of(said: Mapping[str, Any]) -> Finding:
    ends = (
        Concern(**{**each, "source": None if each["source"] is None else SourceLine(**each["source"])})
        for each in said["concerns"]
    )
    return Finding(
        said["code"],
        said["message"],
        severity=Severity(said["severity"]),
        concerns=tuple(ends),
        evidence=tuple((name, value) for name, value in said["evidence"]),
        fixes=tuple(said["fixes"]),
    )


def judge_kernel(code: CodeObject, kernel: str, options: ProofOptions) -> KernelRow:
    """Proves a kernel, and adds to each finding what a reader wants beside it: lines of source, and the listing."""
    (verdict,) = prove_object(code, kernel, block=options.block, policies=options.policies(), budget=options.budget())
    findings = tuple(map(quote_sources, verdict.findings))
    instructions = code.instructions(kernel) if findings else ()
    return KernelRow(
        key="",
        kernel=kernel,
        status=verdict.status.value,
        findings=findings,
        listings=tuple(excerpt(instructions, each) for each in findings),
        verdict=replace(verdict, findings=findings),
        seconds=verdict.statistics.seconds,
    )


def quote_sources(finding: Finding) -> Finding:
    """A finding whose lines of source have their text, where the file is there."""
    ends = (each if each.source is None else replace(each, source=quote_line(each.source)) for each in finding.concerns)
    return replace(finding, concerns=tuple(ends))


def quote_line(source: SourceLine) -> SourceLine:
    return source._replace(text=linecache.getline(source.file, source.line).strip())


def excerpt(instructions: Sequence[Instruction], finding: Finding, around: int = _AROUND) -> str:
    """The instructions around both ends, as the listing has them; the ends are marked."""
    ends = {each.index for each in finding.concerns if each.index is not None}
    marked = [number for number, each in enumerate(instructions) if each.line in ends]
    shown = sorted({
        at for number in marked for at in range(max(0, number - around), min(len(instructions), number + around + 1))
    })  # fmt: skip
    lines: list[str] = []
    for at, before in zip(shown, (None, *shown), strict=False):
        if before is not None and at != before + 1:
            lines.append(f"{'...':>14}")
        each = instructions[at]
        source = "" if each.source is None else f"   ; {Path(each.source.file).name}:{each.source.line}"
        lines.append(f"{'>' if at in marked else ' '} {each.place:>12}  {each.text}{source}")
    return "\n".join(lines)
