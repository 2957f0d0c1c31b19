/*
 * File keys: what a presigned URL names.  `in/<orderId>/<position>` is the
 * upload at a position (from 1), with an `o` at the end the unmarked original
 * of an extraction; `out/<orderId>/<resultId>` a result, `zip/<orderId>` the
 * archive of an order, `thumb/<orderId>` its thumbnail.
 *
 * A file key says nothing of where bytes lie: that is storage.h, whose keys the
 * rows of the database hold.  Knows neither HTTP nor files.
 */
#ifndef SERVICE_FILEKEY_H
#define SERVICE_FILEKEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/arena.h>

enum filekey_kind { FILEKEY_UPLOAD, FILEKEY_ORIGINAL, FILEKEY_RESULT, FILEKEY_ZIP, FILEKEY_THUMBNAIL };

struct filekey {
    enum filekey_kind kind;
    int64_t order_id;
    int64_t number; /* position of an upload, id of a result; 0 with ZIP and THUMBNAIL */
};

/* Longer texts are no file key: "thumb/", two numbers of 19 digits, '/', 'o' and the zero. */
enum { filekey_size = 64 };

/* Writes the text of a key; length without the zero. */
size_t filekey_print(const struct filekey *key, char text[filekey_size]);

/* The same in the arena. */
const char *filekey_text(struct arena *arena, const struct filekey *key);

/* Reads exactly what filekey_print writes; false for everything else. */
bool filekey_read(const char *text, struct filekey *key);

#endif
