/*
 * Addresses that try keys which nobody has.  Every such key costs a question to
 * the database, so an address has a number of them a minute and is then refused
 * unheard, but for keys that this process has seen to be good.
 *
 * Of an IPv6 address the first 64 bits count: behind them a client has as many
 * addresses as it likes.  One process counts for itself: nothing is shared, and a pool of N lets an
 * address try N times as many.  Requests without a key never come this far in
 * number: nginx limits them (nginx/http.conf).  Knows no HTTP and no database.
 */
#ifndef HTTP_AUTH_THROTTLE_H
#define HTTP_AUTH_THROTTLE_H

#include <stdint.h>

enum { auth_throttle_tries_max = 60, auth_throttle_window_ms = 60000 };

/* How many seconds the address has to wait before another unknown key is looked up; 0: none. */
unsigned auth_throttle_wait_s(const char *address);

/* Notes that the address tried a key which nobody has. */
void auth_throttle_note(const char *address);

/* Forgets all of them (tests). */
void auth_throttle_forget(void);

#endif
