"""A kernel's machine code: takes a kernel and a compiler's name, gives what that compiler made of the emitted GEMM."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from rota.cli.emit import source_of
from rota.cli.kernel_argument import compiled_kernel
from rota.cli.progress import progress
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.kernels.kernel import Kernel
from rota.targets.architecture import architecture_of

if TYPE_CHECKING:
    from rota.isa.binary.code_object import CodeObject

Command = TypeVar("Command", bound=Callable[..., object])
Block = int | tuple[int, int, int]
_AXES = 3


def compiler_option(command: Command) -> Command:
    """Adds `--compiler`."""
    return click.option(
        "--compiler", metavar="NAME", help="A clang++ by path or name, or ziglang; by default the first found."
    )(command)


class BlockType(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions alone
    """Work items of a workgroup: a number, or up to three of them as 16x16."""

    name = "block"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Block:
        """An int, whose shape isn't said, or all three sizes."""
        parts = str(value).lower().split("x")
        if not all(part.isdecimal() for part in parts) or len(parts) > _AXES:
            self.fail(f"{value!r} is no block: 256, or 16x16, or 8x8x4", param, ctx)
        sizes = [int(part) for part in parts]
        from rota.isa.binary.kernel_facts import MOST_WORK_ITEMS  # loaded with machine code, not with every command

        if not 1 <= math.prod(sizes) <= MOST_WORK_ITEMS:
            self.fail(f"a workgroup has 1 to {MOST_WORK_ITEMS} work items, not {math.prod(sizes)}", param, ctx)
        x, y, z = (*sizes, 1, 1)[:_AXES]
        return x if len(parts) == 1 else (x, y, z)


def block_option(command: Command) -> Command:
    """Adds `--block`."""
    return click.option(
        "--block",
        type=BlockType(),
        metavar="X[xY[xZ]]",
        help="Work items of a workgroup, of machine code: 256, 16x16.",
    )(command)


def device_option(command: Command) -> Command:
    """Adds `--device`."""
    return click.option(
        "--device", metavar="DEVICE", help="What source is compiled for, or machine code is predicted for."
    )(command)


class Built(NamedTuple):
    """The schedule and the machine code."""

    compiled: CompiledSchedule
    code: CodeObject


def built(kernel: Kernel, compiler: str | None, form: str = "hip", options: Mapping[str, str] | None = None) -> Built:
    """The compiler is looked for first: without one there is no need to search for a schedule."""
    from rota.isa.binary.toolchain import find_toolchain

    toolchain = find_toolchain(compiler)
    compiled = compiled_kernel(kernel)
    with progress(f"{toolchain.name} compiles {kernel.name}"):
        code = toolchain.compile(
            source_of(kernel, compiled, form, options), architecture_of(compiled.machine).toolchain
        )
    return Built(compiled, code)
