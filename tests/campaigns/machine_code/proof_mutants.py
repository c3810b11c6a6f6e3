"""Single edits of proved kernels: `python -m benchmarks.proof_mutants [PATTERN] [--count 2000] [--share 1/20]`.

A wait is weakened, gone or swapped with its neighbour, a barrier gone or moved, an LDS offset or a DMA's destination
shifted.  Every mutant goes to the proof; it is

- flagged: something is shown or required, or
- one source: flagged by a policy, or by a rule that LLVM alone keeps, or
- undecided: the proof lacks a fact, or doesn't come to its end, or
- redundant: proved, and where the kernel can be launched the interpreter's shadow check over several orders finds
  nothing and the outputs are right; where it can't, for a reason that `code_argument` reads off the code, or
- outside: proved, and outputs are wrong without a race, which the proof doesn't judge (a shifted offset), or
- unexplained: proved, and nothing says that it is right or wrong, or
- MISSED: proved, and the interpreter finds what the proof judges.

With `--witness` z3 is asked whether a launch takes the path of an alarm, and alarms are executed: as `rota check` does.
The exit status is 1 if any is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from random import Random

from rota.errors import RotaError
from rota.isa.binary.toolchain import read_object
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.launch.interleaving import some_interleavings
from rota.prove.causes import EvidenceLevel
from rota.prove.kernel_proof import prove
from rota.prove.verdict import Budget, Verdict
from tests.campaigns.machine_code.code_argument import code_argument
from tests.campaigns.machine_code.race_argument import Change
from tests.campaigns.machine_code.race_edits import Mutant, some_mutants
from tests.campaigns.machine_code.race_mutants import launched
from tests.campaigns.machine_code.value_oracle import of_corpus
from tests.campaigns.machine_code.value_record import recorded
from tests.campaigns.shared_folder import shared_folder
from tests.isa.corpus.cases import Case, cases
from tests.isa.corpus.problem import Problem

JUDGED = frozenset({"I103", "I104", "I105", "I106", "I109"})
FLAGGED, REDUNDANT, OUTSIDE, UNEXPLAINED, MISSED = "flagged", "redundant", "outside", "unexplained", "MISSED"
ONE_SOURCE, UNDECIDED = "one source", "undecided"
KINDS = ("wait +1", "wait gone", "wait swapped", "barrier gone", "barrier moved", "LDS offset", "DMA destination")
BY_GLOBAL_MEMORY = frozenset({"I302", "I303"})
"""What the interpreter finds where waves exchange data by global memory: the proof doesn't judge that."""
_SCOPES = frozenset({"sc0", "sc1", "glc"})
ORDERS = 8
Shadow = Callable[[KernelProgram], tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A kernel: its family and code, the block it is proved for, what is executed, and how it is launched, if it is."""

    name: str
    family: str
    program: KernelProgram
    block: tuple[int, int, int] | None
    dynamic_lds: int | None
    executed: frozenset[int]
    shadow: Shadow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of one mutant, and why."""

    subject: str
    family: str
    mutant: Mutant
    verdict: str
    why: str


def verdict_of(subject: Subject, program: KernelProgram, seconds: float, *, witness: bool = False) -> Verdict:
    """What the proof says of a kernel or a mutant of it."""
    return prove(
        program.facts,
        tuple(step.instruction for step in program.steps),
        block=subject.block,
        dynamic_lds=subject.dynamic_lds,
        budget=Budget(seconds=seconds),
        witness=witness,
    )


def codes_of(verdict: Verdict) -> str:
    return " ".join(sorted({finding.code for finding in verdict.findings}))


def swapped(program: KernelProgram, place: int) -> Iterator[Mutant]:
    """A wait and the instruction after it change places, in straight code."""
    steps = program.steps
    if steps[place].instruction.opcode != "s_waitcnt" or place + 1 >= len(steps):
        return
    other = steps[place + 1].instruction
    targets = {step.instruction.target for step in steps}
    if other.opcode.startswith(("s_branch", "s_cbranch", "s_endpgm", "s_setpc", "s_swappc", "s_call", "s_waitcnt")):
        return
    if place + 1 in targets:
        return
    yield Mutant(
        kind="wait swapped", place=place, change=Change(moved=(place, place + 1)),
        what=f"{steps[place].instruction.text} comes behind {other.text}",
        program=replace(program, steps=(*steps[:place], steps[place + 1], steps[place], *steps[place + 2 :])),
    )  # fmt: skip


def mutants_of(subject: Subject, seed: int, most: int) -> list[Mutant]:
    """Of each kind up to so many."""
    found = [each for each in some_mutants(subject.program, subject.executed, seed, most) if each.kind in KINDS]
    places = sorted(subject.executed)
    Random(f"{seed} {subject.name}").shuffle(places)  # reproducible, not secret
    more: list[Mutant] = []
    for place in places:
        if len(more) < most:
            more += swapped(subject.program, place)
    return found + more


def fate_of(subject: Subject, mutant: Mutant, seconds: float, *, witness: bool = False) -> Fate:
    """Judges one mutant."""
    verdict, why = _judged(subject, mutant, seconds, witness=witness)
    return Fate(subject=subject.name, family=subject.family, mutant=mutant, verdict=verdict, why=why)


def _judged(subject: Subject, mutant: Mutant, seconds: float, *, witness: bool) -> tuple[str, str]:
    found_by = verdict_of(subject, mutant.program, seconds, witness=witness)
    if not found_by.proved:
        names = {EvidenceLevel.ONE_SOURCE: ONE_SOURCE, EvidenceLevel.UNDECIDED: UNDECIDED}
        level = names.get(found_by.level, FLAGGED) if found_by.level else UNDECIDED
        return level, f"{found_by.status.value} {codes_of(found_by)}"
    if subject.shadow is None:
        why = "" if mutant.change is None else code_argument(subject.program.steps, mutant.place, mutant.change)
        return (REDUNDANT, why) if why else (UNEXPLAINED, f"{mutant.kind}, of a kernel that can't be launched")
    found, off = subject.shadow(mutant.program)
    if JUDGED & set(found):
        return MISSED, " ".join(found)
    if found:
        return OUTSIDE, f"{' '.join(found)}: not judged by the proof"
    if off > 1:
        return _wrong_outputs(mutant, subject.program, subject.shadow)
    return REDUNDANT, "the shadow check finds nothing, and outputs are right"


def _wrong_outputs(mutant: Mutant, program: KernelProgram, shadow: Shadow) -> tuple[str, str]:
    """Outputs are wrong without a race in LDS: by a shifted offset, by global memory, or the proof has missed it."""
    if mutant.change is None:
        return OUTSIDE, "outputs are wrong, and nothing races"
    now, before = (set(shadow(unshared(each))[0]) & BY_GLOBAL_MEMORY for each in (mutant.program, program))
    if now - before:
        return OUTSIDE, f"outputs are wrong by global memory: {' '.join(sorted(now - before))}"
    return MISSED, "outputs are wrong, and nothing races"


def unshared(program: KernelProgram) -> KernelProgram:
    """The kernel with plain loads and stores of global memory: the interpreter takes those past caches for atomic."""
    return load_program(
        program.facts,
        tuple(
            replace(each, modifiers=tuple(part for part in each.modifiers if part not in _SCOPES))
            if "_load_" in each.opcode or "_store_" in each.opcode
            else each
            for each in (step.instruction for step in program.steps)
        ),
    )


# Kernels.


def family_of(name: str) -> str:
    """By what a compiled kernel computes."""
    stem = name.rpartition("/")[2]
    for start, family in (
        ("m_", "Triton matmul"), ("pp_", "Triton ping-pong"), ("t_matmul", "Triton matmul, pipelined"),
        ("t_flash", "Triton attention"), ("t_sort", "Triton sort"), ("ts_", "Triton sort"), ("t_", "Triton reductions"),
        ("g_", "Gluon"), ("h_", "HIP"), ("races/", "HIP, small"),
    ):  # fmt: skip
        if stem.startswith(start):
            return family
    return "HIP, small"


def compiled_subject(case: Case) -> Subject:
    """A kernel of the compiled corpus."""
    program, launch = of_corpus(case)
    problem: Problem = case.problem()
    orders = some_interleavings(-(-problem.block // 64), ORDERS)
    executed = frozenset(pc for record in recorded(program, launch) for pc in record.pcs)
    return Subject(
        name=case.name, family=family_of(case.name), program=program, block=launch.block,
        dynamic_lds=launch.dynamic_lds or None, executed=executed,
        shadow=lambda mutant: launched(mutant, problem, orders),
    )  # fmt: skip


def own_subject(name: str) -> Subject:
    """A GEMM that rota emits, compiled."""
    from rota.audit.gemm_launch import load_emitted
    from rota.emit.gemm.hip_gemm import emit_gemm
    from rota.isa.binary.toolchain import find_toolchain
    from tests.emit.kernels import ZOO

    compiled, geometry = ZOO[name]()
    code = find_toolchain().compile(emit_gemm(compiled, geometry), compiled.machine.arch)
    gemm = load_emitted(compiled, geometry, code)

    def shadow(mutant: KernelProgram) -> tuple[tuple[str, ...], float]:
        runs = replace(gemm, program=mutant)
        for trips in (1, 2):
            for order in some_interleavings(gemm.waves, ORDERS):
                found = {finding.code for finding in runs.launch(trips, order).findings}
                if found:
                    return tuple(sorted(found - {"I110"})), 2.0 if "I110" in found else 0.0
        return (), 0.0

    return Subject(
        name=name, family="rota", program=gemm.program, block=(64 * gemm.waves, 1, 1), dynamic_lds=None,
        executed=frozenset(range(len(gemm.program.steps))), shadow=shadow,
    )  # fmt: skip


def shipped_subject(file: Path) -> Subject:
    """A kernel of AITER, which isn't launched."""
    code = read_object(file)
    facts = code.kernels[0]
    program = load_program(facts, tuple(code.instructions(facts.name)))
    return Subject(
        name=file.stem, family=f"AITER {file.stem.split('__')[1]}", program=program, block=None, dynamic_lds=None,
        executed=frozenset(range(len(program.steps))), shadow=None,
    )  # fmt: skip


def subjects(folder: Path, pattern: str) -> Iterator[tuple[str, Callable[[], Subject]]]:
    """All that can be tried, by name: compiled ones from small to large, rota's own, AITER's."""
    from tests.emit.kernels import ZOO

    for case in sorted(cases(folder / "compiled"), key=lambda each: each.path.stat().st_size):
        if case.due is None and not case.refused and pattern in case.name:
            yield case.name, partial(compiled_subject, case)
    yield from ((name, partial(own_subject, name)) for name in ZOO if pattern in name)
    for file in sorted((folder / "aiter").glob("*.co")):
        if pattern in file.stem:
            yield file.stem, partial(shipped_subject, file)


# The campaign.


def rows(fates: Sequence[Fate]) -> Iterator[str]:
    """Tables by family and by kind."""
    order = (FLAGGED, ONE_SOURCE, UNDECIDED, REDUNDANT, OUTSIDE, UNEXPLAINED, MISSED)
    keys: dict[str, Callable[[Fate], str]] = {"family": lambda fate: fate.family, "kind": lambda fate: fate.mutant.kind}
    for title, key in keys.items():
        yield f"\n{title:36}{'kernels':>8}{'mutants':>8}" + "".join(f"{each:>12}" for each in order)
        groups: dict[str, list[Fate]] = defaultdict(list)
        for fate in fates:
            groups[key(fate)].append(fate)
        for name, mine in sorted(groups.items()):
            tally = Counter(fate.verdict for fate in mine)
            kernels = len({fate.subject for fate in mine})
            yield f"{name:36}{kernels:8}{len(mine):8}" + "".join(f"{tally[each]:12}" for each in order)


def main() -> int:
    """Runs the campaign, or a share of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=Fraction, default=Fraction(1), help="of the kernels, such as 1/20")
    parser.add_argument("--most", type=int, default=5, help="mutants of one kind of one kernel")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each proof; slower kernels are left out")
    parser.add_argument("--folder", type=Path, default=shared_folder("kernels"))
    parser.add_argument("--witness", action="store_true", help="ask z3 about the paths of alarms, and execute them")
    given = parser.parse_args()
    fates: list[Fate] = []
    start = time.perf_counter()
    chosen = [*subjects(given.folder, given.pattern)]
    if given.share < 1:
        chosen = chosen[given.seed % given.share.denominator :: given.share.denominator]
    for name, make in chosen:
        if len(fates) >= given.count:
            break
        try:
            subject = make()
        except RotaError as error:
            print(f"{name}: left out, {error.findings[0].message}", file=sys.stderr, flush=True)
            continue
        whole = verdict_of(subject, subject.program, given.seconds)
        if not whole.proved:
            print(f"{name}: left out, {whole.status.value} {codes_of(whole)}", file=sys.stderr, flush=True)
            continue
        mine = [
            fate_of(subject, mutant, 2 * given.seconds, witness=given.witness)
            for mutant in mutants_of(subject, given.seed, given.most)
        ]
        fates += mine
        tally = dict(Counter(fate.verdict for fate in mine))
        print(f"{name}: {tally}, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        for fate in mine:
            if fate.verdict in {MISSED, UNEXPLAINED, OUTSIDE, ONE_SOURCE, UNDECIDED}:
                print(f"{fate.verdict}: {name} #{fate.mutant.place} {fate.mutant.what}: {fate.why}", flush=True)
    print(*rows(fates), sep="\n")
    missed = sum(fate.verdict == MISSED for fate in fates)
    kernels, families = len({fate.subject for fate in fates}), len({fate.family for fate in fates})
    print(f"\n{len(fates)} mutants of {kernels} kernels of {families} families, {missed} missed")
    return 1 if missed else 0
