"""The operator's side: accounts, users, queue, failed jobs, health."""
import re
import time

import pictures
from browser import PASSWORD, Browser, address_new
from client import Client


def test_an_account_is_made_with_its_owner(stack, operator):
    name, email = "admin-" + address_new(), address_new()
    made = operator.post("/admin/accounts", {"name": name, "plan": "pro", "ownerEmail": email})
    assert made.status == 201 and made.data["requestsPerMinute"] == 300 and made.data["users"] == 0
    browser = Browser(stack)
    token = made.data["link"].partition("token=")[2]
    accepted = browser.took(browser.post("/invitations/accept", {"token": token, "name": "O", "password": PASSWORD}))
    assert accepted.data["account"] == {"id": made.data["id"], "name": name, "plan": "pro", "status": "active", "role": "owner",
                                        "resultRetentionSeconds": 7 * 86400}
    [row] = operator.get("/admin/accounts?keyword=" + name).items
    assert row["users"] == 1 and row["id"] == made.data["id"]
    assert operator.post("/admin/accounts", {"name": name, "plan": "pro"}).fields() == ["name"]
    assert operator.post("/admin/accounts", {"name": "new " + name, "plan": "gold"}).status == 400


def test_plan_limits_and_status_change(stack, operator, owner):
    path = f"/admin/accounts/{owner.account}"
    shown = operator.get(path)
    assert shown.data["usage"]["plan"] == "free" and shown.data["usage"]["limits"][0]["name"] == "ordersPending"
    changed = operator.patch(path, {"plan": "enterprise", "requestsPerMinute": 77, "quota": {"webhooks": 3}}).data
    assert changed["plan"] == "enterprise" and changed["requestsPerMinute"] == 77
    assert {"name": "webhooks", "used": 0, "limit": 3} in changed["usage"]["limits"]
    back = operator.patch(path, {"requestsPerMinute": None, "quota": {"webhooks": None}}).data
    assert back["requestsPerMinute"] == 1000 and {"name": "webhooks", "used": 0, "limit": 20} in back["usage"]["limits"]
    assert operator.patch(path, {"status": "suspended"}).data["status"] == "suspended"
    assert owner.get("/account").code == "AUTH_FORBIDDEN"
    assert owner.account in [row["id"] for row in operator.get("/admin/accounts?status=suspended&limit=100").items]
    assert operator.patch(path, {"status": "active"}).data["status"] == "active"
    for body, field in (({"status": "gone"}, "status"), ({"requestsPerMinute": -1}, "requestsPerMinute"),
                        ({"quota": {"webhooks": "many"}}, "quota.webhooks")):
        assert operator.patch(path, body).fields() == [field]
    assert operator.get("/admin/accounts/999999999").status == 404
    events = [row["event"] for row in owner.get("/audit?limit=100").items]
    assert {"planChanged", "quotaChanged", "accountSuspended", "accountResumed"} <= set(events)


def test_users_are_found_disabled_and_reset(stack, operator, owner):
    [user] = operator.get("/admin/users?keyword=" + owner.email).items
    assert user["accountId"] == owner.account and user["role"] == "owner" and not user["isDisabled"]
    assert operator.patch(f"/admin/users/{user['id']}", {"isDisabled": True}).status == 200
    assert owner.get("/account").status == 401
    operator.patch(f"/admin/users/{user['id']}", {"isDisabled": False})
    link = operator.post(f"/admin/users/{user['id']}/reset").data["link"]
    reset = Browser(stack).post("/password/reset", {"token": link.partition("token=")[2], "password": "a new long password"})
    assert reset.status == 200
    browser = Browser(stack)
    assert browser.sign_in(owner.email, "a new long password").status == 200
    assert operator.patch(f"/admin/users/{user['id']}", {"isAdmin": True}).status == 200
    assert browser.get("/admin/queue").status == 200
    operator.patch(f"/admin/users/{user['id']}", {"isAdmin": False})
    assert browser.get("/admin/queue").status == 403
    own = operator.get("/session").data["user"]["id"]
    assert operator.patch(f"/admin/users/{own}", {"isAdmin": False}).status == 400


def test_the_queue_counts_waiting_deliveries(stack, operator):
    before = operator.get("/admin/queue").data["deliveriesPending"]
    stack.sql("SET FOREIGN_KEY_CHECKS = 0; INSERT INTO webhook_deliveries (webhook_id, event_id, available_at, created_at, updated_at) "
              "VALUES (7, 7, UTC_TIMESTAMP(3) + INTERVAL 1 DAY, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))")
    try:
        assert operator.get("/admin/queue").data["deliveriesPending"] == before + 1
    finally:
        stack.sql("DELETE FROM webhook_deliveries WHERE webhook_id = 7 AND event_id = 7")


def test_queue_and_health(stack, operator):
    stack.worker_places()
    queue = operator.get("/admin/queue").data
    assert {"queued", "running", "dead", "refused", "oldestQueuedSeconds", "deliveriesPending", "workers"} <= set(queue)
    assert queue["workers"][0]["processes"] >= 1
    health = operator.get("/admin/health").data["checks"]
    assert re.fullmatch(r"[\d.]+ of [\d.]+ GB are free\.", next(check["message"] for check in health if check["name"] == "fileStore"))
    checks = {check["name"]: check["status"] for check in health}
    assert checks["database"] == checks["redis"] == checks["fileStore"] == checks["workers"] == checks["imageProcesses"] == "ok"


def test_health_names_a_worker_whose_image_processes_fail(stack, operator):
    """The row is that of another host's worker, as such a worker writes it."""
    stack.worker_places()
    stack.sql("INSERT INTO workers (owner, host, pid, version, places, busy, metrics, image_ready, image_failing_at, image_reason, started_at, seen_at) "
              "VALUES ('other', 'other.example', 7, 'x', 4, 0, '', 1, '2026-01-02 03:04:05', 'The weights file is away.', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))")
    try:
        [check] = [check for check in operator.get("/admin/health").data["checks"] if check["name"] == "imageProcesses"]
        assert check["status"] == "failed"
        assert check["message"] == ("other.example:7: 1 of 4 image processes ready, starts fail since 2026-01-02T03:04:05.000Z: "
                                    "The weights file is away.")
        stack.sql("UPDATE workers SET image_ready = NULL, image_failing_at = NULL, image_reason = NULL WHERE owner = 'other'")
        [check] = [check for check in operator.get("/admin/health").data["checks"] if check["name"] == "imageProcesses"]
        assert check["status"] == "ok"
    finally:
        stack.sql("DELETE FROM workers WHERE owner = 'other'")


def test_a_failed_job_is_retried_by_the_worker(stack, operator, owner):
    """Of two files, the first has failed, and the second keeps the order in progress."""
    stack.ctl("queue", "drain")
    try:
        key = owner.post("/keys", {"name": "job"}).data["value"]
        client = Client(stack, key)
        created = client.create(["a.jpg", "b.jpg"]).data
        for file in created["files"]:
            assert client.upload(file["uploadUrl"], pictures.jpeg(300, 300)).status == 201
        assert client.confirm(created["orderId"]).status == 200
        order = created["orderId"]
        stack.sql(f"UPDATE jobs SET status = 'failed', reason = 'test' WHERE order_id = {order} ORDER BY id LIMIT 1")
        stack.sql(f"UPDATE files SET status = 'failed', error_code = 'PROCESSING_CRASHED' WHERE order_id = {order} ORDER BY id LIMIT 1")
        stack.sql(f"UPDATE orders SET failed_file_count = 1 WHERE id = {order}")
        [job] = [row for row in operator.get("/admin/jobs?status=dead&limit=100").items if row["orderId"] == order]
        assert job["kind"] == "protect" and job["error"] == "test" and job["accountId"] == owner.account and job["canRetry"]
        assert operator.post(f"/admin/jobs/{job['id']}/retry").status == 200
        end = time.monotonic() + 60
        while stack.sql(f"SELECT status FROM jobs WHERE id = {job['id']}") != [["queued"]]:
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        stack.ctl("queue", "resume")
    assert client.wait(order)["status"] == "complete"
    assert operator.post(f"/admin/jobs/{job['id']}/retry").status == 404


def test_a_clients_broken_file_is_refused_and_no_dead_job(stack, operator, owner):
    def counts():
        queue = operator.get("/admin/queue").data
        return queue["dead"], queue["refused"]
    client = Client(stack, owner.post("/keys", {"name": "refusals"}).data["value"])
    dead, refused = counts()
    order = client.order_whole([("cut.jpg", pictures.jpeg(300, 300)[:3000]), ("whole.jpg", pictures.jpeg(300, 300))])
    assert [file["error"] and file["error"]["code"] for file in order["files"]] == ["IMAGE_CORRUPT", None]
    assert stack.sql(f"SELECT status FROM jobs WHERE order_id = {order['orderId']} AND kind = 'protect' ORDER BY id") == [["refused"], ["done"]]
    end = time.monotonic() + 60
    while counts() != (dead, refused + 1):
        assert time.monotonic() < end, counts()
        time.sleep(0.2)
    assert order["orderId"] not in [row["orderId"] for row in operator.get("/admin/jobs?status=dead&limit=100").items]
    assert order["orderId"] not in stack.ctl("queue", "dead")


def test_a_failed_job_of_an_ended_order_cannot_be_retried(stack, operator, owner):
    client = Client(stack, owner.post("/keys", {"name": "ended"}).data["value"])
    order = client.order_whole([("a.jpg", pictures.jpeg(300, 300))])["orderId"]
    stack.sql(f"UPDATE jobs SET status = 'failed', reason = 'test' WHERE order_id = {order}")
    try:
        [job] = [row for row in operator.get("/admin/jobs?status=dead&limit=100").items if row["orderId"] == order]
        assert job["canRetry"] is False
    finally:
        stack.sql(f"UPDATE jobs SET status = 'done' WHERE order_id = {order}")
