"""A browser of the web console, reduced to the requests: cookies, Origin and the CSRF token."""
import base64
import hashlib
import hmac
import http.client
import http.cookies
import json
import time
import urllib.parse
import uuid

from client import Answer

COOKIE = "__Host-imgward-session"
PASSWORD = "correct horse battery"


def totp(secret, at=None):
    """Returns the code of RFC 6238 at a time."""
    counter = int((time.time() if at is None else at) // 30).to_bytes(8, "big")
    digest = hmac.digest(base64.b32decode(secret + "=" * (-len(secret) % 8)), counter, hashlib.sha1)
    place = digest[-1] & 15
    return f"{(int.from_bytes(digest[place:place + 4], 'big') & 0x7fffffff) % 1000000:06d}"


def address_new():
    return f"user-{uuid.uuid4().hex[:12]}@test.example"


class Browser:
    """A browser with its cookies. path is relative to /console/api; address is a loopback address."""
    place = ""  # address of the browsers of a console test (conftest.py); elsewhere the kernel chooses the address

    def __init__(self, stack, agent="test browser", address=None):
        self.stack, self.agent, self.address, self.cookies, self.csrf = stack, agent, address or Browser.place, {}, None
        self.email = self.account = None

    def request(self, method, path, body=None, headers=None, csrf=True):
        base = urllib.parse.urlsplit(self.stack.url)
        sent = {"User-Agent": self.agent, "Origin": self.stack.url, **(headers or {})}
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        if csrf and self.csrf and method != "GET":
            sent.setdefault("X-CSRF-Token", self.csrf)
        if self.cookies:
            sent.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        connection = http.client.HTTPSConnection(base.hostname, base.port, context=self.stack.tls, timeout=180,
                                                 source_address=(self.address, 0))
        try:
            connection.request(method, "/console/api" + path, body=body,
                               headers={name: value for name, value in sent.items() if value is not None})
            answer = connection.getresponse()
            given = Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()
        self.cookies_take(given)
        if given.status == 200 and b'"csrfToken":"' in given.body:
            self.csrf = given.data["csrfToken"]
        return given

    def cookies_take(self, answer):
        for line in answer.headers.get_all("Set-Cookie") or []:
            for name, morsel in http.cookies.SimpleCookie(line).items():
                if morsel["max-age"] == "0":
                    self.cookies.pop(name, None)
                else:
                    self.cookies[name] = morsel.value

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, {} if body is None else body, **more)

    def patch(self, path, body, **more):
        return self.request("PATCH", path, body, **more)

    def delete(self, path, **more):
        return self.request("DELETE", path, **more)

    def took(self, answer):
        """Stores the CSRF token of the response to a sign-in."""
        if answer.status in (200, 201) and answer.data.get("state") == "signedIn":
            self.csrf = answer.data["csrfToken"]
            self.email = answer.data["user"]["email"]
            self.account = answer.data["account"]["id"]
        return answer

    def sign_in(self, email, password=PASSWORD):
        return self.took(self.post("/session", {"email": email, "password": password}))

    def sign_up(self, email=None, password=PASSWORD, name="Test"):
        return self.took(self.post("/sign-up", {"email": email or address_new(), "password": password, "name": name,
                                                "accountName": "account-" + uuid.uuid4().hex[:12]}))


def member_new(stack, owner, role="member"):
    """Returns a browser of another user in the owner's account."""
    invited = owner.post("/account/invitations", {"email": address_new(), "role": role})
    assert invited.status == 201, invited
    browser = Browser(stack)
    token = invited.data["link"].partition("token=")[2]
    answer = browser.took(browser.post("/invitations/accept", {"token": token, "name": "Member", "password": PASSWORD}))
    assert answer.status == 200, answer
    return browser
