/*
 * The names of results on a client's computer.
 *
 * A name of this module can be made on Windows, macOS and Linux, has at most
 * 255 bytes, and ends as the format of its bytes asks.  Names of one list differ
 * also where a file system folds case or normal forms.  The only file pair that
 * includes utf8proc.  Knows no archive, no store, no database.
 */
#ifndef SERVICE_NAME_H
#define SERVICE_NAME_H

#include <stddef.h>

#include <imgward/arena.h>

#include "model/format.h"

/* NAME_MAX of Linux; Windows and macOS allow 255 characters of 1 to 4 bytes. */
enum { name_bytes_max = 255 };

/* A name that is wanted. */
struct name_request {
    const char *name;   /* UTF-8; NULL or empty: "file" */
    const char *suffix; /* short ASCII text before the extension, which a cut keeps; NULL: none */
    enum format format; /* of the bytes; FORMAT_NONE: the extension stays */
};

/*
 * The names for count requests, in their order; an array in the arena.
 *
 * Characters that Windows forbids, control characters and line separators become
 * "_".  Bidirectional controls are removed.  "_" stands before the name of a
 * Windows device.  An extension of another format is replaced ("photo.png" of
 * "photo.jpg"); the client's spelling stays where it fits ("photo.JPEG").  Twins
 * get " (2)" and so on before the extension.  A name that is too long is cut
 * before its suffix, between two user-perceived characters.
 *
 * A leading dash or dot stays: all three systems take it, and clients compare
 * names with their own.  The same list always gives the same names, and names
 * that this function gave do not change.
 */
const char **name_list(struct arena *arena, const struct name_request *requests, size_t count);

/* The name for one wanted alone. */
const char *name_one(struct arena *arena, const struct name_request *wanted);

#endif
