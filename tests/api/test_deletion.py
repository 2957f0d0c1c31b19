"""DELETE /api/v2/orders/{orderId}, and orders that would wait forever; issue 50."""
import json
import os
import time

import pictures
from client import ORDERS


def delete(account, order):
    return account.request("DELETE", f"{ORDERS}/{order}")


def usage(account):
    return {limit["name"]: limit["used"] for limit in account.get(f"{ORDERS}/stats/usage").data["limits"]}


def test_a_complete_order_loses_its_files_at_once(client, stack, jpeg):
    order = client.order_whole([("a.jpg", jpeg), ("b.jpg", jpeg)])
    found = client.get(f"{ORDERS}/{order['orderId']}/download").data
    urls = [found["downloadUrl"]] + [file["downloadUrl"] for file in found["files"]] + [order["thumbnailImageUrl"]]
    answer = delete(client, order["orderId"])
    assert answer.status == 200 and answer.data == {"orderId": order["orderId"], "status": "expired", "deleted": True}
    assert stack.stored(order["orderId"]) == []
    assert [client.request("GET", url, key=False).status for url in urls] == [404] * 4
    after = client.detail(order["orderId"]).data
    assert after["status"] == "expired" and after["thumbnailImageUrl"] is None
    again = client.get(f"{ORDERS}/{order['orderId']}/download")
    assert again.status == 400 and again.code == "ORDER_EXPIRED"
    assert delete(client, order["orderId"]).data == answer.data


def test_a_pending_order_is_cancelled(stack, jpeg):
    account = stack.account_new()
    created = account.create(["a.jpg", "b.jpg"]).data
    assert account.upload(created["files"][0]["uploadUrl"], jpeg).status == 201
    answer = delete(account, created["orderId"])
    assert answer.status == 200 and answer.data["status"] == "failed"
    assert stack.stored(created["orderId"]) == []
    detail = account.detail(created["orderId"]).data
    assert detail["status"] == "failed"
    assert detail["errors"].split("\n")[0] == "a.jpg: ORDER_CANCELLED: The account deleted the order."
    late = account.upload(created["files"][1]["uploadUrl"], jpeg)
    assert late.status == 400 or late.status == 409, late
    now = usage(account)
    assert (now["ordersPending"], now["filesPending"], now["promisedBytes"], now["storedBytes"]) == (0, 0, 0, 0)


def test_an_order_in_progress_is_cancelled_and_late_results_do_not_stay(stack, jpeg):
    account = stack.account_new()
    orders = []
    for _ in range(6):
        created = account.create(["a.jpg"]).data
        assert account.upload(created["files"][0]["uploadUrl"], jpeg).status == 201
        assert account.confirm(created["orderId"]).status == 200
        orders.append(created["orderId"])
    statuses = {delete(account, order).data["status"] for order in orders}
    assert statuses <= {"failed", "expired"}
    for order in orders:
        stack.emptied(order)
        assert stack.stored(order) == []
    assert usage(account)["ordersPending"] == 0


def test_only_the_owner_deletes(client, stranger):
    order = client.create().data["orderId"]
    answer = delete(stranger, order)
    assert answer.status == 404 and answer.code == "ORDER_NOT_FOUND"
    assert delete(client, 1).status == 404
    assert client.detail(order).data["status"] == "pending"


def waiting_for_its_archive(stack, account, data):
    """An order whose first result disappeared from the store before the archive was made."""
    stack.ctl("queue", "drain", "--wait", "60")
    try:
        created = account.create(["a.jpg", "b.jpg"]).data
        order = created["orderId"]
        for file in created["files"]:
            assert account.upload(file["uploadUrl"], data).status == 201
        assert account.confirm(order).status == 200
        # The rows as the worker leaves them after both pictures, with results that are not in the store.
        stack.sql(f"""
            INSERT INTO results (order_id, file_id, copy, name, store_key, format, size_bytes, digest, width_px, height_px, created_at)
            SELECT order_id, id, 0, name, CONCAT('out/', order_id, '/', id, '/gone'), 'jpeg', 1000, REPEAT('x', 32), 320, 240, UTC_TIMESTAMP(3)
            FROM files WHERE order_id = {order};
            UPDATE files SET status = 'complete' WHERE order_id = {order};
            UPDATE jobs SET status = 'done' WHERE order_id = {order};
            UPDATE orders SET result_count = 2, completed_file_count = 2 WHERE id = {order};
            INSERT INTO jobs (account_id, order_id, kind, available_at, created_at, updated_at)
            SELECT account_id, id, 'archive', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM orders WHERE id = {order}""")
    finally:
        stack.ctl("queue", "resume")
    end = time.monotonic() + 60
    while not stack.sql(f"SELECT 1 FROM jobs WHERE order_id = {order} AND kind = 'archive' AND attempt > 0"):
        assert time.monotonic() < end
        time.sleep(0.1)
    return order


def test_an_order_that_waits_for_ever_is_cancelled_by_force(stack, jpeg):
    account = stack.account_new()
    order = waiting_for_its_archive(stack, account, jpeg)
    try:
        stack.ctl("order", "cancel", order)
        raise AssertionError("an order with results was cancelled without --force")
    except RuntimeError as refusal:
        assert "--force" in str(refusal)
    assert "cancelled" in stack.ctl("order", "cancel", "--force", order)
    assert account.detail(order).data["status"] == "failed"
    stack.emptied(order)
    assert stack.stored(order) == []


def test_an_order_that_waits_for_ever_fails_after_a_day(stack, jpeg):
    account = stack.account_new()
    order = waiting_for_its_archive(stack, account, jpeg)
    young = account.create(["a.jpg"]).data["orderId"]
    with stack.configured("orders", "stuck_s", "60"):
        time.sleep(4)
        assert account.detail(order).data["status"] == "inProgress", "it is not old enough"
        # The id contains the time of creation, so the test moves the bound, not the order.
        with stack.configured("test", "clock_offset_s", "120"):
            # The worker may have leased the job just now.
            end = time.monotonic() + 60
            while not stack.sql(f"UPDATE jobs SET attempt = 20 WHERE order_id = {order} AND status = 'queued';"
                                f"SELECT 1 FROM jobs WHERE order_id = {order} AND attempt >= 20"):
                assert time.monotonic() < end
                time.sleep(0.1)
            data = account.wait(order)
    assert data["status"] == "failed" and account.detail(young).data["status"] == "pending"
    assert stack.stored(order) == [] and usage(account)["ordersPending"] == 1
    log = os.path.join(stack.environment["IMGWARD_LOG"], "worker.log")
    with open(log, encoding="utf-8") as file:
        [line] = [json.loads(line) for line in file if '"order_stuck"' in line and str(order) in line]
    [[trace]] = stack.sql(f"SELECT trace_id FROM orders WHERE id = {order}")
    assert line["trace_id"] == trace and line["reason"] == "retried_for_too_long", line


def test_the_rows_of_an_old_order_are_deleted_and_its_texts_stay(stack):
    account = stack.account_new()
    body = [{"fileName": "a.jpg", "watermarks": [{"text": "kept"}]}]
    old, young, complete = (account.create(body, kind="wtr-embed", key=key).data for key in ("old", "young", "complete"))
    assert account.upload(complete["files"][0]["uploadUrl"], pictures.jpeg(640, 480)).status == 201
    assert account.wait(complete["orderId"])["status"] == "complete"
    for order in (old, young):
        assert delete(account, order["orderId"]).status == 200
    # The id contains the time of creation, so the test moves the clock; only the end of the old order is long ago.
    stack.sql(f"UPDATE orders SET ended_at = UTC_TIMESTAMP() + INTERVAL 3 DAY WHERE id = {young['orderId']}")
    stack.sql(f"UPDATE orders SET ended_at = '2024-01-01' WHERE id = {complete['orderId']}")
    with stack.configured("orders", "rows_kept_days", "1"), stack.configured("test", "clock_offset_s", "172800"):
        end = time.monotonic() + 240
        while account.detail(old["orderId"]).status == 200 and time.monotonic() < end:
            time.sleep(0.2)
    gone = account.detail(old["orderId"])
    assert gone.status == 404 and gone.code == "ORDER_NOT_FOUND"
    assert [account.detail(order["orderId"]).status for order in (young, complete)] == [200, 200]
    for table in ("files", "jobs", "results"):
        assert stack.sql(f"SELECT COUNT(*) FROM {table} WHERE order_id = {old['orderId']}") == [["0"]]
    copies = f"SELECT t.text FROM order_watermarks w JOIN watermark_texts t ON t.id = w.text_id WHERE w.order_id = {old['orderId']}"
    assert stack.sql(copies) == [["kept"]], "a copy outlives its order, and must be traced"
    assert account.create(body, kind="wtr-embed", key="old").status == 201


def test_an_account_is_deleted_after_its_grace_with_everything(stack, jpeg):
    account, kept = stack.account_new(), stack.account_new()
    for one in (account, kept):
        assert one.post(f"{ORDERS}/webhooks", {"url": "https://receiver.example/"}).status == 201
        assert one.create([{"fileName": "a.jpg", "watermarks": [{"text": "private"}]}], kind="wtr-embed").status == 201
        assert one.order_whole([("a.jpg", jpeg), ("b.jpg", jpeg)])["status"] == "complete"
    orders = [row[0] for row in stack.sql(f"SELECT id FROM orders WHERE account_id = {account.account}")]
    assert "resume cancels the deletion" in stack.ctl("account", "delete", account.account)
    time.sleep(4)
    assert stack.sql(f"SELECT status FROM accounts WHERE id = {account.account}") == [["suspended"]]
    stack.ctl("account", "resume", account.account)
    time.sleep(4)
    assert stack.sql(f"SELECT delete_at FROM accounts WHERE id = {account.account}") == [["NULL"]]
    stack.ctl("account", "delete", "--grace-days", "0", account.account)
    end = time.monotonic() + 240
    while stack.sql(f"SELECT 1 FROM accounts WHERE id = {account.account}") and time.monotonic() < end:
        time.sleep(0.2)
    for table in ("orders", "jobs", "webhooks", "webhook_events", "watermark_texts", "usage_days", "api_keys", "account_usage"):
        counts = [stack.sql(f"SELECT COUNT(*) > 0 FROM {table} WHERE account_id = {one.account}") for one in (account, kept)]
        assert counts == [[["0"]], [["1"]]], table
    assert [stack.stored(order) for order in orders] == [[]] * len(orders)
    assert kept.list().page["totalItems"] == 2
    time.sleep(float(os.environ.get("KEY_CACHE_S", "5")))
    assert account.list().status == 401
