#!/usr/bin/python3
"""Write the guides of the service's site, /docs/, from doc/*.md, and search.json, the index of their search.  Run by make.

    tools/site.py ROOT FOLDER    read ROOT/doc, ROOT/doc/openapi.yaml and ROOT/site/page.html, write into FOLDER
    tools/site.py --list         print the names of the files
"""
import html
import json
import pathlib
import re
import string
import sys

import yaml
from markdown_it import MarkdownIt

# Group, {page: (title, document, its sections)}. None stands for the whole document, "" for the text before the first section,
# and REST for the sections that no other page names.
REST = "the rest"
GROUPS = [
    ("Guides", {
        "index": ("Get started", "api.md", ("", "Authentication")),
        "protect": ("Protect pictures", "api.md", ("Protect pictures",)),
        "mark": ("Mark and trace", "api.md", ("Embed and extract watermarks",)),
        "urls": ("Pictures from URLs", "api.md", ("Process pictures from URLs", "Zero copy", "Answers of your servers")),
        "orders": ("Query and repeat", "api.md", ("Query orders", "Your own data", "Retry safely")),
        "webhooks": ("Webhooks", "webhooks.md", None),
        "errors": ("Errors", "api.md", ("Errors",)),
        "messages": ("Messages", "messages.md", None),
        "limits": ("Limits", "api.md", ("Limits",)),
        "rules": ("Uploads, JSON, clients", "api.md", ("Upload rules", "JSON rules", REST))}),
    ("Background", {
        "protection": ("Protection", "protection.md", None),
        "watermark": ("The watermark", "watermark.md", None),
        "pictures": ("Pictures and metadata", "pictures.md", None),
        "glossary": ("Glossary", "glossary.md", None)}),
    ("Operation", {
        "install": ("Install", "install.md", None),
        "operating": ("Operate", "operating.md", None),
        "scaling": ("Scale", "scaling.md", None),
        "reliability": ("Reliability", "reliability.md", None),
        "architecture": ("Architecture", "architecture.md", None),
        "protection-engine": ("Protection engine", "protection-engine.md", None),
        "console": ("Console API", "console.md", None)}),
]
PAGES = {name: page for _, pages in GROUPS for name, page in pages.items()}
METHODS = ("get", "post", "put", "delete")
MARKDOWN = MarkdownIt("commonmark").enable("table")


def slug(title, taken):
    """Returns the anchor of a heading, as GitHub makes it."""
    word = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    count = taken[word] = taken.get(word, -1) + 1
    return f"{word}-{count}" if count else word


def words_of(token):
    return "".join(child.content if child.type in ("text", "code_inline") else " " for child in token.children or [])


class Document:
    """The tokens of a document; headings have anchors."""

    def __init__(self, path):
        self.tokens = MARKDOWN.parse(path.read_text(encoding="utf-8"))
        taken = {}
        for token, inline in zip(self.tokens, self.tokens[1:]):
            if token.type == "heading_open":
                token.attrSet("id", slug(words_of(inline), taken))

    def rest(self, named):
        titles = [words_of(inline) for token, inline in zip(self.tokens, self.tokens[1:]) if token.type == "heading_open" and token.tag == "h2"]
        return [title for title in titles if title not in named]

    def section(self, title):
        """Returns the tokens from a heading of the second level to the next; "" is the text between title and first section."""
        at, found = "", []
        for place, token in enumerate(self.tokens[3:], 3):
            if token.type == "heading_open" and token.tag == "h2":
                at = words_of(self.tokens[place + 1])
            if at == title:
                found.append(token)
        if not found:
            sys.exit(f"site: no document has the section {title!r}, which a page of tools/site.py names")
        return found

    def part(self, sections):
        """Returns the tokens of a page without the title."""
        if sections is None:
            return self.tokens[3:]
        named = [title for page in PAGES.values() for title in page[2] or ()]
        parts = [self.section(title) for word in sections for title in (self.rest(named) if word == REST else [word])]
        # If a page has one section, the page's title replaces the heading.
        return parts[0][3:] if len(parts) == 1 else sum(parts, [])


class Site:
    def __init__(self, root):
        self.root = root
        self.template = string.Template((root / "site" / "page.html").read_text(encoding="utf-8"))
        self.documents = {name: Document(root / "doc" / name) for name in {page[1] for page in PAGES.values()}}
        self.parts = {name: self.documents[page[1]].part(page[2]) for name, page in PAGES.items()}
        self.places = {}
        for name, (_, document, sections) in PAGES.items():
            self.places.setdefault((document, ""), f"{name}.html")
            for anchor in self.anchors(name):
                self.places[(document, anchor)] = f"{name}.html#{anchor}"
            if sections and len(sections) == 1:
                self.places[(document, slug(sections[0], {}))] = f"{name}.html"

    def anchors(self, name):
        return [token.attrGet("id") for token in self.parts[name] if token.type == "heading_open"]

    def address(self, document, target):
        """Returns the address of a link on the site; None if it leads to a file that is not on the site."""
        if re.match(r"[a-z]+:", target):
            return target
        path, _, anchor = target.partition("#")
        place = self.places.get((path or document, anchor))
        if place is None and (path or document) in self.documents:
            sys.exit(f"site: doc/{document} links to {target}, which is no heading of a page in tools/site.py")
        return place or (None if path.startswith("..") or path.endswith(".md") else path)

    def links_set(self, document, token):
        """Makes the links of a paragraph lead to pages.  A link to another file of the source becomes its text."""
        kept, is_dropped = [], False
        for child in token.children or []:
            if child.type == "link_open":
                place = self.address(document, child.attrGet("href"))
                is_dropped = place is None
                child.attrSet("href", place or "")
            elif child.content in self.documents:
                child.content = PAGES[self.places[(child.content, "")].removesuffix(".html")][0]
            if not (is_dropped and child.type in ("link_open", "link_close")):
                kept.append(child)
        token.children = kept

    def body(self, name):
        _, document, _ = PAGES[name]
        for token in self.parts[name]:
            if token.type == "inline":
                self.links_set(document, token)
        labels_set(self.parts[name])
        # Code that is wider than the page can be scrolled with the keyboard.
        return MARKDOWN.renderer.render(self.parts[name], MARKDOWN.options, {}).replace("<pre>", '<pre tabindex="0">') \
            .replace("<th></th>", "<td></td>")

    def contents(self, name):
        """Returns the links to the sections of a page."""
        tokens = self.parts[name]
        return [(token.attrGet("id"), html.escape(words_of(inline))) for token, inline in zip(tokens, tokens[1:])
                if token.type == "heading_open" and token.tag == "h2"]

    def menu(self, current):
        lines = []
        for group, pages in GROUPS:
            lines.append(f"<h2>{group}</h2><ul>")
            for name, (title, _, _) in pages.items():
                mark = ' aria-current="page"' if name == current else ""
                lines.append(f'<li><a href="{name}.html"{mark}>{html.escape(title)}</a></li>')
            lines.append("</ul>")
        return "\n".join(lines)

    def page(self, name):
        names = list(PAGES)
        after = names[(names.index(name) + 1) % len(names)]
        contents = "\n".join(f'<li><a href="#{anchor}">{title}</a></li>' for anchor, title in self.contents(name))
        return self.template.substitute(title=html.escape(PAGES[name][0]), menu=self.menu(name), body=self.body(name),
                                        contents=f'<h2>On this page</h2><ul>{contents}</ul>' if contents else "",
                                        after=f"{after}.html", after_title=html.escape(PAGES[after][0]))

    def index(self):
        """Returns an entry for each section (title, page's title, address, text), then for each operation of the reference."""
        entries = []
        for name, (title, _, _) in PAGES.items():
            heading, address, text = title, f"{name}.html", []
            for token, inline in zip(self.parts[name], self.parts[name][1:] + [None]):
                if token.type == "heading_open":
                    entries.append([heading, title, address, " ".join(text)])
                    heading, address, text = words_of(inline), f"{name}.html#{token.attrGet('id')}", []
                elif token.type == "inline":
                    text.append(words_of(token))
                elif token.type in ("fence", "code_block"):
                    text.append(token.content)
            entries.append([heading, title, address, " ".join(text)])
        return [entry for entry in entries if entry[3]] + operations(self.root)


def operations(root):
    document = yaml.safe_load((root / "doc" / "openapi.yaml").read_text(encoding="utf-8"))
    return [[f"{verb.upper()} {path}", "Reference", f"reference/#tag/{item[verb]['tags'][0]}/operation/{item[verb]['operationId']}",
             f"{item[verb]['summary']} {item[verb].get('description', '')}"]
            for path, item in document["paths"].items() for verb in METHODS if verb in item]


def labels_set(tokens):
    """Gives each cell the name of its column, which a phone shows."""
    labels, column = [], 0
    for token, inline in zip(tokens, tokens[1:] + [None]):
        if token.type == "table_open":
            labels = []
        elif token.type == "tr_open":
            column = 0
        elif token.type == "th_open":
            labels.append(words_of(inline))
        elif token.type == "td_open":
            token.attrSet("data-label", labels[column])
            column += 1


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join([f"{name}.html" for name in PAGES] + ["search.json"]))
    elif len(sys.argv) == 3:
        site, folder = Site(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2])
        index = site.index()
        for name in PAGES:
            (folder / f"{name}.html").write_text(site.page(name), encoding="utf-8")
        (folder / "search.json").write_text(json.dumps(index, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
