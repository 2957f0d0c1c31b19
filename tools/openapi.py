#!/usr/bin/python3
"""Makes doc/openapi.json and doc/api.html out of doc/openapi.yaml.

Both are in the repository, since building needs no Python; a test fails when
they are not what this makes.  Run it after every change of the YAML:

    tools/openapi.py [--check]
"""
import html
import json
import pathlib
import re
import sys

import yaml

DOC = pathlib.Path(__file__).resolve().parent.parent / "doc"
METHODS = ("get", "post", "put", "delete")

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.4 ui-monospace, monospace; }
pre { padding: .8rem; overflow-x: auto; background: color-mix(in srgb, currentColor 7%, transparent); border-radius: .3rem; }
h2 { margin-top: 3rem; border-bottom: 1px solid; } h3 { margin-top: 2.2rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
.verb { display: inline-block; min-width: 4.5rem; font-weight: 700; }
nav li { list-style: none; } nav ul { padding: 0; }
"""


def load():
    with open(DOC / "openapi.yaml", encoding="utf-8") as file:
        document = yaml.safe_load(file)
    del document["x-shared"]
    return document


def text(value):
    """Escaped, with `code` marked."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(value or ""))


def paragraphs(value):
    return "".join(f"<p>{text(part)}</p>" for part in (value or "").split("\n\n") if part.strip())


class Page:
    def __init__(self, document):
        self.document = document
        self.parts = []

    def resolve(self, thing):
        while "$ref" in thing:
            at = self.document
            for name in thing["$ref"][2:].split("/"):
                at = at[name]
            thing = {**at, **{key: value for key, value in thing.items() if key != "$ref"}}
        return thing

    def add(self, markup):
        self.parts.append(markup)

    def kind(self, schema):
        """A short word for a schema's type."""
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            return f'<a href="#schema-{name}">{name}</a>'
        if "enum" in schema:
            return " | ".join(f"<code>{html.escape(json.dumps(word))}</code>" for word in schema["enum"])
        if "const" in schema:
            return f"<code>{html.escape(json.dumps(schema['const']))}</code>"
        if "anyOf" in schema:
            return " or ".join(self.kind(one) for one in schema["anyOf"])
        if schema.get("type") == "array":
            return "array of " + self.kind(schema.get("items", {}))
        kind = schema.get("type", "object")
        return " or ".join(kind) if isinstance(kind, list) else kind

    @staticmethod
    def bounds(schema):
        words = {"minLength": "at least {} characters", "maxLength": "at most {} characters", "minItems": "at least {} items",
                 "maxItems": "at most {} items", "minimum": "from {}", "maximum": "to {}", "default": "default {}"}
        return ", ".join(word.format(json.dumps(schema[key])) for key, word in words.items() if key in schema)

    def members(self, schema, prefix=""):
        """Rows of a schema's members, nested ones with their whole name."""
        for part in schema.get("allOf", [schema]):
            part = self.resolve(part)
            if "allOf" in part:
                yield from self.members(part, prefix)
            for name, member in part.get("properties", {}).items():
                note = " ".join(filter(None, [member.get("description", ""), self.bounds(member)]))
                yield prefix + name, self.kind(member), name in part.get("required", []), note
                inner = member.get("items", member) if member.get("type") == "array" else member
                if "$ref" not in inner:
                    yield from self.members(inner, f"{prefix}{name}{'[]' if inner is not member else ''}.")

    def table(self, schema):
        rows = list(self.members(schema))
        if not rows:
            self.add(f"<p>{self.kind(schema)}</p>")
            return
        self.add("<table><tr><th>Member</th><th>Type</th><th></th></tr>")
        for name, kind, required, note in rows:
            mark = " <b>required</b>" if required else ""
            self.add(f"<tr><td><code>{html.escape(name)}</code>{mark}</td><td>{kind}</td><td>{text(note)}</td></tr>")
        self.add("</table>")

    def schema_of(self, content):
        return content.get("application/json", {}).get("schema")

    def operation(self, path, verb, item, operation):
        self.add(f'<h3 id="{operation["operationId"]}"><span class="verb">{verb.upper()}</span> <code>{path}</code></h3>')
        self.add(f"<p><b>{text(operation['summary'])}</b></p>{paragraphs(operation.get('description'))}")
        parameters = [self.resolve(one) for one in item.get("parameters", []) + operation.get("parameters", [])]
        if parameters:
            self.add("<table><tr><th>Parameter</th><th>Type</th><th></th></tr>")
            for one in parameters:
                note = " ".join(filter(None, [one.get("description", ""), self.bounds(one["schema"])]))
                self.add(f"<tr><td><code>{one['name']}</code> ({one['in']})</td><td>{self.kind(one['schema'])}</td>"
                         f"<td>{text(note)}</td></tr>")
            self.add("</table>")
        body = operation.get("requestBody", {}).get("content", {})
        if self.schema_of(body):
            self.add("<h4>Body</h4>")
            self.table(self.resolve(self.schema_of(body)))
            content = body["application/json"]
            examples = [content["example"]] if "example" in content else [one["value"] for one in content.get("examples", {}).values()]
            for example in examples:
                self.add(f"<pre>{html.escape(json.dumps(example, indent=2, ensure_ascii=False))}</pre>")
        self.add("<h4>Answers</h4><table>")
        for status, answer in operation["responses"].items():
            answer = self.resolve(answer)
            self.add(f"<tr><td><b>{status}</b></td><td>{text(answer['description'])}</td></tr>")
        self.add("</table>")
        good = next((self.resolve(answer) for status, answer in operation["responses"].items() if status.startswith("2")), {})
        if self.schema_of(good.get("content", {})):
            self.table(self.resolve(self.schema_of(good["content"])))

    def render(self):
        info = self.document["info"]
        self.add(f"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{info['title']} API</title>"
                 f"<meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>")
        self.add(f"<h1>{info['title']} API</h1>{paragraphs(info['description'])}"
                 "<p>The same for programs: <a href=\"openapi.json\">openapi.json</a> (OpenAPI 3.1).</p>")
        operations = [(path, verb, item, item[verb]) for path, item in self.document["paths"].items()
                      for verb in METHODS if verb in item]
        self.add("<nav><ul>")
        for path, verb, _, operation in operations:
            self.add(f'<li><span class="verb">{verb.upper()}</span> <a href="#{operation["operationId"]}"><code>{path}</code></a></li>')
        self.add("</ul></nav><h2>Endpoints</h2>")
        for one in operations:
            self.operation(*one)
        self.add("<h2>Webhooks</h2>")
        for name, item in self.document["webhooks"].items():
            hook = item["post"]
            self.add(f"<h3 id=\"webhook-{name}\">{text(hook['summary'])}</h3>{paragraphs(hook.get('description'))}")
            self.table(self.resolve(hook["requestBody"]["content"]["application/json"]["schema"]))
        self.add("<h2>Schemas</h2>")
        for name, schema in self.document["components"]["schemas"].items():
            self.add(f'<h3 id="schema-{name}">{name}</h3>{paragraphs(schema.get("description"))}')
            self.table(schema)
            limits = self.bounds(schema)
            if limits:
                self.add(f"<p>{text(limits)}</p>")
        self.add("</body></html>\n")
        return "\n".join(self.parts)


def main():
    document = load()
    made = {"openapi.json": json.dumps(document, indent=1, ensure_ascii=False) + "\n",
            "api.html": Page(document).render()}
    if "--check" in sys.argv[1:]:
        stale = [name for name, content in made.items() if (DOC / name).read_text(encoding="utf-8") != content]
        if stale:
            sys.exit(f"{', '.join(stale)}: not what tools/openapi.py makes of doc/openapi.yaml")
        return
    for name, content in made.items():
        (DOC / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
