#include "ctl/ctl_db.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "service/redis/queue.h"

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
    copy->database_hosts = ""; /* only the local server knows root */
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
