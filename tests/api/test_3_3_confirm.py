"""Contract section 3.3: confirming."""
import concurrent.futures
import uuid

from client import ORDERS


def test_confirming_starts_the_order(client, jpeg):
    created = client.create().data
    client.upload(created["files"][0]["uploadUrl"], jpeg)
    answer = client.confirm(created["orderId"])
    assert answer.status == 200
    assert answer.data["orderId"] == created["orderId"]
    assert answer.data["status"] in ("inProgress", "complete")
    assert client.wait(created["orderId"])["status"] == "complete"


def test_missing_files_are_named_each(client, jpeg):
    created = client.create(["a.jpg", "b.jpg", "c.jpg"]).data
    client.upload(created["files"][1]["uploadUrl"], jpeg)
    answer = client.confirm(created["orderId"])
    assert answer.status == 400 and answer.code == "ORDER_FILE_NOT_UPLOADED", answer
    text = answer.body.decode()
    assert len(answer.json["details"]) == 2 and "a.jpg" in text and "c.jpg" in text and "b.jpg" not in text
    assert client.detail(created["orderId"]).data["status"] == "pending"


def test_confirming_again_starts_nothing(client, jpeg, stack):
    created = client.create().data
    client.upload(created["files"][0]["uploadUrl"], jpeg)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.confirm(created["orderId"]), range(8)))
    assert {answer.status for answer in answers} == {200}
    client.wait(created["orderId"])
    again = client.confirm(created["orderId"])
    assert again.status == 200 and again.data["status"] == "complete"
    data = client.detail(created["orderId"]).data
    assert data["completedFileCount"] == 1


def test_an_order_that_is_not_there_is_404(client):
    answer = client.confirm(12345)
    assert answer.status == 404 and answer.code == "ORDER_NOT_FOUND"


def test_order_id_and_key_are_required(client):
    answer = client.post(f"{ORDERS}/anti-ai/confirm", {})
    assert answer.status == 400 and answer.code == "VALIDATION_FAILED"
    assert set(answer.fields()) == {"orderId", "idempotencyKey"}


def test_an_order_id_of_another_type_is_refused(client):
    answer = client.post(f"{ORDERS}/anti-ai/confirm", {"idempotencyKey": uuid.uuid4().hex, "orderId": ["1"]})
    assert answer.status == 400 and answer.fields() == ["orderId"]


def test_a_failed_order_cannot_be_confirmed(client):
    created = client.create().data
    client.upload(created["files"][0]["uploadUrl"], b"\xff\xd8\xff\xe0" + b"broken" * 40)
    client.confirm(created["orderId"])
    assert client.wait(created["orderId"])["status"] == "failed"
    answer = client.confirm(created["orderId"])
    assert answer.status == 400 and answer.code == "ORDER_NOT_PENDING", answer
