#!/usr/bin/python3
"""Print doc/openapi.json, or the document of the reference page, built from doc/openapi.yaml.  Run by make.

    tools/openapi.py json|reference YAML

The reference also has a sample of each operation in each language of SAMPLES, and lists the presigned requests as paths.
"""
import json
import sys

import yaml

METHODS = ("get", "post", "put", "delete")
COLUMNS = 60   # of a value on one line; the page shows some 64 next to the description


def load(path):
    with open(path, encoding="utf-8") as file:
        document = yaml.safe_load(file)
    del document["x-shared"]
    return document


def resolve(document, thing):
    while "$ref" in thing:
        at = document
        for name in thing["$ref"][2:].split("/"):
            at = at[name]
        thing = at
    return thing


# ---- samples: programs without a library ----

class Call:
    """The request of a sample. url begins with the path, or is the name of a variable with a presigned URL."""

    def __init__(self, document, path, verb, item, operation):
        self.verb, self.path, self.presigned = verb.upper(), path, item.get("x-variable")
        self.is_open = operation.get("security") == []
        for one in item.get("parameters", []) + operation.get("parameters", []):
            one = resolve(document, one)
            if one["in"] == "path":
                self.path = self.path.replace("{%s}" % one["name"], example_of(document, one["schema"]))
        self.is_upload = "image/*" in operation.get("requestBody", {}).get("content", {})
        self.body = body_of(operation)


def example_of(document, schema):
    schema = resolve(document, schema)
    return str(schema.get("example", schema.get("examples", ["7"])[0]))


def body_of(operation):
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    return content["example"] if "example" in content else next(iter(content["examples"].values()))["value"]


class Style:
    """The notation of a JSON value in a language."""

    def __init__(self, pairs, key, words):
        self.pairs, self.key, self.words = pairs, key, words


JSON = Style({dict: "{}", list: "[]"}, "{}: ", {True: "true", False: "false", None: "null"})
PYTHON = Style({dict: "{}", list: "[]"}, "{}: ", {True: "True", False: "False", None: "None"})
PHP = Style({dict: "[]", list: "[]"}, "{} => ", JSON.words)


def literal(value, style, by=0):
    """Returns a value on one line if it fits; otherwise one line a member, indented by some columns."""
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return text.replace("$", "\\$") if style is PHP else text
    if not isinstance(value, (dict, list)):
        return style.words[value] if value is None or isinstance(value, bool) else str(value)
    names = [style.key.format(literal(name, style)) for name in value] if isinstance(value, dict) else [""] * len(value)
    members = [name + literal(member, style, by + 2) for name, member in zip(names, value.values() if isinstance(value, dict) else value)]
    opening, closing = style.pairs[type(value)]
    line = opening + ", ".join(members) + closing
    if by + len(line) <= COLUMNS and "\n" not in line:
        return line
    return opening + "\n" + ",\n".join(" " * (by + 2) + member for member in members) + "\n" + " " * by + closing


def curl(call):
    if call.is_upload:
        return f'curl --upload-file beach.jpg "${call.presigned}"'
    if call.presigned:
        return f'curl --output beach.jpg "${call.presigned}"'
    lines = [f'curl "$IMGWARD_URL{call.path}"']
    if call.verb not in ("GET", "POST") or call.verb == "POST" and call.body is None:
        lines[0] = f'curl --request {call.verb} "$IMGWARD_URL{call.path}"'
    if not call.is_open:
        lines.append('--header "Authorization: Bearer $IMGWARD_KEY"')
    if call.body is not None:
        lines.append('--header "Content-Type: application/json"')
        lines.append("--data '" + literal(call.body, JSON, 2).replace("'", "'\\''") + "'")
    return " \\\n  ".join(lines)


def python(call):
    if call.is_upload:
        return ('import os, urllib.request\n\nwith open("beach.jpg", "rb") as file:\n'
                f'    request = urllib.request.Request(os.environ["{call.presigned}"], method="PUT", data=file.read())\n'
                "with urllib.request.urlopen(request) as answer:\n    print(answer.status, answer.read().decode())")
    if call.presigned:
        return f'import os, urllib.request\n\nurllib.request.urlretrieve(os.environ["{call.presigned}"], "beach.jpg")'
    headers = [] if call.is_open else ['        "Authorization": "Bearer " + os.environ["IMGWARD_KEY"],']
    if call.body is not None:
        headers.append('        "Content-Type": "application/json",')
    lines = ["import json, os, urllib.request", "", "request = urllib.request.Request(", f'    os.environ["IMGWARD_URL"] + "{call.path}",',
             f'    method="{call.verb}",']
    lines += ["    headers={", *headers, "    },"] if headers else []
    if call.body is not None:
        lines.append(f"    data=json.dumps({literal(call.body, PYTHON, 4)}).encode(),")
    return "\n".join([*lines, ")", "with urllib.request.urlopen(request) as answer:", "    print(answer.status, json.load(answer))"])


def node(call):
    if call.is_upload:
        return ('import { readFile } from "node:fs/promises";\n\n'
                f'const answer = await fetch(process.env.{call.presigned}, {{\n  method: "PUT",\n  body: await readFile("beach.jpg"),\n}});\n'
                "console.log(answer.status, JSON.stringify(await answer.json(), null, 2));")
    if call.presigned:
        return ('import { writeFile } from "node:fs/promises";\n\n'
                f"const answer = await fetch(process.env.{call.presigned});\n"
                'await writeFile("beach.jpg", Buffer.from(await answer.arrayBuffer()));')
    headers = [] if call.is_open else ["    Authorization: `Bearer ${process.env.IMGWARD_KEY}`,"]
    if call.body is not None:
        headers.append('    "Content-Type": "application/json",')
    lines = [f"const answer = await fetch(process.env.IMGWARD_URL + \"{call.path}\", {{", f'  method: "{call.verb}",']
    lines += ["  headers: {", *headers, "  },"] if headers else []
    if call.body is not None:
        lines.append(f"  body: JSON.stringify({literal(call.body, JSON, 2)}),")
    return "\n".join([*lines, "});", "console.log(answer.status, JSON.stringify(await answer.json(), null, 2));"])


def php(call):
    if call.is_upload:
        return ("<?php\n$context = stream_context_create(['http' => [\n    'method' => 'PUT',\n    'header' => 'Content-Type: image/jpeg',\n"
                "    'content' => file_get_contents('beach.jpg'),\n    'ignore_errors' => true,\n]]);\n"
                f"echo file_get_contents(getenv('{call.presigned}'), false, $context);")
    if call.presigned:
        return f"<?php\ncopy(getenv('{call.presigned}'), 'beach.jpg');"
    headers = [] if call.is_open else ["        'Authorization: Bearer ' . getenv('IMGWARD_KEY'),"]
    if call.body is not None:
        headers.append("        'Content-Type: application/json',")
    lines = ["<?php", "$context = stream_context_create(['http' => [", f"    'method' => '{call.verb}',"]
    lines += ["    'header' => [", *headers, "    ],"] if headers else []
    if call.body is not None:
        lines.append(f"    'content' => json_encode({literal(call.body, PHP, 4)}),")
    lines += ["    'ignore_errors' => true,", "]]);", f"echo file_get_contents(getenv('IMGWARD_URL') . '{call.path}', false, $context);"]
    return "\n".join(lines)


SAMPLES = {"curl": ("Shell", curl), "Python": ("Python", python), "Node": ("JavaScript", node), "PHP": ("PHP", php)}


# ---- documents ----

def json_of(document):
    return document


def reference_of(document):
    """Adds the samples, and the requests to presigned URLs as paths. Removes the page, which is not a response of the API."""
    del document["paths"]["/api/v2/docs"]
    for name, item in document["components"]["pathItems"].items():
        document["paths"][item["x-template"]] = item
    for path, item in document["paths"].items():
        for verb in METHODS:
            if verb in item:
                if path.startswith("/files/"):
                    item["x-variable"] = "UPLOAD_URL" if verb == "put" else "DOWNLOAD_URL"
                call = Call(document, path, verb, item, item[verb])
                item[verb]["x-codeSamples"] = [{"lang": lang, "label": label, "source": sample(call)}
                                               for label, (lang, sample) in SAMPLES.items()]
    for tag in document["tags"]:
        tag["x-displayName"] = tag["name"].capitalize()
    return document


PRINTERS = {"json": json_of, "reference": reference_of}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in PRINTERS:
        sys.exit(__doc__)
    printed = PRINTERS[sys.argv[1]](load(sys.argv[2]))
    sys.stdout.buffer.write((json.dumps(printed, indent=1, ensure_ascii=False) + "\n").encode())


if __name__ == "__main__":
    main()
