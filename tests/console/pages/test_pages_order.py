"""The page of an order: its URL during the upload, interrupted orders, names, states in words."""
import pytest

import pictures


def begin(window, files, button):
    """Starts an order whose upload is slow."""
    window.go("/new")
    window.give(files)
    window.says(f"{len(files)} pictures ready")
    window.network(upload=2000)
    window.press(button)
    window.says(f"of {len(files)} files uploaded")


def test_a_reload_during_the_upload_finds_the_order_again(inside, owner, files):
    begin(inside, files[:3], "Protect 3 pictures")
    [order] = owner.get("/v2/orders").data["orders"]
    assert inside.path == f"/orders/{order['orderId']}"
    assert order["orderName"] == f"{files[0].name} + 2"
    assert "Delete" not in inside.text()
    # Without this, Chromium asks before it leaves the page.
    inside.driver.execute_script("window.addEventListener('beforeunload', (event) => event.stopImmediatePropagation(), true)")
    path = inside.path
    inside.driver.get("about:blank")
    inside.network()
    inside.open(path)
    inside.says("Files are missing", f"{files[0].name} + 2")
    inside.give(files[:3])
    inside.says("Download all (ZIP)")


def test_an_order_that_waits_for_files_is_offered_on_overview_and_new_order(inside, owner, files):
    def made(name):
        body = {"idempotencyKey": name, "orderName": name, "files": [{"fileName": path.name} for path in files[:2]]}
        return owner.post("/v2/orders/anti-ai", body).data["orderId"]
    ids = [made("first holiday"), made("second holiday")]
    for path in ("/", "/new"):
        inside.open(path)
        inside.says("“second holiday” is waiting for files", "Some of its files have not arrived yet", "in 24 hours", "1 more order waits")
        for theme in ("light", "dark"):
            for width in (390, 1280):
                inside.theme(theme)
                inside.size(width)
                assert inside.overflow() == ""
                inside.picture(f"waiting-{'overview' if path == '/' else 'new'}-{width}-{theme}")
    inside.press("Continue")
    inside.says("Files are missing")
    assert inside.path == f"/orders/{ids[1]}"
    for order in ids:
        owner.request("DELETE", f"/v2/orders/{order}")
    inside.go("/new")
    inside.says("Three steps")
    inside.wait(lambda: not inside.all(".skeleton"), "the page")
    assert "is waiting for files" not in inside.text()


def test_the_upload_of_this_tab_is_not_offered(inside, files):
    begin(inside, files[:2], "Protect 2 pictures")
    inside.go("/")
    inside.says("Hello")
    inside.wait(lambda: not inside.all(".skeleton"), "the page")
    assert "is waiting for files" not in inside.text()
    inside.go("/new")
    inside.says("of 2 files uploaded")
    inside.press("Cancel the order")
    inside.press("Cancel the order", "dialog button")
    # The chosen pictures are still there.
    inside.says("Three steps", "2 pictures ready")
    inside.network()


@pytest.mark.parametrize("name, count, expected", [
    ("beach.jpg", 1, "beach.jpg"), ("n" * 80 + ".jpg", 2, "n" * 55 + "….jpg + 1"), ("봄.여행.jpg", 1, "봄.여행.jpg")])
def test_an_order_is_named_after_its_first_picture(inside, owner, tmp_path, name, count, expected):
    files = [tmp_path / name, tmp_path / "z.jpg"][:count]
    for path in files:
        path.write_bytes(pictures.jpeg(128, 128))
    inside.go("/new")
    inside.give(files)
    inside.says(f"{count} picture{'s' if count > 1 else ''} ready")
    assert inside.field("Name of the order (optional)").get_attribute("placeholder") == expected
    inside.press(f"Protect {count} picture{'s' if count > 1 else ''}")
    inside.says("Complete")
    [order] = owner.get("/v2/orders").data["orders"]
    assert order["orderName"] == expected


def test_a_reading_is_named_after_its_picture_and_found_after_a_reload(inside, owner, tmp_path, stack):
    suspect = tmp_path / "suspect.png"
    suspect.write_bytes(pictures.png(400, 400))
    # Without a worker the order stays in progress.
    stack.part("stop", "worker")
    try:
        inside.go("/read")
        inside.give([suspect])
        inside.says("suspect.png")
        inside.press("Read the watermark", "button")
        inside.says("Looking for a watermark")
        [order] = owner.get("/v2/orders").data["orders"]
        assert order["orderName"] == "suspect.png" and inside.path == f"/read?order={order['orderId']}"
        inside.open(inside.path)
        inside.says("suspect.png", "Looking for a watermark")
        assert inside.path == f"/orders/{order['orderId']}"
    finally:
        stack.part("start", "worker")
    inside.says("No watermark was found")


def test_an_order_with_a_failed_file_says_how_many_are_complete(inside, owner, tmp_path, files):
    cut = tmp_path / "cut.jpg"
    cut.write_bytes(pictures.jpeg(400, 300)[:-900] + b"\xff\xd9")
    inside.go("/new")
    inside.give([*files[:2], cut])
    inside.says("3 pictures ready")
    inside.press("Protect 3 pictures")
    inside.says("2 of 3 complete", "Some pictures could not be processed")
    # The seven days include the first.
    inside.says("The results are deleted in 7 days.")
    inside.go("/orders")
    inside.says("2 of 3 complete")


def drawn(window, count):
    """Waits until the thumbnails of so many files are loaded; returns their addresses."""
    script = """return [...document.querySelectorAll(".results img.thumb")].filter((one) => one.naturalWidth > 1).map((one) => one.src)"""
    return window.wait(lambda: len(found := window.driver.execute_script(script)) == count and found, f"{count} thumbnails")


def test_each_result_has_a_thumbnail_after_a_reload_and_for_orders_of_the_api(inside, owner, anonymous, files, other):
    made = owner.post("/v2/orders/anti-ai", {"idempotencyKey": "thumbs", "files": [{"fileName": path.name} for path in files[:4]]}).data
    for file, path in zip(made["files"], files):
        assert anonymous.put(file["uploadUrl"], body=path.read_bytes()).status == 201
    owner.post("/v2/orders/anti-ai/confirm", {"idempotencyKey": "start", "orderId": made["orderId"]})
    inside.open(f"/orders/{made['orderId']}")
    inside.says("Download all (ZIP)")
    assert len(set(drawn(inside, 4))) == 4
    assert other.get(f"/v2/orders/{made['orderId']}").status == 404
    for theme in ("light", "dark"):
        for width in (390, 1280):
            inside.theme(theme)
            inside.size(width)
            assert inside.overflow() == ""
            inside.picture(f"order-thumbnails-{width}-{theme}")
    inside.go("/orders")
    inside.wait(lambda: inside.all("tbody img.thumb")[0].get_property("naturalWidth") > 1, "the order's thumbnail")


def test_the_thumbnails_stay_while_the_order_is_polled(inside, owner, anonymous, files, stack):
    """Each response has new signatures, but a picture that is shown is not fetched again."""
    made = owner.post("/v2/orders/anti-ai", {"idempotencyKey": "polled", "files": [{"fileName": path.name} for path in files[:2]]}).data
    for file, path in zip(made["files"], files):
        assert anonymous.put(file["uploadUrl"], body=path.read_bytes()).status == 201
    inside.open(f"/orders/{made['orderId']}")
    inside.says("Files are missing")
    owner.post("/v2/orders/anti-ai/confirm", {"idempotencyKey": "start", "orderId": made["orderId"]})
    inside.says("Download all (ZIP)")
    # An order with results is polled while other files are in progress.
    stack.sql(f"UPDATE orders SET status = 'inProgress' WHERE id = {made['orderId']}")
    inside.open(inside.path)
    inside.says("We are working on your pictures")
    first = drawn(inside, 2)
    fetched = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/thumb/')).length"
    inside.driver.execute_script("performance.clearResourceTimings()")
    seen = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/console/api/v2/orders/')).length"
    inside.wait(lambda: inside.driver.execute_script(seen) >= 2, "two polls")
    assert drawn(inside, 2) == first and inside.driver.execute_script(fetched) == 0


def test_the_names_of_the_originals_are_kept_if_the_user_wants_it(inside, owner, files):
    inside.go("/new")
    inside.give(files[:1])
    inside.says("1 picture ready", "Add to the names of the results: -protected")
    inside.picture("new-suffix-1280-light")
    inside.click(inside.find(".check input"))
    inside.press("Protect 1 picture")
    inside.says("Complete")
    [order] = owner.get("/v2/orders").data["orders"]
    assert owner.get(f"/v2/orders/{order['orderId']}/download").data["fileName"] == files[0].name
    # The next order begins with the default choice.
    inside.go("/new")
    assert inside.find(".check input").is_selected()
    inside.click(inside.find("input[value=watermarkEmbed]"))
    inside.says("Add to the names of the results: -marked")
