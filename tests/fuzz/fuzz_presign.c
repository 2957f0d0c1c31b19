/*
 * Verifies presigned URLs. The first byte selects the method; the second and third change one byte of a
 * signed URL; the rest is a "KEY?QUERY". Only signed URLs may be accepted, and a changed URL only if
 * the change is the order of parameters.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "service/files/presign.h"
#include "targets.h"

static struct presign *presign;
static struct arena *arena;
static const int64_t expires_s = 4102444800;

static void prepare(void)
{
    static char path[] = "/tmp/imgward-fuzz-XXXXXX";
    struct config config;
    struct context context;
    int file = mkstemp(path);
    arena = arena_new(0);
    context_init(&context, arena, NULL);
    config_init(&config);
    config.store_signing_keys_file = path;
    if (file < 0 || dprintf(file, "one:%064d\ntwo:%064d\n", 7, 8) < 0 ||
        presign_new(&context, &config, &presign) != IW_OK)
        abort();
    close(file);
    unlink(path);
}

/* True if "KEY?QUERY" is accepted. */
static bool is_granted(enum presign_method method, const char *text, struct presign_grant *grant)
{
    struct context context;
    char *key = strdup(text);
    char *query = strchr(key, '?');
    context_init(&context, arena, NULL);
    if (query != NULL)
        *query++ = '\0';
    const struct presign_request request = {method, key, query != NULL ? query : "", 1000};
    bool is_good = presign_verify(presign, &context, &request, grant) == IW_OK;
    free(key);
    return is_good;
}

static const char *url_signed(enum presign_method method)
{
    const struct filekey upload = {.kind = FILEKEY_UPLOAD, .order_id = 382515091307376618, .number = 1};
    const struct filekey result = {.kind = FILEKEY_RESULT, .order_id = 382515091307376618, .number = 12};
    const char *url = method == PRESIGN_PUT ? presign_upload_url(presign, arena, &upload, expires_s, 52428800)
                                            : presign_download_url(presign, arena, &result, expires_s);
    return strstr(url, "/files/") + 7;
}

static void changed_is_refused(enum presign_method method, unsigned char place, unsigned char byte)
{
    struct presign_grant grant;
    char *url = strdup(url_signed(method));
    if (!is_granted(method, url, &grant))
        abort();
    char *at = url + place % strlen(url);
    if (byte != 0 && *at != (char)byte) {
        *at = (char)byte;
        if (is_granted(method, url, &grant))
            abort();
    }
    free(url);
}

/* An accepted URL equals the URL that the service would sign, except for the order of parameters. */
static void granted_is_signed(enum presign_method method, const char *text)
{
    struct presign_grant grant;
    if (!is_granted(method, text, &grant))
        return;
    const char *url = method == PRESIGN_PUT
                          ? presign_upload_url(presign, arena, &grant.key, grant.expires_s, grant.max_bytes)
                          : presign_download_url(presign, arena, &grant.key, grant.expires_s);
    if (strlen(strstr(url, "/files/") + 7) != strlen(text))
        abort();
}

int fuzz_presign(const unsigned char *data, size_t size)
{
    if (presign == NULL)
        prepare();
    if (size < 3)
        return 0;
    enum presign_method method = data[0] % 2 == 0 ? PRESIGN_GET : PRESIGN_PUT;
    char *text = strndup((const char *)data + 3, size - 3);
    arena_reset(arena);
    changed_is_refused(method, data[1], data[2]);
    granted_is_signed(method, text);
    free(text);
    return 0;
}
