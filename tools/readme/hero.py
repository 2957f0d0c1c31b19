#!/usr/bin/python3
"""Draws doc/readme/hero.webp: original, protected and marked crops of two free pictures at 100 %, from a built imgwardctl.

    hero.py BUILD-FOLDER

The picture is lossless, so that it shows the changes by the programs and no loss by a codec.
"""
import pathlib
import subprocess
import sys
import tempfile

from PIL import Image, ImageDraw, ImageFont

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURES = (("kodim18.png", 152, 126), ("clip_fall_scene.png", 300, 850))  # name, left and top of the crop
TEXT = "Sent to Ada"
LABELS = ("original", "protected", f"marked: “{TEXT}”")
WIDTH, HEIGHT, GAP, LABEL = 270, 172, 6, 24  # px; three columns are as wide as the text of a page on GitHub


def run(ctl, *words):
    return subprocess.run([ctl, "image", *words], check=True, capture_output=True, text=True).stdout


def columns(ctl, source, folder):
    """Returns the paths of the original, the protected and the marked picture, and reads the mark."""
    key, protected, marked = folder / "key", folder / "protected.png", folder / "marked.png"
    # The key is fixed, so that the picture is the same on every run.
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    run(ctl, "protect", "--weights", ROOT / "data" / "protect.weights", "--seed", "1", source, protected)
    run(ctl, "embed", "--key-file", key, "--text", TEXT, source, marked)
    run(ctl, "extract", "--key-file", key, "--text", TEXT, marked)
    return source, protected, marked


def main():
    ctl = pathlib.Path(sys.argv[1]).resolve() / "imgwardctl"
    page = Image.new("RGB", (3 * WIDTH + 2 * GAP, LABEL + len(PICTURES) * (HEIGHT + GAP) - GAP), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.truetype("DejaVuSans.ttf", 14)
    for column, label in enumerate(LABELS):
        draw.text((column * (WIDTH + GAP) + 2, 3), label, fill="#222", font=font)
    for row, (name, left, top) in enumerate(PICTURES):
        with tempfile.TemporaryDirectory() as folder:
            paths = columns(ctl, ROOT / "tests" / "bench" / "pictures" / name, pathlib.Path(folder))
            for column, path in enumerate(paths):
                part = Image.open(path).convert("RGB").crop((left, top, left + WIDTH, top + HEIGHT))
                page.paste(part, (column * (WIDTH + GAP), LABEL + row * (HEIGHT + GAP)))
    page.save(ROOT / "doc" / "readme" / "hero.webp", lossless=True, quality=100, method=6)


main()
