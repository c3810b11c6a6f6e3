"""Instruction traces in rocprofv3's formats: takes instructions, gives files.  Made by us, not measured."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

HEADER = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"
HITS = 100


def made_csv(path: Path, loop: Sequence[str], clocks: Sequence[int] = ()) -> Path:
    """A kernel of a start, a loop and an end; each instruction of the loop takes its clocks, or 4."""
    with path.open("w", newline="") as file:
        write = csv.writer(file)
        write.writerow(["CodeObj", "Vaddr", "Instruction", "Hitcount", "Latency", "Stall", "Idle", "Source"])
        write.writerow([1, 0, "; mine", 0, 0, 0, 0, "mine()"])
        write.writerow([1, 0, "s_load_dwordx4 s[0:3], s[0:1], 0x0", 1, 40, 0, 0, ""])
        for number, text in enumerate(loop):
            each = clocks[number] if clocks else 4
            write.writerow([1, 16 + 8 * number, text, HITS, (each - 1) * HITS, 0, HITS, ""])
        write.writerow([1, 1 << 20, "s_endpgm", 1, 4, 0, 0, ""])
    return path


def made_json(path: Path, loop: Sequence[str], clocks: Sequence[int]) -> Path:
    """The same loop as the viewer's file."""
    rows = [["; mine", 0, 0, "mine()", 1, 0, 0, 0, 0, 0]]
    rows += [
        [text, 0, number, "", 1, 16 + 8 * number, HITS, each * HITS, 0, 0]
        for number, (text, each) in enumerate(zip(loop, clocks, strict=True))
    ]
    path.write_text(json.dumps({"code": rows, "header": HEADER, "version": "3.0.0"}))
    return path
