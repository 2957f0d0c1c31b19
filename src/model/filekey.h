/*
 * File keys: the path of a presigned URL, and the kinds of files of an order.
 *
 * `in/<orderId>/<position>` is the upload at a position (from 1); with an `o` at the end it is the unmarked
 * original of an extraction.  `out/<orderId>/<resultId>` is a result, `zip/<orderId>` the archive of an
 * order, `thumb/<orderId>` its thumbnail, `thumb/<orderId>/<position>` that of the result of one file.
 *
 * A file key does not locate bytes: the keys of the file store do (service/files/storage.h), and rows hold
 * those.
 */
#ifndef MODEL_FILEKEY_H
#define MODEL_FILEKEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum filekey_kind {
    FILEKEY_UPLOAD,
    FILEKEY_ORIGINAL,
    FILEKEY_RESULT,
    FILEKEY_ZIP,
    FILEKEY_THUMBNAIL,
    FILEKEY_KIND_COUNT
};

struct filekey {
    enum filekey_kind kind;
    int64_t order_id;
    int64_t number; /* position of an upload, id of a result; 0 with ZIP; 0 or a position with THUMBNAIL */
};

/* The longest text: "thumb/", two numbers of 19 digits, '/', 'o' and the zero fit. */
enum { filekey_size = 64 };

/* The folder of a kind in the file store, which is the first word of the keys.  Static text. */
const char *filekey_folder(enum filekey_kind kind);

/* Writes the text of a key; returns its length without the zero. */
size_t filekey_print(const struct filekey *key, char text[filekey_size]);

/* The same in the arena. */
const char *filekey_text(struct arena *arena, const struct filekey *key);

/* Reads exactly the texts that filekey_print writes; false for any other. */
bool filekey_read(const char *text, struct filekey *key);

#endif
