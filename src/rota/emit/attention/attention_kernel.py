"""A whole attention forward in HIP, for any numbers of queries and keys, and its launcher.

The loop is the schedule's, over tiles of keys that every row of the workgroup sees. Around it: Q, edges by the bounds
of buffer resources, masked tiles at the end of the keys or across the diagonal, and O with its log-sum-exp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.attention.attention_ops import (
    BLOCK,
    DEPTH,
    DMA,
    ELEMENT_BYTES,
    INSTRUCTION,
    SIDE,
    AttentionOps,
    AttentionStatement,
    ForwardShape,
    Maker,
    copies_of,
    forward_shape,
    name_registers,
)
from rota.emit.emission import unfit, with_register_waits
from rota.emit.gemm.gemm_words import asm_resource, builtin_resource, macros
from rota.emit.gemm.hip_gemm import result_states
from rota.emit.gemm.program_form import LoopForm, form_of
from rota.emit.text import (
    FIRST_MARK,
    LAST_MARK,
    apart_text,
    apart_words,
    check_words,
    comment,
    contract,
    identifier,
    sync_reason,
    sync_reasons,
    sync_text,
    sync_words,
)
from rota.emit.whole.whole_host import launch_opening
from rota.emit.whole.whole_options import Parameter
from rota.program.entry import Entry, Place, Space
from rota.program.kinds import PATHS, Phase
from rota.program.machine import LANES
from rota.targets.architecture import Architecture, architecture_of

# The words of an attention kernel.
#
# A vector or matrix instruction is opaque to the compiler: it neither moves it nor adds to it. Registers that only
# matrix instructions read, those of Q and K, are accumulation registers, of which there are as many again.


def attention_words() -> Iterator[str]:
    """Macros, which use the types below and the kernel's `lds_wave`, `scale_bits`, `minus_scale` and `scales`."""
    yield "#define ROTA_LDS __attribute__((address_space(3)))"
    yield from sync_words()
    yield (
        '#define ROTA_MEET __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier(); '
        '__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); ROTA_FENCE'
    )
    yield (
        '#define ROTA_MARK(n) { u32 m0; asm volatile("s_mov_b32 m0, %1" : "={m0}"(m0) : "i"(n) : "memory"); } '
        "ROTA_FENCE  // where the schedule begins and ends, for whoever reads the machine code"
    )
    yield (
        "#define ROTA_DMA(rsrc, lds, lane_offset, offset) "
        '{ u32 m0; asm volatile("s_add_u32 m0, %1, %2\\n\\ts_nop 0\\n\\t'
        f'{DMA} %3, %4, %5 offen lds" : "=&{{m0}}"(m0) '
        ': "s"(lds_wave), "i"(lds), "v"(lane_offset), "s"(rsrc), "s"(offset) : "memory", "scc"); } ROTA_FENCE'
    )
    yield from apart_words()
    yield "#define ROTA_READ(target, lane, lds) target = *(ROTA_LDS const factor*)((lane) + (lds)); ROTA_FENCE"
    yield (
        "#define ROTA_HALF(lane, lds) "
        "__builtin_bit_cast(half, __builtin_amdgcn_ds_read_tr16_b64_v4i16((ROTA_LDS shorts*)((lane) + (lds))))"
    )
    yield (
        "#define ROTA_READ_TRANSPOSED(target, lane, lds, next) { const half first = ROTA_HALF(lane, lds); ROTA_FENCE "
        "const half second = ROTA_HALF(lane, next); ROTA_FENCE "
        "target = __builtin_shufflevector(first, second, 0, 1, 2, 3); }"
    )
    for name, total, kept, word in (
        ("ROTA_SCORE", "0", '"=v"', "a"),
        ("ROTA_SCORE_ADD", "%0", '"+v"', "a"),
        ("ROTA_OUTPUT", "%0", '"+v"', "v"),
    ):
        yield (
            f'#define {name}(sum, left, right) asm volatile("{INSTRUCTION} %0, %1, %2, {total}" : {kept}(sum) : '
            f'"{word}"(left), "{word}"(right)); ROTA_FENCE'
        )
    yield from _softmax_words()


def _softmax_words() -> Iterator[str]:
    four = ", ".join(f'"v"(x[{number}])' for number in range(4))
    yield (
        '#define ROTA_BEST(m, x) asm volatile("v_max3_f32 %0, %0, %1, %2\\n\\tv_max3_f32 %0, %0, %3, %4" : "+v"(m) : '
        f"{four}); ROTA_FENCE"
    )
    yield (
        '#define ROTA_BEST_FROM(m, old, x) asm volatile("v_max3_f32 %0, %1, %2, %3\\n\\tv_max3_f32 %0, %0, %4, %5" : '
        f'"=&v"(m) : "v"(old), {four}); ROTA_FENCE'
    )
    swapped = "\\n\\t".join(
        f"v_mov_b32 %1, %0\\n\\ts_nop 1\\n\\tv_permlane{lanes}_swap_b32 %0, %1\\n\\tv_max_f32 %0, %0, %1"
        for lanes in (32, 16)
    )
    yield f'#define ROTA_ROW_BEST(m) {{ float t; asm volatile("{swapped}" : "+v"(m), "=&v"(t)); }} ROTA_FENCE'
    yield "#define ROTA_FIRST(x) __builtin_shufflevector((single)(x), (single)(x), 0, -1)  // the other is never read"
    yield (
        '#define ROTA_SHIFT(n, m) { float x; asm volatile("v_mul_f32 %0, %2, %1" : "=v"(x) : "v"(m), '
        '"s"(minus_scale)); n = ROTA_FIRST(x); } ROTA_FENCE'
    )
    yield (
        '#define ROTA_GROWN(g, old, n) { float x; asm volatile("v_fma_f32 %0, %1, %2, %3" : "=v"(x) : "v"(old), '
        '"s"(scale_bits), "v"((n)[0])); g = ROTA_FIRST(x); } ROTA_FENCE'
    )
    yield (
        '#define ROTA_ALPHA(g) { float x = (g)[0]; asm volatile("v_exp_f32 %0, %0" : "+v"(x)); g = ROTA_FIRST(x); } '
        "ROTA_FENCE"
    )
    # One statement for each instruction: of several results at once the compiler would copy some.
    for word, opcode, extra, operands in (
        ("ROTA_LESS", "v_pk_fma_f32 %0, %0, %1, %2 op_sel_hi:[1,0,0]", "n", '"s"(scales), "v"(n)'),
        ("ROTA_SCALED", "v_pk_mul_f32 %0, %0, %1 op_sel_hi:[1,0]", "alpha", '"v"(alpha)'),
        ("ROTA_ADDED", "v_pk_add_f32 %0, %0, %1", "more", '"v"((more).half)'),
    ):
        yield (
            f'#define {word}_HALF(x, {extra}, half) {{ pair w = (x).half; asm volatile("{opcode}" : "+v"(w) : '
            f"{operands}); (x).half = w; }} ROTA_FENCE"
        )
        yield f"#define {word}(x, {extra}) {word}_HALF(x, {extra}, xy) {word}_HALF(x, {extra}, zw)"
    yield (
        "#define ROTA_SCALED_FROM_HALF(x, old, alpha, half) { pair w; "
        'asm volatile("v_pk_mul_f32 %0, %1, %2 op_sel_hi:[1,0]" : "=v"(w) : "v"((old).half), "v"(alpha)); '
        "(x).half = w; } ROTA_FENCE"
    )
    yield (
        "#define ROTA_SCALED_FROM(x, old, alpha) ROTA_SCALED_FROM_HALF(x, old, alpha, xy) "
        "ROTA_SCALED_FROM_HALF(x, old, alpha, zw)"
    )
    yield (
        '#define ROTA_WEIGHT(x, e) { float w = (x)[e]; asm volatile("v_exp_f32 %0, %0" : "+v"(w)); (x)[e] = w; } '
        "ROTA_FENCE"
    )
    yield "#define ROTA_WEIGHTS(x) ROTA_WEIGHT(x, 0) ROTA_WEIGHT(x, 1) ROTA_WEIGHT(x, 2) ROTA_WEIGHT(x, 3)"
    yield (
        '#define ROTA_ROUNDED(p, e, x, y) { u32 w; asm volatile("v_cvt_pk_bf16_f32 %0, %1, %2" : "=v"(w) : "v"(x), '
        '"v"(y)); (p)[e] = w; } ROTA_FENCE'
    )
    rounded = " ".join(
        f"ROTA_ROUNDED(p, {2 * half + number}, ({name})[{2 * number}], ({name})[{2 * number + 1}])"
        for half, name in enumerate("xy")
        for number in (0, 1)
    )
    yield f"#define ROTA_PACKED(p, x, y) {rounded}"


def attention_types() -> Iterator[str]:
    """Types, local to a kernel."""
    yield "typedef unsigned int u32;"
    yield "typedef unsigned long long u64;"
    yield "typedef u32 resource __attribute__((ext_vector_type(4)));"
    yield "typedef u32 factor __attribute__((ext_vector_type(4)));"
    yield "typedef u32 half __attribute__((ext_vector_type(2)));"
    yield "typedef short shorts __attribute__((ext_vector_type(4)));"
    yield "typedef __bf16 elements __attribute__((ext_vector_type(8)));"
    yield "typedef __bf16 stored __attribute__((ext_vector_type(4)));"
    yield "typedef float part __attribute__((ext_vector_type(4)));"
    yield "typedef float pair __attribute__((ext_vector_type(2)));"
    yield "typedef float single __attribute__((ext_vector_type(1)));"


# Wait states of attention's loop.
#
# The compiler doesn't look into inline assembly. What is between two statements counts as one state an instruction,
# waits and barriers as none: the compiler may join them.

_VECTOR = (Maker.TRANSCENDENTAL, Maker.PACKED, Maker.VECTOR)


class _Made(NamedTuple):
    maker: Maker
    at: int


def wait_states(
    phases: Mapping[Phase, Sequence[AttentionStatement | None]], architecture: Architecture
) -> dict[tuple[Phase, int], int]:
    """Wait states before each entry, by phase; the most that any path there requires."""
    due: dict[tuple[Phase, int], int] = {}
    for path in PATHS:
        made: dict[Place, _Made] = {}
        now = 0
        for phase in path:
            for place, each in enumerate(phases[phase]):
                if each is None:
                    continue
                missing = max((_due(made, name, each, architecture) - now for name in _list_places(each)), default=0)
                due[phase, place] = max(due.get((phase, place), 0), missing, 0)
                now += due[phase, place] + len(each.opcodes)
                made.update({name: _Made(each.maker, now) for name in each.writes})
    return {where: states for where, states in due.items() if states}


def _list_places(each: AttentionStatement) -> tuple[Place, ...]:
    return (*each.reads, *each.writes)


def _due(made: Mapping[Place, _Made], place: Place, then: AttentionStatement, architecture: Architecture) -> int:
    """When `then` may be issued, as far as one place is concerned."""
    if place not in made:
        return 0
    first, at = made[place]
    hazards = architecture.hazards
    if first is Maker.MATRIX and then.maker is not Maker.MATRIX:
        return at + result_states(architecture, INSTRUCTION)
    if first in _VECTOR and then.maker is Maker.MATRIX:
        return at + hazards.operand.value
    if first is Maker.TRANSCENDENTAL and then.maker in (Maker.PACKED, Maker.VECTOR):
        return at + hazards.transcendental.value
    if first is Maker.PACKED and then.maker in _VECTOR:
        return at + hazards.packed.value
    return 0


# What stands behind attention's loop.
#
# These are written in plain source, which the compiler schedules: it sees its own instructions, and their wait
# states.

_UNROLL = '_Pragma("unroll")'
_ACROSS = (32, 16)  # lanes of one row are this many apart


def rest_tile_lines(shape: ForwardShape, v_start: int) -> Iterator[str]:
    """Tiles of which some rows don't see some keys, one at a time: loaded, awaited, masked and summed."""
    yield "// What whole trips leave: tiles at the end of the keys or across the diagonal, loaded, awaited and masked."
    yield "ROTA_WAIT_VM(0) ROTA_WAIT_LGKM(0) ROTA_MEET"
    yield "#pragma clang loop unroll(disable)"
    yield "for (int tile = done; tile < tiles; ++tile) {"
    for name, start in (("k", 0), ("v", v_start)):
        for number in shape.loads:
            lds = start + number * shape.dma_rows * shape.row_bytes
            yield f"  ROTA_DMA({name}_global, {lds}, {name}_fetch, tile * {name}_tile + {number} * {name}_dma)"
    yield "  ROTA_WAIT_VM(0) ROTA_MEET"
    yield f"  {_UNROLL}"
    yield f"  for (int r = 0; r < {len(shape.row_blocks)}; ++r) {{"
    yield from (f"    {line}" for line in _row_lines(shape))
    yield "  }"
    yield "  ROTA_MEET"
    yield "}"


def _row_lines(shape: ForwardShape) -> Iterator[str]:
    keys, steps = len(shape.key_blocks), len(shape.head_steps)
    yield f"const long long own = (long long)wave_row + r * {SIDE} + lane_row;"
    yield "long long sees = causal ? own + shift + 1 : keys;"
    yield "sees = sees < keys ? sees : keys;"
    yield f"sees -= (long long)tile * {shape.keys} + lane_group * 4;"
    yield "// From this lane's first key on:"
    yield f"const int seen = sees < 0 ? 0 : sees < {shape.keys} ? (int)sees : {shape.keys};"
    yield f"part scores[{keys}];"
    yield "float most = best[r];"
    yield _UNROLL
    yield f"for (int c = 0; c < {keys}; ++c) {{"
    yield "  scores[c] = 0;"
    yield f"  {_UNROLL}"
    yield f"  for (int j = 0; j < {steps}; ++j) {{"
    yield f"    const factor k = *(ROTA_LDS const factor*)(k_lane[j] + c * {SIDE * shape.row_bytes});"
    yield (
        "    scores[c] = __builtin_amdgcn_mfma_f32_16x16x32_bf16(__builtin_bit_cast(elements, k), "
        "__builtin_bit_cast(elements, q[r][j]), scores[c], 0, 0, 0);"
    )
    yield "  }"
    yield f"  {_UNROLL}"
    yield "  for (int e = 0; e < 4; ++e) {"
    yield f"    scores[c][e] = c * {SIDE} + e < seen ? scores[c][e] : -__builtin_inff();"
    yield "    most = __builtin_fmaxf(most, scores[c][e]);"
    yield "  }"
    yield "  ROTA_FENCE"
    yield "}"
    yield from _across("most", "__builtin_fmaxf({0}, {1})")
    yield from _weight_lines(shape)


def _weight_lines(shape: ForwardShape) -> Iterator[str]:
    """From masked scores and the best of them, `most`, to the output."""
    keys = len(shape.key_blocks)
    yield "const float level = most == -__builtin_inff() ? 0 : most;  // a row that sees nothing yet"
    yield "const float alpha = __builtin_amdgcn_exp2f((best[r] - level) * base_two);"
    yield "best[r] = most;"
    yield "total[r] *= alpha;"
    yield _UNROLL
    yield f"for (int c = 0; c < {keys}; ++c) {{"
    yield f"  {_UNROLL}"
    yield "  for (int e = 0; e < 4; ++e) scores[c][e] = __builtin_amdgcn_exp2f((scores[c][e] - level) * base_two);"
    yield "  total[r] += scores[c];"
    yield "}"
    yield _UNROLL
    yield f"for (int h = 0; h < {len(shape.head_blocks)}; ++h) output[r][h] *= alpha;"
    yield _UNROLL
    yield f"for (int t = 0; t < {len(shape.key_steps)}; ++t) {{"
    yield "  elements weights;"
    yield f"  {_UNROLL}"
    yield "  for (int e = 0; e < 8; ++e) weights[e] = (__bf16)scores[2 * t + e / 4][e % 4];"
    yield f"  {_UNROLL}"
    yield f"  for (int h = 0; h < {len(shape.head_blocks)}; ++h) {{"
    first = f"t * {DEPTH * shape.row_bytes}"
    yield f"    const half low = ROTA_HALF(v_lane[h], {first});"
    yield f"    const half high = ROTA_HALF(v_lane[h], {first} + {SIDE * shape.row_bytes});"
    yield "    const factor v = __builtin_shufflevector(low, high, 0, 1, 2, 3);"
    yield (
        "    output[r][h] = __builtin_amdgcn_mfma_f32_16x16x32_bf16(__builtin_bit_cast(elements, v), weights, "
        "output[r][h], 0, 0, 0);"
    )
    yield "  }"
    yield "}"


def _across(name: str, joined: str) -> Iterator[str]:
    """One value for the four lanes of a row."""
    for lanes in _ACROSS:
        yield "{"
        yield f"  const u32 own_bits = __builtin_bit_cast(u32, {name});"
        yield f"  const auto both = __builtin_amdgcn_permlane{lanes}_swap(own_bits, own_bits, false, false);"
        values = [f"__builtin_bit_cast(float, (u32)both[{number}])" for number in (0, 1)]
        yield f"  {name} = {joined.format(*values)};"
        yield "}"


def end_lines(shape: ForwardShape) -> Iterator[str]:
    """O, and the log-sum-exp of each row."""
    yield _UNROLL
    yield f"for (int r = 0; r < {len(shape.row_blocks)}; ++r) {{"
    yield "  float sum = total[r][0] + total[r][1] + (total[r][2] + total[r][3]);"
    yield from (f"  {line}" for line in _across("sum", "{0} + {1}"))
    yield f"  const long long own = (long long)wave_row + r * {SIDE} + lane_row;"
    yield "  if (own < queries) {"
    yield "    const float factor_of_row = sum > 0 ? 1 / sum : 0;"
    yield "    __bf16* const to = (__bf16*)O + batch * o_batch + head * o_head + own * o_row + lane_group * 4;"
    yield f"    {_UNROLL}"
    yield f"    for (int h = 0; h < {len(shape.head_blocks)}; ++h) {{"
    yield "      stored values;"
    yield f"      {_UNROLL}"
    yield "      for (int e = 0; e < 4; ++e) values[e] = (__bf16)(output[r][h][e] * factor_of_row);"
    yield f"      *(stored*)(to + h * {SIDE}) = values;"
    yield "    }"
    yield "    if (L && lane_group == 0) {"
    yield (
        "      const float sum_bits = (best[r] * base_two + __builtin_amdgcn_logf(sum)) * 0.69314718055994531f;"
        "  // of two to natural"
    )
    yield "      L[(batch * heads + head) * queries + own] = sum > 0 ? sum_bits : -__builtin_inff();"
    yield "    }"
    yield "  }"
    yield "}"


_FAR_APART = 100


ATTENTION_PARAMETERS: tuple[Parameter, ...] = (
    Parameter("const void*", "Q", "queries x head, bf16"),
    Parameter("const void*", "K", "keys x head"),
    Parameter("const void*", "V", "keys x head"),
    Parameter("void*", "O", "queries x head"),
    Parameter("float*", "L", "log-sum-exp of each row, batches x heads x queries, or null"),
    *(
        Parameter("long long", f"{name}_{what}", f"elements from {one} of {name.upper()} to the next")
        for name in "qkvo"
        for what, one in (("row", "a row"), ("head", "a head"), ("batch", "a batch"))
    ),
    Parameter("int", "queries", "rows of Q"),
    Parameter("int", "keys", "rows of K and V"),
    Parameter("int", "heads", "of Q"),
    Parameter("int", "kv_heads", "of K and V, of which `heads` is a multiple"),
    Parameter("int", "causal", "not 0: a query sees the keys up to its own number plus `shift`"),
    Parameter("int", "shift", "keys minus queries, to let the last query see all keys; or 0"),
    Parameter("float", "scale", "factor of the scores, more than 0"),
)
"""Of every attention kernel."""


def emit_attention(compiled: CompiledSchedule) -> str:
    check_words(compiled.lowered)
    planned = with_register_waits(compiled)
    kernel = AttentionKernel(planned)
    words = list(attention_words())
    name = identifier(attention_name(planned), macros(words))
    machine = planned.lowered.machine
    lines = [comment(f"O = softmax(scale Q K^T) V on {machine.name} ({machine.arch})."), *words, ""]
    return "\n".join([*lines, *kernel.lines(name), "", *(f"#undef {macro}" for macro in macros(words)), ""])


def attention_name(planned: CompiledSchedule) -> str:
    """What the kernel is called."""
    return form_of(planned.lowered).symbol


def shape_of(compiled: CompiledSchedule) -> ForwardShape | None:
    """What attention a schedule computes, if any."""
    form = form_of(compiled.lowered)
    return forward_shape(form.loop) if isinstance(form, LoopForm) else None


def attention_shape(compiled: CompiledSchedule) -> ForwardShape:
    """What the schedule computes; T203 if that isn't attention as it can be written."""
    shape = shape_of(compiled)
    if shape is None:
        raise unfit(
            f"{compiled.name} isn't the loop of an attention forward as a ForwardShape declares it",
            fixes=("rota.kernels.attention has shapes whose loops can be written",),
        )
    return shape


class AttentionKernel:
    """Writes the kernel from top to bottom."""

    def __init__(self, compiled: CompiledSchedule) -> None:
        self.compiled = compiled
        self.program = compiled.lowered
        self.shape = attention_shape(compiled)
        self.copies = copies_of(self.program.entries)
        self.ops = AttentionOps(self.shape, self.copies)
        self.reasons = sync_reasons(compiled)
        self.architecture = architecture_of(self.program.machine)
        self.issued: dict[Phase, list[AttentionStatement | None]] = {
            phase: [
                None if entry.op.is_framework else self.ops.issued(entry, phase) for entry in self.program.phase(phase)
            ]
            for phase in Phase
        }
        self.apart = wait_states(self.issued, self.architecture)

    def lines(self, name: str) -> Iterator[str]:
        """The kernel under a name."""
        yield from self._contract(name)
        yield from self._head(name)
        yield from (f"  {line}" for line in self._body())
        yield "#endif"
        yield "}"

    def _body(self) -> Iterator[str]:
        shape, program = self.shape, self.program
        yield from self._sizes()
        yield from self._resources()
        yield from self._places()
        yield from self._queries()
        carried = [name for r in shape.row_blocks for name in self._carried(r)]
        yield from self._state()
        yield "int done = 0;  // tiles of keys that are summed up"
        yield f"if (whole_tiles >= {program.tiles_outside}) {{"
        yield f"  int trips = (whole_tiles - {program.tiles_outside}) / {program.tiles_per_trip};"
        yield f"  done = {program.tiles_outside} + {program.tiles_per_trip} * trips;"
        yield from (f"  {line}" for line in self._registers(carried))
        yield f"  ROTA_MARK({FIRST_MARK:#x})"
        yield from self._phase(Phase.PROLOGUE)
        yield ""
        for tile in "kv":
            yield f"  int {tile}_at = {program.tiles_per_trip} * {tile}_tile;  // bytes before this trip's tiles"
        yield "  #pragma clang loop unroll(disable)"
        yield "  for (; trips > 0; --trips) {"
        yield from self._phase(Phase.KERNEL)
        for tile in "kv":
            yield f"    {tile}_at += {program.tiles_per_trip} * {tile}_tile;"
        yield "  }"
        yield ""
        yield from self._phase(Phase.EPILOGUE)
        yield f"  ROTA_MARK({LAST_MARK:#x})"
        yield '  asm volatile("s_nop 15\\n\\ts_nop 3"); ROTA_FENCE  // the last results are in their registers'
        yield from (f"  {self._kept(name)} = {name_registers(self._last(name))};" for name in carried)
        yield "}"
        yield ""
        yield from rest_tile_lines(shape, self.ops.start("V"))
        yield from end_lines(shape)

    def _contract(self, name: str) -> Iterator[str]:
        shape, program = self.shape, self.program
        yield f"// {name}"
        yield "// Q, K, V and O: bf16, the elements of a head side by side; any number of queries and keys from 1 on."
        yield "// Rows, heads and batches are any multiples of 8 elements apart; all begin at multiples of 16 bytes."
        yield (
            f"// {shape.keys} * ({program.tiles_outside} + {program.tiles_per_trip} * trips) keys that all rows of a "
            "workgroup see are taken by the schedule's loop, the rest unpipelined and masked."
        )
        yield "// A row that sees no key is 0, and its log-sum-exp minus infinity."
        yield (
            f"// Launch: grid (ceil(queries / {self.rows}), heads, batches), {shape.waves * LANES} threads, "
            "no dynamic LDS."
        )
        yield "// The rows of one head of K and of V take less than 2 GiB; the launcher checks it, the kernel doesn't."
        yield f"// Compile with -O2 or -O3 (clang++ -x hip --offload-arch={self.architecture.toolchain})."
        yield f"// LDS: {self.ops.lds_bytes} bytes."
        yield from contract(self.compiled)
        yield "// Comments give the entry: its number in its phase, its op, and why a wait or barrier is there."

    @property
    def rows(self) -> int:
        """Rows of Q of one workgroup."""
        return self.shape.rows * self.shape.waves

    def _head(self, name: str) -> Iterator[str]:
        shape = self.shape
        threads, per_simd = shape.waves * LANES, -(-shape.waves // 4)
        yield (
            f'extern "C" __attribute__((global, amdgpu_flat_work_group_size({threads}, {threads}), '
            f"amdgpu_waves_per_eu({per_simd}, {per_simd})))"
        )
        yield f"void {name}({', '.join(f'{each.type} {each.name}' for each in ATTENTION_PARAMETERS)}) {{"
        yield "  " + " ".join(f"(void){each.name};" for each in ATTENTION_PARAMETERS)
        yield "#ifdef __HIP_DEVICE_COMPILE__  // the host needs the name alone"
        yield from (f"  {line}" for line in attention_types())
        yield f"  __attribute__((shared, aligned(16))) static char memory[{self.ops.lds_bytes}];"

    def _sizes(self) -> Iterator[str]:
        shape, rows = self.shape, self.rows
        yield "const int thread = __builtin_amdgcn_workitem_id_x(), lane = thread & 63;"
        yield "const int wave = __builtin_amdgcn_readfirstlane(thread >> 6);"
        yield f"const int lane_row = lane % {SIDE}, lane_group = lane / {SIDE};"
        yield "const long long batch = __builtin_amdgcn_workgroup_id_z(), head = __builtin_amdgcn_workgroup_id_y();"
        yield "const long long kv_head = head / (heads / kv_heads);"
        yield f"const int first_row = (int)__builtin_amdgcn_workgroup_id_x() * {rows};"
        yield f"const int wave_row = first_row + wave * {shape.rows};"
        yield "// Keys that the first row sees, and those that the last one does: tiles between them are masked."
        yield f"const int last_row = queries - first_row < {rows} ? queries - 1 : first_row + {rows - 1};"
        for which in ("first", "last"):
            yield f"long long {which}_sees = causal ? (long long){which}_row + shift + 1 : keys;"
            yield f"{which}_sees = {which}_sees < 0 ? 0 : {which}_sees < keys ? {which}_sees : keys;"
        yield f"const int whole_tiles = __builtin_amdgcn_readfirstlane((int)first_sees / {shape.keys});"
        yield f"const int tiles = __builtin_amdgcn_readfirstlane(((int)last_sees + {shape.keys - 1}) / {shape.keys});"
        yield "const float base_two = scale * 1.4426950408889634f;  // exponentials are of two"
        yield (
            "const u32 scale_bits = __builtin_amdgcn_readfirstlane(__builtin_bit_cast(u32, base_two)), "
            "minus_scale = scale_bits ^ 0x80000000u;"
        )
        yield "const u64 scales = scale_bits;"
        yield ""

    def _resources(self) -> Iterator[str]:
        shape = self.shape
        yield "// Buffer resources: base, size in bytes (beyond it loads give 0), raw format."
        for name, count, which in (("q", "queries", "head"), ("k", "keys", "kv_head"), ("v", "keys", "kv_head")):
            yield f"const int {name}_row_bytes = (int)({name}_row * {ELEMENT_BYTES});"
            base = f"(u64){name.upper()} + (u64)((batch * {name}_batch + {which} * {name}_head) * {ELEMENT_BYTES})"
            size = f"({count} - 1) * {name}_row_bytes + {shape.row_bytes}"
            if name == "q":
                base += f" + (u64)((long long)first_row * q_row * {ELEMENT_BYTES})"
                size = f"(last_row - first_row) * {name}_row_bytes + {shape.row_bytes}"
            yield f"const u64 {name}_base = {base};"
            yield f"const u32 {name}_size = (u32)({size});"
        for name in "kv":
            yield asm_resource(name, f"{name}_size")
        yield builtin_resource("q", "q_size")
        yield ""

    def _places(self) -> Iterator[str]:
        """Where lanes fetch, and where they read; in row r of a tile chunk c lies at place c XOR r."""
        shape, mask = self.shape, self.shape.chunks - 1
        yield f"// A DMA of all waves fills {shape.dma_rows} rows; a lane fetches the chunk that belongs at its place."
        yield f"const u32 lds_wave = (u32)(u64)(ROTA_LDS char*)memory + wave * {LANES * 16};"
        yield f"const int row = thread / {shape.chunks}, chunk = thread % {shape.chunks} ^ (row & {mask});"
        for name in "kv":
            yield f"const int {name}_fetch = row * {name}_row_bytes + chunk * 16;"
            yield f"const int {name}_tile = {shape.keys} * {name}_row_bytes;  // from a tile to the next"
            yield f"const int {name}_dma = {shape.dma_rows} * {name}_row_bytes;  // from a DMA to the next"
        steps, blocks = len(shape.head_steps), len(shape.head_blocks)
        yield f"ROTA_LDS const char* k_lane[{steps}];"
        yield '_Pragma("unroll")'
        yield (
            f"for (int step = 0; step < {steps}; ++step) k_lane[step] = (ROTA_LDS const char*)memory + lane_row * "
            f"{shape.row_bytes} + ((step * 4 + lane_group) ^ (lane_row & {mask})) * 16;"
        )
        yield "// A lane points at four elements of a key; the read gives it one element of four keys."
        yield "const int key = lane_group * 4 + lane_row / 4;"
        yield f"ROTA_LDS const char* v_lane[{blocks}];"
        yield '_Pragma("unroll")'
        yield (
            f"for (int block = 0; block < {blocks}; ++block) v_lane[block] = (ROTA_LDS const char*)memory + "
            f"{self.ops.start('V')} + key * {shape.row_bytes} + ((block * 2 + lane_row % 4 / 2) ^ (key & {mask})) * 16 "
            "+ lane_row % 2 * 8;"
        )
        yield ""

    def _queries(self) -> Iterator[str]:
        shape = self.shape
        rows, steps = len(shape.row_blocks), len(shape.head_steps)
        yield f"factor q[{rows}][{steps}];"
        yield '_Pragma("unroll")'
        yield f"for (int r = 0; r < {rows}; ++r) {{"
        yield f"  const int own = wave * {shape.rows} + r * {SIDE} + lane_row;"
        yield '  _Pragma("unroll")'
        yield f"  for (int j = 0; j < {steps}; ++j) {{"
        yield (
            "    q[r][j] = __builtin_bit_cast(factor, __builtin_amdgcn_raw_buffer_load_b128(q_bytes, "
            f"(u32)(own * q_row_bytes + (j * {DEPTH} + lane_group * 8) * {ELEMENT_BYTES}), 0, 0));"
        )
        yield "  }"
        yield "}"
        yield ""

    def _state(self) -> Iterator[str]:
        """What is carried from tile to tile: the best score of a row, sums of weights, and the output."""
        rows, blocks = len(self.shape.row_blocks), len(self.shape.head_blocks)
        yield f"float best[{rows}];"
        yield f"part total[{rows}], output[{rows}][{blocks}];"
        yield '_Pragma("unroll")'
        yield f"for (int r = 0; r < {rows}; ++r) {{"
        yield "  best[r] = -__builtin_inff();"
        yield "  total[r] = 0;"
        yield '  _Pragma("unroll")'
        yield f"  for (int h = 0; h < {blocks}; ++h) output[r][h] = 0;"
        yield "}"

    def _carried(self, r: int) -> Iterator[str]:
        shape = self.shape
        yield f"m{r}"
        yield f"l{r}_{len(shape.key_blocks)}"
        yield from (f"o{r}_{h}_{len(shape.key_steps)}" for h in shape.head_blocks)

    @staticmethod
    def _kept(name: str) -> str:
        """The variable that holds a carried value outside the loop."""
        kind, numbers = name[0], name[1:].split("_")
        if kind == "o":
            return f"output[{numbers[0]}][{numbers[1]}]"
        return f"{'best' if kind == 'm' else 'total'}[{numbers[0]}]"

    def _registers(self, carried: list[str]) -> Iterator[str]:
        """Every copy of every register value; those that the first iteration reads begin as they are carried."""
        sizes = {value.name: value.size for value in self.shape.loop().values}
        first = {self._first(name): self._kept(name) for name in carried}
        types = {1: "float", 2: "pair", BLOCK: "part"}
        for name, copies in self.copies.items():
            if name in ("K", "V"):
                continue
            kind = "factor" if name[0] in "kvp" else types[sizes[name]]
            for copy in range(copies):
                place = Place(Space.REGISTER, name, copy)
                begun = f" = {first[place]}" if place in first else ""
                yield f"{kind} {name_registers(place)}{begun};"
        yield "ROTA_WAIT_VM(0)  // Q has come"
        shape = self.shape
        yield " ".join(f'asm volatile("" : "+a"(q[{r}][{j}]));' for r in shape.row_blocks for j in shape.head_steps)
        pins = " ".join(f'asm volatile("" : "+v"({name_registers(place)}));' for place in first)
        yield f'{pins} asm volatile("s_nop 1"); ROTA_FENCE'

    def _first(self, name: str) -> Place:
        """Where the first iteration looks for the value of the one before it."""
        trip = self.program.tiles_per_trip
        return next(
            place
            for phase, k in ((Phase.PROLOGUE, 0), (Phase.KERNEL, trip), (Phase.EPILOGUE, trip))
            for entry in self.program.phase(phase)
            for place, version in entry.effect.wants
            if version.name == name and version.iteration + k == -1
        )

    def _last(self, name: str) -> Place:
        """Where the last iteration leaves a value."""
        outside, trip = self.program.tiles_outside, self.program.tiles_per_trip
        return next(
            place
            for phase, iteration in ((Phase.EPILOGUE, outside - 1 - trip), (Phase.KERNEL, outside - 1))
            for entry in self.program.phase(phase)
            for place, version in entry.effect.makes
            if version.name == name and version.iteration == iteration
        )

    def _phase(self, phase: Phase) -> Iterator[str]:
        indent = "    " if phase is Phase.KERNEL else "  "
        yield f"{indent}// {phase.value.lower()}"
        for number, (entry, issued) in enumerate(zip(self.program.phase(phase), self.issued[phase], strict=True)):
            if states := self.apart.get((phase, number)):
                yield f"{indent}{apart_text(states)}"
            yield f"{indent}{self._statement(entry, issued)}".ljust(_FAR_APART) + comment(self._what(entry))

    def _statement(self, entry: Entry, issued: AttentionStatement | None) -> str:
        return sync_text(self.program, entry) if issued is None else issued.text

    def _what(self, entry: Entry) -> str:
        what = f"{entry.phase.at(entry.time_slot)} {entry.op}"
        why = sync_reason(self.program, entry, self.reasons) if entry.op.is_framework else ""
        return f"{what}: {why}" if why else what


# The host's side of a whole attention forward.
#
# Every precondition that the kernel rests on has a line in `NAME_check`, which says which one doesn't hold.

_MOST_Y = 65535  # workgroups in the grid's second and third dimension
_MOST_ROWS = 1 << 30
_STARTS = {"heads": "1", "kv_heads": "1", "causal": "0", "shift": "0", "scale": "0"}


def emit_attention_launcher(compiled: CompiledSchedule) -> str:
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
    yield ("p.kv_heads >= 1 && p.heads % p.kv_heads == 0", "heads of Q are a multiple of those of K and V")
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
