#include "service/secret/secret_box.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"

enum iw_error secret_box_read(struct context *context, const char *path, struct secret_box *secret_box)
{
    const char *line;
    enum iw_error error = config_secret(context, path, &line);
    if (error != IW_OK)
        return error;
    bool is_key = strlen(line) == 2 * sizeof secret_box->key &&
                  crypto_hex_read(line, secret_box->key, sizeof secret_box->key);
    crypto_wipe((char *)(uintptr_t)line, strlen(line));
    if (is_key)
        return IW_OK;
    return context_fail(context, IW_CONFIG_INVALID,
                        "The sealing key %s is not one line of 64 hexadecimal digits.", path);
}

/*
 * The file is written under a temporary name and then linked, so that it is complete and never replaces an
 * existing file.
 */
enum iw_error secret_box_generate(struct context *context, const char *path)
{
    uint8_t key[crypto_key_bytes];
    const char *fresh = arena_printf(context->arena, "%s.%ld.new", path, (long)getpid());
    int descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return context_fail(context, IW_IO_FAILED, "%s: %s.", fresh, strerror(errno));
    crypto_random(key, sizeof key);
    char *hex = crypto_hex(context->arena, key, sizeof key);
    bool is_written = dprintf(descriptor, "%s\n", hex) > 0 && fsync(descriptor) == 0;
    crypto_wipe(key, sizeof key);
    crypto_wipe(hex, 2 * sizeof key);
    is_written = close(descriptor) == 0 && is_written;
    is_written = is_written && link(fresh, path) == 0;
    int why = errno;
    unlink(fresh);
    if (is_written)
        return IW_OK;
    return context_fail(context, why == EEXIST ? IW_TWIN_EXISTS : IW_IO_FAILED, "%s: %s.", path,
                        strerror(why));
}
