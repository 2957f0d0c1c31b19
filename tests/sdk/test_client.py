"""A client generated from doc/openapi.yaml (openapi-typescript, openapi-fetch) runs a whole order over HTTPS."""
import json
import os
import re
import subprocess

import pytest

import pictures
from programs import ENVIRONMENT, HERE


def steps():
    with open(os.path.join(HERE, "client.mts"), encoding="utf-8") as file:
        return re.findall(r'^await step\("([^"]+)"', file.read(), re.MULTILINE)


def test_the_types_fit_the_client_and_the_guide(compiled):
    assert compiled == ""


@pytest.fixture(scope="module")
def account(stack):
    return stack.account_new()


@pytest.fixture(scope="module")
def run(compiled, generated, stack, account):
    """Runs a compiled program with the account's key; returns the standard output."""
    if compiled:
        pytest.fail("the client does not compile")

    def run(program):
        done = subprocess.run(
            ["node", program], cwd=generated, capture_output=True, text=True, timeout=580, check=False,
            env={**ENVIRONMENT, "IMGWARD_URL": stack.url, "IMGWARD_KEY": account.key, "PICTURE": "beach.jpg",
                 "NODE_EXTRA_CA_CERTS": stack.environment["IMGWARD_CA"]})
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    (generated / "beach.jpg").write_bytes(pictures.jpeg(512, 384))
    return run


@pytest.fixture(scope="module")
def told(run):
    """Returns the error of each step of the client, or None."""
    return {line["step"]: line["error"] for line in map(json.loads, run("client.mjs").splitlines())}


@pytest.mark.parametrize("name", steps())
def test_step(told, name):
    assert name in told and told[name] is None, told.get(name, "it was not run")


def test_the_program_of_the_guide_creates_an_order_and_uploads(told, run, account):
    before = account.list().page["totalItems"]
    run("guide.mjs")
    listed = account.list()
    assert listed.page["totalItems"] == before + 1
    [file] = account.detail(listed.items[0]["orderId"]).data["files"]
    assert file["fileName"] == "beach.jpg" and file["status"] == "uploaded", file
