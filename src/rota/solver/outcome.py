"""How a solve can end: takes nothing, gives `Outcome`, what the solver's numbers can hold, and a finding without it."""

from __future__ import annotations

import enum

from rota.errors import DeclarationError, Finding

LARGEST_SUM = 2**40  # far above any kernel, far below where the solver's 64-bit sums could overflow
LARGEST_SEED = 2**31 - 1  # of the solver


class Outcome(enum.Enum):
    """How a solve ended. OPEN: the time limit came first, which says nothing about feasibility."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    OPEN = "open"


def library_missing(error: ImportError) -> DeclarationError:
    """D105: the solver that the CSP strategy stands for is not installed."""
    return DeclarationError(
        Finding(
            code="D105",
            message="scheduling CSP needs a search here, and its solver ortools can't be imported",
            evidence=(("import error", str(error)), ("needed", "ortools 9.12 or later")),
            fixes=(
                "pip install 'ortools>=9.12'",
                "scheduling=SchedulingStrategy.GREEDY takes the list order and knows no limits",
            ),
        )
    )
