"""Contract section 7: the example programs of doc/webhooks.md verify deliveries."""
import base64
import hashlib
import hmac
import os
import re
import shutil
import subprocess
import time

import pytest

from client import ORDERS
from receiver import Receiver

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "webhooks.md")
LANGUAGES = {"python": ["/usr/bin/python3"], "javascript": ["node"], "php": ["php"], "sh": ["sh"]}


def program_of(language):
    with open(PAGE, encoding="utf-8") as file:
        found = re.findall(rf"^```{language}\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"{len(found)} programs in {language}"
    return found[0]


def sign(secret, webhook_id, timestamp, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{webhook_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


@pytest.fixture(scope="module")
def sent(client):
    """A delivery after a rotation: both secrets, the headers and the body."""
    receiver = Receiver()
    created = client.post(f"{ORDERS}/webhooks", {"url": receiver.url("/x"), "name": "page"}).data
    place = f"{ORDERS}/webhooks/{created['id']}"
    fresh = client.post(place + "/rotate-secret").data["secret"]
    client.post(place + "/test")
    delivery = receiver.wait("/x")[0]
    receiver.close()
    client.request("DELETE", place)
    return created["secret"], fresh, delivery


@pytest.fixture(params=LANGUAGES)
def verify(request, tmp_path):
    command = LANGUAGES[request.param]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    path = tmp_path / "verify"
    path.write_text(program_of(request.param), encoding="utf-8")

    def run(secret, webhook_id, timestamp, signatures, body):
        done = subprocess.run([*command, str(path), secret, webhook_id, str(timestamp), signatures], input=body,
                              capture_output=True, timeout=180, check=False)
        assert done.returncode in (0, 1) and done.stderr == b"", done
        return done.returncode == 0

    return run


def test_the_pages_programs_verify_a_delivery_with_either_secret(verify, sent):
    before, fresh, delivery = sent
    headers = (delivery.id, delivery.headers["webhook-timestamp"], delivery.headers["webhook-signature"])
    assert verify(before, *headers, delivery.body)
    assert verify(fresh, *headers, delivery.body)


def test_the_pages_programs_refuse_altered_deliveries(verify, sent):
    _, fresh, delivery = sent
    webhook_id, timestamp = delivery.id, delivery.headers["webhook-timestamp"]
    signatures = delivery.headers["webhook-signature"]
    other = "whsec_" + base64.b64encode(bytes(range(32))).decode()
    assert not verify(fresh, webhook_id, timestamp, signatures, delivery.body + b" ")
    assert not verify(fresh, webhook_id + "1", timestamp, signatures, delivery.body)
    assert not verify(fresh, webhook_id, int(timestamp) + 1, signatures, delivery.body)
    assert not verify(fresh, webhook_id, timestamp, "", delivery.body)
    assert not verify(fresh, webhook_id, timestamp, signatures.replace("v1,", "v2,"), delivery.body)
    assert not verify(other, webhook_id, timestamp, signatures, delivery.body)


def test_the_pages_programs_refuse_old_and_future_timestamps(verify):
    secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}'
    for offset, is_good in ((0, True), (-200, True), (200, True), (-400, False), (400, False)):
        timestamp = int(time.time()) + offset
        assert verify(secret, "msg_1", timestamp, sign(secret, "msg_1", timestamp, body), body) is is_good
    assert not verify(secret, "msg_1", "soon", sign(secret, "msg_1", "soon", body), body)
