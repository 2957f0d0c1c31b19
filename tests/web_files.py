#!/usr/bin/env python3
"""Check the files of the console's front end and of the site. Print each finding.

    web_files.py texts     each line is one text; each text key exists in each language, with the same values, and is used;
                           each message, error code and note of the service has a text, with values that the service sends
    web_files.py weight    the first load is small enough; print its bytes with --print
    web_files.py lines     a line of a script or style sheet has at most 120 columns; a text may be longer
    web_files.py files     each file but README.md is in web/Makefile.inc or site/Makefile.inc; vendored files are those of VERSIONS; no other host
"""
import gzip
import hashlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEB, SITE = ROOT / "web", ROOT / "site"
KEY_CODES = {"AUTH_NOT_AUTHENTICATED", "AUTH_TOKEN_INVALID_FORMAT", "AUTH_TOKEN_INVALID", "AUTH_TOKEN_EXPIRED", "AUTH_SCOPE_MISSING"}    # the console uses no API key
COLUMNS_MOST = 120
FIRST_LOAD_MOST = 80_000    # bytes, compressed
ENTRY = re.compile(r'(?:^|[{,\s])(?:"([\w.]+)"|(\w+)): "((?:[^"\\]|\\.)*)"')
TEXT_LINE = re.compile(r'  (?:"[\w.]+"|\w+): "(?:[^"\\]|\\.)*",|  // .*|// .*|export default \{|\};')
VALUE = re.compile(r"\{(\w+)")
IMPORT = re.compile(r'(?:\bfrom ?|^import ?)"(\.[^"]+)"', re.MULTILINE)
LINKED = re.compile(r'(?:href|src)="([^"]+)"')


def texts_read(path):
    return {found[1] or found[2]: found[3] for found in ENTRY.finditer(path.read_text(encoding="utf-8"))}


def scripts():
    return [path for path in sorted(WEB.rglob("*.js")) if path.parent.name not in ("vendor", "text")]


def site_texts(*patterns):
    """Returns the written files of the site, without its built pages."""
    return sorted(path for pattern in patterns for path in SITE.glob(pattern))


def check_texts():
    for path in sorted((WEB / "text").glob("*.js")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not TEXT_LINE.fullmatch(line):
                yield f"web/text/{path.name}:{number}: the line must hold one text, or one comment"
    languages = {path.stem: texts_read(path) for path in sorted((WEB / "text").glob("*.js"))}
    every = set().union(*languages.values())
    for name, texts in languages.items():
        yield from (f"web/text/{name}.js: the key {key} is missing" for key in sorted(every - texts.keys()))
        yield from (f"web/text/{name}.js: {finding}" for finding in check_messages(texts))
    for key in sorted(every):
        if len({frozenset(VALUE.findall(texts.get(key, ""))) for texts in languages.values()}) > 1:
            yield f"web/text: the values in braces of {key} differ between the languages"
    yield from check_table()
    code = "\n".join(path.read_text(encoding="utf-8") for path in scripts())
    yield from (f"web: the key {key} is used but has no text" for key in sorted(set(re.findall(r'\bt\("([\w.]+)"', code)) - every))
    literal = set(re.findall(r'"([\w.]+)"', code))
    built = ("message.", "required.") + tuple(set(re.findall(r"`([a-zA-Z]+\.(?:[a-zA-Z]+\.)*)\$\{", code)) | {"status.", "type.", "channel."})
    yield from (f"web/text: the key {key} is not used" for key in sorted(every) if key not in literal and not key.startswith(built))


def named(pattern, *files):
    """Returns what the pattern finds in sources of the service. A backslash joins the lines of a list."""
    return re.findall(pattern, "".join((ROOT / name).read_text(encoding="utf-8").replace("\\\n", "") for name in files))


def messages_table():
    """Returns the rows of doc/messages.md: each message with its values in braces."""
    sources = (ROOT / "src" / "base" / "message.h").read_text(encoding="utf-8").replace("\\\n", "")
    for reason, names, literal in re.findall(r'\bX\((\w+), "([^"]*)",((?:\s*"(?:[^"\\]|\\.)*"|\s*PRI\w+)+)\)', sources):
        template = re.sub(r"PRI\w+", "u", re.sub(r'"\s*(PRI\w+)\s*"', r"\1", re.sub(r'(?<=[^\\])"\s+"', "", literal.strip()[1:-1])))
        values = iter(names.split())
        message = re.sub(r"%(?:%|[.\dlz]*[dufs])", lambda found: "%" if found[0] == "%%" else "{" + next(values).replace("-", "…") + "}", template)
        yield f"| `{reason}` | {message} |".replace('\\"', '"')


def check_table():
    """Compares doc/messages.md with the messages of src/base/message.h."""
    listed = [line for line in (ROOT / "doc" / "messages.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    wanted = list(messages_table())
    yield from (f"doc/messages.md: the row is missing or differs: {line}" for line in wanted if line not in listed)
    yield from (f"doc/messages.md: src/base/message.h has no such message: {line}" for line in listed if line not in wanted)


def check_messages(texts):
    """Compares the texts of one language with the lists of the service."""
    messages = dict(named(r'\bX\((\w+), "([^"]*)",', "src/base/message.h"))
    codes = set(named(r"\{IW_(\w+), \d{3}\}", "src/http/failure.c", "src/console/main.c"))
    notes = named(r'context_note\(\s*(?:job->)?context, "([A-Z_]+)"', *map(str, sorted((ROOT / "src").rglob("*.c"))))
    things = [re.sub(r"\W+", "_", words) for words in named(r'\{KEEP_LEFT_\w+, "([^"]+)"\}', "src/codec/metadata/clean.c")]
    reasons = set(named(r'FETCH_[A-Z_]+,\s*"([a-z_]+)"', "src/service/net/fetch.c")) - {"answered"}
    failures = re.findall(r"- ([A-Z_]+)", (ROOT / "doc" / "openapi.yaml").read_text(encoding="utf-8").split("    FileErrorCode:\n")[1].split("    Time:\n")[0])
    wanted = {"message": set(messages), "error": codes - KEY_CODES, "note": set(notes), "thing": set(things), "file": set(failures), "reason": reasons}
    for kind, names in wanted.items():
        assert names, f"no {kind} was found in the sources"
        yield from (f"the text {kind}.{name} is missing" for name in sorted(names) if f"{kind}.{name}" not in texts)
    for kind in ("message", "thing"):
        known = {key.partition(".")[2] for key in texts if key.startswith(kind + ".")}
        yield from (f"{kind}.{name}: the service has no such {kind}" for name in sorted(known - wanted[kind]))
    for name, values in messages.items():
        others = set(VALUE.findall(texts.get(f"message.{name}", ""))) - set(values.split())
        yield from (f"message.{name}: the service sends no value {value}" for value in sorted(others))


def first_load():
    """Returns the files of the sign-in page: those that index.html names, their imports, and one language."""
    found, waiting = set(), ["index.html", *LINKED.findall((WEB / "index.html").read_text(encoding="utf-8")), "pages/sign_in.js", "text/ko.js"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            if name.endswith(".js"):
                near = (WEB / name).parent
                waiting += [str((near / other).resolve().relative_to(WEB)) for other in IMPORT.findall((WEB / name).read_text(encoding="utf-8"))]
    return sorted(found)


def weight(name):
    return len(gzip.compress((WEB / name).read_bytes(), 6))


def check_weight():
    names = first_load()
    total = sum(map(weight, names))
    if "--print" in sys.argv:
        for name in names:
            print(f"{weight(name):6d} {name}")
        print(f"{total:6d} bytes in {len(names)} files, compressed")
    if total > FIRST_LOAD_MOST:
        yield f"web: the first load has {total} bytes compressed; at most {FIRST_LOAD_MOST} are allowed"


def check_files():
    for folder in (WEB, SITE):
        listed = (folder / "Makefile.inc").read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.is_file() and path.name not in ("Makefile.inc", "README.md") and not re.search(rf"(^|\s){re.escape(name)}(\s|$)", listed):
                yield f"{name} is not named in {folder.name}/Makefile.inc"
    for line in (WEB / "vendor" / "VERSIONS").read_text(encoding="utf-8").splitlines():
        digest, name, package = line.split()
        if hashlib.sha256((WEB / "vendor" / name).read_bytes()).hexdigest() != digest:
            yield f"web/vendor/{name} differs from {package}: run tools/vendor"
    for path in [*scripts(), WEB / "index.html", WEB / "console.css", *site_texts("*.html", "front/*.html", "docs/**/*.css", "docs/**/*.js", "docs/reference/*.html")]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"\bhttps?://(?!www\.w3\.org/2000/svg)\w|//cdn|\bstyle=\"|\bon[a-z]+=\"|javascript:", line):
                yield f"{path.relative_to(ROOT)}:{number}: another host, an inline style or an inline script"


def check_lines():
    for path in [*scripts(), *sorted(WEB.glob("*.css")), *site_texts("docs/**/*.css", "docs/**/*.js")]:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > COLUMNS_MOST:
                yield f"{path.relative_to(ROOT)}:{number}: {len(line)} columns; at most {COLUMNS_MOST} are allowed"


CHECKS = {"texts": check_texts, "weight": check_weight, "lines": check_lines, "files": check_files}

if __name__ == "__main__":
    findings = list(CHECKS[sys.argv[1]]())
    print("\n".join(findings), end="\n" if findings else "")
    sys.exit(1 if findings else 0)
