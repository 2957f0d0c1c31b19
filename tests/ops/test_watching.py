"""/healthz, /readyz, /metrics, and the same information from imgwardctl."""
import json
import os
import re
import shutil
import subprocess
import time

import pytest

import pictures
from client import Client

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAMPLE = re.compile(r'^([a-z_]+)(\{([a-zA-Z_]+="[^"\n]*",?)*\})? -?[0-9.e+]+$')


def samples(stack):
    answer = Client(stack).get("/metrics")
    assert answer.status == 200, answer
    return answer.body.decode()


def value(text, name, **labels):
    """Returns the sum of the samples of a metric that have these labels."""
    total = 0.0
    for line in text.splitlines():
        if line.startswith(name + "{") or line.startswith(name + " "):
            if all(f'{key}="{wanted}"' in line for key, wanted in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
    return total


def worker_log(stack):
    with open(os.path.join(stack.environment["IMGWARD_LOG"], "worker.log"), encoding="utf-8") as file:
        return file.read()


def eventually(question, seconds=120):
    end = time.time() + seconds
    while not question():
        assert time.time() < end, "it did not come true"
        time.sleep(0.3)


def heard(stack):
    """Waits for the worker's next heartbeat: then /metrics includes the work that ended before the call."""
    [[now]] = stack.sql("SELECT UTC_TIMESTAMP(3)")
    eventually(lambda: stack.sql(f"SELECT 1 FROM workers WHERE pid = {stack.pid('worker')} AND seen_at > '{now}'"))


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


def test_a_worker_reports_its_work(stack, client):
    heard(stack)
    before = value(samples(stack), "imgward_jobs_total", kind="protect", result="done")
    client.order_whole([("a.jpg", pictures.jpeg(96, 96))])
    eventually(lambda: value(samples(stack), "imgward_jobs_total", kind="protect", result="done") > before)
    text = samples(stack)
    assert value(text, "imgward_image_stage_seconds_total", stage="engine") > 0
    assert value(text, "imgward_worker_up") >= 1
    assert value(text, "imgward_database_up") == value(text, "imgward_redis_up") == 1
    assert value(text, "imgward_store_free_bytes") > 0


def test_every_label_value_of_a_counter_has_a_sample(stack, client):
    """Events that never happened in this stack have a sample, too."""
    eventually(lambda: "imgward_deliveries_total{" in samples(stack))  # the worker's first heartbeat
    text = samples(stack)
    for line in ('imgward_jobs_total{KIND="push",result="cancelled"}', 'imgward_usage_refused_total{KIND="webhooks"}',
                 'imgward_errors_total{KIND="ORDER_CANCELLED"}', 'imgward_image_deaths_total{KIND="timeout"}'):
        name, _, rest = line.partition("{KIND")
        assert re.search(rf"(?m)^{name}{{[^}}]*{re.escape(rest)} [0-9]+$", text), line
    endpoints = set(re.findall(r'imgward_requests_total{endpoint="([^"]+)"', text))
    assert len(endpoints) > 20 and endpoints == set(re.findall(r'imgward_request_seconds_count{endpoint="([^"]+)"', text))
    for endpoint in endpoints:
        assert len(re.findall(re.escape(f'imgward_requests_total{{endpoint="{endpoint}",class=') + '"(none|[1-5]xx)"', text)) == 6


def test_an_order_is_timed_from_its_start_and_its_job_from_the_queue(stack, client):
    """The time of a paused queue counts as time in the queue; the time of a pending order does not count."""
    def sums():
        text = samples(stack)
        return [value(text, f"imgward_{name}_{part}", **labels) for part in ("count", "sum")
                for name, labels in (("order_seconds", {"type": "antiAi"}), ("job_queued_seconds", {"kind": "protect"}))]
    heard(stack)
    before = sums()
    created = client.create()
    client.upload(created.data["files"][0]["uploadUrl"], pictures.jpeg(96, 96))
    pauses = worker_log(stack).count('"event":"queue_paused"')
    stack.ctl("queue", "pause")
    try:
        eventually(lambda: worker_log(stack).count('"event":"queue_paused"') > pauses)
        start = time.monotonic()
        assert client.confirm(created.data["orderId"]).status == 200
        time.sleep(2)
    finally:
        stack.ctl("queue", "resume")
    client.wait(created.data["orderId"])
    took = time.monotonic() - start
    eventually(lambda: sums()[:2] == [before[0] + 1, before[1] + 1])
    order, wait = (after - was for after, was in zip(sums()[2:], before[2:]))
    assert 2 <= wait <= order <= took + 1, (wait, order, took)
    [line] = [line for line in map(json.loads, worker_log(stack).splitlines())
              if line["event"] == "job_done" and str(line["order_id"]) == created.data["orderId"]]
    assert 2000 <= line["queued_ms"] <= 1000 * took


def test_a_refused_file_is_no_failure_of_the_service(stack, client):
    def counts():
        text = samples(stack)
        return [value(text, "imgward_jobs_total", kind="protect", result=result) for result in ("refused", "failed")]
    heard(stack)
    refused, failed = counts()
    whole = pictures.jpeg(400, 300)
    assert client.order_whole([("cut.jpg", whole[:len(whole) // 2])])["status"] == "failed"
    eventually(lambda: counts() == [refused + 1, failed])


def promtool(*words, text=None):
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")
    done = subprocess.run(["promtool", "check", *words], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_promtool_has_no_objection(stack, tmp_path):
    """promtool checks names, units and help texts of the metrics, the alert rules, and the dashboard's queries as rules."""
    assert promtool("metrics", text=samples(stack)) == ""
    folder = os.path.join(ROOT, "packaging", "monitoring")
    assert "SUCCESS" in promtool("rules", os.path.join(folder, "alerts.yml"))
    queries = [target["expr"].replace("$__rate_interval", "5m") for panel in dashboard()["panels"] for target in panel["targets"]]
    assert len(queries) > 15
    rules = {"groups": [{"name": "dashboard", "rules": [{"record": f"query:{at}", "expr": query} for at, query in enumerate(queries)]}]}
    (tmp_path / "rules.json").write_text(json.dumps(rules))
    assert f"{len(queries)} rules found" in promtool("rules", str(tmp_path / "rules.json"))


def dashboard():
    with open(os.path.join(ROOT, "packaging", "monitoring", "grafana.json"), encoding="utf-8") as file:
        return json.load(file)


def dashboard_faults(modules, folder, value):
    """Returns the errors of tsc for a dashboard of the type in Grafana's package @grafana/schema; no member may be unknown."""
    (folder / "dashboard.mts").write_text('import type { Dashboard, Panel } from "@grafana/schema";\n'
                                          "export const dashboard: Omit<Dashboard, \"panels\"> & { panels: Panel[] } = "
                                          + json.dumps(value) + ";\n")
    if not (folder / "node_modules").exists():
        (folder / "node_modules").symlink_to(modules)
    done = subprocess.run([os.path.join(modules, ".bin", "tsc"), "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--pretty",
                           "false", "dashboard.mts"], cwd=folder, capture_output=True, text=True, timeout=300)
    return done.stdout + done.stderr


def test_the_dashboard_has_the_form_of_grafanas_schema(modules, tmp_path):
    whole = dashboard()
    assert dashboard_faults(modules, tmp_path, whole) == ""
    for panel in whole["panels"]:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${source}"} and panel["fieldConfig"]["defaults"]["unit"], panel
        assert [target["refId"] for target in panel["targets"]] == list("ABC")[:len(panel["targets"])]
        assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]
    places = [tuple(panel["gridPos"].values()) for panel in whole["panels"]]
    assert len(set(places)) == len({panel["id"] for panel in whole["panels"]}) == len(places)
    whole["panels"][0]["fieldConfigs"] = {}
    whole["panels"][1]["gridPos"]["w"] = "12"
    faults = dashboard_faults(modules, tmp_path, whole)
    assert "fieldConfigs" in faults or "TS2322" in faults, faults


def test_ready_and_alive(stack):
    assert Client(stack).get("/healthz").body == b"ok\n"
    ready = Client(stack).get("/readyz")
    assert ready.status == 200 and b"database ok" in ready.body and b"store ok" in ready.body


FAR = "192.0.2.1"  # from a block for documentation (RFC 5737), so unused

# Runs nginx in a network namespace with loopback and another address, and prints the response for each path from each
# address.
FAR_AND_NEAR = r"""
ip link set lo up && ip address add $FAR/32 dev lo || exit 77
/usr/sbin/nginx -e "$CONF/error.log" -c "$CONF/nginx.conf" &
nginx=$!
for try in $(seq 600); do (exec 3<>/dev/tcp/127.0.0.1/$PORT) 2>/dev/null && break; sleep 0.1; done
for host in 127.0.0.1 $FAR; do
    for path in healthz readyz metrics no-such-thing; do
        echo "$host $path $(curl -sk --max-time 120 --interface $host -o "$CONF/body" -w '%{http_code}' https://$host:$PORT/$path) $(head -c 300 "$CONF/body" | tr '\n' ' ')"
    done
done
kill $nginx
wait $nginx
"""


@pytest.mark.parametrize("who", ["nginx", "pool"])
def test_other_addresses_get_404_for_monitoring_paths(stack, tmp_path, who):
    etc = os.path.dirname(stack.environment["IMGWARD_CONFIG"])
    port = stack.url.rsplit(":", 1)[1]
    shutil.copytree(os.path.join(etc, "imgward"), tmp_path / "imgward")
    shutil.copy(os.path.join(etc, "nginx.conf"), tmp_path)
    for path in [tmp_path / "nginx.conf", *(tmp_path / "imgward").iterdir()]:
        text = path.read_text().replace("listen 127.0.0.1:", "listen ")
        text = re.sub(r"(?m)^pid .*;", f"pid {tmp_path}/nginx.pid;", text)
        if who == "pool":  # a site whose nginx has no access restriction
            text = text.replace("default     1;\n    127.0.0.0/8", 'default     "";\n    127.0.0.0/8')
        path.write_text(text)
    try:
        done = subprocess.run(["unshare", "--net", "bash", "-c", FAR_AND_NEAR], capture_output=True, text=True, timeout=600,
                              env={**os.environ, "FAR": FAR, "CONF": str(tmp_path), "PORT": port})
    except OSError as error:
        pytest.skip(f"no network namespace is to be had: {error}")
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip("no network namespace is to be had: " + done.stderr.strip())
    lines = [line.split(" ", 3) for line in done.stdout.splitlines()]
    assert len(lines) == 8, done.stdout + done.stderr
    near = {path: status for host, path, status, _ in lines if host != FAR}
    assert near == {"healthz": "200", "readyz": "200", "metrics": "200", "no-such-thing": "404"}, done.stdout
    for host, path, status, body in lines:
        if host == FAR:
            assert status == "404" and '"RESOURCE_NOT_FOUND"' in body, (path, status, body)


def test_metrics_of_alerts_and_dashboard_exist(stack):
    told = set(re.findall(r"^# TYPE ([a-z_]+)", samples(stack), re.M))
    for name in ("alerts.yml", "grafana.json"):
        with open(os.path.join(ROOT, "packaging", "monitoring", name), encoding="utf-8") as file:
            asked = set(re.findall(r"\bimgward_[a-z_]+", file.read()))
        asked = {re.sub("_bucket$", "", metric) for metric in asked}
        assert len(asked) > 8 and asked <= told, asked - told
