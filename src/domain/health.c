#include "domain/health.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/text.h"
#include "db/provision.h"
#include "service/files/storage.h"
#include "service/redis/queue.h"

enum { worker_silent_s = 30, store_failing_ms = 60 * 1000 };

/* NULL, or why not.  Clears the context: an unavailable dependency is not an error here. */
static const char *cause_of(struct domain *domain, enum iw_error error)
{
    const struct context *context = domain->context;
    const char *cause = context->cause != NULL ? context->cause : context->sentence;
    context_clear(domain->context);
    return error == IW_OK ? NULL : cause != NULL ? cause : "no answer";
}

static bool is_ok(struct domain *domain, enum iw_error error)
{
    return cause_of(domain, error) == NULL;
}

struct health health_check(struct domain *domain)
{
    struct health health = {0};
    health.database_cause = cause_of(domain, provision_ping(&domain->db));
    bool has_redis = queue_length(domain->redis, domain->config, domain->context) >= 0;
    health.redis_cause = has_redis ? NULL : arena_text(domain->context->arena, redis_cause(domain->redis));
    context_clear(domain->context);
    if (domain_is_direct(domain)) {
        /* Asks for an object that does not exist. */
        struct storage_facts facts;
        const struct storage_key key = {.kind = FILEKEY_UPLOAD, .order_id = 1};
        enum iw_error error = storage_stat(domain->storage, domain->context, &key, &facts);
        health.store_cause = cause_of(domain, error == IW_NOT_FOUND ? IW_OK : error);
    } else {
        health.has_room = storage_room(domain->config->store_path, &health.free_bytes, &health.size_bytes);
        health.store_cause = health.has_room ? NULL
                                             : arena_printf(domain->context->arena, "%s: %s",
                                                            domain->config->store_path, strerror(errno));
    }
    health.has_database = health.database_cause == NULL;
    health.has_redis = has_redis;
    health.has_store = health.store_cause == NULL;
    return health;
}

const char *health_text(struct arena *arena, const struct health *health)
{
    struct text text;
    if (health->has_database && health->has_redis && health->has_store)
        return "Database, Redis and file store answer";
    text_init(&text, arena);
    if (!health->has_database)
        text_printf(&text, "No database (%s): requests are answered with 503; ", health->database_cause);
    if (!health->has_redis)
        text_printf(&text, "No Redis (%s): requests are not limited; ", health->redis_cause);
    if (!health->has_store)
        text_printf(&text, "No file store (%s): uploads are answered with 503; ", health->store_cause);
    return arena_text_n(arena, text.data, text.length - 2);
}

int64_t health_age_s(const struct census_row *row)
{
    int64_t age_ms = clock_now_ms() - row->oldest_ms;
    return row->oldest_ms == 0 || age_ms < 0 ? 0 : age_ms / 1000;
}

int64_t health_number(const struct health_numbers *numbers, enum census_source source, const char *state)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < numbers->rows.count; i++)
        if (numbers->rows.items[i].source == source && strcmp(numbers->rows.items[i].state, state) == 0)
            sum += numbers->rows.items[i].number;
    return sum;
}

int64_t health_oldest_s(const struct health_numbers *numbers, enum census_source source, const char *state)
{
    int64_t oldest_s = 0;
    for (unsigned i = 0; i < numbers->rows.count; i++) {
        const struct census_row *row = &numbers->rows.items[i];
        if (row->source == source && strcmp(row->state, state) == 0 && health_age_s(row) > oldest_s)
            oldest_s = health_age_s(row);
    }
    return oldest_s;
}

bool health_numbers(struct domain *domain, struct health_numbers *numbers)
{
    const struct db *db = &domain->db;
    bool is_paused;
    *numbers = (struct health_numbers){.paused = -1, .cluster_size = -1};
    if (!is_ok(domain, census_read(db, &numbers->rows)))
        return false;
    if (is_ok(domain, workers_paused(db, &is_paused)))
        numbers->paused = is_paused;
    struct db_server server;
    if (is_ok(domain, db_server_read(db, &server)))
        numbers->cluster_size = server.cluster_size;
    if (!is_ok(domain, workers_list(db, &numbers->workers, &numbers->worker_count)))
        numbers->workers = NULL;
    return true;
}

bool health_has_store(int64_t store_failed_ms)
{
    return store_failed_ms == 0 || clock_now_ms() - store_failed_ms > store_failing_ms;
}

const char *health_worker_text(struct arena *arena, const struct worker_row *worker, bool *is_well)
{
    *is_well = worker->image_failing_ms == 0 && health_has_store(worker->store_failed_ms);
    if (worker->image_failing_ms != 0)
        return arena_printf(arena, message_images_failing, worker->image_ready, worker->places,
                            clock_iso_text(arena, worker->image_failing_ms), worker->image_reason);
    if (!*is_well)
        return arena_printf(arena, message_images_store, worker->image_ready, worker->places,
                            clock_iso_text(arena, worker->store_failed_ms), worker->store_reason);
    return arena_printf(arena, message_images_well, worker->image_ready, worker->places);
}

const struct worker_row *health_mail_failed(const struct worker_row *workers, unsigned count)
{
    const struct worker_row *failed = NULL;
    int64_t sent_ms = 0;
    for (unsigned i = 0; i < count; i++) {
        sent_ms = workers[i].mail_sent_ms > sent_ms ? workers[i].mail_sent_ms : sent_ms;
        if (failed == NULL || workers[i].mail_failed_ms > failed->mail_failed_ms)
            failed = &workers[i];
    }
    return failed != NULL && failed->mail_failed_ms > sent_ms ? failed : NULL;
}

bool health_worker_is_up(const struct worker_row *worker)
{
    return worker->silent_s < worker_silent_s;
}
