/*
 * The archive of an order: its stored results in one ZIP, stored and not
 * deflated (pictures are compressed already), names in UTF-8, zip64 where it is
 * needed, twins told apart as "name (2).png".  Streams from the store into the
 * store: memory does not grow with the pictures.  Knows no database.
 */
#ifndef SERVICE_ZIP_H
#define SERVICE_ZIP_H

#include <imgward/context.h>

#include "service/storage.h"

struct zip_entry {
    const char *name; /* what a client reads: UTF-8, as given; sanitised and made unique here */
    struct storage_key key;
};

/* What was written. */
struct zip_facts {
    int64_t size_bytes;
    uint8_t sha256[32];
};

/*
 * Writes the archive of count entries, in their order, under key.  time_ms is
 * the time each entry carries, so that the same order gives the same bytes.
 * facts gets the archive's size and digest.  NOT_FOUND when a result is missing,
 * SERVICE_UNAVAILABLE when the store fails; nothing is left behind then.
 */
enum iw_error zip_build(struct storage *storage, struct context *context, const struct zip_entry *entries,
                        size_t count, int64_t time_ms, const struct storage_key *key,
                        struct zip_facts *facts) IW_MUST_USE;

/*
 * The names the entries get: entries[i].name with path separators and control
 * characters replaced, and " (2)" and so on before the extension where a name
 * stood before (compared without regard to ASCII case, as file systems do).
 * An array of count texts in the arena.  The download answer uses it too.
 */
const char **zip_names(struct arena *arena, const struct zip_entry *entries, size_t count);

#endif
