"""Launches that keep a contract: in one of them an access may lie outside, which is shown then.

Arguments are drawn from their ranges, small ones and those at both ends first; arrays have as many bytes as the
contract promises.  The interpreter executes each launch.  An access outside of every array, by an instruction of which
that wasn't excluded, makes its finding one that is *shown*, with the launch as its example.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

from rota.errors import Finding, RotaError, Severity
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import Argument, KernelFacts
from rota.isa.decoded import load_program
from rota.isa.launch.kernarg import Pointer, Value
from rota.isa.launch.run import run_dispatch
from rota.prove.causes import LEVEL, UNDECIDED, EvidenceLevel
from rota.prove.footprint.accesses import KernelAccesses
from rota.prove.footprint.bounds import Judged, Reach, describe_doubt
from rota.prove.footprint.known_sums import Contract
from rota.prove.footprint.polynomial import Atom, Bounds, Polynomial, number

_MOST_LAUNCHES = 40
_MOST_INSTRUCTIONS = 20_000  # of a wave
_MOST_BYTES = 1 << 20  # of an array
_FREE_BYTES = 1 << 16  # of an array whose extent isn't stated
_FREE = Bounds(0, 256)  # a number without a range
_OUTSIDE = "I105"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLaunch:
    """Numbers for the arguments that are passed by value, bytes for the others, and workgroups along each axis."""

    numbers: Mapping[str, int]
    sizes: Mapping[str, int]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    def __str__(self) -> str:
        numbers = [f"{name} = {value}" for name, value in self.numbers.items()]
        return ", ".join((*numbers, f"{'x'.join(map(str, self.grid))} workgroups of {'x'.join(map(str, self.block))}"))


def show_outside(
    code: CodeObject, kernel: KernelAccesses, judged: Sequence[Judged], contract: Contract, findings: Sequence[Finding]
) -> tuple[Finding, ...]:
    """The findings I502; where a drawn launch goes outside at one of their instructions, they are shown by it."""
    doubts = {
        each.access.operation.instruction.place: (each.access.pointer, each.side, each.access.verb)
        for each in judged
        if each.reach is Reach.UNDECIDED
    }
    shown: dict[str, _Shown] = {}
    facts = code.kernel(kernel.name)
    for launch in draw_launches(facts, contract) if doubts else ():
        for place, where in _list_outside(code, facts, launch).items():
            if place in doubts:
                shown.setdefault(describe_doubt(*doubts[place]), _Shown(launch, where, *doubts[place]))
        if len(shown) == len(findings):
            break
    return tuple(_show(each, shown.get(each.message)) for each in findings)


class _Shown(NamedTuple):
    launch: DrawnLaunch
    where: str
    pointer: str
    side: str
    verb: str


def _show(finding: Finding, found: _Shown | None) -> Finding:
    if found is None:
        return finding
    kept = tuple(each for each in finding.evidence if each[0] not in {LEVEL, UNDECIDED})
    evidence = ((LEVEL, EvidenceLevel.SHOWN.value), ("for example", str(found.launch)), ("where", found.where), *kept)
    message = f"a {found.verb} of {found.pointer} lies {found.side}"
    return replace(finding, message=message, evidence=evidence, severity=Severity.ERROR)


def draw_launches(facts: KernelFacts, contract: Contract) -> Iterator[DrawnLaunch]:
    """Different launches that the contract allows, those with the fewest numbers away from their least first."""
    seen = set[str]()
    names = [each.name for each in facts.arguments if each.kind == "by_value"]
    names += [each for each in contract.ranges if each not in names and not each.startswith(("group_", "item_"))]
    for grid_step, *steps in _list_steps(len(names) + 1):
        ranges = (contract.ranges.get(name, _FREE) for name in names)
        numbers = {
            name: min(bounds.low + _STEPS[step], bounds.high)
            for name, bounds, step in zip(names, ranges, steps, strict=True)
        }
        sizes, grid = _sizes_of(facts, contract, numbers), _draw_grid(facts, contract, grid_step)
        if sizes is None or not _is_allowed(contract, numbers, grid):
            continue
        launch = DrawnLaunch(numbers=numbers, sizes=sizes, grid=grid, block=_block_of(facts, contract))
        if str(launch) not in seen:
            seen.add(str(launch))
            yield launch
        if len(seen) == _MOST_LAUNCHES:
            return


_STEPS = (0, 1, 19, 99, 255, 1015)
_GRIDS = (17, 1, 3)  # more workgroups than a small array has room for, first
_MOST_CHANGED = 4


def _list_steps(count: int) -> Iterator[tuple[int, ...]]:
    """Places in the steps of so many numbers: all the same, and those whose sum is small."""
    for step in range(len(_STEPS)):
        yield from ((grid, *(step,) * (count - 1)) for grid in range(len(_GRIDS)))
    for total in range(1, _MOST_CHANGED + 1):
        for changed in combinations_with_replacement(range(count), total):
            yield tuple(map(changed.count, range(count)))


def _draw_grid(facts: KernelFacts, contract: Contract, step: int) -> tuple[int, int, int]:
    counts = []
    for place, (axis, asked) in enumerate(zip("xyz", facts.workgroup_ids, strict=True)):
        most = contract.ranges.get(f"group_{axis}", Bounds(0, max(_GRIDS))).high + 1
        counts.append(min(_GRIDS[(step + place) % len(_GRIDS)], most) if asked else 1)
    return counts[0], counts[1], counts[2]


def _is_allowed(contract: Contract, numbers: Mapping[str, int], grid: tuple[int, int, int]) -> bool:
    """True if the relations hold in the first workgroup and in the last one."""
    for last in (0, 1):
        own = {**numbers, **{f"group_{axis}": last * (count - 1) for axis, count in zip("xyz", grid, strict=True)}}
        values = [value_of(each, own) for each in contract.relations]
        if any(value is None or value < 0 for value in values):
            return False
    return True


def _block_of(facts: KernelFacts, contract: Contract) -> tuple[int, int, int]:
    stated = [contract.ranges.get(f"item_{axis}", Bounds(0, 0)).high + 1 for axis in "xyz"]
    if any(f"item_{axis}" in contract.ranges for axis in "xyz"):
        return stated[0], stated[1], stated[2]
    if facts.required_workgroup is not None:
        x, y, z = facts.required_workgroup
        return x, y, z
    return facts.max_workgroup, 1, 1


def _sizes_of(facts: KernelFacts, contract: Contract, numbers: Mapping[str, int]) -> dict[str, int] | None:
    """Bytes of each array; None if that is too much, or if these numbers aren't allowed."""
    sizes = {}
    for each in facts.arguments:
        if each.kind == "global_buffer":
            size = value_of(contract.extents.get(each.name, number(_FREE_BYTES)), numbers)
            if size is None or not 0 < size <= _MOST_BYTES:
                return None
            sizes[each.name] = size
    return sizes


def value_of(whole: Polynomial, numbers: Mapping[str, int]) -> int | None:
    """A number from those that have names; None if it has another one in it."""
    total = 0
    for factors, factor in whole.terms:
        for atom in factors:
            value = _value_of_atom(atom, numbers)
            if value is None:
                return None
            factor *= value  # noqa: PLW2901
        total += factor
    return total


def _value_of_atom(atom: Atom, numbers: Mapping[str, int]) -> int | None:
    if atom.op in {"argument", "stated", "workgroup"}:
        return numbers.get(atom.text)
    if atom.op == "quotient" and isinstance(atom.args[0], Polynomial) and isinstance(atom.args[1], int):
        inside = value_of(atom.args[0], numbers)
        return None if inside is None else inside // atom.args[1]
    return None


def _list_outside(code: CodeObject, facts: KernelFacts, launch: DrawnLaunch) -> dict[str, str]:
    """The places of instructions that access no array, and how far off they are; none if the launch can't be run."""
    explicit = [each for each in facts.arguments if not each.hidden]
    if any(each.kind not in {"by_value", "global_buffer"} for each in explicit):
        return {}
    buffers = [np.zeros(size, np.uint8) for size in launch.sizes.values()]
    names = list(launch.sizes)
    values: list[Value] = [
        Pointer(buffer=names.index(each.name)) if each.name in names else _as_value(each, launch.numbers[each.name])
        for each in explicit
    ]
    try:
        outcome = run_dispatch(
            load_program(facts, code.instructions(facts.name)), buffers=buffers, values=values, grid=launch.grid,
            block=launch.block, most=_MOST_INSTRUCTIONS,
        )  # fmt: skip
        findings = outcome.findings
    except RotaError as error:
        findings = error.findings
    return {
        each.concerns[0].place: str(dict(each.evidence)["where"])
        for each in findings
        if each.code == _OUTSIDE and each.concerns and "where" in dict(each.evidence)
    }


def _as_value(argument: Argument, value: int) -> Value:
    return (value % (1 << 64)).to_bytes(8, "little")[: argument.size]


def contract_of_launch(
    kernel: KernelAccesses, args: Sequence[object], grid: Sequence[int], block: Sequence[int]
) -> Contract:
    """What one launch promises: the bytes of its arrays, its numbers, its workgroups and its work items."""
    extents, ranges = {}, {}
    explicit = [each for each in kernel.arguments if not each.hidden]
    for argument, value in zip(explicit, args, strict=True):
        if isinstance(value, int | np.integer):
            word = int(value) % (1 << 8 * argument.size)
            ranges[argument.name] = Bounds(word, word)
        elif argument.kind == "global_buffer" and hasattr(value, "nbytes"):
            extents[argument.name] = number(int(value.nbytes))
    for name, counts in (("group", grid), ("item", block)):
        for axis, count in zip("xyz", (*counts, 1, 1, 1), strict=False):
            ranges[f"{name}_{axis}"] = Bounds(0, count - 1)
    return Contract(extents=extents, ranges=ranges)
