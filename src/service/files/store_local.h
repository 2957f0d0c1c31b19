/*
 * The driver of the file store for a local file system: sharded folders, O_TMPFILE (or a file
 * under tmp/), fdatasync, link or rename, and fsync of the folder. nginx sends the files.
 */
#ifndef SERVICE_FILES_STORE_LOCAL_H
#define SERVICE_FILES_STORE_LOCAL_H

#include "service/files/storage_driver.h"

/* The number of shards of a kind: steps of a walk. */
enum { store_local_shard_count = 4096 };

/*
 * Opens the store at a path (store.path) and creates its folders. IO_FAILED if the path is
 * not a folder or not writable.
 */
enum iw_error store_local_open(struct context *context, const char *path,
                               struct storage **storage) IW_MUST_USE;

/*
 * Returns the path for X-Accel-Redirect ("out/3f7/7001.12.1"), in the arena. nginx sends the file from its
 * internal location for the store.
 */
const char *store_local_handover(struct arena *arena, const struct storage_key *key);

#endif
