"""The client's own data on an order: creation, detail, list, webhook, search, idempotency, deletion."""
import json
import time
import urllib.parse
import uuid

import pytest

from client import ORDERS
from receiver import Receiver
from test_6_search import KnownOrders, due, quoted

METADATA = {"customer": "4711", "campaign": "spring sale & more", "사진": "東京 😀", "empty": "", "q\"uote\\": "a\\b\"c=d"}


def bodies():
    picture = {"fileName": "a.jpg"}
    source = {"fileName": "a.jpg", "imageUrl": "https://bucket.example/a.jpg"}
    return {"anti-ai": {"files": [picture] * 3}, "anti-ai/with-urls": {"files": [source]},
            "wtr-embed": {"files": [picture], "watermarks": [{"text": "Ada"}]}, "wtr-extract": {"file": picture},
            "wtr-extract?original": {"file": {**picture, "includeOriginal": True, "originalFile": picture}}}


def make(client, kind="anti-ai", **fields):
    return client.post(f"{ORDERS}/{kind.split('?', maxsplit=1)[0]}", {"idempotencyKey": uuid.uuid4().hex, **bodies()[kind], **fields})


def listed(client, *pairs, **query):
    pairs = [(f"metadata[{key}]", value) for key, value in pairs]
    return client.get(f"{ORDERS}?{urllib.parse.urlencode([*query.items(), *pairs])}")


def ids(answer):
    assert answer.status == 200, answer
    assert answer.page["totalItems"] == len(answer.items)
    return [order["orderId"] for order in answer.items]


@pytest.mark.parametrize("kind", bodies())
def test_each_creation_takes_metadata(client, kind):
    created = make(client, kind, metadata=METADATA)
    assert created.status == 201 and "metadata" not in created.data, created
    order = created.data["orderId"]
    assert client.detail(order).data["metadata"] == METADATA
    [item] = [item for item in client.list(limit=100).items if item["orderId"] == order]
    assert item["metadata"] == METADATA


def test_an_operator_sees_metadata(client, stack):
    order = make(client, metadata={"customer": "4711", "note": "a=b; c"}).data["orderId"]
    assert json.loads(stack.ctl("order", "show", "--json", order))["metadata"] == "customer=4711; note=a=b; c"
    assert json.loads(stack.ctl("order", "show", "--json", make(client).data["orderId"]))["metadata"] is None


@pytest.mark.parametrize("fields", [{}, {"metadata": {}}, {"metadata": None}, {"metadata": []}, {"metadata": {"a": None}}])
def test_an_order_without_metadata_has_no_member(client, fields):
    order = make(client, **fields).data["orderId"]
    assert "metadata" not in client.detail(order).data
    assert "metadata" not in client.list(limit=1).items[0]


def test_the_largest_metadata_comes_back(client):
    """The order has 20 pairs with the longest keys and values, in characters of four bytes."""
    largest = {"😀" * 38 + f"{number:02d}": "😀" * 500 for number in range(20)}
    order = make(client, metadata=largest).data["orderId"]
    assert client.detail(order).data["metadata"] == largest
    assert ids(listed(client, next(iter(largest.items())))) == [order]


def test_a_null_is_no_key(client):
    twenty = {str(number): "x" for number in range(20)}
    order = make(client, metadata={**twenty, "gone": None}).data["orderId"]
    assert client.detail(order).data["metadata"] == twenty


BAD = [("text", "metadata", "is a string; it must be an object"), ([1], "metadata", "is an array"), ({"a": 1}, "metadata.a", "is a number; it must be a string"),
       ({"colour": "x" * 501}, "metadata.colour", "has 501 characters; 0 to 500 are allowed"), ({"colour": {}}, "metadata.colour", "is an object"),
       ({"": "x"}, "metadata", "has a key of 0 characters"), ({"ab" + "€" * 41: "x"}, "metadata", "has a key of 43 characters, \"ab" + "€" * 12 + "\"; 1 to 40"),
       ({"a\tb": "x"}, "metadata", "control characters"), ({"a": "x\ny"}, "metadata.a", "control characters"), ({"a": "x\0y"}, "metadata.a", "control characters"),
       ({"a": "\x85"}, "metadata.a", "control characters"), ({str(number): "x" for number in range(21)}, "metadata", "has 21 keys; at most 20 are allowed")]


@pytest.mark.parametrize("metadata, field, message", BAD)
def test_bad_metadata_is_named(client, metadata, field, message):
    answer = make(client, metadata=metadata)
    assert answer.status == 400 and answer.fields() == [field], answer
    assert message in answer.json["details"][0]["message"], answer


def test_metadata_belongs_to_the_body(client):
    key = uuid.uuid4().hex
    first = make(client, idempotencyKey=key, metadata={"a": "1", "b": "2"})
    replay = make(client, idempotencyKey=key, metadata={"b": "2", "a": "1"})
    assert replay.status == 200 and replay.data["orderId"] == first.data["orderId"], replay
    for metadata in ({"a": "1", "b": "3"}, {"a": "1"}, {}):
        assert make(client, idempotencyKey=key, metadata=metadata).code == "IDEMPOTENCY_KEY_REUSED"


# ---------------------------------------------------------------- lists
def test_a_list_finds_exact_values(stack):
    client = stack.account_new()
    orders = [make(client, metadata={"n": str(number % 2), "all": "same", "Key": f"v{number}"}).data["orderId"] for number in range(4)][::-1]
    make(client)
    assert ids(listed(client, ("n", "1"))) == [orders[0], orders[2]]
    assert ids(listed(client, ("all", "same"))) == orders
    assert ids(listed(client, ("all", "same"), ("n", "0"))) == [orders[1], orders[3]]
    assert ids(listed(client, ("n", "1"), status="pending", keyword="jpg", type="antiAi")) == [orders[0], orders[2]]
    assert ids(listed(client, ("n", "1"), limit=-1)) == [orders[0], orders[2]]
    for key, value in (("n", "2"), ("all", "sam"), ("all", "Same"), ("all", "same "), ("key", "v1"), ("ll", "same"), ("all\", \"", "same"), ("Key", "")):
        assert ids(listed(client, (key, value))) == [], (key, value)
    assert ids(listed(client, ("Key", "v1"), status="complete")) == []
    odd = make(client, metadata=METADATA).data["orderId"]
    for pair in METADATA.items():
        assert ids(listed(client, pair)) == [odd]
    assert ids(listed(stack.account_new(), ("all", "same"))) == []


QUERIES = [("metadata[a]=" + "x" * 501, "metadata[a]", "has 501 characters; at most 500"), ("metadata=a", "metadata", "metadata[KEY]=VALUE"),
           ("metadata[]=a", "metadata[]", "a key of 0 characters"), ("metadata[a=b", "metadata[a", "metadata[KEY]=VALUE"), ("metadata[a]b=c", "metadata[a]b", "metadata[KEY]=VALUE"),
           ("metadata[a]=b%0Ac", "metadata[a]", "control characters"), ("metadata[a%09b]=c", "metadata[a\tb]", "control characters"),
           ("metadata[" + "k" * 41 + "]=c", "metadata[" + "k" * 41 + "]", "41 characters"), ("metadata[a]=1&metadata[a]=2", "metadata[a]", "twice"),
           ("&".join(f"metadata[{number}]=1" for number in range(21)), "metadata", "has 21 keys; at most 20 are allowed")]


@pytest.mark.parametrize("query, field, message", QUERIES)
def test_a_bad_filter_is_named(client, query, field, message):
    answer = client.get(f"{ORDERS}?{query.replace('[', '%5B').replace(']', '%5D')}")
    assert answer.status == 400 and answer.fields() == [field] and message in answer.json["details"][0]["message"], answer


def test_a_list_finds_indexed_orders_by_metadata(stack):
    """A list finds the same before and after the worker has indexed the orders, with other filters, and after a deletion."""
    known_orders = KnownOrders(stack, 200, 11, age_ms=100 * 86400000, oldest={"status": "expired"})
    client = known_orders.client
    known_orders.wait_indexed(100)
    for number, order in enumerate(known_orders.orders):
        order["metadata"] = {"shop": "one", "third": str(number % 3), "only": str(order["id"])}
    with due(stack, client.account):
        stack.sql("".join(f"UPDATE orders SET metadata = {quoted(''.join(f'{key}{chr(9)}{value}{chr(10)}' for key, value in order['metadata'].items()))} WHERE id = {order['id']};"
                          for order in known_orders.orders))
    def found(*pairs, **query):
        answer = listed(client, *pairs, limit=100, **query)
        return [order["orderId"] for order in answer.items], answer.page["totalItems"]
    def expected(pairs, **filters):
        whole = set(known_orders.expected(**filters))
        matching = [str(order["id"]) for order in known_orders.orders if pairs.items() <= order.get("metadata", {}).items() and str(order["id"]) in whole]
        return matching[:100], len(matching)
    fresh = make(client, metadata={"shop": "one", "third": "fresh"}).data["orderId"]
    try:
        assert found(("shop", "one"))[1] == 201 and found(("shop", "one"))[0][0] == fresh
        assert found(("third", "fresh")) == ([fresh], 1)
    finally:
        stack.sql(f"DELETE FROM files WHERE order_id = {fresh}; DELETE FROM orders WHERE id = {fresh}")
    for pairs in ({"shop": "one"}, {"third": "1"}, {"third": "1", "shop": "one"}, {"third": "1", "shop": "two"}, {"only": str(known_orders.orders[5]["id"])},
                  {"third": "0", "only": str(known_orders.orders[199]["id"])}, {"shop": "on"}):
        for filters in ({}, {"status": "failed"}, {"type": "antiAi", "channel": "api"}, {"keyword": "i"}, {"keyword": "i", "status": "expired"}, {"keyword": str(known_orders.orders[9]["id"])}):
            assert found(*pairs.items(), **filters) == expected(pairs, **filters), (pairs, filters)
    assert len(listed(client, ("third", "2"), limit=-1).items) == expected({"third": "2"})[1]
    # Tags are not words.
    assert found(keyword="\x01")[1] == 0
    # A deleted order leaves the index with its metadata.
    order = known_orders.orders[199]
    tags = f"SELECT COUNT(*) FROM order_words WHERE account_id = {client.account} AND INSTR(postings, SUBSTR(UNHEX(SHA2('only\t{order['id']}', 256)), 4, 13)) > 0"
    assert stack.sql(tags) == [["1"]]
    stack.sql(f"UPDATE orders SET ended_at = '2024-01-01' WHERE id = {order['id']}")
    end = time.monotonic() + 120
    while stack.sql(f"SELECT COUNT(*) FROM orders WHERE id = {order['id']}") != [["0"]]:
        assert time.monotonic() < end, "the row is not deleted"
        time.sleep(0.1)
    assert found(("only", str(order["id"])))[1] == 0
    with due(stack, client.account):
        pass
    assert stack.sql(tags) == [["0"]]


# ---------------------------------------------------------------- webhooks
def test_an_event_has_the_metadata(stack, jpeg):
    client, receiver = stack.account_new(), Receiver()
    try:
        client.post(f"{ORDERS}/webhooks", {"url": receiver.url("/own"), "name": "own"})
        receiver.answers["/own"] = 200
        order = client.order_whole([("a.jpg", jpeg)], metadata=METADATA)["orderId"]
        plain = client.order_whole([("a.jpg", jpeg)])["orderId"]
        events = {delivery.json["data"]["orderId"]: delivery.json["data"] for delivery in receiver.wait("/own", 2)}
        assert events[order]["metadata"] == METADATA and "metadata" not in events[plain]
    finally:
        receiver.close()
