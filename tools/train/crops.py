#!/usr/bin/python3
"""Draws the crops of doc/protection.md: the original and the three strengths next to each other, at 100 %.

    crops.py --ctl build/imgwardctl --weights data/protect.weights --out doc/protection PICTURE@TOP,LEFT ...

--jpeg 85 draws what JPEG files of this quality get, as PICTURE-85.webp.
"""

import argparse
import os
import subprocess
import tempfile

from PIL import Image

STRENGTHS, SIDE, GAP = ("low", "standard", "high"), 200, 4  # px


def sheet(options, path, top, left, folder):
    kind, how = (".jpg", {"quality": options.jpeg}) if options.jpeg else (".png", {"compress_level": 1})
    source, result = os.path.join(folder, "in" + kind), os.path.join(folder, "out" + kind)
    Image.open(path).convert("RGB").save(source, **how)
    page = Image.new("RGB", ((SIDE + GAP) * (1 + len(STRENGTHS)) - GAP, SIDE), "white")
    for place, strength in enumerate((None,) + STRENGTHS):
        if strength:
            subprocess.run([options.ctl, "image", "protect", "--strength", strength, "--seed", "1", "--weights", options.weights,
                            source, result], check=True, stdout=subprocess.DEVNULL)
        part = Image.open(result if strength else source).convert("RGB").crop((left, top, left + SIDE, top + SIDE))
        page.paste(part, (place * (SIDE + GAP), 0))
    name = os.path.splitext(os.path.basename(path))[0] + ("-%d" % options.jpeg if options.jpeg else "")
    page.save(os.path.join(options.out, name + ".webp"), lossless=True, quality=100, method=6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ctl", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--jpeg", type=int, metavar="QUALITY")
    parser.add_argument("pictures", nargs="+", metavar="PICTURE@TOP,LEFT")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for picture in options.pictures:
            path, place = picture.rsplit("@", 1)
            sheet(options, path, *map(int, place.split(",")), folder)


if __name__ == "__main__":
    main()
