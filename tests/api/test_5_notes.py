"""Contract 5: a file's note has the facts that a client should know about a complete result."""
import json

import pytest

import pictures
from image_proxy import proxied
from marks import embedded, extract
from remotes import Remotes
from test_zero_copy import later

CODE = "METADATA_LEFT_OUT"


@pytest.fixture(scope="module")
def stack_with_notes(stack, tmp_path_factory):
    """A worker whose image processes add a note to each answer; a function sets the note."""
    with proxied(stack, tmp_path_factory.mktemp("notes"), processes=1) as set:
        yield lambda message, code=CODE, is_mapped=False: set(note={"code": code, "message": message}, is_mapped=is_mapped)


def notes(order):
    return [file["note"] for file in order["files"]]


def test_without_a_note_the_member_is_null(client, png):
    assert notes(client.order_whole([("a.png", png)])) == [None]


def test_a_note_of_the_image_process_reaches_the_client(client, stack_with_notes, jpeg):
    message = "The profile “Größe” was left out."
    stack_with_notes(message)
    order = client.order_whole([("a.jpg", jpeg), ("b.png", pictures.png(200, 200))])
    assert order["status"] == "complete" and order["errors"] is None
    assert notes(order) == [{"code": CODE, "message": message, "parts": []}] * 2
    assert [file["error"] for file in order["files"]] == [None, None]


def test_the_first_note_of_several_copies_is_kept(client, stack, stack_with_notes):
    stack_with_notes("Job JOB.")
    order = embedded(client, [("a.jpg", pictures.jpeg(400, 300, seed=5), ["one", "two", "three"])])
    assert order["status"] == "complete", order
    jobs = [row[0] for row in stack.sql(f"SELECT id FROM jobs WHERE order_id = {order['orderId']} AND kind = 'embed' "
                                        "ORDER BY updated_at, id")]
    assert len(jobs) == 3 and notes(order) == [{"code": CODE, "message": f"Job {jobs[0]}.", "parts": []}]


def test_an_extraction_has_notes_too(client, stack_with_notes):
    stack_with_notes("Read with care.")
    marked = embedded(client, [("a.jpg", pictures.jpeg(600, 450, seed=6), ["for Ada"])])
    data = client.download(marked["orderId"]).body
    order = extract(client, data)
    assert order["status"] == "detected" and notes(order) == [{"code": CODE, "message": "Read with care.", "parts": []}]


def test_a_zero_copy_order_has_its_notes(client, stack_with_notes):
    stack_with_notes("Smaller than asked.")
    remotes = Remotes()
    try:
        remotes.gives["/a.jpg"] = pictures.jpeg(300, 200, seed=7)
        created = client.create([{"fileName": "a.jpg", "imageUrl": remotes.url("/a.jpg")}], kind="anti-ai/with-urls",
                                mode={"zeroCopy": True}, outputTargets=[
                                    {"fileKey": "k", "url": remotes.url("/out"), "presignedUrlExpiresAt": later()}])
        order = client.wait(created.data["orderId"])
        assert order["status"] == "complete" and len(remotes.put["/out"]) == 1
        assert notes(order) == [{"code": CODE, "message": "Smaller than asked.", "parts": []}]
    finally:
        remotes.close()


@pytest.mark.parametrize("code, message", [("", "No code."), ("lower case", "No code."), (CODE, ""), (CODE, "a\nb")])
def test_an_invalid_note_is_not_shown(client, stack_with_notes, png, code, message):
    """The output of an image process is checked, because a picture may have taken control of the process."""
    stack_with_notes(message, code)
    order = client.order_whole([("a.png", png)])
    assert order["status"] == "complete" and notes(order) == [None]


def test_the_operator_sees_the_note(client, stack, stack_with_notes, jpeg):
    stack_with_notes("Look here.")
    order = client.order_whole([("a.jpg", jpeg)])["orderId"]
    [file] = json.loads(stack.ctl("order", "show", "--json", order))["files"]
    assert (file["note"], file["noteText"]) == (CODE, "Look here.")


def test_a_result_that_the_image_process_can_still_change_is_not_stored(client, stack, stack_with_notes, jpeg):
    stack_with_notes("Unsealed.", is_mapped=True)
    with stack.configured("worker", "retry_first_ms", "50"):
        order = client.order_whole([("a.jpg", jpeg)])
    assert order["status"] == "failed" and stack.stored(order["orderId"]) == [], order
