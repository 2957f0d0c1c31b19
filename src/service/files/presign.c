#include "service/files/presign.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"

enum {
    key_bytes = 32,
    key_id_max = 16,
    signature_length = 43, /* base64url of 32 bytes, without padding */
    file_max_bytes = 4096,
    signed_size = 256
};

/* The keys in the order of the file, with the time (seconds since 1970) from which each may sign. */
struct key_list {
    struct {
        char id[key_id_max + 1];
        int64_t from_s;
    } keys[presign_keys_max];
    unsigned count;
};

struct key_file {
    struct key_list list;
    uint8_t secrets[presign_keys_max][key_bytes];
};

struct presign {
    struct key_list list;
    struct crypto_mac *macs[presign_keys_max];
    char *public_url;
    int64_t upload_url_s;
    int64_t download_url_s;
    int64_t upload_max_bytes;
};

/* ---- Key lists ---- */

/* Returns the index of the key with this id, or the count if there is none. */
static unsigned key_find(const struct key_list *list, const char *id)
{
    unsigned i = 0;
    while (i < list->count && strcmp(list->keys[i].id, id) != 0)
        i++;
    return i;
}

/* Returns the key that signs now: the first key that is already valid, or else the last key. */
static unsigned key_signing(const struct key_list *list)
{
    unsigned i = 0;
    while (i + 1 < list->count && list->keys[i].from_s * 1000 > clock_now_ms())
        i++;
    return i;
}

/* ---- The key file ---- */

static bool id_is_good(const char *id, size_t length)
{
    if (length == 0 || length > key_id_max)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)id[i]))
            return false;
    return true;
}

/*
 * Parses one line and adds the key to the list. Overwrites the colons in the line. Returns NULL, or the
 * problem.
 */
static const char *line_take(struct key_file *file, char *line)
{
    struct key_list *list = &file->list;
    char *secret = strchr(line, ':'), *from = secret != NULL ? strchr(secret + 1, ':') : NULL;
    if (secret == NULL || !id_is_good(line, (size_t)(secret - line)))
        return "must be an id of 1 to 16 letters and digits, a colon, and 64 hexadecimal digits";
    *secret++ = '\0';
    if (from != NULL)
        *from++ = '\0';
    if (key_find(list, line) < list->count)
        return "has a duplicate id";
    if (list->count == presign_keys_max)
        return "is over the maximum number of keys";
    if (strlen(secret) != 2 * key_bytes || !crypto_hex_read(secret, file->secrets[list->count], key_bytes))
        return "must have 64 hexadecimal digits after the colon";
    if (from != NULL && !text_integer(from, 0, INT64_MAX / 1000, &list->keys[list->count].from_s))
        return "must end with the key, or with a colon and the seconds since 1970 from which it signs";
    memcpy(list->keys[list->count++].id, line, strlen(line) + 1);
    return NULL;
}

/* Reads the whole file into text; room includes the terminating zero. */
static enum iw_error file_load(struct context *context, const char *path, char *text, size_t room)
{
    struct stat facts;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return context_fail(context, IW_CONFIG_INVALID, "The signing keys %s cannot be read: %s.", path,
                            strerror(errno));
    bool is_regular = fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode);
    ssize_t size = is_regular ? read(descriptor, text, room - 1) : -1;
    close(descriptor);
    if (size < 0 || (size_t)size == room - 1)
        return context_fail(context, IW_CONFIG_INVALID, "The signing key file %s is too long or not text.",
                            path);
    text[size] = '\0';
    if ((facts.st_mode & 07) != 0)
        return context_fail(context, IW_CONFIG_INVALID,
                            "The signing keys %s are readable by other users; chmod 0600 the file.", path);
    return IW_OK;
}

static enum iw_error text_parse(struct context *context, const char *path, char *text, struct key_file *file)
{
    int number = 0;
    *file = (struct key_file){.list = {.count = 0}};
    for (char *line = text, *next; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        number++;
        if (line[0] == '\0' || line[0] == '#')
            continue;
        const char *why = line_take(file, line);
        if (why != NULL)
            return context_fail(context, IW_CONFIG_INVALID, "%s:%d: the line %s.", path, number, why);
    }
    if (file->list.count == 0)
        return context_fail(context, IW_CONFIG_INVALID, "The signing key file %s has no key.", path);
    return IW_OK;
}

static enum iw_error key_file_read(struct context *context, const char *path, struct key_file *file)
{
    char text[file_max_bytes];
    enum iw_error error = file_load(context, path, text, sizeof text);
    if (error == IW_OK)
        error = text_parse(context, path, text, file);
    crypto_wipe(text, sizeof text);
    return error;
}

/* Writes one line. A key that signs from the beginning has no time. */
static bool key_write(struct arena *arena, int descriptor, const struct key_file *file, unsigned i)
{
    const char *id = file->list.keys[i].id;
    int64_t from_s = file->list.keys[i].from_s;
    char *hex = crypto_hex(arena, file->secrets[i], key_bytes);
    int length = from_s == 0 ? dprintf(descriptor, "%s:%s\n", id, hex)
                             : dprintf(descriptor, "%s:%s:%" PRId64 "\n", id, hex, from_s);
    crypto_wipe(hex, 2 * key_bytes);
    return length > 0;
}

/* Writes a file atomically: a temporary file, then a link (a new file) or a rename (a replacement). */
static enum iw_error key_file_write(struct context *context, const char *path, const struct key_file *file,
                                    bool is_replacing)
{
    struct stat before;
    /* A symbolic link is kept; its target is replaced. */
    char *real = is_replacing ? realpath(path, NULL) : NULL;
    path = real != NULL ? arena_text(context->arena, real) : path;
    free(real);
    const char *fresh = arena_printf(context->arena, "%s.%ld.new", path, (long)getpid());
    int descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return context_fail(context, IW_IO_FAILED, "%s: %s.", fresh, strerror(errno));
    bool is_written = true;
    for (unsigned i = 0; i < file->list.count; i++)
        is_written = key_write(context->arena, descriptor, file, i) && is_written;
    /* Keeps the owner, because the service's user must be able to read a file that root has rotated. */
    if (is_replacing && stat(path, &before) == 0)
        is_written = fchown(descriptor, before.st_uid, before.st_gid) == 0 &&
                     fchmod(descriptor, before.st_mode & 0640) == 0 && is_written;
    is_written = is_written && fsync(descriptor) == 0;
    is_written = close(descriptor) == 0 && is_written;
    is_written = is_written && (is_replacing ? rename(fresh, path) : link(fresh, path)) == 0;
    int why = errno;
    unlink(fresh);
    if (is_written)
        return IW_OK;
    return context_fail(context, why == EEXIST ? IW_TWIN_EXISTS : IW_IO_FAILED, "%s: %s.", path,
                        strerror(why));
}

/* Writes a file with a new key and the current signing key of the old list, if there is one. */
static enum iw_error key_add(struct context *context, const char *path, const struct key_file *old,
                             int64_t from_s, const char **new_id)
{
    struct key_file fresh = {.list = {.count = 1, .keys = {{.from_s = from_s}}}};
    char *id = fresh.list.keys[0].id;
    do {
        snprintf(id, key_id_max + 1, "%08" PRIx32, (uint32_t)crypto_random_u64());
    } while (key_find(&old->list, id) < old->list.count);
    crypto_random(fresh.secrets[0], key_bytes);
    if (old->list.count > 0) {
        unsigned signing = key_signing(&old->list);
        fresh.list.keys[fresh.list.count] = old->list.keys[signing];
        memcpy(fresh.secrets[fresh.list.count++], old->secrets[signing], key_bytes);
    }
    *new_id = arena_text(context->arena, id);
    enum iw_error error = key_file_write(context, path, &fresh, old->list.count > 0);
    crypto_wipe(&fresh, sizeof fresh);
    return error;
}

enum iw_error presign_keys_generate(struct context *context, const char *path, const char **new_id)
{
    const struct key_file none = {.list = {.count = 0}};
    return key_add(context, path, &none, 0, new_id);
}

enum iw_error presign_keys_rotate(struct context *context, const char *path, int64_t from_s,
                                  const char **new_id)
{
    struct key_file old;
    enum iw_error error = key_file_read(context, path, &old);
    if (error == IW_OK)
        error = key_add(context, path, &old, from_s, new_id);
    crypto_wipe(&old, sizeof old);
    return error;
}

enum iw_error presign_keys_ids(struct context *context, const char *path, char *ids, size_t size)
{
    struct key_file file;
    char id[crypto_key_id_size];
    ids[0] = '\0';
    enum iw_error error = key_file_read(context, path, &file);
    for (unsigned i = 0; error == IW_OK && i < file.list.count; i++) {
        size_t length = strlen(ids);
        crypto_key_id(file.secrets[i], key_bytes, id);
        snprintf(ids + length, size - length, "%s%s", i > 0 ? " " : "", id);
    }
    crypto_wipe(&file, sizeof file);
    return error;
}

/* ---- Loaded keys ---- */

enum iw_error presign_new(struct context *context, const struct config *config, struct presign **presign)
{
    struct key_file file;
    enum iw_error error = key_file_read(context, config->store_signing_keys_file, &file);
    if (error != IW_OK)
        return error;
    struct presign *made = calloc(1, sizeof *made);
    char *url = strdup(config->api_public_url);
    if (made == NULL || url == NULL)
        abort();
    made->public_url = url;
    made->upload_url_s = config->store_upload_url_s;
    made->download_url_s = config->store_download_url_s;
    made->upload_max_bytes = config->store_upload_max_bytes;
    made->list = file.list;
    for (unsigned i = 0; i < file.list.count; i++)
        made->macs[i] = crypto_mac_new(file.secrets[i], key_bytes);
    crypto_wipe(&file, sizeof file);
    *presign = made;
    return IW_OK;
}

void presign_free(struct presign *presign)
{
    if (presign == NULL)
        return;
    for (unsigned i = 0; i < presign->list.count; i++)
        crypto_mac_free(presign->macs[i]);
    free(presign->public_url);
    free(presign);
}

int64_t presign_expiry_s(const struct presign *presign, enum presign_method method)
{
    return clock_now_ms() / 1000 + (method == PRESIGN_PUT ? presign->upload_url_s : presign->download_url_s);
}

int64_t presign_upload_max_bytes(const struct presign *presign)
{
    return presign->upload_max_bytes;
}

/* ---- Signing ---- */

struct signed_url {
    enum presign_method method;
    const char *key_text;
    int64_t expires_s;
    int64_t max_bytes; /* uploads only, otherwise 0 */
};

/*
 * The first line of the signed text states the purpose, so that the signature is not valid for any other
 * text.
 */
static const char *signature_make(const struct presign *presign, struct arena *arena, unsigned key,
                                  const struct signed_url *url)
{
    char text[signed_size];
    uint8_t digest[sha256_bytes];
    int length = snprintf(text, sizeof text, "imgward-url-1\n%s\n%s\n%" PRId64 "\n%" PRId64 "\n%s",
                          url->method == PRESIGN_PUT ? "PUT" : "GET", url->key_text, url->expires_s,
                          url->max_bytes, presign->list.keys[key].id);
    if (length < 0 || (size_t)length >= sizeof text)
        abort(); /* Cannot happen, because the parts are bounded; a truncated text must never be signed. */
    crypto_mac_sign(presign->macs[key], text, (size_t)length, digest);
    return crypto_base64url(arena, digest, sizeof digest);
}

const char *presign_upload_url(const struct presign *presign, struct arena *arena, const struct filekey *key,
                               int64_t expires_s, int64_t max_bytes)
{
    char text[filekey_size];
    unsigned signing = key_signing(&presign->list);
    filekey_print(key, text);
    const struct signed_url url = {PRESIGN_PUT, text, expires_s, max_bytes};
    return arena_printf(arena, "%s/files/%s?e=%" PRId64 "&m=%" PRId64 "&k=%s&s=%s", presign->public_url, text,
                        expires_s, max_bytes, presign->list.keys[signing].id,
                        signature_make(presign, arena, signing, &url));
}

const char *presign_download_url(const struct presign *presign, struct arena *arena,
                                 const struct filekey *key, int64_t expires_s)
{
    char text[filekey_size];
    unsigned signing = key_signing(&presign->list);
    filekey_print(key, text);
    const struct signed_url url = {PRESIGN_GET, text, expires_s, 0};
    return arena_printf(arena, "%s/files/%s?e=%" PRId64 "&k=%s&s=%s", presign->public_url, text, expires_s,
                        presign->list.keys[signing].id, signature_make(presign, arena, signing, &url));
}

/* ---- Verification ---- */

enum { parameter_count = 4, parameter_size = 64 };

struct parameters {
    char values[parameter_count][parameter_size]; /* in the order of names[]; "" if absent */
};

static const char parameter_names[parameter_count] = {'e', 'm', 'k', 's'};

/*
 * Stores one parameter ("e=..." of length bytes). Returns false if the parameter is unknown, empty, too long
 * or a duplicate.
 */
static bool parameter_take(struct parameters *parameters, const char *text, size_t length)
{
    if (length < 3 || text[1] != '=' || length - 2 >= parameter_size)
        return false;
    for (unsigned i = 0; i < parameter_count; i++)
        if (parameter_names[i] == text[0] && parameters->values[i][0] == '\0') {
            memcpy(parameters->values[i], text + 2, length - 2);
            parameters->values[i][length - 2] = '\0';
            return true;
        }
    return false;
}

static bool query_read(const char *query, struct parameters *parameters)
{
    memset(parameters, 0, sizeof *parameters);
    for (const char *at = query;; at++) {
        size_t length = strcspn(at, "&");
        if (!parameter_take(parameters, at, length))
            return false;
        at += length;
        if (*at == '\0')
            return true;
    }
}

/* Reads the numbers of the query. Only uploads have a size limit. */
static bool limits_read(const struct parameters *parameters, enum presign_method method,
                        struct presign_grant *grant)
{
    grant->max_bytes = 0;
    if (!text_integer(parameters->values[0], 1, INT64_MAX / 1000, &grant->expires_s))
        return false;
    if (method == PRESIGN_GET)
        return parameters->values[1][0] == '\0';
    return text_integer(parameters->values[1], 1, INT64_MAX, &grant->max_bytes);
}

/*
 * Compares the texts instead of the decoded bytes, because several base64 texts can decode to the same bytes.
 */
static bool signature_matches(const struct presign *presign, struct arena *arena,
                              const struct presign_request *request, const struct parameters *parameters,
                              const struct presign_grant *grant)
{
    unsigned key = key_find(&presign->list, parameters->values[2]);
    if (key == presign->list.count)
        return false;
    const struct signed_url url = {request->method, request->key_text, grant->expires_s, grant->max_bytes};
    const char *wanted = signature_make(presign, arena, key, &url);
    return strlen(parameters->values[3]) == signature_length &&
           crypto_equal(wanted, parameters->values[3], signature_length);
}

/* Returns the value of a one-letter parameter, or NULL. */
static const char *parameter_at(const char *query, char name)
{
    for (const char *at = query; at != NULL; at = strchr(at, '&'), at = at != NULL ? at + 1 : NULL)
        if (at[0] == name && at[1] == '=')
            return at + 2;
    return NULL;
}

/* Returns the required parameters that are missing from the query, as "k, s"; "" if none is missing. */
static const char *parameters_missing(struct arena *arena, const char *query, enum presign_method method)
{
    const char *missing = "";
    for (unsigned i = 0; i < parameter_count; i++)
        if ((parameter_names[i] != 'm' || method == PRESIGN_PUT) &&
            parameter_at(query, parameter_names[i]) == NULL)
            missing =
                arena_printf(arena, "%s%s%c", missing, *missing != '\0' ? ", " : "", parameter_names[i]);
    return missing;
}

/*
 * Guesses how the client changed an invalid URL. The result is used only for the message, after verification
 * has failed.
 */
static const char *query_fault(struct arena *arena, const char *query, enum presign_method method)
{
    const char *missing = parameters_missing(arena, query, method);
    const char *signature = parameter_at(query, 's');
    unsigned count = 1;
    for (const char *at = query; *at != '\0'; at++)
        count += *at == '&';
    if (query[0] == '\0')
        return "the query after the question mark is missing";
    if (strstr(query, "&amp;") != NULL)
        return "it was copied out of HTML; write & for each &amp;";
    if (strcasestr(query, "%26") != NULL || strcasestr(query, "%3D") != NULL)
        return "it was percent-encoded again after the service returned it";
    if (*missing != '\0')
        return arena_printf(arena,
                            "it was cut off, because the parameters %s are missing; quote the URL in a shell",
                            missing);
    if (strcspn(signature, "&") != signature_length)
        return arena_printf(arena, "its signature has %zu characters in place of %d", strcspn(signature, "&"),
                            (int)signature_length);
    if (count > (method == PRESIGN_PUT ? parameter_count : parameter_count - 1u))
        return "parameters were added to it";
    return "it was changed, or its query belongs to another file";
}

/* Returns NULL if the URL is valid, otherwise the reason why it is not. */
static const char *url_fault(const struct presign *presign, struct arena *arena,
                             const struct presign_request *request, struct presign_grant *grant)
{
    struct parameters parameters;
    const char *query = request->query;
    enum presign_method method = request->method;
    if (!filekey_read(request->key_text, &grant->key))
        return "its path was changed";
    bool is_upload = grant->key.kind == FILEKEY_UPLOAD || grant->key.kind == FILEKEY_ORIGINAL;
    if (is_upload != (method == PRESIGN_PUT))
        return "its path was changed";
    if (!query_read(query, &parameters) || !limits_read(&parameters, method, grant))
        return query_fault(arena, query, method);
    if (parameters.values[2][0] != '\0' &&
        key_find(&presign->list, parameters.values[2]) == presign->list.count)
        return "it was changed, or the key that signed it is no longer in use; request a new URL";
    if (!signature_matches(presign, arena, request, &parameters, grant))
        return query_fault(arena, query, method);
    return NULL;
}

/* The requests that return a new URL of each kind. */
static const struct {
    const char *what;
    const char *method;
    const char *path;
} origins[] = {
    [FILEKEY_UPLOAD] = {"upload", "POST", "/refresh-urls"},
    [FILEKEY_ORIGINAL] = {"upload", "POST", "/refresh-urls"},
    [FILEKEY_RESULT] = {"download", "GET", "/download"},
    [FILEKEY_ZIP] = {"download", "GET", "/download"},
    [FILEKEY_THUMBNAIL] = {"thumbnail", "GET", ""},
};

enum iw_error presign_verify(const struct presign *presign, struct context *context,
                             const struct presign_request *request, struct presign_grant *grant)
{
    const char *fault = url_fault(presign, context->arena, request, grant);
    if (fault != NULL)
        return context_fail(
            context, IW_URL_SIGNATURE_INVALID,
            "The service did not sign this URL: %s. Use each URL exactly as the service returned it.", fault);
    if (request->at_ms < grant->expires_s * 1000)
        return IW_OK;
    enum filekey_kind kind = grant->key.kind;
    context->expired_at = clock_iso_text(context->arena, grant->expires_s * 1000);
    return context_fail(context, IW_URL_EXPIRED,
                        "The %s URL expired at %s; %s /api/v2/orders/%" PRId64 "%s returns a new URL.",
                        origins[kind].what, context->expired_at, origins[kind].method, grant->key.order_id,
                        origins[kind].path);
}
