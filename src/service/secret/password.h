/*
 * Password hashes: Argon2id by libsodium, which only this file pair uses.
 *
 * The text of a hash has its parameters.  The defaults are libsodium's "interactive" limits
 * (https://doc.libsodium.org/password_hashing/default_phf): 2 passes over 64 MiB.
 */
#ifndef SERVICE_SECRET_PASSWORD_H
#define SERVICE_SECRET_PASSWORD_H

#include <stdbool.h>

#include "base/config.h"
#include "base/context.h"

/* The hash of a password's typed form (typed.h), in the arena.  NO_MEMORY. */
enum iw_error password_hash(struct context *context, const struct config *config, const char *password,
                            const char **hash) IW_MUST_USE;

/*
 * True when the password has this hash.  NULL is the hash of a user who does not exist or has no password: it
 * takes the same time and is false.
 */
bool password_verify(struct context *context, const struct config *config, const char *hash,
                     const char *password) IW_MUST_USE;

/* True when a right password should be hashed again: the configuration has other parameters than the hash. */
bool password_is_outdated(const struct config *config, const char *hash);

#endif
