"""OR-Tools is imported without pandas, and nobody else notices."""

from __future__ import annotations

import subprocess
import sys

import pytest

QUICK = """
import sys
from rota.solver.cp_sat import make_ready
make_ready()
make_ready()
from ortools.sat.python import cp_model
assert cp_model is sys.modules["ortools.sat.python.cp_model"]
assert "pandas" not in sys.modules, "pandas was imported"
model = cp_model.CpModel()
number = model.new_int_var(0, 5, "n")
model.maximize(number)
solver = cp_model.CpSolver()
assert solver.solve(model) == cp_model.OPTIMAL and solver.value(number) == 5
"""
THEN_PANDAS = """
import pandas
assert pandas.Series([1, 2]).sum() == 3
series = model.new_int_var_series("a", pandas.Index([3, 4]), 0, 3)
assert type(series) is pandas.Series and len(series) == 2
"""
PANDAS_FIRST = """
import pandas, sys
from rota.solver.cp_sat import make_ready
make_ready()
from ortools.sat.python import cp_model
assert cp_model.pd is pandas
"""


@pytest.mark.parametrize("text", [QUICK, QUICK + THEN_PANDAS, PANDAS_FIRST])
def test_it_works_with_and_without_pandas(text: str) -> None:
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
