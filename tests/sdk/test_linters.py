"""Checks doc/openapi.yaml with common linters and their recommended rules (redocly.yaml, .spectral.yaml)."""
import json
import os

from programs import DOCUMENT, ROOT


def test_redocly_has_no_error_and_no_warning(program):
    done = program("redocly", "lint", os.path.relpath(DOCUMENT, ROOT), "--format=json", "--max-problems=1000")
    told = json.loads(done.stdout)
    assert told["totals"]["errors"] == told["totals"]["warnings"] == 0, told["problems"]


def test_spectral_has_no_finding_down_to_hints(program):
    done = program("spectral", "lint", "--fail-severity=hint", DOCUMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No results" in done.stdout


def test_the_linters_find_errors(program, tmp_path):
    """Proves that the linters run: a document without a contact and with an operation without responses fails."""
    bad = tmp_path / "bad.yaml"
    bad.write_text("openapi: 3.1.0\ninfo: {title: x, version: '1'}\nservers: [{url: /}]\npaths: {/a: {get: {operationId: a}}}\n")
    redocly = program("redocly", "lint", str(bad), "--format=json")
    assert json.loads(redocly.stdout)["totals"]["errors"] > 0
    spectral = program("spectral", "lint", "--fail-severity=hint", str(bad))
    assert spectral.returncode == 1 and "info-contact" in spectral.stdout
