"""Random requests: every response is documented in doc/openapi.yaml, and none is a server error.

Bodies and queries are nearly valid: some values are replaced by boundary or invalid ones. Client.request compares
every response with the document.
"""
import json
import random
import urllib.parse
import uuid

import pytest

from client import ORDERS

EDGES = [
    "", " ", "a", "ä", "😀", "\u202e", "\ufffe", "\x7f", "\u0085", "\n", "\x00", "a" * 64, "a" * 65, "a" * 255, "ä" * 256, "x" * 3000,
    "../x", "%", "_", "\\", "'", '"', ".jpg", "ä.png", "a.JPG", "https://h.example/ä", "https://h.example:99999/", "https://[::1]/",
    "https://h.example/%00", "https:///x", "https://h\u3002example/", "http://127.0.0.1:1/x", "9999-12-31T23:59:59-23:59",
    "0000-00-00", "2030-02-30", "all", "low", "1", "0", "-1", "9223372036854775807", "9223372036854775808", "1e3",
    None, True, False, 0, -1, 2 ** 53, 2 ** 63 - 1, 2 ** 63, 10 ** 40, 1.5, -0.0, 1e300, [], {}, [[]], [None], {"": ""}, [{"text": "\ud7ff"}]]
TEXTS = [edge for edge in EDGES if isinstance(edge, str)]


class Nonsense:
    """Requests from a random seed; objects that they create are requested later."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.orders, self.hooks = ["1"], ["1"]

    def some(self, good, chance=0.15):
        return self.random.choice(EDGES) if self.random.random() < chance else good

    def body(self, **fields):
        made = {name: self.some(value) for name, value in fields.items() if self.random.random() > 0.05}
        return {"idempotencyKey": self.some(uuid.UUID(int=self.random.getrandbits(128)).hex, 0.05), **made}

    def files(self, **fields):
        return self.some([self.some({"fileName": self.some("a.jpg"), **{name: self.some(value) for name, value in fields.items()}}, 0.05)
                          for _ in range(self.random.choice([1, 1, 2, 3]))], 0.05)

    def anti_ai(self):
        targets = [{"fileKey": self.some("k"), "url": self.some("https://h.example/put"),
                    "presignedUrlExpiresAt": self.some("2090-01-01T00:00:00Z")}]
        return "POST", "/anti-ai", self.body(files=self.files(), orderName="n", options={"strength": self.some("low")},
                                             mode={"zeroCopy": self.some(False)}, outputTargets=targets)

    def with_urls(self):
        return "POST", "/anti-ai/with-urls", self.body(files=self.files(imageUrl=self.random.choice(TEXTS)))

    def embed(self):
        return "POST", "/wtr-embed", self.body(files=self.files(watermarks=[{"text": self.some("t", 0.4)}]), orderName="n")

    def extract(self):
        return "POST", "/wtr-extract", self.body(includeOriginal=self.some(None, 0.1), originalFile=self.some(None, 0.1), file={"fileName": self.some("a.jpg"), "includeOriginal": self.some(True),
                                                       "originalFile": self.some({"fileName": self.some("o.png")})})

    def confirm(self):
        return "POST", "/anti-ai/confirm", self.body(orderId=self.random.choice(self.orders))

    def hook(self):
        return "POST", "/webhooks", {"url": self.some("https://h.example/hook", 0.5), "name": self.some("n", 0.5)}

    def hook_change(self):
        return (self.random.choice(["PUT", "PUT", "DELETE"]), "/webhooks/" + self.random.choice(self.hooks),
                {"url": self.some("https://h.example/z", 0.3), "name": self.some("n"), "isActive": self.some(True)})

    def act(self):
        hook = "/webhooks/" + self.random.choice(self.hooks)
        event = urllib.parse.quote(self.random.choice(TEXTS) or "1", safe="")
        return "POST", self.random.choice([hook + "/test", hook + "/rotate-secret", f"{hook}/events/{event}/retry",
                                           f"/{self.random.choice(self.orders)}/refresh-urls"]), None

    def look(self):
        order, hook = self.random.choice(self.orders), "/webhooks/" + self.random.choice(self.hooks)
        place = self.random.choice(["", "/stats/recent", "/webhooks", f"/{order}", f"/{order}/download", hook, hook + "/events"])
        names = self.random.sample(["page", "limit", "keyword", "status", "type", "channel", "date"], self.random.choice([0, 1, 2]))
        return "GET", place + "?" + urllib.parse.urlencode({name: self.random.choice(TEXTS) for name in names}), None

    def one(self):
        return self.random.choice([self.anti_ai, self.with_urls, self.embed, self.extract, self.confirm, self.hook, self.hook_change,
                                   self.act, self.look, self.look])()

    def learn(self, answer):
        if answer.status == 201:
            (self.orders if "orderId" in answer.data else self.hooks).append(answer.data.get("orderId") or str(answer.data["id"]))


@pytest.mark.parametrize("seed", range(4))
def test_no_nonsense_is_our_fault(stack, seed):
    client, nonsense = stack.account_new(), Nonsense(seed)
    try:
        for _ in range(150):
            method, place, body = nonsense.one()
            answer = client.request(method, ORDERS + place, body if body is None else json.dumps(body),
                                    headers={} if body is None else {"Content-Type": "application/json"})
            assert answer.status < 500, (method, place, body, answer)
            nonsense.learn(answer)
    finally:  # ends the retries of missing sources
        for order in client.list(status="inProgress", limit=-1).items:
            stack.ctl("order", "cancel", order["orderId"], check=False)
