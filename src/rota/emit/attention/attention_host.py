"""The host's side of a whole attention forward: takes a schedule, gives a header that checks and launches.

Every precondition that the kernel rests on has a line in `NAME_check`, which says which one doesn't hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.attention.attention_kernel import ATTENTION_PARAMETERS, AttentionKernel, attention_name
from rota.emit.register_waits import with_register_waits
from rota.emit.text.names import identifier
from rota.emit.whole.whole_host import launch_opening
from rota.program.machine import LANES

_MOST_Y = 65535  # workgroups in the grid's second and third dimension
_MOST_ROWS = 1 << 30
_STARTS = {"heads": "1", "kv_heads": "1", "causal": "0", "shift": "0", "scale": "0"}


def emit_attention_launcher(compiled: CompiledSchedule) -> str:
    """The header."""
    planned = with_register_waits(compiled)
    kernel = AttentionKernel(planned)  # what can't be written has no launcher either
    return "\n".join([*_lines(identifier(attention_name(planned)), kernel), ""])


def _lines(name: str, kernel: AttentionKernel) -> Iterator[str]:
    yield f"// Launches {name}: O = softmax(scale Q K^T) V, and the log-sum-exp of each row."
    yield "#pragma once"
    yield "#include <hip/hip_runtime.h>"
    yield "#include <climits>"
    yield "#include <cmath>"
    yield "#include <cstdint>"
    yield ""
    parameters = ", ".join(f"{each.type} {each.name}" for each in ATTENTION_PARAMETERS)
    yield f'extern "C" __global__ void {name}({parameters});'
    yield ""
    yield "// What is to be computed.  Strides that are all 0 become those of batches x heads x rows without gaps;"
    yield "// a scale of 0 is one over the root of the head size."
    yield f"struct {name}_problem {{"
    for each in ATTENTION_PARAMETERS:
        start = _STARTS.get(each.name, "nullptr" if "*" in each.type else "0")
        yield f"  {each.type} {each.name} = {start};  // {each.what}"
    yield "  int batches = 1;"
    yield "};"
    yield ""
    yield from _tight(name, kernel)
    yield from _check(name, kernel)
    yield from _launch(name, kernel)


def _tight(name: str, kernel: AttentionKernel) -> Iterator[str]:
    head = kernel.shape.head
    yield "// The problem with strides and scale set."
    yield f"inline {name}_problem {name}_tight({name}_problem p) {{"
    for letter in "qkvo":
        rows, heads = ("queries", "heads") if letter in "qo" else ("keys", "kv_heads")
        yield f"  if (p.{letter}_row == 0 && p.{letter}_head == 0 && p.{letter}_batch == 0) {{"
        yield f"    p.{letter}_row = {head};"
        yield f"    p.{letter}_head = {head}LL * p.{rows};"
        yield f"    p.{letter}_batch = {head}LL * p.{rows} * p.{heads};"
        yield "  }"
    yield f"  if (p.scale == 0) p.scale = (float)(1 / std::sqrt({head}.0));"
    yield "  return p;"
    yield "}"
    yield ""


def _check(name: str, kernel: AttentionKernel) -> Iterator[str]:
    yield "// The first precondition that doesn't hold, in words; nullptr if all do.  Strides and scale are set."
    yield f"inline const char* {name}_check(const {name}_problem& p) {{"
    for condition, words in _conditions(kernel):
        yield f'  if (!({condition})) return "{words}";'
    yield "  return nullptr;"
    yield "}"
    yield ""


def _conditions(kernel: AttentionKernel) -> Iterator[tuple[str, str]]:
    """Conditions in the order in which later ones rest on earlier ones."""
    head = kernel.shape.head
    yield f"p.queries >= 1 && p.queries <= {_MOST_ROWS}", f"queries are 1 to {_MOST_ROWS}"
    yield f"p.keys >= 1 && p.keys <= {_MOST_ROWS}", f"keys are 1 to {_MOST_ROWS}"
    yield f"p.heads >= 1 && p.heads <= {_MOST_Y}", f"heads are 1 to {_MOST_Y}"
    yield f"p.batches >= 1 && p.batches <= {_MOST_Y}", f"batches are 1 to {_MOST_Y}"
    yield (
        "p.kv_heads >= 1 && p.heads % p.kv_heads == 0",
        "heads of Q are a multiple of those of K and V",
    )
    yield f"p.shift >= -{_MOST_ROWS} && p.shift <= {_MOST_ROWS}", f"shift is at most {_MOST_ROWS} either way"
    yield "std::isfinite(p.scale) && p.scale > 0", "scale is a number more than 0"
    for letter in "qkvo":
        rows, pointer = ("queries" if letter in "qo" else "keys"), letter.upper()
        yield f"p.{pointer} != nullptr", f"{pointer} is given"
        yield f"(std::uintptr_t)p.{pointer} % 16 == 0", f"{pointer} is aligned to 16 bytes"
        yield (
            f"p.{letter}_row % 8 == 0 && p.{letter}_head % 8 == 0 && p.{letter}_batch % 8 == 0",
            f"strides of {pointer} are multiples of 8 elements",
        )
        yield f"p.{letter}_row >= {head}", f"rows of {pointer} are at least {head} elements apart"
        yield (
            f"p.{letter}_row <= INT_MAX / 2 && (p.{rows} + {kernel.rows}LL) * p.{letter}_row * 2 <= INT_MAX",
            f"the rows of one head of {pointer} take less than 2 GiB",
        )
        for what in ("head", "batch"):
            yield (
                f"p.{letter}_{what} >= 0 && p.{letter}_{what} < (1LL << 44)",
                f"strides of {pointer} are at least 0, and less than 2^44",
            )
    yield "p.L == nullptr || (std::uintptr_t)p.L % 4 == 0", "L is aligned to its elements"


def _launch(name: str, kernel: AttentionKernel) -> Iterator[str]:
    threads = kernel.shape.waves * LANES
    yield from launch_opening(name)
    listed = ", ".join(f"(void*)&p.{each.name}" for each in ATTENTION_PARAMETERS)
    yield f"  void* arguments[] = {{{listed}}};"
    yield (
        f"  return hipLaunchKernel((const void*)&{name}, dim3((unsigned)((p.queries + {kernel.rows - 1}) / "
        f"{kernel.rows}), (unsigned)p.heads, (unsigned)p.batches), dim3({threads}), arguments, 0, stream);"
    )
    yield "}"
