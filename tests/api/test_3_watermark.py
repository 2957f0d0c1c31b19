"""Contract 3.2, 3.4 and 3.5, before processing: accepted and refused creations."""
import concurrent.futures
import uuid

import pytest

import pictures
from client import ORDERS, until_served


def embed(client, files=None, **fields):
    files = files or [{"fileName": "a.jpg", "watermarks": [{"text": "for Ada"}]}]
    return client.create(files, kind="wtr-embed", **fields)


def extract(client, key=None, beside=None, **file):
    """Creates an extraction of file; beside has additional members."""
    return client.post(f"{ORDERS}/wtr-extract", {"idempotencyKey": key or uuid.uuid4().hex, "file": file, **(beside or {})})


def test_an_embedding_order_answers_the_fields_of_the_contract(client):
    answer = embed(client, [{"fileName": "a.JPEG", "watermarks": [{"text": "x"}]},
                            {"fileName": "b.webp", "watermarks": [{"text": "y"}]}])
    assert answer.status == 201 and answer.data["status"] == "pending"
    first, second = answer.data["files"]
    assert isinstance(first["fileId"], str) and first["fileName"] == "a.JPEG"
    assert (first["fileFormat"], first["fileType"], second["fileFormat"]) == ("JPG", "IMG", "WEBP")
    assert first["uploadUrl"].startswith(client.stack.url) and first["fileKey"].startswith("in/")
    assert answer.data["orderName"].startswith("wtr_embed_2")


def test_the_texts_of_an_order_are_shown_byte_for_byte(client):
    text = "Zoë — \"quoted\" \\ 𝄞"
    order = embed(client, [{"fileName": "a.jpg", "watermarks": [{"text": text}, {"text": "two"}]}]).data["orderId"]
    data = client.detail(order).data
    assert data["watermarks"] == [text, "two"] and data["files"][0]["watermarks"] == [text, "two"]


def test_each_text_is_shown_once_for_the_order_and_with_each_of_its_files(client):
    def marks(*texts):
        return [{"text": text} for text in texts]
    order = embed(client, [{"fileName": "a.jpg", "watermarks": marks("one", "two", "one")},
                           {"fileName": "a.jpg", "watermarks": marks("three", "two")},
                           {"fileName": "c.jpg", "watermarks": marks("One")}]).data["orderId"]
    data = client.detail(order).data
    assert data["watermarks"] == ["one", "two", "three", "One"]
    assert [file["watermarks"] for file in data["files"]] == [["one", "two", "one"], ["three", "two"], ["One"]]


def test_texts_of_the_order_apply_to_files_without_texts(client):
    order = embed(client, [{"fileName": "a.jpg"}, {"fileName": "b.jpg", "watermarks": [{"text": "own"}]}],
                  watermarks=[{"text": "common"}]).data["orderId"]
    data = client.detail(order).data
    assert [(file["fileName"], file["watermarks"]) for file in data["files"]] == [("a.jpg", ["common"]), ("b.jpg", ["own"])]
    assert data["watermarks"] == ["common", "own"]


@pytest.mark.parametrize("marks, field", [
    (None, "files[0].watermarks"), ([], "files[0].watermarks"), ([{"text": "x"}] * 11, "files[0].watermarks"),
    ("x", "files[0].watermarks"), (["x"], "files[0].watermarks[0]"), ([{}], "files[0].watermarks[0].text"),
    ([{"text": ""}], "files[0].watermarks[0].text"), ([{"text": "x" * 1001}], "files[0].watermarks[0].text"),
    ([{"text": "ok"}, {"text": "a\nb"}], "files[0].watermarks[1].text"), ([{"text": 7}], "files[0].watermarks[0].text")])
def test_watermarks_are_one_to_ten_texts_without_control_characters(client, marks, field):
    answer = embed(client, [{"fileName": "a.jpg", "watermarks": marks}])
    assert answer.status == 400 and answer.code == "VALIDATION_FAILED" and answer.fields() == [field], answer


def test_every_bad_field_of_an_embedding_order_is_named(client):
    answer = embed(client, [{"fileName": "a.gif"}, {"fileName": "b.jpg", "watermarks": [{"text": ""}]}, 7])
    assert set(answer.fields()) == {"files[0].fileName", "files[0].watermarks",
                                     "files[1].watermarks[0].text", "files[2].fileName", "files[2].watermarks"}


def test_the_limit_of_a_thousand_counts_characters_not_bytes(client):
    assert embed(client, [{"fileName": "a.jpg", "watermarks": [{"text": "𝄞" * 1000}]}]).status == 201


def test_concurrent_orders_register_their_common_texts_once(client, stack):
    """The texts have a different order in each request, so that transactions deadlock."""
    texts = [f"recipient {number} {uuid.uuid4().hex}" for number in range(10)]

    def create(turn):
        marks = [{"text": text} for text in texts[turn:] + texts[:turn]]
        files = [{"fileName": "a.jpg", "watermarks": marks[:5]}, {"fileName": "b.jpg", "watermarks": marks[5:]}]
        return until_served(lambda: client.create(files, kind="wtr-embed"), 201)  # a request that lost too many deadlocks gets 503
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(create, range(10)))
    known = ", ".join(f"'{text}'" for text in texts)
    assert stack.sql(f"SELECT COUNT(*) FROM watermark_texts WHERE text IN ({known})") == [["10"]]
    assert client.detail(answers[3].data["orderId"]).data["watermarks"] == texts[3:] + texts[:3]


def test_the_key_of_another_order_type_is_another_key(client):
    key = uuid.uuid4().hex
    assert client.create(["a.jpg"], key=key).status == 201
    assert embed(client, key=key).status == 201
    replay = embed(client, key=key)
    assert replay.status == 200 and replay.headers["Idempotent-Replayed"] == "true"


def test_an_extraction_order_answers_one_file(client):
    answer = extract(client, fileName="suspect.png")
    assert answer.status == 201 and answer.data["status"] == "pending"
    file = answer.data["file"]
    assert file["fileFormat"] == "PNG" and "originalFile" not in file and isinstance(file["fileId"], str)
    assert answer.data["orderName"].startswith("wtr_extract_2")


def test_an_extraction_with_its_original_gets_a_second_upload(client):
    answer = extract(client, fileName="suspect.png", includeOriginal=True, originalFile={"fileName": "first.jpg"})
    original = answer.data["file"]["originalFile"]
    assert original["fileName"] == "first.jpg" and original["fileFormat"] == "JPG"
    assert original["uploadUrl"] != answer.data["file"]["uploadUrl"]


WITH = {"includeOriginal": True}
FIRST = {"originalFile": {"fileName": "first.jpg"}}


@pytest.mark.parametrize("beside, inside", [
    ({**WITH, **FIRST}, {}), (WITH, FIRST), (FIRST, WITH), ({**WITH, **FIRST}, {**WITH, **FIRST}),
    ({**WITH, **FIRST}, {"includeOriginal": None, "originalFile": None})])
def test_the_original_may_be_requested_inside_or_outside_the_file(client, beside, inside):
    answer = extract(client, beside=beside, fileName="suspect.png", **inside)
    assert answer.status == 201, answer
    assert answer.data["file"]["originalFile"]["fileName"] == "first.jpg"


@pytest.mark.parametrize("beside, inside, fields", [
    (WITH, {"includeOriginal": False, **FIRST}, ["includeOriginal"]),
    ({"includeOriginal": False}, {**WITH, **FIRST}, ["includeOriginal"]),
    ({"originalFile": {"fileName": "other.jpg"}}, {**WITH, **FIRST}, ["originalFile.fileName"]),
    (FIRST, {}, ["originalFile"]), (FIRST, {"includeOriginal": False}, ["originalFile"]),
    ({}, FIRST, ["file.originalFile"]), ({"includeOriginal": False}, FIRST, ["file.originalFile"]),
    (WITH, {}, ["file.originalFile"]), ({"includeOriginal": "true"}, FIRST, ["includeOriginal"]),
    ({"originalFile": 7}, WITH, ["originalFile"]), ({**WITH, "originalFile": {}}, {}, ["originalFile.fileName"]),
    ({**WITH, "originalFile": {"fileName": "x.exe"}}, {}, ["originalFile.fileName"])])
def test_contradictions_are_refused_with_the_fields_name(client, beside, inside, fields):
    answer = extract(client, beside=beside, fileName="suspect.png", **inside)
    assert answer.status == 400 and answer.code == "VALIDATION_FAILED" and answer.fields() == fields, answer


@pytest.mark.parametrize("body, fields", [
    ({}, ["file"]), ({"file": 3}, ["file"]), ({"file": {}}, ["file.fileName"]),
    ({"file": {"fileName": "a.jpg", "includeOriginal": True}}, ["file.originalFile"]),
    ({"file": {"fileName": "a.jpg", "includeOriginal": 1}}, ["file.includeOriginal"]),
    ({"file": {"fileName": "a.jpg", "originalFile": "o.jpg"}}, ["file.originalFile"]),
    ({"file": {"fileName": "a.jpg", "includeOriginal": True, "originalFile": {"fileName": "x.exe"}}},
     ["file.originalFile.fileName"])])
def test_bad_fields_of_an_extraction_are_named(client, body, fields):
    answer = client.post(f"{ORDERS}/wtr-extract", {"idempotencyKey": uuid.uuid4().hex, **body})
    assert answer.status == 400 and answer.fields() == fields, answer


def test_confirming_before_the_uploads_names_each_missing_file(client):
    order = extract(client, fileName="s.png", includeOriginal=True, originalFile={"fileName": "o.jpg"}).data["orderId"]
    answer = client.confirm(order)
    assert answer.code == "ORDER_FILE_NOT_UPLOADED"
    assert set(answer.fields()) == {"file.fileName", "file.originalFile.fileName"}


def test_with_urls_needs_a_url_for_every_file(client):
    answer = client.create([{"fileName": "a.jpg"}, {"fileName": "b.jpg", "imageUrl": "ftp://h/x"}], kind="anti-ai/with-urls")
    assert answer.status == 400 and answer.fields() == ["files[0].imageUrl", "files[1].imageUrl"]


@pytest.mark.parametrize("url", ["https://user@h.example/a", "h.example/a", "https://h.example/" + "a" * 2048,
                                 "https://h.example/ a", "javascript:alert(1)", "https://", 7, "https://h.example/ä.jpg",
                                 "https://münchen.example/a.jpg", "https://h.example/😀"])
def test_a_source_url_is_absolute_short_and_without_userinfo(client, url):
    answer = client.create([{"fileName": "a.jpg", "originalFileUrl": url}])
    assert answer.status == 400 and answer.fields() == ["files[0].originalFileUrl"], answer


def test_refresh_lists_the_original_of_an_extraction_too(client):
    order = extract(client, fileName="s.png", includeOriginal=True, originalFile={"fileName": "o.jpg"}).data["orderId"]
    names = [file["fileName"] for file in client.post(f"{ORDERS}/{order}/refresh-urls").data["files"]]
    assert names == ["s.png", "o.jpg"]


def test_embedding_starts_by_itself_when_its_last_upload_is_in(client):
    marks = [{"text": "x"}]
    answer = embed(client, [{"fileName": "a.png", "watermarks": marks}, {"fileName": "b.png", "watermarks": marks}])
    first, second = answer.data["files"]
    assert client.upload(first["uploadUrl"], pictures.png(300, 300)).status == 201
    assert client.detail(answer.data["orderId"]).data["status"] == "pending"
    assert client.upload(second["uploadUrl"], pictures.png(300, 300)).status == 201
    assert client.detail(answer.data["orderId"]).data["status"] != "pending"
    assert client.upload(first["uploadUrl"], pictures.png(300, 300)).code == "ORDER_ALREADY_STARTED"
