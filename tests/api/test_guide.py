"""doc/api.md: its session runs as written, its bodies match the document, its tables are complete."""
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


def test_the_session_of_the_guide_runs_as_written(guide, client, stack, tmp_path):
    (tmp_path / "beach.jpg").write_bytes(pictures.jpeg(512, 384))
    (tmp_path / "map.png").write_bytes(pictures.png(300, 200))
    environment = {**os.environ, "IMGWARD_URL": stack.url, "IMGWARD_KEY": client.key,
                   "IMGWARD_CA": stack.environment["IMGWARD_CA"]}
    script = "\n".join(re.findall(r"```sh\n(.*?)```", guide, re.S))
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, env=environment, capture_output=True,
                          text=True, timeout=500)
    assert done.returncode == 0, done.stderr + done.stdout
    lines = done.stdout.splitlines()
    # curl's output does not end with a line feed.
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


def source(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def rows(guide, head):
    """Returns the cells of the table rows under a heading, without backticks."""
    table = guide.split("\n" + head + "\n", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in table]


def sentences(cells):
    return all(re.fullmatch(r"[A-Z].{10,}\.", cell) for cell in cells)


def known_codes():
    return set(re.findall(r"X\(([A-Z_]+),", source("src", "base", "error.h")))


def test_the_guide_names_no_code_that_there_is_not(guide):
    notes = {code for code, *_ in rows(guide, NOTES)} if NOTES in guide else set()
    assert set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", guide)) - known_codes() - notes == set()


ERRORS = "| Status | Code | Meaning | Remedy |"
FILE_ERRORS = "| Code | Meaning | Remedy |"
NOTES = "| Note | Meaning | Remedy |"


def test_the_guide_has_a_remedy_for_every_error_with_its_status(guide):
    table = rows(guide, ERRORS)
    statuses = dict(re.findall(r"\{IW_([A-Z_]+), (\d{3})\}", source("src", "http", "failure.c")))
    assert len(table) == len(statuses) > 20
    assert {code: status for status, code, _, _ in table} == statuses and set(statuses) <= known_codes()
    assert [row for row in table if not sentences(row[2:])] == []
    if openapi.jsonschema is not None:
        assert set(openapi.document()["components"]["schemas"]["ErrorCode"]["enum"]) == set(statuses)


def test_the_guide_has_a_remedy_for_everything_that_can_become_of_a_file(guide):
    table = rows(guide, FILE_ERRORS)
    codes = [code for code, _, _ in table]
    assert len(codes) == len(set(codes)) and set(codes) <= known_codes()
    assert [row for row in table if not sentences(row[1:])] == []
    if openapi.jsonschema is not None:
        assert set(openapi.document()["components"]["schemas"]["FileErrorCode"]["enum"]) == set(codes)


def test_the_guide_has_a_row_for_every_note(guide):
    """The source has the codes of notes in calls: context_note(context, "CODE", ...)."""
    codes = set()
    for folder, _, names in os.walk(os.path.join(ROOT, "src")):
        for name in names:
            if name.endswith((".c", ".h")):
                codes.update(re.findall(r'context_note\(\s*[^",]+,\s*"([A-Z_]+)"', source(folder, name)))
    table = rows(guide, NOTES) if NOTES in guide else []
    assert {row[0] for row in table} == codes
    assert [row for row in table if not sentences(row[1:])] == []
