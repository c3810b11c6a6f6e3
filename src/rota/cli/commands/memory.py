"""`rota memory`: where a kernel accesses global memory, and where its addresses lose bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.code_file import compiler_option, device_option, find_code
from rota.cli.output import give, json_option

if TYPE_CHECKING:
    from rota.errors import Finding
    from rota.prove.footprint.accesses import Footprint, KernelAccesses

_MOST = 12  # formulas of a kernel that are printed without --all


@click.command(epilog="\b\nExamples:\n  rota memory kernel.hsaco\n  rota memory kernel.hsaco --all")
@click.argument("kernel")
@click.option("--all", "everything", is_flag=True, help="Print all accesses and all findings.")
@device_option
@compiler_option
@json_option
@click.pass_context
def memory(ctx: click.Context, *, kernel: str, everything: bool, device: str | None, compiler: str | None) -> None:
    """Print the addresses of KERNEL's accesses as formulas, and where they lose bits.

    KERNEL is a code object, assembly or HIP source, or FILE:name of one kernel in it.  A formula consists of
    arguments, workgroup numbers (group_x), work items (item_x) and loaded words.  u32(...) is a number of which 32
    bits are used, although it may have more.  Where such a number becomes an address, the finding I501 says from which
    factors on it is a wrong one.
    """
    from rota.prove.footprint.accesses import accesses_of
    from rota.prove.footprint.overflow import find_overflows, report_overflow

    code, name = find_code(kernel, device=device, compiler=compiler)
    kernels = [code.kernel(name)] if name else list(code.kernels)
    texts, rows, failed = [], [], False
    for each in kernels:
        accesses = accesses_of(code, each.name)
        found = [(overflow.required, report_overflow(accesses, overflow)) for overflow in find_overflows(accesses)]
        failed |= any(required for required, _ in found)
        shown = [finding for required, finding in found if required or everything]
        texts.append(_describe(accesses, shown, len(found) - len(shown), everything=everything))
        rows.append(_as_row(accesses, [finding for _, finding in found]))
    give("\n\n".join(texts), {"kernels": rows})
    if failed:
        ctx.exit(1)


def _describe(kernel: KernelAccesses, findings: list[Finding], hidden: int, *, everything: bool) -> str:
    groups: dict[tuple[str, str, int, str], int] = {}
    for each in kernel.footprints:
        if not each.is_argument:
            key = (each.verb, each.pointer, each.size, each.formula)
            groups[key] = groups.get(key, 0) + 1
    lines = [f"{kernel.name}: {sum(groups.values())} accesses of global memory"]
    shown = list(groups.items())[: None if everything else _MOST]
    width = max((len(verb) + len(pointer) for (verb, pointer, *_), _ in shown), default=0) + 1
    for (verb, pointer, size, formula), count in shown:
        times = f", {count} times" if count > 1 else ""
        lines.append(f"  {f'{verb} {pointer}':{width}}  {size:2} bytes at {formula}{times}")
    if len(shown) < len(groups):
        lines.append(f"  and {len(groups) - len(shown)} other formulas: --all")
    lines += [f"  not read: {instruction.text}: {reason}" for instruction, reason in kernel.refused]
    lines += [str(each) for each in findings]
    if hidden:
        lines.append(f"{hidden} undecided findings more: --all")
    return "\n".join(lines)


def _as_row(kernel: KernelAccesses, findings: list[Finding]) -> dict[str, object]:
    return {
        "name": kernel.name,
        "accesses": [_as_access(each) for each in kernel.footprints if not each.is_argument],
        "not_read": [instruction.text for instruction, _ in kernel.refused],
        "findings": findings,
    }


def _as_access(each: Footprint) -> dict[str, object]:
    return {
        "instruction": each.operation.instruction.text,
        "place": each.operation.instruction.place,
        "verb": each.verb,
        "bytes": each.size,
        "pointer": each.pointer,
        "address": each.formula,
    }
