"""Alarms, confirmed or dropped: takes what a proof found, gives findings that say whether an execution shows them.

An alarm on paths that no launch can take is dropped, if the proof followed every path.  One that an execution shows,
with the same instructions, is an error; all others are warnings that say why they were not shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from rota.errors import Finding, Severity, several
from rota.isa.binary.kernel_facts import KernelFacts
from rota.prove.alarm import Alarm, Confirmed, Pair, doubted, lacks, pair_of, unconfirmed
from rota.prove.bit_vectors import BitVectors, available
from rota.prove.conditions import Chronicle, Path
from rota.prove.feasibility import Feasibility, Possible, Unsettled
from rota.prove.meter import Meter
from rota.prove.replay import OrderShown, Replay
from rota.prove.witness import FILLS, Launch, NoLaunchError, build_launch

_LINE = re.compile(r"\(line (\d+)\)$")
_MOST_LAUNCHES = 2  # for one alarm
_MOST_PATHS = 200  # of one alarm
_MOST_QUESTIONS = 1_000  # of one proof
_NOT_EXECUTED = {"I403": "the interpreter doesn't judge what lands after a wave's end"}


@dataclass(slots=True, kw_only=True)
class _Case:
    """An alarm with the paths that may be taken, or why none is known."""

    alarm: Alarm
    possible: list[tuple[Pair | None, Possible]] = field(default_factory=list)
    why: str = ""
    never: bool = False


def confirm(
    alarms: Sequence[Alarm],
    chronicle: Chronicle,
    replay: Replay,
    facts: KernelFacts,
    *,
    complete: bool,
    meter: Meter,
) -> Confirmed:
    """Asks whether alarms can happen, and executes those that may."""
    if not available():
        return unconfirmed(alarms, "z3 isn't installed: pip install 'rota[prove]'")
    meter.allow_search()
    one = _Confirmation(chronicle, replay, facts, complete=complete, meter=meter)
    cases = [one.case(each) for each in alarms]
    kept = [each for each in cases if not each.never]
    # Those with paths first: what isn't about paths may well show on the way.
    findings = {id(each): one.finding(each) for each in sorted(kept, key=lambda case: not case.alarm.paths)}
    return Confirmed(findings=tuple(findings[id(each)] for each in kept), dropped=len(cases) - len(kept))


class _Confirmation:
    def __init__(
        self, chronicle: Chronicle, replay: Replay, facts: KernelFacts, *, complete: bool, meter: Meter
    ) -> None:
        self._chronicle, self._replay, self._facts, self._complete = chronicle, replay, facts, complete
        self._feasibility, self._meter = Feasibility(chronicle, BitVectors(), meter), meter
        self._asked: dict[tuple[int, int], Possible | Unsettled | None] = {}
        self._ran: dict[tuple[Launch, int], list[OrderShown]] = {}

    # Feasibility.

    def case(self, alarm: Alarm) -> _Case:
        """What is known about the paths of an alarm."""
        case = _Case(alarm=alarm)
        if alarm.first.severity is Severity.NOTE:
            return case
        if not alarm.paths:
            case.why = "it isn't about paths, so no launch was looked for"
            return case
        for number, (pair, path) in enumerate(alarm.paths.values()):
            if number >= _MOST_PATHS or self._feasibility.questions >= _MOST_QUESTIONS:
                case.why = case.why or "there are more paths to it than were asked about"
                return case
            found = self._ask(path)
            if isinstance(found, Possible):
                case.possible.append((pair, found))
            elif found is not None:
                case.why = case.why or found.why
            if len(case.possible) >= _MOST_LAUNCHES:
                return case
        case.never = self._complete and not alarm.anywhere and not case.possible and not case.why
        if not case.possible and not case.why:
            case.why = "no launch takes the paths that were followed, but not all paths were"
        return case

    def _ask(self, path: Path) -> Possible | Unsettled | None:
        key = path[0], id(path[1])
        if key not in self._asked:
            self._asked[key] = self._feasibility.of(path)
        return self._asked[key]

    # Replay.

    def finding(self, case: _Case) -> Finding:  # noqa: C901
        """An alarm's finding, as an error if it was executed."""
        alarm = case.alarm
        if alarm.first.severity is Severity.NOTE:
            return alarm.told()
        if lacks(alarm.first) is not None:  # an execution would be of data that the kernel may never be given
            return doubted(alarm.told(), f"it depends on {lacks(alarm.first)}")
        if alarm.first.code in _NOT_EXECUTED:
            return doubted(alarm.told(), _NOT_EXECUTED[alarm.first.code])
        for launch, noise in self._ran:
            if (best := self._best(launch, noise, alarm)) is not None:
                return self._refuted(alarm, launch, best, noise)
        why = case.why
        for _, possible in case.possible:
            if over := self._meter.over:
                why = f"the budget of {over} is used up"
                break
            try:
                plain = build_launch(self._facts, possible, self._replay.addresses)
                for noise, fill in product((0, 1), FILLS):
                    launch = replace(plain, fill=fill)
                    self._execute(launch, alarm, noise)
                    if (best := self._best(launch, noise, alarm)) is not None:
                        return self._refuted(alarm, launch, best, noise)
                    why = self._reason(alarm, launch, noise)
            except NoLaunchError as error:
                why = str(error)
        return doubted(alarm.told(case.possible[0][0] if case.possible else None), why)

    def _execute(self, launch: Launch, alarm: Alarm, noise: int) -> None:
        """Runs a launch, until an order does harm, or for another order behind one that could."""
        if (launch, noise) in self._ran:
            return
        done = self._ran[launch, noise] = []
        for shown in self._replay.run(launch, _waves(alarm.first), noise=noise):
            self._meter.spend(shown.instructions)
            done.append(shown)
            best = self._best(launch, noise, alarm)
            if self._meter.over or shown.outside or (best is not None and (_harmful(best[1]) or len(done) > 1)):
                return

    def _best(self, launch: Launch, noise: int, alarm: Alarm) -> tuple[OrderShown, Finding, Pair] | None:
        """The order that shows an alarm best: one in which it does harm, else one in which it could."""
        found = [
            match
            for shown in self._ran[launch, noise]
            if not shown.outside and (match := _match(shown, alarm)) is not None and not _harmless(match[1])
        ]
        return next((each for each in found if _harmful(each[1])), found[0] if found else None)

    def _reason(self, alarm: Alarm, launch: Launch, noise: int) -> str:
        shown = self._ran[launch, noise]
        matches = [found for each in shown if (found := _match(each, alarm)) is not None]
        if matches and all(_harmless(each[1]) for each in matches):
            return "the replay comes to it, but the bytes in question don't change there"
        if matches:
            left = next(each[0].outside for each in matches if each[0].outside)
            return f"the launch that shows it leaves its buffers as well, at {left}: what it reads there is nobody's"
        if any(_match(each, alarm, code="I304") for each in shown):
            return "in the replay both waves write the same values"
        depends = (
            f"; its path depends on {', '.join(launch.unknown)}, which no launch decides" if launch.unknown else ""
        )
        return f"a replay in {several(len(shown), 'order')} didn't show it{depends}"

    def _refuted(self, alarm: Alarm, launch: Launch, best: tuple[OrderShown, Finding, Pair], noise: int) -> Finding:
        shown, finding, pair = best
        told = alarm.told(pair)
        seen = dict(finding.evidence).get("seen")
        evidence = (
            ("launch", launch.told(self._facts, noise=noise)),
            ("replayed", f"order {shown.order!r}" + (f", {seen}" if seen else "")),
            *self._differing(launch, noise),
        )
        return replace(told, severity=Severity.ERROR, evidence=(*told.evidence, *evidence))

    def _differing(self, launch: Launch, noise: int) -> tuple[tuple[str, str], ...]:
        """Two orders after which memory differs."""
        done = [each for each in self._ran[launch, noise] if each.output is not None]
        other = next((each for each in done if each.output != done[0].output), None)
        return () if other is None else (("outputs", f"differ between orders {done[0].order!r} and {other.order!r}"),)


def _waves(finding: Finding) -> tuple[int, ...]:
    told = str(dict(finding.evidence).get("waves", ""))
    return tuple(map(int, re.findall(r"\d+", told)))[:2]


def _harmful(finding: Finding) -> bool:
    return str(dict(finding.evidence).get("seen", "in this order")).startswith("in this order")


def _harmless(finding: Finding) -> bool:
    return str(dict(finding.evidence).get("seen", "")).endswith("here the bytes didn't change")


def _match(shown: OrderShown, alarm: Alarm, code: str | None = None) -> tuple[OrderShown, Finding, Pair] | None:
    """What an execution found of the same kind, about the same instructions."""
    wanted = code or alarm.first.code
    found: tuple[OrderShown, Finding, Pair] | None = None
    for each in shown.findings:
        if each.code != wanted:
            continue
        ends = pair_of(each)
        line = _LINE.search(str(dict(each.evidence).get("under way", "")))
        if len(ends) == 1 and line is not None:
            ends = (*ends, int(line[1]))
        pair = next((known for known in (ends, ends[::-1]) if known in alarm.pairs), None)
        if pair is not None and (found is None or _harmful(each)):
            found = (shown, each, pair)
    return found
