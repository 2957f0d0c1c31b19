#!/usr/bin/env python3
"""Check that comments, messages, texts of the console and documents are plain technical English (CONTRIBUTING.md, "Words").

    prose.py [FILE...]     print each finding as "file:line: text", exit 1 if there is one
    prose.py --count       print words, sentences over the limit and words of WATCHED per 1,000, by kind of text

Without FILE, check every file that git tracks, or of a release tarball.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

WORDS_MAX = 30          # in a sentence; 25 made fragments of sentences that belong together
WHAT_PER_1000_MAX = 3   # pgbouncer has 0.5, kcgi 0.8
WATCHED = ("what", "if", "its", "one", "none")  # pgbouncer, kcgi and beanstalkd: if 11.8, its 1.2, one 2.0, none 0.2
LITERAL_WORDS_MIN = 3   # a shorter string is a key, a name or a format

# A phrase that hides the term of the field, and the term.
BANNED = {
    r"(is|are|was|were|be|been) told": "reported, notified, returned",
    r"tells? (of|whether|why|that)": "reports, returns",
    r"mend(s|ed|ing)?": "repair, fix",
    r"anew": "again, new",
    r"who(so)?ever": "the caller, the client, the operator",
    r"nobody('s)?": "no client, no caller, no process",
    r"somebody('s)?": "a client, another process",
    r"of (its|their|his|our|his) own": "own, separate, private",
    r"(is|are|was|were) (let )?pass(ed)? by": "skipped",
    r"gives? (it |them )?back": "return, release",
    r"beside (it|them|that|each other)": "next to, in addition to, in parallel",
    r"at once that": "immediately",
    r"take care of": "handle",
    r"as it is told": "as configured",
    r"comes? to nothing": "fails, has no effect",
    r"for (it|he|she|they|there) (is|are|was|were|has|have)": "because",
    r"(a|the) bell|rings?": "wake-up, notify",
    r"hears? of": "receive, learn",
    r"bur(y|ied|ies)": "reap",
    r"grown-up|grandparent": "",
    r"the (like|likes) of": "such as",
    r"upkeep": "retention",
    r"does not (know|care) (of|about)": "is independent of",
    r"(is|are) no matter": "is ignored",
    r"let alone": "unchanged, untouched",
    r"(?<!fails )(?<!let )alone": "only",
    r"under way|in work": "in progress, running",
    r"signs? of life": "heartbeat",
    r"side by side": "in parallel",
    r"told apart": "distinguished",
    r"to be had": "available",
    r"for want of": "without",
    r"held against": "compared with",
    r"let through": "accepted, allowed",
    r"what (became|becomes|comes|came) of": "outcome",
    r"everybody": "other users, every client",
    r"(a|every|each|first|last|next|another) try": "attempt",
    r"(taken|takes?) back": "reclaimed, revoked, expired",
    r"in (its|their|his) hands": "leased, received",
    r"twins?": "duplicate",
    r"is (not )?owed": "pending",
    r"nothing but": "only",
    r"but for|save for": "except",
    r"any more(?= (?!than)|[.,;:)]|$)": "no longer",
    r"exists? already": "already exists",
    r"(true|false|null|-1) when": "if, for a condition",
    r"(null|0|-1): (none|no \w+|unknown|never|all)": "if there is none, or another clause",
}
BANNED_PATTERN = {re.compile(r"\b(?:" + phrase + r")\b", re.IGNORECASE): term for phrase, term in BANNED.items()}

# A string literal, and the literals and format macros that continue it.
LITERAL = r'"(?:\\.|[^"\\\n])*"'
LITERALS = re.compile(LITERAL + r"(?:\s*(?:PRI\w+\s*)?" + LITERAL + r")*|/\*.*?\*/", re.DOTALL)
SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|FROM|WHERE|SET|CREATE|ALTER|GRANT|AND|ORDER BY)\b")

CODE = re.compile(r"`[^`]*`|https?://\S+|\[([^]]*)\]\([^)]*\)")
WORD = re.compile(r"\S*[A-Za-z0-9]\S*")
# The end of a sentence: a mark, then a space and a capital, a quote or a bracket; or a colon.
END = re.compile(r"(?<=[.!?])[\"')]*\s+(?=[\"'(]?[A-Z0-9`])|(?<=:)\s+")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|cf|etc|vs|et al|Dr|No|Fig|pp?)\.$")


class Block:
    """A run of prose and the line where it begins."""

    def __init__(self, line, text):
        self.line, self.text = line, text


def comment_text(text):
    """Returns a line of a C comment, or "" for an indented line, which is an example."""
    return re.sub(r"^\s*\*+(  .*| ?)", "", text)


def blocks_c(text):
    # A string may contain the beginning of a comment.
    for found in LITERALS.finditer(text):
        first = text.count("\n", 0, found.start()) + 1
        if found[0].startswith("/*"):
            yield from paragraphs([comment_text(line) for line in found[0][2:-2].split("\n")], first)


def messages_c(text):
    """Yields the string literals that are sentences or phrases."""
    for found in LITERALS.finditer(text):
        literal = "".join(re.findall(LITERAL, found[0])).replace('""', "").replace('\\"', "'").strip('"')
        if not found[0].startswith("/*") and len(WORD.findall(literal)) >= LITERAL_WORDS_MIN and not SQL.search(literal):
            first = text.count("\n", 0, found.start()) + 1
            yield from (Block(first, line) for line in literal.split("\\n"))


def blocks_js(text):
    yield from blocks_hash(text, "//")


def messages_js(text):
    for found in re.finditer(LITERAL, text):
        yield Block(text.count("\n", 0, found.start()) + 1, found[0].strip('"'))


def messages_sql(text):
    for found in re.finditer(r"COMMENT '((?:[^']|'')*)'", text):
        yield Block(text.count("\n", 0, found.start()) + 1, found[1])


def blocks_hash(text, mark="#"):
    lines, first = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"\s*" + mark + r"+ ?(?!!)(.*)$", line)
        if found:
            if not lines:
                first = number
            lines.append(found[1])
        elif lines:
            yield from paragraphs(lines, first)
            lines = []
        # A comment after code; a mark inside a string is none.
        after = not found and re.match(r"(.*\S) +" + mark + " (?!noqa)(.*)$", line)
        if after and not any(after[1].count(quote) % 2 for quote in "\"'"):
            yield Block(number, after[2])
    if lines:
        yield from paragraphs(lines, first)


def blocks_python(text):
    yield from blocks_hash(text)
    for found in re.finditer(r'"""(.*?)"""', text, re.DOTALL):
        # A docstring begins its line; other strings hold programs and SQL.
        indent = text[text.rfind("\n", 0, found.start()) + 1:found.start()]
        if not indent.strip():
            lines = ["" if line.startswith(indent + "    ") else line for line in found[1].split("\n")]
            yield from paragraphs(lines, text.count("\n", 0, found.start()) + 1)


def blocks_markdown(text):
    lines, is_code = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            is_code = not is_code
            line = ""
        elif is_code or line.startswith("    "):
            line = ""
        elif line.lstrip().startswith("|"):
            yield from (Block(len(lines) + 1, cell) for cell in line.strip().strip("|").split("|"))
            line = ""
        lines.append(line)
    yield from paragraphs(lines, 1)


def blocks_man(text):
    yield from paragraphs([re.sub(r"\\f[A-Z]|\\-|\\&", "", line) if not line.startswith((".", "'")) else ""
                           for line in text.split("\n")], 1)


def paragraphs(lines, first):
    """Splits at empty lines, at items of a list and at headings."""
    held, start = [], first
    for number, line in enumerate(lines, first):
        is_item = re.match(r"\s*([-*+•]|\d+\.|#+)\s", line)
        if (not line.strip() or is_item) and held:
            yield Block(start, " ".join(held))
            held = []
        if line.strip():
            if not held:
                start = number
            held.append(re.sub(r"^\s*([-*+•]|\d+\.|#+)\s+", "", line.strip()) if is_item else line.strip())
    if held:
        yield Block(start, " ".join(held))


READERS = {
    ".c": blocks_c, ".h": blocks_c, ".js": blocks_js, ".mts": blocks_js, ".md": blocks_markdown, ".py": blocks_python, ".sh": blocks_hash,
    ".am": blocks_hash, ".inc": blocks_hash, ".m4": lambda text: blocks_hash(text, "dnl"), ".sql": lambda text: blocks_hash(text, "--"),
    ".conf": blocks_hash, ".conf.in": blocks_hash, ".service.in": blocks_hash, ".8": blocks_man, ".5": blocks_man, ".1": blocks_man,
}
MESSAGES = {".c": messages_c, ".h": messages_c, ".js": messages_js, ".sql": messages_sql}
KINDS = {".md": "documents", ".8": "documents", ".5": "documents", ".1": "documents"}
# Files whose messages, or whose whole text, other people wrote, or whose strings are programs. An applied migration never
# changes, not even a comment, because src/db/migrate.c compares its checksum.
NOT_MESSAGES = ("tests/", "tools/", "web/lib/", "web/pages/", "web/app.js")
NOT_OURS = ("web/vendor/", "sql/0001_", "sql/0003_", "sql/0006_")


def suffix_of(name):
    return "".join(pathlib.Path(name).suffixes[-2:] if name.endswith(".in") else pathlib.Path(name).suffixes[-1:])


def plain(text):
    return CODE.sub(lambda found: found[1] or "Code", text)


def sentences(text):
    held = ""
    for piece in END.split(plain(text)):
        held = f"{held} {piece}".strip()
        if not ABBREVIATION.search(held):
            yield held
            held = ""
    if held:
        yield held


def walked():
    """Yields the files of a release tarball, without those that autotools and builds add."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith((".", "build")) and name not in ("autom4te.cache", "var", "node_modules")]
        yield from (os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name != "aclocal.m4")


def tracked():
    try:
        names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split("\n")
    except FileNotFoundError:
        names = []
    names = names if any(names) else sorted(walked())
    return [name for name in names if not name.startswith(NOT_OURS) and (ROOT / name).is_file()]


def reader_of(suffix, text):
    """Returns the reader of a file, which for a script is found by the first line; None if there is none."""
    script = re.match(r"#!.*/(env )?(python)?", text)
    return READERS.get(suffix) or (script and (blocks_python if script[2] else blocks_hash))


def blocks_of(name):
    """Yields each block of a file, with the kind of its text."""
    text, suffix = (ROOT / name).read_text(encoding="utf-8", errors="replace"), suffix_of(name)
    reader = reader_of(suffix, text)
    yield from ((KINDS.get(suffix, "comments"), block) for block in (reader(text) if reader else ()))
    if suffix in MESSAGES and not name.startswith(NOT_MESSAGES):
        yield from (("messages", block) for block in MESSAGES[suffix](text))


def findings(name):
    for _, block in blocks_of(name):
        for pattern, term in BANNED_PATTERN.items():
            for found in pattern.finditer(plain(block.text)):
                yield f'{name}:{block.line}: "{found[0]}"; say: {term}'
        for sentence in sentences(block.text):
            count = len(WORD.findall(sentence))
            if count > WORDS_MAX:
                yield f"{name}:{block.line}: {count} words in a sentence: {sentence[:70]}..."


def count(names):
    """Returns by kind of text the number of words, of each watched word, and of long sentences."""
    totals = {}
    for name in names:
        for kind, block in blocks_of(name):
            total = totals.setdefault(kind, dict.fromkeys(("words", *WATCHED, "long"), 0))
            words = [word.lower().strip(".,:;!?()\"'") for word in WORD.findall(plain(block.text))]
            total["words"] += len(words)
            total["long"] += sum(len(WORD.findall(sentence)) > WORDS_MAX for sentence in sentences(block.text))
            for word in WATCHED:
                total[word] += words.count(word)
    return totals


def main(words):
    if words == ["--count"]:
        for kind, total in sorted(count(tracked()).items()):
            shares = ", ".join(f'"{word}" {1000 * total[word] / total["words"]:.1f}' for word in WATCHED)
            print(f'{kind}: {total["words"]} words, in 1,000: {shares}; {total["long"]} sentences over {WORDS_MAX} words')
        return 0
    names = words or tracked()
    found = [finding for name in names for finding in findings(name)]
    for kind, total in sorted(count(names).items()):
        if total["words"] > 1000 and 1000 * total["what"] / total["words"] > WHAT_PER_1000_MAX:
            found.append(f'{kind}: "what" stands {1000 * total["what"] / total["words"]:.1f} times in 1,000 words; {WHAT_PER_1000_MAX} are allowed')
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
