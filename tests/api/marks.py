"""Watermark orders for tests: embedding, extracting, results."""
import uuid

import numpy
from PIL import Image, ImageFilter

import pictures
from client import ORDERS


def embed(client, files, **fields):
    """Creates an embedding order of (name, data, texts)."""
    return client.create([{"fileName": name, "watermarks": [{"text": text} for text in texts]}
                          for name, _, texts in files], kind="wtr-embed", **fields)


def embedded(client, files, seconds=240, **fields):
    """Creates an embedding order, uploads and waits; returns the order's data."""
    created = embed(client, files, **fields)
    assert created.status == 201, created
    for file, (_, data, _) in zip(created.data["files"], files):
        answer = client.upload(file["uploadUrl"], data)
        assert answer.status == 201, answer
    return client.wait(created.data["orderId"], seconds)


def extract(client, data, original=None, name="suspect.jpg", seconds=240):
    """Extracts from a picture, with or without the original; returns the order's data."""
    file = {"fileName": name}
    if original is not None:
        file.update(includeOriginal=True, originalFile={"fileName": "original.jpg"})
    created = client.post(f"{ORDERS}/wtr-extract", {"idempotencyKey": uuid.uuid4().hex, "file": file})
    assert created.status == 201, created
    place = created.data["file"]
    if original is not None:
        assert client.upload(place["originalFile"]["uploadUrl"], original).status == 201
    assert client.upload(place["uploadUrl"], data).status == 201
    return client.wait(created.data["orderId"], seconds)


def results(client, order):
    """Returns names and bytes of an order's results."""
    files = client.get(f"{ORDERS}/{order}/download").data["files"]
    return [(file["fileName"], client.request("GET", file["downloadUrl"], key=False).body) for file in files]


def detail_files(order):
    return [(file["fileName"], file["status"]) for file in order["files"]]


def copied(data, target):
    """Copies the mark of a picture to another picture: adds the detail that a slight blur removes, equally strong everywhere."""
    marked = pictures.decode(data)
    texture = numpy.asarray(marked, float) - numpy.asarray(marked.filter(ImageFilter.GaussianBlur(1.5)), float)
    whole = numpy.asarray(pictures.decode(target), float) + 0.7 * texture
    return pictures.encode(Image.fromarray(numpy.clip(whole, 0, 255).astype("uint8")), "PNG")
