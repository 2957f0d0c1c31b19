"""Failures during an order: kills, crashes, restarts and lost outcomes. No file is left in the store."""
import contextlib
import json
import os
import signal
import time

import numpy
from PIL import Image

import pictures
from test_worker_dies import big_order, held, image_processes, kill, wait_for_lease, wait_for_progress

DAY_S = 86400
TILE = numpy.asarray(pictures.scene(500, 500))


def large(width, height):
    """Returns a JPEG that is slow to process but quick to make."""
    tiles = numpy.tile(TILE, (height // 500 + 1, width // 500 + 1, 1))[:height, :width]
    return pictures.encode(Image.fromarray(tiles), "JPEG", quality=85)


def large_order(client, count, side):
    created = client.create([f"{number}.jpg" for number in range(count)]).data
    data = large(side, side)
    for file in created["files"]:
        assert client.upload(file["uploadUrl"], data).status == 201
    assert client.confirm(created["orderId"]).status == 200
    return created["orderId"]


def store_keys(stack, order):
    """Returns the order's files in the store by their database keys, such as "out/7001/12.1"."""
    found = set()
    for folder, _, names in os.walk(stack.store):
        kind = os.path.relpath(folder, stack.store).split(os.sep)[0]
        for name in names:
            number, _, rest = name.partition(".")
            if number == str(order):
                found.add(f"{kind}/{number}/{rest}")
    return found


def named_keys(stack, order):
    """Returns the keys that the order's rows name."""
    rows = stack.sql(
        f"SELECT store_key FROM results WHERE order_id = {order} UNION ALL SELECT zip_store_key FROM orders "
        f"WHERE id = {order} UNION ALL SELECT thumbnail_store_key FROM files WHERE order_id = {order} UNION ALL "
        f"SELECT store_key FROM files WHERE order_id = {order}")
    return {row[0] for row in rows if row[0] != "NULL"}


def until(condition, what="the condition", seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not come true within {seconds} s"
        time.sleep(0.05)


def events(stack, name):
    """Returns the lines of the worker's log with this event."""
    with open(os.path.join(stack.environment["IMGWARD_LOG"], "worker.log"), encoding="utf-8") as file:
        return [json.loads(line) for line in file if f'"event":"{name}"' in line and line.endswith("\n")]


def job(stack, file):
    """Returns status, attempt, failures and deaths of a file's job."""
    row = stack.sql(f"SELECT status, attempt, failure_count, death_count FROM jobs WHERE file_id = {file}")[0]
    return row[0], *map(int, row[1:])


def test_nothing_is_left_behind_by_a_killed_worker(client, stack):
    order, _ = big_order(client, 30, 256)
    for done in (1, 10, 20):
        wait_for_progress(client, order, done)
        kill(stack, "worker")
    detail = client.wait(order, 400)
    assert detail["status"] == "complete" and detail["completedFileCount"] == 30
    until(lambda: store_keys(stack, order) == named_keys(stack, order), "clearing the order")
    # 30 results, as many thumbnails, and the archive.
    assert len(store_keys(stack, order)) == 2 * 30 + 1
    usage = stack.sql(f"SELECT SUM(result_count) FROM usage_days WHERE account_id = {client.account}")
    before = stack.sql(f"SELECT COUNT(*) FROM results r JOIN orders o ON o.id = r.order_id "
                       f"WHERE o.account_id = {client.account}")
    assert usage == before


def test_leases_of_a_dead_predecessor_are_taken_over_immediately(client, stack):
    """They are taken over long before they expire, which would take 600 s after the last renewal."""
    with stack.configured("worker", "lease_s", "600"), held(stack):
        order = large_order(client, 4, 600)
        wait_for_lease(stack, order)
        leases = stack.sql(f"SELECT lease_owner, lease_until FROM jobs WHERE order_id = {order} AND status = 'leased'")
        kill(stack, "worker")
        [owner] = {owner for owner, _ in leases}
        until(lambda: stack.sql(f"SELECT COUNT(*) FROM jobs WHERE order_id = {order} AND lease_owner = '{owner}'") == [["0"]],
              "the next worker")
        assert stack.sql(f"SELECT UTC_TIMESTAMP(3) < '{min(until for _, until in leases)}'") == [["1"]]
    assert client.wait(order)["status"] == "complete"


def test_a_file_that_kills_its_process_fails_alone_after_three_attempts(client, stack):
    """The file is the last of the order, so with one image process it is processed last."""
    for _ in range(4):  # again if it was done before the kill
        created = client.create(["good.jpg", "good.webp", "poison.jpg"]).data
        for file, data in zip(created["files"], (pictures.jpeg(), pictures.webp(), large(5000, 4000))):
            assert client.upload(file["uploadUrl"], data).status == 201
        order, file = created["orderId"], created["files"][2]["fileId"]
        assert client.confirm(order).status == 200
        wait_for_progress(client, order, 2)
        if all(killed_once(stack, file, deaths) for deaths in (1, 2, 3)):
            break
        client.wait(order)
    detail = client.wait(order)
    assert detail["status"] == "complete" and detail["completedFileCount"] == 2
    assert detail["errors"] == "poison.jpg: PROCESSING_CRASHED: Processing failed in every attempt; order again or tell the operator the orderId."
    assert job(stack, file) == ("failed", 3, 0, 3)


def killed_once(stack, file, deaths):
    """Kills every image process, as if it crashed, while the file is processed; false if the file was done earlier."""
    until(lambda: job(stack, file)[0] in ("leased", "done"), f"lease {deaths}")
    time.sleep(0.2)
    for pid in image_processes(stack):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSEGV)
    until(lambda: job(stack, file)[3] >= deaths or job(stack, file)[0] == "done", f"death {deaths}")
    return job(stack, file)[0] != "done"


def test_a_file_that_takes_too_long_fails_alone(client, stack):
    with stack.configured("image", "timeout_s", "1"):
        order = client.order_whole([("slow.jpg", large(7000, 5000)), ("good.jpg", pictures.jpeg())], 400)
    assert order["status"] == "complete" and order["completedFileCount"] == 1
    assert order["errors"] == "slow.jpg: PROCESSING_TIMEOUT: Processing took too long in every attempt; order again with a smaller picture."
    assert job(stack, order["files"][0]["fileId"])[3] == 3
    # A reload replaces the image processes, which have a CPU limit of image.timeout_s.
    order = client.order_whole([(f"{number}.jpg", large(4000, 3000)) for number in range(2)], 400)
    assert [job(stack, file["fileId"]) for file in order["files"]] == [("done", 1, 0, 0)] * 2


def test_a_broken_picture_is_tried_once(client, stack):
    order = client.order_whole([("broken.jpg", pictures.jpeg()[:2000])])
    assert order["status"] == "failed"
    assert order["errors"].startswith("broken.jpg: IMAGE_CORRUPT: ")
    assert job(stack, order["files"][0]["fileId"]) == ("refused", 1, 0, 0)
    until(lambda: not store_keys(stack, order["orderId"]), "clearing the order")


def test_term_finishes_the_pictures_in_progress(client, stack):
    for _ in range(4):  # again if all were done before the worker received the signal
        order = large_order(client, 12, 1200)
        wait_for_progress(client, order, 1)
        stack.part("stop", "worker")
        try:
            states = dict(stack.sql(f"SELECT status, COUNT(*) FROM jobs WHERE order_id = {order} GROUP BY status"))
        finally:
            stack.part("start", "worker")
        if "queued" in states:
            break
        client.wait(order)
    assert "leased" not in states and int(states["done"]) >= 1 and int(states["queued"]) >= 1, states
    assert client.wait(order)["completedFileCount"] == 12
    # No picture is processed twice; prefetched jobs are released and leased again.
    released = sum(str(line["order_id"]) == str(order) for line in events(stack, "job_released"))
    [[leases]] = stack.sql(f"SELECT SUM(attempt) FROM jobs WHERE order_id = {order} AND kind = 'protect'")
    assert int(leases) == 12 + released


def test_a_second_term_exits_immediately_and_nothing_is_lost(client, stack):
    """The pictures in progress never finish, so after only one TERM the worker would wait for them."""
    with held(stack):
        order = large_order(client, 4, 600)
        wait_for_lease(stack, order)
        pid = stack.pid("worker")
        os.kill(pid, signal.SIGTERM)
        time.sleep(0.5)
        assert alive(pid)
        os.kill(pid, signal.SIGTERM)
        until(lambda: not alive(pid), "the end of the worker")
    detail = client.wait(order)
    assert detail["status"] == "complete" and detail["completedFileCount"] == 4


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(") ", 1)[1][0] not in "ZX"
    except FileNotFoundError:
        return False


def test_image_processes_die_with_the_worker(client, stack):
    kill(stack, "worker")
    until(lambda: image_processes(stack), "new image processes")
    old = image_processes(stack)
    kill(stack, "worker")
    until(lambda: not any(alive(pid) for pid in old), "their end")


def test_a_file_the_database_wants_again_and_again_is_not_done_twice(client, stack):
    """The lease is taken from the worker during processing, so the late result is rejected."""
    with held(stack):
        order = large_order(client, 2, 600)
        wait_for_lease(stack, order)
        stack.sql(f"UPDATE jobs SET status = 'queued', lease_owner = NULL WHERE order_id = {order} AND status = 'leased'")
    assert client.wait(order)["completedFileCount"] == 2
    assert stack.sql(f"SELECT COUNT(*), COUNT(DISTINCT file_id) FROM results WHERE order_id = {order}") == [["2", "2"]]
    until(lambda: store_keys(stack, order) == named_keys(stack, order), "clearing the order")


def test_pending_orders_are_abandoned_and_complete_ones_expire(client, stack, jpeg):
    pending = client.create(["one.jpg", "two.jpg"]).data
    assert client.upload(pending["files"][0]["uploadUrl"], jpeg).status == 201
    done = client.order_whole([("a.jpg", jpeg), ("b.jpg", jpeg)])
    assert store_keys(stack, pending["orderId"]) and store_keys(stack, done["orderId"])
    with stack.configured("test", "clock_offset_s", str(DAY_S + 60)):
        failed = client.wait(pending["orderId"])
        assert failed["status"] == "failed"
        assert [line.split(": ")[:2] for line in failed["errors"].splitlines()] == [["one.jpg", "UPLOAD_EXPIRED"],
                                                                      ["two.jpg", "UPLOAD_EXPIRED"]]
        until(lambda: not store_keys(stack, pending["orderId"]), "clearing the abandoned order")
        assert client.detail(done["orderId"]).data["status"] == "complete"
    with stack.configured("test", "clock_offset_s", str(7 * DAY_S + 60)):
        until(lambda: client.detail(done["orderId"]).data["status"] == "expired", "expiry")
        assert not store_keys(stack, done["orderId"])
        detail = client.detail(done["orderId"]).data
        assert detail["fileCount"] == 2 and detail["thumbnailImageUrl"] is None
        assert client.get(f"/api/v2/orders/{done['orderId']}/download").code == "ORDER_EXPIRED"


def store_path(stack, order, kind, rest):
    """Returns the path of a key in the store, derived from the order's other files of that kind."""
    for folder, _, names in os.walk(os.path.join(stack.store, kind)):
        if any(name.startswith(f"{order}.") for name in names):
            return os.path.join(folder, f"{order}.{rest}")
    raise LookupError(f"{kind}/{order} has no file")


def test_a_result_is_kept_when_the_reply_to_its_commit_is_lost(client, stack):
    """If the reply to a commit is lost with the connection, the rows show whether it succeeded."""
    with held(stack):
        order = large_order(client, 1, 600)
        file = client.detail(order).data["files"][0]["fileId"]
        wait_for_lease(stack, order)
        key = f"out/{order}/{file}.1"
        stack.sql(f"INSERT INTO results (order_id, file_id, name, store_key, format, size_bytes, digest, width_px, "
                  f"height_px, created_at) VALUES ({order}, {file}, '0.jpg', '{key}', 'jpeg', 1, REPEAT('x', 32), 1, 1, "
                  f"NOW(3)); UPDATE jobs SET status = 'done', lease_owner = NULL WHERE file_id = {file}")
    until(lambda: key in store_keys(stack, order), "the result")
    time.sleep(1)
    assert key in store_keys(stack, order)
    stack.sql(f"DELETE FROM results WHERE order_id = {order}; "
              f"UPDATE jobs SET status = 'queued', available_at = NOW(3) WHERE file_id = {file}")
    assert client.wait(order)["status"] == "complete"


def test_a_result_that_came_after_the_end_of_its_order_is_found(client, stack, jpeg):
    """A worker leaves such a result if it dies while another finishes the order. New files, and files of unfinished orders,
    stay."""
    done = client.order_whole([("a.jpg", jpeg), ("b.jpg", jpeg)])["orderId"]
    stack.settled(done)
    pending = client.create(["a.jpg"]).data["orderId"]
    strays = [stray_put(stack, done, "out", "1.7"), stray_put(stack, done, "zip", "0.8"), stray_put(stack, done, "thumb", "0.9")]
    kept = [stray_put(stack, done, "out", "1.8", age_s=600), stray_put(stack, pending, "out", "1.1"),
            stray_put(stack, 12345, "out", "1.1")]
    kill(stack, "worker")
    until(lambda: not any(map(os.path.exists, strays)), "the next worker's first look")
    assert all(map(os.path.exists, kept))
    for path in kept:
        os.unlink(path)
    assert store_keys(stack, done) == named_keys(stack, done) and client.download(done).status == 200


def stray_put(stack, order, kind, rest, age_s=7200):
    """Puts a file of an order into the store that no row names."""
    folder = os.path.join(stack.store, kind, f"{(int(order) * 11400714819323198485 % 2**64) >> 52:03x}")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{order}.{rest}")
    with open(path, "wb") as file:
        file.write(b"nobody's")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_inputs_that_outlived_their_order_are_found_at_the_next_start(client, stack, jpeg):
    created = client.create(["a.jpg"]).data
    order = created["orderId"]
    assert client.upload(created["files"][0]["uploadUrl"], jpeg).status == 201
    stray = store_path(stack, order, "in", "1.7")
    assert client.confirm(order).status == 200
    assert client.wait(order)["status"] == "complete"
    until(lambda: store_keys(stack, order) == named_keys(stack, order), "clearing the order")
    with open(stray, "wb") as file:
        file.write(jpeg)
    stack.sql(f"UPDATE files SET store_key = 'in/{order}/1.7' WHERE order_id = {order}")
    kill(stack, "worker")
    until(lambda: not os.path.exists(stray), "the next start")
    until(lambda: store_keys(stack, order) == named_keys(stack, order), "forgetting the input")
    assert client.download(order).status == 200
