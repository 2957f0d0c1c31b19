"""Memory of image processes: a picture is not charged for memory that another picture holds."""
import collections

import pytest

import pictures
from image_proxy import proxied
from test_way_of_an_order import job


@pytest.fixture(scope="module")
def lacking(stack, tmp_path_factory):
    """Two image processes that exit for lack of memory, or grow, at the picture of a number. served() counts the pictures of each."""
    folder = tmp_path_factory.mktemp("lacking")

    class Lacking:
        def __init__(self, set):
            self.set = set

        def served(self):
            return collections.Counter(line.split()[0] for line in (folder / "served.log").read_text().splitlines())
    with proxied(stack, folder, processes=2) as set:
        yield Lacking(set)


def jobs(stack, order):
    return [job(stack, file["fileId"]) for file in order["files"]]


def test_a_picture_that_lacks_memory_in_a_used_process_is_retried_in_a_fresh_one(client, stack, lacking):
    """Each process ends at the second picture. A retry in a used process would be a second death."""
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
