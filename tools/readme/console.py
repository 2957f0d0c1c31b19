#!/usr/bin/python3
"""Draws doc/readme/console.webp: an order of four free pictures in the web console, in Chromium.

    IMGWARD_ENV=var/dev.env console.py          with the stack of "./dev up"
"""
import os
import pathlib
import shutil
import sys
import tempfile

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("api", "console", "console/pages")]

import client as client_module  # noqa: E402
import window as window_module  # noqa: E402
from browser import PASSWORD, Browser, address_new  # noqa: E402

PICTURES = {"portrait.png": "kodim18.png", "beach.png": "kodim12.png", "cat.png": "chelsea.png", "autumn.png": "clip_fall_scene.png"}
WIDTH, HEIGHT = 1180, 780  # px


def pictures_copy(folder):
    for name, source in PICTURES.items():
        shutil.copy(ROOT / "tests" / "bench" / "pictures" / source, folder / name)
    return [folder / name for name in PICTURES]


def order_show(window, stack, paths):
    """Signs up a new user and lets the console protect the pictures."""
    browser = Browser(stack)
    answer = browser.took(browser.post("/sign-up", {"email": address_new(), "password": PASSWORD, "name": "Ada", "accountName": "Ada's studio"}))
    assert answer.status == 201, answer
    window.clear()
    window.size(WIDTH, HEIGHT)
    window.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    window.enter(browser)
    window.open("/new")
    window.give(paths)
    window.press(f"Protect {len(paths)} pictures")
    window.says("Download all (ZIP)")


def main():
    stack = client_module.Stack(client_module.environment_read(os.environ["IMGWARD_ENV"]))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        driver = window_module.driver_start(name)
        try:
            order_show(window_module.Window(driver, stack, folder), stack, pictures_copy(folder))
            driver.save_screenshot(str(folder / "page.png"))
        finally:
            driver.quit()
        Image.open(folder / "page.png").convert("RGB").save(ROOT / "doc" / "readme" / "console.webp", lossless=True, quality=100, method=6)


main()
