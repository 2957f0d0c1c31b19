"""Memory of image processes: a picture is not charged for memory that another one holds."""
import collections
import json
import os

import pytest

import pictures
from test_way_of_an_order import job

HERE = os.path.dirname(os.path.abspath(__file__))


def restart(stack):
    stack.part("stop", "worker")
    stack.part("start", "worker")


@pytest.fixture(scope="module")
def lacking(stack, tmp_path_factory):
    """Two image processes that end without memory, or grow, at the picture of a number; 0 means never. served() counts each one's."""
    folder = tmp_path_factory.mktemp("lacking")
    program, log = folder / "lacking", folder / "served.log"
    real = os.path.join(stack.environment["IMGWARD_BUILD"], "imgward-image")

    class Lacking:
        def set(self, ends_at=0, grows_at=0):
            (folder / "plan.json").write_text(json.dumps({"program": real, "ends_at": ends_at, "grows_at": grows_at}))
            log.write_text("")
            restart(stack)

        def served(self):
            return collections.Counter(line.split()[0] for line in log.read_text().splitlines())
    with open(os.path.join(HERE, "lacking.py"), encoding="utf-8") as file:
        program.write_text("#!/usr/bin/python3\n" + file.read())
    program.chmod(0o755)
    with stack.configured("worker", "image_program", str(program)), stack.configured("worker", "processes", "2"):
        yield Lacking()
    restart(stack)


def jobs(stack, order):
    return [job(stack, file["fileId"]) for file in order["files"]]


def test_a_picture_that_lacks_memory_in_a_used_process_is_retried_in_a_fresh_one(client, stack, lacking):
    """Each process ends at its second picture. A retry in a used process would be a second death, and final in a fresh one."""
    lacking.set(ends_at=2)
    found = []
    for _ in range(6):
        order = client.order_whole([("a.jpg", pictures.jpeg(96, 80))])
        assert order["status"] == "complete", order["errors"]
        found += jobs(stack, order)
    deaths = [death_count for _, _, _, death_count in found]
    assert set(deaths) == {0, 1}, found
    assert all(attempt == 1 + death_count for _, attempt, _, death_count in found)
    assert max(lacking.served().values()) == 2


def test_a_picture_that_lacks_memory_in_a_fresh_process_is_too_large_without_a_retry(client, stack, lacking):
    lacking.set(ends_at=1)
    order = client.order_whole([("a.jpg", pictures.jpeg(96, 80))])
    assert order["status"] == "failed"
    assert order["errors"].startswith("a.jpg: IMAGE_TOO_LARGE: The picture needs more memory"), order["errors"]
    [(status, attempt, _, _)] = jobs(stack, order)
    assert (status, attempt) == ("refused", 1) and sum(lacking.served().values()) == 1


@pytest.mark.parametrize("grows_at", [1, 2])
def test_a_process_that_grew_is_replaced(client, lacking, grows_at):
    """tests/unit/image/test_image_process.c has a picture that makes a process grow."""
    lacking.set(grows_at=grows_at)
    for _ in range(5):
        assert client.order_whole([("a.jpg", pictures.jpeg(96, 80))])["status"] == "complete"
    assert sum(lacking.served().values()) == 5 and max(lacking.served().values()) <= grows_at
