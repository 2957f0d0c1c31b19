#include "ctl/ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "db/db.h"
#include "service/redis/queue.h"

const char *ctl_option(const struct ctl *ctl, const char *name)
{
    for (unsigned i = 0; i < ctl_options_max && ctl->command->options[i].name != NULL; i++)
        if (strcmp(ctl->command->options[i].name, name) == 0)
            return ctl->values[i];
    return NULL;
}

bool ctl_option_integer(const struct ctl *ctl, const char *name, int64_t least, int64_t most,
                        int64_t fallback, int64_t *value)
{
    const char *given = ctl_option(ctl, name);
    *value = fallback;
    if (given == NULL || text_integer(given, least, most, value))
        return true;
    fprintf(stderr, "imgwardctl: %s is \"%s\"; it must be an integer from %lld to %lld.\n", name, given,
            (long long)least, (long long)most);
    return false;
}

bool ctl_config(struct ctl *ctl, struct config *config)
{
    if (config_read(ctl->context, ctl->config_path, config) == IW_OK)
        return true;
    for (const struct context_detail *detail = ctl->context->details; detail != NULL; detail = detail->next)
        fprintf(stderr, "imgwardctl: %s: %s\n", detail->field, detail->message);
    if (ctl->context->details == NULL)
        fprintf(stderr, "imgwardctl: %s\n", ctl->context->sentence);
    return false;
}

bool ctl_config_or_defaults(struct ctl *ctl, struct config *config)
{
    if (ctl->is_config_named || access(ctl->config_path, F_OK) == 0)
        return ctl_config(ctl, config);
    config_init(config);
    return true;
}

void ctl_notes_print(const struct ctl *ctl)
{
    if (ctl->context->notes != NULL)
        fprintf(stderr, "imgwardctl: %s%snote: %s\n", ctl->about != NULL ? ctl->about : "",
                ctl->about != NULL ? ": " : "", context_notes_text(ctl->context));
}

enum ctl_exit ctl_failed(const struct ctl *ctl)
{
    const struct context *context = ctl->context;
    const char *sentence = context->sentence != NULL ? context->sentence : "failed.";
    bool is_named = ctl->about == NULL || strncmp(sentence, ctl->about, strlen(ctl->about)) == 0;
    fprintf(stderr, "imgwardctl: %s%s%s", is_named ? "" : ctl->about, is_named ? "" : ": ", sentence);
    if (context->cause != NULL)
        fprintf(stderr, " (%s)", context->cause);
    fputc('\n', stderr);
    return CTL_FAILED;
}

/* Reads to the end of the file. Returns false on an error, or if there are more than size bytes. */
static bool descriptor_read(int descriptor, unsigned char *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count = read(descriptor, bytes + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

enum iw_error ctl_file_read(struct context *context, const char *path, size_t limit, unsigned char **bytes,
                            size_t *size)
{
    struct stat facts;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return context_fail(context, IW_IO_FAILED, "%s: %s.", path, strerror(errno));
    if (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        close(descriptor);
        return context_fail(context, IW_IO_FAILED, "%s: not a regular file.", path);
    }
    *size = (size_t)facts.st_size;
    if (*size > limit) {
        close(descriptor);
        return context_fail(context, IW_PAYLOAD_TOO_LARGE,
                            "%s: the file has %zu bytes; at most %zu are allowed.", path, *size, limit);
    }
    *bytes = malloc(*size + 1);
    bool is_read = *bytes != NULL && descriptor_read(descriptor, *bytes, *size);
    close(descriptor);
    if (is_read)
        return IW_OK;
    free(*bytes);
    return context_fail(context, IW_IO_FAILED, "%s: cannot be read.", path);
}

static bool descriptor_write(int descriptor, const unsigned char *bytes, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count = write(descriptor, bytes + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return false;
        done += (size_t)count;
    }
    return fsync(descriptor) == 0;
}

/* How a file gets its name and its permissions. */
struct placing {
    int (*place)(const char *from, const char *to); /* rename or link */
    unsigned mode;                                  /* within the umask */
    const struct stat
        *before; /* the file whose mode, owner and group the new file gets; NULL if there is none */
};

/* Writes a temporary file in the same folder, then gives it the final name with one atomic call. */
static enum iw_error file_place(struct context *context, const char *path, const void *bytes, size_t size,
                                const struct placing *placing)
{
    const struct stat *before = placing->before;
    char *fresh = arena_printf(context->arena, "%s.%ld.new", path, (long)getpid());
    int descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, placing->mode);
    if (descriptor < 0)
        return context_fail(context, IW_IO_FAILED, "%s: %s.", path, strerror(errno));
    bool is_written = before == NULL || (fchown(descriptor, before->st_uid, before->st_gid) == 0 &&
                                         fchmod(descriptor, before->st_mode & 0777) == 0);
    is_written = is_written && descriptor_write(descriptor, bytes, size);
    is_written = close(descriptor) == 0 && is_written;
    is_written = is_written && placing->place(fresh, path) == 0;
    int why = errno;
    unlink(fresh);
    if (is_written)
        return IW_OK;
    return context_fail(context, why == EEXIST ? IW_TWIN_EXISTS : IW_IO_FAILED, "%s: %s.", path,
                        strerror(why));
}

enum iw_error ctl_file_write(struct context *context, const char *path, const char *source, const void *bytes,
                             size_t size)
{
    struct stat before, facts;
    unsigned mode = stat(source, &facts) == 0 ? facts.st_mode & 0666 : 0600;
    if (lstat(path, &facts) != 0 && errno == ENOENT)
        return file_place(context, path, bytes, size, &(struct placing){rename, mode, NULL});
    char *real = realpath(path, NULL);
    if (real == NULL || stat(real, &before) != 0) {
        int why = errno;
        free(real);
        return context_fail(context, IW_IO_FAILED, "%s: %s.", path,
                            why == ENOENT ? "is a symbolic link whose target does not exist; name a file"
                                          : strerror(why));
    }
    enum iw_error error =
        S_ISREG(before.st_mode)
            ? file_place(context, real, bytes, size, &(struct placing){rename, 0600, &before})
            : context_fail(context, IW_IO_FAILED, "%s: is not a regular file; name a file.", path);
    free(real);
    return error;
}

enum iw_error ctl_file_make(struct context *context, const char *path, const void *bytes, size_t size,
                            unsigned mode)
{
    return file_place(context, path, bytes, size, &(struct placing){link, mode, NULL});
}

/* ---- database and Redis ---- */

bool ctl_is_socket_user(const struct config *config)
{
    return config->database_password_file[0] == '\0' && config->database_socket[0] != '\0';
}

bool ctl_user_become(const struct config *config)
{
    const struct passwd *user = getpwnam(config->database_user);
    if (geteuid() != 0 || !ctl_is_socket_user(config) || user == NULL || user->pw_uid == 0)
        return true;
    if (initgroups(user->pw_name, user->pw_gid) == 0 &&
        setresgid(user->pw_gid, user->pw_gid, user->pw_gid) == 0 &&
        setresuid(user->pw_uid, user->pw_uid, user->pw_uid) == 0)
        return true;
    fprintf(stderr, "imgwardctl: cannot become %s: %s.\n", user->pw_name, strerror(errno));
    return false;
}

struct db_connection *ctl_db_administrator(const struct config *config, const char *database,
                                           struct config *copy)
{
    *copy = *config;
    copy->database_user = "root";
    copy->database_name = database;
    copy->database_hosts = ""; /* only a local server can authenticate root */
    return db_new(copy, "");
}

const struct db *ctl_db_open(struct ctl *ctl, struct config *config)
{
    const char *password;
    struct db *db = arena_alloc(ctl->context->arena, sizeof *db);
    if (!ctl_config(ctl, config))
        return NULL;
    clock_offset_set_s(config->test_clock_offset_s);
    if (!ctl_user_become(config))
        return NULL;
    if (config_secret(ctl->context, config->database_password_file, &password) != IW_OK) {
        ctl_failed(ctl);
        return NULL;
    }
    *db = (struct db){.context = ctl->context, .connection = db_new(config, password)};
    return db;
}

void ctl_db_close(const struct db *db)
{
    if (db != NULL)
        db_free(db->connection);
}

const char *ctl_time(const struct ctl *ctl, int64_t time_ms)
{
    char text[clock_iso_size];
    if (time_ms == 0)
        return "-";
    clock_iso(time_ms, text);
    return arena_text(ctl->context->arena, text);
}

struct redis *ctl_redis_open(struct ctl *ctl, const struct config *config)
{
    const char *password;
    if (config_secret(ctl->context, config->redis_password_file, &password) == IW_OK)
        return redis_new(config, password);
    context_clear(ctl->context);
    return NULL;
}

void ctl_worker_wake(struct ctl *ctl, const struct config *config, int64_t order_id)
{
    struct redis *redis = ctl_redis_open(ctl, config);
    if (redis == NULL)
        return;
    queue_notify(redis, config, ctl->context, order_id);
    redis_free(redis);
}
