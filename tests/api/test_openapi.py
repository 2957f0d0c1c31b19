"""doc/openapi.yaml: it is a document, it is served, and what is made of it is up to date."""
import os
import subprocess
import sys

import pytest

import openapi

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
pytestmark = pytest.mark.skipif(openapi.jsonschema is None, reason="python3-yaml or python3-jsonschema is not installed")


def references(thing):
    if isinstance(thing, dict):
        if isinstance(thing.get("$ref"), str):
            yield thing["$ref"]
        thing = list(thing.values())
    if isinstance(thing, list):
        for one in thing:
            yield from references(one)


def test_every_reference_leads_somewhere():
    for reference in set(references(openapi.document())):
        assert openapi.resolve({"$ref": reference}) is not None, reference


def test_every_schema_is_a_schema():
    for name, schema in openapi.document()["components"]["schemas"].items():
        openapi.jsonschema.Draft202012Validator.check_schema(schema), name


def test_every_example_fits_its_schema():
    for path, item in openapi.items().items():
        for verb in openapi.METHODS:
            content = item.get(verb, {}).get("requestBody", {}).get("content", {}).get("application/json", {})
            examples = [content["example"]] if "example" in content else []
            examples += [one["value"] for one in content.get("examples", {}).values()]
            for example in examples:
                assert openapi.faults_of(content["schema"], example) == [], (path, verb)


def test_the_json_and_the_page_are_made_of_the_yaml():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "openapi.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_document_and_page_are_served_without_a_key(nobody):
    document = nobody.get("/api/v2/openapi.json")
    assert document.status == 200 and document.headers["Content-Type"].startswith("application/json")
    assert document.json["openapi"].startswith("3.1") and "x-shared" not in document.json
    page = nobody.get("/api/v2/docs")
    assert page.status == 200 and page.headers["Content-Type"].startswith("text/html")
    assert b"/api/v2/orders/anti-ai" in page.body
    # Nothing of the page comes from elsewhere.
    assert b"src=" not in page.body and b"@import" not in page.body and b"<link" not in page.body


def test_the_codes_of_the_document_are_those_of_the_program():
    with open(os.path.join(ROOT, "include", "imgward", "error.h"), encoding="utf-8") as file:
        header = file.read()
    schemas = openapi.document()["components"]["schemas"]
    for code in schemas["ErrorCode"]["enum"] + schemas["FileErrorCode"]["enum"]:
        assert f"X({code}," in header, code


def test_every_documented_answer_was_seen(request):
    """Runs last (conftest.py): each status of each endpoint and each error code, answered to some test."""
    if not request.config.imgward_is_whole:
        pytest.skip("only some of the tests were run")
    unseen = [f"{verb} {template} {status}" for template, verb, status in openapi.unseen()] + openapi.codes_unseen()
    assert not unseen, "no test was answered: " + ", ".join(unseen)
