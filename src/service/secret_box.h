/*
 * The key that secrets of others are kept under: a file of 64 hexadecimal
 * digits (32 bytes) that nobody but its owner and group can read.
 *
 * A webhook's secret must be used again to sign with, so that it cannot be
 * hashed; it lies encrypted in the database (crypto_seal), and this key lies
 * elsewhere.  Whoever loses the file has to rotate the secret of every webhook.
 * Knows neither the database nor what is sealed.
 */
#ifndef SERVICE_SECRET_BOX_H
#define SERVICE_SECRET_BOX_H

#include <stdint.h>

#include <imgward/context.h>

#include "base/crypto.h"

struct secret_box {
    uint8_t key[crypto_key_bytes];
};

/* CONFIG_INVALID when the file is missing, readable by everybody, or holds anything else. */
enum iw_error secret_box_read(struct context *context, const char *path,
                              struct secret_box *secret_box) IW_MUST_USE;

/* Writes a file with a new key, mode 0600, whole or not at all; TWIN_EXISTS when there is one. */
enum iw_error secret_box_generate(struct context *context, const char *path) IW_MUST_USE;

#endif
