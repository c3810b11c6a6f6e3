"""Drawn row kernels, proved: `python -m benchmarks.row_kernels [--count 200] [--seed 0] [--findings]`.

Sums, softmax, norms, scans, histograms and transposes in HIP: with loops in which each work item strides by the block
or all make as many rounds, trees and shuffles, one to sixteen waves, and a row for each workgroup.  Each kernel has a
wrong twin, in which a barrier is dropped, or a row of LDS belongs to two waves; with one wave there is no race, and the
twin accesses LDS out of bounds.  clang compiles both.

The interpreter launches both first, with shadow memory: the right one must be clean in every order, the wrong one must
not be, so that what is expected doesn't come from the proof.  Then both are proved, without replay.  A right kernel
that is neither proved nor left open, and a wrong one that is proved, is a wrong verdict.  The exit status is 1 if there
is one, or if the interpreter doesn't confirm what a kernel is.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from rota import load_kernel
from rota.errors import RotaError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.prove.kernel_proof import prove_object
from rota.prove.verdict import Budget, Status, Verdict

LANES, ARCH = 64, "gfx950"
OPEN = frozenset({Status.UNDECIDED, Status.INCONCLUSIVE})
_TOGETHER = 20  # kernels in one compilation, with their twins
_BUDGET = Budget()  # what a user has
_MOST_INSTRUCTIONS = 200_000  # of one wave: many times what any of these executes

PRELUDE = """
#define KERNEL extern "C" __attribute__((global))
#define SHARED static __attribute__((shared))
#define DEVICE static __attribute__((device)) inline __attribute__((always_inline))
#define SYNC __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); \\
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
DEVICE float larger(float a, float b) { return a > b ? a : b; }
DEVICE float sum(float a, float b) { return a + b; }
DEVICE float swap(float v, int m) {
  int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute((lane ^ m) << 2, __builtin_bit_cast(int, v)));
}
"""
_FRAME = """
KERNEL __attribute__((amdgpu_flat_work_group_size({block}, {block}))) void {name}(
    const float* x, float* y, int n) {{
  enum {{ T = {block}, W = {waves} }};
  SHARED {lds};
  int t = __builtin_amdgcn_workitem_id_x(), w = t >> 6, l = t & 63;
  long row = __builtin_amdgcn_workgroup_id_x();
  const float* in = x + row * n;
  float* out = y + row * n;
  {body}
}}
"""

# Loops over a row: each work item strides by the block, or all make as many rounds.
_LOOPS = {
    "strided": "for (int i = t; i < n; i += T) {{ {0} }}",
    "uniform": "for (int b = 0; b < n; b += T) {{ int i = b + t; if (i < n) {{ {0} }} }}",
}

# Reductions of `v` over the block.  `@` is where a barrier stands, `ROW(i)` an index of LDS that a wave writes.
_REDUCTIONS = {
    "tree": (
        "part[ROW(t)] = v; @ for (int s = {half}; s > 0; s >>= 1) {{"
        " if (t < s && t + s < T) part[t] = {op}(part[t], part[t + s]); @ }} v = part[0];"
    ),
    "shuffle": (
        "for (int m = 32; m; m >>= 1) v = {op}(v, swap(v, m)); if (l == 0) part[ROW(w)] = v; @"
        " v = part[0]; for (int i = 1; i < W; i++) v = {op}(v, part[i]);"
    ),
    "serial": (
        "part[ROW(t)] = v; @ if (t == 0) {{ for (int i = 1; i < T; i++) v = {op}(v, part[i]); part[0] = v; }} @"
        " v = part[0];"
    ),
}
FAMILIES = ("sum", "softmax", "rms norm", "layer norm", "scan", "histogram", "transpose")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKernel:
    """A drawn kernel: its text with `@` for each barrier, and what its twin has instead."""

    name: str
    family: str
    waves: int
    lds: str
    body: str
    fault: str  # barrier, row or bound
    place: int  # of the barrier that the twin drops

    def source(self, *, wrong: bool) -> str:
        """The kernel, or its twin."""
        fault = self.fault if wrong else ""
        row = 1 if "ROW(w)" in self.body or self.family == "transpose" else LANES
        size = self.bins if self.family == "histogram" else row
        index = {"row": f"((i) < {row} ? (i) : (i) - {row})", "bound": f"((i) + {size})"}.get(fault, "(i)")
        first, *rest = self.body.split("@")
        dropped = self.place % len(rest) if fault == "barrier" else -1
        body = first + "".join(("" if number == dropped else "SYNC") + part for number, part in enumerate(rest))
        text = _FRAME.format(name=self.title(wrong=wrong), block=self.block, waves=self.waves, lds=self.lds, body=body)
        return f"#undef ROW\n#define ROW(i) {index}\n{text}"

    @property
    def block(self) -> int:
        return LANES * self.waves

    @property
    def bins(self) -> int:
        return int(self.lds.partition("[")[2].rstrip("]"))

    def title(self, *, wrong: bool) -> str:
        return f"{self.name}_{'wrong' if wrong else 'right'}"


def draw(random: Random, number: int, waves: int = 0) -> RowKernel:
    """A kernel of a family, in turn, so that each has as many; of so many waves, or of any number up to sixteen."""
    family = FAMILIES[number % len(FAMILIES)]
    waves = waves or random.choice((1, 2, 2, 3, 4, 4, 4, 5, 8, 8, 12, 16))
    how, loop = random.choice(tuple(_REDUCTIONS)), random.choice(tuple(_LOOPS.values()))
    half = 1 << max((LANES * waves - 1).bit_length() - 1, 0)
    lds = f"float part[{'W' if how == 'shuffle' else 'T'}]"

    def reduce_by(op: str) -> str:
        return _REDUCTIONS[how].format(op=op, half=half)

    def sum_of(term: str) -> str:
        return "v = 0; " + loop.format(f"v += {term};") + reduce_by("sum")

    if family == "sum":
        body = "float v; " + sum_of("in[i]") + " if (l == 0) out[w] = v; %"
    elif family == "softmax":
        body = "float v = -3e38f; " + loop.format("v = larger(v, in[i]);") + reduce_by("larger") + " float m = v; @ "
        body += sum_of("__builtin_amdgcn_exp2f(in[i] - m)") + " % "
        body += loop.format("out[i] = __builtin_amdgcn_exp2f(in[i] - m) / v;")
    elif family == "rms norm":
        body = "float v; " + sum_of("in[i] * in[i]") + " % " + loop.format("out[i] = in[i] / (v + 1e-6f);")
    elif family == "layer norm":
        body = "float v; " + sum_of("in[i]") + " float m = v / n; @ " + sum_of("(in[i] - m) * (in[i] - m)") + " % "
        body += loop.format("out[i] = (in[i] - m) / (v + 1e-6f);")
    elif family == "scan":
        lds = "float part[T]"
        body = (
            "float carry = 0; for (int b = 0; b < n; b += T) { float v = b + t < n ? in[b + t] : 0; part[ROW(t)] = v; @"
            " for (int o = 1; o < T; o <<= 1) { float a = t >= o ? part[t - o] : 0; @ part[t] += a; @ }"
            " if (b + t < n) out[b + t] = carry + part[t]; carry += part[T - 1]; @ }"
        )
    elif family == "histogram":
        bins = random.choice((128, 256))
        lds = f"int h[{bins}]"
        count = f"__atomic_fetch_add(&h[((const int*)in)[i] & {bins - 1}], 1, __ATOMIC_RELAXED);"
        body = f"for (int i = t; i < {bins}; i += T) h[ROW(i)] = 0; @ " + loop.format(count)
        body += f" @ for (int i = t; i < {bins}; i += T) out[i] = h[i]; %"
    else:
        lds = "float part[64][65]"
        body = (
            "for (int b = 0; b < n; b += 64) { for (int i = w; i < 64; i += W) part[ROW(i)][l] = in[b + i + l]; @"
            " for (int i = w; i < 64; i += W) (y + row * n * 64)[(b + i) * 64 + l] = part[l][i]; @ }"
        )
    body = body.replace("%", random.choice(("SYNC", "")))  # after the last use of LDS nobody needs a barrier
    faults: tuple[str, ...] = ("barrier", "barrier", "row")
    if family == "histogram":
        faults = ("barrier",)  # what two waves clear twice is 0 in any order
    if waves == 1:
        faults = ("bound",)
    return RowKernel(
        name=f"k{number}", family=family, waves=waves, lds=lds, body=body, fault=random.choice(faults),
        place=random.randrange(64),
    )  # fmt: skip


def compile_together(kernels: Sequence[RowKernel]) -> CodeObject:
    texts = (each.source(wrong=wrong) for each in kernels for wrong in (False, True))
    return find_toolchain().compile(PRELUDE + "".join(texts), ARCH)


def launch(code: CodeObject, kernel: RowKernel, *, wrong: bool, orders: int = 2) -> tuple[str, ...]:
    """The codes that the interpreter finds, with rows in which waves make different numbers of rounds."""
    n = 2 * LANES if kernel.family == "transpose" else kernel.block + 37
    random = np.random.default_rng(kernel.place)
    x = random.standard_normal(n + 4 * LANES, np.float32)
    if kernel.family == "histogram":
        x = random.integers(0, kernel.bins, len(x), np.int32).view(np.float32)
    y = np.zeros(n * LANES + kernel.block, np.float32)
    loaded = load_kernel(code.hsaco, kernel.title(wrong=wrong))
    try:
        result = loaded.launch(
            x, y, n, block=kernel.block, orders=orders, check=False, processes=1, most_instructions=_MOST_INSTRUCTIONS
        )
    except RotaError as error:
        return tuple(sorted({finding.code for finding in error.findings}))
    return tuple(sorted({finding.code for finding in result.findings}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the interpreter found in a kernel or its twin, and what the proof says."""

    kernel: RowKernel
    wrong: bool
    found: tuple[str, ...]
    verdict: Verdict

    @property
    def confirmed(self) -> bool:
        """True if the kernel is what it was drawn to be."""
        wanted = {"bound": "I105"}.get(self.kernel.fault, "I109")
        return wanted in self.found if self.wrong else not self.found

    @property
    def kind(self) -> str:
        """`right`, `open` or `WRONG`."""
        if self.verdict.status in OPEN:
            return "open"
        return "right" if self.verdict.proved != self.wrong else "WRONG"

    def __str__(self) -> str:
        took = self.verdict.statistics
        codes = " ".join(sorted({finding.code for finding in self.verdict.findings}))
        return (
            f"{self.kernel.title(wrong=self.wrong):12} {self.kernel.family:11} {self.kernel.waves:2} waves"
            f" {self.kernel.fault:8}{self.kind:6} {self.verdict.status.value:12} {took.states:6} states"
            f" {took.seconds:6.2f} s  {codes or '-'}; launched: {' '.join(self.found) or '-'}"
        )


def judge(kernels: Sequence[RowKernel], *, launched: bool = True) -> Iterator[Outcome]:
    for first in range(0, len(kernels), _TOGETHER):
        some = kernels[first : first + _TOGETHER]
        code = compile_together(some)
        for kernel in some:
            for wrong in (False, True):
                found = launch(code, kernel, wrong=wrong) if launched else ()
                title = kernel.title(wrong=wrong)
                (verdict,) = prove_object(code, title, block=kernel.block, budget=_BUDGET, witness=False)
                yield Outcome(kernel=kernel, wrong=wrong, found=found, verdict=verdict)


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield f"| {'family':11} | {'proved':>6} | {'alarmed':>7} | {'open':>5} | {'wrong verdicts':>14} | {'seconds':>7} |"
    yield "|---|---:|---:|---:|---:|---:|"
    for family in (*FAMILIES, "all"):
        mine = [each for each in outcomes if family in {each.kernel.family, "all"}]
        kinds = Counter((each.kind, each.wrong) for each in mine)
        open_, bad = (kinds[kind, False] + kinds[kind, True] for kind in ("open", "WRONG"))
        seconds = sum(each.verdict.statistics.seconds for each in mine)
        right = f"{kinds['right', False]:6} | {kinds['right', True]:7}"
        yield f"| {family:11} | {right} | {open_:5} | {bad:14} | {seconds:7.1f} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--findings", action="store_true", help="print a line for each kernel")
    options = parser.parse_args(arguments)
    random, started = Random(options.seed), time.monotonic()
    outcomes = []
    for outcome in judge([draw(random, number) for number in range(options.count)]):
        outcomes.append(outcome)
        if options.findings or outcome.kind != "right" or not outcome.confirmed:
            print(outcome, "" if outcome.confirmed else "NOT CONFIRMED", flush=True)
    print(*table(outcomes), sep="\n")
    bad = sum(each.kind == "WRONG" for each in outcomes)
    strange = sum(not each.confirmed for each in outcomes)
    left = sum(each.kind == "open" for each in outcomes)
    print(
        f"{len(outcomes)} row kernels, {bad} wrong verdicts, {left} open, {strange} not confirmed by the interpreter;"
        f" {time.monotonic() - started:.0f} s"
    )
    return 1 if bad or strange else 0
