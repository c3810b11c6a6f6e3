"""Bundles of code objects: takes the bytes of a file, gives the one code object in it that is asked for.

`hipcc --genco` and `clang -x hip --cuda-device-only` put code objects for several architectures, and an empty one for
the host, behind a header (Clang, "Clang Offload Bundler", section "Bundled Binary File Layout").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from rota.errors import Finding, ToolchainError
from rota.isa.binary.elf import unreadable

_MAGIC, _PACKED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_MOST_ENTRIES = 1000
_MOST_NAME = 1000


def unbundled(contents: bytes, arch: str | None = None) -> bytes:
    """The code object itself; of a bundle, the one for `arch`, or the only one for a GPU."""
    if contents.startswith(_PACKED):
        raise ToolchainError(
            Finding(
                code="T103",
                message="the code object can't be read: it is in a compressed bundle",
                fixes=("compile with --no-offload-compress", "unpack it with clang-offload-bundler --unbundle"),
            )
        )
    if not contents.startswith(_MAGIC):
        return contents
    entries = [(name, code) for name, code in _entries(contents) if code and "amdgcn" in name]
    fitting = [code for name, code in entries if arch is None or _arch(name) == arch]
    if len(fitting) == 1:
        return fitting[0]
    held = ", ".join(_arch(name) for name, _ in entries) or "none"
    wanted = "one of them has to be named" if arch is None else f"{len(fitting)} are for {arch}"
    raise ToolchainError(
        Finding(
            code="T103",
            message=f"a bundle holds {len(entries)} code objects; {wanted}",
            evidence=(("code objects for", held[:200]),),
        )
    )


def _entries(contents: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        (count,) = struct.unpack_from("<Q", contents, len(_MAGIC))
        if count > _MOST_ENTRIES:
            raise unreadable(f"a bundle of {count:,} code objects")
        at = len(_MAGIC) + 8
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", contents, at)
            name = contents[at + 24 : at + 24 + min(length, _MOST_NAME)].decode("ascii", "replace")
            at += 24 + length
            if offset + size > len(contents) or length > _MOST_NAME:
                raise unreadable("a bundle is cut short or damaged")
            yield name, contents[offset : offset + size]
    except struct.error as error:
        raise unreadable("a bundle is cut short or damaged") from error


def _arch(name: str) -> str:
    """hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+:xnack- is for gfx942."""
    return name.partition(":")[0].rpartition("-")[2]
