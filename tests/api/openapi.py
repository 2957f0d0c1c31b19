"""Checks every response that the tests receive against doc/openapi.yaml.

client.Client calls check() on each response. A response that the document does not allow is an assertion error at that
call. Without python3-yaml and python3-jsonschema nothing is checked, and test_openapi.py reports that.
"""
import json
import os
import re

try:
    import jsonschema
    import yaml
except ImportError:
    jsonschema = None

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "openapi.yaml")
# Statuses for requests that match no endpoint, from nginx and the HTTP layer.
OUTSIDE = {400, 404, 405, 408, 411, 414, 416, 431, 494, 500, 501, 502, 503, 504}
METHODS = ("get", "post", "put", "delete")

# Texts that no response may contain: versions, paths of the server, SQL, names of the software.
LEAKS = [re.compile(pattern, flags) for pattern, flags in (
    (r"nginx/\d", 0), (r"(?<![\w:/.-])/(var|usr|etc|home|tmp|run|proc|root|opt|srv)/\w", 0),
    (re.escape(os.path.realpath(os.path.join(os.path.dirname(PATH), ".."))), 0),
    (r"\b(SELECT\b.{1,200}\bFROM|INSERT INTO|UPDATE\b.{1,80}\bSET|DELETE FROM|SQL syntax|SQLSTATE|ER_[A-Z_]{5,})\b", 0),
    (r"mariadb|mysql|hiredis|libfcgi|openssl|libcurl|jansson", re.IGNORECASE), (r"\b\w+\.[ch]:\d+", 0),
    (r"No such file or directory|Permission denied|Segmentation fault|Assertion|0x[0-9a-f]{8}", 0))]
# Members whose text the client wrote.
OWN = {"orderName", "fileName", "name", "url", "originalFileUrl", "imageUrl", "watermarkText", "watermarks", "fileKey", "keyword", "idempotencyKey"}

# Received by the tests: (template, verb, status), and error codes.
seen = set()
codes_seen = set()
file_codes_seen = set()
_document = None


def document():
    global _document
    if _document is None:
        with open(PATH, encoding="utf-8") as file:
            _document = yaml.safe_load(file)
    return _document


def resolve(thing):
    while "$ref" in thing:
        at = document()
        for name in thing["$ref"][2:].split("/"):
            at = at[name]
        thing = at
    return thing


def items():
    """Returns the path items by template: the API's operations and the presigned URLs, which are not operations."""
    whole = document()
    return {**whole["paths"], **{item["x-template"]: item for item in whole["components"]["pathItems"].values()}}


def parts_of(schema):
    """Returns all schemas that list members of an object: the schema and those of which it is composed."""
    schema = resolve(schema)
    found = [part for one in schema.get("allOf", []) for part in parts_of(one)]
    return found + [schema] if "properties" in schema else found


def closed(schema):
    """Returns the schema with additional members forbidden.

    The service's responses must match this schema. The document allows additional members, because later versions may
    add some.
    """
    parts = parts_of(schema)
    if parts:
        return {"type": "object", "additionalProperties": False,
                "required": [name for part in [*parts, resolve(schema)] for name in part.get("required", [])],
                "properties": {name: closed(member) for part in parts for name, member in part["properties"].items()}}
    schema = dict(resolve(schema))
    if "items" in schema:
        schema["items"] = closed(schema["items"])
    for name in ("oneOf", "anyOf"):
        if name in schema:
            schema[name] = [closed(one) for one in schema[name]]
    return schema


def template_of(path):
    """Returns the documented path that matches; if several do, the path with the fewest captures."""
    fitting = []
    for template in items():
        pattern = re.escape(template).replace(r"\{fileKey\}", ".+")
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", pattern)
        if re.fullmatch(pattern + "/?", path):
            fitting.append(template)
    return min(fitting, key=lambda template: template.count("{")) if fitting else None


def faults_of(schema, instance):
    resolver = jsonschema.RefResolver("", document())
    validator = jsonschema.Draft202012Validator(schema, resolver=resolver)
    return [f"{list(error.absolute_path)}: {error.message}" for error in validator.iter_errors(instance)]


def faults(method, path, answer):
    template = template_of(path)
    verb = "get" if method == "HEAD" else method.lower()
    operation = items().get(template, {}).get(verb) if template else None
    if operation is None:
        return []
    described = operation["responses"].get(str(answer.status))
    if described is None:
        return [] if answer.status in OUTSIDE or answer.status == 204 else [f"status {answer.status} is not documented"]
    seen.add((template, verb, answer.status))
    content = resolve(described).get("content", {})
    kind = (answer.headers.get("Content-Type") or "").split(";")[0]
    if method == "HEAD" or not answer.body or kind not in content or "json" not in kind:
        return []
    return faults_of(closed(content[kind]["schema"]), answer.json)


def code_note(answer):
    kind = (answer.headers.get("Content-Type") or "").split(";")[0]
    if answer.status >= 400 and answer.body and kind in ("application/json", "application/problem+json"):
        codes_seen.add(answer.json.get("code"))


def file_codes_note(answer):
    """Records the error codes of failed files in an order detail."""
    data = answer.json.get("data")
    if isinstance(data, dict) and isinstance(data.get("files"), list):
        file_codes_seen.update(file["error"]["code"] for file in data["files"]
                               if isinstance(file, dict) and isinstance(file.get("error"), dict))


def texts_of(thing, name=""):
    """Returns every text in a JSON value except texts of the client."""
    if isinstance(thing, dict):
        for key, value in thing.items():
            yield from texts_of(value, key)
    elif isinstance(thing, list):
        for value in thing:
            yield from texts_of(value, name)
    elif isinstance(thing, str) and name not in OWN:
        yield thing


def leaks(headers, body):
    """Returns the forbidden texts in a response."""
    found = [f"Server: {headers['Server']}"] if headers.get("Server") not in (None, "nginx") else []
    found += [name for name in headers if name.lower() in ("x-powered-by", "x-accel-redirect", "via") or name.lower().startswith("imgward-")]
    try:
        texts = list(texts_of(json.loads(body))) if body else []
    except ValueError:
        texts = []
    # A signature is random: one in a million contains a forbidden word.
    texts = [re.sub(r"\b[\w-]{43}\b", "", text) for text in texts]
    return found + [match[0] for text in texts for pattern in LEAKS for match in [pattern.search(text)] if match]


def check(method, path, answer):
    told = leaks(answer.headers, answer.body)
    assert not told, f"{method} {path.split('?')[0]} tells {told}: {answer}"
    if jsonschema is None:
        return
    code_note(answer)
    if method == "GET" and answer.status == 200 and re.fullmatch("/api/v2/orders/[0-9]+", path):
        file_codes_note(answer)
    found = faults(method, path.split("?")[0], answer)
    assert not found, f"{method} {path.split('?')[0]} answered what doc/openapi.yaml does not allow: {found} {answer}"


def unseen():
    """Returns the documented responses that no test received."""
    return sorted((template, verb, int(status)) for template, item in items().items() for verb in METHODS
                  if verb in item for status in item[verb]["responses"] if (template, verb, int(status)) not in seen)


def codes_unseen():
    """Returns the documented error codes, of responses and of files, that no test received."""
    schemas = document()["components"]["schemas"]
    return sorted((set(schemas["ErrorCode"]["enum"]) - codes_seen) | (set(schemas["FileErrorCode"]["enum"]) - file_codes_seen))
