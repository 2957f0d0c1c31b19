/*
 * Throttle for addresses that send invalid API keys.  An address gets a limited
 * number of 401 answers a minute, then 429.  The throttle never refuses a valid
 * key: a key is looked up before it counts, and auth.c remembers the invalid ones.
 *
 * An IPv6 address counts by its first 64 bits, because a client usually has a
 * whole /64.  Each process counts separately: a pool of N processes allows N
 * times as many.  nginx limits requests without a key (nginx/http.conf).  Must
 * not know HTTP or the database.
 */
#ifndef HTTP_AUTH_THROTTLE_H
#define HTTP_AUTH_THROTTLE_H

#include <stdint.h>

enum { auth_throttle_tries_max = 60, auth_throttle_window_ms = 60000 };

/* Counts an invalid key of the address.  0, or the seconds until the address may send the next one. */
unsigned auth_throttle_count(const char *address);

/* Resets all addresses (tests). */
void auth_throttle_forget(void);

#endif
