from __future__ import annotations

import pytest

from rota.errors import IsaError
from rota.improve.improved_kernel import improve_kernel
from rota.targets.registry import device_named
from tests.lint.linted import compiled
from tests.wording.golden import worded


def test_a_kernel_without_a_loop() -> None:
    code = compiled("void k(float* x) { x[__builtin_amdgcn_workitem_id_x()] = 1; }")
    with pytest.raises(IsaError) as caught:
        improve_kernel(code, "k", device_named("mi355x"))
    (finding,) = caught.value.findings
    assert worded(finding).code == "I610"
    assert "reason" in dict(finding.evidence)
