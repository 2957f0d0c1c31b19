"""The load on a site while parts fail and return, and the gaps of service that clients measure."""
import random
import subprocess
import threading
import time

import site_cluster as site_module
from workload import Order, Workload


class Load:
    """Repeats the mixed workload. Three clients measure gaps: reads, creations, whole orders."""

    def __init__(self, site, late_s=0):
        """late_s: the time for which a new order may be missing in another pool."""
        self.site = site
        self.late_s = late_s
        self.is_over = threading.Event()
        self.workloads = []
        self.done = {"read": [], "create": [], "order": []}
        self.pulse = Workload(site.client, site.remotes, site.picture_set, 0, 600)
        self.pulse.late_s = late_s
        self.threads = [threading.Thread(target=act) for act in (self.mix, self.read, self.create, self.order)]
        for thread in self.threads:
            thread.start()

    def mix(self):
        while not self.is_over.is_set():
            workload = Workload(self.site.client, self.site.remotes, self.site.picture_set, len(self.workloads) + 1)
            workload.late_s = self.late_s
            self.workloads.append(workload)
            looker = workload.run()
            workload.is_over.set()
            looker.join()
            # More orders follow when these are done, so that the queue stays short on a slow machine.
            while not self.is_over.wait(1) and self.waiting() > 2:
                pass

    def waiting(self):
        try:
            return int(self.site.stack.sql("SELECT COUNT(*) FROM orders WHERE status = 'inProgress'")[0][0])
        except (OSError, subprocess.SubprocessError):
            return 0

    def note(self, kind, answer, good):
        if answer is not None and answer.status in good:
            self.done[kind].append(time.monotonic())
        elif answer is not None:
            self.pulse.violate(f"{kind}: {answer}")

    def read(self):
        while not self.is_over.wait(0.05):
            self.note("read", self.pulse.ask("read", lambda: self.site.client.list(limit=2)), (200,))

    def create(self):
        while not self.is_over.wait(0.15):
            order = Order("only created")
            order.is_given_up = True
            body = {"idempotencyKey": order.key, "files": [{"fileName": "a.jpg"}]}
            self.pulse.orders.append(order)
            answer = self.pulse.ask("create", lambda: self.site.client.post("/api/v2/orders/anti-ai", body))
            if answer is not None and answer.status == 201:
                order.id = answer.data["orderId"]
                order.ids.add(order.id)
                # The next request may reach another pool, which must find the order.
                end = time.monotonic() + self.late_s
                seen = self.pulse.ask("detail", lambda: self.site.client.detail(order.id))
                while seen is not None and seen.status == 404 and time.monotonic() < end:
                    time.sleep(0.1)
                    seen = self.pulse.ask("detail", lambda: self.site.client.detail(order.id))
                if seen is not None and seen.status != 200:
                    self.pulse.violate(f"an order that was answered is not found: {seen}")
            self.note("create", answer, (201,))

    def order(self):
        """Sends one embedding order after the other, from the creation to the end."""
        while not self.is_over.wait(0.3):
            self.pulse.embed(random.Random(len(self.done["order"])))
            order = next(order for order in reversed(self.pulse.orders) if order.kind == "embed")
            while not self.is_over.wait(0.05):
                answer = self.pulse.ask("detail", lambda: self.site.client.detail(order.id))
                if answer is not None and answer.status == 200 and answer.data["status"] not in ("pending", "inProgress"):
                    self.done["order"].append(time.monotonic())
                    break

    def gap(self, kind, begun, ended):
        """Returns the longest time without a success that touches the interval."""
        times = [at for at in self.done[kind]]
        before = max((at for at in times if at <= begun), default=begun)
        after = min((at for at in times if at >= ended), default=ended)
        points = [before, *(at for at in times if begun < at < ended), after]
        return max(b - a for a, b in zip(points, points[1:]))

    def gaps(self, begun):
        """Returns the gap of each client since begun, and the whole time."""
        ended = time.monotonic()
        return {"whole": ended - begun, **{kind: self.gap(kind, begun, ended) for kind in self.done}}

    def progress(self, seconds=180):
        """Waits until each client had a success after now."""
        begun = time.monotonic()
        for kind, times in self.done.items():
            site_module.until(lambda: times and times[-1] > begun, f"a success of {kind}", seconds)

    def close(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        whole = Workload(self.site.client, self.site.remotes, self.site.picture_set, 0)
        for one in (*self.workloads, self.pulse):
            whole.orders += one.orders
            whole.violations += one.violations
            whole.requests += one.requests
            whole.transient += one.transient
        return whole
