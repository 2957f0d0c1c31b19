/*
 * The functions of a driver of the file store. storage.h describes them; only storage.c and the
 * drivers include this.
 */
#ifndef SERVICE_STORAGE_DRIVER_H
#define SERVICE_STORAGE_DRIVER_H

#include "service/storage.h"

enum { storage_name_size = 160 };

struct storage_driver {
    void (*close)(struct storage *storage);
    enum iw_error (*put_begin)(struct storage *storage, struct context *context,
                               const struct storage_key *key, struct storage_writer **writer);
    enum iw_error (*put_add)(struct storage_writer *writer, struct context *context, const void *bytes,
                             size_t size);
    enum iw_error (*put_commit)(struct storage_writer *writer, struct context *context);
    void (*put_abandon)(struct storage_writer *writer);
    enum iw_error (*get)(struct storage *storage, struct context *context, const struct storage_key *key,
                         int *descriptor, struct storage_facts *facts);
    enum iw_error (*stat)(struct storage *storage, struct context *context, const struct storage_key *key,
                          struct storage_facts *facts);
    enum iw_error (*delete_list)(struct storage *storage, struct context *context,
                                 const struct storage_key *keys, size_t count);
    enum iw_error (*list)(struct storage *storage, struct context *context, enum filekey_kind kind,
                          int64_t order_id, storage_visit *visit, void *user);
    enum iw_error (*walk)(struct storage *storage, struct context *context, struct storage_cursor *cursor,
                          storage_visit *visit, void *user);
    enum iw_error (*sweep)(struct storage *storage, struct context *context, int64_t age_s, unsigned *count);
};

/* The first member of each driver's store. */
struct storage {
    const struct storage_driver *driver;
};

/* The first member of each driver's writer. */
struct storage_writer {
    struct storage *storage;
};

/*
 * The numbers of a key: "7001/12.1.2" with '/' as the separator of the first two, "7001.12.1.2"
 * with '.'. Returns the length.
 */
int storage_numbers_print(char text[storage_name_size], const struct storage_key *key, char separator);

/* Reads what storage_numbers_print writes; sets all fields but kind. */
bool storage_numbers_read(const char *text, char separator, struct storage_key *key);

#endif
