from __future__ import annotations

import pytest

from rota import OpDesc, OpRole, SingleBufferSchedule, compile_schedule
from tests.findings.smallest import raised


class Without(SingleBufferSchedule):
    def __init__(self, role: OpRole) -> None:
        super().__init__(2)
        self.role = role

    def build_body(self) -> tuple[OpDesc, ...]:
        return tuple(op for op in super().build_body() if op.role is not self.role)


@pytest.mark.parametrize("role", [OpRole.GLOBAL_LOAD, OpRole.SHARED_STORE, OpRole.FRAGMENT_LOAD, OpRole.COMPUTE])
def test_a_single_buffer_without_a_needed_op_is_refused(role: OpRole) -> None:
    raised("P112", lambda: compile_schedule(Without(role)))
