"""Orders in the browser: from a folder of pictures to the results, and every possible interruption."""
import re
import time
import zipfile

import pytest

from PIL import Image

import marks
import pictures

ENDED = "Download all (ZIP)"


def pictures_choose(window, files):
    window.give(files)
    window.says(f"{len(files)} pictures ready" if len(files) > 1 else "1 picture ready")


def downloaded(window):
    """Returns the only downloaded file when it is complete."""
    def files():
        return [path for path in window.downloads.iterdir() if path.suffix not in (".crdownload", ".tmp") and not path.name.startswith(".")]
    return window.wait(files, "a download")[0]


def test_ten_pictures_from_an_empty_console_to_the_download(inside, files, record_testsuite_property):
    inside.clicks, begin = 0, time.monotonic()
    inside.press("New order")
    pictures_choose(inside, files)
    inside.press("Protect 10 pictures")
    inside.press(ENDED)
    archive = downloaded(inside)
    # Choosing the files is one more click, which opens the dialog of the system.
    record_testsuite_property("clicks", inside.clicks + 1)
    record_testsuite_property("seconds", round(time.monotonic() - begin, 1))
    assert inside.clicks + 1 <= 4
    with zipfile.ZipFile(archive) as opened:
        assert sorted(opened.namelist()) == sorted(f"{path.stem}-protected{path.suffix}" for path in files)
    inside.picture("order-1440-light")


def test_a_result_is_compared_with_its_original(inside, files):
    inside.go("/new")
    pictures_choose(inside, files[:1])
    inside.press("Protect 1 picture")
    inside.press("Compare")
    slider = inside.find("dialog .compare input")
    inside.driver.execute_script("arguments[0].value = 20; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))", slider)
    frame = inside.find("dialog .compare")
    # The divider is at a fifth of the picture, which is 321 pixels wide and in the middle of the frame.
    place = "return parseFloat(getComputedStyle(arguments[0]).getPropertyValue('--at'))"
    inside.wait(lambda: abs(inside.driver.execute_script(place, frame) - ((frame.size["width"] - 321) / 2 + 321 / 5)) <= 1, "the divider")
    inside.press("Close")
    inside.press("Download")
    assert downloaded(inside).name == f"{files[0].stem}-protected{files[0].suffix}"


def test_a_result_of_an_earlier_visit_is_viewed_and_compared(inside, files):
    inside.go("/new")
    pictures_choose(inside, files[:1])
    inside.press("Protect 1 picture")
    inside.says("Complete")
    # After a reload the browser does not have the original.
    inside.open(inside.path)
    inside.press(f"View: {files[0].name}")
    inside.find("dialog .single canvas")
    inside.find("dialog input[type=file]").send_keys(str(files[0]))
    inside.find("dialog .compare:not(.single) canvas")
    inside.press("Close")
    # A click on the picture opens the same dialog.
    inside.click(inside.find(".results .look"))
    inside.find("dialog .single canvas")
    # A failure is shown, not only logged.
    inside.press("Close")
    inside.answer(f"/v2{inside.path}/download", 410, {"code": "ORDER_EXPIRED", "message": "In English."}, "GET")
    inside.click(inside.find(".results .look"))
    inside.says("The files of this order are deleted.")


def test_an_original_that_the_browser_cannot_draw_is_replaced(inside, files, tmp_path):
    inside.go("/new")
    pictures_choose(inside, files[:1])
    inside.press("Protect 1 picture")
    inside.says("Complete")
    inside.open(inside.path)
    inside.press(f"View: {files[0].name}")
    inside.find("dialog .single canvas")
    broken, other = tmp_path / "broken.jpg", tmp_path / "other.png"
    broken.write_text("no picture", encoding="utf-8")
    other.write_bytes(pictures.png(300, 200))
    for _ in range(2):
        inside.find("dialog input[type=file]").send_keys(str(broken))
        inside.says("This browser cannot show your original.", "Drop your original here to compare")
        assert "Before:" not in inside.text()
    inside.find("dialog input[type=file]").send_keys(str(other))
    inside.find("dialog .compare:not(.single) canvas")
    inside.says("Move the slider to compare.", f"Before: {round(other.stat().st_size / 1000)}")
    assert "cannot show your original" not in inside.text() and not inside.all("dialog .drop")


def test_each_recipient_gets_a_copy_whose_text_is_read_again(inside, tmp_path):
    picture = tmp_path / "boat.png"
    picture.write_bytes(pictures.png(480, 400))
    inside.go("/new")
    pictures_choose(inside, [picture])
    inside.click(inside.find("input[value=watermarkEmbed]"))
    inside.says("Write at least one text first.")
    inside.fill("Texts, one on each line", "Sent to Ada\n\nSent to Grace\nSent to Ada")
    inside.says("2 texts × 1 picture = 2 copies")
    inside.press("Make 2 marked copies")
    inside.says("Sent to Grace", ENDED)
    inside.press("Download: boat.png Sent to Grace")
    copy = downloaded(inside)
    inside.press("Compare: boat.png Sent to Grace")
    inside.find("dialog .compare canvas[role=img]")
    # The service knows the size of the largest copy, but not of this copy.
    inside.says("Before: ")
    assert "After: " not in inside.text()
    inside.press("Close")
    inside.go("/read")
    inside.give([copy])
    inside.says(copy.name)
    inside.press("Read the watermark", "button")
    inside.says("This picture has the watermark", "Sent to Grace", "The order of this mark", "boat.png, ordered")
    inside.find(f".result canvas[aria-label='The picture that was read: {copy.name}']")
    inside.picture("read-found-1440-light")
    for ending in (".tiff", ".bmp"):
        found = tmp_path / f"found{ending}"
        with Image.open(copy) as image:
            image.save(found)
        inside.press("Read another picture")
        inside.give([found])
        inside.says(found.name)
        if ending == ".tiff":
            inside.says("This browser cannot show the picture. It is read all the same.")
        inside.picture(f"read-given{ending}-1440-light")
        inside.press("Read the watermark", "button")
        inside.says("This picture has the watermark", "Sent to Grace")
        inside.picture(f"read-found{ending}-1440-light")
    inside.press("Read another picture")
    inside.give([picture])
    inside.says("boat.png")
    inside.press("Read the watermark", "button")
    inside.says("No watermark was found", "Add your unmarked original")


def test_a_copied_watermark_is_shown_as_such(inside, tmp_path):
    picture = tmp_path / "photo.png"
    picture.write_bytes(pictures.png(800, 600, seed=51))
    inside.go("/new")
    pictures_choose(inside, [picture])
    inside.click(inside.find("input[value=watermarkEmbed]"))
    inside.fill("Texts, one on each line", "Sent to Ada")
    inside.press("Make 1 marked copy")
    inside.says("Complete")
    inside.press("Download: photo.png Sent to Ada")
    copy = downloaded(inside)
    forged = tmp_path / "forged.png"
    forged.write_bytes(marks.copied(copy.read_bytes(), pictures.png(800, 600, seed=61)))
    inside.go("/read")
    for found, words in ((copy, "It is the picture to which the watermark was added."),
                         (forged, "This is not the picture to which the watermark was added")):
        inside.give([found])
        inside.says(found.name)
        inside.press("Read the watermark", "button")
        inside.says("This picture has the watermark", "Sent to Ada", words)
        for theme in ("light", "dark"):
            for width in (390, 1280):
                inside.theme(theme)
                inside.size(width)
                assert inside.overflow() == ""
                inside.picture(f"read-{'copied' if found == forged else 'same'}-{width}-{theme}")
        inside.theme("light")
        inside.size(1440)
        inside.press("Read another picture")


def test_many_recipients_of_one_picture_are_several_uploads(inside, tmp_path):
    picture = tmp_path / "map.jpg"
    picture.write_bytes(pictures.jpeg(300, 300))
    inside.go("/new")
    pictures_choose(inside, [picture])
    inside.click(inside.find("input[value=watermarkEmbed]"))
    inside.fill("Texts, one on each line", "\n".join(f"copy {number}" for number in range(12)))
    inside.press("Make 12 marked copies")
    inside.says("copy 11", ENDED)
    assert len(inside.all(".results > li")) == 2


def test_files_that_the_service_would_refuse_are_shown_before_the_upload(inside, tmp_path, files):
    (tmp_path / "letter.jpg").write_bytes(b"no picture")
    (tmp_path / "tiny.png").write_bytes(pictures.png(20, 20))
    (tmp_path / "empty.png").write_bytes(b"")
    inside.go("/new")
    inside.give([tmp_path / "letter.jpg", tmp_path / "tiny.png", tmp_path / "empty.png", files[0]])
    inside.says(f"This is not a {pictures.titles(pictures.CHANGED)} picture.", "A side has 20 pixels; at least 64 are needed.", "The file is empty.", "1 picture ready")
    inside.press("Remove letter.jpg")
    inside.wait(lambda: len(inside.all(".pictures li")) == 3, "three pictures")
    inside.press("Protect 1 picture")
    inside.says("Complete")


HEADS = {"iphone.heic": b"\0\0\0\x18ftypheic", "web.avif": b"\0\0\0\x18ftypavif", "moving.gif": b"GIF89a", "scan.tif": b"II*\0",
         "desk.bmp": b"BM", "layers.psd": b"8BPS", "page.pdf": b"%PDF-1.4\n", "sign.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>"}


@pytest.mark.parametrize("alone", [True, False])
def test_a_file_that_cannot_be_taken_is_named_with_the_sentence_of_the_api(inside, tmp_path, files, stack, owner, anonymous, alone):
    """A folder of a phone: each refused picture has a reason; other files are named, except files of the system."""
    made = {name: head + b"\0" * 64 for name, head in HEADS.items()}
    if alone:
        made = {"renamed.jpg": made["iphone.heic"]}
    for name, data in {**made, "notes.txt": b"text", ".DS_Store": b"x"}.items():
        (tmp_path / name).write_bytes(data)
    upload = owner.post("/v2/orders/anti-ai", {"idempotencyKey": "sentences", "files": [{"fileName": "a.jpg"}]}).data["files"][0]["uploadUrl"]
    inside.go("/new")
    inside.give([tmp_path / name for name in made] + ([] if alone else [tmp_path / "notes.txt", tmp_path / ".DS_Store", files[0]]))
    inside.wait(lambda: len(inside.all(".pictures li")) == len(made) + (not alone), "all pictures")
    for name, data in made.items():
        sentence = anonymous.put(upload, body=data).json["message"].removeprefix("a.jpg: ")
        [tile] = [tile.text for tile in inside.all(".pictures li.refused") if name in tile.text]
        assert sentence in tile, (sentence, tile)
    inside.says("Most Compatible")
    if not alone:
        inside.says("1 picture ready", "1 file that is not a picture was left out:", "notes.txt")
        assert ".DS_Store" not in inside.text()
        inside.picture("new-refused-1440-light")


def test_a_picture_that_cannot_be_drawn_is_not_ready(inside, tmp_path, files):
    cut = tmp_path / "cut.png"
    cut.write_bytes(pictures.png(400, 300)[:2000])
    inside.go("/new")
    inside.give([cut, files[0]])
    inside.says("This browser cannot display the picture", "1 picture ready")
    inside.press("Order it anyway")
    inside.says("2 pictures ready")


def test_before_an_order_the_page_says_what_a_jpeg_and_a_drawing_cost(inside, tmp_path):
    from PIL import ImageDraw
    drawing = Image.new("RGB", (800, 600), "white")
    ImageDraw.Draw(drawing).ellipse((100, 100, 500, 500), fill="teal", outline="black", width=6)
    drawing.save(tmp_path / "drawing.png")
    (tmp_path / "photo.jpg").write_bytes(pictures.jpeg(300, 300))
    inside.go("/new")
    inside.give([tmp_path / "drawing.png"])
    least = (tmp_path / "drawing.png").stat().st_size
    inside.says(f"1 drawing becomes larger as PNG: about {4 * least / 1000:.3g} kB in total in flat colours, up to 660 kB with soft shading.")
    assert "keeps more of the protection" not in inside.text()
    inside.give([tmp_path / "photo.jpg"])
    inside.says("A photo keeps more of the protection as a PNG or as the original export than as a compressed JPEG.", "2 pictures ready")
    inside.picture("new-hints-1440-light")
    inside.click(inside.find("input[value=watermarkEmbed]"))
    inside.wait(lambda: "keeps more of the protection" not in inside.text(), "no hint")
    inside.click(inside.find("input[value=antiAi]"))
    inside.press("Protect 2 pictures")
    inside.says("Complete", "Protection: strong (", "→", "The number is an estimate of the effect")
    meters = "return [...document.querySelectorAll('.facts meter')].map((bar) => [bar.value, bar.max, bar.parentNode.textContent])"
    inside.wait(lambda: len(inside.driver.execute_script(meters)) == 2, "a bar for each file")
    bars = inside.driver.execute_script(meters)
    assert all(most == 100 and f"({value:.0f} %)" in text for value, most, text in bars), bars
    size = (tmp_path / "drawing.png").stat().st_size
    inside.says(f"{size / 1000:.3g} kB →")
    for theme in ("light", "dark"):
        for width in (390, 1280):
            inside.theme(theme)
            inside.size(width)
            assert inside.overflow() == ""
            inside.picture(f"order-shares-{width}-{theme}")


def test_a_deep_drawing_is_as_large_as_soft_shading(inside, tmp_path):
    Image.new("I;16", (800, 600), 40000).save(tmp_path / "deep.png")
    inside.go("/new")
    inside.give([tmp_path / "deep.png"])
    inside.says("1 drawing becomes larger as PNG: about 1.32 MB in total in flat colours, up to 1.32 MB with soft shading.")


def test_the_services_refusal_stands_next_to_its_field(inside, files):
    inside.go("/new")
    pictures_choose(inside, files[:1])
    name = inside.field("Name of the order (optional)")
    inside.driver.execute_script("arguments[0].removeAttribute('maxlength')", name)
    inside.fill("Name of the order (optional)", "n" * 65)
    inside.press("Protect 1 picture")
    assert "64" in inside.error_of("Name of the order (optional)")
    inside.fill("Name of the order (optional)", "short")
    inside.press("Protect 1 picture")
    inside.says("Complete")


def test_a_slow_upload_warns_before_leaving_and_is_cancelled(inside, files, owner):
    inside.go("/new")
    pictures_choose(inside, files[:6])
    inside.network(upload=2000)
    inside.press("Protect 6 pictures")
    inside.says("of 6 files uploaded")
    leaving = "const event = new Event('beforeunload', {cancelable: true}); dispatchEvent(event); return event.defaultPrevented"
    assert inside.driver.execute_script(leaving)
    inside.go("/orders")
    inside.says("Waiting for files")
    inside.go("/new")
    inside.press("Cancel the order")
    inside.press("Cancel the order", "dialog button")
    inside.says("Three steps")
    inside.network()
    assert not inside.driver.execute_script(leaving)
    inside.wait(lambda: owner.get("/v2/orders").data["orders"][0]["status"] == "failed", "the cancelled order")


def test_an_upload_survives_a_restart_of_the_service(inside, files, stack):
    inside.go("/new")
    pictures_choose(inside, files[:6])
    # The restart is between the creation and the first upload, because uploads are held back until the pool is stopped.
    inside.driver.execute_script("""
        const send = XMLHttpRequest.prototype.send;
        window.held = [];
        XMLHttpRequest.prototype.send = function (body) { window.held.push(() => send.call(this, body)); };
        window.release = () => { XMLHttpRequest.prototype.send = send; for (const one of window.held) one(); };""")
    inside.press("Protect 6 pictures")
    inside.wait(lambda: inside.driver.execute_script("return window.held.length") == 4, "four uploads at a time")
    stack.part("stop", "api")
    try:
        inside.driver.execute_script("window.release()")
        inside.says("The upload will continue automatically.")
        # A screen reader announces the notice once, without the countdown.
        notice = inside.driver.execute_script("return document.querySelector('.progress [role=status] .notice').innerText")
        hidden = inside.driver.execute_script("return document.querySelector('.progress .notice [aria-hidden=true]').innerText")
        assert "The service is not reachable." in notice and re.fullmatch(r"Next attempt in \d+ s\.", hidden)
        inside.picture("upload-paused-1440-light")
    finally:
        stack.part("start", "api")
    inside.says(ENDED)


def test_a_restart_of_the_console_is_waited_for(inside, stack):
    stack.part("stop", "console")
    try:
        inside.go("/orders", "main")
        inside.says("The service is not responding at the moment")
    finally:
        stack.part("start", "console")
    inside.says("No orders yet")


def test_an_expired_upload_link_is_renewed(inside, files):
    inside.go("/new")
    pictures_choose(inside, files[:2])
    # The first upload gets the response to an expired link.
    inside.driver.execute_script("""
        const send = XMLHttpRequest.prototype.send;
        XMLHttpRequest.prototype.send = function () {
          XMLHttpRequest.prototype.send = send;
          window.expired = true;
          for (const [name, value] of [["status", 403], ["responseText", JSON.stringify({code: "URL_EXPIRED", message: "expired"})]])
            Object.defineProperty(this, name, {value});
          this.onloadend();
        };""")
    inside.press("Protect 2 pictures")
    inside.says(ENDED)
    assert inside.driver.execute_script("return window.expired")


def test_the_others_go_on_without_a_file_that_the_service_refuses(inside, files, owner):
    inside.go("/new")
    pictures_choose(inside, files[:3])
    # The page finds most of these files before the upload, so the service's refusal of the first file is simulated.
    inside.driver.execute_script("""
        const send = XMLHttpRequest.prototype.send;
        XMLHttpRequest.prototype.send = function () {
          XMLHttpRequest.prototype.send = send;
          const body = {code: "UNSUPPORTED_MEDIA_TYPE", message: "The file is not accepted.", reason: "file_empty", params: {}};
          for (const [name, value] of [["status", 415], ["responseText", JSON.stringify(body)]]) Object.defineProperty(this, name, {value});
          this.onloadend();
        };""")
    inside.press("Protect 3 pictures")
    inside.says("1 file was refused", "The file is empty.")
    inside.press("Continue with 2 files")
    inside.says(ENDED, "2 files")
    assert [order["status"] for order in owner.get("/v2/orders").data["orders"]] == ["complete", "failed"]


def test_an_interrupted_order_is_resumed_after_a_reload(inside, owner, files, stack):
    made = owner.post("/v2/orders/anti-ai", {"idempotencyKey": "interrupted", "files": [{"fileName": path.name} for path in files[:2]]})
    assert made.status == 201, made
    inside.open(f"/orders/{made.data['orderId']}")
    inside.says("Files are missing", files[0].name)
    inside.give(files[:1])
    inside.says("Still missing:", files[1].name)
    inside.give(files[:2])
    inside.says(ENDED)


def test_a_failed_picture_is_explained_and_the_order_is_repeated(inside, tmp_path, files):
    whole = files[0].read_bytes()
    cut = tmp_path / "cut.jpg"
    cut.write_bytes(pictures.jpeg(400, 300)[:-900] + b"\xff\xd9")
    good = tmp_path / files[0].name
    good.write_bytes(whole)
    inside.go("/new")
    pictures_choose(inside, [cut, good])
    inside.press("Protect 2 pictures")
    inside.says("Some pictures could not be processed", "The file is damaged.", "Export the picture again")
    inside.press("Order again")
    inside.says("2 pictures ready")


def test_an_order_is_deleted_after_a_question(inside, files):
    inside.go("/new")
    pictures_choose(inside, files[:1])
    inside.press("Protect 1 picture")
    inside.says("Complete")
    inside.press("Delete")
    inside.press("Cancel", "dialog button")
    inside.press("Delete")
    inside.press("Delete", "dialog button")
    inside.says("Deleted on", "Someone with access to this account", "Order again to get new ones.")
    assert "The number is the share" not in inside.text()
    inside.go("/orders")
    inside.wait(lambda: "Deleted" in inside.all("tbody tr")[0].text, "the deleted order")


def test_an_order_in_progress_is_cancelled(inside, files, stack):
    # Without a worker the order stays in progress.
    stack.part("stop", "worker")
    try:
        inside.go("/new")
        pictures_choose(inside, files[:1])
        inside.press("Protect 1 picture")
        inside.says("We are working on your pictures")
        inside.press("Delete")
        inside.says("The order will be cancelled")
        inside.press("Delete", "dialog button")
        inside.says("The order was cancelled.", "Order again")
    finally:
        stack.part("start", "worker")


def test_the_url_holds_the_state_of_the_list(inside, owner, files):
    for number in range(22):
        assert owner.post("/v2/orders/anti-ai", {"idempotencyKey": f"list-{number}", "orderName": f"series {number}",
                                                 "files": [{"fileName": "a.jpg"}]}).status == 201
    inside.open("/orders")
    inside.says("series 21", "Page 1 of 2, 22 in total")
    inside.press("Next")
    inside.says("series 1", "Page 2 of 2")
    assert inside.path == "/orders?page=2"
    inside.driver.back()
    inside.says("Page 1 of 2")
    inside.choose("Status", "complete")
    inside.says("No order matches this search")
    inside.press("Show all orders")
    inside.fill("Search", "series 7")
    inside.wait(lambda: len(inside.all("tbody tr")) == 1, "one order")
    assert "keyword=series+7" in inside.path
    inside.press("series 7")
    inside.says("Files are missing")
    inside.driver.back()
    inside.wait(lambda: len(inside.all("tbody tr")) == 1 and inside.field("Search").get_attribute("value") == "series 7", "the search again")


def test_metadata_is_shown_and_leads_to_the_orders_that_have_it(inside, owner):
    def make(key, **metadata):
        return owner.post("/v2/orders/anti-ai", {"idempotencyKey": key, "orderName": key, "files": [{"fileName": "a.jpg"}], "metadata": metadata}).data["orderId"]
    order = make("with-pairs", customer="A & B [#1]", note="", **{"ref": "x" * 300})
    make("same-customer", customer="A & B [#1]")
    make("other-customer", customer="C")
    inside.go(f"/orders/{order}", "main")
    inside.says("Your data", "customer", "A & B [#1]", "x" * 300)
    for width in (390, 1440):
        inside.size(width)
        assert inside.overflow() == ""
        inside.picture(f"order-metadata-{width}-light")
    inside.press("A & B [#1]")
    inside.says("Only orders with", "customer: A & B [#1]")
    inside.wait(lambda: len(inside.all("tbody tr")) == 2, "two orders")
    for width in (390, 1440):
        inside.size(width)
        assert inside.overflow() == ""
        inside.picture(f"orders-metadata-{width}-light")
    inside.choose("Status", "complete")
    inside.says("No order matches this search")
    inside.choose("Status", "")
    inside.press("Remove the filter customer: A & B [#1]")
    inside.wait(lambda: len(inside.all("tbody tr")) == 3, "all orders")
    assert inside.path == "/orders"
    inside.open(f"/orders?metadata%5Bref%5D={'x' * 300}")
    inside.wait(lambda: len(inside.all("tbody tr")) == 1, "the order with a long value")
    for width in (390, 1440):
        inside.size(width)
        assert inside.overflow() == ""


def test_an_order_of_another_account_does_not_exist(inside, other):
    made = other.post("/v2/orders/anti-ai", {"idempotencyKey": "foreign", "files": [{"fileName": "a.jpg"}]})
    inside.go(f"/orders/{made.data['orderId']}", "main")
    inside.says("This order does not exist")


@pytest.mark.parametrize("language, words", [("ko", "최근 7일"), ("en", "The last 7 days")])
def test_the_overview_shows_the_results_of_the_week(inside, owner, files, language, words):
    inside.go("/new")
    pictures_choose(inside, files[:1])
    inside.press("Protect 1 picture")
    inside.says("Complete")
    inside.go("/account")
    inside.choose("Language", language)
    inside.wait(lambda: inside.driver.execute_script("return document.documentElement.lang") == language, language)
    inside.open("/", ".chart canvas")
    inside.says(words)
    inside.wait(lambda: inside.all(".figure strong")[0].text == "1", "one result")


def test_an_upload_continues_while_the_user_looks_at_another_page(inside, files, owner):
    inside.go("/new")
    pictures_choose(inside, files[:4])
    inside.network(upload=100_000)
    inside.press("Protect 4 pictures")
    inside.says("of 4 files uploaded")
    inside.go("/account")
    inside.wait(lambda: owner.get("/v2/orders").data["orders"][0]["status"] == "complete", "the complete order")
    inside.network()
    # The next order begins with an empty list.
    inside.go("/new")
    inside.says("Choose at least one picture first.")
