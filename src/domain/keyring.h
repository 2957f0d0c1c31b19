/*
 * The secret keys of the service, and whether they belong to the database.
 *
 * With another watermark key, no mark in a delivered picture can be read; with another sealing key, no
 * webhook secret; and with another signing key, no issued URL is valid. So the database has the id of each
 * key (crypto_key_id), and programs refuse other keys. The first program records the ids in a database that
 * has none.
 *
 * Signing keys are rotated, so a file fits if one of its keys is known. The ids are replaced if the first key
 * of the file is new. So a host that has not loaded the new file yet also fits, and an old file from a backup
 * does not.
 */
#ifndef DOMAIN_KEYRING_H
#define DOMAIN_KEYRING_H

#include <stdbool.h>

#include "base/config.h"
#include "db/db.h"

enum keyring_purpose { KEYRING_WATERMARK, KEYRING_SEALING, KEYRING_SIGNING, keyring_purpose_count };

enum { keyring_ids_size = 256 };

/* The ids of the keys that a program has loaded.  Holds no secret. */
struct keyring {
    char ids[keyring_purpose_count][keyring_ids_size]; /* separated by spaces; "" if not loaded */
};

enum keyring_fit {
    KEYRING_FITS,
    KEYRING_UNKNOWN, /* the database has no id yet */
    KEYRING_OTHER,
    KEYRING_ABSENT /* not loaded, or there is no file */
};

/* "watermark"; keyring_purpose_count for a word that names none. */
const char *keyring_name(enum keyring_purpose purpose);
enum keyring_purpose keyring_purpose_of(const char *name);

/* The file of a key. */
const char *keyring_path(const struct config *config, enum keyring_purpose purpose);

/*
 * Reads the ids of one key's file; ids "" if there is no file.  CONFIG_INVALID if it cannot be
 * read or has other content.
 */
enum iw_error keyring_load(struct context *context, const struct config *config, enum keyring_purpose purpose,
                           struct keyring *keyring) IW_MUST_USE;

/* Compares one key with the database; known gets the recorded ids, in the arena.  Changes nothing. */
enum iw_error keyring_compare(const struct db *db, const struct keyring *keyring,
                              enum keyring_purpose purpose, enum keyring_fit *fit,
                              const char **known) IW_MUST_USE;

/*
 * Compares every loaded key and records new ids. CONFIG_INVALID, with the remedy, for a key that does not
 * fit. After any other error, the database could not be asked; ask again later.
 */
enum iw_error keyring_check(const struct db *db, const struct config *config,
                            const struct keyring *keyring) IW_MUST_USE;

/* Records the loaded key of a purpose as the key of the database. */
enum iw_error keyring_accept(const struct db *db, const struct keyring *keyring,
                             enum keyring_purpose purpose) IW_MUST_USE;

#endif
