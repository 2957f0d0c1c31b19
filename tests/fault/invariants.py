"""Invariants of database, file store, receivers and the clients' records, after any breakage.

Every check returns sentences; an empty list means that the invariant holds.
"""
import collections
import hashlib
import io
import json
import os
import zipfile

import pictures

ENDED = ("complete", "failed", "detected", "undetected", "expired")

# kind -> the legal transitions of the state machine.
EDGES = {
    "order": {("", "pending"), ("", "inProgress"), ("pending", "inProgress"), ("pending", "failed"),
              ("inProgress", "complete"), ("inProgress", "failed"), ("inProgress", "detected"),
              ("inProgress", "undetected"), ("complete", "expired")},
    "job": {("", "queued"), ("queued", "leased"), ("queued", "failed"), ("leased", "done"), ("leased", "queued"),
            ("leased", "failed"), ("leased", "refused")},
    "file": {("", "pending"), ("pending", "uploaded"), ("uploaded", "processing"), ("pending", "processing"),
             ("processing", "uploaded"), ("processing", "complete"), ("processing", "failed"),
             ("pending", "failed"), ("uploaded", "failed"), ("uploaded", "complete")},
    "delivery": {("", "PENDING"), ("PENDING", "SENDING"), ("PENDING", "FAILED"), ("SENDING", "DELIVERED"),
                 ("SENDING", "PENDING"), ("SENDING", "FAILED")},
}

# Triggers record changes in the same transaction, so that none is missed.
WATCH_SQL = """
CREATE DATABASE IF NOT EXISTS watch;
CREATE TABLE IF NOT EXISTS watch.changes (id BIGINT AUTO_INCREMENT PRIMARY KEY, kind VARCHAR(10), row_id BIGINT,
  was VARCHAR(20), became VARCHAR(20));
"""
for kind, name in (("order", "orders"), ("job", "jobs"), ("file", "files"), ("delivery", "webhook_deliveries")):
    WATCH_SQL += f"""
CREATE OR REPLACE TRIGGER watch_{name}_made AFTER INSERT ON {name} FOR EACH ROW
  INSERT INTO watch.changes (kind, row_id, was, became) VALUES ('{kind}', NEW.id, '', NEW.status);
CREATE OR REPLACE TRIGGER watch_{name}_changed AFTER UPDATE ON {name} FOR EACH ROW
  INSERT INTO watch.changes (kind, row_id, was, became) SELECT '{kind}', NEW.id, OLD.status, NEW.status
  FROM DUAL WHERE OLD.status <> NEW.status;
"""


def changes(stack, since):
    """Every change of state is a legal transition, and no order ends twice."""
    rows = stack.sql(f"SELECT kind, row_id, was, became FROM watch.changes WHERE id > {since} ORDER BY id")
    violations, ends = [], collections.Counter()
    for kind, row, was, became in rows:
        if (was, became) not in EDGES[kind]:
            violations.append(f"{kind} {row} went from {was or 'nothing'} to {became}")
        if kind == "order" and became in ENDED and became != "expired":
            ends[row] += 1
    return violations + [f"order {row} ended {count} times" for row, count in ends.items() if count > 1]


def created_once(stack, orders):
    """Every acknowledged creation exists, with one id per idempotency key."""
    violations = []
    keys = ",".join(f"'{order.key}'" for order in orders) or "''"
    rows = stack.sql(f"SELECT idempotency_key, COUNT(*), MIN(id) FROM orders WHERE idempotency_key IN ({keys}) "
                     "GROUP BY idempotency_key")
    there = {key: (int(count), number) for key, count, number in rows}
    for order in orders:
        count, number = there.get(order.key, (0, None))
        if count > 1:
            violations.append(f"{order.kind}: {count} orders for one key")
        if order.ids and order.ids != {number}:
            violations.append(f"{order.kind}: told {sorted(order.ids)}, in the database is {number}")
    return violations


def ended(stack, orders):
    """Every started order is finished, with an allowed status."""
    violations = []
    ids = ",".join(order.id for order in orders if order.id) or "0"
    rows = {row[0]: row[1:] for row in stack.sql(
        "SELECT id, status, file_count, completed_file_count, failed_file_count, result_count, zero_copy, "
        f"COALESCE(watermark_text, ''), (SELECT COUNT(thumbnail_store_key) FROM files WHERE order_id = orders.id), zip_store_key "
        f"FROM orders WHERE id IN ({ids})")}
    jobs = collections.Counter(row[0] for row in stack.sql(
        f"SELECT order_id FROM jobs WHERE order_id IN ({ids}) AND status IN ('queued', 'leased')"))
    for order in orders:
        if not order.id or order.id not in rows:
            continue
        status, files, done, failed, results, zero_copy, text, thumbnails, archive = rows[order.id]
        where = f"{order.kind} {order.id}"
        if order.is_given_up:
            if status not in ("pending", "failed"):
                violations.append(f"{where}: {status}, and nobody confirmed it")
            continue
        if not order.is_started:
            continue
        if status != order.wanted:
            errors = stack.sql(f"SELECT error_code, error_sentence FROM files WHERE order_id = {order.id} "
                               "AND error_code IS NOT NULL")
            violations.append(f"{where}: {status} instead of {order.wanted} {errors}")
            continue
        if jobs[order.id]:
            violations.append(f"{where}: ended with {jobs[order.id]} jobs that go on")
        copies = sum(file.copies for file in order.files)
        if order.wanted == "complete" and (int(results), int(done), int(failed)) != (copies, int(files), 0):
            violations.append(f"{where}: {results} results of {copies}, {done} files done and {failed} failed of {files}")
        if order.wanted == "complete" and zero_copy == "0" and thumbnails != files:
            violations.append(f"{where}: {thumbnails} thumbnails of {files} files")
        if order.wanted == "complete" and zero_copy == "0" and (archive != "NULL") != (copies > 1):
            violations.append(f"{where}: archive {archive} for {copies} results")
        if order.text is not None and text != order.text:
            violations.append(f"{where}: read {text!r} instead of {order.text!r}")
    return violations


def picture_is(data, size):
    try:
        return pictures.decode(data).size == tuple(size)
    except Exception:
        return False


def downloads(client, stack, orders):
    """Every result can be downloaded completely, as a file and in the archive, as the database describes it. Every output
    target received its result."""
    violations = []
    for order in orders:
        if not order.is_started or order.wanted != "complete" or order.files[0].target:
            continue
        rows = stack.sql("SELECT r.name, HEX(r.digest), r.size_bytes, f.name FROM results r JOIN files f ON f.id = "
                         f"r.file_id WHERE r.order_id = {order.id} ORDER BY f.position, r.copy")
        answer = client.get(f"/api/v2/orders/{order.id}/download")
        if answer.status != 200:
            violations.append(f"{order.kind} {order.id}: download {answer}")
            continue
        sizes = {file.name: file.size for file in order.files}
        got = {}
        for file in answer.data["files"]:
            body = client.request("GET", file["downloadUrl"], key=False).body
            got[file["fileName"]] = body
        for name, digest, size, source in rows:
            body = got.get(name, b"")
            if hashlib.sha256(body).hexdigest().upper() != digest or len(body) != int(size):
                violations.append(f"{order.kind} {order.id}: {name} is not what its row says")
            elif not picture_is(body, sizes[source]):
                violations.append(f"{order.kind} {order.id}: {name} is no picture of {sizes[source]}")
        if len(rows) > 1:
            violations += archive_check(client, order, answer.data["downloadUrl"], got)
    return violations


def archive_check(client, order, url, got):
    data = client.request("GET", url, key=False).body
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        inside = {name: archive.read(name) for name in archive.namelist()}
    except zipfile.BadZipFile as error:
        return [f"{order.kind} {order.id}: archive: {error}"]
    copies = inside.pop("copies.csv", b"").decode()
    if order.kind == "embed" and any(f'"{name}",' not in copies or hashlib.sha256(data).hexdigest() not in copies for name, data in got.items()):
        return [f"{order.kind} {order.id}: copies.csv does not name the results: {copies}"]
    return [] if inside == got else [f"{order.kind} {order.id}: the archive holds {sorted(inside)}, not the results"]


def pushed(remotes, orders):
    violations = []
    for order in orders:
        for file in order.files:
            if not file.target or not order.is_started:
                continue
            bodies = {body for _, body in remotes.put.get(file.target, [])}
            if len(bodies) != 1:
                violations.append(f"{order.kind} {order.id}: {len(bodies)} different bodies at the target of {file.name}")
            elif not picture_is(bodies.pop(), file.size):
                violations.append(f"{order.kind} {order.id}: what the target of {file.name} has is no picture of {file.size}")
    return violations


def store_keys(stack):
    """Returns the files in the store by their key, as rows name it."""
    found, unfinished = {}, []
    for folder, _, names in os.walk(stack.store):
        words = os.path.relpath(folder, stack.store).split(os.sep)
        for name in names:
            if words[0] == "tmp":
                unfinished.append(name)
            elif len(words) == 2:
                order, _, rest = name.partition(".")
                found[f"{words[0]}/{order}/{rest}"] = os.path.join(folder, name)
    return found, unfinished


def named_keys(stack):
    return {row[0]: row[1] for row in stack.sql(
        "SELECT store_key, COALESCE(HEX(digest), '') FROM results UNION ALL "
        "SELECT zip_store_key, '' FROM orders WHERE zip_store_key IS NOT NULL UNION ALL "
        "SELECT thumbnail_store_key, HEX(thumbnail_digest) FROM files WHERE thumbnail_store_key IS NOT NULL UNION ALL "
        "SELECT store_key, COALESCE(HEX(digest), '') FROM files WHERE store_key IS NOT NULL")}


def store(stack, is_last=False):
    """Every file that a row names exists with the row's digest. The only other files are inputs of orders that have not
    started, which are deleted with their orders.
    """
    violations = []
    found, _ = store_keys(stack)
    named = named_keys(stack)
    live = {row[0] for row in stack.sql("SELECT id FROM orders WHERE status IN ('pending', 'inProgress')")}
    gone = {row[0] for row in stack.sql("SELECT id FROM orders WHERE files_deleted_at IS NOT NULL")}
    for key, digest in named.items():
        if key not in found:
            if key.split("/")[1] not in gone:
                violations.append(f"{key} is named by a row and not in the store")
            continue
        if digest:
            with open(found[key], "rb") as file:
                if hashlib.sha256(file.read()).hexdigest().upper() != digest:
                    violations.append(f"{key}: its bytes are not those of its row")
    for key in found:
        if key not in named and (is_last or key.split("/")[1] not in live):
            violations.append(f"{key} is in the store and nobody's")
    return violations


def uncleared(stack):
    """Returns rows of finished orders that still name inputs."""
    return [f"file {row[0]} of an ended order still names {row[1]}" for row in stack.sql(
        "SELECT f.id, f.store_key FROM files f JOIN orders o ON o.id = f.order_id WHERE f.store_key IS NOT NULL AND "
        "o.status NOT IN ('pending', 'inProgress')")]


def deliveries(stack, receiver, secret, orders):
    """Each finished order has one event with one delivery, received with a valid signature. The receiver got no other
    deliveries."""
    violations = []
    ids = ",".join(order.id for order in orders if order.id) or "0"
    rows = stack.sql("SELECT e.order_id, e.id, e.type, COALESCE(d.status, '') FROM webhook_events e LEFT JOIN "
                     f"webhook_deliveries d ON d.event_id = e.id WHERE e.order_id IN ({ids})")
    states = dict(stack.sql(f"SELECT id, status FROM orders WHERE id IN ({ids})"))
    events = collections.defaultdict(list)
    for order, event, name, status in rows:
        events[order].append((event, name, status))
    taken = collections.defaultdict(list)
    for delivery in receiver.at("/hook"):
        taken[delivery.id].append(delivery)
    for order in orders:
        is_over = states.get(order.id) in ENDED
        if order.id and len(events[order.id]) != is_over:
            violations.append(f"{order.kind} {order.id}: {states.get(order.id)} with {len(events[order.id])} events")
        for event, name, status in events.get(order.id, []):
            if status != "DELIVERED":
                violations.append(f"{order.kind} {order.id}: its event is {status or 'nobody`s'}")
            if not taken[event]:
                violations.append(f"{order.kind} {order.id}: the receiver never got {name}")
            for delivery in taken[event]:
                body = json.loads(delivery.body)
                if not delivery.is_signed_with(secret) or body["data"]["orderId"] != order.id or body["eventType"] != name:
                    violations.append(f"{order.kind} {order.id}: {name} came unsigned or with another's body")
    return violations


def deliveries_known(stack, receiver):
    known = {row[0] for row in stack.sql("SELECT id FROM webhook_events")}
    return [f"the receiver got event {delivery.id}, which no row knows" for delivery in receiver.at("/hook")
            if delivery.id not in known]


def statistics(client, stack, account):
    """Usage equals the number of results, including pushed results, plus that of extractions."""
    [[made]] = stack.sql("SELECT COALESCE(SUM(IF(type = 'watermarkExtract', status IN ('detected', 'undetected'), "
                         f"result_count)), 0) FROM orders WHERE account_id = {account}")
    [[used]] = stack.sql(f"SELECT COALESCE(SUM(result_count), 0) FROM usage_days WHERE account_id = {account}")
    violations = [] if made == used else [f"usage says {used}, made were {made}"]
    [[rows, counted]] = stack.sql(
        "SELECT (SELECT COUNT(*) FROM results r JOIN orders o ON o.id = r.order_id WHERE o.account_id = "
        f"{account}), (SELECT COALESCE(SUM(result_count), 0) FROM orders WHERE account_id = {account} AND NOT zero_copy)")
    if rows != counted:
        violations.append(f"{rows} results in their table, {counted} counted by their orders")
    answer = client.get("/api/v2/orders/stats/recent")
    told = sum(day["usageCount"] for day in answer.data["dailyStats"]) if answer.status == 200 else answer
    if str(told) != used:
        violations.append(f"the statistics tell {told}, usage says {used}")
    return violations
