"""kill -9 during orders: every order finishes, and every result is complete and exists once."""
import collections
import contextlib
import io
import os
import re
import signal
import subprocess
import time
import zipfile

import pytest

import pictures
from client import ORDERS


def big_order(client, count, side=400):
    """Returns the id of a confirmed order with different pictures, and the pictures."""
    data = [pictures.jpeg(side, side, seed=number) for number in range(count)]
    created = client.create([f"{number:03d}.jpg" for number in range(count)]).data
    for file, picture in zip(created["files"], data):
        assert client.upload(file["uploadUrl"], picture).status == 201
    assert client.confirm(created["orderId"]).status == 200
    return created["orderId"], data


def wait_for_progress(client, order, count, seconds=300):
    """Waits until at least count files are done."""
    end = time.monotonic() + seconds
    while client.detail(order).data["completedFileCount"] < count:
        assert time.monotonic() < end, client.detail(order).data
        time.sleep(0.05)


def kill(stack, name):
    """Sends kill -9 to a supervisor that has restarted after the last kill."""
    end = time.monotonic() + 120
    while True:
        try:
            os.kill(stack.pid(name), signal.SIGKILL)
            return
        except (FileNotFoundError, ProcessLookupError, ValueError):
            assert time.monotonic() < end, f"{name} did not come back"
            time.sleep(0.05)


def whole_and_once(client, stack, order, data):
    """Checks that every file has one result with the size of the input, also in the ZIP."""
    detail = client.wait(order, 600)
    assert detail["status"] == "complete" and detail["errors"] is None, detail
    assert detail["completedFileCount"] == len(data)
    rows = stack.sql(f"SELECT file_id, COUNT(*) FROM results WHERE order_id = {order} GROUP BY file_id")
    assert collections.Counter(row[1] for row in rows) == {"1": len(data)}
    archive = zipfile.ZipFile(io.BytesIO(client.download(order).body))
    assert archive.testzip() is None and len(archive.namelist()) == len(data)
    for name, before in zip(archive.namelist(), data):
        after = archive.read(name)
        assert pictures.decode(after).size == pictures.decode(before).size
        assert 25 < pictures.psnr(before, after) < 60, name


def test_100_files_with_the_worker_killed_five_times(client, stack):
    order, data = big_order(client, 100, 256)
    for done in (1, 15, 35, 55, 75):
        wait_for_progress(client, order, done)
        kill(stack, "worker")
    whole_and_once(client, stack, order, data)


def test_image_processes_killed_in_mid_file_cost_an_attempt_at_most(client, stack):
    killed, end = 0, time.monotonic() + 120
    with held(stack):
        order, data = big_order(client, 6, 900)
        wait_for_lease(stack, order)
        for pid in image_processes(stack):
            os.kill(pid, signal.SIGKILL)
            killed += 1
    while killed < 4 and client.detail(order).data["status"] == "inProgress" and time.monotonic() < end:
        for pid in image_processes(stack)[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        time.sleep(0.4)
    assert killed > 0
    whole_and_once(client, stack, order, data)


@contextlib.contextmanager
def held(stack):
    """Stops the worker's image processes during the block, so that jobs stay in progress on a machine of any speed.

    A process that is still starting would be replaced. It seals itself with one more seccomp filter just before it is ready.
    """
    places, end, ours = stack.worker_places(), time.monotonic() + 120, filters("self")
    while len(pids := [pid for pid in image_processes(stack) if filters(pid) > ours]) < places:
        assert time.monotonic() < end, f"{len(pids)} of {places} image processes"
        time.sleep(0.1)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def filters(pid):
    """Returns the number of seccomp filters of a process; -1 if it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return int(re.search(r"(?m)^Seccomp_filters:\s*(\d+)$", file.read())[1])
    except (OSError, TypeError):
        return -1


def wait_for_lease(stack, order, seconds=120):
    end = time.monotonic() + seconds
    while stack.sql(f"SELECT COUNT(*) FROM jobs WHERE order_id = {order} AND status = 'leased'") == [["0"]]:
        assert time.monotonic() < end, "no job of the order is leased"
        time.sleep(0.05)


def image_processes(stack):
    """Returns the image processes of this stack: children of the worker."""
    worker = str(stack.pid("worker"))
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                head, tail = file.read().rsplit(") ", 1)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if tail.split()[1] == worker and "imgward-image" in head:
            found.append(int(name))
    return found


def test_the_api_killed_while_uploads_run(client, stack):
    data = [pictures.jpeg(256, 256, seed=number) for number in range(12)]
    created = client.create([f"{number:03d}.jpg" for number in range(12)]).data
    for number, (file, picture) in enumerate(zip(created["files"], data)):
        if number in (3, 7):
            kill(stack, "api")
        until_taken(lambda: client.upload(file["uploadUrl"], picture), (503,))
    until_taken(lambda: client.confirm(created["orderId"]))
    kill(stack, "api")
    until_taken(lambda: client.detail(created["orderId"]))
    whole_and_once(client, stack, created["orderId"], data)


def until_taken(act, away=(502, 503), seconds=120):
    """While the pool is unavailable, responses have Retry-After and the error format, and are never a plain 500. Later
    requests succeed.

    If a pool process dies during a request, nginx returns 502; uploads always get 503.
    """
    end = time.monotonic() + seconds
    while True:
        answer = act()
        if answer.status in (200, 201):
            return answer
        assert answer.status in away and answer.headers["Retry-After"], answer
        assert answer.code == "SERVICE_UNAVAILABLE"
        assert time.monotonic() < end
        time.sleep(0.1)


def children(pid):
    done = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, timeout=120)
    return [int(word) for word in done.stdout.split()]


def test_dead_processes_of_the_pool_are_forked_again(client, stack):
    until_taken(client.list)
    supervisor = stack.pid("api")
    before = children(supervisor)
    assert len(before) >= 2
    killed = before[: len(before) // 2]
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    for _ in range(50):
        until_taken(client.list)
    end = time.monotonic() + 120
    # The supervisor may not have noticed a death yet.
    while (len(now := children(supervisor)) < len(before) or set(killed) & set(now)) and time.monotonic() < end:
        time.sleep(0.1)
    assert len(now) == len(before) and not set(killed) & set(now)


def test_term_finishes_the_requests_in_progress(client, stack):
    """The pool gets TERM while it receives an upload; the next pool serves."""
    created = until_taken(lambda: client.create(["a.jpg"])).data
    os.kill(stack.pid("api"), signal.SIGTERM)
    until_taken(lambda: client.upload(created["files"][0]["uploadUrl"], pictures.jpeg()), (503,))
    until_taken(lambda: client.get(f"{ORDERS}/{created['orderId']}"))


@pytest.fixture
def read_only_store(stack):
    """Mounts the store's folder read-only over itself."""
    def mount(*words):
        return subprocess.run(["mount", *words], capture_output=True, text=True, timeout=60).returncode == 0
    if not mount("--bind", stack.store, stack.store):
        pytest.skip("mounting is not permitted here")
    try:
        assert mount("-o", "remount,ro,bind", stack.store)
        yield
    finally:
        subprocess.run(["umount", stack.store], capture_output=True, timeout=60)


def test_a_worker_that_starts_with_a_read_only_store_waits(client, stack, read_only_store):
    log = os.path.join(stack.environment["IMGWARD_LOG"], "worker.log")
    start = os.path.getsize(log)
    stack.part("stop", "worker")
    stack.part("start", "worker")
    pid = stack.pid("worker")
    time.sleep(3)
    assert stack.pid("worker") == pid and os.path.exists(f"/proc/{pid}")
    subprocess.run(["umount", stack.store], check=True, timeout=60)
    data = client.order_whole([("a.jpg", pictures.jpeg(300, 300))])
    assert data["status"] == "complete" and stack.pid("worker") == pid
    with open(log, "rb") as file:
        file.seek(start)
        lines = file.read()
    assert lines.count(b'"event":"store_away"') == 1 and lines.count(b'"event":"store_back"') == 1
