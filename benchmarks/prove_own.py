"""`python -m benchmarks.prove_own`, which `tests.campaigns.whole.own_kernels` describes."""

from __future__ import annotations

from tests.campaigns.whole.own_kernels import main

if __name__ == "__main__":
    main()
