"""The dispatch table for C++: takes a device's choices, gives a header that finds the kernel of a problem.

A problem that isn't in the table is told: `ROTA_UNTUNED(M, N, K)` is called for each lookup that finds nothing, and the
lookup says so.  Nothing is guessed for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.emit.text.names import identifier
from rota.tune.dispatch_table import shapes_in
from rota.tune.tune_library import DeviceTable
from rota.tune.winners import MEASURED


def dispatch_header(table: DeviceTable, *, launchers: dict[str, str] | None = None) -> str:
    """The header; `launchers` are the symbols of emitted kernels by the table's name, whose launchers it includes."""
    return "\n".join([*_lines(table, launchers or {}), ""])


def _lines(table: DeviceTable, launchers: dict[str, str]) -> Iterator[str]:
    kernels = sorted({choice["kernel"] for choice in table.choices.values()})
    space = identifier(f"rota_{table.device.lower()}_{table.ranking.element}")
    yield f"// Which kernel for which GEMM of {table.ranking.element} on {table.device}: {len(table.choices)} problems,"
    yield f"// {len(kernels)} kernels, each proved for every trip count.  Times are predicted where not `measured`."
    yield "#pragma once"
    yield "#include <algorithm>"
    yield "#include <cstdio>"
    yield "#include <iterator>"
    yield from (f'#include "{launchers[kernel]}.h"' for kernel in kernels if kernel in launchers)
    yield ""
    yield "#ifndef ROTA_UNTUNED  // what happens when a problem has no kernel in the table"
    yield (
        '#define ROTA_UNTUNED(m, n, k) std::fprintf(stderr, "rota: %d x %d x %d is not tuned\\n", (int)(m), (int)(n), '
        "(int)(k))"
    )
    yield "#endif"
    yield ""
    yield f"namespace {space} {{"
    yield f"enum class kernel : unsigned short {{ {', '.join(map(identifier, kernels))} }};"
    yield f"inline const char* const names[] = {{{', '.join(f'{chr(34)}{kernel}{chr(34)}' for kernel in kernels)}}};"
    yield "struct entry { int N, K, M; int result; kernel chosen; int split_k; float us; bool measured; };"
    yield "// Sorted by N, K, M and the bytes of a result."
    yield "inline const entry table[] = {"
    size = {"bf16": 2, "fp16": 2, "fp32": 4}
    for shape in shapes_in(table):
        choice = table.choices[shape]
        measured = "true" if choice["basis"] == MEASURED else "false"
        yield (
            f"  {{{shape.n}, {shape.k}, {shape.m}, {size[shape.result]}, kernel::{identifier(choice['kernel'])}, "
            f"{choice['split_k']}, {choice['us']:.3f}f, {measured}}},"
        )
    yield "};"
    yield ""
    yield "// The entry of a problem, or nullptr if it has none."
    yield "inline const entry* find(int M, int N, int K, int result = 2) {"
    yield "  const auto less = [](const entry& one, const entry& other) {"
    yield "    if (one.N != other.N) return one.N < other.N;"
    yield "    if (one.K != other.K) return one.K < other.K;"
    yield "    return one.M != other.M ? one.M < other.M : one.result < other.result;"
    yield "  };"
    yield "  const entry wanted = {N, K, M, result, kernel{}, 1, 0.0f, false};"
    yield "  const entry* const at = std::lower_bound(std::begin(table), std::end(table), wanted, less);"
    yield "  if (at != std::end(table) && !less(wanted, *at)) return at;"
    yield "  ROTA_UNTUNED(M, N, K);"
    yield "  return nullptr;"
    yield "}"
    yield f"}}  // namespace {space}"
