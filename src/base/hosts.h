/*
 * The choice among the servers of database.hosts. This module does not depend on a driver or on SQL.
 *
 * The state is in shared memory, so all processes that are forked after hosts_new use the same server. If one
 * process finds the server unavailable and selects another, all processes follow. All functions are atomic.
 * Times are monotonic, in ms.
 */
#ifndef BASE_HOSTS_H
#define BASE_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

struct hosts;

/* Creates the state with the first server in use. Free it with hosts_free. */
struct hosts *hosts_new(void);
void hosts_free(struct hosts *hosts);

/* Returns the index of the server in use. */
unsigned hosts_current(const struct hosts *hosts);

/* Selects a server; returns true if another server was in use. */
bool hosts_use(struct hosts *hosts, unsigned host);

/*
 * Records that a server was unavailable or not ready. For one second, the server is tried only after all
 * others.
 */
void hosts_failed(struct hosts *hosts, unsigned host, int64_t now_ms);
bool hosts_is_suspect(const struct hosts *hosts, unsigned host, int64_t now_ms);

/*
 * Returns a server that this process should probe now: one that precedes the server in use. Returns -1 if
 * there is nothing to probe. Only one of all processes gets a server, once a second.
 */
int hosts_probe(struct hosts *hosts, int64_t now_ms);

/*
 * Records the result of a probe. Returns true if every probe found the server ready for back_ms, so that it
 * can be used again. After a probe that timed out, the next probe follows ten seconds later, because each
 * probe delays a request by the timeout.
 */
bool hosts_probed(struct hosts *hosts, unsigned host, bool is_ready, int64_t now_ms, int64_t back_ms);
void hosts_probe_timed_out(struct hosts *hosts, int64_t now_ms);

#endif
