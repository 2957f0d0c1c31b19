"""Keys, webhooks, requests, account and the operator's pages in the browser."""
import os
import subprocess

import pytest

import pictures
from browser import PASSWORD, Browser
from client import Client
from receiver import Receiver


def test_a_key_is_shown_once_and_its_lines_make_an_order(inside, stack, tmp_path):
    inside.go("/developers")
    inside.press("Create key")
    inside.press("Create key", "dialog [type=submit]")
    assert inside.error_of("Name")
    inside.fill("Name", "web shop")
    inside.press("Create key", "dialog [type=submit]")
    inside.says("It is shown only once")
    value, lines = [one.text for one in inside.all("dialog .secret code")]
    assert value.startswith("iw_live_") and lines.count("\n") == 2
    (tmp_path / "picture.jpg").write_bytes(pictures.jpeg(200, 200))
    answer = subprocess.run(["sh", "-euc", lines], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path,
                            env={**os.environ, "IMGWARD_CA": stack.environment["IMGWARD_CA"]})
    assert '"status":"inProgress"' in answer.stdout, answer.stdout
    inside.press("I have stored it")
    inside.says("web shop", "Active")
    assert value not in inside.driver.page_source
    inside.press("Revoke: web shop")
    inside.press("Revoke", "dialog button")
    inside.says("Revoked")
    inside.go("/developers/requests")

    def logged():
        # The service writes its log within seconds.
        if "/api/v2/orders" not in inside.text():
            inside.press("Refresh")
        return "/api/v2/orders" in inside.text()
    inside.wait(logged, "the logged request")
    inside.says("today, ", "web shop")
    inside.choose("Method", "DELETE")
    inside.says("No matching requests")
    assert "method=DELETE" in inside.path
    inside.press("Show all requests")
    inside.says("POST /api/v2/orders/anti-ai")
    assert inside.path == "/developers/requests"


def test_a_key_is_limited_when_it_is_created(inside, stack):
    inside.go("/developers")
    inside.press("Create key")
    inside.fill("Name", "reports")
    inside.choose("Permissions", "read")
    inside.picture("key-scope-1440-light")
    inside.press("Create key", "dialog [type=submit]")
    inside.says("It is shown only once")
    [value] = [one.text for one in inside.all("dialog .secret code")]
    client = Client(stack, value)
    assert client.list().status == 200 and client.create().code == "AUTH_SCOPE_MISSING"
    inside.press("I have stored it")
    inside.says("reports", "Only read")
    for width in (390, 1280):
        inside.size(width)
        assert inside.overflow() == ""
        inside.picture(f"keys-scope-{width}-light")


def test_a_request_opens_a_drawer_with_its_bodies(inside, owner, stack):
    client = Client(stack, owner.post("/keys", {"name": "web shop"}).data["value"])
    made = client.create(files=["holiday.jpg"])
    client.list()
    inside.go("/developers/requests")
    inside.wait(lambda: len(inside.all("button.open")) == 2 or inside.press("Refresh"), "two requests")
    inside.press("POST /api/v2/orders/anti-ai", "button.open")
    inside.says("Response body", '"fileName": "holiday.jpg"', "uploadUrl", "?***", made.headers["X-Request-Id"])
    inside.press("Close", "dialog button")
    inside.press("GET /api/v2/orders", "button.open")
    inside.says("The bodies of reads that succeed are not kept.")
    inside.driver.back()
    inside.wait(lambda: not inside.all("dialog"), "the closed drawer")


@pytest.fixture
def receiver():
    receiver = Receiver()
    receiver.answers["/hook"] = (202, {"Content-Type": "text/plain"}, b"Received, thank you.")
    yield receiver
    receiver.close()


def test_a_delivery_opens_a_drawer_and_deliveries_are_filtered(inside, owner, receiver):
    hook = owner.post("/v2/orders/webhooks", {"url": receiver.url("/hook"), "name": "production"}).data
    owner.post(f"/v2/orders/webhooks/{hook['id']}/test")
    inside.go(f"/developers/webhooks/{hook['id']}")
    inside.says("Delivered")
    inside.press("webhook.test", "button.open")
    inside.says("webhook-signature", "Payload", '"eventType": "webhook.test"', "Received, thank you.", ".body")
    assert hook["secret"] not in inside.driver.page_source
    inside.press("Close", "dialog button")
    inside.choose("Status", "FAILED")
    inside.says("No matching deliveries")
    inside.press("Show all deliveries")
    inside.says("webhook.test")
    inside.fill("Search", "order.")
    inside.says("No matching deliveries")


def test_empty_lists_say_what_to_do(inside):
    for path, words, button in (("/developers", "No API keys", "Create key"), ("/developers/webhooks", "No webhooks", "Add webhook"),
                                ("/developers/requests", "No requests yet", "API keys")):
        inside.go(path)
        inside.says(words)
        assert inside.named(button, ".empty button, .empty a"), path


def test_a_webhook_from_its_creation_to_its_end(inside):
    inside.go("/developers/webhooks")
    inside.press("Add webhook")
    inside.fill("URL", "not a url")
    inside.press("Add webhook", "dialog [type=submit]")
    assert inside.error_of("URL")
    inside.fill("URL", "http://127.0.0.1:9/hook")
    inside.fill("Name", "production")
    inside.press("Add webhook", "dialog [type=submit]")
    inside.says("Copy the secret now")
    assert inside.find("dialog .secret code").text.startswith("whsec_")
    inside.press("I have stored it")
    inside.press("Send test")
    inside.says("webhook.test", "no connection")
    inside.press("Pause")
    inside.says("You paused this webhook.", "Failed")
    inside.wait(lambda: inside.all("td.do button"), "the button of a failed delivery")
    inside.press("Resume")
    inside.wait(lambda: inside.named("Pause", "button"), "the active webhook")
    inside.click(inside.find("td.do button"))
    inside.says("Pending")
    inside.press("Rotate secret")
    inside.press("Rotate secret", "dialog button")
    inside.says("the old secret also signs")
    inside.press("I have stored it")
    inside.press("Edit")
    inside.fill("Name", "renamed")
    inside.press("Save")
    inside.says("renamed")
    inside.press("Delete")
    inside.press("Delete", "dialog button")
    inside.says("No webhooks")


def test_the_profile_and_the_language_are_kept(inside, owner):
    inside.go("/account")
    inside.fill("Name", "Ada of the Studio")
    inside.press("Save", "section:first-of-type button")
    inside.says("Saved.")
    inside.choose("Language", "ko")
    inside.says("계정", "프로필")
    inside.wait(lambda: owner.get("/session").data["user"]["language"] == "ko", "the language of the user")
    inside.open("/")
    inside.says("Ada of the Studio 님, 안녕하세요")


def test_a_password_needs_the_current_one_and_ends_other_sessions(inside, owner, stack):
    second = Browser(stack)
    assert second.sign_in(owner.email).status == 200
    inside.go("/account/security")
    inside.wait(lambda: len(inside.all("tbody tr")) == 2, "two sessions")
    inside.fill("Current password", "not the password")
    inside.fill("New password", "another correct horse")
    inside.press("Change password")
    assert inside.error_of("Current password")
    inside.fill("Current password", PASSWORD)
    inside.press("Change password")
    inside.says("The password was changed.")
    assert second.get("/user/sessions").status == 401


def test_other_sessions_are_ended(inside, owner, stack):
    second = Browser(stack)
    assert second.sign_in(owner.email).status == 200
    inside.go("/account/security")
    inside.wait(lambda: len(inside.all("tbody tr")) == 2, "two sessions")
    inside.press("End")
    inside.wait(lambda: len(inside.all("tbody tr")) == 1, "one session")
    assert second.get("/user/sessions").status == 401


def test_members_and_the_audit_log(inside, owner):
    inside.go("/account/members")
    inside.says(owner.email)
    inside.press("Invite")
    inside.fill("Email", "no address")
    inside.press("Invite", "dialog [type=submit]")
    assert inside.error_of("Email")
    inside.press("Cancel", "dialog button")
    inside.driver.execute_script("arguments[0].value = 'member'; arguments[0].dispatchEvent(new Event('change', {bubbles: true}))",
                                 inside.find("td select"))
    inside.says("An account needs at least one owner.")
    inside.go("/account/audit")
    inside.wait(lambda: len(inside.all("tbody tr")) > 0, "events")
    inside.says("Signed up", "today, ", f"email: {owner.email}")
    assert "network:" not in inside.text()


@pytest.fixture
def admin(window, operator):
    window.enter(operator)
    window.open("/admin")
    return window


def test_the_operator_creates_suspends_and_resumes_an_account(admin, owner):
    admin.press("Create account")
    admin.fill("Name", "Print House " + owner.account)
    admin.press("Create account", "dialog [type=submit]")
    admin.press("Close", "dialog footer button")
    admin.fill("Search", "Print House " + owner.account)
    admin.press("Print House " + owner.account)
    admin.press("Suspend")
    admin.press("Suspend", "dialog button")
    admin.press("Resume")
    admin.wait(lambda: admin.named("Suspend", "button"), "the active account")
    admin.fill("Requests a minute", "77")
    admin.press("Save", "section button")
    admin.says("Saved.")


def test_a_job_that_cannot_be_retried_has_no_button(admin, owner, stack):
    client = Client(stack, owner.post("/keys", {"name": "ended"}).data["value"])
    order = client.order_whole([("a.jpg", pictures.jpeg(200, 200))])["orderId"]
    stack.sql(f"UPDATE jobs SET status = 'failed', reason = 'test' WHERE order_id = {order}")
    try:
        admin.go("/admin/queue")
        admin.says("Dead jobs", order, "Files refused today")
        assert not admin.named("Try again", "button")
    finally:
        stack.sql(f"UPDATE jobs SET status = 'done' WHERE order_id = {order}")
    admin.go("/admin/health")
    admin.says("File store", "GB are free.")


def test_the_operator_disables_a_user(admin, owner):
    admin.go("/admin/users")
    admin.fill("Search", owner.email)
    admin.wait(lambda: len(admin.all("tbody tr")) == 1, "one user")
    admin.click(admin.all("td.do button")[1])
    admin.says("Disabled")
    assert owner.get("/account").status == 401
    admin.click(admin.all("td.do button")[0])
    admin.press("Reset password", "dialog button")
    admin.says("Send this link to the user.")


def test_the_operator_sees_queue_and_health(admin):
    admin.go("/admin/queue")
    admin.says("Queued jobs", "Workers", "Dead jobs")
    admin.go("/admin/health")
    admin.wait(lambda: len(admin.all("tbody tr")) > 0, "checks")


def test_a_member_of_an_account_is_no_operator(inside):
    inside.go("/admin")
    inside.says("This page does not exist")
