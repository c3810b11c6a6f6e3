"""The notes of a code object: takes their bytes and a key, gives a value of the type that is due, or an error.

LLVM, "User Guide for AMDGPU Backend", section "Code Object V3 Metadata" and those after it.  Assembly that people write
by hand leaves out keys that LLVM demands; whoever asks says what follows from that.
"""

from __future__ import annotations

from typing import Any, TypeVar

from rota.isa.binary.elf import damaged

T = TypeVar("T", int, str, list[Any])

_MOST = 2**32 - 1  # the descriptor holds each of these numbers in 32 bits or fewer


def unpack_notes(metadata: bytes) -> object:
    """What the notes say, as MessagePack has it; nothing of it is checked yet."""
    import msgpack

    try:
        return msgpack.unpackb(metadata)  # bounds lengths by the size of its input, and nesting
    except Exception as error:  # what msgpack tells its users to catch
        raise damaged(f"{error!r:.200}") from error


def required(notes: object, key: str, kind: type[T]) -> T:
    """The value of a key without which nothing can be done."""
    value = optional(notes, key, kind)
    if value is None:
        raise damaged(f"no {key}")
    return value


def optional(notes: object, key: str, kind: type[T]) -> T | None:
    """The value of a key that a producer may leave out; LLVM gives no meaning to that, so it is unknown."""
    if not isinstance(notes, dict):
        raise damaged(f"{notes!r:.80} where a map was due")
    if key not in notes:
        return None
    value: Any = notes[key]
    if isinstance(value, int) and not 0 <= value <= _MOST:
        raise damaged(f"{key} is {value}")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise damaged(f"{key} is {value!r:.80}")
    return value


def optional_numbers(notes: object, key: str, count: int) -> tuple[int, ...] | None:
    """A list of so many numbers that may be left out."""
    value = optional(notes, key, list)
    if value is None:
        return None
    if len(value) != count or not all(type(each) is int and 0 <= each <= _MOST for each in value):
        raise damaged(f"{key} is {value!r:.80}")
    return tuple(value)
