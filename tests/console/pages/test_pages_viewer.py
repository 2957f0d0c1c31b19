"""The comparison of a result with the original: sizes, panning, and the unscaled pixels at 100 %."""
import base64
import io

import numpy
import pytest
from PIL import Image
from selenium.webdriver.common.action_chains import ActionChains

import pictures


@pytest.fixture
def large(inside, owner, tmp_path):
    """The dialog of a picture that is larger than the window, with the original; the pixels of both."""
    path = tmp_path / "large.png"
    Image.fromarray(numpy.asarray(pictures.scene(1700, 1500, seed=5))).save(path)
    inside.go("/new")
    inside.give([path])
    inside.says("1 picture ready")
    inside.press("Protect 1 picture")
    inside.says("Complete")
    [order] = owner.get("/v2/orders").data["orders"]
    given = owner.get(f"/v2/orders/{order['orderId']}/download").data
    inside.press("Compare")
    inside.find("dialog .viewer canvas")
    return inside, path, given


def moved(window, value):
    script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))"
    window.driver.execute_script(script, window.find("dialog .compare input"), value)


def pane(window):
    return window.driver.execute_script("""
        const pane = document.querySelector("dialog .pane"), canvas = pane.querySelector("canvas");
        return {left: pane.scrollLeft, top: pane.scrollTop, width: pane.clientWidth, height: pane.clientHeight,
                whole: [pane.scrollWidth, pane.scrollHeight], canvas: [canvas.width, canvas.height]};""")


def pixels(window):
    """Returns the drawn pixels of the frame."""
    found = window.driver.execute_async_script("""
        const done = arguments[0];
        requestAnimationFrame(() => requestAnimationFrame(() => {
          const canvas = document.querySelector("dialog .pane canvas");
          done(canvas.toDataURL("image/png"));
        }));""")
    data = base64.b64decode(found.partition(",")[2])
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def part(path_or_bytes, state, times):
    whole = Image.open(path_or_bytes).convert("RGB")
    whole = whole.resize((whole.width * times, whole.height * times), Image.NEAREST)
    left, top = round(state["left"]), round(state["top"])
    return numpy.asarray(whole.crop((left, top, left + state["width"], top + state["height"]))).astype(int)


@pytest.mark.parametrize("zoom, times", [("100 %", 1), ("200 %", 2)])
def test_at_100_percent_the_pixels_are_those_of_the_files(large, anonymous, zoom, times):
    window, path, given = large
    result = anonymous.request("GET", given["downloadUrl"]).body
    window.press(zoom)
    window.wait(lambda: pane(window)["whole"] == [1700 * times, 1500 * times], "the whole picture")
    window.driver.execute_script("document.querySelector('dialog .pane').scrollTo(120, 80)")
    moved(window, 100)
    state = pane(window)
    assert (state["left"], state["top"]) == (120, 80)
    assert numpy.array_equal(pixels(window), part(path, state, times))
    moved(window, 0)
    assert numpy.array_equal(pixels(window), part(io.BytesIO(result), state, times))
    assert not numpy.array_equal(part(path, state, times), part(io.BytesIO(result), state, times))


def test_a_mouse_drags_the_picture_and_arrows_move_it(large):
    window, _, _ = large
    canvas = window.find("dialog .pane canvas")
    # A click on the fitted picture shows that point at 100 %.
    ActionChains(window.driver).move_to_element_with_offset(canvas, 0, 0).click().perform()
    window.wait(lambda: pane(window)["whole"] == [1700, 1500], "100 %")

    def in_the_middle():
        now = pane(window)
        return abs(now["left"] + now["width"] / 2 - 850) < 3 and abs(now["top"] + now["height"] / 2 - 750) < 3 and now
    begin = window.wait(in_the_middle, "the place of the click")
    ActionChains(window.driver).move_to_element(canvas).click_and_hold().move_by_offset(-60, -40).release().perform()
    window.wait(lambda: abs(pane(window)["left"] - begin["left"] - 60) < 2 and abs(pane(window)["top"] - begin["top"] - 40) < 2, "the dragged picture")
    window.driver.execute_script("document.querySelector('dialog .pane').focus()")
    before = pane(window)["left"]
    ActionChains(window.driver).send_keys("\ue014").perform()
    window.wait(lambda: pane(window)["left"] > before, "an arrow")


def test_the_comparison_fits_each_window_and_says_the_sizes(large):
    window, path, _ = large
    size = path.stat().st_size
    window.says("1,700 × 1,500", f"Before: {size / 1e6:.3g} MB", "After: ")
    for width, height in ((390, 800), (1280, 900)):
        window.size(width, height)
        for theme in ("light", "dark"):
            window.theme(theme)
            for zoom in ("Fit", "100 %", "200 %"):
                window.press(zoom)
                def fitting():
                    now = pane(window)
                    return now["width"] <= width and (zoom != "Fit" or now["whole"] == [now["width"], now["height"]]) and now
                state = window.wait(fitting, f"the frame at {zoom}")
                # At each zoom the frame follows the width of the window, also when it grows.
                window.size(1280, 900)
                window.size(width, height)
                window.wait(lambda: pane(window)["width"] == state["width"] <= width, "the frame of the window")
                assert window.overflow() == "" and state["height"] >= 200 and (width > 390 or state["width"] >= 370)
                window.picture(f"viewer-{zoom.removesuffix(' %').lower()}-{width}-{theme}")


def test_a_small_picture_is_not_enlarged(inside, tmp_path):
    path = tmp_path / "small.png"
    path.write_bytes(pictures.png(200, 150))
    inside.go("/new")
    inside.give([path])
    inside.says("1 picture ready")
    inside.press("Protect 1 picture")
    inside.press("Compare")
    inside.find("dialog .viewer canvas")
    moved(inside, 100)
    expected = numpy.asarray(Image.open(path).convert("RGB")).astype(int)

    def is_in_the_middle():
        found = pixels(inside)
        top, left = (found.shape[0] - 150) // 2, (found.shape[1] - 200) // 2
        return any(numpy.array_equal(found[top + y:top + y + 150, left + x:left + x + 200], expected) for x in (0, 1) for y in (0, 1))
    inside.wait(is_in_the_middle, "the picture, pixel by pixel")
