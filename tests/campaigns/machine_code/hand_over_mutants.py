"""Mutants of hand-overs between workgroups: `python -m benchmarks.hand_over_mutants [--most 20]`.

The kernels are those of `tests/prove/hand_overs`.  An instruction of the protocol is taken away, a scope bit is
dropped, a wait lets more accesses remain, or it changes places with the one before or after it, unless one of the two
uses what the other one writes: that a flag's value says what it should is assumed, not proved.  A mutant is *flagged*
if the proof has a finding.  One that has none is executed in several orders of waves and of landing stores: if an
execution finds accesses that nothing orders (I303), it is *missed*; if nothing shows, it is *equivalent* as far as that
tells.  One that uses a register before its wait (I103) or is in no order with itself (I302) is the other proof's.  The
exit status is 1 if one is missed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from rota.errors import IsaError
from rota.isa.disassembly import Instruction
from rota.prove.hand_overs import find_hand_overs
from rota.prove.operation import read_operation
from rota.targets.registry import architecture_named
from tests.campaigns.machine_code.memory_mutants import print_totals
from tests.prove.hand_overs.kernels import KERNELS, NOTHING_HANDED_OVER, ORDERS, compiled, executed, spelled_as

ARCHITECTURES = ("gfx942", "gfx950")
_PROTOCOL = ("buffer_wbl2", "buffer_inv", "s_waitcnt", "s_barrier", "global_store", "global_load", "global_atomic")
_SCOPES = ("sc0", "sc1", "nt")
_WAIT = re.compile(r"vmcnt\((\d+)\)")
_OTHERS = frozenset({"I103", "I302"})  # a wait or a barrier is lacking within one workgroup

Listing = tuple[Instruction, ...]


def mutate(instructions: Listing) -> Iterator[tuple[str, Listing]]:
    for at, each in enumerate(instructions):
        if not each.text.startswith(_PROTOCOL):
            continue
        around = instructions[:at], instructions[at + 1 :]
        for kind, changed in _changes(each):
            yield kind, (*around[0], changed, *around[1])
        for other in (at - 1, at + 1):
            if 0 <= other < len(instructions) and _may_swap(each, instructions[other]):
                yield "moved", _swap(instructions, at, other)


def _changes(each: Instruction) -> Iterator[tuple[str, Instruction]]:
    if each.opcode.startswith(("buffer", "s_")):
        yield "taken away", replace(each, opcode="s_nop", operands=("0",), modifiers=(), text="s_nop 0")
    for scope in each.modifiers:
        if scope in _SCOPES:
            kept = tuple(word for word in each.modifiers if word != scope)
            yield "scope", replace(each, modifiers=kept, text=" ".join(w for w in each.text.split() if w != scope))
    if (found := _WAIT.search(each.text)) is not None:
        for more in (1, 2):
            count = f"vmcnt({int(found[1]) + more})"
            operands = tuple(_WAIT.sub(count, text) for text in each.operands)
            yield "wait", replace(each, operands=operands, text=_WAIT.sub(count, each.text))


def _may_swap(one: Instruction, other: Instruction) -> bool:
    if other.target is not None or other.opcode == "s_endpgm":
        return False
    architecture = architecture_named("gfx950")
    assert architecture is not None
    mine, others = (read_operation(each, 0, architecture) for each in (one, other))
    depends = mine.writes & (others.reads | others.writes) | mine.reads & others.writes
    return not depends and not (mine.data & others.reads | others.data & mine.reads)


def _swap(instructions: Listing, one: int, other: int) -> Listing:
    edited = [*instructions]
    edited[one] = spelled_as(instructions[one], instructions[other])
    edited[other] = spelled_as(instructions[other], instructions[one])
    return tuple(edited)


def judge(name: str, arch: str, instructions: Listing) -> str:
    if find_hand_overs(compiled(name, arch).kernel("k"), instructions).findings:
        return "flagged"
    codes: set[str] = set()
    for order in ORDERS:
        try:
            codes |= {each.code for each in executed(name, arch, instructions, order)[1]}
        except IsaError as error:
            codes |= {each.code for each in error.findings}
    if codes & _OTHERS:
        return "other proof"
    return "MISSED" if "I303" in codes else "equivalent"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=10_000, help="mutants of a kernel")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    totals: dict[str, Counter[str]] = {}
    start = time.perf_counter()
    for name in (each for each in KERNELS if each not in NOTHING_HANDED_OVER):
        for arch in ARCHITECTURES:
            original = compiled(name, arch).instructions("k")
            mutants = list(mutate(original))
            Random(f"{given.seed} {name}").shuffle(mutants)
            for kind, changed in mutants[: given.most]:
                result = judge(name, arch, changed)
                totals.setdefault(kind, Counter())[result] += 1
                if result == "MISSED":
                    text = next(new.text for new, old in zip(changed, original, strict=True) if new.text != old.text)
                    print(f"MISSED: {name} {arch}: {kind}: {text}", flush=True)
    return print_totals(totals, ("flagged", "equivalent", "other proof", "MISSED"), time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main())
