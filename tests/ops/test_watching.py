"""/healthz, /readyz, /metrics, and the same on a terminal."""
import os
import re
import time

import pictures
from client import Client

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAMPLE = re.compile(r'^([a-z_]+)(\{([a-zA-Z_]+="[^"\n]*",?)*\})? -?[0-9.e+]+$')


def samples(stack):
    answer = Client(stack).get("/metrics")
    assert answer.status == 200, answer
    return answer.body.decode()


def value(text, name, **labels):
    """The sum of the samples of a name that carry these labels."""
    total = 0.0
    for line in text.splitlines():
        if line.startswith(name + "{") or line.startswith(name + " "):
            if all(f'{key}="{wanted}"' in line for key, wanted in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
    return total


def eventually(question, seconds=20):
    end = time.time() + seconds
    while not question():
        assert time.time() < end, "it did not come true"
        time.sleep(0.3)


def test_the_text_is_that_of_prometheus(stack):
    text = samples(stack)
    names, types = [], {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            assert name not in types, "every metric has one head"
            types[name] = kind
        elif not line.startswith("# HELP "):
            assert SAMPLE.match(line), line
            names.append(re.match(r"[a-z_]+", line)[0])
    for name in names:
        assert name in types or re.sub("_(bucket|sum|count)$", "", name) in types, name


def test_requests_are_counted_over_all_processes(stack, client):
    endpoint = "GET /api/v2/orders"
    before = samples(stack)
    for _ in range(20):
        assert client.list().status == 200
    assert Client(stack, "iw_live_" + "0" * 43).list().status == 401
    after = samples(stack)
    assert value(after, "imgward_requests_total", endpoint=endpoint, **{"class": "2xx"}) - value(
        before, "imgward_requests_total", endpoint=endpoint, **{"class": "2xx"}) == 20
    assert value(after, "imgward_errors_total", code="AUTH_TOKEN_INVALID") > value(
        before, "imgward_errors_total", code="AUTH_TOKEN_INVALID")
    assert value(after, "imgward_request_seconds_count", endpoint=endpoint) - value(
        before, "imgward_request_seconds_count", endpoint=endpoint) == 21


def test_a_refusal_for_too_many_requests_is_counted(stack):
    before = value(samples(stack), "imgward_rate_limited_total")
    limited = stack.account_new(requests_per_minute=1)
    assert [limited.list().status for _ in range(3)] == [200, 429, 429]
    assert value(samples(stack), "imgward_rate_limited_total") - before == 2


def test_a_worker_tells_what_it_did(stack, client):
    before = value(samples(stack), "imgward_jobs_total", kind="protect", result="done")
    client.order_whole([("a.jpg", pictures.jpeg(96, 96))])
    eventually(lambda: value(samples(stack), "imgward_jobs_total", kind="protect", result="done") > before)
    text = samples(stack)
    assert value(text, "imgward_image_stage_milliseconds_total", stage="engine") > 0
    assert value(text, "imgward_worker_up") >= 1
    assert value(text, "imgward_database_up") == value(text, "imgward_redis_up") == 1
    assert value(text, "imgward_store_free_bytes") > 0


def test_ready_and_alive(stack):
    assert Client(stack).get("/healthz").body == b"ok\n"
    ready = Client(stack).get("/readyz")
    assert ready.status == 200 and b"database ok" in ready.body and b"store ok" in ready.body


def test_what_alerts_and_dashboard_ask_for_is_told(stack):
    told = set(re.findall(r"^# TYPE ([a-z_]+)", samples(stack), re.M))
    for name in ("alerts.yml", "grafana.json"):
        with open(os.path.join(ROOT, "packaging", "monitoring", name), encoding="utf-8") as file:
            asked = set(re.findall(r"\bimgward_[a-z_]+", file.read()))
        asked = {re.sub("_bucket$", "", metric) for metric in asked}
        assert len(asked) > 8 and asked <= told, asked - told
