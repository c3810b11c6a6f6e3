"""`rota memory`: where a kernel accesses global memory, where addresses lose bits, and whether they stay inside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rota.cli.arguments import find_function
from rota.cli.code_file import compiler_option, device_option, find_code, find_project
from rota.cli.output import give, json_option
from rota.errors import IsaError, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rota.errors import Finding
    from rota.prove.footprint.accesses import Footprint, KernelAccesses
    from rota.prove.footprint.bounds import Judged
    from rota.prove.footprint.known_sums import Contract
    from rota.prove.hand_overs import HandOverReport

_MOST = 12  # formulas of a kernel that are printed without --all


@click.command(epilog="\b\nExamples:\n  rota memory kernel.hsaco\n  rota memory kernel.hsaco --all")
@click.argument("kernel")
@click.option(
    "--extent", "extents", multiple=True, metavar="POINTER=BYTES",
    help="The bytes that a pointer leads to, as a sum of products of arguments: A=M*K*2.",
)  # fmt: skip
@click.option(
    "--range", "ranges", multiple=True, metavar="NAME=LOW..HIGH", help="What an argument, group_x or item_x may be."
)
@click.option(
    "--where", "relations", multiple=True, metavar="RELATION",
    help="What arguments keep: 'ldc >= N', 'K % 64 == 0', 'group_x < (N + 63) // 64'.",
)  # fmt: skip
@click.option(
    "--launch", metavar="FILE.py:FUNCTION",
    help="A launch, as for rota run: its arrays' bytes, its numbers and its workgroups are what is promised.",
)  # fmt: skip
@click.option(
    "--same", multiple=True, metavar="POINTER=POINTER",
    help="With --apart: two pointers that lead to the same memory.  All others lead to separate memory.",
)  # fmt: skip
@click.option("--apart", is_flag=True, help="Prove that no two workgroups access the same bytes, one of them writing.")
@click.option("--all", "everything", is_flag=True, help="Print all accesses and all findings.")
@device_option
@compiler_option
@json_option
@click.pass_context
def memory(
    ctx: click.Context,
    *,
    kernel: str,
    extents: tuple[str, ...],
    ranges: tuple[str, ...],
    relations: tuple[str, ...],
    launch: str | None,
    same: tuple[str, ...],
    apart: bool,
    everything: bool,
    device: str | None,
    compiler: str | None,
) -> None:
    """Print the addresses of KERNEL's accesses as formulas, and where they lose bits.

    KERNEL is a code object, assembly or HIP source, or FILE:name of one kernel in it.  A formula consists of
    arguments, workgroup numbers (group_x), work items (item_x) and loaded words. u32(...) is a number of which 32
    bits are used, although it may have more.  Where such a number becomes an address, the finding I501 says from
    which factors on it is a wrong one.  With --extent, accesses of that pointer are proved to lie inside, for all
    arguments in the ranges, that keep what --where states; the others are findings I502.  With --apart, each pair of
    accesses of one pointer, one of them a write, is proved to be of different bytes in different workgroups; the
    others are findings I503.
    Flags that hand data to another workgroup are listed, with what they lack (I305).

    A project states extents, ranges and same once, in [tool.rota] or for some of its kernels.  Where an access isn't
    proved to lie inside, launches that keep the promise are drawn and executed: one that goes outside shows it.
    """
    from rota.prove.footprint.accesses import accesses_of
    from rota.prove.footprint.apart import find_overlaps, report_overlap
    from rota.prove.footprint.bounds import judge_bounds, report_bounds
    from rota.prove.footprint.drawn_launches import show_outside
    from rota.prove.footprint.overflow import find_overflows, report_overflow
    from rota.prove.hand_overs import find_hand_overs

    if same and not apart:
        raise click.UsageError("--same is about --apart, which isn't asked for")
    code, name = find_code(kernel, device=device, compiler=compiler)
    asked = _Asked(file=kernel, extents=extents, ranges=ranges, relations=relations, launch=launch, same=same)
    rows = []
    for each in [code.kernel(name)] if name else list(code.kernels):
        accesses = accesses_of(code, each.name)
        overflows = find_overflows(accesses)
        contract = asked.contract_of(accesses)
        judged = judge_bounds(accesses, contract)
        outside = show_outside(code, accesses, judged, contract, report_bounds(judged))
        overlaps = find_overlaps(accesses, contract, asked.same_of(accesses)) if apart else None
        rows.append(
            _Read(
                kernel=accesses, contract=contract, judged=judged, outside=outside,
                overlaps=None if overlaps is None else tuple(map(report_overlap, overlaps)),
                handed=find_hand_overs(each, code.instructions(each.name)),
                required=tuple(report_overflow(accesses, found) for found in overflows if found.required),
                undecided=tuple(report_overflow(accesses, found) for found in overflows if not found.required),
            )
        )  # fmt: skip
    give(
        "\n\n".join(each.describe(everything=everything) for each in rows),
        {"kernels": [each.as_data() for each in rows]},
    )
    if any(each.fails for each in rows):
        ctx.exit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is promised on the command line; where nothing is, what the project says."""

    file: str
    extents: tuple[str, ...]
    ranges: tuple[str, ...]
    relations: tuple[str, ...]
    launch: str | None
    same: tuple[str, ...]

    def contract_of(self, kernel: KernelAccesses) -> Contract:
        from rota.isa.launch.loaded_kernel import check_description
        from rota.prove.footprint.bounds import parse_contract
        from rota.prove.footprint.drawn_launches import contract_of_launch

        if self.launch is None:
            said = self._said_of(kernel)
            relations = self.relations or said("where")
            return parse_contract(kernel, self.extents or said("extents"), self.ranges or said("ranges"), relations)
        if self.extents or self.ranges or self.relations:
            raise click.UsageError("--launch says what --extent, --range and --where would: give one of them")
        launch = check_description(find_function(self.launch)())
        sizes = (launch.get("grid", 1), launch["block"])
        grid, block = ((each,) if isinstance(each, int) else tuple(each) for each in sizes)
        return contract_of_launch(kernel, launch["args"], grid, block)

    def same_of(self, kernel: KernelAccesses) -> dict[str, str]:
        pairs = {}
        for text in self.same or self._said_of(kernel)("same"):
            one, equals, other = (part.strip() for part in text.partition("="))
            names = {each.name for each in kernel.arguments}
            if not equals or not {one, other} <= names:
                raise IsaError.of("I107", f"{text!r} names no two pointers", fixes=("write POINTER=POINTER: out=in",))
            pairs[one] = other
        return pairs

    def _said_of(self, kernel: KernelAccesses) -> Callable[[str], Sequence[str]]:
        said = find_project(Path.cwd()).settings_for(self.file.partition(":")[0], kernel.name)
        return lambda name: said.get(name, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """A kernel and what was found of its accesses."""

    kernel: KernelAccesses
    contract: Contract
    judged: tuple[Judged, ...]
    outside: tuple[Finding, ...]
    overlaps: tuple[Finding, ...] | None
    handed: HandOverReport
    required: tuple[Finding, ...]
    undecided: tuple[Finding, ...]

    @property
    def flags(self) -> tuple[Finding, ...]:
        """What hand-overs lack."""
        return tuple(finding for each in self.handed.hand_overs for finding in each.findings)

    @property
    def fails(self) -> bool:
        sure = any(each.severity is Severity.ERROR for each in self.flags)
        unread = bool(self.kernel.refused) and self.is_asked
        return bool(self.required or self.outside or self.overlaps or sure or unread)

    @property
    def is_asked(self) -> bool:
        """True if bounds or workgroups are to be proved, which takes all accesses."""
        return bool(self.contract.extents) or self.overlaps is not None

    def describe(self, *, everything: bool) -> str:
        accesses = [each for each in self.kernel.footprints if not each.is_argument]
        groups = Counter((each.verb, each.pointer, each.size, each.formula) for each in accesses)
        lines = [f"{self.kernel.name}: {groups.total()} accesses of global memory"]
        shown = list(groups.items())[: None if everything else _MOST]
        width = max((len(verb) + len(pointer) for (verb, pointer, *_), _ in shown), default=0) + 1
        for (verb, pointer, size, formula), count in shown:
            times = f", {count} times" if count > 1 else ""
            lines.append(f"  {f'{verb} {pointer}':{width}}  {size:2} bytes at {formula}{times}")
        if len(shown) < len(groups):
            lines.append(f"  and {len(groups) - len(shown)} other formulas: --all")
        lines += self._describe_choices({formula for (*_, formula), _ in shown})
        lines += [f"  not read: {instruction.text}: {reason}" for instruction, reason in self.kernel.refused]
        lines += self._describe_bounds()
        if self.overlaps is not None:
            lines.append(f"  workgroups: {self._describe_workgroups(self.overlaps)}")
        lines += [f"  {each.flag.text}: {each.kind.value}" for each in self.handed.hand_overs]
        sure = [each for each in self.flags if each.severity is Severity.ERROR]
        undecided = [*(each for each in self.flags if each not in sure), *self.undecided]
        lines += map(str, (*self.outside, *(self.overlaps or ()), *sure, *self.required))
        lines += map(str, undecided if everything else ())
        if undecided and not everything:
            lines.append(f"{len(undecided)} undecided findings more: --all")
        return "\n".join(lines)

    def _describe_choices(self, formulas: set[str]) -> list[str]:
        """What the choices in these formulas are between."""
        from rota.prove.footprint.known_sums import inequalities_of
        from rota.prove.footprint.polynomial import describe
        from rota.prove.footprint.words import HeldWord, Predicate

        shown = [each for each in self.kernel.footprints if each.formula in formulas]
        atoms = dict.fromkeys(atom for each in shown for atom in (each.base + each.offset).atoms())
        lines = []
        for atom in (each for each in atoms if each.op == "select"):
            words = [describe(self.kernel.words.value(each)) for each in atom.args if isinstance(each, HeldWord)]
            facts = inequalities_of(atom.args[0]) if isinstance(atom.args[0], Predicate) else ()
            said = " and ".join(f"{describe(each)} >= 0" for each in facts) or "a condition that isn't followed"
            lines.append(f"  {atom.text}: {words[0]} where {said}, else {', '.join(words[1:])}")
        return lines

    def _describe_workgroups(self, overlaps: tuple[Finding, ...]) -> str:
        if overlaps:
            return f"{len(overlaps)} pairs may meet"
        return f"undecided: {len(self.kernel.refused)} accesses aren't read" if self.kernel.refused else "apart"

    def _describe_bounds(self) -> list[str]:
        if not self.contract.extents:
            return []
        counts = Counter(each.reach.value for each in self.judged)
        counts["not read"] += len(self.kernel.refused)
        counts = +counts  # without the ones that are zero
        said = ", ".join(f"{count} {place}" for place, count in counts.items())
        return [f"  bounds: {said}"]

    def as_data(self) -> dict[str, object]:
        return {
            "name": self.kernel.name,
            "accesses": [_as_access(each) for each in self.judged],
            "not_read": [instruction.text for instruction, _ in self.kernel.refused],
            "findings": [*self.outside, *(self.overlaps or ()), *self.flags, *self.required, *self.undecided],
        }


def _as_access(judged: Judged) -> dict[str, object]:
    each: Footprint = judged.access
    return {
        "instruction": each.operation.instruction.text,
        "place": each.operation.instruction.place,
        "verb": each.verb,
        "bytes": each.size,
        "pointer": each.pointer,
        "address": each.formula,
        "bounds": judged.reach.value,
    }
