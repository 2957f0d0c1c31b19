/*
 * Copies of bodies for logs that clients read: the start of a text without its secrets.
 *
 * The query of a URL is masked as "***", because it may sign the URL, and so are its user name and password
 * (RFC 3986, 3.2.1, 3.4). Values of members with names such as "secret" are masked, and each text in an
 * object "headers". The text need not be valid JSON or UTF-8.
 */
#ifndef BASE_REDACT_H
#define BASE_REDACT_H

#include "base/arena.h"

enum { redact_body_max = 4096 }; /* of request, answer and payload */

/*
 * Returns the text in the arena, in UTF-8 of at most "most" bytes, which ends with "…" if it was cut. Control
 * characters other than blanks become "?", and so does each byte above 0x7F of a text that is not UTF-8.
 */
const char *redact(struct arena *arena, const char *text, size_t length, size_t most);

#endif
