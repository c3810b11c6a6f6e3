from __future__ import annotations

import json
from collections.abc import Callable
from time import process_time
from typing import Any

import pytest

from rota import ScheduleConfig, SchedulingStrategy, compile_schedule
from rota.emit.document.exchange import from_json, to_json
from tests.emit.kernels import SMALL_MI300X, by_values, four_wave, ping_pong
from tests.findings.smallest import Small, raised
from tests.wording.golden import mentions

pytestmark = pytest.mark.thorough  # runs for seconds


def document() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(to_json(by_values(SMALL_MI300X)[0]))
    return read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        "9" * 10_000,
        '{"format": "other", "version": 2, "kind": "values", "schedule": {}}',
    ],
)
def test_what_is_no_document_is_refused(text: str) -> None:
    raised("T204", lambda: from_json(text))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("version",), 3),
        (("version",), True),
        (("kind",), "pipelines"),
        (("kind",), ["values"]),
        (("more",), 1),
        (("schedule",), []),
        (("schedule", "name"), 3),
        (("schedule", "nmae"), "x"),
        (("schedule", "kernel"), {}),
        (("schedule", "kernel", 0, "phase"), "MIDDLE"),
        (("schedule", "kernel", 0, "time_slot"), True),
        (("schedule", "kernel", 0, "time_slot"), "Nonsense.ONE"),
        (("schedule", "kernel", 0, "op", "kind"), "loads"),
        (("schedule", "kernel", 0, "op", "kind"), "DMA"),
        (("schedule", "kernel", 0, "op", "work"), [1, 0, ""]),
        (("schedule", "kernel", 0, "op", "declared"), None),
        (("schedule", "kernel", 0, "effect", "counter"), 3),
        (("schedule", "trip_tiles"), [1]),
        (("schedule", "compiler_tracks_registers"), True),
        (("schedule", "machine"), "MI300X"),
        (("schedule", "machine", "counters"), []),
        (("schedule", "findings"), [{"code": "X999", "message": "unknown"}]),
    ],
)
def test_a_wrong_field_is_refused_by_its_path(path: tuple[str | int, ...], value: object) -> None:
    whole = document()
    at: Any = whole
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    finding = raised("T204", lambda: from_json(json.dumps(whole)))
    assert finding.evidence[0][0] == "at"


def test_a_missing_field_is_refused() -> None:
    whole = document()
    del whole["schedule"]["kernel"]
    assert "schedule.kernel" in raised("T204", lambda: from_json(json.dumps(whole))).message


REPAIRS = len(document()["schedule"]["repairs"])
WAIT, BARRIER = (
    next(entry["time_slot"] for entry in document()["schedule"]["kernel"] if entry["op"]["kind"] == kind)
    for kind in ("wait", "barrier")
)


def test_a_document_of_the_version_before_is_named() -> None:
    whole = document() | {"version": 1}
    del whole["kind"]  # which that version didn't have
    message = raised("T204", lambda: from_json(json.dumps(whole))).message
    assert "rota.schedule" in message


@pytest.mark.parametrize("kind", ["pipeline", "values"])
def test_a_schedule_of_one_front_end_is_none_of_the_other(kind: str) -> None:
    compiled = {"pipeline": by_values(SMALL_MI300X), "values": four_wave()}[kind][0]
    whole = json.loads(to_json(compiled)) | {"kind": kind}
    raised("T204", lambda: from_json(json.dumps(whole)))


def test_a_repair_that_strengthened_a_wait_says_a_weaker_one() -> None:
    whole: dict[str, Any] = json.loads(to_json(four_wave()[0]))
    number, repair = next((n, r) for n, r in enumerate(whole["schedule"]["repairs"]) if r["op"]["kind"] == "wait")
    count = int(repair["op"]["name"].removeprefix("wait_lgkm(").removesuffix(")"))
    for before in (count, count - 1):
        repair["before"] = {"kind": "wait", "name": f"wait_lgkm({before})"}
        repair["count_before"] = before
        message = raised("T204", lambda: from_json(json.dumps(whole))).message
        assert message.startswith(f"schedule.repairs[{number}].before: ")


def changed(change: Callable[[dict[str, Any]], None]) -> str:
    """What is found in the smallest document after a change to its schedule."""
    whole = document()
    change(whole["schedule"])
    return raised("T204", lambda: from_json(json.dumps(whole))).message


def without_its_first(phase: str, op: str) -> Callable[[dict[str, Any]], None]:
    def change(schedule: dict[str, Any]) -> None:
        entries = schedule[phase]
        entries.remove(next(entry for entry in entries if entry["op"]["name"].startswith(op)))
        for slot, entry in enumerate(entries):
            entry["time_slot"] = slot
        schedule["repairs"] = []

    return change


@pytest.mark.parametrize("op", ["wait_vm", "wait_lgkm", "barrier"])
def test_a_certificate_is_proved_again(op: str) -> None:
    message = changed(without_its_first("kernel", op))
    assert message.startswith("schedule.certificate: ")
    assert "R10" in message


def test_a_certificate_with_other_terms_is_refused() -> None:
    message = changed(lambda schedule: schedule["certificate"].update(explicit_trip_counts=99))
    assert message.startswith("schedule.certificate.explicit_trip_counts: ")


def _set(*path: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    def change(schedule: dict[str, Any]) -> None:
        at: Any = schedule
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (_set("kernel", 3, "time_slot", to=4), "kernel[3].time_slot"),
        (_set("kernel", 3, "phase", to="EPILOGUE"), "kernel[3].phase"),
        (_set("kernel", 3, "is_prefetch", to=True), "kernel[3]"),
        (_set("kernel", WAIT, "op", "name", to="wait_vm(99)"), f"kernel[{WAIT}].op.name"),
        (_set("kernel", WAIT, "op", "kind", to="priority"), f"kernel[{WAIT}].op"),
        (_set("kernel", WAIT, "op", "copy", to=1), f"kernel[{WAIT}].op.copy"),
        (_set("kernel", WAIT, "effect", "counter", to="othercnt"), f"kernel[{WAIT}].effect.counter"),
        (_set("kernel", WAIT, "effect", "wait_value", to=-1), f"kernel[{WAIT}].effect.wait_value"),
        (_set("kernel", WAIT, "effect", "kind", to="barrier"), f"kernel[{WAIT}].effect.kind"),
        (_set("kernel", WAIT, "roles", to=[0]), f"kernel[{WAIT}].roles"),
        (_set("kernel", WAIT, "listed", to=False), f"kernel[{WAIT}].listed"),
        (_set("kernel", BARRIER, "effect", "awaits", to=None), f"kernel[{BARRIER}].effect.awaits"),
        (_set("kernel", BARRIER, "effect", "arrives", to="other"), f"kernel[{BARRIER}].effect.arrives"),
        (_set("kernel", 3, "roles", to=[0]), "kernel[3]"),
        (_set("kernel", 3, "effect", to={"kind": "nothing"}), "kernel[3]"),
        (_set("loop", to=None), "loop"),
        (_set("placement", to=None), "placement"),
        (_set("placement", "starts", to=[0]), "placement.starts"),
        (_set("placement", "copies", 0, 1, to=3), "trip_tiles[0]"),
        (_set("placement", "copies", 0, 0, to="c00"), "placement.copies[0]"),
        (_set("placement", "landing_slack", to=10_000), "placement"),
        (_set("placement", "interval", to=1), "trip_tiles[1]"),
        (_set("trip_tiles", to=[2, 10**9]), "epilogue"),
        (_set("trip_tiles", to=[2, 0]), "trip_tiles[1]"),
        (_set("repairs", 0, "slot", to=1000), "repairs[0]"),
        (lambda schedule: schedule["repairs"].append(schedule["repairs"][0]), f"repairs[{REPAIRS}]"),
        (_set("repairs", 0, "op", "name", to="barrier_arrive"), "repairs[0].op.name"),
        (_set("repairs", 0, "op", "kind", to="fence"), "repairs[0].op.kind"),
        (_set("repairs", 0, "count_before", to=3), "repairs[0].count_before"),
        (_set("kernel", 3, "op", "kind", to="nothing"), "kernel[3]"),
        (lambda schedule: schedule["placement"]["copies"].append(["A0", 1]), "placement.copies[0]"),
        (_set("repairs", 0, "before", to={"kind": "barrier", "name": "barrier"}), "repairs[0].before"),
        (_set("prologue", 0, "op", "name", to="load_B1"), "prologue[0]"),
        (_set("prologue", 0, "effect", "writes", to=[]), "prologue[0]"),
        (_set("lds_bytes", to=16), "lds_bytes"),
        (_set("loop", "values", 0, "size", to=2**30), "lds_bytes"),
        (_set("machine", "out_of_order", to=["othercnt"]), "machine.out_of_order[0]"),
        (_set("machine", "out_of_order", to=["vmcnt", "vmcnt"]), "machine.out_of_order"),
        (_set("machine", "name", to="MI999X"), "machine.name"),
        (_set("machine", "arch", to="gfx950"), "machine.arch"),
        (_set("stagger_index", to=3), "stagger_index"),
        (_set("staggered", to=True), "certificate"),
        (_set("edges", to=[]), "edges"),
        (_set("config", to={}), "config"),
        (_set("modulo", "ii", to=1), "modulo.ii"),
        (_set("modulo", "starts", 0, to=9), "modulo.starts[0]"),
        (_set("modulo", "certificate", "lower", to=1), "modulo.certificate.lower"),
        (_set("modulo", "certificate", "mii", "resource", "busy", to=1), "modulo.certificate.mii.resource.busy"),
        (_set("findings", to=[]), "findings"),
    ],
)
def test_parts_that_disagree_are_refused(change: Callable[[dict[str, Any]], None], path: str) -> None:
    assert changed(change).startswith(f"schedule.{path}: ")


def _said(path: str, to: object) -> Callable[[dict[str, Any]], None]:
    return _set(*(int(step) if step.isdigit() else step for step in path.split(".")), to=to)


@pytest.mark.parametrize(
    ("path", "value", "at"),
    [
        ("trip_tiles", [1, 2], "trip_tiles"),
        ("loop", None, "loop"),
        ("lds_bytes", 16, "lds_bytes"),
        ("kernel.3.effect", {"kind": "nothing"}, "kernel[3].effect"),
        ("epilogue.0.is_prefetch", True, "epilogue[0].is_prefetch"),
        ("kernel.0.op.tag", 4000, "kernel[0].op.tag"),
        ("schedule_config.drain_lgkm_mask", 2**4096, "schedule_config.drain_lgkm_mask"),
        ("ordering.makespan", 1, "ordering.makespan"),
        ("ordering.order", [0], "ordering.order"),
        ("ordering.certificate.bound", 1, "ordering.certificate.bound"),
        ("schedule_config.scheduling", "CSP", "ordering"),
        ("config.num_partitions", 10**9, "config"),
        ("program.blocks.0.drain_lgkm_before_loads", True, "program.blocks[0].drain_lgkm_before_loads"),
        ("program.config.m_mmas", 3, "program.config.m_mmas"),
        ("program", None, "program"),
        ("kernel_deps", [], "kernel_deps"),
        ("body.0.stage", 2, "edges"),
        ("edges.0.producer_idx", 9999, "edges"),
        ("config.n_mmas", 4, "body"),
        ("epilogue.1.op.subtile", 7, "epilogue"),
    ],
)
def test_what_follows_from_the_stages_is_derived_again(path: str, value: object, at: str) -> None:
    whole: dict[str, Any] = json.loads(to_json(four_wave()[0]))
    _said(path, value)(whole["schedule"])
    message = raised("T204", lambda: from_json(json.dumps(whole))).message
    assert message.startswith(f"schedule.{at}"), message


def test_a_group_falls_back_inside_the_prologue() -> None:
    whole: dict[str, Any] = json.loads(to_json(ping_pong()[0]))
    whole["schedule"]["warp_stagger_index"] = 1000
    message = raised("T204", lambda: from_json(json.dumps(whole))).message
    assert mentions(message, "schedule.warp_stagger_index", "1000")


def test_data_is_nothing_that_a_repair_adds() -> None:
    whole: dict[str, Any] = json.loads(to_json(four_wave()[0]))
    entry = next(each for each in whole["schedule"]["kernel"] if each["op"]["role"] == "COMPUTE")
    op = {"kind": "mma", "name": str(four_wave()[0].kernel[entry["time_slot"]].op)}
    repair = {"phase": "KERNEL", "slot": entry["time_slot"], "op": op, "before": None, "reason": ""}
    whole["schedule"]["repairs"] = [repair]
    raised("T204", lambda: from_json(json.dumps(whole)))


def test_a_prefetch_is_said_to_be_one() -> None:
    whole: dict[str, Any] = json.loads(to_json(ping_pong()[0]))
    load = next(entry for entry in whole["schedule"]["kernel"] if entry.get("is_prefetch"))
    del load["is_prefetch"]
    message = raised("T204", lambda: from_json(json.dumps(whole))).message
    assert mentions(message, f"schedule.kernel[{load['time_slot']}].is_prefetch", False, True)


def test_an_order_that_was_searched_for_is_not_called_the_authors() -> None:
    knobs = ScheduleConfig(scheduling=SchedulingStrategy.CSP)
    whole: dict[str, Any] = json.loads(to_json(compile_schedule(Small(knobs=knobs))))
    whole["schedule"]["ordering"]["certificate"]["by"] = "identity"
    raised("T204", lambda: from_json(json.dumps(whole)))


def test_both_values_are_told() -> None:
    whole = document()
    told = whole["schedule"]["lds_bytes"]
    whole["schedule"]["lds_bytes"] = 16
    finding = raised("T204", lambda: from_json(json.dumps(whole)))
    assert finding.evidence == (("at", "schedule.lds_bytes"), ("in the document", "16"), ("derived", str(told)))


@pytest.mark.parametrize("number", ["1e999", "NaN", "-Infinity", "99999999999999999999", "-99999999999999999999"])
def test_a_number_that_no_schedule_has_is_refused(number: str) -> None:
    whole = document()
    whole["schedule"]["modulo"]["certificate"]["seconds"] = "here"
    raised("T204", lambda: from_json(json.dumps(whole).replace('"here"', number)))


def test_a_name_that_stands_twice_is_refused() -> None:
    text = json.dumps(document()).replace('"lds_bytes":', '"lds_bytes": 16, "lds_bytes":', 1)
    assert "lds_bytes" in raised("T204", lambda: from_json(text)).message


def test_a_text_that_nobody_can_print_is_refused() -> None:
    assert changed(_set("name", to="\ud800")).startswith("schedule.name: ")


def test_a_name_of_a_tag_stands_for_a_tag_only() -> None:
    whole: dict[str, Any] = json.loads(to_json(four_wave()[0]))
    whole["schedule"]["warp_stagger_index"] = "FrameworkTag.BARRIER"
    message = raised("T204", lambda: from_json(json.dumps(whole))).message
    assert "schedule.warp_stagger_index" in message


@pytest.mark.parametrize("deep", [500, 900, 100_000])
def test_nesting_has_an_end(deep: int) -> None:
    text = json.dumps(document()).replace('"repairs":', f'"repairs": {"[" * deep}{"]" * deep}, "more":')
    raised("T204", lambda: from_json(text))


def test_a_document_is_read_in_bounded_time() -> None:
    whole = document()
    barrier = whole["schedule"]["kernel"][BARRIER]
    whole["schedule"]["kernel"] = ["here"]
    text = json.dumps(whole).replace('"here"', ",".join([json.dumps(barrier)] * 300_000))
    started = process_time()
    assert "300000 elements" in raised("T204", lambda: from_json(text)).message
    assert process_time() - started < 20


@pytest.mark.parametrize("path", [("loop", "ops"), ("loop", "values"), ("placement", "copies")])
def test_what_is_compared_each_with_each_has_a_limit(path: tuple[str, ...]) -> None:
    assert changed(_set(*path, to=[{}] * 4097)).startswith(f"schedule.{'.'.join(path)}: 4097 elements")


def test_a_body_has_a_limit() -> None:
    whole: dict[str, Any] = json.loads(to_json(four_wave()[0]))
    whole["schedule"]["body"] = [{}] * 4097
    assert raised("T204", lambda: from_json(json.dumps(whole))).message.startswith("schedule.body: 4097 elements")


def test_a_text_has_a_limit() -> None:
    raised("T204", lambda: from_json(" " * 2**26 + "{}"))
