"""The cycle model beside llvm-mca: takes the shipped loops, prints clocks per K-tile of one wave from both.

    python -m benchmarks.mca

llvm-mca knows one wave, no LDS bandwidth and no barriers, and counts in units of 4 clocks; it is wrong for f8f6f4 fp8
and not asked there.  So both get the same instructions of one wave with barriers left out, and the model gets LLVM's
own latencies (LDS 5 units, global memory 80).  The exit status is 1 if any pair differs by more than 10 %.

What it shows: issue turns, MFMA passes, and, in the rows "in a row" whose reads are waited for at once, waits.  The
scheduled loops hide such short latencies altogether, so that equal figures there say nothing about memory.  The passes
are LLVM's on both sides; the published peaks check those.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace

from rota import GFX942, GFX950, CompiledSchedule, Machine
from rota.compiled.proved import repaired
from rota.cycles.instructions import CODE, EDGE, ENTER, SCALAR, Code, ModelInstruction, Parameters, encode, nominal
from rota.cycles.model import Steady, run
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES, REGISTER_BYTES, GemmShape
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopSpec
from rota.targets.device import device_of, rates_of, timing_of
from rota.values.compile_loop import compile_loop, unroll_bare
from rota.values.op_times import least_copies, time_loop
from rota.values.unroll import Placement

MCA = "llvm-mca-22"
AGREEMENT = 0.10
_LDS_UNITS, _GLOBAL_UNITS = 5, 80
_FIRST_FREE, _LAST = 8, 255  # vector registers; the first few hold addresses
_ROUNDS = 12
_WAIT = "s_waitcnt"


def one_after_another(loop: LoopSpec, machine: Machine = GFX950) -> CompiledSchedule:
    """Loads an iteration ahead, then reads, then math, in a row: proved, and without the time that a search takes."""
    times = time_loop(loop, timing_of(machine)).timings
    starts, clock = [0] * len(loop.ops), 0
    loads = [number for number, op in enumerate(loop.ops) if op.kind is OpKind.DMA]
    rest = [number for number in range(len(loop.ops)) if number not in loads]
    for number in rest:
        starts[number] = clock
        clock += times[number].latency
    for number in rest:
        starts[number] += clock
    for place, number in enumerate(loads):
        starts[number] = place
    tiles = dict.fromkeys((value.name for value in loop.values if value.home is Home.LDS), 2)
    copies = {**least_copies(loop), **tiles}
    placement = Placement(interval=clock, starts=tuple(starts), copies=tuple(copies.items()))
    return repaired(unroll_bare(loop, placement, machine=machine))


def llvm_latencies(machine: Machine) -> Parameters:
    """LLVM's latencies, no cost for what llvm-mca does not see."""
    base = nominal(device_of(machine))
    return base.but(lds_latency=base.turn * _LDS_UNITS - base.turn, dma_latency=base.turn * _GLOBAL_UNITS, loop_edge=0)


def one_wave(code: Code) -> Code:
    """The loop as a single wave runs it, barriers left out."""
    alone = tuple(each for each in code.instructions[0] if each.kind != CODE[OpKind.BARRIER])
    return replace(code, roles=(0,), instructions=(alone,), barriers=())


def assembly(code: Code, shape: GemmShape) -> str:
    """One trip as text for the assembler."""
    kernel = code.instructions[0]
    start = next(n for n, each in enumerate(kernel) if each.kind == ENTER)
    end = next(n for n, each in enumerate(kernel) if each.kind == EDGE)
    width = shape.read_bytes // REGISTER_BYTES
    text = "\n".join(line for each in kernel[start + 1 : end] for line in _lines(each, code, shape, width)) + "\n"
    return text.replace(f")\n{_WAIT}", ")") if code.fused_waits else text


def _lines(each: ModelInstruction, code: Code, shape: GemmShape, width: int) -> Iterator[str]:
    if each.kind == CODE[OpKind.MMA]:
        # A deep or a wide read may bring more or less than one operand; the first and last registers tell apart enough.
        a, b = (_vector(register, width) for register in (each.needs[0][0], each.needs[-1][0]))
        accumulator = _accumulator(each, code, shape)
        yield f"{shape.instruction} {accumulator}, {a}, {b}, {accumulator}"
    elif each.kind == CODE[OpKind.LDS_READ]:
        yield f"ds_read_b{32 * width} {_vector(each.makes[0], width)}, v0"
    elif each.kind == CODE[OpKind.DMA]:
        yield f"buffer_load_dword{'x4' if shape.dma_bytes == 16 else ''} v1, s[0:3], 0 offen lds"
    elif each.kind == SCALAR:
        yield "s_mov_b32 m0, s4"
    elif each.kind == CODE[OpKind.WAIT]:
        yield f"{_WAIT} {code.counters[each.counter].name}({each.held})"


def _vector(register: int, width: int) -> str:
    places = (_LAST + 1 - _FIRST_FREE) // width
    first = _FIRST_FREE + width * (register % places)
    return f"v[{first}:{first + width - 1}]"


def _accumulator(each: ModelInstruction, code: Code, shape: GemmShape) -> str:
    entries = [entry for entry in code.entries if entry is not None and entry.effect.kind is OpKind.MMA]
    sums = list(dict.fromkeys(place for entry in entries for place in entry.effect.writes))
    entry = code.entries[each.key]
    if entry is None:
        raise AssertionError("an MFMA comes from an entry")
    size = shape.mma[0] * shape.mma[0] // 64
    first = sums.index(entry.effect.writes[0]) * size % 256
    return f"a[{first}:{first + size - 1}]"


def mca_clocks(text: str, machine: Machine) -> float:
    """Clocks per pass over the text, from the difference of two runs."""
    cycles = []
    for rounds in (_ROUNDS, 2 * _ROUNDS):
        command = [MCA, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={machine.arch}", f"-iterations={rounds}"]
        command += ["-instruction-info=0", "-resource-pressure=0"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
        if found is None:
            raise AssertionError(done.stdout)
        cycles.append(int(found.group(1)))
    return (cycles[1] - cycles[0]) / _ROUNDS * rates_of(machine).clocks_per_slot.value


def compare(compiled: CompiledSchedule, shape: GemmShape) -> tuple[float, float]:
    """Clocks per K-tile of one wave: llvm-mca's and the model's."""
    parameters = llvm_latencies(compiled.machine)
    code = one_wave(encode(compiled, parameters))
    ours = run(code, parameters, trips=24, until=Steady.ACCOUNTS).clocks_per_trip
    theirs = mca_clocks(assembly(code, shape), compiled.machine)
    return theirs / code.tiles_per_trip, ours / code.tiles_per_trip


def main() -> int:
    """Print the table."""
    print(f"{'loop, one wave of it':46} {'llvm-mca':>9} {'model':>9} {'ratio':>7}   clocks per K-tile")
    worst = 0.0
    shapes = [(shape, GFX950) for shape in GEMM_SHAPES] + [(shape, GFX942) for shape in MI300X_GEMM_SHAPES]
    for shape, machine in shapes:
        if "f8f6f4" in shape.instruction:
            print(f"{shape.name:46} {'-':>9} {'-':>9} {'-':>7}   llvm-mca is wrong for this instruction")
            continue
        loop = shape.loop(instructions=True)
        for order, compiled in (("", compile_loop(loop, machine)), (", in a row", one_after_another(loop, machine))):
            theirs, ours = compare(compiled, shape)
            worst = max(worst, abs(ours / theirs - 1))
            print(f"{shape.name + order:46} {theirs:9.0f} {ours:9.0f} {ours / theirs:7.3f}", flush=True)
    print(f"largest difference {worst:.1%}; allowed {AGREEMENT:.0%}")
    return 1 if worst > AGREEMENT else 0
