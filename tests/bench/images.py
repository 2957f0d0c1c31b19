"""Throughput of image processing: pictures a second, and the time of each stage.

For each type of order and picture size, it pauses the queue, uploads a batch and resumes the queue. It measures
the time until the last picture's outcome is recorded; the order's archive is written later. The time of the image
processes is split into decoder, engine, encoder, thumbnail (from metrics), other work, and waiting for work. Time
in which the kernel ran other programs is subtracted. In the same run, ImageMagick and libvips re-save the same
files on as many cores, where they are installed.

    bench images                 4 photos of 12 and 12 of 1 megapixel
    bench images --full          100 of each, also anti-AI with low strength
    bench images --photos 40 --only "1 MP extract" --only "12 MP embed"
                                 some rows, with 40 photos each
"""
import argparse
import datetime
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "api"), HERE]

from PIL import Image  # noqa: E402

import pictures  # noqa: E402
from api import parents, tree  # noqa: E402
from client import Stack, environment_read  # noqa: E402
from marks import embed  # noqa: E402

SIZES = {"12 MP": (4000, 3000), "1 MP": (1155, 866)}
STAGES = ("decode", "engine", "encode", "thumbnail")
CORES = len(os.sched_getaffinity(0))


# ---------------------------------------------------------------- photos
def photographs():
    """Returns scaled pictures of tests/bench/pictures, or generated pictures if a release tarball lacks that folder."""
    folder = os.path.join(ROOT, "tests", "bench", "pictures")
    names = sorted(name for name in os.listdir(folder) if name.startswith("kodim")) if os.path.isdir(folder) else []
    if names:
        return [Image.open(os.path.join(folder, name)).convert("RGB") for name in names], "photographs, scaled"
    return [pictures.scene(1536, 1024, seed) for seed in range(4)], "made by tests/api/pictures.py"


def photos(size, count, sources):
    """Yields JPEGs of quality 90; each is a different rotation or mirror image of a source."""
    made = []
    for number in range(min(count, 4 * len(sources))):
        picture = sources[number % len(sources)].resize(size, Image.LANCZOS)
        turned = [picture, picture.transpose(Image.FLIP_LEFT_RIGHT), picture.transpose(Image.FLIP_TOP_BOTTOM),
                  picture.transpose(Image.ROTATE_180)][number // len(sources) % 4]
        out = io.BytesIO()
        turned.save(out, "JPEG", quality=90)
        made.append(out.getvalue())
    return [made[number % len(made)] for number in range(count)]


# ---------------------------------------------------------------- a batch
def upload(client, url, data):
    answer = client.upload(url, data)
    if answer.status != 201:
        sys.exit(f"bench images: upload {answer}")


def batch_anti_ai(client, data, strength):
    ids = []
    for at in range(0, len(data), 100):
        part = data[at:at + 100]
        created = client.create([f"{number}.jpg" for number in range(len(part))], options={"strength": strength}).data
        for file, bytes_ in zip(created["files"], part):
            upload(client, file["uploadUrl"], bytes_)
        client.confirm(created["orderId"])
        ids.append(created["orderId"])
    return ids


def batch_embed(client, data):
    ids = []
    for at in range(0, len(data), 100):
        part = data[at:at + 100]
        created = embed(client, [(f"{number}.jpg", bytes_, ["to whom it may concern"]) for number, bytes_ in enumerate(part)]).data
        for file, bytes_ in zip(created["files"], part):
            upload(client, file["uploadUrl"], bytes_)
        ids.append(created["orderId"])
    return ids


def batch_extract(client, data):
    ids = []
    for number, bytes_ in enumerate(data):
        created = client.post("/api/v2/orders/wtr-extract", {"idempotencyKey": f"bench-{time.time()}-{number}",
                                                             "file": {"fileName": "suspect.jpg"}}).data
        upload(client, created["file"]["uploadUrl"], bytes_)
        ids.append(created["orderId"])
    return ids


def marked(client, order):
    files = client.get(f"/api/v2/orders/{order}/download").data["files"]
    return [client.request("GET", file["downloadUrl"], key=False).body for file in files]


class Line:
    """The worker under test, its CPU times and its log."""

    def __init__(self, stack):
        self.stack = stack
        self.client = stack.account_new()
        self.log = os.path.join(stack.environment["IMGWARD_LOG"], "worker.log")

    def stages(self):
        """Returns the CPU milliseconds of each stage, which the worker's heartbeat updates."""
        text = self.stack.sql("SELECT metrics FROM workers ORDER BY seen_at DESC LIMIT 1")[0][0]
        found = {}
        for line in text.replace("\\n", "\n").splitlines():
            if line.startswith("imgward_image_stage_seconds_total"):
                stage = line.split('stage="')[1].split('"')[0]
                found[stage] = 1000 * float(line.rsplit(" ", 1)[1])
        return found

    def cpu(self):
        """Returns the CPU seconds of the worker's supervisor, and of the rest of the stack."""
        table = parents()
        # tree() includes the supervisor's dead children; the first fields in stat do not.
        with open(f"/proc/{self.stack.pid('worker')}/stat", encoding="ascii", errors="replace") as file:
            words = file.read().rsplit(") ", 1)[1].split()
        own = sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")
        rest = {name: sum(table[pid][1] for pid in tree(table, self.stack.pid(name)) if pid in table)
                for name in ("mariadbd", "nginx", "api", "redis")}
        return {"supervisor": own, **rest}

    def image_processes(self):
        """Returns (pid, nanoseconds running, nanoseconds runnable but waiting for a CPU) of each process."""
        found = []
        for pid in tree(parents(), self.stack.pid("worker")):
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                    name = file.read().strip()
                with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
                    run, ready, _ = map(int, file.read().split())
            except OSError:
                continue
            if name == "imgward-image":
                found.append((pid, run, ready))
        return found

    def events(self, offset):
        with open(self.log, encoding="utf-8") as file:
            file.seek(offset)
            lines = [json.loads(line) for line in file if line.startswith("{")]
        return [(datetime.datetime.fromisoformat(line["ts"].replace("Z", "+00:00")), line) for line in lines]

    def settle(self):
        time.sleep(2.2)  # two heartbeats, so that the metrics are current

    def run(self, make):
        """Queues a batch while the queue is paused, then resumes the queue; returns seconds, stages, CPU and orders."""
        self.stack.ctl("queue", "pause")
        self.settle()
        ids = make()
        stages, cpu, offset = self.stages(), self.cpu(), os.path.getsize(self.log)
        before = self.image_processes()
        self.stack.ctl("queue", "resume")
        events = self.wait(ids, offset)
        cpu_after, after = self.cpu(), dict((pid, (run, ready)) for pid, run, ready in self.image_processes())
        if set(after) != {pid for pid, _, _ in before}:
            sys.exit("bench images: an image process was replaced in mid batch")
        image = sum(after[pid][0] - run for pid, run, _ in before) / 1e9
        ready = sum(after[pid][1] - ready for pid, _, ready in before) / 1e9
        self.settle()
        begun = next(at for at, line in events if line["event"] == "queue_resumed")
        ended = max(at for at, line in events if line["event"] == "job_done" and line["kind"] != "archive")
        told = self.stages()
        return ((ended - begun).total_seconds(), {name: (told.get(name, 0) - stages.get(name, 0)) / 1000 for name in STAGES},
                {"image": image, **{name: cpu_after[name] - cpu[name] for name in cpu}}, ready, len(before), ids)

    def wait(self, ids, offset):
        """Waits until all orders are finished; returns the events. It reads the log, which costs the stack nothing."""
        while True:
            events = self.events(offset)
            ended = {str(line["order_id"]): line["status"] for _, line in events if line["event"] == "order_ended"}
            if set(ids) <= set(ended):
                if "failed" in ended.values():
                    sys.exit("bench images: an order failed")
                return events
            time.sleep(0.2)


# ---------------------------------------------------------------- other programs
def resave(program, folder, count):
    """Returns seconds and CPU seconds to re-save every file at quality 90, with one process per core."""
    commands = {"ImageMagick": 'convert "$0" -quality 90 "$0.out.jpg"', "libvips": 'vips copy "$0" "$0.out.jpg[Q=90]"'}
    if not shutil.which({"ImageMagick": "convert", "libvips": "vips"}[program]):
        return None
    names = "\n".join(os.path.join(folder, f"{number}.jpg") for number in range(count))
    begin, used = time.perf_counter(), os.times()
    subprocess.run(["xargs", "-P", str(CORES), "-n", "1", "sh", "-c", commands[program]], input=names.encode(), check=True,
                   env={**os.environ, "MAGICK_THREAD_LIMIT": "1", "VIPS_CONCURRENCY": "1", "OMP_NUM_THREADS": "1"})
    after = os.times()
    return (time.perf_counter() - begin,
            after.children_user + after.children_system - used.children_user - used.children_system)


def resave_all(name, data, megapixels):
    count = len(data)
    with tempfile.TemporaryDirectory(prefix="imgward-bench.") as folder:
        for number, bytes_ in enumerate(data):
            with open(os.path.join(folder, f"{number}.jpg"), "wb") as file:
                file.write(bytes_)
        for program in ("ImageMagick", "libvips"):
            spent = resave(program, folder, count)
            if spent is None:
                print(f"{name} {program}: not installed (./dev deps bench)")
            else:
                seconds, cpu = spent
                print(f"{name + ' ' + program + ' re-save':<26}{seconds:>8.1f}{count / seconds:>10.2f}"
                      f"{megapixels * count / seconds:>8.1f}{cpu / count:>10.2f}", flush=True)


def print_line(name, count, seconds, megapixels, stages, cpu, ready, remotes):
    own = max(0.001, seconds * remotes - ready)
    other = max(0.0, cpu["image"] - sum(stages.values()))
    rest = sum(cpu[name] for name in ("mariadbd", "nginx", "api", "redis"))
    shares = [*(stages[stage] for stage in STAGES), other, max(0.0, own - cpu["image"])]
    print(f"{name:<26}{seconds:>8.1f}{count / seconds:>10.2f}{megapixels * count / seconds:>8.1f}{cpu['image'] / count:>10.4f}"
          + "".join(f"{100 * share / own:>10.1f}" for share in shares)
          + f"{100 * cpu['supervisor'] / own:>10.1f}{100 * rest / own:>10.1f}{100 * ready / (seconds * remotes):>10.1f}", flush=True)


def bench(stack, counts, is_full, only):
    line = Line(stack)

    def is_wanted(row):
        return not only or any(row == words for words in only)
    sources, what = photographs()
    print(f"machine: {os.cpu_count()} cores, {CORES} of them for this run; load {os.getloadavg()[0]:.1f} before the start; {what}")
    print(f"\n{'':<26}{'seconds':>8}{'photos/s':>10}{'MP/s':>8}{'CPU s':>10}" + "".join(f"{word:>10}" for word in (
        "decode %", "engine %", "encode %", "thumb %", "process %", "waiting %", "superv. %", "others %", "pushed %")))
    for name, (width, height) in SIZES.items():
        count, megapixels = counts[name], width * height / 1e6
        if only and not any(words.startswith(name) for words in only):
            continue
        data = photos((width, height), count, sources)

        def run(kind, make):
            seconds, stages, cpu, ready, remotes, ids = line.run(make)
            if is_wanted(f"{name} {kind}"):
                print_line(f"{name} {kind} × {count}", count, seconds, megapixels, stages, cpu, ready, remotes)
            return ids
        if is_wanted(f"{name} anti-AI, high"):
            run("anti-AI, high", lambda: batch_anti_ai(line.client, data, "high"))
        if is_full and is_wanted(f"{name} anti-AI, low"):
            run("anti-AI, low", lambda: batch_anti_ai(line.client, data, "low"))
        if is_wanted(f"{name} embed") or is_wanted(f"{name} extract"):
            ids = run("embed", lambda: batch_embed(line.client, data))
        if is_wanted(f"{name} extract"):
            suspects = [body for order in ids for body in marked(line.client, order)]
            run("extract", lambda: batch_extract(line.client, suspects))
        if not only:
            resave_all(name, data, megapixels)
    print("\nCPU s: of image processes, a photo.  decode to waiting: shares of the image processes' time; for anti-AI the engine holds the "
          "encodings that it tries;\nprocess is what they do beside their stages.  superv. and others (MariaDB, nginx, pool, Redis): CPU "
          "time beside that, of the same whole.\npushed: how much of the image processes' time others had the cores, each other included.")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true", help="100 photos of each size")
    parser.add_argument("--photos", type=int, help="number of photos of each size")
    parser.add_argument("--only", action="append", metavar="ROW", help='run only this row, such as "12 MP embed"; repeatable')
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # also stops the stack
    counts = {"12 MP": 100, "1 MP": 100} if options.full else {"12 MP": 4, "1 MP": 12}
    counts = {name: options.photos or count for name, count in counts.items()}
    with tempfile.TemporaryDirectory(prefix="imgward-bench.") as var:
        environment = {**os.environ, "IMGWARD_VAR": var}
        subprocess.run([os.path.join(ROOT, "dev"), "up"], env=environment, check=True, stdout=subprocess.DEVNULL)
        try:
            stack = Stack(environment_read(os.path.join(var, "dev.env")))
            with stack.configured("worker", "heartbeat_s", "1"), stack.configured("worker", "images_per_process", "100000"), \
                    stack.configured("worker", "processes", os.environ.get("BENCH_PROCESSES", "0")):
                for verb in ("stop", "start"):
                    stack.part(verb, "worker")
                bench(stack, counts, options.full, options.only)
        finally:
            subprocess.run([os.path.join(ROOT, "dev"), "down"], env=environment, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
