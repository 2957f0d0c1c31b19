#include "base/hosts.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/endpoint.h"

enum { suspect_ms = 1000, probe_every_ms = 1000, probe_pause_ms = 10000 };

struct hosts {
    _Atomic unsigned current;
    _Atomic unsigned probe_next;
    _Atomic int64_t probe_ms;                        /* time of the next probe */
    _Atomic int64_t suspect_until_ms[endpoints_max]; /* 0 if the server answered last time */
    _Atomic int64_t ready_since_ms[endpoints_max];   /* since when each probe found the server ready; 0 if the
                                                        server is not ready */
};

struct hosts *hosts_new(void)
{
    struct hosts *hosts =
        mmap(NULL, sizeof *hosts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (hosts == MAP_FAILED)
        abort();
    return hosts;
}

void hosts_free(struct hosts *hosts)
{
    if (hosts != NULL)
        munmap(hosts, sizeof *hosts);
}

unsigned hosts_current(const struct hosts *hosts)
{
    return atomic_load_explicit(&hosts->current, memory_order_relaxed);
}

bool hosts_use(struct hosts *hosts, unsigned host)
{
    hosts->suspect_until_ms[host] = 0;
    if (atomic_exchange(&hosts->current, host) == host)
        return false;
    for (unsigned i = 0; i < endpoints_max; i++)
        hosts->ready_since_ms[i] = 0;
    return true;
}

void hosts_failed(struct hosts *hosts, unsigned host, int64_t now_ms)
{
    hosts->suspect_until_ms[host] = now_ms + suspect_ms;
    hosts->ready_since_ms[host] = 0;
}

bool hosts_is_suspect(const struct hosts *hosts, unsigned host, int64_t now_ms)
{
    return hosts->suspect_until_ms[host] > now_ms;
}

int hosts_probe(struct hosts *hosts, int64_t now_ms)
{
    unsigned current = hosts_current(hosts);
    int64_t due_ms = hosts->probe_ms;
    if (current == 0 || now_ms < due_ms ||
        !atomic_compare_exchange_strong(&hosts->probe_ms, &due_ms, now_ms + probe_every_ms))
        return -1;
    /* Watches the first server that was ready; if none was, each server in turn. */
    for (unsigned i = 0; i < current; i++)
        if (hosts->ready_since_ms[i] != 0)
            return (int)i;
    return (int)(atomic_fetch_add(&hosts->probe_next, 1) % current);
}

bool hosts_probed(struct hosts *hosts, unsigned host, bool is_ready, int64_t now_ms, int64_t back_ms)
{
    if (!is_ready)
        hosts->ready_since_ms[host] = 0;
    else if (hosts->ready_since_ms[host] == 0)
        hosts->ready_since_ms[host] = now_ms;
    return is_ready && now_ms - hosts->ready_since_ms[host] >= back_ms;
}

void hosts_probe_timed_out(struct hosts *hosts, int64_t now_ms)
{
    hosts->probe_ms = now_ms + probe_pause_ms;
}
