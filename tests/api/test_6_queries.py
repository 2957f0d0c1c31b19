"""Contract section 6: detail, list, download, refresh."""
import datetime
import math
import time
import urllib.parse

import pytest

from client import ORDERS


@pytest.fixture(scope="module")
def known_orders(stack, jpeg):
    """An account with 23 orders, one of them complete and one failed; newest last."""
    client = stack.account_new()
    orders = [client.create([f"file-{number}.jpg"], orderName=f"order {number:02d} {'even' if number % 2 == 0 else 'odd'}").data["orderId"]
              for number in range(21)]
    orders.append(client.order_whole([("Ünique_100%.jpg", jpeg)], orderName="the complete one")["orderId"])
    orders.append(client.order_whole([("bad.jpg", jpeg[:700])], orderName="the failed one")["orderId"])
    client.orders = orders
    return client


def ids(answer):
    assert answer.status == 200, answer
    return [order["orderId"] for order in answer.items]


def test_a_detail_has_every_field(client):
    created = client.create(["a.jpg", "b.png"], orderName="two").data
    data = client.detail(created["orderId"]).data
    assert data["orderId"] == created["orderId"] and data["orderName"] == "two"
    assert data["type"] and data["channel"] == "api" and data["status"] == "pending"
    assert data["fileCount"] == 2 and data["completedFileCount"] == 0
    assert data["errors"] is None and data["watermarkText"] is None and data["thumbnailImageUrl"] is None
    assert data["watermarks"] == []
    assert data["createdAt"] <= data["updatedAt"] < data["expiresAt"]
    for file, name in zip(data["files"], ("a.jpg", "b.png")):
        assert type(file.pop("fileId")) is int
        assert file == {"fileName": name, "status": "pending", "watermarks": [], "error": None, "note": None, "inputBytes": None,
                        "resultBytes": None, "protection": None, "thumbnailImageUrl": None}


def test_an_order_in_progress_has_no_expiry(client, stack, jpeg):
    """Pending orders have an upload deadline and complete orders an expiry; orders in progress have neither."""
    created = client.create().data
    client.upload(created["files"][0]["uploadUrl"], jpeg)
    stack.ctl("queue", "drain")  # returns when the worker knows of the pause
    try:
        client.confirm(created["orderId"])
        data = client.detail(created["orderId"]).data
        assert data["status"] == "inProgress" and data["expiresAt"] is None, data
    finally:
        stack.ctl("queue", "resume")
    client.wait(created["orderId"])


def seconds_between(one, other):
    return (time_of(other) - time_of(one)).total_seconds()


def time_of(text):
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")


def test_a_plan_keeps_results_for_its_own_time(stack, jpeg):
    """The plan's retention applies when the order completes; another plan has the default retention."""
    def days(plan):
        order = stack.account_new(plan).order_whole([("a.jpg", jpeg)])
        return seconds_between(order["createdAt"], order["expiresAt"]) / 86400
    with stack.configured("plan_pro", "result_retention_s", str(14 * 86400)):
        assert (days("pro"), days("free")) == (14, 7)
    assert days("pro") == 7


def test_times_are_as_long_as_promised(client, jpeg):
    """The defaults: one hour for an upload, one day until confirmation, seven days for results."""
    created = client.create().data
    pending = client.detail(created["orderId"]).data
    assert seconds_between(pending["createdAt"], pending["expiresAt"]) == 86400
    assert 3590 <= seconds_between(pending["createdAt"], created["files"][0]["uploadUrlExpiresAt"]) <= 3600 + 60
    client.upload(created["files"][0]["uploadUrl"], jpeg)
    client.confirm(created["orderId"])
    complete = client.wait(created["orderId"])
    assert seconds_between(complete["createdAt"], complete["expiresAt"]) == 7 * 86400
    before = time.time()
    url = client.get(f"{ORDERS}/{created['orderId']}/download").data["downloadUrl"]
    expires = int(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))["e"])
    assert before + 3599 <= expires <= time.time() + 3600


def test_the_list_is_newest_first_with_its_pages(known_orders):
    answer = known_orders.list()
    assert ids(answer) == known_orders.orders[::-1][:10]
    assert answer.page == {"totalItems": 23, "totalPages": 3, "currentPage": 1, "itemsPerPage": 10}
    seen = [order for page in (1, 2, 3) for order in ids(known_orders.list(page=page))]
    assert seen == known_orders.orders[::-1]


def test_a_page_past_the_end_is_empty(known_orders):
    answer = known_orders.list(page=4)
    assert ids(answer) == [] and answer.page["totalItems"] == 23
    assert ids(known_orders.list(page=1000000000)) == []


@pytest.mark.parametrize("limit", [1, 7, 23, 100])
def test_limit_sets_the_page(known_orders, limit):
    answer = known_orders.list(limit=limit)
    assert ids(answer) == known_orders.orders[::-1][:limit]
    assert answer.page["totalPages"] == math.ceil(23 / limit)


def test_limit_minus_one_is_all(known_orders):
    answer = known_orders.list(limit=-1)
    assert ids(answer) == known_orders.orders[::-1]
    info = answer.page
    assert (info["totalItems"], info["totalPages"], info["currentPage"]) == (23, 1, 1)


@pytest.mark.parametrize("keyword, places", [
    ("the complete", [21]), ("THE FAILED", [22]), ("file-7.", [7]), ("FILE-7.", [7]), ("ünique", [21]), ("100%", [21]), ("_100", [21]),
    ("odd", list(range(1, 20, 2))), ("no such thing", []), ("%", [21]), ("\\", []), ("'", [])])
def test_keyword_finds_in_order_and_file_names(known_orders, keyword, places):
    assert ids(known_orders.list(keyword=keyword, limit=100)) == [known_orders.orders[place] for place in reversed(places)]


def test_keyword_finds_the_exact_order_id(known_orders):
    assert ids(known_orders.list(keyword=known_orders.orders[4])) == [known_orders.orders[4]]
    assert ids(known_orders.list(keyword=known_orders.orders[4][:-3])) == []


def test_status_filters(known_orders):
    assert ids(known_orders.list(status="complete")) == [known_orders.orders[21]]
    assert ids(known_orders.list(status="failed")) == [known_orders.orders[22]]
    assert len(ids(known_orders.list(status="pending", limit=100))) == 21
    assert len(ids(known_orders.list(status="all", limit=100))) == 23
    assert known_orders.list(status="pending", limit=5).page["totalPages"] == 5


def test_type_and_channel_filter(known_orders):
    kind = known_orders.detail(known_orders.orders[0]).data["type"]
    assert len(ids(known_orders.list(type=kind, limit=100))) == 23
    assert len(ids(known_orders.list(type="all", channel="all", limit=100))) == 23
    assert len(ids(known_orders.list(channel="api", limit=100))) == 23


def test_filters_work_together(known_orders):
    assert ids(known_orders.list(keyword="one", status="complete")) == [known_orders.orders[21]]
    assert ids(known_orders.list(keyword="even", status="pending", limit=2, page=2)) == [known_orders.orders[16], known_orders.orders[14]]


@pytest.mark.parametrize("name, value", [("page", "0"), ("page", "-1"), ("page", "x"), ("page", ""), ("page", "99999999999999999999"), ("limit", "0"), ("limit", "-2"),
                                         ("limit", "101"), ("limit", "1.5"), ("status", "done"), ("type", "x"), ("channel", "fax")])
def test_bad_values_are_400_naming_the_parameter(client, name, value):
    answer = client.list(**{name: value})
    assert answer.status == 400 and answer.code == "VALIDATION_FAILED", answer
    assert answer.fields() == [name]


def test_the_limit_of_a_keyword_counts_characters_not_bytes(client):
    name = "😀" * 64
    order = client.create(orderName=name).data["orderId"]
    assert order in ids(client.list(keyword=name)) and ids(client.list(keyword="é" * 255)) == []
    answer = client.list(keyword="é" * 256)
    assert answer.status == 400 and "256" in answer.json["message"] and "255" in answer.json["message"], answer


def test_an_exceeded_limit_is_reported_with_the_given_value(client):
    message = client.list(limit=101).json["details"][0]["message"]
    assert "101" in message and "100," in message


def test_every_bad_parameter_is_named(client):
    assert set(client.list(page=0, limit=500, status="no").fields()) == {"page", "limit", "status"}


def test_an_empty_account_has_an_empty_list(stack):
    answer = stack.account_new().list()
    assert answer.items == [] and answer.page == {
        "totalItems": 0, "totalPages": 0, "currentPage": 1, "itemsPerPage": 10}


def test_download_checks_in_the_order_of_the_contract(client, known_orders):
    assert client.get(f"{ORDERS}/1/download").code == "ORDER_NOT_FOUND"
    pending = known_orders.get(f"{ORDERS}/{known_orders.orders[0]}/download")
    assert pending.status == 400 and pending.code == "ORDER_NOT_COMPLETED"


def test_a_zero_copy_order_cannot_be_downloaded(client):
    expiry = (datetime.datetime.utcnow() + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    order = client.create(["a.jpg"], mode={"zeroCopy": True}, outputTargets=[
        {"fileKey": "k", "url": "https://bucket.example/k", "presignedUrlExpiresAt": expiry}])
    if order.status == 400 and "not available yet" in order.json["message"]:
        pytest.skip("zero copy is not built yet")
    refused = client.get(f"{ORDERS}/{order.data['orderId']}/download")
    assert refused.status == 400 and refused.code == "ORDER_TYPE_CANT_DOWNLOAD"


def test_download_answers_a_url_for_an_hour(known_orders):
    data = known_orders.get(f"{ORDERS}/{known_orders.orders[21]}/download").data
    assert data["expiresIn"] == 3600 and data["downloadUrl"] and data["contentType"] == "image/jpeg"
    assert len(data["files"]) == 1 and data["files"][0]["downloadUrl"]
    assert known_orders.request("GET", data["downloadUrl"], key=False).status == 200


def test_refresh_gives_fresh_urls_to_pending_orders(client, jpeg):
    created = client.create(["a.jpg", "b.jpg"]).data
    client.upload(created["files"][0]["uploadUrl"], jpeg)
    answer = client.post(f"{ORDERS}/{created['orderId']}/refresh-urls")
    assert answer.status == 200, answer
    files = answer.data["files"]
    assert [file["uploaded"] for file in files] == [True, False]
    assert [file["fileId"] for file in files] == [str(file["fileId"]) for file in created["files"]]
    assert [file["fileKey"] for file in files] == [file["fileKey"] for file in created["files"]]
    assert client.upload(files[1]["uploadUrl"], jpeg).status == 201
    client.confirm(created["orderId"])
    again = client.post(f"{ORDERS}/{created['orderId']}/refresh-urls")
    assert again.status == 400 and again.code == "ORDER_NOT_PENDING"


def test_list_and_detail_agree(known_orders):
    for order in known_orders.list(limit=100).items[:5]:
        detail = known_orders.detail(order["orderId"]).data
        for name in ("orderName", "type", "channel", "status", "fileCount", "createdAt", "errors"):
            if name in order:
                assert order[name] == detail[name]
