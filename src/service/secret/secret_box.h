/*
 * The key that encrypts stored secrets: a file with 64 hexadecimal digits (32 bytes) that only
 * its owner and group can read.
 *
 * Webhook secrets sign deliveries, so a hash is not enough. The database has them encrypted (crypto_seal),
 * and the key is stored elsewhere. If this file is lost, every webhook's secret must be rotated. This module
 * depends neither on the database nor on the encrypted data.
 */
#ifndef SERVICE_SECRET_SECRET_BOX_H
#define SERVICE_SECRET_SECRET_BOX_H

#include <stdint.h>

#include "base/context.h"
#include "base/crypto.h"

struct secret_box {
    uint8_t key[crypto_key_bytes];
};

/* CONFIG_INVALID if the file is missing, readable by other users, or has other content. */
enum iw_error secret_box_read(struct context *context, const char *path,
                              struct secret_box *secret_box) IW_MUST_USE;

/* Writes a file with a new key, mode 0600, atomically. TWIN_EXISTS if the file exists. */
enum iw_error secret_box_generate(struct context *context, const char *path) IW_MUST_USE;

#endif
