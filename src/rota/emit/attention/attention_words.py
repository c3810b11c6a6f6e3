"""The words of an attention kernel: takes nothing, gives the types and macros in which its instructions are written.

A vector or matrix instruction is opaque to the compiler: it neither moves it nor adds to it.  Registers that only
matrix instructions read, those of Q and K, are accumulation registers, of which there are as many again.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.emit.attention.attention_ops import DMA
from rota.emit.attention.attention_shape import INSTRUCTION
from rota.emit.text.sync_text import apart_words, sync_words


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
