"""The kernels of a library as source: takes a `TunedLibrary`, gives files, one whole kernel per distinct schedule.

A schedule is made again from what the search found, checked and proved again; a kernel whose proof doesn't hold is not
written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rota.emit.whole.whole_host import emit_launcher
from rota.emit.whole.whole_kernel import emit_whole, whole_name
from rota.errors import Finding, TuneError
from rota.tune.compute_point import schedule_again, whole_of
from rota.tune.dispatch_header import dispatch_header
from rota.tune.tune_library import DeviceTable, TunedLibrary
from rota.tune.winners import Configuration, winners_used
from rota.values.compiled_loop import CompiledLoop


class EmittedKernel(NamedTuple):
    """A kernel of the dispatch table and its source; `symbol` is its function's name."""

    kernel: str
    symbol: str
    configuration: Configuration
    compiled: CompiledLoop
    source: str
    launcher: str


def emitted_kernels(table: DeviceTable) -> Iterator[EmittedKernel]:
    """Each kernel that some shape was given."""
    known = {(each.row.key, each.swizzle): each for each in table.ranking.configurations}
    for key, swizzle in winners_used(table.choices.values()):
        configuration = known[key, swizzle]
        yield emit_configuration(configuration)


def emit_configuration(configuration: Configuration) -> EmittedKernel:
    """One kernel, proved again."""
    row, swizzle = configuration.row, configuration.swizzle
    compiled = schedule_again(row.point, row.answer)
    if compiled.certificate is None:
        raise TuneError(
            Finding(code="S401", message=f"{row.point.name} has no proof any more, and is not written", fixes=())
        )
    asked, geometry = whole_of(*swizzle), row.point.shape().geometry
    return EmittedKernel(
        configuration.kernel,
        whole_name(compiled, asked),
        configuration,
        compiled,
        emit_whole(compiled, geometry, asked),
        emit_launcher(compiled, geometry, asked),
    )


def library_files(library: TunedLibrary, tell: Callable[[str], None] = lambda _: None) -> Iterator[tuple[str, str]]:
    """Files by name: for each kernel its source and launcher, for each device and type its dispatch header."""
    for table in library.tables:
        if not table.choices:
            continue
        launchers = {}
        for each in emitted_kernels(table):
            tell(each.kernel)
            launchers[each.kernel] = each.symbol
            yield f"{each.symbol}.hip", each.source
            yield f"{each.symbol}.h", each.launcher
        name = f"dispatch_{table.device.lower()}_{table.ranking.element}.h"
        yield name, dispatch_header(table, launchers=launchers)
