"""Malicious files, through the whole service: each fails without an effect on other files."""
import pytest
from PIL import PngImagePlugin

import bombs
import marks
import pictures
from remotes import Remotes


@pytest.fixture(scope="module")
def outcome(client):
    """An order with all malicious files and a valid one; returns the error code of each file."""
    made = {name: row for name, row in bombs.bombs().items() if row[1] != bombs.REFUSED}
    files = [(name, data) for name, (data, _) in made.items()] + [("good.jpg", pictures.jpeg(96, 80))]
    order = client.order_whole(files, 240)
    failed = {file["fileName"]: file["error"] and file["error"]["code"] for file in order["files"]}
    return made, order, failed


def refused():
    return {name: data for name, (data, code) in bombs.bombs().items() if code == bombs.REFUSED}


def test_uploads_that_no_memory_holds_are_refused_by_their_header(client):
    files = refused()
    created = client.create(list(files))
    for file, (name, data) in zip(created.data["files"], files.items()):
        answer = client.upload(file["uploadUrl"], data)
        assert answer.status == 413 and answer.json["code"] == bombs.REFUSED, (name, answer)
        assert answer.json["message"].startswith(f"{name}: The picture is "), answer


def test_by_url_they_fail_alone(client):
    """Sources are checked like uploads, and the sealed process refuses files without a header."""
    remotes, files = Remotes(), refused()
    remotes.gives = {f"/{number}": data for number, data in enumerate(files.values())} | {"/good": pictures.jpeg(96, 80)}
    created = client.create([{"fileName": name, "imageUrl": remotes.url(f"/{number}")} for number, name in enumerate(files)]
                            + [{"fileName": "good.jpg", "imageUrl": remotes.url("/good")}], kind="anti-ai/with-urls")
    order = client.wait(created.data["orderId"])
    remotes.close()
    codes = {file["fileName"]: file["error"] and file["error"]["code"] for file in order["files"]}
    assert codes == dict.fromkeys(files, "IMAGE_TOO_LARGE") | {"good.jpg": None}


def test_each_fails_alone_or_is_processed(outcome):
    made, order, failed = outcome
    wanted = {name: code for name, (_, code) in made.items()}
    assert {name: failed[name] for name in wanted} == wanted
    assert order["status"] == "complete" and failed["good.jpg"] is None


def test_none_of_them_killed_a_process_or_took_too_long(outcome):
    _, order, _ = outcome
    assert not [line for line in order["errors"].splitlines() if "PROCESSING" in line]


def test_every_result_is_a_complete_picture(client, outcome, monkeypatch):
    """Metadata are kept, even if they decompress to much. This reader is configured to accept them."""
    monkeypatch.setattr(PngImagePlugin, "MAX_TEXT_CHUNK", 1 << 30)
    monkeypatch.setattr(PngImagePlugin, "MAX_TEXT_MEMORY", 1 << 30)
    made, order, _ = outcome
    good = {name for name, (_, code) in made.items() if code is None} | {"good.jpg"}
    results = dict(marks.results(client, order["orderId"]))
    assert set(results) == good
    for name, data in results.items():
        assert pictures.decode(data).size == (96, 80), name


