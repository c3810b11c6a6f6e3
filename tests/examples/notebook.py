"""A notebook, executed: takes its file, gives what each cell of code ends with, as a notebook would ask for it.

Cells are run in order, in one namespace, in this process.  A real kernel (ipykernel, nbclient) would bring some thirty
packages and take longer to start than all cells take, and would ask the values for the same two methods.
`python -m tests.examples.notebook` writes the outputs into the file.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.docs.blocks import ROOT

NOTEBOOK = ROOT / "examples" / "notebook.ipynb"
_CELL = "notebook cell"


def run_cells(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], object]]:
    """Every cell of code with the value of its last line; None if that is a statement."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, _CELL, "exec"), namespace)
        yield (
            cell,
            eval(compile(ast.Expression(last.value), _CELL, "eval"), namespace) if isinstance(last, ast.Expr) else None,
        )


def outputs_of(value: object) -> list[dict[str, Any]]:
    """What a notebook keeps of a value."""
    if value is None:
        return []
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    for kind, method in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
        if hasattr(value, method):
            data[kind] = getattr(value, method)().splitlines(keepends=True)
    if "image/svg+xml" in data:  # the page around it says the same once more
        data.pop("text/html")
    return [{"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"}]


def shown(outputs: list[dict[str, Any]]) -> str:
    """Outputs without the numbers of rota's own lines, which move."""
    return re.sub(r"(?<=\.py):\d+", "", json.dumps(outputs))


def read_notebook() -> dict[str, Any]:
    """The file."""
    notebook: dict[str, Any] = json.loads(NOTEBOOK.read_text("utf-8"))
    return notebook


def write_outputs(file: Path = NOTEBOOK) -> None:
    """Bring it up to date."""
    notebook = read_notebook()
    for number, (cell, value) in enumerate(run_cells(notebook), 1):
        cell["execution_count"] = number
        cell["outputs"] = [{**each, "execution_count": number} for each in outputs_of(value)]
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    write_outputs()
