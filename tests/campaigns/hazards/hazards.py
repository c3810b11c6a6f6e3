"""Wait states against LLVM's: takes kernels that it compiled, prints how many of its `s_nop` are needed here too.

Run `python -m benchmarks.hazards [--pairs] [--aiter]` from the repository's root.  Every `s_nop` is weakened by one
wait state, and the static walk has to give I104.  Left out, each for a reason that is checked: padding that no path
comes to; one state between two memory instructions of one kind, which breaks a clause that XNACK might replay and which
no rule needs; states that were due before LLVM, which goes through a kernel from top to bottom, added others further
down a loop; states for a register that is written again before it is read, or that pass while an MFMA waits for its
unit, which LLVM doesn't count; states counted without an inline assembly's instructions, which it doesn't look into.
With --pairs, llc is given thousands of pairs of instructions, and both have to name the same number, but for rules that
LLVM doesn't have.  With --aiter, what hand-written kernels don't keep is counted by rule, not judged.  The exit status
is 1 if a wait state was missed, or a compiled kernel gave an alarm.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rota.emit.gemm.hip_gemm import emit_gemm
from rota.errors import RotaError
from rota.isa.binary.toolchain import find_toolchain, read_object
from rota.isa.decoded import KernelProgram
from rota.isa.disassembly import Instruction, read_listing
from rota.isa.hazards.spacing import NOTHING, spacing_of
from rota.isa.hazards.wait_states import Early, SpacingWalk, needs
from rota.isa.registers import rows_in
from rota.program.machine import Confidence
from rota.targets.architecture import SOURCES, Architecture
from rota.targets.registry import architecture_named
from tests.campaigns.hazards import hazard_pairs
from tests.campaigns.hazards.hazard_sources import sources
from tests.emit.kernels import SMALL, SMALL_MI300X, by_values, four_wave, ping_pong
from tests.isa.sources import PREAMBLE
from tests.shared import shared

BEYOND_LLVM = frozenset({
    "unequal", "different", "overlap", "short_overlap", "single_overlap", "dot", "double_overwrite", "store_by_offset",
    "store_load",
})  # fmt: skip
"""Rules of the manual, measured, or of an open pull request, that LLVM 22 keeps in part or not at all."""
_VECTOR_MEMORY = ("buffer_", "global_", "flat_", "scratch_")
_SCALAR_MEMORY = ("s_load", "s_buffer_load", "s_store", "s_dcache")
_SYMBOL = re.compile(r"^(?P<address>[0-9a-f]+) <(?P<name>[^>]+)>:$", re.MULTILINE)


@dataclass(slots=True)
class Tally:
    """What became of each s_nop."""

    nops: int = 0
    noticed: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Counts another's too."""
        self.nops += other.nops
        self.noticed += other.noticed
        self.excluded.update(other.excluded)
        self.missed += other.missed
        self.alarms += other.alarms


def judged(
    instructions: Sequence[Instruction],
    architecture: Architecture,
    by_hand: frozenset[int] = frozenset(),
    name: str = "",
) -> Tally:
    """Weakens each s_nop of a kernel; `by_hand` are the numbers of inline assembly's instructions."""
    walk, tally = SpacingWalk(instructions, architecture), Tally()
    tally.alarms = [f"{name}: {_shown(instructions, each)}" for each in walk.early() if each.then not in by_hand]
    reachable = _reachable(walk)
    for number, each in enumerate(instructions):
        if each.opcode != "s_nop":
            continue
        tally.nops += 1
        reason = _left_out(walk, number, reachable, by_hand)
        if reason is None:
            tally.noticed += 1
        elif reason:
            tally.excluded[reason] += 1
        else:
            window = instructions[max(0, number - 3) : number + 3]
            tally.missed.append(f"{name}: {' | '.join(other.text for other in window)}")
    return tally


def why_not_needed(program: KernelProgram, number: int) -> str:
    """Why an s_nop of a decoded kernel may pass one state less; nothing if there is no reason."""
    walk = SpacingWalk([step.instruction for step in program.steps], program.architecture)
    return _left_out(walk, number, _reachable(walk), frozenset()) or ""


def _reachable(walk: SpacingWalk) -> frozenset[int]:
    found: set[int] = set()
    stack = [0] if walk.spacings else []
    while stack:
        if (number := stack.pop()) not in found:
            found.add(number)
            stack.extend(walk._after[number])
    return frozenset(found)


def _left_out(walk: SpacingWalk, number: int, reachable: frozenset[int], by_hand: frozenset[int]) -> str | None:
    """Why a weakened s_nop needn't be noticed: None if it is noticed, "" if it is missed."""
    if number in by_hand:
        return "written in inline assembly, not by LLVM"
    if number not in reachable:
        return "padding that no path comes to"
    if _weakened(walk, number, ()):
        return None
    around = [walk.instructions[each].opcode for each in (number - 1, number + 1)]
    alike = any(all(opcode.startswith(kind) for opcode in around) for kind in (_VECTOR_MEMORY, _SCALAR_MEMORY))
    after = range(number + 1, len(walk.spacings))
    later = [at for at in after if walk.instructions[at].opcode == "s_nop" and at not in by_hand]
    reasons = {
        "for a register that is written again, or while the matrix unit is busy": _plainly_needed(walk, number, ()),
        "breaks a clause of memory instructions, for XNACK": walk.spacings[number].states == 1 and alike,
        "due before LLVM added those further down the loop": bool(_weakened(walk, number, later))
        or _plainly_needed(walk, number, later),
        "counted without the instructions of an inline assembly": bool(_weakened(walk, number, sorted(by_hand))),
        "between inline assemblies that share a register": walk.spacings[number].states == 1
        and _shares_with_assembly(walk, number, by_hand),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _shares_with_assembly(walk: SpacingWalk, number: int, by_hand: frozenset[int]) -> bool:
    """LLVM takes an inline assembly for one that writes parts of its results, which need a state before their use."""

    def block(at: int, step: int) -> list[int]:
        found = [at]
        while found[-1] in by_hand and found[-1] + step in by_hand:
            found.append(found[-1] + step)
        return found

    before, behind = block(number - 1, -1), block(number + 1, 1)
    written = frozenset().union(*(walk.spacings[at].writes for at in before))
    named = frozenset().union(*(walk.spacings[at].writes | walk.spacings[at].all_reads for at in behind))
    return bool(by_hand & {before[0], behind[0]}) and bool(written & named)


def _weakened(
    walk: SpacingWalk, number: int, gone: Sequence[int], *, plain: bool = False, less: int = 1
) -> tuple[Early, ...]:
    """What comes too early with one state less there, and with some instructions that pass no state."""
    kept = {at: walk.spacings[at] for at in (number, *gone)}
    walk.spacings[number] = replace(kept[number], states=kept[number].states - less)
    for at in gone:
        walk.spacings[at] = replace(NOTHING, states=0)
    try:
        return walk.early(sorted(walk.near(number)), plain=plain)
    finally:
        for at, spacing in kept.items():
            walk.spacings[at] = spacing


def _plainly_needed(walk: SpacingWalk, number: int, gone: Sequence[int]) -> bool:
    """Does one state less matter if every instruction is one state, as LLVM counts?"""
    kept, fewer = (
        {(each.first, each.then, each.short) for each in _weakened(walk, number, gone, plain=True, less=less)}
        for less in (0, 1)
    )
    return bool(fewer - kept)


def _shown(instructions: Sequence[Instruction], early: Early) -> str:
    first, then = instructions[early.first], instructions[early.then]
    return f"{first.text} | {then.text}: {early.need.why}, {early.short} short"


def _named(arch: str) -> Architecture:
    architecture = architecture_named(arch)
    assert architecture is not None
    return architecture


def _objects(folder: Path, pattern: str) -> Iterator[tuple[str, Architecture, tuple[Instruction, ...]]]:
    """Every function of every code object, with local labels taken for what they are."""
    objdump = find_toolchain().objdump
    assert objdump is not None
    for path in sorted(folder.rglob(pattern)):
        text = subprocess.run((*objdump, "-d", str(path)), capture_output=True, text=True, check=True).stdout
        arch = next(name for name in ("gfx942", "gfx950") if name in path.name)
        for name, part in _functions(text):
            try:
                yield f"{path.name} {name}", _named(arch), read_listing(part, name)
            except RotaError as error:
                print(f"not read: {path.name} {name}: {error.findings[0].message}")


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """The functions of a disassembly; where instructions branch to labels by name, all are taken for one function."""
    starts = {found["name"]: int(found["address"], 16) for found in _SYMBOL.finditer(text)}
    local = set(re.findall(r"^\s*s_c?branch\w*\s+([A-Za-z_]\S*)", text, re.MULTILINE))
    own = [name for name in starts if name not in local and (not local or name == next(iter(starts)))]
    for number, name in enumerate(own):
        begin = text.index(f"<{name}>:")
        end = text.index(f"<{own[number + 1]}>:") if number + 1 < len(own) else len(text)
        lines = []
        for line in text[begin:end].splitlines()[1:]:
            if _SYMBOL.match(line):
                continue
            target = re.match(r"\s*s_c?branch\w*\s+(\S+)", line)
            if target and target[1] in starts:
                line = f"{line} <{name}+{starts[target[1]] - starts[name]:#x}>"  # noqa: PLW2901
            lines.append(line)
        yield name, f"{starts[name]:016x} <{name}>:\n" + "\n".join(lines)


def _in_assembly(assembly: str, name: str) -> tuple[tuple[Instruction, ...], frozenset[int]]:
    """A kernel's instructions from the compiler's text, and the numbers of those in inline assembly."""
    instructions, inside, by_hand = read_listing(assembly, name), False, set()
    for number, line in enumerate(assembly.splitlines(), 1):
        if "#ASMSTART" in line or "#ASMEND" in line:
            inside = "#ASMSTART" in line
        elif inside:
            by_hand.add(number)
    return instructions, frozenset(number for number, each in enumerate(instructions) if each.line in by_hand)


def _emitted() -> Iterator[tuple[str, str, str]]:
    """Our own kernels: name, architecture, source."""
    kernels = {
        "ping-pong": ping_pong(),
        "four-wave": four_wave(),
        SMALL: by_values(SMALL),
        SMALL_MI300X: by_values(SMALL_MI300X),
    }
    for name, (compiled, geometry) in kernels.items():
        yield name, compiled.machine.arch, emit_gemm(compiled, geometry)


def compiled_kernels(kinds: Sequence[str]) -> Iterator[tuple[str, Tally]]:
    """The s_nop of each group of kernels."""
    toolchain = find_toolchain()
    if "compiled" in kinds:
        total = Tally()
        for name, architecture, instructions in _objects(shared("kernels") / "compiled", "*.hsaco"):
            total.add(judged(instructions, architecture, name=name))
        yield "compiled by Triton, Gluon and clang", total
    groups = {"emitted": list(_emitted()) if "emitted" in kinds else []}
    groups["around each hazard"] = [
        (name, arch, PREAMBLE + source) for (arch, name), source in sources().items() if "sources" in kinds
    ]
    for group, kernels in groups.items():
        total = Tally()
        for name, arch, source in kernels:
            code = toolchain.compile(source, arch)
            instructions, by_hand = _in_assembly(code.assembly, code.kernel().name)
            total.add(judged(instructions, _named(arch), by_hand, f"{name} {arch}"))
        if kernels:
            yield group, total


def pairs_agree(architecture: Architecture, chosen: Sequence[hazard_pairs.Pair]) -> tuple[int, int, list[str]]:
    """Pairs, those for which LLVM inserts something, and those for which it inserts another number than is due here."""
    differing, inserted = [], 0
    found = hazard_pairs.compiled(list(chosen), architecture)
    for name, instructions in found.items():
        first, *between, then, _ = instructions
        states = sum(spacing_of(each, architecture).states for each in between)
        inserted += states > 0
        due = needs(spacing_of(first, architecture), spacing_of(then, architecture), architecture.hazards)
        ours = max((each.states for each in due), default=0)
        asked = max((each.states for each in due if each.rule not in BEYOND_LLVM), default=0)
        if not asked <= states <= ours:
            differing.append(f"{name}: LLVM {states}, here {ours}")
    return len(found), inserted, differing


def main() -> int:
    """Everything that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--aiter", action="store_true")
    given = parser.parse_args()
    wrong = 0
    for group, tally in compiled_kernels(("compiled", "emitted", "sources")):
        print(
            f"{group}: {tally.nops} s_nop, {tally.noticed} noticed, {sum(tally.excluded.values())} left out,"
            f" {len(tally.missed)} missed; {len(tally.alarms)} alarms on unmodified kernels"
        )
        for reason, count in tally.excluded.most_common():
            print(f"  left out: {count}, {reason}")
        for line in (*(f"  MISSED {each}" for each in tally.missed), *(f"  ALARM {each}" for each in tally.alarms)):
            print(line)
        wrong += len(tally.missed) + len(tally.alarms)
    if given.pairs:
        for arch in ("gfx942", "gfx950"):
            architecture = _named(arch)
            count, inserted, differing = pairs_agree(architecture, list(hazard_pairs.pairs(architecture)))
            print(f"{arch}: {count} pairs given to llc, {inserted} with wait states, {len(differing)} differ")
            for line in differing:
                print(f"  {line}")
            wrong += len(differing)
    if given.aiter:
        _print_aiter()
    return int(wrong > 0)


def _print_aiter() -> None:
    """Pairs and objects by rule, objects without any, and pairs that are no hazards because of what stands between."""
    pairs: Counter[tuple[str, str]] = Counter()
    objects: dict[str, set[tuple[str, str]]] = {}
    false = 0
    for path in sorted((shared("kernels") / "aiter").rglob("*.co")):
        code = read_object(path)
        rules = objects.setdefault(path.name, set())
        for kernel in code.kernels:
            walk = SpacingWalk(code.instructions(kernel.name), _named(kernel.arch))
            for each in walk.early():
                rules.add(kind := (each.need.rule, each.need.source))
                pairs[kind] += 1
                false += _is_no_hazard(walk, each)
    alone = SOURCES[Confidence.COMPILER_MODEL]
    free = sum(not rules for rules in objects.values())
    required = sum(all(source == alone for _, source in rules) for rules in objects.values())
    print(
        f"AITER: {len(objects)} objects, {sum(pairs.values())} pairs; {free} objects without any, {required} without"
        f" any but of {alone}; {false} pairs whose register is written again, or that no lane keeps"
    )
    for (rule, source), count in pairs.most_common():
        print(
            f"  {rule}, {source}: {count} pairs in {sum((rule, source) in each for each in objects.values())} objects"
        )


def _is_no_hazard(walk: SpacingWalk, early: Early) -> bool:
    """Reads the listing between the two: is every register written again, or is it what no lane of DPP keeps?"""
    between = range(early.first + 1, early.then)
    rows = early.need.rows
    again = frozenset[int]().union(*(walk.spacings[at].writes for at in between))
    jumps = any(walk.instructions[at].target is not None for at in between)
    if rows and not early.need.matrix and rows <= again and not jumps:
        return True
    then = walk.instructions[early.then]
    whole = "row_mask:0xf bank_mask:0xf" in then.text and re.search(r"quad_perm|row_ror|newbcast|bound_ctrl", then.text)
    read = frozenset[int]().union(*(rows_in(text) for text in then.operands[1:]))
    return early.need.rule.startswith("dpp") and bool(whole) and not rows & read
