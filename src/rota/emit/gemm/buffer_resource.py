"""Buffer resources in HIP: takes a name and a size, gives their declarations and fetches through them.

Loads beyond a resource's size give 0, and stores there have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.emit.gemm.gemm_tile import GemmTile

NOWHERE = "0x80000000u"
"""An offset beyond any buffer resource."""
RAW = "0x00027000"
"""The last word of a resource of bytes."""


def asm_resource(name: str, size: str) -> str:
    """`NAME_global`, from `NAME_base` on, as asm takes it."""
    return f"const resource {name}_global = {{(u32){name}_base, (u32)({name}_base >> 32) & 0xffff, {size}, {RAW}u}};"


def builtin_resource(name: str, size: str) -> str:
    """`NAME_bytes`, the same as builtins take it."""
    return (
        f"const __amdgpu_buffer_rsrc_t {name}_bytes = "
        f"__builtin_amdgcn_make_buffer_rsrc((void*){name}_base, 0, (int){size}, {RAW});"
    )


def element_fetch(tile: GemmTile, name: str, *, element: str, offset: str, lds: str) -> Iterator[str]:
    """What a DMA would bring a lane, one element at a time from `NAME_bytes` to LDS.

    `element` says which one is `from`, of `word` and `e`, and `offset` where that lies, or that it is nowhere; `lds` is
    the lane's place, in bytes.
    """
    size, words = tile.element.bytes, tile.dma_bytes // tile.register_bytes
    yield f"u32 words[{words}];"
    yield '_Pragma("unroll")'
    yield f"for (int word = 0; word < {words}; ++word) {{"
    yield "  words[word] = 0;"
    yield '  _Pragma("unroll")'
    yield f"  for (int e = 0; e < {tile.register_bytes // size}; ++e) {{"
    yield f"    const int from = {element};"
    yield f"    const u32 offset = {offset};"
    yield (
        f"    words[word] |= (u32)(unsigned {'char' if size == 1 else 'short'})"
        f"__builtin_amdgcn_raw_buffer_load_b{8 * size}({name}_bytes, offset, 0, 0) << ({8 * size} * e);"
    )
    yield "  }"
    yield "}"
    yield f"ROTA_LDS u32* const to = (ROTA_LDS u32*)(memory + {lds} + thread * {tile.dma_bytes});"
    yield '_Pragma("unroll")'
    yield f"for (int word = 0; word < {words}; ++word) to[word] = words[word];"
