/* Files of orders: their statuses, and the rows that queries return. */
#ifndef MODEL_FILE_H
#define MODEL_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/format.h"
#include "model/order.h"

enum file_status {
    FILE_PENDING,    /* waits for an upload or a fetch */
    FILE_UPLOADED,   /* the bytes are in the store */
    FILE_PROCESSING, /* a worker has leased a job on it */
    FILE_COMPLETE,
    FILE_FAILED,
    FILE_STATUS_COUNT
};

/* "pending" and so on, the same in database and JSON; static text. */
const char *file_status_name(enum file_status status);

/* False if the word is none of them. */
bool file_status_read(const char *name, enum file_status *status);

struct order_file {
    int64_t id;
    unsigned position; /* from 1 */
    bool is_original;
    const char *name;
    enum file_status status;
    const char *error_code;          /* NULL if there is none */
    const char *error_sentence;      /* NULL if there is none */
    const char *note_code;           /* of its result; NULL if there is none */
    const char *note_sentence;       /* valid with note_code */
    int64_t input_bytes;             /* 0 if there is none arrived yet */
    int64_t result_bytes;            /* of its largest result; 0 if there is none */
    int protection_percent;          /* of its anti-AI result; -1 if there is none, or not known */
    const char *source_url;          /* fetched instead of uploaded; NULL if uploaded */
    const char *thumbnail_store_key; /* of its result; NULL if there is none */
};

/* The file that an upload URL names; texts are in the arena. */
struct upload_file {
    int64_t account_id;
    bool is_suspended; /* the account */
    int64_t id;
    enum order_type order_type;
    enum order_status order_status;
    bool is_started;       /* the order was started earlier */
    bool is_uploaded;      /* the file already has bytes */
    const char *store_key; /* of those bytes, or NULL */
    const char *name;      /* the client's name of the file */
    const char *trace_id;  /* of the order; NULL if it has none */
};

/* The columns of a file that the upload or fetch sets. */
struct upload_facts {
    const char *store_key;
    const char *etag; /* of the object in an object store; NULL if there is none */
    enum format format;
    int64_t size_bytes;
    const uint8_t *sha256; /* 32 bytes; NULL if unknown, the client sent them to the object store */
};

#endif
