/*
 * Tokens of the console: 256 random bits as text.  The database has only their SHA-256.  A session has a
 * token, and so have a link in a mail and the step between password and second factor.
 */
#ifndef DOMAIN_PEOPLE_TOKEN_H
#define DOMAIN_PEOPLE_TOKEN_H

#include <stdint.h>

#include "domain/domain.h"
#include "model/user.h"

/* A new token, in URL-safe base 64, and its digest.  Allocated in the arena. */
const char *token_new(struct arena *arena, uint8_t digest[32]);

void token_digest(const char *token, uint8_t digest[32]);

/* Makes a token of a user in the caller's transaction; it replaces earlier tokens of this purpose. */
enum iw_error token_make(const struct domain *domain, int64_t user_id, enum token_purpose purpose,
                         const char **token) IW_MUST_USE;

/* Finds the user of a token that can still be used; a cheap check before a costly step. TOKEN_INVALID. */
enum iw_error token_find(const struct domain *domain, enum token_purpose purpose, const char *token,
                         struct user *user) IW_MUST_USE;

/* Takes one use of a token and finds the user. TOKEN_INVALID, also if the user is disabled. */
enum iw_error token_take(const struct domain *domain, enum token_purpose purpose, const char *token,
                         struct user *user) IW_MUST_USE;

/* "PUBLIC-URL/console/#/PAGE?token=TOKEN": the fragment reaches no server and no log.  Allocated in the
 * arena. */
const char *token_link(struct arena *arena, const struct config *config, const char *page, const char *token);

#endif
