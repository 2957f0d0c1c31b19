"""The last test checks the responses of all other tests, so it needs a complete run.

That run may have several sessions with some files each (tests/check.sh). IMGWARD_ANSWERS names a folder where each
session notes its responses. The last test then runs in a separate session that reads the notes.
"""
import json
import os
import uuid

import openapi

LAST = "test_every_documented_answer_was_seen"
HERE = os.path.dirname(os.path.abspath(__file__))
NOTES = os.environ.get("IMGWARD_ANSWERS")


def names(items):
    return {os.path.basename(item.fspath) for item in items if os.path.dirname(str(item.fspath)) == HERE}


def every_name():
    return {name for name in os.listdir(HERE) if name.startswith("test_") and name.endswith(".py")}


def notes_write(files):
    os.makedirs(NOTES, exist_ok=True)
    with open(os.path.join(NOTES, uuid.uuid4().hex + ".json"), "x", encoding="utf-8") as file:
        json.dump({"files": sorted(files), "answers": sorted(openapi.seen), "codes": sorted(filter(None, openapi.codes_seen)),
                   "file_codes": sorted(openapi.file_codes_seen)}, file)


def notes_read():
    """Adds the responses of other sessions to this one's; returns the files that they ran."""
    files = set()
    for name in os.listdir(NOTES):
        with open(os.path.join(NOTES, name), encoding="utf-8") as file:
            notes = json.load(file)
        files.update(notes["files"])
        openapi.seen.update(map(tuple, notes["answers"]))
        openapi.codes_seen.update(notes["codes"])
        openapi.file_codes_seen.update(notes["file_codes"])
    return files


def pytest_configure(config):
    config.imgward_is_whole = not any("::" in word for word in config.args)
    config.imgward_files = set()


def pytest_deselected(items):
    if items:
        items[0].config.imgward_is_whole = False


def pytest_collection_modifyitems(config, items):
    if NOTES and [item.name for item in items] == [LAST]:
        config.imgward_is_whole = notes_read() == every_name()
        return
    if NOTES:
        items[:] = [item for item in items if item.name != LAST]
    config.imgward_files = names(items) if config.imgward_is_whole else set()
    config.imgward_is_whole = config.imgward_is_whole and names(items) == every_name()
    items.sort(key=lambda item: item.name == LAST)


def pytest_sessionfinish(session):
    if NOTES and session.config.imgward_files:
        notes_write(session.config.imgward_files)
