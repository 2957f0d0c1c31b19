"""Malicious files, through the whole service: each one only affects itself."""
import pytest
from PIL import PngImagePlugin

import bombs
import marks
import pictures


@pytest.fixture(scope="module")
def outcome(client):
    """One order with all of them and a valid file; the error code of each file."""
    made = bombs.bombs()
    files = [(name, data) for name, (data, _) in made.items()] + [("good.jpg", pictures.jpeg(96, 80))]
    order = client.order_whole(files, 240)
    failed = {file["fileName"]: file["error"] and file["error"]["code"] for file in order["files"]}
    return made, order, failed


def test_each_fails_alone_or_is_processed(outcome):
    made, order, failed = outcome
    wanted = {name: code for name, (_, code) in made.items()}
    assert {name: failed[name] for name in wanted} == wanted
    assert order["status"] == "complete" and failed["good.jpg"] is None


def test_none_of_them_killed_a_process_or_took_too_long(outcome):
    _, order, _ = outcome
    assert not [line for line in order["errors"].splitlines() if "PROCESSING" in line]


def test_every_result_is_a_complete_picture(client, outcome, monkeypatch):
    """Metadata are kept, also those that decompress to much; this reader is configured to accept them."""
    monkeypatch.setattr(PngImagePlugin, "MAX_TEXT_CHUNK", 1 << 30)
    monkeypatch.setattr(PngImagePlugin, "MAX_TEXT_MEMORY", 1 << 30)
    made, order, _ = outcome
    good = {name for name, (_, code) in made.items() if code is None} | {"good.jpg"}
    results = dict(marks.results(client, order["orderId"]))
    assert set(results) == good
    for name, data in results.items():
        assert pictures.decode(data).size == (96, 80), name


