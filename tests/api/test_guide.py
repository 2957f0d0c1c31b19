"""doc/api.md: its session runs as it stands, its bodies fit the document, its tables are whole."""
import json
import os
import re
import subprocess

import pytest

import openapi
import pictures

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture(scope="module")
def guide():
    with open(os.path.join(ROOT, "doc", "api.md"), encoding="utf-8") as file:
        return file.read()


def test_the_session_of_the_guide_runs_as_it_stands(guide, client, stack, tmp_path):
    (tmp_path / "beach.jpg").write_bytes(pictures.jpeg(512, 384))
    (tmp_path / "map.png").write_bytes(pictures.png(300, 200))
    environment = {**os.environ, "IMGWARD_URL": stack.url, "IMGWARD_KEY": client.key,
                   "IMGWARD_CA": stack.environment["IMGWARD_CA"]}
    script = "\n".join(re.findall(r"```sh\n(.*?)```", guide, re.S))
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, env=environment, capture_output=True,
                          text=True, timeout=500)
    assert done.returncode == 0, done.stderr + done.stdout
    lines = done.stdout.splitlines()
    # The answers of curl end without a line of their own.
    assert done.stdout.count("complete\n") == 2 and "detected\n" in done.stdout and "sent to Grace" in lines, done.stdout
    assert (tmp_path / "protected.zip").read_bytes().startswith(b"PK")
    assert pictures.psnr((tmp_path / "beach.jpg").read_bytes(), (tmp_path / "beach-protected.jpg").read_bytes()) > 30


@pytest.mark.skipif(openapi.jsonschema is None, reason="python3-jsonschema is not installed")
def test_the_bodies_of_the_guide_fit_the_document(guide):
    bodies = re.findall(r"```json (\S+)\n(.*?)```", guide, re.S)
    assert sorted(kind for kind, _ in bodies) == ["anti-ai", "anti-ai", "anti-ai", "order"]
    for kind, body in bodies:
        if kind == "order":
            detail = openapi.document()["components"]["schemas"]["OrderDetail"]
            assert openapi.faults_of(detail, json.loads(body)["data"]) == []
            continue
        operation = openapi.document()["paths"][f"/api/v2/orders/{kind}"]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert openapi.faults_of(schema, json.loads(body)) == []


def test_the_guide_says_what_to_do_about_every_error(guide):
    codes = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", guide))
    with open(os.path.join(ROOT, "include", "imgward", "error.h"), encoding="utf-8") as file:
        known = set(re.findall(r"X\(([A-Z_]+),", file.read()))
    assert codes - known == set()
    if openapi.jsonschema is not None:
        assert set(openapi.document()["components"]["schemas"]["ErrorCode"]["enum"]) - codes == set()
