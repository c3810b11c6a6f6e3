"""Addresses that overflow, before and after public fixes: `python -m benchmarks.overflow_pairs [--only ID] [--each]`.

`--shipped FOLDER` reads the objects of a folder as they are, and counts the findings at *required* by what is lost.

Reads the objects of `kernels/pairs` in the shared folder whose fixes concern overflow or bounds.  For each of them a
product is written down here, from what the authors say and from the difference of the two disassemblies.  The fault is
*reported* if the object before has a finding I501 with that product, in those bits, and the object after has none.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rota.errors import IsaError
from rota.isa.binary.toolchain import read_object
from rota.prove.footprint.accesses import accesses_of
from rota.prove.footprint.overflow import Loss, Overflow, find_overflows
from rota.prove.footprint.polynomial import atoms_inside
from tests.campaigns.shared_folder import shared_folder

ANY = "*"  # one factor more, whatever it is called
FAULTS: dict[str, tuple[int, tuple[str, ...]]] = {
    "1957_before__gfx942__fmha_v3_fwd__MI308__fwd_hd128_bf16_rtz": (32, ("group_z", "Bs")),
    "1957_before__gfx942__fmha_v3_fwd__MI308__fwd_hd192x128_bf16_rtz": (32, ("group_z", "Bs")),
    "2151_before__gfx942__fmha_v3_bwd__bwd_hd128_dq_convert_fp16": (32, ("group_z", "BAs_dQ_acc")),
    "2151_before__gfx942__fmha_v3_bwd__bwd_hd128_odo_fp16": (32, ("group_z", "BAs_odo")),
    "2189_before__gfx950__fmha_v3_bwd__bwd_hd128_dq_shuffle": (32, ("group_z", "BAs_dQ_acc")),
    "2189_before__gfx942__fmha_v3_bwd__bwd_hd64_dq_convert_fp16": (32, ("group_z", "BAs_dQ_acc")),
    "2373_before__gfx942__i8gemm__I8gemm_bf16_perTokenI8_BpreShuffle_32x128": (32, ("PC", "group_y")),
    "2373_before__gfx942__fp8gemm_blockscale__fp8gemm_bf16_blockscale_BpreShuffle_32x128": (32, ("PC", ANY)),
    "3211_before__gfx942__pa__pa_fp16_noquant_gqa16_1tg_4w": (24, ("BT[...]",)),
    "3211_before__gfx942__pa__pa_fp16_pertokenFp8_gqa8_2tg_4w": (24, ("BT[...]",)),
    "3988_before__gfx950__mla__mla_a16w16_qh32_qseqlen4_gqaratio32_lse_ps": (24, ("CL[...]",)),
    "4341_before__gfx950__mla__mla_a8w8_qh16_qseqlen1_gqaratio16_lse_ps": (24, ("CL[...]",)),
    "4341_before__gfx950__mla__mla_a8w8_qh16_qseqlen1_gqaratio16_ps": (24, ("CL[...]",)),
    "4449_before__gfx950__fmoe__silu__fmoe_bf16_blockscaleFp8_g1u1_novs_silu_1tg_32x256": (32, ("eGUs", "SEP[...]")),
    "4449_before__gfx950__fmoe__silu__fmoe_bf16_blockscaleBf16_g1u1_flat_vs_silu_1x128": (32, ("eGUs", "STP[...]")),
    "4452_before__gfx950__mla__mla_a8w8_qh16_qseqlen1_gqaratio16": (24, ("CL[...]",)),
    "4452_before__gfx950__mla__mla_a16w16_qh16_qseqlen4_gqaratio16_ps": (24, ("CL[...]",)),
}
"""The bits and the product that is too large for them, by the object before the fix."""

WHY_NOT = {
    "3124": "the fix takes another stride, or counts in other units: nothing wraps",
    "2106": "bytes beyond the tail, whose extent no file states",
    "2128": "bytes beyond the tail, whose extent no file states",
    "2328": "scales beyond the end, whose extent no file states",
    "3128": "the size of LDS, which `rota check` refuses",
    "4245": "a page id out of range, whose extent no file states",
}
"""Why a fix isn't reported, by the number of its pull."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A fix of one object: its pull, and the files before and after."""

    id: str
    before: Path
    after: Path

    @property
    def fault(self) -> tuple[int, tuple[str, ...]] | None:
        return FAULTS.get(self.before.stem)


def list_pairs(only: str = "") -> list[Pair]:
    folder = shared_folder("kernels/pairs")
    noted = json.loads((folder / "PAIRS.json").read_text(encoding="utf-8"))
    return [
        Pair(id=each["id"], before=folder / each["before"], after=folder / each["after"])
        for each in noted
        if each["kind"] in {"overflow", "bounds"} and only in each["before"]
    ]


def overflows_of(file: Path) -> list[Overflow]:
    code = read_object(file)
    return [overflow for kernel in code.kernels for overflow in find_overflows(accesses_of(code, kernel.name))]


def reports(overflows: list[Overflow], fault: tuple[int, tuple[str, ...]]) -> list[tuple[Overflow, int]]:
    """The findings in which a product is too large for so many bits, each with its boundary."""
    bits, wanted = fault
    names = {each for each in wanted if each != ANY}
    found = []
    for each in overflows:
        for boundary in each.boundaries:
            more = set(boundary.formula.split("*")) - names
            named = len(more) == len(set(boundary.formula.split("*"))) - len(names)
            chosen = ANY not in wanted or any("choice" in factor for factor in more)
            if each.bits == bits and each.loss is Loss.BITS and named and chosen:
                found.append((each, boundary.least))
    return found


def kind_of(each: Overflow) -> str:
    """What is lost, as the pages say it."""
    factors = each.boundaries[0].factors
    loaded = any(inside.op == "unknown" for inside in atoms_inside(factors)) or any(
        inside.op == "carried" for inside in atoms_inside(factors)
    )
    if each.bits == _BITS_OF_SMALL:
        return "a loaded number in 24 bits" if loaded else "a product of arguments in 24 bits"
    if each.loss is Loss.CARRY:
        return "the carry of a sum of products"
    if len(factors) == 1:
        return "a loaded number times a constant"
    if loaded:
        return "a loaded number times an argument"
    launched = any(inside.op == "workgroup" for inside in atoms_inside(factors))
    return "a workgroup's number times an argument" if launched else "a product of arguments"


_BITS_OF_SMALL = 24


def count_shipped(folder: Path) -> int:
    kinds: dict[str, list[tuple[str, Overflow]]] = {}
    undecided, refused, objects, start = 0, 0, set[str](), time.perf_counter()
    files = sorted(each for each in folder.rglob("*") if each.suffix in {".co", ".hsaco"})
    for file in files:
        try:
            found = overflows_of(file)
        except IsaError as error:
            refused += 1
            print(f"not read: {file.stem}: {error}".splitlines()[0])
            continue
        for each in found:
            undecided += not each.required
            if each.required:
                objects.add(file.stem)
                kinds.setdefault(kind_of(each), []).append((file.stem, each))
    for kind, rows in sorted(kinds.items(), key=lambda each: -len(each[1])):
        name, first = rows[0]
        place = first.accesses[0].operation.instruction.place
        print(f"{len(rows):5} {len({each for each, _ in rows}):4} objects  {kind}: {first.boundaries[0].formula} from "
              f"{first.boundaries[0].least:,} on, {name} {place}")  # fmt: skip
    total = sum(map(len, kinds.values()))
    print(f"{total} required in {len(objects)} of {len(files)} objects, {undecided} undecided, {refused} not read; "
          f"{time.perf_counter() - start:.0f} s")  # fmt: skip
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the names of files")
    parser.add_argument("--each", action="store_true", help="print the findings before each fix")
    parser.add_argument("--shipped", metavar="FOLDER", help="a folder below the shared one, as kernels/aiter")
    given = parser.parse_args()
    if given.shipped:
        return count_shipped(shared_folder(given.shipped))
    pairs, reported, start = list_pairs(given.only), 0, time.perf_counter()
    print(f"{'pull':6} {'before':>6} {'after':>6}  {'level':9} fault; before and after: findings at required")
    for pair in pairs:
        before, after = overflows_of(pair.before), overflows_of(pair.after)
        said = WHY_NOT.get(pair.id, "not looked for")
        level, fault = "", pair.fault
        if fault is not None:
            found, left = reports(before, fault), reports(after, fault)
            said = f"{'*'.join(fault[1])} in {fault[0]} bits"
            if found and not left:
                reported += 1
                level = "required" if any(each.required for each, _ in found) else "undecided"
                said += f", from {min(least for _, least in found):,} on"
            else:
                said += ": not found before" if not found else ": found after, too"
        counts = [sum(each.required for each in overflows) for overflows in (before, after)]
        print(f"{pair.id:6} {counts[0]:6} {counts[1]:6}  {level:9} {said}  ({pair.before.stem.split('__', 2)[-1]})")
        for each in before if given.each else ():
            print(f"         {'required ' if each.required else 'undecided'} {each.whole} in {each.bits} bits")
    print(f"{reported} of {len(pairs)} reported before and not after; {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
