/*
 * The archive of an order: all its results in one ZIP file, stored without compression because pictures are
 * already compressed. service/files/name.h makes the names.
 *
 * Each result is read twice: once to compute the CRC-32 and to compare the SHA-256 with the digest of the
 * row, once to copy it. The archive is written as a stream, so memory use does not depend on the size of the
 * pictures. Does not depend on the database.
 */
#ifndef SERVICE_FILES_ZIP_H
#define SERVICE_FILES_ZIP_H

#include "base/context.h"
#include "base/text.h"
#include "model/format.h"
#include "service/files/storage.h"

struct zip_entry {
    const char *name; /* UTF-8; made safe and unique here */
    enum format format;
    struct storage_key key;
    uint8_t sha256[32]; /* digest of the result when it was stored */
};

/* Size and digest of the archive. */
struct zip_facts {
    int64_t size_bytes;
    uint8_t sha256[32];
};

/* The content of an archive. Equal sources give equal bytes. */
struct zip_source {
    const struct zip_entry *entries;
    size_t count;
    int64_t time_ms; /* in each entry */
    /*
     * A text file after the results; may be NULL. No result has this name, because results have the extension
     * of their format.
     */
    const char *text_name;
    struct text text;
};

/*
 * Writes an archive under key; facts gets its size and digest. NOT_FOUND if a result is missing.
 * SERVER_INTERNAL_ERROR (reason result_changed) if the bytes of a result changed after they were stored.
 * SERVICE_UNAVAILABLE if the file store fails. A failure leaves no file.
 */
enum iw_error zip_build(struct storage *storage, struct context *context, const struct zip_source *source,
                        const struct storage_key *key, struct zip_facts *facts) IW_MUST_USE;

#endif
