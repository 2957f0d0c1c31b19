"""Every page in both themes and at 360 pixels: axe-core, the policy, no horizontal scroll, screenshots."""
import time

import pytest

import pictures
from browser import PASSWORD
from client import Client

PUBLIC = ["/sign-in", "/sign-up", "/forgot", "/reset?token=x", "/verify?token=x"]
PRIVATE = ["/", "/new", "/orders", "/orders/ORDER", "/read", "/developers", "/developers/webhooks", "/developers/webhooks/HOOK",
           "/developers/requests", "/account", "/account/security", "/account/members", "/account/audit"]
ADMIN = ["/admin", "/admin/accounts/ACCOUNT", "/admin/users", "/admin/queue", "/admin/health"]


@pytest.fixture
def filled(owner, anonymous):
    """Ids of an order with a result, a webhook and the account, because pages show some parts only with data."""
    made = owner.post("/v2/orders/anti-ai", {"idempotencyKey": "shown", "orderName": "A long name of an order that must not widen a phone",
                                             "files": [{"fileName": "a-very-long-file-name-without-any-space-at-all-in-it.jpg"}, {"fileName": "b.png"}]})
    for file, body in zip(made.data["files"], (pictures.jpeg(), pictures.png())):
        assert anonymous.put(file["uploadUrl"], body=body).status == 201
    assert owner.post("/v2/orders/anti-ai/confirm", {"idempotencyKey": "shown-start", "orderId": made.data["orderId"]}).status == 200
    end = time.monotonic() + 240
    while owner.get(f"/v2/orders/{made.data['orderId']}").data["status"] == "inProgress":
        assert time.monotonic() < end
        time.sleep(0.2)
    hook = owner.post("/v2/orders/webhooks", {"url": "http://127.0.0.1:9/hook-" + "x" * 80, "name": "production"}).data
    owner.post(f"/v2/orders/webhooks/{hook['id']}/test")
    Client(owner.stack, owner.post("/keys", {"name": "web shop"}).data["value"]).detail("1")
    return {"ORDER": made.data["orderId"], "HOOK": str(hook["id"]), "ACCOUNT": str(owner.account)}


def settled(window):
    """Waits until nothing on the page is loading."""
    window.wait(lambda: window.all("h1") and not window.all(".skeleton, main button[aria-busy=true]"), "the loaded page")


def inspect(window, modules, paths, ids, theme):
    """Opens each page; returns the findings."""
    found = []
    for pattern in paths:
        path = pattern
        for name, value in ids.items():
            path = path.replace(name, value)
        window.go(path, "h1")
        settled(window)
        name = (pattern.partition("?")[0].strip("/").replace("/", "-") or "overview").lower()
        found += [f"{pattern} {theme}: {line}" for line in window.axe(modules)]
        window.picture(f"{name}-1440-{theme}")
        window.size(360, 800)
        wide = window.overflow()
        found += [f"{pattern} at 360 pixels: {wide}"] if wide else []
        window.picture(f"{name}-360-{theme}")
        window.size(1440)
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page(window, modules, owner, operator, filled, theme):
    window.theme(theme)
    window.open("/sign-in")
    found = inspect(window, modules, PUBLIC, {}, theme)
    window.enter(owner)
    window.open("/", ".side")
    found += inspect(window, modules, PRIVATE, filled, theme)
    window.session_lose()
    window.enter(operator)
    window.open("/admin")
    found += inspect(window, modules, ADMIN, filled, theme)
    assert found == []


class Dialogs:
    """Inspects each open dialog: axe-core, and a screenshot at 1280 and 390 pixels."""

    def __init__(self, window, modules, theme):
        self.window, self.modules, self.theme, self.found, self.names = window, modules, theme, [], []
        window.theme(theme)
        window.size(1280)

    def at(self, path):
        self.window.go(path)
        settled(self.window)

    def open(self, name, *buttons):
        for button in buttons:
            self.window.press(button, "dialog button" if self.window.all("dialog") and button != buttons[0] else "main button")
        self.seen(name)

    def seen(self, name):
        self.window.find("dialog[open]")
        self.window.wait(lambda: not self.window.all("dialog [aria-busy=true]"), "the loaded dialog")
        self.names.append(name)
        self.found += [f"{name} {self.theme}: {line}" for line in self.window.axe(self.modules)]
        self.window.picture(f"dialog-{name}-1280-{self.theme}")
        self.window.size(390, 800)
        wide = self.window.overflow()
        self.found += [f"{name} at 390 pixels: {wide}"] if wide else []
        self.window.picture(f"dialog-{name}-390-{self.theme}")
        self.window.size(1280)

    def close(self, word="Cancel"):
        self.window.press(word, "dialog button")
        self.window.wait(lambda: not self.window.all("dialog"), "the closed dialog")


def of_orders(dialogs, ids):
    dialogs.at(f"/orders/{ids['ORDER']}")
    dialogs.open("order-delete", "Delete")
    dialogs.close()
    dialogs.window.press("View: b.png")
    dialogs.window.find("dialog .single canvas")
    dialogs.seen("result-view")
    dialogs.window.find("dialog input[type=file]").send_keys(ids["PICTURE"])
    dialogs.window.find("dialog .compare:not(.single) canvas")
    dialogs.seen("result-compare")
    dialogs.close("Close")
    dialogs.at("/new")
    dialogs.window.give([ids["PICTURE"]])
    dialogs.window.network(upload=100)
    dialogs.window.press("Protect 1 picture")
    dialogs.open("upload-cancel", "Cancel the order")
    dialogs.window.press("Cancel the order", "dialog button")
    dialogs.window.network()
    dialogs.window.says("Three steps")


def of_developers(dialogs, ids):
    window = dialogs.window
    dialogs.at("/developers")
    dialogs.open("key-create", "Create key")
    window.fill("Name", f"shop {dialogs.theme}")
    window.press("Create key", "dialog button")
    window.says("Copy the key now.")
    dialogs.seen("key-made")
    dialogs.close("I have stored it")
    dialogs.open("key-revoke", f"Revoke: shop {dialogs.theme}")
    dialogs.close()
    dialogs.at("/developers/webhooks")
    dialogs.open("webhook-create", "Add webhook")
    window.fill("URL", "http://127.0.0.1:9/again")
    window.press("Add webhook", "dialog button")
    window.says("Copy the secret now.")
    dialogs.seen("webhook-made")
    dialogs.close("I have stored it")
    dialogs.at(f"/developers/webhooks/{ids['HOOK']}")
    dialogs.open("delivery", "webhook.test")
    dialogs.close("Close")
    dialogs.at("/developers/requests")
    dialogs.open("request", "GET /api/v2/orders/1")
    dialogs.close("Close")
    dialogs.at(f"/developers/webhooks/{ids['HOOK']}")
    for name, button in (("webhook-edit", "Edit"), ("webhook-delete", "Delete"), ("webhook-rotate", "Rotate secret")):
        dialogs.open(name, button)
        if name != "webhook-rotate":
            dialogs.close()
    window.press("Rotate secret", "dialog button")
    window.says("the old secret also signs")
    dialogs.seen("webhook-rotated")
    dialogs.close("I have stored it")


def of_account(dialogs, ids):
    window = dialogs.window
    dialogs.at("/account/security")
    dialogs.open("sessions-end", "End all others")
    dialogs.close()
    dialogs.open("factor-password", "Turn on")
    window.fill("Password", ids["PASSWORD"])
    window.press("Continue", "dialog button")
    window.says("Scan this code")
    dialogs.seen("factor-code")
    dialogs.close()
    dialogs.at("/account/members")
    dialogs.open("member-invite", "Invite")
    window.fill("Email", f"friend-{dialogs.theme}@example.org")
    window.press("Invite", "dialog button")
    window.says("Send this link")
    dialogs.seen("member-invited")
    dialogs.close("Close")


def of_operator(dialogs, ids):
    window = dialogs.window
    dialogs.at("/admin")
    dialogs.open("account-create", "Create account")
    window.fill("Name", f"account of {ids['ACCOUNT']} {dialogs.theme}")
    window.fill("Email of the owner (optional)", f"owner-{ids['ACCOUNT']}-{dialogs.theme}@example.org")
    window.press("Create account", "dialog button")
    window.says("Send this link")
    dialogs.seen("account-made")
    dialogs.close("Close")
    dialogs.at(f"/admin/accounts/{ids['ACCOUNT']}")
    dialogs.open("account-suspend", "Suspend")
    dialogs.close()
    dialogs.at(f"/admin/users?keyword={ids['EMAIL']}")
    dialogs.open("user-reset", f"Reset password: {ids['USER']}")
    window.press("Reset password", "dialog button")
    window.says("Send this link")
    dialogs.seen("user-reset-link")
    dialogs.close("Close")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_dialog(window, modules, owner, operator, filled, tmp_path, theme):
    picture = tmp_path / "b.png"
    picture.write_bytes(pictures.png())
    ids = {**filled, "PICTURE": str(picture), "PASSWORD": PASSWORD, "EMAIL": owner.email, "USER": "Test"}
    window.enter(owner)
    window.open("/", ".side")
    dialogs = Dialogs(window, modules, theme)
    for look in (of_orders, of_developers, of_account):
        look(dialogs, ids)
    window.session_lose()
    window.go("/orders", "main")
    window.says("Please sign in again")
    dialogs.seen("sign-in-again")
    window.enter(operator)
    window.open("/admin")
    of_operator(dialogs, ids)
    assert dialogs.found == []
    assert len(set(dialogs.names)) == 26, dialogs.names


def test_an_open_dialog_leaves_its_button_as_it_is(inside):
    inside.go("/account/security")
    button = inside.wait(lambda: inside.named("End all others", "main button"), "the button")[0]
    size = button.size
    inside.click(button)
    inside.find("dialog[open]")
    assert button.size == size and button.get_attribute("aria-busy") is None


def test_navigation_closes_a_dialog_and_its_question(inside, owner, filled):
    """The question was about an order that is no longer on the screen."""
    inside.open("/orders")
    inside.press("A long name of an order that must not widen a phone")
    inside.press("Delete")
    inside.says("Delete 2 files of “A long name of an order that must not widen a phone”?")
    inside.driver.back()
    inside.wait(lambda: not inside.all("dialog"), "the closed question")
    assert owner.get(f"/v2/orders/{filled['ORDER']}").data["status"] == "complete"
    inside.go("/developers")
    inside.press("Create key")
    inside.find("dialog[open]")
    inside.driver.back()
    inside.wait(lambda: inside.path == "/orders" and not inside.all("dialog"), "the closed dialog")


def test_the_theme_switch_is_kept(inside):
    inside.press("Use dark colours")
    assert inside.driver.execute_script("return document.documentElement.dataset.theme") == "dark"
    inside.open("/")
    inside.wait(lambda: inside.named("Use light colours", "button"), "the dark page")


def test_the_first_load_is_small(window, record_testsuite_property):
    window.open("/sign-in", "form")
    loaded = window.driver.execute_script("return performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).map((one) => [one.name, one.encodedBodySize])")
    files = [(name, size) for name, size in loaded if "/console/api/" not in name]
    record_testsuite_property("requests", len(files))
    record_testsuite_property("bytes", sum(size for _, size in files))
    assert {name.split("/")[2] for name, _ in loaded} == {window.url.split("/")[2]}, "another host was asked"
    assert len(files) <= 25


def test_the_keyboard_reaches_the_content_and_closes_a_dialog(inside):
    from selenium.webdriver.common.keys import Keys
    body = inside.find("body")
    body.send_keys(Keys.TAB)
    assert inside.driver.switch_to.active_element.text == "Skip to the content"
    inside.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert inside.driver.switch_to.active_element.tag_name == "main"
    inside.go("/developers")
    inside.press("Create key")
    inside.find("dialog[open]")
    inside.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    inside.wait(lambda: not inside.all("dialog"), "the closed dialog")


def test_the_overview_has_a_list_for_each_kind_of_order(inside, owner, filled):
    inside.open("/", "#recent")
    inside.says("Newest orders", "A long name of an order that must not widen a phone")
    assert "Orders in progress" not in [one.text for one in inside.all("h2")]
    owner.post("/v2/orders/anti-ai", {"idempotencyKey": "waits", "orderName": "Still waiting", "files": [{"fileName": "a.jpg"}]})
    inside.open("/", "#running")
    lists = {one.get_attribute("aria-labelledby"): one.text for one in inside.all("section.card")}
    assert "Still waiting" in lists["running"] and "A long name" not in lists["running"]
    assert "A long name" in lists["recent"] and "Still waiting" not in lists["recent"]


def test_an_overview_without_results_has_no_chart_and_folds_unused_limits(inside):
    inside.says("No results in the last 7 days.", "limits not used yet")
    shown = "return [...document.querySelectorAll('meter')].filter((one) => one.checkVisibility({contentVisibilityAuto: true})).length"
    assert not inside.all(".chart") and inside.driver.execute_script(shown) == 0
    inside.press("7 limits not used yet", "summary")
    inside.wait(lambda: inside.driver.execute_script(shown) == 7, "the limits")


def test_the_colours_follow_the_system_while_the_page_is_open(inside, filled):
    inside.open("/", ".chart canvas")
    drawn = "return document.querySelector('.chart canvas').toDataURL()"
    before = inside.driver.execute_script(drawn)
    assert inside.named("Use dark colours", "button")
    inside.theme("dark")
    inside.wait(lambda: inside.named("Use light colours", "button"), "the sun")
    inside.wait(lambda: inside.all(".chart canvas") and inside.driver.execute_script(drawn) != before, "another chart")


SMALL_TARGETS = """
  return [...document.querySelectorAll("main button, main a.button, main select, main input, .tabs a, .side .bar button")]
    .filter((one) => one.getClientRects().length && !one.matches(".vh, .vh *, [type=range], [type=radio], [type=checkbox], .pictures .close, .link"))
    .filter((one) => one.getBoundingClientRect().height < 43.5).map((one) => one.outerHTML.slice(0, 90))"""


def test_a_phone(inside, filled, files):
    """390 pixels: targets of 44 pixels, an order in two lines, tabs in one row, the button of a new order in view."""
    inside.size(390, 844)
    small = []
    for path in ("/", "/orders", "/new", "/developers", "/developers/webhooks/" + filled["HOOK"], "/developers/requests", "/account/security"):
        inside.go(path, "h1")
        settled(inside)
        small += [f"{path}: {one}" for one in inside.driver.execute_script(SMALL_TARGETS)]
    assert small == []
    inside.go("/orders")
    inside.says("A long name of an order")
    assert inside.find("tbody tr").size["height"] < 90
    inside.go("/account/audit")
    settled(inside)
    tabs = inside.all(".tabs a")
    assert len({one.rect["y"] for one in tabs}) == 1
    current = inside.find(".tabs a[aria-current]").rect
    assert current["x"] >= 0 and current["x"] + current["width"] <= 390
    inside.go("/new")
    assert not [one for one in inside.named("Choose a folder", "button") if one.is_displayed()]
    inside.give(files)
    inside.says("10 pictures ready")
    inside.driver.execute_script("scrollTo(0, 0)")
    button = inside.named("Protect 10 pictures", "button")[0]
    place = inside.driver.execute_script("const at = arguments[0].getBoundingClientRect(); return [at.top, at.bottom]", button)
    assert 700 < place[0] < place[1] <= 844


RULER = """
  const of = (css) => { const at = document.querySelector(css).getBoundingClientRect(); return [at.left, at.right, at.top].map(Math.round) };
  const [left, right, top] = of(".tabs"), card = of("main .card, main .sheet, main .filters");
  return [left, right - card[1], top, of("h1")[0], card[0], card[2]]"""


def test_tabs_and_cards_are_aligned_and_stay_in_their_place(inside):
    """1280 pixels: the tabs begin at the heading and end at the cards, at the same position on every page."""
    inside.size(1280, 1400)
    found = {}
    for path in ("/developers", "/developers/webhooks", "/developers/requests", "/account", "/account/security", "/account/members", "/account/audit"):
        inside.go(path)
        settled(inside)
        found[path] = inside.driver.execute_script(RULER)
    assert len({tuple(one) for one in found.values()}) == 1, found
    left, end, _, heading, card, _ = found["/account"]
    assert left == heading == card and end == 0
