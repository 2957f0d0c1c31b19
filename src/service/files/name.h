/*
 * File names of results on a client's computer.
 *
 * The names are valid on Windows, macOS and Linux, have at most 255 bytes, and have the extension of their
 * format. Names of one list also differ on file systems that fold case or normal forms. This module does not
 * depend on archives, the store or the database.
 */
#ifndef SERVICE_FILES_NAME_H
#define SERVICE_FILES_NAME_H

#include <stddef.h>

#include "base/arena.h"
#include "model/format.h"

/* NAME_MAX of Linux; Windows and macOS allow 255 characters of 1 to 4 bytes each. */
enum { name_bytes_max = 255 };

/* A requested name. */
struct name_request {
    const char *name;   /* UTF-8; NULL or empty for "file" */
    const char *suffix; /* short ASCII text before the extension that is never cut off; may be NULL */
    enum format format; /* FORMAT_NONE keeps the extension */
};

/*
 * Returns the names for count requests, in the order of the requests; the array is in the arena.
 *
 * Characters that Windows forbids, control characters and line separators become "_".
 * Bidirectional controls are removed. Windows device names get a leading "_". The extension of
 * another format is replaced ("photo.png" for "photo.jpg"); a correct one keeps its spelling
 * ("photo.JPEG"). Duplicates get " (2)" and so on before the extension. Long names are cut
 * before the suffix, between two grapheme clusters.
 *
 * A name keeps the normal form that the client sent (NFC or NFD), because clients compare the bytes of names
 * with their list. For the same reason a leading dash or dot is kept, which all three systems allow. The
 * result depends only on the list, and the function does not change names that it has returned.
 */
const char **name_list(struct arena *arena, const struct name_request *requests, size_t count);

/*
 * Returns the key under which names are compared: canonical caseless matching (Unicode, D145), without
 * default-ignorable characters. Names with equal keys may be one file on some file system. The name is UTF-8.
 */
const char *name_fold(struct arena *arena, const char *name);

/* Returns the name for a single request. */
const char *name_one(struct arena *arena, const struct name_request *wanted);

/*
 * Returns the Content-Disposition of a download, in the arena: attachment, with the name in ASCII for old
 * clients and in UTF-8 for others (RFC 6266, RFC 8187).
 */
const char *name_disposition(struct arena *arena, const char *name);

#endif
