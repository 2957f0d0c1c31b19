"""Each page, and each message that a page can show, in Korean: no English word is left."""
import pathlib
import re
import socket
import sys
import time
import uuid

import pytest

import pictures
from browser import PASSWORD, address_new
from test_pages_all import ADMIN, PRIVATE, PUBLIC, filled, settled  # noqa: F401 (a fixture)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))
import web_files

T = web_files.texts_read(web_files.WEB / "text" / "ko.js")
# Names that Korean writes in Latin letters. Codes are in <code>; each test names the words that a user wrote.
NAMES = set("""imgward AI API URL HTTP HTTPS TLS ASCII ID ZIP QR JPEG JPG PNG WebP HEIC HEIF AVIF TIFF GIF BMP XMP HDR RAW iPhone
    Redis Chrome Linux English GB MB kB ms GET POST PUT PATCH DELETE Gone jpg jpeg png webp https http name example com
    UTC WebP systemctl status worker imgwardctl queue resume""".split())
SHOWN = """
    const skipped = "code, .secret, .name, script, style, [lang]:not(html)", found = [];
    const root = document.querySelector("dialog[open]") ?? document.body;
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      if (node.data.trim() && !parent.closest(skipped) && parent.getClientRects().length > 0) found.push(node.data.trim());
    }
    for (const one of root.querySelectorAll("[aria-label], [title], [placeholder]")) {
      if (!one.closest(skipped)) found.push(...["aria-label", "title", "placeholder"].map((name) => one.getAttribute(name)).filter(Boolean));
    }
    return found;"""


class Reader:
    """Reads pages as a user who knows no English. "own" are the user's own words."""

    def __init__(self, window, *own):
        self.window, self.own, self.found, self.reads = window, set(own), [], 0
        window.open("/sign-in")
        window.press("한국어")
        window.says(T["signIn.title"])

    def english(self):
        for text in self.window.driver.execute_script(SHOWN):
            if text.startswith(("https://", "http://")) or text in ("English", "한국어"):
                continue
            for own in sorted(self.own, key=len, reverse=True):
                text = text.replace(own, "")
            words = [word for word in re.findall(r"[A-Za-z]+|\{", text) if word not in NAMES]
            if words:
                yield f"{words} in {text[:200]}"

    def read(self, name):
        self.reads += 1
        self.found += [f"{name}: {text}" for text in self.english()]

    def at(self, path):
        self.window.go(path, "h1")
        settled(self.window)
        self.read(path)

    def enter(self, browser):
        self.window.enter(browser)
        self.window.open("/", ".side")
        self.window.says(T["overview.title"])

    def press(self, key, css="main button, main a, form button"):
        self.window.press(T[key], css)

    def refused(self, fields, action, *parts, css="form button"):
        """Fills a form that is refused; reads the page with the errors, which must have these parts."""
        for label, value in fields.items():
            self.window.fill(T[label], value)
        self.window.press(T[action], css)
        self.window.find("[aria-invalid=true], .notice.error")
        for part in parts:
            self.window.says(part)
        self.read(f"{action} {fields}")


@pytest.fixture
def reader(window, owner):
    """A reader, and the owner of a new account whose language is Korean."""
    assert owner.patch("/user", {"language": "ko"}).status == 200
    data = owner.get("/session").data
    reader = Reader(window, owner.email, data["account"]["name"], data["user"]["name"], owner.agent, socket.gethostname())
    yield reader
    assert "\n".join(reader.found) == "" and reader.reads > 0


def test_every_page(reader, owner, operator, filled):
    reader.own |= {"A long name of an order that must not widen a phone", "a-very-long-file-name-without-any-space-at-all-in-it.jpg",
                   "b.png", "production", "web shop"}
    for path in PUBLIC:
        reader.at(path)
    reader.own |= {"ko", *(key["prefix"] for key in owner.get("/keys").data["keys"])}
    reader.enter(owner)
    for path in PRIVATE:
        for name, value in filled.items():
            path = path.replace(name, value)
        reader.at(path)


def test_the_pages_of_the_operator(reader, owner, operator, filled):
    users = operator.get("/admin/users?limit=100").data["users"]
    accounts = operator.get("/admin/accounts?limit=100").data["accounts"]
    reader.own |= {one[name] for one in users for name in ("name", "email", "accountName")} | {one["name"] for one in accounts}
    own = operator.get("/session").data  # the operator is not among the newest hundred users
    reader.own |= {own["user"]["name"], own["account"]["name"]}
    assert operator.patch("/user", {"language": "ko"}).status == 200
    try:
        reader.enter(operator)
        for path in ADMIN:
            for name, value in filled.items():
                path = path.replace(name, value)
            reader.at(path)
        reader.window.go("/admin")
        reader.press("admin.create")
        reader.refused({}, "admin.create", T["required.name"], css="dialog form button")
        reader.refused({"name": accounts[0]["name"], "admin.owner": "x"}, "admin.create", T["message.no_email"], css="dialog form button")
        reader.refused({"name": accounts[0]["name"], "admin.owner": ""}, "admin.create", T["message.name_in_use"], css="dialog form button")
        reader.window.go(f"/admin/accounts/{owner.account}")
        reader.refused({"admin.rate": "-5"}, "save", css="section[aria-labelledby=change] form button")
        reader.refused({"admin.value": "-5"}, "save", css="section[aria-labelledby=quota] form button")
    finally:
        assert operator.patch("/user", {"language": "en"}).status == 200


def test_each_error_code(reader):
    """The response to the sign-in is replaced by each code of the service."""
    codes = set(web_files.named(r"\{IW_(\w+), \d{3}\}", "src/http/failure.c", "src/console/main.c")) - web_files.KEY_CODES
    reader.window.fill(T["email"], "name@example.com")
    reader.window.fill(T["password"], PASSWORD)
    for code in sorted(codes):
        body = {"code": code, "message": "The service says this in English.", "requestId": "0a1b2c"}
        reader.window.answer("/session", 500 if code.startswith("SERVER") else 409, body)
        reader.press("signIn.action")
        reader.window.says(T[f"error.{code}"].partition("{")[0])
        reader.read(code)
        assert (T["error.request"] in reader.window.text()) == (code == "SERVER_INTERNAL_ERROR")
    reader.window.answer("/session", 400, {"code": "A_CODE_OF_A_LATER_VERSION", "message": "The service says this in English."})
    reader.press("signIn.action")
    reader.window.says(T["error.unexpected"])
    reader.read("an unknown code")
    assert len(codes) > 30


def messages():
    """Returns each message of the service as reason and params."""
    for reason, names, template in web_files.named(r'\bX\((\w+), "([^"]*)", *\s*"((?:[^"\\]|\\.)*)', "src/base/message.h"):
        kinds = re.findall(r"%(?:\.\d+)?(?:\" ?PRI\w+ ?\"|[a-z]+)", template)
        yield {"reason": reason, "params": {name: "2026-03-12T10:00:00.000Z" if name == "at" else "값" if kind.endswith("s") else 12
                                            for name, kind in zip(names.split(), kinds) if name != "-"}}


def test_each_message_about_a_file(reader, owner, filled):
    """The response is replaced by an order that has each error and each note, with each message."""
    order = owner.get(f"/v2/orders/{filled['ORDER']}").data
    parts, [first, _] = list(messages()), order["files"]
    codes = {kind: [key.split(".")[1] for key in T if re.fullmatch(kind + r"\.[A-Z_]+", key)] for kind in ("file", "note")}
    files = [{**first, "fileId": number, "status": "failed", "error": {"code": code, "message": "In English.", "parts": parts}}
             for number, code in enumerate([*codes["file"], "A_LATER_CODE"])]
    files += [{**first, "fileId": 100 + number, "note": {"code": code, "message": "In English.", "parts": parts}}
              for number, code in enumerate([*codes["note"], "A_LATER_NOTE"])]
    reader.own |= {order["orderName"], first["fileName"]}
    reader.enter(owner)
    path = f"/orders/{order['orderId']}"
    reader.window.answer(f"/v2{path}", 200, {"data": {**order, "errors": "In English.", "files": files}}, "GET")
    reader.at(path)
    reader.window.says(T["order.partly"], T["file.IMAGE_CORRUPT"], T["note.METADATA_LEFT_OUT"])
    assert len(parts) > 80 and len(reader.window.all(".results div.bad")) == len(codes["file"]) + 1 > 12
    failed = {**order, "type": "watermarkExtract", "status": "failed", "errors": "In English.", "files": [files[0]]}
    reader.window.go("/orders")
    reader.window.answer(f"/v2{path}", 200, {"data": failed}, "GET")
    reader.at(path)
    reader.window.says(T["read.failed"], T[f"file.{codes['file'][0]}"])


def test_each_check_of_the_service(reader, operator):
    checks = [{"name": f"a check {number}", "status": "failed", "message": "In English.", **message} for number, message in enumerate(messages())]
    assert operator.patch("/user", {"language": "ko"}).status == 200
    try:
        reader.own |= {check["name"] for check in checks} | {operator.get("/session").data[one]["name"] for one in ("user", "account")}
        reader.enter(operator)
        reader.window.answer("/admin/health", 200, {"data": {"checks": checks}}, "GET")
        reader.at("/admin/health")
        reader.window.says(T["message.database_well"], T["message.workers_silent"])
    finally:
        assert operator.patch("/user", {"language": "en"}).status == 200


def test_an_upload_that_is_refused(reader, owner, tmp_path):
    (tmp_path / "1.png").write_bytes(pictures.png())
    reader.own |= {"1.png"}
    reader.enter(owner)
    reader.window.go("/new")
    reader.window.give([tmp_path / "1.png"])
    reader.window.driver.execute_script("""
        const send = XMLHttpRequest.prototype.send;
        XMLHttpRequest.prototype.send = function () {
          const body = {code: "PAYLOAD_TOO_LARGE", message: "In English.", reason: "file_bytes", params: {bytes: 12e7, mostBytes: 5e7}};
          for (const [name, value] of [["status", 413], ["responseText", JSON.stringify(body)]]) Object.defineProperty(this, name, {value});
          this.onloadend();
        };""")
    reader.window.press(T["new.go.antiAi"].replace("{count}", "1"), "main button")
    reader.window.says("120MB", "50MB")
    reader.read("a refused upload")


def test_sign_in_and_sign_up(reader, owner, stack):
    reader.refused({}, "signIn.action", T["required.email"], T["required.password"])
    reader.refused({"email": owner.email, "password": "not the password"}, "signIn.action", T["error.SIGN_IN_FAILED"])
    stack.sql("UPDATE sign_in_attempts SET attempts = 1000")
    for _ in range(30):
        reader.refused({}, "signIn.action")
        if T["error.SIGN_IN_LIMITED"].partition("{")[0] in reader.window.text():
            break
    reader.window.says(T["error.SIGN_IN_LIMITED"].partition("{")[0])
    reader.read("too many attempts")
    reader.window.go("/sign-up", "form")
    reader.refused({}, "signUp.action", T["required.email"])
    good = {"name": "Grace", "accountName": "Studio " + uuid.uuid4().hex[:8], "email": address_new(), "password.new": PASSWORD}
    reader.own |= {"Grace", good["accountName"], good["email"]}
    for label, value, message in (("email", "no address", "no_email"), ("email", owner.email, "email_in_use"), ("password.new", "short", "length"),
                                  ("password.new", good["email"], "password_is_email"), ("name", "x" * 300, "length")):
        reader.refused({**good, label: value}, "signUp.action", T[f"message.{message}"].partition("{")[0])
    for path, action in (("/reset", "reset.action"), ("/verify", "verify.action")):
        reader.window.go(f"{path}?token={'0' * 43}", "form")
        reader.refused({"password.new": PASSWORD} if path == "/reset" else {}, action, T["error.TOKEN_INVALID"])
    reader.window.go(f"/invitation?token={'0' * 43}", ".notice.error")
    reader.read("an invalid invitation")


def test_keys_and_webhooks(reader, owner):
    reader.own |= {"production", "x" * 300}
    owner.post("/v2/orders/webhooks", {"url": "http://127.0.0.1:9/taken"})
    reader.enter(owner)
    reader.window.go("/developers")
    reader.press("keys.create")
    reader.refused({}, "keys.create", T["required.name"], css="dialog form button")
    reader.refused({"name": "x" * 300}, "keys.create", css="dialog form button")
    reader.window.choose(T["keys.expires"], "2020-01-01")
    reader.window.driver.execute_script("arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", reader.window.field(T["keys.expires"]))
    reader.refused({"name": "production"}, "keys.create", T["message.time_past"], css="dialog form button")
    reader.window.go("/developers/webhooks")
    reader.press("webhooks.create")
    reader.refused({}, "webhooks.create", css="dialog form button")
    for url, message in (("not-a-url", "url_absolute"), ("ftp://example.com/x", "url_scheme"), ("http://a:b@example.com/", "url_user"),
                         ("http://example.com/ x", "url_characters"), ("http://example.com/가", "url_ascii"), ("http://127.0.0.1:9/taken", "url_in_use")):
        reader.refused({"webhooks.url": url}, "webhooks.create", T[f"message.{message}"], css="dialog form button")


def test_account_and_security(reader, owner):
    reader.own |= {"x" * 300}
    reader.enter(owner)
    reader.window.go("/account")
    for section in ("profile", "account"):
        label = "name" if section == "profile" else "accountName"
        reader.refused({label: " "}, "save", css=f"section[aria-labelledby={section}] button")
        reader.refused({label: "x" * 300}, "save", T["message.length"].partition("{")[0][:1], css=f"section[aria-labelledby={section}] button")
    reader.window.go("/account/security")
    reader.refused({}, "password.change", T["message.required"])
    reader.refused({"password.current": "not the password", "password.new": "another correct horse"}, "password.change", T["message.password_wrong"])
    reader.refused({"password.current": PASSWORD, "password.new": "short"}, "password.change")
    reader.press("factor.enable")
    reader.refused({"password": "not the password"}, "continue", T["message.password_wrong"], css="dialog form button")
    reader.window.fill(T["password"], PASSWORD)
    reader.window.press(T["continue"], "dialog form button")
    reader.window.says(T["factor.scan"])
    reader.read("the first code")
    reader.refused({"factor.first": "000000"}, "factor.confirm", T["message.code_wrong"], css="dialog form button")
    reader.window.go("/account/members")
    reader.press("members.invite")
    reader.refused({"email": "no address"}, "members.invite", T["message.no_email"], css="dialog form button")
    reader.refused({"email": owner.email}, "members.invite", T["message.already_member"], css="dialog form button")


def order_ended(owner, order):
    end = time.monotonic() + 240
    while owner.get(f"/v2/orders/{order}").data["status"] == "inProgress":
        assert time.monotonic() < end
        time.sleep(0.2)


def test_orders(reader, owner, operator, anonymous, tmp_path):
    """A failed file, notes, a deleted order, an unknown order, a full limit, a refused upload."""
    made = owner.post("/v2/orders/anti-ai", {"idempotencyKey": "korean", "orderName": "주문",
                                             "files": [{"fileName": "1.png"}, {"fileName": "2.jpg"}, {"fileName": "3.png"}]})
    bodies = (pictures.png(8, 8), pictures.jpeg()[:900], pictures.png())
    for file, body in zip(made.data["files"], bodies):
        anonymous.put(file["uploadUrl"], body=body)
    order = made.data["orderId"]
    started = owner.post("/v2/orders/anti-ai/confirm", {"idempotencyKey": "korean-start", "orderId": order})
    assert started.status == 200, started
    order_ended(owner, order)
    reader.own |= {"1.png", "2.jpg", "3.png"}
    reader.enter(owner)
    reader.at(f"/orders/{order}")
    assert len(reader.window.all(".results .bad")) >= 2
    assert owner.delete(f"/v2/orders/{order}").status == 200
    reader.at(f"/orders/{order}")
    reader.at("/orders/1")
    assert operator.patch(f"/admin/accounts/{owner.account}", {"quota": {"filesPerDay": 3}}).status == 200
    picture = tmp_path / "4.png"
    picture.write_bytes(pictures.png())
    reader.own |= {"4.png"}
    reader.window.go("/new")
    reader.window.give([picture])
    reader.window.press(T["new.go.antiAi"].replace("{count}", "1").replace("{count:picture|pictures}", ""), "main button")
    reader.window.says(T["error.USAGE_LIMIT_EXCEEDED"], T["limit.filesPerDay"])
    reader.read("a full limit")
