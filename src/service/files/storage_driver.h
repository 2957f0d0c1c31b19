/*
 * The types of the file store, and the functions of a driver, which storage.h describes. Only storage.c and
 * the drivers use struct storage_driver and the members of struct storage.
 */
#ifndef SERVICE_FILES_STORAGE_DRIVER_H
#define SERVICE_FILES_STORAGE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "base/context.h"
#include "model/sniff.h"
#include "service/files/storage_key.h"

enum { storage_etag_size = 80 };

struct storage_facts {
    int64_t size_bytes;
    int64_t modified_ms; /* since 1970 UTC */
};

struct storage;
struct storage_writer;

/* The callback of storage_list and storage_walk. */
typedef bool storage_visit(void *user, const struct storage_key *key, const struct storage_facts *facts);

/*
 * A position in an endless walk over all keys. A zeroed cursor is at the start. A cursor belongs to one
 * store.
 */
struct storage_cursor {
    unsigned part;                /* in a local store, the next shard */
    char after[storage_key_size]; /* in an object store, the text of the last key; "" at the start */
};

/* A request that a URL permits. */
struct storage_link {
    bool is_upload; /* PUT; otherwise GET */
    struct storage_key key;
    int64_t expires_s;       /* since 1970 */
    const char *disposition; /* Content-Disposition of a download; may be NULL */
    const char *type;        /* Content-Type of a download; NULL for that of the object */
};

/* An object that a client uploaded, as storage_peek finds it. */
struct storage_object {
    struct storage_key key;
    bool is_there;
    int64_t size_bytes;
    char etag[storage_etag_size];
    unsigned char first[sniff_bytes];
    size_t first_count;
};

struct storage_driver {
    void (*close)(struct storage *storage);
    enum iw_error (*put_begin)(struct storage *storage, struct context *context,
                               const struct storage_key *key, struct storage_writer **writer);
    enum iw_error (*put_add)(struct storage_writer *writer, struct context *context, const void *bytes,
                             size_t size);
    enum iw_error (*put_commit)(struct storage_writer *writer, struct context *context);
    void (*put_abandon)(struct storage_writer *writer);
    enum iw_error (*get)(struct storage *storage, struct context *context, const struct storage_key *key,
                         const char *etag, int *descriptor, struct storage_facts *facts);
    enum iw_error (*stat)(struct storage *storage, struct context *context, const struct storage_key *key,
                          struct storage_facts *facts);
    enum iw_error (*delete_list)(struct storage *storage, struct context *context,
                                 const struct storage_key *keys, size_t count);
    enum iw_error (*list)(struct storage *storage, struct context *context, enum filekey_kind kind,
                          int64_t order_id, storage_visit *visit, void *user);
    enum iw_error (*walk)(struct storage *storage, struct context *context, struct storage_cursor *cursor,
                          storage_visit *visit, void *user);
    enum iw_error (*sweep)(struct storage *storage, struct context *context, int64_t age_s, unsigned *count);
    /* NULL in a driver with which the service itself receives and sends the files. */
    const char *(*url)(struct storage *storage, struct arena *arena, const struct storage_link *link);
    enum iw_error (*peek)(struct storage *storage, struct context *context, struct storage_object *objects,
                          size_t count);
    enum iw_error (*copy)(struct storage *storage, struct context *context, struct storage_object *objects,
                          const struct storage_key *to, size_t count);
};

/* The first member of each driver's store. */
struct storage {
    const struct storage_driver *driver;
    int64_t failed_ms; /* of the last access that the store refused or did not answer; 0 if there is none */
    char reason[200];
};

/* The first member of each driver's writer. */
struct storage_writer {
    struct storage *storage;
};

#endif
