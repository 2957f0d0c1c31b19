"""Jobs leased ahead of an image process that is still at work: begun, given back, or left to the next worker, never lost or charged."""
import json
import os
import signal
import time

import pytest

from test_way_of_an_order import alive, large_order, until
from test_worker_dies import big_order, held, image_processes, wait_for_progress, whole_and_once


@pytest.fixture(scope="module")
def alone(stack):
    """A worker with one image process: one picture in work, and one behind it at most."""
    with stack.configured("worker", "processes", "1"):
        restart(stack)
        yield stack
    restart(stack)


def restart(stack):
    stack.part("stop", "worker")
    stack.part("start", "worker")


def leased(stack, order):
    return int(stack.sql(f"SELECT COUNT(*) FROM jobs WHERE order_id = {order} AND status = 'leased'")[0][0])


def events(stack, name):
    """The lines of the worker's log of an event."""
    with open(os.path.join(stack.environment["IMGWARD_LOG"], "worker.log"), encoding="utf-8") as file:
        return [json.loads(line) for line in file if f'"event":"{name}"' in line and line.endswith("\n")]


def given_back(stack, order):
    """How often the worker's log says that a job of the order was put back before it was begun."""
    return sum(str(line["order_id"]) == str(order) for line in events(stack, "job_given_back"))


def charged(stack, order):
    """Failures and deaths that the jobs of an order were charged with."""
    return [int(word) for word in stack.sql(f"SELECT SUM(failure_count), SUM(death_count) FROM jobs WHERE order_id = {order}")[0]]


class NotAhead(Exception):
    """What looked like a job ahead was one whose record took its time."""


def wait_given_back(stack, order):
    """Until the job ahead is given back; NotAhead where none is leased beside the one in work and none was given back."""
    since, end = time.monotonic(), time.monotonic() + 120
    while given_back(stack, order) == 0:
        if leased(stack, order) > 1:
            since = time.monotonic()
        if time.monotonic() > since + 3:
            raise NotAhead
        assert time.monotonic() < end, "giving back"
        time.sleep(0.05)


def with_a_job_ahead(client, stack, act, again=lambda: None):
    """
    Runs act(order) while the image process stands still over one picture with another job behind it; again with a fresh order
    where the machine was too slow for that, or the order through too soon.  The order and its pictures.
    """
    for _ in range(6):
        order, data = big_order(client, 40, 256)
        wait_for_progress(client, order, 3)
        try:
            with held(stack):
                end = time.monotonic() + 0.5
                while leased(stack, order) < 2 and time.monotonic() < end:
                    time.sleep(0.02)
                time.sleep(0.1)  # what was heard before it stood still is recorded
                if leased(stack, order) == 2:
                    act(order)
                    return order, data
        except NotAhead:
            again()
        client.wait(order)
    raise TimeoutError("no job was leased ahead in six orders")


def test_what_waits_behind_a_picture_that_takes_long_is_given_back(client, alone):
    def act(order):
        wait_given_back(alone, order)
        until(lambda: leased(alone, order) == 1, "the picture in work alone")
        assert alone.sql(f"SELECT COUNT(*) FROM jobs WHERE order_id = {order} AND status = 'queued' AND reason = 'given_back' "
                         "AND failure_count = 0 AND death_count = 0") == [["1"]]
    order, data = with_a_job_ahead(client, alone, act)
    whole_and_once(client, alone, order, data)
    assert charged(alone, order) == [0, 0]


def test_a_death_costs_the_picture_in_work_and_not_the_one_behind_it(client, alone):
    def act(order):
        for pid in image_processes(alone):
            os.kill(pid, signal.SIGKILL)
        until(lambda: charged(alone, order)[1] > 0, "the death")
    order, data = with_a_job_ahead(client, alone, act)
    whole_and_once(client, alone, order, data)
    assert charged(alone, order) == [0, 1]


def test_term_gives_back_what_is_not_begun_and_finishes_what_is(client, alone):
    def act(order):
        pid = alone.pid("worker")
        os.kill(pid, signal.SIGTERM)
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


def test_the_database_away_when_a_job_is_to_be_given_back(client, alone):
    """It is tried again; the picture in work is recorded when the database is back."""
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


def test_a_paused_queue_begins_nothing_that_was_leased_before(client, alone):
    """The worker hears of it with its sign of life; until then it goes on."""
    with alone.configured("worker", "heartbeat_s", "1"):
        for _ in range(4):  # again where all were done before the worker knew
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


def test_behind_pictures_that_take_long_nothing_is_leased(client, alone):
    """Another worker may have room for it.  36 megapixels: on a fast machine 12 took hardly less than the second that is long."""
    restart(alone)
    order = large_order(client, 3, 6000)
    assert client.wait(order, 600)["completedFileCount"] == 3
    assert given_back(alone, order) == 0
