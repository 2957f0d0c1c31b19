/*
 * Keys of the file store: numbers, and their texts in the database and in the drivers.
 */
#ifndef SERVICE_FILES_STORAGE_KEY_H
#define SERVICE_FILES_STORAGE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/filekey.h"

/* All numbers are at least 0, order_id at least 1. */
struct storage_key {
    enum filekey_kind kind;
    int64_t order_id;
    int64_t number;
    int64_t version;
    int64_t part; /* 0 if there is none; then it is not in the text */
};

/* Room for any text of a key, and for its numbers. */
enum { storage_key_size = 128 };

/*
 * Returns the text of a key as in the database (results.store_key and others), such as "out/7001/12.1.2". It
 * is allocated in the arena.
 */
const char *storage_key_text(struct arena *arena, const struct storage_key *key);

/* Reads exactly the texts that storage_key_text writes. Returns false for any other text. */
bool storage_key_read(const char *text, struct storage_key *key);

/* Returns a random positive version for a key; two writers never get the same version. */
int64_t storage_version_new(void);

/*
 * Writes the numbers of a key: "7001/12.1.2" if '/' separates the first two, "7001.12.1.2" if '.' does.
 * Returns the length.
 */
int storage_numbers_print(char text[storage_key_size], const struct storage_key *key, char separator);

/* Reads what storage_numbers_print writes; sets all fields but kind. */
bool storage_numbers_read(const char *text, char separator, struct storage_key *key);

#endif
