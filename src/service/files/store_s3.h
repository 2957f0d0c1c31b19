/*
 * The driver of the file store for a bucket of an S3-compatible object store. The text of a key
 * after store.s3_prefix names an object: "out/7001/12.1.2".
 *
 * Reads put an object into an anonymous file in memory. Writes buffer 8 MiB and continue as a multipart
 * upload, so that no file is needed. Clients upload to version 0 of a key, and domain/orders/intake.h copies
 * the object to a version that no URL names.
 */
#ifndef SERVICE_FILES_STORE_S3_H
#define SERVICE_FILES_STORE_S3_H

#include "service/files/storage_driver.h"

/* CONFIG_INVALID if a setting or a key file is wrong. Sends no request. */
enum iw_error store_s3_open(struct context *context, const struct config *config,
                            struct storage **storage) IW_MUST_USE;

#endif
