"""doc/openapi.yaml is valid and served, and the generated documents are up to date."""
import os
import re
import subprocess
import sys

import pytest

import openapi
from client import repeated

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


def examples(thing, place=""):
    """Yields (place, schema, example) for each part of the document that has both."""
    if isinstance(thing, dict):
        schema = thing.get("schema", thing)
        found = [thing["example"]] if "example" in thing else []
        several = thing.get("examples", [])
        found += [one["value"] for one in several.values()] if isinstance(several, dict) else several
        for example in found:
            yield place, schema, example
        thing = {name: value for name, value in thing.items() if name not in ("example", "examples")}.items()
    elif isinstance(thing, list):
        thing = enumerate(thing)
    else:
        return
    for name, value in thing:
        yield from examples(value, f"{place}/{name}")


def test_every_example_fits_its_schema_and_has_no_other_member():
    found = list(examples(openapi.document()))
    assert len(found) > 40
    for place, schema, example in found:
        assert openapi.faults_of(openapi.closed(schema), example) == [], place


def operations():
    """Yields (place, operation) for clients, and for receivers of webhooks."""
    document = openapi.document()
    for group in ("paths", "webhooks"):
        for place, item in document[group].items():
            for verb in openapi.METHODS:
                if verb in item:
                    yield f"{verb} {place}", item[verb]


def test_every_json_body_has_an_example():
    for place, operation in operations():
        answers = [openapi.resolve(answer) for status, answer in operation["responses"].items() if status.startswith("2")]
        for one in answers + [operation.get("requestBody", {})]:
            content = one.get("content", {}).get("application/json")
            is_document = place.endswith("/openapi.json")
            assert content is None or is_document or {"example", "examples"} & content.keys(), place


def test_every_operation_has_a_description_and_a_unique_name():
    names = []
    tags = {tag["name"] for tag in openapi.document()["tags"] if tag["description"]}
    for place, operation in operations():
        names.append(operation["operationId"])
        assert re.fullmatch("[a-z]+([A-Z][a-z]+)*", operation["operationId"]), place
        assert operation["summary"].endswith(".") and operation["description"].strip().endswith("."), place
        assert operation["tags"] and set(operation["tags"]) <= tags, place
        for one in operation.get("parameters", []):
            assert openapi.resolve(one)["description"], (place, one)
    assert len(names) == len(set(names))


def test_the_documents_are_made_of_the_yaml(anonymous):
    for kind, place in (("json", "/api/v2/openapi.json"), ("reference", "/docs/reference/openapi.json")):
        command = [sys.executable, os.path.join(ROOT, "tools", "openapi.py"), kind, os.path.join(ROOT, "doc", "openapi.yaml")]
        done = subprocess.run(command, capture_output=True)
        assert done.returncode == 0, done.stderr
        assert anonymous.get(place).body == done.stdout, f"{place} is not built from the current doc/openapi.yaml"


def test_document_and_page_are_served_without_a_key(anonymous):
    document = anonymous.get("/api/v2/openapi.json")
    assert document.status == 200 and document.headers["Content-Type"].startswith("application/json")
    assert document.json["openapi"].startswith("3.1") and "x-shared" not in document.json
    for place in ("docs", "docs/"):
        page = anonymous.get(f"/api/v2/{place}")
        assert (page.status, page.headers["Location"]) == (308, "/docs/reference/")
    beyond = anonymous.get("/api/v2/openapi.json", headers={"Range": "bytes=99999999-"})
    assert beyond.status == 416 and beyond.code == "VALIDATION_FAILED", beyond
    assert not repeated(beyond.headers) and beyond.json["requestId"] == beyond.headers["X-Request-Id"], beyond.headers


def test_the_codes_of_the_document_are_those_of_the_program():
    with open(os.path.join(ROOT, "src", "base", "error.h"), encoding="utf-8") as file:
        header = file.read()
    schemas = openapi.document()["components"]["schemas"]
    for code in schemas["ErrorCode"]["enum"] + schemas["FileErrorCode"]["enum"]:
        assert f"X({code}," in header, code


def test_every_documented_answer_was_seen(request):
    """This test runs last (conftest.py): some test received each status of each endpoint and each error code."""
    if not request.config.imgward_is_whole:
        pytest.skip("only some of the tests were run")
    unseen = [f"{verb} {template} {status}" for template, verb, status in openapi.unseen()] + openapi.codes_unseen()
    assert not unseen, "no test was answered: " + ", ".join(unseen)
