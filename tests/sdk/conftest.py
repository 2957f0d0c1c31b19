"""The programs of tests/npm, run; the client that is made of doc/openapi.yaml."""
import os
import re
import shutil
import subprocess

import pytest

from programs import DOCUMENT, ENVIRONMENT, HERE, ROOT


@pytest.fixture(scope="session")
def program(modules):
    """Runs a program of tests/npm in the tree's folder, or another one."""
    def run(name, *words, cwd=ROOT):
        return subprocess.run([os.path.join(modules, ".bin", name), *words], cwd=cwd, env=ENVIRONMENT, capture_output=True,
                              text=True, timeout=300, check=False)
    return run


@pytest.fixture(scope="session")
def generated(program, modules, tmp_path_factory):
    """A folder with the client, the program of the guide, and the types that openapi-typescript makes with no option at all."""
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
    """What tsc says of the client; nothing when it agrees."""
    done = program("tsc", "--pretty", "false", cwd=generated)
    return done.stdout + done.stderr
