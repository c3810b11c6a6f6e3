"""The compiled core: takes nothing, gives the loaded library, or None where the installed package has none."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Final

from rota.native_library import load

NAME = "librota_core.so"
_POINTER: Final = ctypes.c_void_p
OTHER: Final = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)
"""What executes one instruction of a wave instead of the core: takes the wave's number and the instruction's."""
_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "rota_opcode_name": (ctypes.c_char_p, (ctypes.c_int,)),
    "rota_opcode_accepts": (ctypes.c_uint32, (ctypes.c_int,)),
    "rota_size": (ctypes.c_int64, (ctypes.c_int,)),
    "rota_check": (ctypes.c_int, (_POINTER, ctypes.c_int32, _POINTER, ctypes.c_int32)),
    "rota_acts": (ctypes.c_int, (_POINTER, ctypes.c_int32, _POINTER)),
    "rota_group_new": (_POINTER, (_POINTER, ctypes.c_int32, _POINTER, ctypes.c_int32, ctypes.c_int64, ctypes.c_int64)),
    "rota_group_code": (None, (_POINTER, _POINTER, ctypes.c_int64, ctypes.c_uint64, OTHER)),
    "rota_lds": (_POINTER, (_POINTER, ctypes.c_int32)),
    "rota_private": (_POINTER, (_POINTER,)),
    "rota_scc": (ctypes.c_int32, (_POINTER, ctypes.c_int32)),
    "rota_set_scc": (None, (_POINTER, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)),
    "rota_group_free": (None, (_POINTER,)),
    "rota_group_start": (None, (_POINTER, ctypes.c_int32)),
    "rota_group_memory": (
        None,
        (_POINTER, _POINTER, ctypes.c_uint64, _POINTER, _POINTER, ctypes.c_int32, _POINTER, _POINTER),
    ),
    "rota_group_order": (
        None,
        (
            _POINTER, ctypes.c_int32, ctypes.c_int32, ctypes.c_uint64, _POINTER, ctypes.c_int64, ctypes.c_int32,
            ctypes.c_int32,
        ),
    ),
    "rota_scalars": (_POINTER, (_POINTER, ctypes.c_int32)),
    "rota_vectors": (_POINTER, (_POINTER, ctypes.c_int32)),
    "rota_set_exec": (None, (_POINTER, ctypes.c_int32, ctypes.c_uint64)),
    "rota_set_pc": (None, (_POINTER, ctypes.c_int32, ctypes.c_int32)),
    "rota_wave_end": (
        None,
        (_POINTER, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32), ctypes.POINTER(ctypes.c_int32)),
    ),
    "rota_executed": (ctypes.c_int64, (_POINTER,)),
    "rota_run": (ctypes.c_int, (_POINTER, _POINTER, ctypes.c_int64)),
    "rota_faults": (_POINTER, (_POINTER, ctypes.POINTER(ctypes.c_int32))),
}  # fmt: skip


@cache
def library() -> ctypes.CDLL | None:
    """The core that was built into the package; None without one, or where ROTA_NATIVE=0 asks for NumPy."""
    return load(Path(__file__).parent / "lib" / NAME, _SIGNATURES)  # beside modules it would pass for one of them


@cache
def opcodes() -> dict[str, tuple[int, int]]:
    """The number of every opcode that the core knows, and which modifiers it honours, as bits."""
    core, found = library(), dict[str, tuple[int, int]]()
    while core is not None and (name := core.rota_opcode_name(len(found))) is not None:
        found[name.decode()] = len(found), core.rota_opcode_accepts(len(found))
    return found
