"""Prefetched jobs: they start, are released, or go to the next worker, and are never lost or counted as failures."""
import os
import signal
import time

import pytest

from test_way_of_an_order import alive, events, large_order, until
from test_worker_dies import big_order, held, image_processes, wait_for_progress, whole_and_once


@pytest.fixture(scope="module")
def alone(stack):
    """A worker with one image process: one job in progress and at most one prefetched."""
    with stack.configured("worker", "processes", "1"):
        restart(stack)
        yield stack
    restart(stack)


def restart(stack):
    stack.part("stop", "worker")
    stack.part("start", "worker")


def leased(stack, order):
    return int(stack.sql(f"SELECT COUNT(*) FROM jobs WHERE order_id = {order} AND status = 'leased'")[0][0])


def given_back(stack, order):
    """Returns the number of jobs of the order that the worker's log reports as released before the start."""
    return sum(str(line["order_id"]) == str(order) for line in events(stack, "job_released"))


def charged(stack, order):
    """Returns the counted failures and deaths of the order's jobs."""
    return [int(word) for word in stack.sql(f"SELECT SUM(failure_count), SUM(death_count) FROM jobs WHERE order_id = {order}")[0]]


class NotAhead(Exception):
    """The second lease was a job whose outcome was still being recorded."""


def wait_given_back(stack, order):
    """Waits until the prefetched job is released. Raises NotAhead if no job was prefetched and none was released."""
    since, end = time.monotonic(), time.monotonic() + 120
    while given_back(stack, order) == 0:
        if leased(stack, order) > 1:
            since = time.monotonic()
        if time.monotonic() > since + 3:
            raise NotAhead
        assert time.monotonic() < end, "giving back"
        time.sleep(0.05)


def with_a_job_ahead(client, stack, act, again=lambda: None):
    """Runs act(order) while the image process is stopped with one picture and another job is prefetched. Repeats with
    a new order if the machine was too slow or the order finished too early. Returns the order and its pictures.
    """
    for _ in range(6):
        order, data = big_order(client, 40, 256)
        wait_for_progress(client, order, 3)
        try:
            with held(stack):
                end = time.monotonic() + 0.5
                while leased(stack, order) < 2 and time.monotonic() < end:
                    time.sleep(0.02)
                time.sleep(0.1)  # outcomes from before the stop are recorded
                if leased(stack, order) == 2:
                    act(order)
                    return order, data
        except NotAhead:
            again()
        client.wait(order)
    raise TimeoutError("no job was leased ahead in six orders")


def test_a_job_prefetched_behind_a_slow_picture_is_released(client, alone):
    def act(order):
        wait_given_back(alone, order)
        until(lambda: leased(alone, order) == 1, "the picture in work alone")
        assert alone.sql(f"SELECT COUNT(*) FROM jobs WHERE order_id = {order} AND status = 'queued' AND reason = 'given_back' "
                         "AND failure_count = 0 AND death_count = 0") == [["1"]]
    order, data = with_a_job_ahead(client, alone, act)
    whole_and_once(client, alone, order, data)
    assert charged(alone, order) == [0, 0]


def test_a_death_is_counted_for_the_started_job_and_not_the_prefetched_one(client, alone):
    def act(order):
        for pid in image_processes(alone):
            os.kill(pid, signal.SIGKILL)
        until(lambda: charged(alone, order)[1] > 0, "the death")
    order, data = with_a_job_ahead(client, alone, act)
    whole_and_once(client, alone, order, data)
    assert charged(alone, order) == [0, 1]


def test_term_releases_prefetched_jobs_and_finishes_started_ones(client, alone):
    def act(order):
        pid = alone.pid("worker")
        with open(os.path.join(alone.run, "worker.session"), encoding="ascii") as file:
            keeper = int(file.read().split()[1])
        os.kill(keeper, signal.SIGTERM)  # it passes the signal on, and starts no other worker, which would lease the jobs
        wait_given_back(alone, order)
        assert alive(pid), "the picture in work is not done"
        pids.append(pid)
    pids = []
    try:
        order, data = with_a_job_ahead(client, alone, act, lambda: restart(alone))
        until(lambda: not alive(pids[0]), "the end of the worker")
        assert leased(alone, order) == 0
        [[leases, done]] = alone.sql(f"SELECT SUM(attempt), COUNT(*) FROM jobs WHERE order_id = {order} AND status = 'done' AND "
                                     "kind = 'protect'")
        assert int(leases) <= int(done) + given_back(alone, order), "no picture was begun twice"
    finally:
        restart(alone)
    whole_and_once(client, alone, order, data)
    assert charged(alone, order) == [0, 0]


def test_a_release_is_retried_when_the_database_is_back(client, alone):
    """When the database is back, the release is retried and the picture in progress is recorded."""
    def act(order):
        alone.part("kill", "mariadbd")
        try:
            time.sleep(2.5)
        finally:
            alone.part("start", "mariadbd")
        wait_given_back(alone, order)
    order, data = with_a_job_ahead(client, alone, act)
    whole_and_once(client, alone, order, data)
    assert charged(alone, order) == [0, 0]


def test_a_paused_queue_starts_no_prefetched_job(client, alone):
    """The worker reads the pause with the heartbeat, and continues until then."""
    with alone.configured("worker", "heartbeat_s", "1"):
        for _ in range(4):  # again if all jobs were done before the heartbeat
            order, data = big_order(client, 40, 700)
            wait_for_progress(client, order, 1)
            paused = events(alone, "queue_paused")
            alone.ctl("queue", "pause")
            try:
                until(lambda: len(events(alone, "queue_paused")) > len(paused), "the worker's knowledge")
                until(lambda: leased(alone, order) == 0, "what was in work")
                count = client.detail(order).data["completedFileCount"]
                time.sleep(1)
                assert client.detail(order).data["completedFileCount"] == count
            finally:
                alone.ctl("queue", "resume")
            whole_and_once(client, alone, order, data)
            if count < 40:
                return
    raise TimeoutError("four orders were through before the worker knew")


def test_nothing_is_prefetched_behind_slow_pictures(client, alone):
    """Another worker may be idle. The pictures have 36 megapixels, because 12 may take less than a second on a fast machine."""
    restart(alone)
    order = large_order(client, 3, 6000)
    assert client.wait(order, 600)["completedFileCount"] == 3
    assert given_back(alone, order) == 0
