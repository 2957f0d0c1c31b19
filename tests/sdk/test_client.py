"""A client that is made of doc/openapi.yaml (openapi-typescript, openapi-fetch) does the whole flow over HTTPS."""
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


def test_the_types_fit_the_client(compiled):
    assert compiled == ""


@pytest.fixture(scope="module")
def told(compiled, generated, stack):
    """What each step of the client said: None, or its error."""
    if compiled:
        pytest.fail("the client does not compile")
    (generated / "picture.jpg").write_bytes(pictures.jpeg(512, 384))
    client = stack.account_new()
    done = subprocess.run(
        ["node", "client.mjs"], cwd=generated, capture_output=True, text=True, timeout=580, check=False,
        env={**ENVIRONMENT, "IMGWARD_URL": stack.url, "IMGWARD_KEY": client.key, "PICTURE": "picture.jpg",
             "NODE_EXTRA_CA_CERTS": stack.environment["IMGWARD_CA"]})
    assert done.returncode == 0, done.stdout + done.stderr
    return {line["step"]: line["error"] for line in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", steps())
def test_step(told, name):
    assert name in told and told[name] is None, told.get(name, "it was not run")
