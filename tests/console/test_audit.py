"""The audit log has an event for every route that changes something, with the user's address; and the makers of keys."""
import os
import pathlib
import re
import time

import pytest

from browser import PASSWORD, Browser, address_new, member_new, totp
from client import Client
from receiver import Receiver
from test_account import ordered

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Work on orders, which is shown in the list of orders, and the inspection of an invitation.
WITHOUT = {("POST", f"/api/v2/orders/{path}") for path in
           ("anti-ai", "anti-ai/with-urls", "anti-ai/confirm", "wtr-embed", "wtr-extract", "{orderId}/refresh-urls")} | {
    ("POST", "/api/invitations/inspect")}


def changing_routes():
    """Returns method and pattern of every route of the console that is not a GET."""
    found = set()
    for folder in ("api", "console"):
        for file in pathlib.Path(ROOT, "src", folder).glob("*.c"):
            if file.name in ("store_events.c", "files.c", "watch.c"):
                continue  # the route is not in src/console/routes.c
            text = re.sub(r'BASE( ")?', lambda match: '"/api/v2/orders/webhooks' + ("" if match[1] else '"'), file.read_text(encoding="utf-8"))
            found.update(re.findall(r'\{METHOD_(POST|PUT|PATCH|DELETE), "(/api/[^"]*)"', text))
    assert len(found) > 30
    return found


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


class Story:
    """Calls routes and collects the events that each call adds."""

    def __init__(self, stack):
        self.stack, self.seen = stack, {}

    def last(self):
        return int(self.stack.sql("SELECT COALESCE(MAX(id), 0) FROM audit_events")[0][0])

    def __call__(self, browser, method, pattern, body=None, query="", **captures):
        before = self.last()
        path = re.sub(r"\{(\w+)\}", lambda match: str(captures[match[1]]), pattern.removeprefix("/api"))
        answer = browser.request(method, path + query, body if body is not None else {})
        assert answer.status in (200, 201), (method, pattern, answer)
        self.seen[method, pattern] = [row[0] for row in self.stack.sql(f"SELECT event FROM audit_events WHERE id > {before} ORDER BY id")]
        return browser.took(answer)


def test_every_changing_route_adds_an_event(stack, owner, operator, receiver):
    tell, gone = Story(stack), Browser(stack)
    email = address_new()
    tell(gone, "POST", "/api/sign-up", {"email": email, "password": PASSWORD, "name": "G", "accountName": address_new()})
    tell(gone, "DELETE", "/api/session")
    token = stack.ctl("user", "reset", email).strip().partition("token=")[2]
    tell(gone, "POST", "/api/password/reset", {"token": token, "password": PASSWORD})
    tell(gone, "POST", "/api/session", {"email": email, "password": PASSWORD})
    tell(gone, "PATCH", "/api/user", {"name": "Renamed"})
    secret = tell(gone, "POST", "/api/user/totp", {"password": PASSWORD}).data["secret"]
    codes = tell(gone, "POST", "/api/user/totp/enable", {"code": totp(secret)}).data["recoveryCodes"]
    challenge = Browser(stack).sign_in(email).data["challenge"]
    tell(gone, "POST", "/api/session/second-factor", {"challenge": challenge, "code": codes[0]})
    tell(gone, "POST", "/api/user/totp/recovery-codes", {"password": PASSWORD})
    tell(gone, "POST", "/api/user/totp/disable", {"password": PASSWORD})
    tell(gone, "POST", "/api/user/password", {"currentPassword": PASSWORD, "newPassword": PASSWORD + " 2"})
    tell(gone, "DELETE", "/api/user/sessions")
    tell(gone, "DELETE", "/api/user/sessions/{sessionId}", sessionId=gone.get("/user/sessions").data["sessions"][0]["id"])
    # The account.
    tell(owner, "PATCH", "/api/account", {"name": address_new()})
    invited = tell(owner, "POST", "/api/account/invitations", {"email": address_new(), "role": "member"}).data
    tell(owner, "DELETE", "/api/account/invitations/{invitationId}", invitationId=invited["id"])
    invited = owner.post("/account/invitations", {"email": address_new(), "role": "member"}).data
    tell(Browser(stack), "POST", "/api/invitations/accept", {"token": invited["link"].partition("token=")[2], "name": "M", "password": PASSWORD})
    member = owner.get("/account/members").data["members"][1]["userId"]
    tell(owner, "PATCH", "/api/account/members/{userId}", {"role": "owner"}, userId=member)
    tell(owner, "DELETE", "/api/account/members/{userId}", userId=member)
    key = tell(owner, "POST", "/api/keys", {"name": "k"}).data["id"]
    tell(owner, "DELETE", "/api/keys/{keyId}", keyId=key)
    # Orders and webhooks.
    tell(owner, "DELETE", "/api/v2/orders/{orderId}", orderId=ordered(owner)["orderId"])
    hooks = "/api/v2/orders/webhooks"
    hook = tell(owner, "POST", hooks, {"url": receiver.url("/hook"), "name": "h"}).data["id"]
    tell(owner, "PUT", hooks + "/{webhookId}", {"name": "i"}, webhookId=hook)
    tell(owner, "POST", hooks + "/{webhookId}/rotate-secret", webhookId=hook)
    event = tell(owner, "POST", hooks + "/{webhookId}/test", webhookId=hook).data
    end = time.monotonic() + 60
    while owner.get(f"/v2/orders/webhooks/{hook}/events").items[0]["status"] == "PENDING" and time.monotonic() < end:
        time.sleep(0.1)
    stack.sql(f"UPDATE webhook_deliveries SET status = 'FAILED' WHERE webhook_id = {hook}")
    tell(owner, "POST", hooks + "/{webhookId}/events/{eventId}/retry", webhookId=hook, eventId=event["eventId"] if "eventId" in event else event["id"])
    tell(owner, "DELETE", hooks + "/{webhookId}", webhookId=hook)
    # The operator.
    account = tell(operator, "POST", "/api/admin/accounts", {"name": address_new(), "plan": "free"}).data["id"]
    tell(operator, "PATCH", "/api/admin/accounts/{accountId}", {"plan": "pro"}, accountId=account)
    [user] = operator.get(f"/admin/users?keyword={owner.email}").items
    tell(operator, "PATCH", "/api/admin/users/{userId}", {"isAdmin": True}, userId=user["id"])
    tell(operator, "POST", "/api/admin/users/{userId}/reset", userId=user["id"])
    missing = {route for route in changing_routes() if route not in tell.seen} - WITHOUT
    assert missing == WITH_MAIL, missing
    assert [route for route, events in tell.seen.items() if not events] == []
    # For objects of the API, the event names the object, and the user by the address.
    shown = {row["event"]: row for row in owner.get("/audit?limit=100").items}
    assert shown["webhookDeleted"]["details"] == {"id": str(hook)} and shown["webhookDeleted"]["user"]["email"] == owner.email


# These need mail or a failed job: test_mails.py and test_admin.py.
WITH_MAIL = {("POST", "/api/email/verify"), ("POST", "/api/email/verify/resend"), ("POST", "/api/password/forgot"),
             ("POST", "/api/admin/jobs/{jobId}/retry")}


def test_an_event_has_the_address_beside_the_name_that_a_user_chose(stack, owner):
    member = member_new(stack, owner)
    name = owner.get("/session").data["user"]["name"]
    assert member.patch("/user", {"name": name}).status == 200
    assert member.post("/keys", {"name": "hidden"}).status == 201
    assert member.patch("/user", {"name": "Member"}).status == 200
    events = owner.get("/audit?limit=100").items
    [made] = [row for row in events if row["event"] == "keyCreated"]
    assert made["user"]["name"] == name and made["user"]["email"] == member.email
    renamed = [row["details"] for row in events if row["event"] == "profileChanged"]
    assert [row["name"] for row in renamed] == ["Member", name] and renamed[1]["before"] == "Member"


def test_a_key_names_its_maker_and_ends_with_it_when_the_owner_says_so(stack, owner):
    for revoke in (False, True):
        member = member_new(stack, owner)
        key = member.post("/keys", {"name": "of a member"}).data
        assert key["madeBy"]["email"] == member.email
        [row] = [row for row in owner.get("/account/members").data["members"] if row["email"] == member.email]
        assert row["keys"] == 1
        path = f"/account/members/{row['userId']}"
        assert owner.delete(path + "?keys=all").fields() == ["keys"]
        assert owner.delete(path + ("?keys=revoke" if revoke else "")).status == 200
        listed = owner.get("/keys").items[0]
        assert listed["madeBy"] == {"userId": row["userId"], "email": member.email}
        assert (listed["revokedAt"] is not None) == revoke
        assert owner.get("/audit").items[0]["details"] == {"email": member.email, "revokedKeys": "1" if revoke else "0"}
        if not revoke:
            assert Client(stack, key["value"]).list().status == 200


def test_a_key_of_the_operator_has_no_maker(stack, owner):
    stack.ctl("key", "create", "--name", "by hand", owner.account)
    assert owner.get("/keys").items[0]["madeBy"] is None
