#!/usr/bin/python3
"""Print doc/openapi.json or doc/api.html, built from doc/openapi.yaml.  Run by make.

    tools/openapi.py json|html YAML
"""
import html
import json
import re
import sys

import yaml

METHODS = ("get", "post", "put", "delete")

STYLE = """
:root { color-scheme: light dark; --soft: color-mix(in srgb, currentColor 7%, transparent); --line: color-mix(in srgb, currentColor 20%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.4 ui-monospace, monospace; }
pre { padding: .8rem; overflow-x: auto; background: var(--soft); border-radius: .3rem; margin: .4rem 0; }
a { text-decoration: none; } a:hover { text-decoration: underline; }
h2 { margin-top: 3rem; border-bottom: 1px solid; } h3 { margin: 2.6rem 0 .2rem; } h3 code { font-size: 1rem; overflow-wrap: anywhere; }
h4 { margin: 1.2rem 0 .2rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
td:first-child { white-space: nowrap; } td:last-child { width: 50%; }
table.answers td:last-child { width: auto; } table.answers td:first-child { width: 4rem; }
details { margin: .4rem 0; } summary { cursor: pointer; }
.verb { display: inline-block; min-width: 4.2rem; font: 700 13px ui-monospace, monospace; }
.get { color: light-dark(#05624e, #5cc9ab); } .post { color: light-dark(#1b4fa8, #8fb8ff); }
.put { color: light-dark(#8a5300, #e8b465); } .delete { color: light-dark(#a3211b, #ff9d96); }
.optional { opacity: .65; }
nav h3 { margin: 1rem 0 .2rem; font-size: 1rem; } nav p { margin: 0 0 .2rem; } nav ul { padding: 0; margin: 0; } nav li { list-style: none; }
nav .says { opacity: .75; }
@media (max-width: 45rem) { td:first-child { white-space: normal; } nav .says { display: none; } }
"""


def load(path):
    with open(path, encoding="utf-8") as file:
        document = yaml.safe_load(file)
    del document["x-shared"]
    return document


def text(value):
    """Escapes text and marks `code`."""
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
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return " or ".join(self.kind(one) for one in schema[word])
        if schema.get("type") == "array":
            return "array of " + self.kind(schema.get("items", {}))
        kind = schema.get("type", "object")
        kind = " or ".join(kind) if isinstance(kind, list) else kind
        return f"{kind} ({schema['format']})" if "format" in schema else kind

    @staticmethod
    def bounds(schema):
        words = {"minLength": "at least {} characters", "maxLength": "at most {} characters", "minItems": "at least {} items",
                 "maxItems": "at most {} items", "minimum": "from {}", "maximum": "to {}", "default": "default {}"}
        return ", ".join(word.format(json.dumps(schema[key])) for key, word in words.items() if key in schema)

    def note(self, schema):
        description = schema.get("description", "").strip()
        if description and description[-1] not in ".;:":
            description += "."
        limits = self.bounds(schema)
        return " ".join(filter(None, [description, limits and limits[0].upper() + limits[1:] + "."]))

    def members(self, schema, prefix=""):
        """Rows of a schema's members; nested ones have their full name."""
        for part in schema.get("allOf", [schema]):
            part = self.resolve(part)
            if "allOf" in part:
                yield from self.members(part, prefix)
            for name, member in part.get("properties", {}).items():
                whole = self.resolve(member)
                yield prefix + name, self.kind(member), name in part.get("required", []), self.note(whole)
                inner = whole.get("items", whole) if whole.get("type") == "array" else whole
                yield from self.members(self.resolve(inner), f"{prefix}{name}{'[]' if inner is not whole else ''}.")

    def table(self, schema):
        rows = list(self.members(schema))
        if not rows:
            self.add(f"<p>{self.kind(schema)}</p>")
            return
        self.add("<table><tr><th>Member</th><th>Type</th><th></th></tr>")
        for name, kind, required, note in rows:
            mark = "" if required else ' <span class="optional">optional</span>'
            self.add(f"<tr><td><code>{html.escape(name)}</code>{mark}</td><td>{kind}</td><td>{text(note)}</td></tr>")
        self.add("</table>")

    def examples(self, content):
        """The examples of a body, with their names when there are several."""
        several = {name: one["value"] for name, one in content.get("examples", {}).items()}
        if "example" in content:
            several[""] = content["example"]
        for name, example in several.items():
            shown = html.escape(json.dumps(example, indent=2, ensure_ascii=False))
            self.add(f"<details><summary>Example {html.escape(name)}</summary><pre>{shown}</pre></details>")

    def schema_of(self, content):
        return content.get("application/json", {}).get("schema")

    def parameters(self, given):
        parameters = [self.resolve(one) for one in given]
        if parameters:
            self.add("<h4>Parameters</h4><table><tr><th>Name</th><th>Type</th><th></th></tr>")
            for one in parameters:
                schema = self.resolve(one["schema"])
                note = self.note({**schema, "description": one["description"]})
                self.add(f"<tr><td><code>{one['name']}</code> ({one['in']})</td><td>{self.kind(one['schema'])}</td>"
                         f"<td>{text(note)}</td></tr>")
            self.add("</table>")

    def body(self, title, content):
        """A JSON body: its members and examples."""
        if self.schema_of(content):
            self.add(f"<h4>{title}</h4>")
            self.table(self.resolve(self.schema_of(content)))
            self.examples(content["application/json"])

    def operation(self, path, verb, item, operation):
        self.add(f'<h3 id="{operation["operationId"]}"><span class="verb {verb}">{verb.upper()}</span> <code>{path}</code></h3>')
        self.add(f"<p><b>{text(operation['summary'])}</b></p>{paragraphs(operation.get('description'))}")
        self.parameters(item.get("parameters", []) + operation.get("parameters", []))
        self.body("Body", operation.get("requestBody", {}).get("content", {}))
        good = next((self.resolve(answer) for status, answer in operation["responses"].items() if status.startswith("2")), {})
        self.body("Answer", good.get("content", {}))
        self.add('<h4>Statuses</h4><table class="answers">')
        for status, answer in operation["responses"].items():
            answer = self.resolve(answer)
            self.add(f"<tr><td><b>{status}</b></td><td>{text(answer['description'])}</td></tr>")
        self.add("</table>")

    def contents(self, operations):
        """All operations by tag."""
        self.add("<nav>")
        for tag in self.document["tags"]:
            self.add(f"<h3>{html.escape(tag['name'])}</h3><p>{text(tag['description'])}</p><ul>")
            for path, verb, _, operation in operations:
                if tag["name"] in operation["tags"]:
                    self.add(f'<li><span class="verb {verb}">{verb.upper()}</span> <a href="#{operation["operationId"]}">'
                             f'<code>{path}</code></a> <span class="says">{text(operation["summary"])}</span></li>')
            self.add("</ul>")
        self.add('<p><a href="#webhooks">Webhooks: the events that your server receives</a> · <a href="#schemas">Schemas</a></p></nav>')

    def render(self):
        info = self.document["info"]
        self.add(f"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{info['title']} API</title>"
                 f"<meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head><body>")
        self.add(f"<h1>{info['title']} API</h1>{paragraphs(info['description'])}"
                 "<p>The same for programs: <a href=\"openapi.json\">openapi.json</a> (OpenAPI 3.1).</p>")
        groups = [self.document["paths"], {item["x-template"]: item for item in self.document["components"]["pathItems"].values()}]
        api, presigned = ([(path, verb, item, item[verb]) for path, item in group.items() for verb in METHODS if verb in item]
                          for group in groups)
        self.contents(api + presigned)
        self.add("<h2>Endpoints</h2>")
        for one in api:
            self.operation(*one)
        self.add('<h2 id="presigned">Presigned URLs</h2>')
        for item in self.document["components"]["pathItems"].values():
            self.add(paragraphs(item["description"]))
        for one in presigned:
            self.operation(*one)
        self.add('<h2 id="webhooks">Webhooks</h2>')
        for item in self.document["webhooks"].values():
            self.operation("your url", "post", item, item["post"])
        self.add('<h2 id="schemas">Schemas</h2>')
        for name, schema in self.document["components"]["schemas"].items():
            self.add(f'<h3 id="schema-{name}">{name}</h3>{paragraphs(schema.get("description"))}')
            self.table(schema)
            limits = self.bounds(schema)
            if limits:
                self.add(f"<p>{text(limits)}</p>")
        self.add("</body></html>\n")
        return "\n".join(self.parts)


def json_of(document):
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def html_of(document):
    return Page(document).render()


PRINTERS = {"json": json_of, "html": html_of}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in PRINTERS:
        sys.exit(__doc__)
    printed = PRINTERS[sys.argv[1]](load(sys.argv[2]))
    sys.stdout.buffer.write(printed.encode())


if __name__ == "__main__":
    main()
