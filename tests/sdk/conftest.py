"""Runs the programs of tests/npm, and a client generated from doc/openapi.yaml."""
import os
import re
import shutil
import subprocess

import pytest

from programs import DOCUMENT, ENVIRONMENT, HERE, ROOT


@pytest.fixture(scope="session")
def program(modules):
    """Runs a program of tests/npm in the root of the tree, or in another folder."""
    def run(name, *words, cwd=ROOT):
        return subprocess.run([os.path.join(modules, ".bin", name), *words], cwd=cwd, env=ENVIRONMENT, capture_output=True,
                              text=True, timeout=300, check=False)
    return run


@pytest.fixture(scope="session")
def generated(program, modules, tmp_path_factory):
    """A folder with the client, the guide's program, and the types that openapi-typescript makes without options."""
    folder = tmp_path_factory.mktemp("sdk")
    os.symlink(modules, folder / "node_modules")
    for name in ("client.mts", "refused.mts", "tsconfig.json"):
        shutil.copy(os.path.join(HERE, name), folder)
    with open(os.path.join(ROOT, "doc", "api.md"), encoding="utf-8") as file:
        (folder / "guide.mts").write_text("\n".join(re.findall(r"^```ts\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)),
                                          encoding="utf-8")
    done = program("openapi-typescript", DOCUMENT, "-o", "schema.d.ts", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def compiled(program, generated):
    """Returns the errors of tsc for the client; empty if it compiles."""
    done = program("tsc", "--pretty", "false", cwd=generated)
    return done.stdout + done.stderr
