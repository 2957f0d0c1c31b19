/*
 * The functions of a driver of the file store. storage.h describes them; only storage.c and the
 * drivers include this.
 */
#ifndef SERVICE_FILES_STORAGE_DRIVER_H
#define SERVICE_FILES_STORAGE_DRIVER_H

#include "service/files/storage.h"

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
