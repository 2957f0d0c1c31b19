#include "service/secret/password.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "service/secret/typed.h"

/* sodium_init selects the fastest implementation; every later call has no effect. */
static void library_open(void)
{
    if (sodium_init() < 0)
        abort();
}

enum iw_error password_hash(struct context *context, const struct config *config, const char *password,
                            const char **hash)
{
    char text[crypto_pwhash_STRBYTES];
    library_open();
    password = typed_password(context->arena, password);
    if (crypto_pwhash_str_alg(text, password, strlen(password),
                              (unsigned long long)config->console_hash_operations,
                              (size_t)config->console_hash_memory_bytes, crypto_pwhash_ALG_ARGON2ID13) != 0)
        return context_fail(context, IW_NO_MEMORY, "There is not enough memory to hash a password.");
    *hash = arena_text(context->arena, text);
    return IW_OK;
}

bool password_verify(struct context *context, const struct config *config, const char *hash,
                     const char *password)
{
    unsigned char key[32], salt[crypto_pwhash_SALTBYTES] = {0};
    library_open();
    password = typed_password(context->arena, password);
    if (hash != NULL)
        return crypto_pwhash_str_verify(hash, password, strlen(password)) == 0;
    /* The result is not used; only the time that it takes matters. */
    (void)!crypto_pwhash(key, sizeof key, password, strlen(password), salt,
                         (unsigned long long)config->console_hash_operations,
                         (size_t)config->console_hash_memory_bytes, crypto_pwhash_ALG_ARGON2ID13);
    sodium_memzero(key, sizeof key);
    return false;
}

bool password_is_outdated(const struct config *config, const char *hash)
{
    return crypto_pwhash_str_needs_rehash(hash, (unsigned long long)config->console_hash_operations,
                                          (size_t)config->console_hash_memory_bytes) != 0;
}
