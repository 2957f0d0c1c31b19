"""Orders of the browser, API keys, members, the account, the request log, the audit log."""
import datetime
import json
import os
import pathlib
import re
import time
import urllib.parse

import pytest

import pictures
from browser import PASSWORD, Browser, address_new, member_new
from client import Client

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

def ordered(browser, **fields):
    answer = browser.post("/v2/orders/anti-ai", {"idempotencyKey": address_new(), "files": [{"fileName": "a.jpg"}], **fields})
    assert answer.status == 201, answer
    return answer.data


def test_orders_of_the_console_are_the_api_s_with_the_channel_web(stack, owner):
    created = ordered(owner)
    again = owner.post("/v2/orders/webhooks", {"url": "https://hooks.example/location", "name": "x"})
    assert again.headers["Location"] == f"{stack.url}/console/api/v2/orders/webhooks/{again.data['id']}"
    sent = Client(stack).request("PUT", created["files"][0]["uploadUrl"], pictures.jpeg(300, 300), key=False)
    assert sent.status == 201
    assert owner.post("/v2/orders/anti-ai/confirm", {"idempotencyKey": "c", "orderId": created["orderId"]}).status == 200
    end = time.monotonic() + 240
    while (data := owner.get(f"/v2/orders/{created['orderId']}").data)["status"] == "inProgress":
        assert time.monotonic() < end
        time.sleep(0.1)
    assert data["status"] == "complete" and data["channel"] == "web"
    key = owner.post("/keys", {"name": "both"}).data["value"]
    api = Client(stack, key)
    assert api.create().status == 201
    assert {row["channel"] for row in api.list().items} == {"api", "web"}
    assert [row["orderId"] for row in owner.get("/v2/orders?channel=web").items] == [created["orderId"]]
    assert owner.get("/v2/orders/stats/recent").status == owner.get("/v2/orders/stats/usage").status == 200
    url = owner.get(f"/v2/orders/{created['orderId']}/download").data["downloadUrl"]
    assert Client(stack).request("GET", url, key=False).status == 200
    # An API key is not a session, and a session is not a key.
    assert Browser(stack).get("/v2/orders", headers={"Authorization": "Bearer " + key}).status == 401
    assert Client(stack).get("/api/v2/orders", headers={"Cookie": "; ".join(map("=".join, owner.cookies.items()))}).status == 401


def test_the_console_has_its_own_rate_limit(stack, owner):
    answer = owner.get("/account")
    assert answer.headers["RateLimit-Limit"] == "600"
    assert owner.get("/account").data["requestsPerMinute"] == 60


def test_requests_outside_the_console_s_paths_are_not_served(owner):
    assert owner.get("/nothing").status == 404
    assert "/console/api/account" in owner.get("/accounts").json["message"]
    wrong = owner.request("PUT", "/session", {})
    assert wrong.status == 405 and set(wrong.headers["Allow"].split(", ")) == {"GET", "HEAD", "POST", "DELETE"}


# ---- keys ----

def test_a_key_is_shown_once_and_works_until_it_is_revoked(stack, owner):
    made = owner.post("/keys", {"name": "server"})
    assert made.status == 201 and made.data["value"].startswith("iw_live_") and made.data["expiresAt"] is None
    client = Client(stack, made.data["value"])
    assert client.list().status == 200
    [listed] = owner.get("/keys").items
    assert "value" not in listed and listed["prefix"] == made.data["value"][:16] and listed["lastUsedAt"] is not None
    with_end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    second = owner.post("/keys", {"name": "short", "expiresAt": with_end.isoformat()})
    assert second.status == 201 and second.data["expiresAt"]
    revoked = owner.delete(f"/keys/{made.data['id']}")
    assert revoked.status == 200 and revoked.data["revokedAt"]
    assert owner.delete(f"/keys/{made.data['id']}").data["revokedAt"] == revoked.data["revokedAt"]
    end = time.monotonic() + 60
    while client.list().status != 401:
        assert time.monotonic() < end
        time.sleep(0.2)
    assert [row["name"] for row in owner.get("/keys?limit=1&page=2").items] == ["server"]


@pytest.mark.parametrize("body, field", [
    ({}, "name"), ({"name": "x" * 101}, "name"), ({"name": "a\nb"}, "name"),
    ({"name": "a", "scopes": []}, "scopes"), ({"name": "a", "scopes": "read"}, "scopes"), ({"name": "a", "scopes": ["read", "all"]}, "scopes[1]"),
    ({"name": "a", "scopes": [1]}, "scopes[0]"), ({"name": "a", "scopes": ["read,"]}, "scopes[0]"), ({"name": "a", "scopes": ["read,webhooks"]}, "scopes[0]"),
    ({"name": "a", "expiresAt": "soon"}, "expiresAt"), ({"name": "a", "expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt")])
def test_a_key_names_the_bad_field(owner, body, field):
    answer = owner.post("/keys", body)
    assert answer.status == 400 and answer.fields() == [field]


def test_a_key_may_be_limited(stack, owner):
    made = owner.post("/keys", {"name": "reports", "scopes": ["webhooks", "read", "read"]}).data
    assert made["scopes"] == ["read", "webhooks"] and owner.get("/keys").items[0]["scopes"] == ["read", "webhooks"]
    client = Client(stack, made["value"])
    assert client.list().status == 200 and client.create().code == "AUTH_SCOPE_MISSING"
    assert owner.post("/keys", {"name": "all", "scopes": None}).data["scopes"] is None
    events = [event["details"] for event in owner.get("/audit").items if event["event"] == "keyCreated"]
    assert [event.get("scopes") for event in events] == [None, "read, webhooks"]


# ---- members ----

def test_an_invitation_makes_a_member_once(stack, owner):
    email = address_new()
    invited = owner.post("/account/invitations", {"email": email, "role": "member"})
    token = invited.data["link"].partition("token=")[2]
    assert invited.data["link"].startswith(stack.url + "/console/#/invitation?token=")
    browser = Browser(stack)
    seen = browser.post("/invitations/inspect", {"token": token})
    assert seen.data["email"] == email and seen.data["role"] == "member"
    assert browser.post("/invitations/accept", {"token": token, "name": "M", "password": "short"}).fields() == ["password"]
    answer = browser.took(browser.post("/invitations/accept", {"token": token, "name": "M", "password": PASSWORD}))
    assert answer.status == 200 and browser.account == owner.account
    for path in ("/invitations/inspect", "/invitations/accept"):
        again = Browser(stack).post(path, {"token": token, "name": "M", "password": PASSWORD})
        assert again.status == 400 and again.code == "TOKEN_INVALID"
    members = owner.get("/account/members").data
    assert [row["role"] for row in members["members"]] == ["owner", "member"] and members["invitations"] == []


def test_an_invitation_ends_when_it_is_deleted_replaced_or_old(stack, owner):
    email = address_new()
    first = owner.post("/account/invitations", {"email": email, "role": "member"}).data
    second = owner.post("/account/invitations", {"email": email, "role": "owner"}).data
    inspect = lambda data: Browser(stack).post("/invitations/inspect", {"token": data["link"].partition("token=")[2]})  # noqa: E731
    assert inspect(first).code == "TOKEN_INVALID" and inspect(second).data["role"] == "owner"
    assert owner.delete(f"/account/invitations/{second['id']}").status == 200
    assert inspect(second).code == "TOKEN_INVALID"
    third = owner.post("/account/invitations", {"email": email, "role": "member"}).data
    stack.sql(f"UPDATE invitations SET expires_at = UTC_TIMESTAMP(3) WHERE id = {third['id']}")
    assert inspect(third).code == "TOKEN_INVALID"


def test_a_member_may_not_do_an_owner_s_work(stack, owner):
    member = member_new(stack, owner)
    [_, row] = owner.get("/account/members").data["members"]
    for refused in (member.patch("/account", {"name": "x"}), member.post("/account/invitations", {"email": "a@b.example", "role": "owner"}),
                    member.delete("/account/invitations/1"), member.patch(f"/account/members/{row['userId']}", {"role": "owner"}),
                    member.delete(f"/account/members/{row['userId']}")):
        assert refused.status == 403 and refused.code == "ROLE_REQUIRED"
    assert member.get("/account/members").status == member.get("/keys").status == member.get("/audit").status == 200


def test_an_account_keeps_an_owner(stack, owner):
    member = member_new(stack, owner)
    rows = {row["email"]: row["userId"] for row in owner.get("/account/members").data["members"]}
    for refused in (owner.patch(f"/account/members/{rows[owner.email]}", {"role": "member"}),
                    owner.delete(f"/account/members/{rows[owner.email]}")):
        assert refused.status == 409 and refused.code == "LAST_OWNER"
    assert owner.patch(f"/account/members/{rows[member.email]}", {"role": "owner"}).status == 200
    assert member.patch(f"/account/members/{rows[owner.email]}", {"role": "member"}).status == 200
    assert owner.patch("/account", {"name": "x"}).code == "ROLE_REQUIRED"
    assert member.delete(f"/account/members/{rows[owner.email]}").status == 200
    assert owner.get("/account").status == 401
    assert Browser(stack).sign_in(owner.email).code == "SIGN_IN_FAILED"


def test_the_account_is_renamed_to_a_free_name(owner, other):
    name = address_new()
    assert owner.patch("/account", {"name": name}).data["name"] == name
    taken = other.patch("/account", {"name": name})
    assert taken.status == 400 and taken.fields() == ["name"]


# ---- another account's objects ----

def object_routes():
    """Returns method and pattern of every route of the console with an id in the path, except the operator's routes."""
    found = set()
    for folder in ("api", "console"):
        for file in pathlib.Path(ROOT, "src", folder).glob("*.c"):
            text = file.read_text(encoding="utf-8").replace('BASE "', '"/api/v2/orders/webhooks')
            found.update(re.findall(r'\{METHOD_([A-Z]+), "(/api/[^"]*\{[^"]*)"', text))
    assert len(found) > 15
    return sorted(route for route in found if "/admin/" not in route[1])


def test_another_account_s_objects_are_not_there(stack, owner, other):
    order, key = ordered(owner)["orderId"], owner.post("/keys", {"name": "k"}).data["id"]
    member = member_new(stack, owner)
    user = [row["userId"] for row in owner.get("/account/members").data["members"] if row["email"] == member.email][0]
    invitation = owner.post("/account/invitations", {"email": address_new(), "role": "member"}).data["id"]
    session = owner.get("/user/sessions").data["sessions"][0]["id"]
    hook = owner.post("/v2/orders/webhooks", {"url": "https://hooks.example/x", "name": "x"}).data["id"]
    tries = [("GET", f"/v2/orders/{order}", None), ("DELETE", f"/v2/orders/{order}", None),
             ("GET", f"/v2/orders/{order}/download", None), ("POST", f"/v2/orders/{order}/refresh-urls", {}),
             ("POST", "/v2/orders/anti-ai/confirm", {"idempotencyKey": "k", "orderId": order}),
             ("GET", f"/v2/orders/webhooks/{hook}", None), ("PUT", f"/v2/orders/webhooks/{hook}", {"name": "mine"}),
             ("DELETE", f"/v2/orders/webhooks/{hook}", None), ("POST", f"/v2/orders/webhooks/{hook}/test", {}),
             ("POST", f"/v2/orders/webhooks/{hook}/rotate-secret", {}), ("GET", f"/v2/orders/webhooks/{hook}/events", None),
             ("GET", f"/webhooks/{hook}/events/1/bodies", None), ("GET", "/requests/1/bodies", None),
             ("POST", f"/v2/orders/webhooks/{hook}/events/1/retry", {}),
             ("DELETE", f"/keys/{key}", None), ("DELETE", f"/account/invitations/{invitation}", None),
             ("PATCH", f"/account/members/{user}", {"role": "owner"}), ("DELETE", f"/account/members/{user}", None),
             ("DELETE", f"/user/sessions/{session}", None)]
    for method, path, body in tries:
        answer = other.request(method, path, body)
        assert answer.status == 404, (method, path, answer)
    missing = [(method, pattern) for method, pattern in object_routes()
               if not any(method == tried and re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", pattern), "/api" + path)
                          for tried, path, _ in tries)]
    assert missing == []
    # Another member of the account may not end a user's session either.
    assert member.delete(f"/user/sessions/{session}").status == 404
    for path in ("/keys", "/v2/orders", "/v2/orders/webhooks", "/requests"):
        assert other.get(path).items == []
    assert {row["email"] for row in other.get("/account/members").data["members"]} == {other.email}
    assert all(row["user"] is None or row["user"]["name"] == "Test" for row in other.get("/audit").items)
    assert owner.get(f"/v2/orders/{order}").status == 200 and owner.get("/keys").items[0]["revokedAt"] is None


ADMIN = [("GET", "/admin/accounts", None), ("POST", "/admin/accounts", {"name": "x", "plan": "free"}),
         ("GET", "/admin/accounts/1", None), ("PATCH", "/admin/accounts/1", {"plan": "pro"}), ("GET", "/admin/users", None),
         ("PATCH", "/admin/users/1", {"isAdmin": True}), ("POST", "/admin/users/1/reset", {}), ("GET", "/admin/queue", None),
         ("GET", "/admin/jobs", None), ("POST", "/admin/jobs/1/retry", {}), ("GET", "/admin/health", None)]


@pytest.mark.parametrize("method, path, body", ADMIN)
def test_only_the_operator_s_users_reach_the_admin_side(owner, browser, method, path, body):
    refused = owner.request(method, path, body)
    assert refused.status == 403 and refused.code == "ROLE_REQUIRED"
    assert browser.request(method, path, body).status == 401


# ---- request log, audit log, limits ----

def logged(owner, query="", count=1, seconds=60):
    """Returns the request log when it has so many rows; a pool process writes them within a second."""
    end = time.monotonic() + seconds
    while True:
        answer = owner.get("/requests?" + query)
        assert answer.status == 200, answer
        if answer.page["totalItems"] >= count:
            return answer
        assert time.monotonic() < end, answer
        time.sleep(0.1)


def test_the_request_log_shows_the_requests_with_keys(stack, owner):
    made = owner.post("/keys", {"name": "log"}).data
    client = Client(stack, made["value"])
    answers = [client.list(), client.detail("1"), client.post("/api/v2/orders/anti-ai", {"files": []})]
    rows = logged(owner, count=3).items
    assert {row["requestId"] for row in rows} == {answer.headers["X-Request-Id"] for answer in answers}
    assert all(row["keyId"] == made["id"] and row["milliseconds"] >= 0 for row in rows)
    [missing] = logged(owner, "status=404").items
    assert (missing["method"], missing["path"], missing["code"]) == ("GET", "/api/v2/orders/1", "ORDER_NOT_FOUND")
    [posted] = owner.get("/requests?method=POST").items
    assert posted["status"] == 400 and posted["code"] == "VALIDATION_FAILED"
    assert owner.get("/requests?status=4xx").page["totalItems"] == 2
    assert owner.get("/requests?code=ORDER_NOT_FOUND").page["totalItems"] == 1
    assert owner.get(f"/requests?keyId={made['id']}&limit=1").page["totalPages"] == 3
    query = urllib.parse.urlencode({"requestId": missing["requestId"]})
    assert owner.get("/requests?" + query).items == [missing]
    assert owner.get("/requests?status=many").fields() == ["status"]


def bodies_of(owner, answer):
    """Returns the bodies that the console shows of a request, as soon as the log has them."""
    request_id = answer.headers["X-Request-Id"]
    logged(owner, urllib.parse.urlencode({"requestId": request_id}))
    return owner.get(f"/requests/{request_id}/bodies")


def test_bodies_of_changes_and_errors_are_kept_without_secrets(stack, owner, other):
    client = Client(stack, owner.post("/keys", {"name": "log"}).data["value"])
    made = client.create(files=["holiday.jpg"])
    kept = bodies_of(owner, made).data
    assert json.loads(kept["requestBody"])["files"] == [{"fileName": "holiday.jpg"}]
    shown, sent = json.loads(kept["responseBody"])["data"]["files"][0]["uploadUrl"], made.data["files"][0]["uploadUrl"]
    assert shown == sent.partition("?")[0] + "?***" and "s=" in sent
    hook = client.post("/api/v2/orders/webhooks", {"url": "http://127.0.0.1:9/hook?key=of-the-client"})
    kept = bodies_of(owner, hook).data
    assert "of-the-client" not in str(kept) and hook.data["secret"] not in str(kept) and '"secret":"***"' in kept["responseBody"]
    refused = client.post("/api/v2/orders/anti-ai", body="{'no json'", headers={"Content-Type": "application/json"})
    kept = bodies_of(owner, refused).data
    assert kept["requestBody"] == "(not kept: 10 bytes that are not valid JSON)" and json.loads(kept["responseBody"])["code"] == "VALIDATION_FAILED"
    missing = bodies_of(owner, client.detail("1")).data
    assert missing["requestBody"] == "" and json.loads(missing["responseBody"])["code"] == "ORDER_NOT_FOUND"
    assert bodies_of(owner, client.list()).status == 404
    assert other.get(f"/requests/{made.headers['X-Request-Id']}/bodies").status == 404
    long = client.post("/api/v2/orders/anti-ai", {"files": [{"fileName": f"{number}.gif"} for number in range(200)]})
    kept = bodies_of(owner, long).data
    assert len(kept["requestBody"].encode()) == 4096 and kept["requestBody"].endswith("…")


def test_bodies_are_not_kept_where_the_operator_turned_this_off(stack, owner):
    client = Client(stack, owner.post("/keys", {"name": "log"}).data["value"])
    kept = client.create()
    assert bodies_of(owner, kept).status == 200
    with stack.configured("console", "keep_bodies", "no"):
        assert bodies_of(owner, client.create()).status == 404
        assert bodies_of(owner, kept).status == 404
    assert bodies_of(owner, client.create()).status == 200


def test_bodies_of_a_delivery_are_kept_for_seven_days(stack, owner):
    hook = owner.post("/v2/orders/webhooks", {"url": "http://127.0.0.1:9/hook#of-the-client", "name": "x"}).data["id"]
    paths = [f"/webhooks/{hook}/events/{owner.post(f'/v2/orders/webhooks/{hook}/test', {}).data['eventId']}/bodies" for _ in "ab"]
    for path in paths:
        settled(lambda: owner.get(path).status == 200)
    data = owner.get(paths[0]).data
    assert json.loads(data["payload"]) and len(data["headers"]) >= 4
    stack.sql(f"UPDATE webhook_deliveries SET created_at = created_at - INTERVAL 8 DAY WHERE event_id = {paths[0].split('/')[4]}")
    settled(lambda: owner.get(paths[0]).status == 404)
    assert owner.get(paths[1]).status == 200
    with stack.configured("console", "keep_bodies", "no"):
        assert owner.get(paths[1]).status == 404
        settled(lambda: stack.sql("SELECT COUNT(*) FROM delivery_bodies") == [["0"]])


def settled(is_so, seconds=120):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.5)


def test_a_failure_of_bodies_loses_no_request(stack, owner):
    client = Client(stack, owner.post("/keys", {"name": "log"}).data["value"])
    stack.sql("RENAME TABLE request_bodies TO request_bodies_away")
    try:
        request_id = client.create().headers["X-Request-Id"]
        logged(owner, urllib.parse.urlencode({"requestId": request_id}))
    finally:
        stack.sql("RENAME TABLE request_bodies_away TO request_bodies")
    assert owner.get(f"/requests/{request_id}/bodies").status == 404


def test_old_requests_are_deleted(stack, owner):
    made = owner.post("/keys", {"name": "log"}).data
    Client(stack, made["value"]).detail("1")
    logged(owner)
    # The update moves all rows, because the worker looks at the oldest.
    stack.sql("UPDATE request_log SET at = at - INTERVAL 8 DAY; UPDATE request_bodies SET at = at - INTERVAL 8 DAY")
    assert owner.get("/requests").items == []
    end = time.monotonic() + 120
    while stack.sql(f"SELECT 1 FROM request_log WHERE account_id = {owner.account} UNION ALL "
                    f"SELECT 1 FROM request_bodies WHERE account_id = {owner.account}"):
        assert time.monotonic() < end
        time.sleep(0.5)


def test_the_audit_log_tells_what_happened(stack, owner):
    key = owner.post("/keys", {"name": "audited"}).data
    owner.delete(f"/keys/{key['id']}")
    member = member_new(stack, owner)
    member.delete("/session")
    events = owner.get("/audit?limit=100").data["events"]
    names = [event["event"] for event in events]
    assert names[:6] == ["signedOut", "signedIn", "invitationAccepted", "memberInvited", "keyRevoked", "keyCreated"]
    assert events[5]["details"] == {"name": "audited", "prefix": key["prefix"]}
    assert events[5]["user"]["name"] == "Test" and events[5]["address"] == owner.address
    assert key["value"] not in str(events)


def test_the_session_tells_the_limits_of_the_service(stack, owner):
    data = owner.get("/session").data
    assert data["account"]["resultRetentionSeconds"] == 7 * 86400
    with stack.configured("plan_free", "result_retention_s", str(14 * 86400)):
        assert owner.get("/session").data["account"]["resultRetentionSeconds"] == 14 * 86400
    formats = [{"name": title, "type": kind, "extensions": extensions} for title, kind, extensions in pictures.CHANGED]
    service = data["service"]
    assert [entry["name"] for entry in service.pop("extractFormats")] == \
        [title for title, _, _ in pictures.CHANGED + pictures.READ]
    assert service == {"maxFileBytes": 52428800, "maxFiles": 100, "maxFileNameBytes": 255, "maxPixels": 100000000,
                       "maxSidePixels": 16384,
                       "minSidePixels": {"antiAi": 64, "watermarkEmbed": 256, "watermarkExtract": 0},
                       "formats": formats, "strengths": ["low", "standard", "high"],
                       "maxTexts": 10, "maxTextLength": 1000, "maxNameLength": 64, "minPasswordLength": 12,
                       "passwordResetSeconds": 3600, "pendingSeconds": 86400, "secretOverlapSeconds": 86400,
                       "webhookFailureSeconds": 432000, "requestLogDays": 7, "statisticsDays": 7,
                       "apiBaseUrl": stack.url + "/api/v2/orders"}


def test_a_suspended_account_can_only_see_itself(stack, owner):
    name = owner.get("/account").data["name"]
    stack.ctl("account", "suspend", name)
    assert owner.get("/session").data["account"]["status"] == "suspended"
    for path in ("/v2/orders", "/keys", "/account"):
        answer = owner.get(path)
        assert answer.status == 403 and answer.code == "AUTH_FORBIDDEN"
    assert owner.get("/user/sessions").status == 200
    stack.ctl("account", "resume", name)
    assert owner.get("/account").status == 200


def test_a_deleted_account_leaves_nothing(stack, owner):
    made = owner.post("/keys", {"name": "log"}).data
    Client(stack, made["value"]).list()
    logged(owner)
    name = owner.get("/account").data["name"]
    stack.ctl("account", "delete", "--grace-days", "0", name)
    tables = ("accounts WHERE id", "users WHERE account_id", "audit_events WHERE account_id", "request_log WHERE account_id",
              "request_bodies WHERE account_id")
    end = time.monotonic() + 240
    while any(stack.sql(f"SELECT 1 FROM {table} = {owner.account} LIMIT 1") for table in tables):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert owner.get("/account").status == 401


@pytest.mark.parametrize("method, path, status", [("PUT", "/keys/mine", 404), ("PUT", "/keys/7", 405), ("PATCH", "/account/invitations/x", 404),
                                                  ("POST", "/keyz", 404)])
def test_a_path_without_a_number_for_its_id_does_not_exist(owner, method, path, status):
    answer = owner.request(method, path, {})
    assert answer.status == status and ("Allow" in answer.headers) == (status == 405), answer
