"""A host with little memory refuses a picture that it cannot hold, and names the size that it can."""
import contextlib
import re

import pytest

import bombs
import pictures
from remotes import Remotes

# A PNG of 24 megapixels and 16 bits needs 415 MB while it is encoded; the header is enough to refuse it.
LARGE = bombs.png(6000, 4000, 16, 2)
SENTENCE = re.compile(r"The picture is 6000 x 4000 px and needs about (\d+) MiB to be processed; 224 MiB are allowed\. "
                      r"Scale it to (\d+) x (\d+) px or less\.")


@contextlib.contextmanager
def host_of(stack, mib):
    """API and worker of a host whose image processes have this much memory."""
    def restart():
        for part in ("worker", "api"):
            stack.part("stop", part)
            stack.part("start", part)
    with stack.configured("image", "memory_max_bytes", str(mib << 20)):
        restart()
        yield
    restart()


@pytest.fixture(scope="module", autouse=True)
def small(stack):
    with host_of(stack, 256):
        yield


@pytest.mark.parametrize("kind", ["anti-ai", "wtr-embed"])
def test_an_upload_that_the_host_cannot_hold_is_refused_with_the_size_that_fits(client, kind):
    texts = {"watermarks": [{"text": "to Ada"}]} if kind == "wtr-embed" else {}
    created = client.create([{"fileName": "large.png", **texts}, {"fileName": "good.jpg", **texts}], kind=kind)
    assert created.status == 201, created
    large, good = [file["uploadUrl"] for file in created.data["files"]]
    assert client.upload(good, pictures.jpeg(320, 280)).status == 201
    answer = client.upload(large, LARGE)
    assert answer.status == 413 and answer.json["code"] == "PAYLOAD_TOO_LARGE", answer
    name, sentence = answer.json["message"].split(": ", 1)
    needed, width, height = map(int, SENTENCE.fullmatch(sentence).groups())
    assert name == "large.png" and needed > 224 and 3000 < width < 6000 and abs(width * 2 - height * 3) < 6
    # The URL accepts a smaller picture, and the order completes.
    assert client.upload(large, pictures.png(320, 280)).status == 201
    assert client.confirm(created.data["orderId"]).status == 200
    assert client.wait(created.data["orderId"])["status"] == "complete"


def test_a_source_that_the_host_cannot_hold_fails_alone_and_at_once(client):
    remotes = Remotes()
    remotes.gives = {"/large.png": LARGE, "/good.jpg": pictures.jpeg(320, 240)}
    created = client.create([{"fileName": "large.png", "imageUrl": remotes.url("/large.png")},
                             {"fileName": "good.jpg", "imageUrl": remotes.url("/good.jpg")}], kind="anti-ai/with-urls")
    order = client.wait(created.data["orderId"])
    remotes.close()
    assert order["status"] == "complete" and len(remotes.asked) == 2, remotes.asked
    name, code, sentence = order["errors"].split(": ", 2)
    assert (name, code) == ("large.png", "IMAGE_TOO_LARGE") and SENTENCE.fullmatch(sentence), order["errors"]


def test_the_values_in_effect_are_printed(stack):
    shown = stack.ctl("config", "check").splitlines()
    assert "image.memory_max_bytes = 268435456" in shown
    assert {line.split(" = ")[0] for line in shown[1:]} == {"api.processes", "console.processes", "worker.processes",
                                                            "image.memory_max_bytes"}
    assert all(int(line.split(" = ")[1]) > 0 for line in shown[1:]), shown


def test_doctor_says_what_fits(stack):
    memory = next(line for line in stack.ctl("doctor", check=False).splitlines() if line.startswith("memory"))
    assert re.search(r"fits: \d+ image process(es)? of 256 MiB, .*; JPEG up to 24 megapixels \(antiAi\), 58 \(watermarkEmbed\)",
                     memory), memory
