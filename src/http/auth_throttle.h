/*
 * Throttle for addresses that send unknown API keys.  Each unknown key costs a
 * database query, so an address may send a limited number of them a minute.
 * After that it is refused without a query, except for keys in this process's
 * cache.
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

/* Seconds until another unknown key of the address is looked up; 0: now. */
unsigned auth_throttle_wait_s(const char *address);

/* Counts an unknown key of the address. */
void auth_throttle_note(const char *address);

/* Resets all addresses (tests). */
void auth_throttle_forget(void);

#endif
