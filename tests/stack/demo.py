"""Sends real orders to the stack of IMGWARD_ENV and shows the results.

Arguments: the folder for the results, then pictures. Without pictures, it draws the project's samples in that folder.
"""
import io
import os
import pathlib
import sys
import time
import types

import numpy
from PIL import Image, ImageDraw, ImageFont, ImageOps

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "api"))

import client as client_module  # noqa: E402
import demo_orders  # noqa: E402
import receiver as receiver_module  # noqa: E402
import samples  # noqa: E402

AMPLIFIED = 8
CELL = 420


def told(method, place, answer, more=""):
    print(f"  {method:<4} {place:<44} {answer.status}  {more}", flush=True)


def check(answer, *statuses):
    if answer.status not in statuses:
        sys.exit(f"demo: the service answered {answer}")
    return answer


def progress(client, order, seconds=600):
    """Shows how many files are done until the order is finished."""
    begin, told_count = time.monotonic(), -1
    while time.monotonic() < begin + seconds:
        data = check(client.detail(order), 200).data
        done = data["completedFileCount"]
        if done != told_count or data["status"] in client_module.ENDED:
            bar = "#" * (20 * done // data["fileCount"])
            print(f"       {data['status']:<11} [{bar:<20}] {done} of {data['fileCount']} files, "
                  f"{time.monotonic() - begin:.1f} s", flush=True)
            told_count = done
        if data["status"] in client_module.ENDED:
            return data
        time.sleep(0.1)
    sys.exit(f"demo: order {order} has not ended after {seconds} s")


def order_send(client, paths):
    """Sends one order of all pictures; returns (name, bytes or None) of each result, and the order's data."""
    created = check(client.create([path.name for path in paths], orderName="demo"), 201)
    order = created.data["orderId"]
    told("POST", "/api/v2/orders/anti-ai", created, f"order {order}, {created.data['status']}")
    for path, file in zip(paths, created.data["files"]):
        sent = check(client.upload(file["uploadUrl"], path.read_bytes()), 201)
        told("PUT", "the presigned URL of " + path.name, sent, f"{path.stat().st_size} bytes")
    told("POST", "/api/v2/orders/anti-ai/confirm", check(client.confirm(order), 200))
    data = progress(client, order)
    for line in (data["errors"] or "").splitlines():
        print("       " + line)
    results = [None] * len(paths)
    if data["status"] == "complete":
        answer = check(client.get(f"{client_module.ORDERS}/{order}/download"), 200)
        told("GET", f"/api/v2/orders/{order}/download", answer, answer.data["fileName"])
        # One result for each complete file, in the order of the files.
        done = [number for number, file in enumerate(data["files"]) if file["status"] == "complete"]
        for number, found in zip(done, answer.data["files"]):
            got = check(client.request("GET", found["downloadUrl"], key=False), 200)
            results[number] = (found["fileName"], got.body)
    return data, results


def pixels(data):
    picture = Image.open(io.BytesIO(data))
    return ImageOps.exif_transpose(picture).convert("RGBA")


def over_white(picture):
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")


def compared(before, after):
    """Returns both pictures, their amplified difference, and the PSNR."""
    one, two = over_white(pixels(before)), over_white(pixels(after))
    a, b = numpy.asarray(one, dtype=float), numpy.asarray(two, dtype=float)
    error = ((a - b) ** 2).mean()
    shown = Image.fromarray(numpy.clip(128 + AMPLIFIED * (b - a), 0, 255).astype("uint8"))
    return one, two, shown, float("inf") if error == 0 else 10 * numpy.log10(255 ** 2 / error)


def font_of(size):
    for name in ("DejaVuSans.ttf", "LiberationSans-Regular.ttf"):
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default()


def middle(picture):
    """Returns the middle of the picture at 100 %, where the change can be judged."""
    x, y = max(0, (picture.width - CELL) // 2), max(0, (picture.height - CELL) // 2)
    return picture.crop((x, y, min(picture.width, x + CELL), min(picture.height, y + CELL)))


def is_markable(path):
    """True if a picture is surely large enough for a watermark, because the demo shows no refusal."""
    return min(pixels(path.read_bytes()).size) >= 256


def sheet_draw(rows, path):
    """Draws a row for each picture: the middle at 100 % before, after, and the difference, with labels."""
    font, margin, label = font_of(14), 12, 22
    heights = [max(middle(picture).height for picture in row[1]) for row in rows]
    sheet = Image.new("RGB", (3 * CELL + 4 * margin, sum(heights) + (label + 2 * margin) * len(rows) + margin), "white")
    draw, y = ImageDraw.Draw(sheet), margin
    for (texts, pictures), height in zip(rows, heights):
        for column, (text, picture) in enumerate(zip(texts, pictures)):
            x = margin + column * (CELL + margin)
            draw.text((x, y), text, fill="black", font=font)
            sheet.paste(middle(picture), (x, y + label))
        y += height + label + 2 * margin
    sheet.save(path)


def webhook_make(client, receiver):
    """Creates a webhook for the demo's receiver; returns path and secret."""
    path = client_module.ORDERS + "/webhooks"
    created = check(client.post(path, {"url": receiver.url("/demo"), "name": "demo"}), 201)
    told("POST", path, created, f"webhook {created.data['id']}")
    return f"{path}/{created.data['id']}", created.data["secret"]


def webhook_show(client, receiver, place, secret):
    """Shows the order's delivery and whether its signature is valid."""
    delivery = receiver.wait("/demo")[0]
    body = delivery.json
    good = delivery.is_signed_with(secret)
    print(f"  {body['eventType']} of order {body['data']['orderId']} came to the receiver, "
          f"signature {'right' if good else 'WRONG'}", flush=True)
    check(client.request("DELETE", place), 200)
    receiver.close()
    if not good:
        sys.exit("demo: the webhook's signature is wrong")


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    paths = [pathlib.Path(name) for name in sys.argv[2:]] or samples.write_all(out / "samples")
    stack = client_module.Stack(client_module.environment_read(os.environ["IMGWARD_ENV"]))
    client = client_module.Client(stack, stack.key("enterprise"))
    rows, lines = [], []
    receiver = receiver_module.Receiver()
    hook = webhook_make(client, receiver)
    _, results = order_send(client, paths)
    webhook_show(client, receiver, *hook)
    show = types.SimpleNamespace(told=told, check=check, progress=progress)
    marked = next((path for path in paths if is_markable(path)), None) or samples.write_all(out / "samples")[0]
    others = demo_orders.run(show, client, stack, marked, out)
    for path, result in zip(paths, results):
        if result is None:
            lines.append(f"  {path.name:<24} no result")
            continue
        name, body = result
        place = out / f"protected-{pathlib.Path(name).name}"
        place.write_bytes(body)
        before, after, difference, decibels = compared(path.read_bytes(), body)
        rows.append(((f"{path.name}, {before.width} x {before.height}", f"protected, {decibels:.1f} dB PSNR",
                      f"difference x {AMPLIFIED}"), (before, after, difference)))
        lines.append(f"  {path.name:<24} {path.stat().st_size:>9} -> {len(body):>9} bytes  {decibels:5.1f} dB PSNR  {place}")
    if rows:
        sheet_draw(rows, out / "sheet.png")
    print("\nResults:")
    print("\n".join(lines))
    print(f"  before, after, difference at 100 %: {out / 'sheet.png'}" if rows else "  nothing")
    print("\n".join(others))
    sys.exit(0 if len(rows) == len(paths) else 1)


main()
