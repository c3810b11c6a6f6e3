"""Functions for a skeleton: takes a loop by values, gives a kernel whose functions issue what the loop declares.

They compute nothing useful: loads fetch anything, and each matrix or vector op touches what it reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.emit.forms import emit_skeleton
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec
from rota.values.compiled_loop import CompiledLoop

VALU = "v_exp_f32_e32"
_HEAD = """
#define LDS __attribute__((address_space(3)))
#define INLINE __attribute__((device, always_inline))
typedef unsigned int u32;
typedef u32 words __attribute__((ext_vector_type(4)));
typedef float floats __attribute__((ext_vector_type(4)));
"""
_FEW = 2  # registers of four words that stand for any number of them, where no load must keep them apart


def kernel_around(compiled: CompiledLoop) -> str:
    """The skeleton, the functions, and a kernel that calls it."""
    loop, copies = compiled.loop, dict(compiled.placement.copies)
    return "\n".join([emit_skeleton(compiled), _HEAD, *_ops(loop, copies), *_kernel(compiled, loop)])


def _ops(loop: LoopSpec, copies: dict[str, int]) -> Iterator[str]:
    yield "struct Ops {"
    yield "  LDS const char* lane; words resource; u32 offset; u32 lds; floats constant;"
    for name in _registers(loop):
        yield f"  {'words' if _loaded(loop, name) else 'floats'} {name}_[{copies.get(name, 1)}][{_size(loop, name)}];"
    for op in loop.ops:
        written = [name for name in op.writes if loop.value(name).home is not Home.ACCUMULATOR]
        numbers = [f"int to{index}" for index in range(len(written))]
        numbers += [f"int from{index}" for index in range(len(op.reads))]
        template = f"template <{', '.join(numbers)}> " if numbers else ""
        yield f"  {template}INLINE void {op.name}([[maybe_unused]] int k) {{"
        yield from (f"    {line}" for line in _body(loop, op))
        yield "  }"
    yield "};"


def _body(loop: LoopSpec, op: LoopOp) -> Iterator[str]:
    target = f"{_place(loop, op.writes[0])}_[{'0' if loop.value(op.writes[0]).home is Home.ACCUMULATOR else 'to0'}]"
    for index in range(op.instructions):
        if op.kind is OpKind.DMA:
            yield (
                '{ u32 m0; asm volatile("s_mov_b32 m0, %1\\n\\ts_nop 0\\n\\tbuffer_load_dwordx4 %2, %3, %4 offen lds" '
                ': "=&{m0}"(m0) '
                f': "s"(lds + to0 * 1024 + {index}), "v"(offset), "s"(resource), "s"(k * 128) : "memory"); }}'
            )
        elif op.kind is OpKind.LDS_READ:
            yield f"{target}[{index}] = *(LDS const words*)(lane + from0 * 8192 + {index * 256});"
        else:
            place = f"{target}[{index % _size(loop, op.writes[0])}]"
            one, two = _sources(loop, op, index)
            if op.kind is OpKind.MMA:
                yield f'asm volatile("{op.instruction} %0, %1, %2, %0" : "+v"({place}) : "v"({one}), "v"({two}));'
            else:
                asm = 'asm volatile("v_exp_f32 %0, %1" : "=v"(y) : "v"(x));'
                yield f"{{ float x = {one}[0], y; {asm} {place}[0] = y; }}"


def _sources(loop: LoopSpec, op: LoopOp, index: int) -> tuple[str, str]:
    """Two operands; every piece that was loaded comes up, or its load would be dropped."""
    reads = [(number, read.value) for number, read in enumerate(op.reads)]
    loaded = [each for each in reads if _loaded(loop, each[1])] or reads
    (first, one), (second, two) = loaded[index % len(loaded)], reads[index % len(reads)]
    turn = index // len(loaded)
    return (
        f"{_place(loop, one)}_[from{first}][{turn % _size(loop, one)}]",
        f"{_place(loop, two)}_[from{second}][{turn % _size(loop, two)}]",
    )


def _kernel(compiled: CompiledLoop, loop: LoopSpec) -> Iterator[str]:
    yield f'extern "C" __attribute__((global, amdgpu_flat_work_group_size({64 * loop.waves}, {64 * loop.waves}),'
    yield "  amdgpu_waves_per_eu(1, 1)))"
    yield "void skeleton(words resource, int trips) {"
    yield "  __attribute__((shared, aligned(16))) static char memory[65536];"
    yield "  Ops ops = {};"
    yield "  ops.lane = (LDS const char*)memory + __builtin_amdgcn_workitem_id_x() * 16;"
    yield "  ops.resource = resource; ops.lds = (u32)(unsigned long long)(LDS char*)memory;"
    yield f"  {compiled.name}(ops, trips);"
    for name in _registers(loop):
        if not _loaded(loop, name):
            for index in range(_size(loop, name)):
                yield f'  asm volatile("" :: "v"(ops.{name}_[0][{index}]));'
    yield "}"


def _registers(loop: LoopSpec) -> list[str]:
    """Values in registers that the loop writes, one for all that share theirs."""
    return [
        value.name
        for value in loop.values
        if value.home in (Home.REGISTERS, Home.ACCUMULATOR) and _place(loop, value.name) == value.name
    ]


def _place(loop: LoopSpec, value: str) -> str:
    return loop.registers_of(value)[0]


def _loaded(loop: LoopSpec, value: str) -> bool:
    return loop.writers(value)[0].kind is OpKind.LDS_READ


def _size(loop: LoopSpec, value: str) -> int:
    return loop.writers(value)[0].instructions if _loaded(loop, value) else _FEW
