#!/usr/bin/python3
"""Draws pictures without texture: logos, text pages, QR codes, charts, manga pages, flat cartoons, screens, maps.

tests/bench/watermark_drawings.py FOLDER [COUNT] [FIRST_SEED]

They measure the watermark (./dev bench watermark --drawings), and tests use them. A seed gives the same picture on every
machine. Seeds below 1000 are for development of the engine, seeds from 1000 on for evaluation. Needs python3-numpy and
python3-pil.
"""
import math
import os
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageFont

JUDGING = 1000  # the first seed that development must not use
TIMES = 3       # drawn this many times larger, then reduced for anti-aliasing
FONTS = "/usr/share/fonts/truetype/dejavu"
WORDS = ("order image watermark copy sender river mountain garden letter number paper window summer "
         "light morning station market music table answer question street winter colour").split()


def font(size, bold=False):
    path = os.path.join(FONTS, "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf")
    return ImageFont.truetype(path, size) if os.path.exists(path) else ImageFont.load_default()


def colour(random, least=0, most=255):
    return tuple(int(value) for value in random.integers(least, most + 1, 3))


def sentence(random, count):
    return " ".join(WORDS[int(i)] for i in random.integers(0, len(WORDS), count))


class Sheet:
    """A picture that is drawn TIMES larger."""

    def __init__(self, width, height, ground):
        self.width, self.height = width, height
        self.image = Image.new("RGB", (width * TIMES, height * TIMES), ground)
        self.draw = ImageDraw.Draw(self.image)

    def box(self, left, top, right, bottom, **how):
        how = {name: value * TIMES if name in ("width", "radius") else value for name, value in how.items()}
        draw = self.draw.rounded_rectangle if "radius" in how else self.draw.rectangle
        draw([left * TIMES, top * TIMES, right * TIMES, bottom * TIMES], **how)

    def round(self, left, top, right, bottom, fill=None, outline=None, width=1):
        self.draw.ellipse([left * TIMES, top * TIMES, right * TIMES, bottom * TIMES], fill, outline, width * TIMES)

    def line(self, points, fill, width):
        self.draw.line([(x * TIMES, y * TIMES) for x, y in points], fill, width * TIMES, joint="curve")

    def shape(self, points, fill, outline=None, width=0):
        points = [(x * TIMES, y * TIMES) for x, y in points]
        self.draw.polygon(points, fill)
        if width:
            self.draw.line(points + points[:2], outline, width * TIMES, joint="curve")

    def text(self, left, top, words, size, fill, bold=False):
        self.draw.text((left * TIMES, top * TIMES), words, fill, font(size * TIMES, bold))

    def done(self):
        return np.array(self.image.resize((self.width, self.height), Image.BOX))


def blob(random, x, y, radius, points=40):
    """Draws a smooth closed outline."""
    waves = [(k, random.uniform(0, 2 * math.pi), random.uniform(0, 0.25 / k)) for k in (2, 3, 4, 5)]
    ring = []
    for i in range(points):
        angle = 2 * math.pi * i / points
        size = radius * (1 + sum(share * math.cos(k * angle + phase) for k, phase, share in waves))
        ring.append((x + size * math.cos(angle), y + size * math.sin(angle)))
    return ring


def logo(random, width, height):
    sheet = Sheet(width, height, (255, 255, 255))
    middle, side = (width / 2, height / 2), min(width, height)
    for i in range(int(random.integers(2, 5))):
        size = side * random.uniform(0.1, 0.3)
        x, y = middle[0] + random.uniform(-0.2, 0.2) * width, middle[1] + random.uniform(-0.25, 0.1) * height
        if random.random() < 0.5:
            sheet.round(x - size, y - size, x + size, y + size, colour(random))
        else:
            turn, count = random.uniform(0, 6), int(random.integers(3, 8))
            sheet.shape([(x + size * math.cos(turn + 2 * math.pi * k / count),
                          y + size * math.sin(turn + 2 * math.pi * k / count)) for k in range(count)], colour(random))
    sheet.text(width * 0.15, height * 0.78, sentence(random, 2).title(), int(side * 0.11), colour(random, 0, 90), True)
    return sheet.done()


def page(random, width, height):
    sheet = Sheet(width, height, (255, 255, 255))
    size = int(random.integers(11, 20))
    sheet.text(width * 0.08, height * 0.06, sentence(random, 4).title(), size * 2, (10, 10, 10), True)
    y = height * 0.06 + size * 4
    while y < height * 0.93:
        words = sentence(random, int(width * 0.84 / size / 3.6))
        if random.random() > 0.08:
            sheet.text(width * 0.08, y, words, size, (20, 20, 20))
        y += size * 1.5
    return sheet.done()


def squares(random, width, height):
    """Draws squares like a QR code, with a title."""
    count = int(random.integers(21, 46))
    side = int(min(width, height) * 0.8 // count)
    cells = random.random((count, count)) < 0.5
    for top, left in ((0, 0), (0, count - 7), (count - 7, 0)):
        cells[top : top + 7, left : left + 7] = True
        cells[top + 1 : top + 6, left + 1 : left + 6] = False
        cells[top + 2 : top + 5, left + 2 : left + 5] = True
    result = np.full((height, width, 3), 255, np.uint8)
    top, left = (height - side * count) // 2, (width - side * count) // 2
    ink = np.kron(cells, np.ones((side, side), bool))
    result[top : top + ink.shape[0], left : left + ink.shape[1]][ink] = 0 if random.random() < 0.7 else colour(random, 0, 80)
    return result


def chart(random, width, height):
    sheet = Sheet(width, height, (255, 255, 255))
    left, right, top, bottom = width * 0.1, width * 0.95, height * 0.14, height * 0.88
    sheet.text(left, height * 0.04, sentence(random, 4).capitalize(), int(height * 0.045), (40, 40, 40), True)
    for i in range(6):
        y = bottom - (bottom - top) * i / 5
        sheet.line([(left, y), (right, y)], (222, 222, 222), 1)
        sheet.text(left - width * 0.06, y - 6, str(20 * i), 11, (90, 90, 90))
    count = int(random.integers(5, 12))
    inks = [colour(random, 30, 220) for _ in range(3)]
    if random.random() < 0.6:
        for i in range(count):
            x, step = left + (right - left) * (i + 0.15) / count, (right - left) * 0.7 / count
            y = bottom - (bottom - top) * random.uniform(0.1, 0.95)
            sheet.box(x, y, x + step, bottom, fill=inks[i % len(inks)])
    else:
        for ink in inks:
            y = random.uniform(0.3, 0.7) + np.cumsum(random.normal(0, 0.07, 40))
            sheet.line([(left + (right - left) * i / 39, bottom - (bottom - top) * min(max(v, 0), 1))
                        for i, v in enumerate(y)], ink, 3)
    return sheet.done()


def manga(random, width, height):
    """Draws panels in black and white with lines, solid black and halftone dots."""
    sheet = Sheet(width, height, (255, 255, 255))
    y = 8.0
    while y < height - 60:
        tall = min(random.uniform(0.22, 0.42) * height, height - 8 - y)
        x, cut = 8.0, random.uniform(0.3, 0.7) * width
        for end in (cut, width - 8.0):
            sheet.box(x, y, end, y + tall, outline=(0, 0, 0), width=2)
            for _ in range(int(random.integers(2, 6))):
                size = random.uniform(0.1, 0.35) * tall
                ring = blob(random, random.uniform(x + size, max(end - size, x + size + 1)),
                            random.uniform(y + size, max(y + tall - size, y + size + 1)), size * 0.8)
                grey = [None, (255, 255, 255), (0, 0, 0), (200, 200, 200)][int(random.integers(0, 4))]
                sheet.shape(ring, grey or (255, 255, 255), (0, 0, 0), 2)
            if random.random() < 0.5:
                focus = (random.uniform(x, end), random.uniform(y, y + tall))
                for _ in range(40):
                    angle, far = random.uniform(0, 6.3), random.uniform(0.3, 0.5) * tall
                    sheet.line([(focus[0] + far * math.cos(angle), focus[1] + far * math.sin(angle)),
                                (focus[0] + 1.2 * far * math.cos(angle), focus[1] + 1.2 * far * math.sin(angle))],
                               (0, 0, 0), 1)
            x = end + 8
        y += tall + 8
    result = sheet.done()
    tone = (result[:, :, 0] > 190) & (result[:, :, 0] < 210)
    across, down = np.meshgrid(np.arange(width), np.arange(height))
    turn = random.uniform(0.6, 0.9)
    dots = (np.cos((across * math.cos(turn) + down * math.sin(turn)) * 1.3) +
            np.cos((-across * math.sin(turn) + down * math.cos(turn)) * 1.3)) > 0.7
    result[tone] = np.where(dots[tone], 30, 255)[:, None]
    return result


def cartoon(random, width, height):
    """Draws flat colours with outlines."""
    sheet = Sheet(width, height, colour(random, 130, 240))
    for _ in range(int(random.integers(1, 4))):
        y = height * random.uniform(0.5, 0.9)
        points = [(width * i / 20, y + height * 0.06 * math.sin(i * random.uniform(0.3, 0.5))) for i in range(21)]
        sheet.shape(points + [(width, height), (0, height)], colour(random, 60, 220))
    has_line = random.random() < 0.7
    for _ in range(int(random.integers(6, 16))):
        size = random.uniform(0.05, 0.22) * height
        ring = blob(random, random.uniform(0, width), random.uniform(0.1, 0.95) * height, size)
        sheet.shape(ring, colour(random, 30, 250), (25, 20, 30), int(random.integers(2, 4)) if has_line else 0)
    x, y, size = width * random.uniform(0.3, 0.7), height * 0.45, height * 0.2
    sheet.shape(blob(random, x, y, size), (245, 206, 180), (40, 25, 25), 3)
    for side in (-1, 1):
        sheet.round(x + side * size * 0.4 - 9, y - 14, x + side * size * 0.4 + 9, y + 12, (255, 255, 255), (20, 20, 20), 2)
        sheet.round(x + side * size * 0.4 - 4, y - 6, x + side * size * 0.4 + 4, y + 6, (60, 90, 60))
    sheet.line([(x - 14, y + size * 0.5), (x, y + size * 0.55), (x + 14, y + size * 0.5)], (150, 40, 40), 3)
    return sheet.done()


def screen(random, width, height):
    """Draws a program's window, light or dark."""
    is_dark = random.random() < 0.4
    ground, ink = ((32, 33, 36), (225, 225, 225)) if is_dark else ((248, 249, 250), (32, 33, 36))
    sheet = Sheet(width, height, ground)
    accent = colour(random, 40, 200)
    sheet.box(0, 0, width, 36, fill=accent)
    sheet.text(12, 9, sentence(random, 3).title(), 15, (255, 255, 255), True)
    side = int(width * 0.22)
    sheet.box(0, 36, side, height, fill=tuple(max(0, value - 12) for value in ground))
    for i in range(int((height - 60) / 30)):
        sheet.text(14, 52 + 30 * i, sentence(random, 2), 12, ink)
    y = 56
    while y < height - 80:
        sheet.box(side + 20, y, width - 20, y + 70, fill=(45, 46, 50) if is_dark else (255, 255, 255),
                  outline=(70, 70, 75) if is_dark else (218, 220, 224), radius=8, width=1)
        sheet.round(side + 34, y + 16, side + 70, y + 52, colour(random, 60, 230))
        sheet.text(side + 84, y + 14, sentence(random, 4), 14, ink, True)
        sheet.text(side + 84, y + 38, sentence(random, int(width / 90)), 11, tuple((a + b) // 2 for a, b in zip(ink, ground)))
        y += 84
    return sheet.done()


def city(random, width, height):
    """Draws a street map."""
    sheet = Sheet(width, height, (242, 239, 233))
    for _ in range(8):
        ring = blob(random, random.uniform(0, width), random.uniform(0, height), random.uniform(0.05, 0.18) * width)
        sheet.shape(ring, [(200, 230, 190), (170, 211, 223), (224, 223, 223)][int(random.integers(0, 3))])
    for count, ink, wide in ((14, (255, 255, 255), 6), (5, (252, 214, 164), 9), (2, (232, 146, 162), 11)):
        for _ in range(count):
            start, end = random.uniform(-0.1, 1.1, 2), random.uniform(-0.1, 1.1, 2)
            points = [(start[0] * width, -5), (random.uniform(0, width), height / 2), (end[0] * width, height + 5)]
            if random.random() < 0.5:
                points = [(-5, start[1] * height), (width / 2, random.uniform(0, height)), (width + 5, end[1] * height)]
            sheet.line(points, (190, 180, 175), wide + 2)
            sheet.line(points, ink, wide)
    for _ in range(14):
        sheet.text(random.uniform(0, 0.85) * width, random.uniform(0, 0.95) * height, sentence(random, 2).title(), 12, (70, 70, 70))
    return sheet.done()


KINDS = (logo, page, squares, chart, manga, cartoon, screen, city)
SIZES = ((640, 480), (800, 600), (512, 512), (900, 640), (700, 1000), (1024, 768), (480, 640), (1280, 800))


def drawing(seed):
    """Returns name and pixels of a seed's picture; eight consecutive seeds cover all kinds."""
    random = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    width, height = SIZES[int(random.integers(0, len(SIZES)))]
    return f"{kind.__name__} {seed}", kind(random, width, height)


def main():
    folder, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 16
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    os.makedirs(folder, exist_ok=True)
    for seed in range(first, first + count):
        name, picture = drawing(seed)
        Image.fromarray(picture).save(os.path.join(folder, name.replace(" ", "_") + ".png"))


if __name__ == "__main__":
    main()
