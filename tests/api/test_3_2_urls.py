"""Contract 3.1, 3.2, 3.4 and 9: files that the service fetches itself."""
import io
import time
import zipfile

import pytest

import pictures
from client import ORDERS
from marks import extract, results
from remotes import Remotes


@pytest.fixture(scope="module")
def remotes():
    made = Remotes()
    yield made
    made.close()


@pytest.fixture(scope="module")
def photo(remotes):
    data = pictures.jpeg(320, 240, seed=61)
    remotes.gives.update({"/good.jpg": data, "/large.jpg": pictures.jpeg(500, 400, seed=62), "/hang": "hang",
                         "/endless": "endless", "/gone": (404, {}, b"no"), "/broken.jpg": data[:900] + bytes(100)})
    return data


@pytest.fixture(scope="module", autouse=True)
def short(stack, photo):
    """Short timeouts and backoffs. The number of attempts and the reasons for retries stay the same."""
    with stack.configured("worker", "retry_first_ms", "200"):
        yield


def by_url(client, remotes, paths, seconds=300, **fields):
    """Waits for a with-urls order; paths are on remotes, or whole URLs."""
    files = [{"fileName": f"{number}.jpg", "imageUrl": path if "://" in path else remotes.url(path)}
             for number, path in enumerate(paths)]
    created = client.create(files, kind="anti-ai/with-urls", **fields)
    assert created.status == 201, created
    return client.wait(created.data["orderId"], seconds)


def failures(client, remotes, paths):
    """Returns code and message of each file of an order in which all files fail."""
    order = by_url(client, remotes, paths)
    assert order["status"] == "failed", order
    return [tuple(line.split(": ", 2)[1:]) for line in order["errors"].splitlines()]


def failure(client, remotes, path):
    return failures(client, remotes, [path])[0]


def test_with_urls_answers_in_progress_and_no_files(client, remotes):
    answer = client.create([{"fileName": "a.jpg", "imageUrl": remotes.url("/good.jpg")}], kind="anti-ai/with-urls")
    assert answer.status == 201 and answer.data["status"] == "inProgress"
    assert set(answer.data) == {"orderName", "orderId", "status"}
    client.wait(answer.data["orderId"])


def test_a_fetched_file_is_protected_and_needs_no_confirm(client, remotes, photo):
    order = by_url(client, remotes, ["/good.jpg"])
    assert order["status"] == "complete", order
    [(name, data)] = results(client, order["orderId"])
    assert name == "0.jpg" and pictures.decode(data).size == (320, 240) and data != photo


def test_anti_ai_takes_uploads_and_urls_in_one_order(client, remotes, png):
    created = client.create([{"fileName": "a.jpg", "originalFileUrl": remotes.url("/good.jpg")}, {"fileName": "b.png"}])
    assert created.data["status"] == "pending"
    first, second = created.data["files"]
    assert "uploadUrl" not in first and first["originalFileUrl"] == remotes.url("/good.jpg")
    assert client.upload(second["uploadUrl"], png).status == 201
    assert client.confirm(created.data["orderId"]).status == 200
    order = client.wait(created.data["orderId"])
    assert order["status"] == "complete" and [name for name, _ in results(client, order["orderId"])] == ["a.jpg", "b.png"]


def test_embedding_takes_urls_and_marks_every_copy(client, remotes):
    before = remotes.count("/large.jpg")
    created = client.create([{"fileName": "p.jpg", "originalFileUrl": remotes.url("/large.jpg"),
                              "watermarks": [{"text": "one"}, {"text": "two"}]}], kind="wtr-embed")
    assert created.data["status"] == "inProgress"
    order = client.wait(created.data["orderId"])
    found = results(client, order["orderId"])
    assert [name for name, _ in found] == ["p-1.jpg", "p-2.jpg"]
    assert [extract(client, data)["watermarkText"] for _, data in found] == ["one", "two"]
    assert remotes.count("/large.jpg") == before + 1


def test_a_mixed_embedding_order_starts_with_its_last_upload(client, remotes):
    marks = [{"text": "m"}]
    created = client.create([{"fileName": "p.jpg", "originalFileUrl": remotes.url("/large.jpg"), "watermarks": marks},
                             {"fileName": "q.png", "watermarks": marks}], kind="wtr-embed")
    assert created.data["status"] == "pending"
    assert client.upload(created.data["files"][1]["uploadUrl"], pictures.png(300, 300)).status == 201
    order = client.wait(created.data["orderId"])
    assert order["status"] == "complete" and order["completedFileCount"] == 2


@pytest.mark.parametrize("hops, is_good", [(3, True), (4, False)])
def test_at_most_three_redirects_are_followed(client, remotes, hops, is_good):
    for hop in range(hops):
        remotes.gives[f"/hop{hops}-{hop}"] = (302, {"Location": f"/hop{hops}-{hop + 1}"}, b"moved")
    remotes.gives[f"/hop{hops}-{hops}"] = remotes.gives["/good.jpg"]
    order = by_url(client, remotes, [f"/hop{hops}-0"])
    assert order["status"] == ("complete" if is_good else "failed")
    assert is_good or order["errors"].startswith("0.jpg: SOURCE_REFUSED: ")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_client_error_of_the_source_is_not_retried(client, remotes, status):
    remotes.gives[f"/status{status}"] = (status, {}, b"no " * 100)
    code, sentence = failure(client, remotes, f"/status{status}")
    assert code == "SOURCE_REFUSED" and str(status) in sentence
    assert remotes.count(f"/status{status}") == 1


def test_a_server_error_is_retried_with_backoff_until_it_goes(client, remotes, photo):
    paths = {f"/flaky{status}": [(status, {}, b"later"), (status, {}, b"later"), photo] for status in (500, 503, 429)}
    remotes.gives.update(paths)
    assert by_url(client, remotes, paths)["completedFileCount"] == len(paths)
    for path in paths:
        at = remotes.times(path)
        assert len(at) == 3 and min(at[2] - at[1], at[1] - at[0]) > 0.15, f"{path}; test_job.c has that the waits double"


def test_retry_after_of_a_source_delays_the_retry(client, remotes, photo):
    paths = {f"/asks{status}": [(status, {"Retry-After": "4"}, b"later"), photo] for status in (429, 503)}
    remotes.gives.update(paths)
    assert by_url(client, remotes, paths)["completedFileCount"] == len(paths)
    for path in paths:
        first, second = remotes.times(path)
        assert second - first > 3.9, path


def test_retry_after_is_limited_to_the_longest_backoff(client, stack, remotes, photo):
    """A wait is at most 15 minutes (job_wait_max_ms), even if Retry-After asks for more."""
    remotes.gives["/asks-a-day"] = [(503, {"Retry-After": "86400"}, b"later"), photo]
    created = client.create([{"fileName": "a.jpg", "imageUrl": remotes.url("/asks-a-day")}], kind="anti-ai/with-urls")
    order, waits = created.data["orderId"], []
    end = time.monotonic() + 120
    while not waits and time.monotonic() < end:
        time.sleep(0.2)
        waits = stack.sql("SELECT TIMESTAMPDIFF(SECOND, updated_at, available_at) FROM jobs "
                          f"WHERE order_id = {order} AND status = 'queued' AND failure_count = 1")
    assert waits == [["900"]]
    stack.ctl("order", "retry", order)
    assert client.wait(order)["status"] == "complete" and remotes.count("/asks-a-day") == 2


def test_a_failing_source_is_unreachable_after_five_attempts(client, remotes):
    remotes.gives["/down"] = 503
    code, sentence = failure(client, remotes, "/down")
    assert code == "SOURCE_UNREACHABLE" and "503" in sentence and remotes.count("/down") == 5


def test_a_source_that_hangs_is_unreachable(client, stack, remotes):
    begun, end = time.monotonic(), time.monotonic() + 60
    with stack.configured("outgoing", "fetch_timeout_s", "2"):
        assert failure(client, remotes, "/hang")[0] == "SOURCE_UNREACHABLE"
    assert time.monotonic() - begun > 10
    while remotes.count("/hang") < 5 and time.monotonic() < end:
        time.sleep(0.1)  # the source may detect a closed connection later than the service
    assert remotes.count("/hang") == 5


def test_a_closed_port_is_unreachable(client, remotes):
    assert failure(client, remotes, "http://127.0.0.1:1/a.jpg")[0] == "SOURCE_UNREACHABLE"


def test_an_answer_that_is_cut_off_is_fetched_again(client, remotes, photo):
    remotes.gives["/cut"] = [("cut", photo), photo]
    assert by_url(client, remotes, ["/cut"])["status"] == "complete"
    assert remotes.count("/cut") == 2


def test_a_file_over_the_limit_is_cut_off_while_it_is_read(client, stack, remotes):
    with stack.configured("store", "upload_max_bytes", "1000000"):
        code, sentence = failure(client, remotes, "/endless")
    assert code == "SOURCE_TOO_LARGE" and "1000000" in sentence and remotes.count("/endless") == 1


def test_a_file_that_announces_too_much_is_not_read(client, remotes):
    remotes.gives["/announced"] = (200, {"Content-Length": str(10 ** 12)}, b"\xff\xd8\xff")
    assert failure(client, remotes, "/announced")[0] == "SOURCE_TOO_LARGE"


@pytest.mark.parametrize("body", [b"<html>no picture</html>" * 50, b"", b"GIF89a" + bytes(200)], ids=["html", "empty", "gif"])
def test_a_source_that_is_no_image_is_refused_by_its_first_bytes(client, remotes, body):
    remotes.gives["/nopicture"] = body
    before = remotes.count("/nopicture")
    assert failure(client, remotes, "/nopicture")[0] == "IMAGE_FORMAT_UNSUPPORTED"
    assert remotes.count("/nopicture") == before + 1


def test_addresses_that_are_not_public_are_refused(client, remotes):
    urls = ["http://10.0.0.1/a.jpg", "http://169.254.169.254/latest/meta-data/", "http://[::1]/a.jpg",
            "http://[::ffff:10.0.0.1]/a.jpg", "http://[64:ff9b::a00:1]/a.jpg", "http://0xa000001/a.jpg"]
    answers = failures(client, remotes, urls)
    assert len(answers) == len(urls)
    for url, (code, sentence) in zip(urls, answers):
        assert code == "SOURCE_UNREACHABLE" and "or its address or port is not allowed" in sentence, url


def test_a_redirect_to_an_address_that_is_not_public_is_refused(client, remotes):
    remotes.gives["/inwards"] = (302, {"Location": "http://10.0.0.1/a.jpg"}, b"")
    answers = failures(client, remotes, ["/inwards", "http://no-such-name.invalid/a.jpg"])
    assert [code for code, _ in answers] == ["SOURCE_UNREACHABLE"] * 2 and len(set(answers)) == 1, answers


def test_a_redirect_to_another_scheme_is_refused(client, remotes):
    remotes.gives["/file"] = (302, {"Location": "file:///etc/passwd"}, b"")
    assert failure(client, remotes, "/file")[0] == "SOURCE_REFUSED"


def test_without_the_operators_word_loopback_is_refused(client, stack, remotes):
    with stack.configured("outgoing", "allow_addresses", ""):
        assert failure(client, remotes, "/good.jpg")[0] == "SOURCE_UNREACHABLE"


def test_a_port_that_the_operator_does_not_allow_is_refused(client, stack, remotes):
    with stack.configured("outgoing", "allow_ports", ""):
        answer = client.create([{"fileName": "a.jpg", "imageUrl": remotes.url("/good.jpg")}], kind="anti-ai/with-urls")
        assert answer.status == 400 and answer.fields() == ["files[0].imageUrl"], answer
        assert "port" in answer.json["message"]


def test_no_credentials_and_no_cookies_go_out(client, remotes, photo):
    remotes.gives["/cookie"] = (302, {"Location": "/cookie-after", "Set-Cookie": "a=b"}, b"")
    remotes.gives["/cookie-after"] = photo
    assert by_url(client, remotes, ["/cookie"])["status"] == "complete"
    sent = {name.lower() for path in ("/cookie", "/cookie-after") for name in remotes.headers(path)}
    assert sent <= {"host", "user-agent", "accept", "accept-encoding"}, sent


def test_a_redirect_to_a_url_with_credentials_is_refused(client, remotes, photo):
    remotes.gives["/welcome"] = photo
    remotes.gives["/passes-on"] = (302, {"Location": remotes.url("/welcome").replace("://", "://user:word@")}, b"")
    assert failure(client, remotes, "/passes-on")[0] == "SOURCE_REFUSED" and remotes.count("/welcome") == 0


def test_fetched_inputs_are_deleted_at_the_end(client, stack, remotes):
    order = by_url(client, remotes, ["/good.jpg", "/gone"])["orderId"]
    stack.settled(order)
    assert stack.stored(order) == ["out", "thumb"]


def test_a_url_of_a_source_is_in_no_log(client, stack, remotes, photo):
    import os
    remotes.gives["/secret-path-of-a-source?signature=abcdef"] = photo
    by_url(client, remotes, ["/secret-path-of-a-source?signature=abcdef"])
    with open(os.path.join(stack.environment["IMGWARD_LOG"], "worker.log"), encoding="utf-8") as log:
        assert "secret-path-of-a-source" not in log.read()


def test_a_hundred_files_by_url_end_with_the_right_status(client, stack, remotes, photo):
    kinds = {"/good.jpg": None, "/gone": "SOURCE_REFUSED", "/hang": "SOURCE_UNREACHABLE", "/endless": "SOURCE_TOO_LARGE",
             "/broken.jpg": "IMAGE_CORRUPT", "/flaky": None}
    paths = []
    for number in range(100):
        kind = list(kinds)[number % 20] if number % 20 < len(kinds) else "/good.jpg"
        if kind == "/flaky":
            kind = f"/flaky-{number}"
            remotes.gives[kind] = [503, photo]
        paths.append(kind)
    with stack.configured("store", "upload_max_bytes", "1000000"), stack.configured("outgoing", "fetch_timeout_s", "4"):
        order = by_url(client, remotes, paths, 500)
    wanted = {f"{number}.jpg": kinds.get(path) for number, path in enumerate(paths)}
    failed = dict(line.split(": ")[:2] for line in order["errors"].splitlines())
    assert failed == {name: code for name, code in wanted.items() if code}
    assert order["status"] == "complete" and order["completedFileCount"] == 80
    answer = client.get(f"{ORDERS}/{order['orderId']}/download").data
    archive = zipfile.ZipFile(io.BytesIO(client.request("GET", answer["downloadUrl"], key=False).body))
    assert archive.testzip() is None and archive.namelist() == [name for name, code in wanted.items() if not code]
    assert remotes.open_most > 4
