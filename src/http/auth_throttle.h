/*
 * Throttle for addresses that send invalid API keys. An address gets a limited number of 401 responses a
 * minute, then 429. A valid key is never rejected, because a key is looked up before it counts, and auth.c
 * caches invalid keys.
 *
 * An IPv6 address counts by its first 64 bits, because a client usually has a whole /64. Each process counts
 * separately, so a pool of N processes allows N times as many. nginx limits requests without a key
 * (nginx/http.conf). This module must not depend on HTTP or the database.
 */
#ifndef HTTP_AUTH_THROTTLE_H
#define HTTP_AUTH_THROTTLE_H

#include <stdint.h>

enum { auth_throttle_tries_max = 60, auth_throttle_window_ms = 60000 };

/* Counts an invalid key of the address. Returns 0, or the seconds until the address may send the next key. */
unsigned auth_throttle_count(const char *address);

/* Resets all addresses (tests). */
void auth_throttle_forget(void);

#endif
