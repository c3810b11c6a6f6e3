"""A code object, proved: takes a file or its bytes, gives a `Verdict` for each of its kernels."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from rota.errors import Finding, IsaError, ToolchainError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.object_file import read_code_object
from rota.isa.binary.toolchain import find_objdump
from rota.prove.block_shape import Triple
from rota.prove.kernel_proof import Policies, prove
from rota.prove.meter import Budget
from rota.prove.verdict import Verdict


def read_object_to_prove(source: str | PathLike[str] | bytes, *, arch: str | None = None) -> CodeObject:
    """A code object from a file or bytes, disassembled."""
    if isinstance(source, bytes):
        return read_code_object(source, find_objdump(), arch=arch)
    try:
        contents = Path(source).read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise ToolchainError(Finding(code="T103", message=f"{source} can't be read: {why}")) from error
    return read_code_object(contents, find_objdump(), arch=arch)


def assert_proved(
    source: str | PathLike[str] | bytes | CodeObject,
    name: str | None = None,
    *,
    block: int | Triple | None = None,
    dynamic_lds: int | None = None,
    policies: Policies | None = None,
    budget: Budget | None = None,
) -> tuple[Verdict, ...]:
    """Every kernel, or the one of that name, is proved; raises what was found if one isn't."""
    verdicts = prove_object(source, name, block=block, dynamic_lds=dynamic_lds, policies=policies, budget=budget)
    wrong = [each for each in verdicts if not each.proved]
    if wrong:
        raise IsaError(*(finding for each in wrong for finding in each.findings))
    return verdicts


def prove_object(
    source: str | PathLike[str] | bytes | CodeObject,
    name: str | None = None,
    *,
    block: int | Triple | None = None,
    dynamic_lds: int | None = None,
    policies: Policies | None = None,
    budget: Budget | None = None,
    witness: bool = True,
) -> tuple[Verdict, ...]:
    """The kernel of that name, or all of them; what may be wrong is executed unless no `witness` is wanted."""
    code = source if isinstance(source, CodeObject) else read_object_to_prove(source)
    kernels = code.kernels if name is None else (code.kernel(name),)
    return tuple(
        prove(
            facts,
            instructions,
            block=block,
            dynamic_lds=dynamic_lds,
            policies=policies,
            budget=budget,
            witness=witness,
            image=code.image() if any(each.opcode == "s_getpc_b64" for each in instructions) else b"",
        )
        for facts in kernels
        for instructions in (code.instructions(facts.name),)
    )
