"""An example's schedule as a whole kernel on the interpreter: takes it and a geometry, gives a `Built` to run."""

from __future__ import annotations

from rota import CompiledSchedule, KernelGeometry
from rota.emit.gemm.gemm_tile import gemm_tile
from rota.emit.whole.whole_kernel import emit_whole, whole_name
from rota.emit.whole.whole_options import WholeGemm
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.loaded_kernel import LoadedKernel
from tests.campaigns.whole.whole_kernels import Built


def build_whole(compiled: CompiledSchedule, geometry: KernelGeometry, asked: WholeGemm) -> Built:
    """Emitted, compiled and decoded."""
    code = find_toolchain().compile(emit_whole(compiled, geometry, asked), compiled.machine.arch)
    name = whole_name(compiled, asked)
    kernel, reduction = (
        LoadedKernel(program=load_program(code.kernel(each), tuple(code.instructions(each))))
        for each in (name, f"{name}_reduce")
    )
    tile = gemm_tile(compiled, geometry)
    return Built(asked=asked, tile=tile, code=code, name=name, kernel=kernel, reduce=reduction)
