"""Commands as nobody would type them: takes a seed, gives a command line, often with a kernel file, and its status.

`python -m tests.cli.fuzz 5000` runs as many from seed 0 on and prints the lines that end in an internal error.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

from rota.cli.arguments import leaves
from rota.kernels.catalogue import shipped_kernels
from tests.cli.command import rota

INTERNAL = 3
_WORDS = ("0", "1", "2", "3", "-1", "7", "64", "1000000", "4611686018427387904", "0x10", "1e3", "nan", "inf", "true")
_MORE = ("false", "none", "", "x", "16x16", "16x32", "gfx942", "mi355x", "GREEDY", "csp", "strict", "as_written", "²")
_KERNELS = ("four_wave", "ping_pong", "single_buffer", "gemm_small", "attention")
_COMMANDS = ("check", "check", "check", "kernels", "show --listing", "emit --form json", "emit --form skeleton", "emit")
_COARSE = " --set instructions=false --set scheduler.time_limit=2"

_VALUES = ("None", "0", "-1", "1", "64", "2.5", "'x'", "''", "True", "[]", "{}", "object()", "float('nan')", "10**30")
_FILE = """
from dataclasses import dataclass
from typing import Any

from rota import *
from rota.kernels.gemm import GEMM_SHAPES

W = {waves}


class Odd:
    machine = {machine}

    def loop(self, instructions=False):
        return {loop}


class OddMethod(Odd):
    def machine(self):
        return {machine}


@dataclass
class OddFields:
    machine: Any = {machine}
    depth: int = {size}

    def loop(self, instructions: bool = False):
        return GEMM_SHAPES[2].loop(instructions=False)


def made(size: int = 64, waves=W):
    loop = Loop({name}, waves={waves})
    tile = loop.tile("A", size={size})
    loop.load(tile, instructions={count}, moved={moved})
    a = loop.fragment("a", tile, registers={registers}, instructions={count})
    c = loop.accumulator("c", registers=4)
    loop.mma(c, a, {operand}, instruction={instruction}, instructions={count})
    return loop.build()


class Stages(PipelineSchedule):
    def config(self):
        return {config}

    def build_body(self):
        return {body}

    def machine(self):
        return {machine}

    def lds_bytes(self):
        return {size}


value = {machine}
"""
_NAMES = ("Odd", "OddMethod", "OddFields", "made", "Stages", "value", "W", "missing")


def drawn_line(draw: random.Random) -> str:
    """A command with settings on a shipped kernel."""
    kernel = draw.choice(_KERNELS)
    names = [leaf.name for leaf in leaves(shipped_kernels()[kernel])] + ["x", "", "shape", "config"]
    settings = [f" --set {draw.choice(names)}={draw.choice(_WORDS + _MORE)}" for _ in range(draw.randint(1, 3))]
    coarse = _COARSE if kernel in ("gemm_small", "attention") else ""
    return f"{draw.choice(_COMMANDS)} {kernel}{coarse}{''.join(settings)}"


def drawn_file(draw: random.Random) -> str:
    """A file with kernels in which anything may stand anywhere."""

    def odd(*right: str) -> str:
        return draw.choice(right if draw.random() < 0.7 else _VALUES)

    return _FILE.format(
        waves=odd("4", "8", "1"),
        machine=odd("GFX950", "GFX942"),
        loop=odd("GEMM_SHAPES[2].loop(instructions=False)", "GEMM_SHAPES[2]", "Loop('l', waves=1).build()"),
        size=odd("8192", "64"),
        name=odd("'made'"),
        count=odd("1", "2"),
        moved=odd("8192", "64"),
        registers=odd("8", "1"),
        operand=odd("a", "'A'", "'c'"),
        instruction=odd("'v_mfma_f32_16x16x32_bf16'", "'v_mfma_f32_16x16x16_bf16'", "''"),
        config=odd(
            "PipelineConfig()", "PipelineConfig(m_mmas=1, n_mmas=1)", "PipelineConfig(depth=1, num_partitions=1)"
        ),
        body=odd("()", "(OpDesc.barrier(),)", "DeclarativeSchedule().build_body()"),
    )


def tried(seed: int, folder: Path) -> tuple[str, int, str]:
    """The line of a seed, its status, and what it told."""
    draw = random.Random(seed)
    line = drawn_line(draw)
    if draw.random() < 0.5:  # half of them
        (folder / f"drawn_{seed}.py").write_text(drawn_file(draw))
        line = f"{draw.choice(_COMMANDS)} {folder}/drawn_{seed}.py:{draw.choice(_NAMES)}"
    result = rota(line)
    return line, result.exit_code, result.output


def main(count: int) -> None:
    """So many from seed 0 on."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(count):
            line, status, told = tried(seed, Path(folder))
            if status >= INTERNAL:
                wrong += 1
                print(f"seed {seed}: {line}\n  {told.strip().splitlines()[-1]}")
    print(f"{count} commands, {wrong} internal errors")


if __name__ == "__main__":
    main(int(sys.argv[1]))
