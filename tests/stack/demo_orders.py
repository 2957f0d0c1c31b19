"""The other orders of the demo: watermark embedding and extraction, a source by URL, zero copy."""
import datetime
import sys
import uuid

import client as client_module
import marks
import remotes as remotes_module

TEXTS = ["for the Evening Post", "for the Morning Star"]


def fail(why):
    sys.exit(f"demo: {why}")


def ended(show, client, order, *statuses):
    data = show.progress(client, order)
    if data["status"] not in statuses:
        fail(f"order {order} is {data['status']}: {data['errors']}")
    return data


def embed(show, client, path, out):
    """Embeds one copy per watermark text; returns the paths of the copies."""
    created = show.check(marks.embed(client, [(path.name, None, TEXTS)]), 201)
    order = created.data["orderId"]
    show.told("POST", "/api/v2/orders/wtr-embed", created, f"order {order}, {len(TEXTS)} texts")
    sent = show.check(client.upload(created.data["files"][0]["uploadUrl"], path.read_bytes()), 201)
    show.told("PUT", "the presigned URL", sent, "the order starts by itself")
    ended(show, client, order, "complete")
    found = []
    for name, data in marks.results(client, order):
        (out / name).write_bytes(data)
        found.append((name, data))
    return found


def extract(show, client, name, data, text):
    """Extracts the mark of a copy; the text "" expects no mark."""
    created = show.check(client.post(f"{client_module.ORDERS}/wtr-extract", {
        "idempotencyKey": uuid.uuid4().hex, "file": {"fileName": name}}), 201)
    show.told("POST", "/api/v2/orders/wtr-extract", created, name)
    show.check(client.upload(created.data["file"]["uploadUrl"], data), 201)
    order = ended(show, client, created.data["orderId"], "detected" if text else "undetected")
    if (order["watermarkText"] or "") != text:
        fail(f"{name} says {order['watermarkText']!r}")
    return f"  {name:<24} {order['status']}" + (f": \"{text}\"" if text else "")


def by_url(show, client, url, suffix):
    created = show.check(client.create([{"fileName": "by-url" + suffix, "imageUrl": url}], kind="anti-ai/with-urls"), 201)
    show.told("POST", "/api/v2/orders/anti-ai/with-urls", created, f"{created.data['status']}, no upload, no confirm")
    ended(show, client, created.data["orderId"], "complete")
    [(name, data)] = marks.results(client, created.data["orderId"])
    return f"  {name:<24} fetched, protected, {len(data)} bytes"


def zero_copy(show, client, stack, remotes, suffix):
    until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    created = show.check(client.create(
        [{"fileName": "zero-copy" + suffix, "imageUrl": remotes.url("/source.jpg")}], kind="anti-ai/with-urls",
        mode={"zeroCopy": True}, outputTargets=[{"fileKey": "demo/zero-copy" + suffix, "url": remotes.url("/target.jpg"),
                                                 "presignedUrlExpiresAt": until.strftime("%Y-%m-%dT%H:%M:%SZ")}]), 201)
    order = created.data["orderId"]
    show.told("POST", "/api/v2/orders/anti-ai/with-urls", created, "zero copy")
    ended(show, client, order, "complete")
    [(headers, body)] = remotes.put["/target.jpg"]
    stack.emptied(order)
    left = stack.stored(order)
    if left:
        fail(f"a zero-copy order left {left}")
    return f"  {'zero-copy' + suffix:<24} {len(body)} bytes PUT to its target as {headers['Content-Type']}, nothing kept here"


def run(show, client, stack, path, out):
    """Sends all these orders with one picture and prints a line about each."""
    remotes, picture = remotes_module.Remotes(), path.read_bytes()
    remotes.gives["/source.jpg"] = picture
    try:
        copies = embed(show, client, path, out)
        lines = [f"  {name:<24} marked, {len(picture)} -> {len(data)} bytes  {out / name}" for name, data in copies]
        lines += [extract(show, client, name, data, text) for (name, data), text in zip(copies, TEXTS)]
        lines.append(extract(show, client, path.name, picture, ""))
        lines.append(by_url(show, client, remotes.url("/source.jpg"), path.suffix))
        lines.append(zero_copy(show, client, stack, remotes, path.suffix))
    finally:
        remotes.close()
    return lines
