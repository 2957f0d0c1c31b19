"""Fixtures: a running stack, clients and pictures.

IMGWARD_ENV may name the dev.env of a running stack. Without it, a private stack is started for the session and stopped at
its end. With "-n N --dist loadfile" (pytest-xdist), N sessions with a stack each share the files.
"""
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(HERE, "api"))

import client as client_module  # noqa: E402
import pictures  # noqa: E402


# Longer timeouts, so that a busy machine does not make a service look unavailable. Only the tests of an unavailable
# Redis use the default of 250 ms.
PATIENT = {"IMGWARD_DATABASE_TIMEOUT_S": "15"}
MORE_PATIENT = {**PATIENT, "IMGWARD_REDIS_TIMEOUT_MS": "10000"}


# Files of half a minute or more start first, so that none of them is left for the end.
LONG = ("test_3_2_urls", "test_7_webhooks", "test_9_peers", "test_ahead", "test_torn_answers", "test_pages_orders", "test_store",
        "test_start", "test_daily", "test_bounds", "test_deletion", "test_zero_copy", "test_suspension", "test_5_processing",
        "test_archives", "test_6_search", "test_metadata", "test_fairness", "test_shares", "test_6_large_lists", "test_mails", "test_mail_servers")


def pytest_configure(config):
    # Later versions of pytest-xdist sort the files by their number of tests.
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


def dev(verb, var, **environment):
    return subprocess.run([os.path.join(ROOT, "dev"), verb], env={**os.environ, **environment, "IMGWARD_VAR": var},
                          capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="session")
def modules():
    """The folder of the npm programs, tests/npm/node_modules."""
    folder = os.path.join(HERE, "npm", "node_modules")
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not os.path.exists(os.path.join(folder, ".installed-lock.json")):
        pytest.skip("the programs of tests/npm are not installed: ./dev deps npm")
    return folder


@pytest.fixture(scope="session")
def stack(request):
    named = os.environ.get("IMGWARD_ENV")
    if named:
        yield client_module.Stack(client_module.environment_read(named))
        return
    # If IMGWARD_TEST_VAR gives a folder, the logs in it are kept.
    given = os.environ.get("IMGWARD_TEST_VAR")
    var = os.path.join(given, os.environ.get("PYTEST_XDIST_WORKER", "")) if given else tempfile.mkdtemp(prefix="imgward-test.")
    is_faulty = any(f"{os.sep}fault{os.sep}" in str(item.path) for item in request.session.items)
    up = dev("up", var, **(PATIENT if is_faulty else MORE_PATIENT))
    if up.returncode != 0:
        pytest.exit(f"the stack did not come up: {up.stdout}{up.stderr}", returncode=3)
    try:
        yield client_module.Stack(client_module.environment_read(os.path.join(var, "dev.env")))
    finally:
        down = dev("down", var)
        if not given:
            shutil.rmtree(var)
        assert down.returncode == 0, down.stdout + down.stderr


@pytest.fixture(scope="module")
def client(stack):
    """A client of a new account with a rate limit that no test reaches."""
    return stack.account_new()


@pytest.fixture(scope="module")
def stranger(stack):
    """A client of another account."""
    return stack.account_new()


@pytest.fixture
def anonymous(stack):
    """A client without an API key."""
    return client_module.Client(stack)


@pytest.fixture(scope="session", params=["free", "pro", "enterprise"])
def planned(stack, request):
    """The three accounts of dev.env, with the limits of their plans."""
    return request.param, client_module.Client(stack, stack.key(request.param))


@pytest.fixture(scope="session")
def jpeg():
    return pictures.jpeg(320, 240)


@pytest.fixture(scope="session")
def png():
    return pictures.png(200, 150)


@pytest.fixture(scope="session")
def webp():
    return pictures.webp(180, 140)
