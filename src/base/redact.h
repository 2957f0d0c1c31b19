/*
 * Copies of bodies for logs that clients read: the start of a JSON text without its secrets, and without
 * white space between values.
 *
 * Masked as "***" are, in values and names: the query and the fragment of a URL, because they may sign it,
 * its user name and password (RFC 3986, 3.2.1, 3.4, 3.5), API keys and webhook secrets. All below a member
 * whose name tells a secret is masked, and so is all below "headers". Of a body that is not valid JSON only
 * the size is kept: nothing says where a secret in it ends. So it is of a body of more than redact_read_max
 * bytes, because reading one of a megabyte takes some 60 ms.
 */
#ifndef BASE_REDACT_H
#define BASE_REDACT_H

#include "base/arena.h"

enum {
    redact_body_max = 4096, /* of request, answer and payload */
    redact_read_max = 65536
};

/*
 * Returns the copy in the arena, in UTF-8 of at most "most" bytes, at least 64. It ends with "…" if it was
 * cut.
 */
const char *redact(struct arena *arena, const char *text, size_t length, size_t most);

/*
 * As redact(), for the answer of a receiver: a text without a brace is kept, with the same masks. Control
 * characters other than blanks become "?", and so does each byte above 0x7F of a text that is not UTF-8.
 */
const char *redact_answer(struct arena *arena, const char *text, size_t length, size_t most);

#endif
