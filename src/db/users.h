/* The table users.  Email addresses are in lower case. */
#ifndef DB_USERS_H
#define DB_USERS_H

#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/user.h"

/* A user with its account. */
enum iw_error users_find(const struct db *db, int64_t id, struct user *user, bool *is_found) IW_MUST_USE;
enum iw_error users_find_by_email(const struct db *db, const char *email, struct user *user,
                                  bool *is_found) IW_MUST_USE;

/* As users_find, but locks the row until the transaction ends. */
enum iw_error users_lock(const struct db *db, int64_t id, struct user *user, bool *is_found) IW_MUST_USE;

/*
 * Inserts account.id, role, email, name, language, password_hash, email_verified_ms; TWIN_EXISTS if the
 * address has a user.
 */
enum iw_error users_insert(const struct db *db, const struct user *user, int64_t now_ms,
                           int64_t *id) IW_MUST_USE;

/* The users of an account, owners first; the array is in the arena. */
enum iw_error users_of_account(const struct db *db, int64_t account_id, struct user **users,
                               size_t *count) IW_MUST_USE;

/* The owners of an account that are not disabled: only id, email and language.  The array is in the arena. */
enum iw_error users_owners(const struct db *db, int64_t account_id, struct user **users,
                           size_t *count) IW_MUST_USE;

/* The users whose address, name or account's name contains keyword (NULL means all), newest first. */
struct users_page {
    const char *keyword;
    int64_t limit;
    int64_t offset;
};
enum iw_error users_page(const struct db *db, const struct users_page *page, struct user **users,
                         size_t *count, int64_t *total) IW_MUST_USE;

/* Finds some users who signed up before a time and did not open the verification link. */
enum iw_error users_unverified(const struct db *db, int64_t before_ms, struct query_ids *ids) IW_MUST_USE;

/* Locks the owners of an account and counts those that are not disabled. */
enum iw_error users_owners_lock(const struct db *db, int64_t account_id, int64_t *count) IW_MUST_USE;

enum iw_error users_profile_set(const struct db *db, int64_t id, const char *name,
                                enum user_language language) IW_MUST_USE;
enum iw_error users_role_set(const struct db *db, int64_t id, enum user_role role) IW_MUST_USE;
enum iw_error users_flags_set(const struct db *db, int64_t id, bool is_admin, bool is_disabled) IW_MUST_USE;
enum iw_error users_password_set(const struct db *db, int64_t id, const char *hash) IW_MUST_USE;

/*
 * Replaces a hash by a newer hash of the same password.  *is_renewed is false if the user has another hash
 * by now.
 */
enum iw_error users_password_renew(const struct db *db, int64_t id, const char *before, const char *hash,
                                   bool *is_renewed) IW_MUST_USE;
enum iw_error users_email_verified(const struct db *db, int64_t id, int64_t now_ms) IW_MUST_USE;
enum iw_error users_signed_in(const struct db *db, int64_t id, int64_t now_ms) IW_MUST_USE;

/* Writes a new secret of the second factor, which is not enabled yet; NULL removes it. */
enum iw_error users_totp_set(const struct db *db, int64_t id, const uint8_t *sealed, size_t size) IW_MUST_USE;
enum iw_error users_totp_enable(const struct db *db, int64_t id, int64_t now_ms) IW_MUST_USE;

/* Uses up the code of a step. *is_taken is false if a code of this step or a later step was used before. */
enum iw_error users_totp_step(const struct db *db, int64_t id, int64_t step, bool *is_taken) IW_MUST_USE;

enum iw_error users_delete(const struct db *db, int64_t id) IW_MUST_USE;

#endif
