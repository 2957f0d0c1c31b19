"""Every page in both themes and at 360 pixels: axe-core, the policy, no horizontal scroll, screenshots."""
import pytest

import pictures

PUBLIC = ["/sign-in", "/sign-up", "/forgot", "/reset?token=x", "/verify?token=x"]
PRIVATE = ["/", "/new", "/orders", "/orders/ORDER", "/read", "/developers", "/developers/webhooks", "/developers/webhooks/HOOK",
           "/developers/requests", "/account", "/account/security", "/account/members", "/account/audit"]
ADMIN = ["/admin", "/admin/accounts/ACCOUNT", "/admin/users", "/admin/queue", "/admin/health"]


@pytest.fixture
def filled(owner, nobody):
    """Ids of an order with a result, a webhook and the account: pages show their parts only with data."""
    made = owner.post("/v2/orders/anti-ai", {"idempotencyKey": "shown", "orderName": "A long name of an order that must not widen a phone",
                                             "files": [{"fileName": "a-very-long-file-name-without-any-space-at-all-in-it.jpg"}, {"fileName": "b.png"}]})
    for file, body in zip(made.data["files"], (pictures.jpeg(), pictures.png())):
        assert nobody.put(file["uploadUrl"], body=body).status == 201
    assert owner.post("/v2/orders/anti-ai/confirm", {"idempotencyKey": "shown-start", "orderId": made.data["orderId"]}).status == 200
    hook = owner.post("/v2/orders/webhooks", {"url": "http://127.0.0.1:9/hook-" + "x" * 80, "name": "production"}).data
    owner.post(f"/v2/orders/webhooks/{hook['id']}/test")
    owner.post("/keys", {"name": "web shop"})
    return {"ORDER": made.data["orderId"], "HOOK": str(hook["id"]), "ACCOUNT": str(owner.account)}


def settled(window):
    """Waits until nothing on the page is loading."""
    window.wait(lambda: window.all("h1") and not window.all(".skeleton, main button[aria-busy=true]"), "the loaded page")


def inspect(window, modules, paths, ids, theme):
    """Opens each page; its findings."""
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


def test_dialogs_have_no_violation(inside, modules):
    found = []
    for path, button in (("/developers", "Create key"), ("/developers/webhooks", "Add webhook"), ("/account/members", "Invite"), ("/account/security", "Turn on")):
        inside.go(path)
        settled(inside)
        inside.press(button)
        inside.find("dialog[open]")
        found += [f"{path}: {line}" for line in inside.axe(modules)]
        inside.press("Cancel", "dialog button")
    inside.session_lose()
    inside.go("/orders", "main")
    inside.says("Please sign in again")
    found += [f"sign-in over a page: {line}" for line in inside.axe(modules)]
    assert found == []


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
