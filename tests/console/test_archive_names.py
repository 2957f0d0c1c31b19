"""Archives of the console have different names; those of the API are named after the order."""
import time
import urllib.parse

from client import ORDERS

BODY = {"idempotencyKey": "archive", "orderName": "beach.jpg + 1", "files": [{"fileName": "beach.jpg"}, {"fileName": "boat.jpg"}]}


def archive_name(side, path, anonymous, picture):
    """Returns the name of the archive, which is the same in response and download, and the order's creation."""
    made = side.post(f"{path}/anti-ai", BODY).data
    for file in made["files"]:
        assert anonymous.put(file["uploadUrl"], body=picture).status == 201
    assert side.post(f"{path}/anti-ai/confirm", {"idempotencyKey": "start", "orderId": made["orderId"]}).status == 200
    end = time.monotonic() + 240
    while (order := side.get(f"{path}/{made['orderId']}").data)["status"] != "complete":
        assert time.monotonic() < end
        time.sleep(0.2)
    given = side.get(f"{path}/{made['orderId']}/download").data
    sent = anonymous.request("GET", given["downloadUrl"]).headers["Content-Disposition"]
    assert urllib.parse.unquote(sent.rpartition("''")[2].strip('"')) == given["fileName"] or given["fileName"] in sent, sent
    return given["fileName"], order["createdAt"]


def test_only_an_archive_of_the_console_has_the_time_of_its_order(client, owner, anonymous, jpeg):
    name, at = archive_name(owner, "/v2/orders", anonymous, jpeg)
    assert name == f"beach.jpg + 1 {at[:13]}{at[14:16]}{at[17:19]}Z.zip"
    assert archive_name(client, ORDERS, anonymous, jpeg)[0] == "beach.jpg + 1.zip"
