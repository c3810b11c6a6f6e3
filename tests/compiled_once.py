"""One compilation of each source in a run: what a compiler made for one test, the others are given.

Compiling takes seconds, and many tests compile the same kernels.  A code object is a function of the source, the
machine and the compiler's commands, so the first test's result serves all, in the other worker processes too.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import pytest

from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import Toolchain

SETTING = "ROTA_TESTS_COMPILED"
"""Names the folder that the processes of a run share."""

_compile, _assemble = Toolchain.compile, Toolchain.assemble


@contextmanager
def compiled_once() -> Iterator[None]:
    """Within, equal sources are compiled and assembled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Toolchain, "compile", lambda self, source, arch: _made(self, "compile", source, arch))
        patch.setattr(Toolchain, "assemble", _assemble_once)
        yield


def _assemble_once(self: Toolchain, assembly: str, arch: str, path: Path | None = None) -> CodeObject:
    """A file is assembled each time: its own name is in the result."""
    return _made(self, "assemble", assembly, arch) if path is None else _assemble(self, assembly, arch, path)


@lru_cache(maxsize=32)  # the others are in the folder
def _made(toolchain: Toolchain, verb: str, source: str, arch: str) -> CodeObject:
    said = repr((toolchain, verb, arch, source)).encode()
    file = Path(os.environ[SETTING]) / hashlib.sha256(said).hexdigest()
    if file.is_file():
        known = pickle.loads(file.read_bytes())
        assert isinstance(known, CodeObject)
        return known
    made = (_compile if verb == "compile" else _assemble)(toolchain, source, arch)
    written = file.with_suffix(f".{os.getpid()}")  # renamed when it is whole: another process may be reading
    written.write_bytes(pickle.dumps(made))
    written.replace(file)
    return made
