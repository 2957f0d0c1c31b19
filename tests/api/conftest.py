"""The last test looks back on all the others: it can only judge a run of all of them."""
import os

LAST = "test_every_documented_answer_was_seen"
HERE = os.path.dirname(os.path.abspath(__file__))


def pytest_configure(config):
    config.imgward_is_whole = not any("::" in word for word in config.args)


def pytest_deselected(items):
    if items:
        items[0].config.imgward_is_whole = False


def pytest_collection_modifyitems(config, items):
    files = {os.path.basename(item.fspath) for item in items if os.path.dirname(str(item.fspath)) == HERE}
    every = {name for name in os.listdir(HERE) if name.startswith("test_") and name.endswith(".py")}
    config.imgward_is_whole = config.imgward_is_whole and files == every
    items.sort(key=lambda item: item.name == LAST)
