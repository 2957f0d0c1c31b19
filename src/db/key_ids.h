/*
 * The ids of the secret keys that belong to the database, one row per purpose. src/domain/keyring.h has the
 * rules.
 */
#ifndef DB_KEY_IDS_H
#define DB_KEY_IDS_H

#include "db/db.h"

/* The ids recorded for a purpose, separated by spaces; "" if there are none. */
enum iw_error key_ids_read(const struct db *db, const char *purpose, const char **ids) IW_MUST_USE;

/* Records the first ids of a purpose. Has no effect if another program was first. */
enum iw_error key_ids_record(const struct db *db, const char *purpose, const char *ids) IW_MUST_USE;

/* Replaces the ids if they still equal before; NULL replaces any ids. */
enum iw_error key_ids_replace(const struct db *db, const char *purpose, const char *before,
                              const char *ids) IW_MUST_USE;

#endif
