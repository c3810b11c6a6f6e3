"""C functions on the interpreter and on this machine: takes a seed, gives which kernels agree, and their opcodes."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from rota.errors import IsaError
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.run import run_kernel
from tests.isa.plain.c_functions import TYPES, CFunction, drawn_array, drawn_function

BATCH = 24
_HOST = (
    "-x", "c", "-O1", "-ffp-contract=off", "-Xclang", "-ffloat16-excess-precision=none",
    "-fno-strict-aliasing", "-shared", "-fPIC", "-w",
)  # fmt: skip
_ENCODING = re.compile(r"_(e32|e64|dpp|sdwa)$")


class CVerdict(NamedTuple):
    """What became of one kernel on one machine, and the opcodes that it executes."""

    function: CFunction
    arch: str
    outcome: str  # right, refused, or what is wrong
    opcodes: frozenset[str]


def host_compiler() -> str:
    """The clang that belongs to the toolchain; another C compiler knows neither _Float16 nor its options."""
    name = find_toolchain().compiler[0].replace("clang++", "clang")
    return name if shutil.which(name) else find_toolchain().compiler[0]


def compiled_here(functions: Sequence[CFunction], folder: Path) -> ctypes.CDLL:
    source = "".join(each.host() for each in functions)
    (folder / "host.c").write_text(source)
    command = (host_compiler(), *_HOST, "host.c", "-o", "host.so", "-lm")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "host.so"))


def judged_functions(seed: int, count: int, arch: str) -> Iterator[CVerdict]:
    """Draws so many functions and runs each both ways."""
    random = Random(seed)
    for start in range(0, count, BATCH):
        functions = [drawn_function(random, f"k{start + number}") for number in range(min(BATCH, count - start))]
        source = "#pragma clang fp contract(off)\n" + "".join(each.device() for each in functions)
        code = find_toolchain().compile(source, arch)
        with tempfile.TemporaryDirectory() as name:
            here = compiled_here(functions, Path(name))
            for each in functions:
                facts, instructions = code.kernel(each.name), code.instructions(each.name)
                opcodes = frozenset(_ENCODING.sub("", instruction.opcode) for instruction in instructions)
                arrays = [drawn_array(random, kind) for kind in each.sources]
                wanted = np.zeros(64, TYPES[each.result][1])
                getattr(here, each.name)(*(ctypes.c_void_p(array.ctypes.data) for array in (*arrays, wanted)))
                try:
                    program = load_program(facts, instructions)
                except IsaError as error:
                    yield CVerdict(each, arch, f"refused: {error.findings[0].message}", opcodes)
                    continue
                outcome = run_kernel(program, args=[*arrays, np.zeros_like(wanted)], block=(64, 1, 1))
                yield CVerdict(each, arch, _compared(outcome.buffers[3], wanted, each, outcome.findings), opcodes)


def _compared(found: np.ndarray, wanted: np.ndarray, function: CFunction, findings: Sequence[object]) -> str:
    if findings:
        return f"findings: {findings[0]}"
    bits = f"u{wanted.dtype.itemsize}"
    same = found.view(bits) == wanted.view(bits)
    if function.result[0] == "f":
        same |= np.isnan(found) & np.isnan(wanted)
    if same.all():
        return "right"
    lane = int(np.argmin(same))
    return f"lane {lane} is {found[lane]!r}, should be {wanted[lane]!r}"
