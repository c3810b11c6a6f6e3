"""Faults in whole attention kernels: takes them, compiles each, prints how it was found, by audit or by execution.

Run `python -m benchmarks.whole_attention_sabotage [--only TEXT] [--every N]` from the repository's root.  The exit
status is 1 if a fault was missed, or if the kernel without faults is found to have one.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rota.audit.audit import audit_attention
from rota.emit.attention.attention_kernel import emit_attention
from rota.errors import RotaError
from rota.isa.binary.toolchain import find_toolchain
from tests.campaigns.whole.attention_problems import AttentionProblem
from tests.campaigns.whole.whole_attention import attention_of, run_attention, schedule_of

NAME = "small"
PROBLEMS: tuple[AttentionProblem, ...] = (
    AttentionProblem(queries=67, keys=461, heads=4, kv_heads=2, gap=8, spiky=True, seed=1),
    AttentionProblem(queries=150, keys=289, heads=2, causal=True, shift=110, interleaved=True, orders=3, seed=2),
    AttentionProblem(queries=130, keys=40, batches=2, heads=3, causal=True, shift=-90, factor=6.0, seed=3),
    AttentionProblem(queries=5, keys=7, heads=3, kv_heads=3, batches=2, gap=24, interleaved=True, lse=False, seed=4),
)
"""Whole trips, rests and edges; rows that see nothing; heads, batches and rows at strides of their own."""


class AttentionFault(NamedTuple):
    """A part of the source, a pattern, and what takes its place; the first match, or that of a number."""

    part: str
    old: str
    new: str
    number: int = 0

    def damaged(self, source: str) -> str:
        """The source with the fault."""
        found = list(re.finditer(self.old, source))
        if not found:
            raise LookupError(self.old)
        match = found[self.number]
        return source[: match.start()] + match.expand(self.new) + source[match.end() :]


ATTENTION_FAULTS: tuple[AttentionFault, ...] = (
    AttentionFault("mask", r"\+ e < seen", "+ e <= seen"),
    AttentionFault("mask", r"sees < keys \? sees : keys;\n *sees -=", "keys;\n sees -="),
    AttentionFault("mask", r"causal \? own \+ shift \+ 1", "causal ? own + shift"),
    AttentionFault("mask", r"causal \? own \+ shift \+ 1", "causal ? own + 1"),
    AttentionFault("mask", r"causal \? own \+ shift \+ 1 : keys", "keys"),
    AttentionFault("mask", r"lane_group \* 4;\n *// From", "0;\n // From"),
    AttentionFault("mask", r": -__builtin_inff\(\);\n *most", ": 0;\n most"),
    AttentionFault("tiles", r"\(int\)first_sees / 32", "(int)last_sees / 32"),
    AttentionFault("tiles", r"\(\(int\)last_sees \+ 31\) / 32", "(int)last_sees / 32"),
    AttentionFault("tiles", r"\(\(int\)last_sees \+ 31\) / 32", "((int)first_sees + 31) / 32"),
    AttentionFault("tiles", r"queries - 1 : first_row \+ 63", "first_row : first_row"),
    AttentionFault("tiles", r"done = 4 \+ 4 \* trips", "done = 4 * trips"),
    AttentionFault("tiles", r"int tile = done", "int tile = done + 1"),
    AttentionFault("tiles", r"long long\)first_row \+ shift \+ 1", "long long)first_row + shift + 34"),
    AttentionFault("heads", r"head / \(heads / kv_heads\)", "head"),
    AttentionFault("heads", r"head / \(heads / kv_heads\)", "head % kv_heads"),
    AttentionFault("heads", r"kv_head \* v_head", "head * v_head"),
    AttentionFault("heads", r"batch \* k_batch", "head * k_batch"),
    AttentionFault("heads", r"batch \* o_batch", "batch * q_batch / 2"),
    AttentionFault("heads", r"id_z\(\), head = (\w+)_id_y", r"id_y(), head = \1_id_z"),
    AttentionFault("edges", r"\(last_row - first_row\) \* q_row_bytes", "(63) * q_row_bytes"),
    AttentionFault("edges", r"\(keys - 1\) \* k_row_bytes", "(keys) * k_row_bytes"),
    AttentionFault("edges", r"\(keys - 1\) \* v_row_bytes", "(keys) * v_row_bytes"),
    AttentionFault("edges", r"\(keys - 1\) \* k_row_bytes", "(keys - 2) * k_row_bytes"),
    AttentionFault("edges", r"if \(own < queries\)", "if (own <= queries)"),
    AttentionFault("edges", r"if \(own < queries\)", "if (own + 1 < queries)"),
    AttentionFault("edges", r"\(long long\)first_row \* q_row", "(long long)first_row * k_row"),
    AttentionFault("softmax", r"most == -__builtin_inff\(\) \? 0 : most", "most"),
    AttentionFault("softmax", r"total\[r\] \*= alpha;", ""),
    AttentionFault("softmax", r"output\[r\]\[h\] \*= alpha;", ";"),
    AttentionFault("softmax", r"best\[r\] = most;", ""),
    AttentionFault("softmax", r"permlane16_swap\(own_bits", "permlane32_swap(own_bits"),
    AttentionFault("softmax", r"const float base_two = scale \* 1.44\d+f", "const float base_two = scale"),
    AttentionFault("end", r"sum > 0 \? 1 / sum : 0", "1 / sum"),
    AttentionFault("end", r"sum > 0 \? sum_bits : -__builtin_inff\(\)", "0"),
    AttentionFault("end", r"0.69314718055994531f", "1.0f"),
    AttentionFault("end", r"best\[r\] \* base_two \+", ""),
    AttentionFault("end", r"L && lane_group == 0", "lane_group == 0"),
    AttentionFault("end", r"\(batch \* heads \+ head\) \* queries", "head * queries"),
    AttentionFault("end", r"\(batch \* heads \+ head\) \* queries", "(batch * kv_heads + head) * queries"),
    AttentionFault("end", r"total\[r\]\[0\] \+ total\[r\]\[1\]", "total[r][0]"),
    AttentionFault("end", r"output\[0\]\[1\] = o0_1_0_at\d", "output[0][1] = o0_0_0_at0"),
    AttentionFault("end", r"own \* o_row \+ lane_group \* 4", "own * o_row + lane_group"),
    AttentionFault("rest", r"ROTA_WAIT_VM\(0\) ROTA_MEET", "ROTA_MEET"),
    AttentionFault("rest", r"ROTA_WAIT_VM\(0\) ROTA_WAIT_LGKM\(0\) ROTA_MEET", ""),
    AttentionFault("rest", r"  ROTA_MEET\n  }\n", "  }\n"),
    AttentionFault("rest", r"v_fetch, tile \* v_tile", "v_fetch, done * v_tile"),
    AttentionFault("loop", r"ROTA_DMA\(k_global, 4096, k_fetch, 1 \* k_tile\)", "ROTA_DMA(k_global, 4096, k_fetch, 0)"),
    AttentionFault("loop", r"ROTA_DMA\(k_global, 4096", "ROTA_DMA(k_global, 8192"),
    AttentionFault("loop", r"ROTA_DMA\(v_global, 20480", "ROTA_DMA(k_global, 20480"),
    AttentionFault("loop", r"ROTA_WAIT_VM\((\d+)\)( +// #\d+ wait)", r"ROTA_WAIT_VM(\1 + 2)\2"),
    AttentionFault("loop", r"ROTA_BARRIER( +// #\d+ barrier)", r"\1"),
    AttentionFault("loop", r"ROTA_READ\(k1_0_at0, k_lane\[0\], 2048\)", "ROTA_READ(k1_0_at0, k_lane[0], 0)"),
    AttentionFault("loop", r"ROTA_READ\(k0_1_at0, k_lane\[1\]", "ROTA_READ(k0_1_at0, k_lane[0]"),
    AttentionFault("loop", r"ROTA_SCORE\((\w+), (\w+), q\[0\]\[0\]\)", r"ROTA_SCORE(\1, \2, q[0][1])"),
    AttentionFault("loop", r"ROTA_ROW_BEST\(b0_0_at0\)", ""),
    AttentionFault("loop", r"ROTA_ADDED\(l0_0_at(\d), s0_0_0_at(\d)\)", r"ROTA_ADDED(l0_0_at\1, s0_1_0_at\2)"),
    AttentionFault("loop", r"v_permlane16_swap_b32", "v_permlane32_swap_b32"),
    AttentionFault("loop", r"v_cvt_pk_bf16_f32 %0, %1, %2", "v_cvt_pk_bf16_f32 %0, %2, %1"),
    AttentionFault("loop", r"v_mul_f32 %0, %2, %1", "v_mul_f32 %0, %1, %1"),
    AttentionFault("loop", r"k_at \+= 4 \* k_tile", "k_at += 3 * k_tile"),
    AttentionFault("loop", r"ROTA_APART\(\d+\)\n", "", 0),
    AttentionFault("places", r"lane_row % 4 / 2\) \^ \(key & 7\)", "lane_row % 4 / 2) ^ (key & 3)"),
    AttentionFault("places", r"lane_group \* 4 \+ lane_row / 4", "lane_group * 4 + lane_row % 4"),
    AttentionFault("places", r"chunk = thread % 8 \^ \(row & 7\)", "chunk = thread % 8"),
    AttentionFault("places", r"\+ wave \* 1024", "+ wave * 512"),
)  # fmt: skip
"""Masks, numbers of tiles, heads, edges, softmax, the end, what is left by trips, the loop, and where things lie."""


def attention_found_by(fault: AttentionFault | None) -> str | None:
    """How a fault is found; None if it isn't."""
    compiled = schedule_of(NAME, quick=True)
    source = emit_attention(compiled)
    try:
        code = find_toolchain().compile(source if fault is None else fault.damaged(source), compiled.machine.arch)
        audit = audit_attention(compiled, code)
    except RotaError as error:
        return f"refused: {error.findings[0].code}"
    if not audit.exact:
        return f"audit: {audit.findings[0].code}"
    made = attention_of(NAME, compiled, code)
    for problem in PROBLEMS:
        if wrong := run_attention(made, problem):
            return f"execution: {wrong[0][:80]}"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Try them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="faults whose part or pattern contains this text")
    parser.add_argument("--every", type=int, default=1, help="each so-many-th fault alone")
    options = parser.parse_args(arguments)
    tally: Counter[str] = Counter()
    how = attention_found_by(None)
    tally["wrongly found"] += how is not None
    print(f"without a fault: {how or 'right'}", flush=True)
    chosen = [each for each in ATTENTION_FAULTS if options.only in f"{each.part}: {each.old}"][:: options.every]
    for fault in chosen:
        how = attention_found_by(fault)
        tally["missed" if how is None else how.split(":", maxsplit=1)[0]] += 1
        print(f"{fault.part}: {fault.old} -> {fault.new}: {how or 'MISSED'}", flush=True)
    print(f"{len(chosen)} faults: {dict(sorted(tally.items()))}")
    return 1 if tally["missed"] or tally["wrongly found"] else 0
