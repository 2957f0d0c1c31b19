/*
 * The choice among the servers of database.hosts.  It knows no driver and no SQL.
 *
 * The state is in shared memory: all processes that are forked after hosts_new use the same server, so one
 * that finds it away moves the others too.  All functions are atomic.  Times are monotonic, in ms.
 */
#ifndef BASE_HOSTS_H
#define BASE_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

struct hosts;

/* The first server is in use.  Free with hosts_free. */
struct hosts *hosts_new(void);
void hosts_free(struct hosts *hosts);

/* The index of the server in use. */
unsigned hosts_current(const struct hosts *hosts);

/* Uses a server; true when another one was in use. */
bool hosts_use(struct hosts *hosts, unsigned host, int64_t now_ms);

/* The time of the last change of server; 0: there was none. */
int64_t hosts_changed_ms(const struct hosts *hosts);

/* Notes a server that was away or not ready.  For a second it is tried only after all others. */
void hosts_failed(struct hosts *hosts, unsigned host, int64_t now_ms);
bool hosts_is_suspect(const struct hosts *hosts, unsigned host, int64_t now_ms);

/*
 * The next server before the one in use that this process should probe; -1: none now.  Of all processes one
 * gets a server, once a second.
 */
int hosts_probe(struct hosts *hosts, int64_t now_ms);

/*
 * Notes the result of a probe.  True when the server was ready at each probe for back_ms: it can be used
 * again.  A probe that timed out delays the next one by ten seconds: each costs a request that time.
 */
bool hosts_probed(struct hosts *hosts, unsigned host, bool is_ready, int64_t now_ms, int64_t back_ms);
void hosts_probe_timed_out(struct hosts *hosts, int64_t now_ms);

#endif
