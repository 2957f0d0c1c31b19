"""Contract section 3 and 3.1: idempotency, names, files, options of anti-AI orders."""
import concurrent.futures
import datetime
import uuid

import pytest

from client import ORDERS

EXPIRY = (datetime.datetime.utcnow() + datetime.timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def validation(answer, field):
    assert answer.status == 400 and answer.code == "VALIDATION_FAILED", answer
    assert field in answer.fields(), answer


def test_a_creation_returns_everything_needed_to_upload(client, stack):
    data = client.create(["one.jpg", "two.PNG", "three.webp", "four.JPEG"], orderName="holiday").data
    assert data["orderName"] == "holiday" and data["status"] == "pending"
    assert [file["fileName"] for file in data["files"]] == ["one.jpg", "two.PNG", "three.webp", "four.JPEG"]
    for file in data["files"]:
        assert isinstance(file["fileId"], int)
        assert file["uploadUrl"].startswith(stack.url + "/")
        assert file["fileKey"] and file["uploadUrlExpiresAt"]
        assert "originalFileUrl" not in file
    assert len({file["fileKey"] for file in data["files"]}) == 4


def test_the_same_key_and_body_return_the_existing_order(client):
    key = uuid.uuid4().hex
    first, second = client.create(key=key), client.create(key=key)
    assert (first.status, second.status) == (201, 200)
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    assert first.data["orderId"] == second.data["orderId"]
    assert second.data["files"][0]["uploadUrl"] and second.data["files"][0]["fileKey"] == first.data["files"][0]["fileKey"]


def test_the_order_of_members_does_not_make_another_body(client):
    key = uuid.uuid4().hex
    one = client.post(f"{ORDERS}/anti-ai", '{"idempotencyKey":"%s","files":[{"fileName":"a.jpg"}],"orderName":"n"}' % key,
                      headers={"Content-Type": "application/json"})
    two = client.post(f"{ORDERS}/anti-ai", '{ "orderName": "n", "files": [ {"fileName": "a.jpg"} ], "idempotencyKey": "%s" }' % key,
                      headers={"Content-Type": "application/json"})
    assert (one.status, two.status) == (201, 200)


@pytest.mark.parametrize("change", [{"orderName": "other"}, {"files": ["b.jpg"]}, {"options": {"strength": "low"}},
                                    {"files": ["a.jpg", "b.jpg"]}])
def test_the_same_key_with_another_body_is_409(client, change):
    key = uuid.uuid4().hex
    assert client.create(key=key).status == 201
    answer = client.create(**{"files": ["a.jpg"], "key": key, **change})
    assert answer.status == 409 and answer.code == "IDEMPOTENCY_KEY_REUSED", answer


def test_a_key_belongs_to_its_account(client, stranger):
    key = uuid.uuid4().hex
    one, two = client.create(key=key), stranger.create(key=key)
    assert (one.status, two.status) == (201, 201)
    assert one.data["orderId"] != two.data["orderId"]


def test_a_refused_request_burns_no_key(client):
    key = uuid.uuid4().hex
    assert client.create(["a.gif"], key=key).status == 400
    assert client.create(["a.jpg"], key=key).status == 201


def test_24_concurrent_duplicates_make_one_order(client):
    key = uuid.uuid4().hex
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda _: client.create(["a.jpg", "b.png"], key=key), range(24)))
    statuses = sorted(answer.status for answer in answers)
    assert statuses == [200] * 23 + [201], statuses
    assert len({answer.data["orderId"] for answer in answers}) == 1


def test_concurrent_bodies_that_differ_make_one_order(client):
    key = uuid.uuid4().hex
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda number: client.create([f"{number}.jpg"], key=key), range(12)))
    statuses = sorted(answer.status for answer in answers)
    assert statuses == [201] + [409] * 11, statuses


@pytest.mark.parametrize("key", ["", "x" * 256, "a\u0007b", "tab\there", None, 5])
def test_idempotency_keys_out_of_bounds_are_refused(client, key):
    answer = client.post(f"{ORDERS}/anti-ai", {"idempotencyKey": key, "files": [{"fileName": "a.jpg"}]})
    validation(answer, "idempotencyKey")


def test_an_idempotency_key_is_required(client):
    validation(client.post(f"{ORDERS}/anti-ai", {"files": [{"fileName": "a.jpg"}]}), "idempotencyKey")


def test_an_idempotency_key_of_255_characters_is_accepted(client):
    assert client.create(key=uuid.uuid4().hex + "x" * 223).status == 201


def test_idempotency_keys_are_compared_exactly(client):
    key = "Key-" + uuid.uuid4().hex
    orders = [client.create(key=name).data["orderId"] for name in (key, key.lower(), key + " ", key + "é", key + "e")]
    assert len(set(orders)) == 5


def test_an_order_without_a_name_gets_the_day(client):
    before = datetime.datetime.utcnow()
    name = client.create().data["orderName"]
    assert name in {day.strftime("anti_ai_%Y-%m-%d") for day in (before, datetime.datetime.utcnow())}  # midnight may pass during the test


@pytest.mark.parametrize("name, good", [("x" * 64, True), ("ü" * 64, True), ("😀" * 64, True), ("x" * 65, False), ("😀" * 65, False)])
def test_order_names_have_64_code_points(client, name, good):
    answer = client.create(orderName=name)
    if good:
        assert answer.status == 201 and client.detail(answer.data["orderId"]).data["orderName"] == name
    else:
        validation(answer, "orderName")


@pytest.mark.parametrize("count, good", [(0, False), (1, True), (100, True), (101, False)])
def test_an_order_has_1_to_100_files(client, count, good):
    answer = client.create([f"{number}.jpg" for number in range(count)])
    if good:
        assert answer.status == 201 and len(answer.data["files"]) == count
    else:
        validation(answer, "files")


def test_files_are_required(client):
    validation(client.post(f"{ORDERS}/anti-ai", {"idempotencyKey": uuid.uuid4().hex}), "files")


@pytest.mark.parametrize("name", ["", ".jpg", "a", "a.gif", "a.jpg.exe", "a/b.jpg", "a\\b.jpg", "a\nb.jpg", "a\u0000b.jpg",
                                  "a\u007fb.jpg", "x" * 252 + ".jpg", "é" * 126 + ".jpg", "../../etc/passwd", "jpg"])
def test_file_names_out_of_bounds_are_refused(client, name):
    validation(client.create([name]), "files[0].fileName")


@pytest.mark.parametrize("name", ["a.jpg", "A.JPG", "x" * 251 + ".jpg", "é" * 125 + ".jpg", "日本.webp", "a b (1).jpeg", "..png.png",
                                  "quote\".png", "per%20cent.png", "😀.png"])
def test_file_names_within_bounds_are_kept(client, name):
    answer = client.create([name])
    assert answer.status == 201, answer
    assert answer.data["files"][0]["fileName"] == name
    assert client.detail(answer.data["orderId"]).data["files"][0]["fileName"] == name


def test_duplicate_names_within_an_order_are_allowed(client):
    data = client.create(["a.jpg", "a.jpg"]).data
    assert data["files"][0]["fileKey"] != data["files"][1]["fileKey"]


@pytest.mark.parametrize("fields", [{}, {"options": None}, {"options": {}}, {"options": {"strength": None}}])
def test_strength_is_standard_where_none_is_given(client, stack, fields):
    order = client.create(**fields).data["orderId"]
    assert stack.sql(f"SELECT strength FROM orders WHERE id = {order}") == [["standard"]]


@pytest.mark.parametrize("strength, good", [("low", True), ("standard", True), ("high", True), ("HIGH", False), ("", False), ("max", False)])
def test_strength_is_one_of_three(client, strength, good):
    answer = client.create(options={"strength": strength})
    if good:
        assert answer.status == 201
    else:
        validation(answer, "options.strength")


def target(key="k", url="https://bucket.example/put", expiry=EXPIRY):
    return {"fileKey": key, "url": url, "presignedUrlExpiresAt": expiry}


def test_zero_copy_needs_as_many_targets_as_files(client):
    mode = {"zeroCopy": True}
    validation(client.create(["a.jpg", "b.jpg"], mode=mode), "outputTargets")
    validation(client.create(["a.jpg", "b.jpg"], mode=mode, outputTargets=[target()]), "outputTargets")
    assert client.create(["a.jpg", "b.jpg"], mode=mode, outputTargets=[target("k1"), target("k2")]).status == 201


@pytest.mark.parametrize("wrong, field", [
    ({"fileKey": "k", "url": "https://b.example/"}, "presignedUrlExpiresAt"),
    (target(expiry="2020-01-01T00:00:00.000Z"), "presignedUrlExpiresAt"), (target(expiry="tomorrow"), "presignedUrlExpiresAt"),
    (target(url="ftp://b.example/"), "url"), (target(url="/put"), "url"), (target(url="https://u:p@b.example/"), "url"),
    (target(url="https://b.example/" + "x" * 2048), "url"), (target(url="https://"), "url"), (target(url="https://b.example/ä"), "url"), (target(key=""), "fileKey"),
    (target(expiry="9999-12-31T23:59:59-23:59"), "presignedUrlExpiresAt"),
    ({"url": "https://b.example/", "presignedUrlExpiresAt": EXPIRY}, "fileKey")])
def test_output_targets_are_checked_whole(client, wrong, field):
    answer = client.create(mode={"zeroCopy": True}, outputTargets=[wrong])
    validation(answer, f"outputTargets[0].{field}")


def test_a_replay_is_answered_though_the_time_of_its_targets_is_over(client, stack):
    """If a client missed the response, it may repeat the request after the presigned URLs have expired."""
    wish = {"key": uuid.uuid4().hex, "mode": {"zeroCopy": True}, "outputTargets": [target()]}
    created = client.create(**wish)
    assert created.status == 201, created
    with stack.configured("test", "clock_offset_s", "10800"):  # after EXPIRY, which is in two hours
        again = client.create(**wish)
        assert again.status == 200 and again.data["orderId"] == created.data["orderId"], again
        reused = client.create(**{**wish, "orderName": "other"})
        assert reused.status == 409, reused
        answer = client.create(**{**wish, "key": uuid.uuid4().hex})
        validation(answer, "outputTargets[0].presignedUrlExpiresAt")
        answer = client.create(**{**wish, "key": uuid.uuid4().hex, "orderName": ""})
        assert sorted(answer.fields()) == ["orderName", "outputTargets[0].presignedUrlExpiresAt"], answer


def test_a_creation_that_was_refused_leaves_nothing(client):
    before = client.list().page["totalItems"]
    client.create(["a.jpg", "b.gif"])
    assert client.list().page["totalItems"] == before
