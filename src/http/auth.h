/*
 * Authentication: looks up the Bearer key of a request by its SHA-256.  Each
 * process caches keys for api.key_cache_s seconds.  Revoking a key or suspending
 * an account takes effect within that time.  Invalid keys are cached for a minute.
 */
#ifndef HTTP_AUTH_H
#define HTTP_AUTH_H

#include "http/request.h"

/*
 * Sets request->account, also of a suspended account. AUTH_NOT_AUTHENTICATED, AUTH_TOKEN_INVALID_FORMAT,
 * AUTH_TOKEN_INVALID, AUTH_TOKEN_EXPIRED, AUTH_FORBIDDEN; RATE_LIMIT_EXCEEDED for an invalid key from an
 * address that has sent many invalid keys (auth_throttle.h); SERVICE_UNAVAILABLE if the database is
 * unavailable.
 */
enum iw_error auth_check(struct request *request) IW_MUST_USE;

/* Empties the cache and the throttle (tests). */
void auth_forget(void);

#endif
