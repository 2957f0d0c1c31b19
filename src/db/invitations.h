/* The table invitations. */
#ifndef DB_INVITATIONS_H
#define DB_INVITATIONS_H

#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/user.h"

/* Replaces an invitation of this account to this address.  id and account_name are not read. */
enum iw_error invitations_insert(const struct db *db, const struct invitation *invitation,
                                 const uint8_t digest[32], int64_t *id) IW_MUST_USE;

/* Finds an invitation that has not expired, by the SHA-256 of the token. */
/* Counts the invitations of an account that have not expired, except the invitation of one address. */
enum iw_error invitations_count(const struct db *db, int64_t account_id, const char *except_email,
                                int64_t now_ms, int64_t *count) IW_MUST_USE;

enum iw_error invitations_find(const struct db *db, const uint8_t digest[32], int64_t now_ms,
                               struct invitation *invitation, bool *is_found) IW_MUST_USE;

enum iw_error invitations_list(const struct db *db, int64_t account_id, int64_t now_ms,
                               struct invitation **invitations, size_t *count) IW_MUST_USE;

/* Sets *count to 0 or 1. */
enum iw_error invitations_delete(const struct db *db, int64_t account_id, int64_t id,
                                 int64_t *count) IW_MUST_USE;

enum iw_error invitations_forget(const struct db *db, int64_t now_ms, int64_t *count) IW_MUST_USE;

#endif
