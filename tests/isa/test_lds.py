from __future__ import annotations

import numpy as np

from rota.isa.memory.memories import Lds
from tests.isa.single import codes, execute, fresh


def test_a_kernel_without_lds_that_reads_it_leaves_it() -> None:
    wave = fresh({0: np.zeros(64, np.uint32)})
    wave.lds = Lds(0, wave.faults)
    execute("ds_read_b32 v8, v0\ns_waitcnt lgkmcnt(0)", wave)
    assert codes(wave) == ["I105"]
