/*
 * Requests in progress: how many requests of one account the pool serves at the
 * same time, and how many of them are expensive.
 *
 * The table is in shared memory: one slot for each process of the pool. A process enters its request before
 * the work and leaves after it. The supervisor clears the slot of a process that died. So a request costs no
 * round trip, a killed process leaves no count behind, and the limits apply while Redis is unavailable. Each
 * pool counts separately.
 *
 * If the table is NULL, as in unit tests, nothing is limited.
 */
#ifndef HTTP_IN_FLIGHT_H
#define HTTP_IN_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

/* Retry-After of a refused request; an account has at most one request of each expensive kind in progress. */
enum { in_flight_retry_s = 1 };
enum in_flight_kind { IN_FLIGHT_PLAIN, IN_FLIGHT_SEARCH, IN_FLIGHT_WHOLE_LIST };

struct in_flight;

/* Allocates the shared table; call it before forking.  The caller owns the result. */
struct in_flight *in_flight_new(unsigned slot_count);
void in_flight_free(struct in_flight *table);

/*
 * Enters a request. Returns false, without entering it, if the account already has that many in progress. A
 * slot has one request at a time.
 */
bool in_flight_enter(struct in_flight *table, unsigned slot, int64_t account_id, unsigned most);

/*
 * Marks the entered request as expensive. Returns false if the account already has a request of this kind in
 * progress.
 */
bool in_flight_mark(struct in_flight *table, unsigned slot, enum in_flight_kind kind);

/* Clears a slot after its request ended or its process died. */
void in_flight_leave(struct in_flight *table, unsigned slot);

#endif
