#include "domain/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/crypto.h"
#include "db/key_ids.h"
#include "service/files/presign.h"
#include "service/secret/secret_box.h"

static enum iw_error watermark_ids(struct context *context, const char *path, char *ids)
{
    uint8_t key[crypto_key_bytes + 1]; /* one byte more than the key, to detect a longer file */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = descriptor < 0 ? -1 : read(descriptor, key, sizeof key);
    if (descriptor >= 0)
        close(descriptor);
    if (size == crypto_key_bytes)
        crypto_key_id(key, crypto_key_bytes, ids);
    crypto_wipe(key, sizeof key);
    if (size == crypto_key_bytes)
        return IW_OK;
    return context_fail(context, IW_CONFIG_INVALID, "The watermark key %s %s.", path,
                        size < 0 ? "cannot be read" : "does not have 32 bytes");
}

static enum iw_error sealing_ids(struct context *context, const char *path, char *ids)
{
    struct secret_box secret_box;
    enum iw_error error = secret_box_read(context, path, &secret_box);
    if (error == IW_OK)
        crypto_key_id(secret_box.key, sizeof secret_box.key, ids);
    crypto_wipe(&secret_box, sizeof secret_box);
    return error;
}

static enum iw_error signing_ids(struct context *context, const char *path, char *ids)
{
    return presign_keys_ids(context, path, ids, keyring_ids_size);
}

static const struct {
    const char *name;
    size_t path_at; /* in struct config */
    enum iw_error (*read)(struct context *context, const char *path, char *ids);
    const char *loss; /* what another key means */
} purposes[keyring_purpose_count] = {
    [KEYRING_WATERMARK] = {"watermark", offsetof(struct config, image_watermark_key_file), watermark_ids,
                           "no watermark in a delivered picture could be read"},
    [KEYRING_SEALING] = {"sealing", offsetof(struct config, webhooks_secret_key_file), sealing_ids,
                         "no webhook could be signed"},
    [KEYRING_SIGNING] = {"signing", offsetof(struct config, store_signing_keys_file), signing_ids,
                         "no URL that was issued would be valid"},
};

const char *keyring_name(enum keyring_purpose purpose)
{
    return purposes[purpose].name;
}

enum keyring_purpose keyring_purpose_of(const char *name)
{
    unsigned purpose = 0;
    while (purpose < keyring_purpose_count && strcmp(purposes[purpose].name, name) != 0)
        purpose++;
    return (enum keyring_purpose)purpose;
}

const char *keyring_path(const struct config *config, enum keyring_purpose purpose)
{
    const char *path;
    memcpy(&path, (const char *)config + purposes[purpose].path_at, sizeof path);
    return path;
}

enum iw_error keyring_load(struct context *context, const struct config *config, enum keyring_purpose purpose,
                           struct keyring *keyring)
{
    const char *path = keyring_path(config, purpose);
    keyring->ids[purpose][0] = '\0';
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return IW_OK;
    return purposes[purpose].read(context, path, keyring->ids[purpose]);
}

/* True if one of the first count ids is among the others.  All have the same length. */
static bool ids_share(const char *ids, size_t count, const char *others)
{
    for (size_t i = 0; i < count && i * crypto_key_id_size < strlen(ids); i++) {
        const char *id = ids + i * crypto_key_id_size;
        for (const char *other = others; strlen(other) >= crypto_key_id_size - 1; other++)
            if (memcmp(id, other, crypto_key_id_size - 1) == 0)
                return true;
    }
    return false;
}

enum iw_error keyring_compare(const struct db *db, const struct keyring *keyring,
                              enum keyring_purpose purpose, enum keyring_fit *fit, const char **known)
{
    const char *ids = keyring->ids[purpose];
    enum iw_error error = key_ids_read(db, purposes[purpose].name, known);
    if (error != IW_OK)
        return error;
    *fit = ids[0] == '\0'                     ? KEYRING_ABSENT
           : (*known)[0] == '\0'              ? KEYRING_UNKNOWN
           : ids_share(ids, SIZE_MAX, *known) ? KEYRING_FITS
                                              : KEYRING_OTHER;
    return IW_OK;
}

/*
 * Records the ids of an unknown key, or of a rotated one.  Reads again: another program may have been
 * first.
 */
static enum iw_error purpose_check(const struct db *db, const struct config *config,
                                   const struct keyring *keyring, enum keyring_purpose purpose)
{
    const char *known, *ids = keyring->ids[purpose], *name = purposes[purpose].name;
    enum keyring_fit fit;
    enum iw_error error = keyring_compare(db, keyring, purpose, &fit, &known);
    if (error == IW_OK && fit == KEYRING_UNKNOWN) {
        error = key_ids_record(db, name, ids);
        if (error == IW_OK)
            error = keyring_compare(db, keyring, purpose, &fit, &known);
    }
    if (error == IW_OK && fit == KEYRING_OTHER)
        return context_fail(
            db->context, IW_CONFIG_INVALID,
            "%s: the %s key (%s) is not the key of this database (%s): %s. Restore the file from the "
            "backup, or accept the new key with imgwardctl secret accept %s.",
            keyring_path(config, purpose), name, ids, known, purposes[purpose].loss, name);
    if (error == IW_OK && fit == KEYRING_FITS && !ids_share(ids, 1, known))
        error = key_ids_replace(db, name, known, ids);
    return error;
}

enum iw_error keyring_check(const struct db *db, const struct config *config, const struct keyring *keyring)
{
    enum iw_error error = IW_OK;
    for (unsigned purpose = 0; error == IW_OK && purpose < keyring_purpose_count; purpose++)
        if (keyring->ids[purpose][0] != '\0')
            error = purpose_check(db, config, keyring, (enum keyring_purpose)purpose);
    return error;
}

enum iw_error keyring_accept(const struct db *db, const struct keyring *keyring, enum keyring_purpose purpose)
{
    const char *name = purposes[purpose].name, *ids = keyring->ids[purpose];
    enum iw_error error = key_ids_record(db, name, ids);
    return error == IW_OK ? key_ids_replace(db, name, NULL, ids) : error;
}
