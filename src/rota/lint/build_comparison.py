"""Two builds of a kernel: what the newer one made worse."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rota.errors import Finding, Severity
from rota.lint.kernel_report import MATTERS, CodeLoop, LintReport


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildComparison:
    """What became worse from one build of a kernel to the next, and what couldn't be compared."""

    name: str
    findings: tuple[Finding, ...]
    not_compared: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        return any(each.severity is Severity.WARNING for each in self.findings)


class _Measure(NamedTuple):
    """A number of two builds; fewer is better unless `more` is."""

    what: str
    old: float
    new: float
    where: str = ""
    more: bool = False
    share: float = 0.0  # of the old number, by which it may become worse

    @property
    def is_worse(self) -> bool:
        if self.more:
            return self.new < self.old
        return self.new > self.old * (1 + self.share)


def compare_reports(old: LintReport, new: LintReport) -> BuildComparison:
    """Compare two builds of a kernel; what isn't known of one of them is named, and never taken for as good."""
    measures, unknown = [*_measure_kernel(old, new), *_measure_loops(old, new)], list[str]()
    clocks, noted = _measure_clocks(old, new), {_REGISTERS}
    if isinstance(clocks, str):
        unknown.append(clocks)
    else:
        measures.append(clocks)
        if clocks.new < clocks.old * (1 - MATTERS):  # registers or LDS that a faster loop takes
            noted |= _PLACES
    unknown += _list_unknown(old, new)
    found = tuple(_report_worse(each, new.name, noted) for each in measures if each.is_worse)
    order = sorted(found, key=lambda each: each.severity is Severity.NOTE)
    return BuildComparison(name=new.name, findings=tuple(order), not_compared=tuple(unknown))


_REGISTERS = "registers"
_WORKGROUPS, _WAVES = "workgroups on a compute unit, at most", "waves on a compute unit, at most"
_PLACES = {_WORKGROUPS, _WAVES}


def _measure_kernel(old: LintReport, new: LintReport) -> Iterator[_Measure]:
    was, now = old.facts, new.facts
    yield _Measure("private bytes a lane", was.private_bytes, now.private_bytes)
    for what, before, after in (
        ("spilled VGPRs by the notes", was.vgpr_spills, now.vgpr_spills),
        ("spilled SGPRs by the notes", was.sgpr_spills, now.sgpr_spills),
    ):
        if before is not None and after is not None:
            yield _Measure(what, before, after)
    if old.occupancy is not None and new.occupancy is not None:
        same = old.occupancy.waves == new.occupancy.waves
        before, after = (each.workgroups * (1 if same else each.waves) for each in (old.occupancy, new.occupancy))
        yield _Measure(_WORKGROUPS if same else _WAVES, before, after, more=True)
    yield _Measure(_REGISTERS, was.vgprs, now.vgprs)


def _measure_loops(old: LintReport, new: LintReport) -> Iterator[_Measure]:
    """Loop by loop if both builds have as many, else all loops together; of all waves where those differ."""
    same = old.verdict.waves == new.verdict.waves
    waves = (1, 1) if same else (old.verdict.waves, new.verdict.waves)
    whose = "" if same else ", of all waves,"
    pairs: list[tuple[tuple[CodeLoop, ...], tuple[CodeLoop, ...]]]
    pairs = [((each,), (other,)) for each, other in zip(old.loops, new.loops, strict=False)]
    if len(old.loops) != len(new.loops) or any(a[0].depth != b[0].depth for a, b in pairs):
        pairs = [(old.loops, new.loops)]
    for before, after in pairs:
        one = len(before) == len(after) == 1
        where = f"in the loop {after[0].place}, which was {before[0].place}" if one else "in all loops"
        for what, count in (
            ("accesses of private memory", lambda loop: len(loop.private)),
            ("copies between VGPRs and AGPRs", lambda loop: len(loop.copies)),
            ("clocks that bank conflicts add to a trip", lambda loop: loop.extra_clocks),
        ):
            was, now = (times * sum(map(count, some)) for times, some in zip(waves, (before, after), strict=True))
            yield _Measure(f"{what}{whose}", was, now, where)


def _measure_clocks(old: LintReport, new: LintReport) -> _Measure | str:
    """The predicted clocks of the main loop for the same work: products, or else bytes from memory."""
    if old.clocks is None or new.clocks is None:
        which, why = ("old", old.not_lifted) if old.clocks is None else ("new", new.not_lifted)
        return f"predicted clocks: those of the {which} build aren't known: {why}"
    for work, was, now in (
        ("million products and sums", old.clocks.flops / 1e6, new.clocks.flops / 1e6),
        ("KiB from memory", old.clocks.moved / 1024, new.clocks.moved / 1024),
    ):
        if was and now:
            what = f"predicted clocks of the main loop for a {work}"
            return _Measure(what, old.clocks.clocks / was, new.clocks.clocks / now, share=MATTERS)
    return "predicted clocks: the main loops multiply nothing and load nothing, or only one of them does"


def _list_unknown(old: LintReport, new: LintReport) -> Iterator[str]:
    counts = [
        sum(not each.certainty.is_counted for loop in report.loops for each in loop.sites) for report in (old, new)
    ]
    if any(counts):
        yield (
            f"bank conflicts of {counts[0]} LDS instructions in loops of the old build and {counts[1]} of the new one "
            "are bounded by the banks alone, or not known"
        )
    if None in {old.facts.spills, new.facts.spills}:
        yield "spilled registers: the notes of a build don't state them"
    if old.occupancy is None or new.occupancy is None:
        yield "occupancy: the machine doesn't state how many waves a SIMD holds"


def _report_worse(each: _Measure, kernel: str, noted: Collection[str]) -> Finding:
    where = f" {each.where}" if each.where else ""
    return Finding(
        "I609",
        f"{kernel}: {each.what}{where}: {each.new:.4g}, before {each.old:.4g}",
        severity=Severity.NOTE if each.what in noted else Severity.WARNING,
        evidence=(
            ("what", each.what),
            ("where", each.where or "the kernel"),
            ("before", f"{each.old:.4g}"),
            ("now", f"{each.new:.4g}"),
        ),
        fixes=("compare what the compilers were given: version, flags, launch bounds; `rota diff` compares the loops",),
    )
