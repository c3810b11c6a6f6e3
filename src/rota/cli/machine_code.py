"""A kernel's machine code: takes a kernel and a compiler's name, gives what that compiler made of the emitted GEMM."""

from __future__ import annotations

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


def compiler_option(command: Command) -> Command:
    """Adds `--compiler`."""
    return click.option(
        "--compiler", metavar="NAME", help="A clang++ by path or name, or ziglang; by default the first found."
    )(command)


def block_option(command: Command) -> Command:
    """Adds `--block`."""
    return click.option("--block", type=click.IntRange(1, 1024), help="Work items of a workgroup, for machine code.")(
        command
    )


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
