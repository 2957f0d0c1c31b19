"""The last test checks the responses of all other tests, so it needs a complete run.

With IMGWARD_ANSWERS, the name of a folder, parallel sessions (pytest-xdist) record their responses in this folder.
A separate session, which runs only the last test, reads the records.
"""
import json
import os
import uuid

import openapi

LAST = "test_every_documented_answer_was_seen"
HERE = os.path.dirname(os.path.abspath(__file__))
NOTES = os.environ.get("IMGWARD_ANSWERS")


def notes_write():
    os.makedirs(NOTES, exist_ok=True)
    with open(os.path.join(NOTES, uuid.uuid4().hex + ".json"), "x", encoding="utf-8") as file:
        json.dump({"answers": sorted(openapi.seen), "codes": sorted(filter(None, openapi.codes_seen)),
                   "file_codes": sorted(openapi.file_codes_seen)}, file)


def notes_read():
    """Adds the responses that other sessions recorded; false if there are none."""
    names = os.listdir(NOTES) if os.path.isdir(NOTES) else []
    for name in names:
        with open(os.path.join(NOTES, name), encoding="utf-8") as file:
            notes = json.load(file)
        openapi.seen.update(map(tuple, notes["answers"]))
        openapi.codes_seen.update(notes["codes"])
        openapi.file_codes_seen.update(notes["file_codes"])
    return names != []


def pytest_configure(config):
    config.imgward_is_whole = not any("::" in word for word in config.args)


def pytest_deselected(items):
    if items:
        items[0].config.imgward_is_whole = False


def pytest_collection_modifyitems(config, items):
    if NOTES and [item.name for item in items] == [LAST]:
        config.imgward_is_whole = notes_read()
        return
    files = {item.path.name for item in items if str(item.path.parent) == HERE}
    every = {name for name in os.listdir(HERE) if name.startswith("test_") and name.endswith(".py")}
    is_alone = not hasattr(config, "workerinput")
    config.imgward_is_whole = config.imgward_is_whole and files == every and (NOTES or is_alone)
    if NOTES:
        items[:] = [item for item in items if item.name != LAST]
    items.sort(key=lambda item: item.name == LAST)


def pytest_sessionfinish(session):
    if NOTES and session.config.imgward_is_whole and openapi.seen:
        notes_write()
