/*
 * The ids of the secret keys that belong to the database, one row a purpose.  src/domain/keyring.h has the
 * rules.
 */
#ifndef DB_KEY_IDS_H
#define DB_KEY_IDS_H

#include "db/db.h"

/* The ids recorded for a purpose, separated by spaces; "" when there are none. */
enum iw_error key_ids_read(const struct db *db, const char *purpose, const char **ids) IW_MUST_USE;

/* Records the first ids of a purpose.  Without effect when another program was first. */
enum iw_error key_ids_record(const struct db *db, const char *purpose, const char *ids) IW_MUST_USE;

/* Replaces the ids if they still are before; NULL: whatever they are. */
enum iw_error key_ids_replace(const struct db *db, const char *purpose, const char *before,
                              const char *ids) IW_MUST_USE;

#endif
