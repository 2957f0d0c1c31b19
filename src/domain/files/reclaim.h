/*
 * Reclaim: deletes files of the store that should no longer exist, because a process died between two steps.
 */
#ifndef DOMAIN_FILES_RECLAIM_H
#define DOMAIN_FILES_RECLAIM_H

#include "domain/domain.h"
#include "service/files/storage.h"

/*
 * Deletes the inputs of finished orders.  Inputs that rows still name are deleted at once. If no row names
 * an input, it is deleted once the order is too old to be pending. Lists all inputs of the store; *count
 * gets the number of orders.
 */
enum iw_error reclaim_inputs(const struct domain *domain, struct storage *storage,
                             unsigned *count) IW_MUST_USE;

/*
 * Deletes files that no row names and that are older than an hour. Results, archives and thumbnails of
 * finished orders are left if a worker died after another worker had ended the order. Uploads of pending
 * orders are left if the process died, or the database was away, before the commit. Skips orders in progress,
 * and orders that are not in the database, because it may be the wrong database.
 *
 * The walk through the store goes in steps.  A step starts at the cursor and ends after keys_max keys.  It
 * also ends at the end of the store; the cursor is then at its start. *count gets the number of deleted
 * files.
 */
enum iw_error reclaim_files(const struct domain *domain, struct storage *storage,
                            struct storage_cursor *cursor, unsigned keys_max, unsigned *count) IW_MUST_USE;

#endif
