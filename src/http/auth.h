/*
 * Authentication: the Bearer key of a request, looked up by its SHA-256 and
 * remembered by this process for api.key_cache_s seconds.  Revoking a key or
 * suspending an account takes effect within that time.
 */
#ifndef HTTP_AUTH_H
#define HTTP_AUTH_H

#include "http/request.h"

/*
 * Finds who asks and sets request->account.  AUTH_NOT_AUTHENTICATED,
 * AUTH_TOKEN_INVALID_FORMAT, AUTH_TOKEN_INVALID, AUTH_TOKEN_EXPIRED,
 * AUTH_FORBIDDEN; RATE_LIMIT_EXCEEDED for an address that has tried many keys
 * which nobody has (suspect.h); SERVICE_UNAVAILABLE with the database away.
 */
enum iw_error auth_check(struct request *request) IW_MUST_USE;

/* Forgets all remembered keys (tests, and a configuration that changed). */
void auth_forget(void);

#endif
