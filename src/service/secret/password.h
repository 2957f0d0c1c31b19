/*
 * Password hashes: Argon2id by libsodium, which only these two files use.
 *
 * The text of a hash includes the parameters. The defaults are libsodium's "interactive" limits
 * (https://doc.libsodium.org/password_hashing/default_phf): 2 passes over 64 MiB.
 */
#ifndef SERVICE_SECRET_PASSWORD_H
#define SERVICE_SECRET_PASSWORD_H

#include <stdbool.h>

#include "base/config.h"
#include "base/context.h"

/* Returns the hash of a password's typed form (typed.h), in the arena. NO_MEMORY. */
enum iw_error password_hash(struct context *context, const struct config *config, const char *password,
                            const char **hash) IW_MUST_USE;

/*
 * Returns true if the password has this hash. NULL stands for a user who does not exist or has no password;
 * the function then takes the same time and returns false.
 */
bool password_verify(struct context *context, const struct config *config, const char *hash,
                     const char *password) IW_MUST_USE;

/*
 * Returns true if a correct password should be hashed again, because the configuration has other parameters
 * than the hash.
 */
bool password_is_outdated(const struct config *config, const char *hash);

#endif
