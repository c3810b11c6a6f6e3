from __future__ import annotations

from rota.isa.wave.wave import Faults
from tests.isa.single import codes, execute, fresh, written_lds

WRITE, READ, WAIT = "ds_write_b32 v0, v1", "ds_read_b32 v2, v0", "s_waitcnt lgkmcnt(0)"


def found(first: str, second: str) -> list[str]:
    """What two waves that share an LDS do wrong, the second one running when the first is done."""
    lds = written_lds(Faults())
    waves = [fresh({0: 0, 1: 7}, number=number, lds=lds) for number in (0, 1)]
    for wave, text in zip(waves, (first, second), strict=True):
        for line in text.split("\n"):
            execute(line, wave)
    return [*(finding.code for finding in lds.order._faults.findings()), *codes(waves[0]), *codes(waves[1])]


def test_a_wait_without_a_barrier_keeps_no_waves_apart() -> None:
    assert found(f"{WRITE}\n{WAIT}", f"{READ}\n{WAIT}") == ["I109"]
    assert found(f"{READ}\n{WAIT}", WRITE) == ["I109"]
    assert found(f"{WRITE}\n{WAIT}", "ds_write_b32 v0, v0") == ["I109"]


def test_a_wait_behind_the_barrier_neither() -> None:
    assert found(f"{READ}\ns_barrier\n{WAIT}", f"s_barrier\n{WRITE}") == ["I109"]


def test_a_wait_and_a_barrier_do() -> None:
    assert found(f"{WRITE}\n{WAIT}\ns_barrier", f"s_barrier\n{READ}\n{WAIT}") == []
    assert found(f"{READ}\n{WAIT}\ns_barrier", f"s_barrier\n{WRITE}") == []
    assert found(f"{WRITE}\n{WAIT}\ns_barrier", f"s_barrier\n{WRITE}") == []


def test_several_readers_are_all_remembered() -> None:
    lds = written_lds(faults := Faults())
    waves = [fresh({0: 0, 1: 7}, number=number, lds=lds) for number in range(3)]
    for wave in waves:
        execute(f"{READ}\n{WAIT}", wave)
    execute("ds_write_b32 v0, v1", waves[2])
    assert [(finding.code, dict(finding.evidence)["other wave"]) for finding in faults.findings()] == [("I109", 0)]


def test_a_wave_that_reads_and_then_writes_its_own_word_races_with_nobody() -> None:
    lds = written_lds(faults := Faults())
    wave = fresh({0: 0, 1: 7}, number=0, lds=lds)
    execute(f"{READ}\n{WAIT}\n{WRITE}\n{WAIT}\n{READ}\n{WRITE}", wave)
    assert faults.findings() == ()
