#include "domain/accounts/request_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/redact.h"
#include "db/bounds.h"

enum {
    flush_every_ms = 1000,
    arena_bytes = 16 << 20,
    /* of request_log_rows_max rows with two bodies, and their statements */ path_size = 201,
    method_size = 11,
    id_size = 65
};

/* The texts of a row. */
struct entry {
    struct request_log_row row;
    char request_id[id_size];
    char method[method_size];
    char path[path_size];
};

struct request_log {
    struct arena *arena; /* the bodies of the entries, and one flush */
    int64_t due_ms;      /* monotonic; valid with rows */
    unsigned count;
    unsigned dropped; /* since the last flush */
    bool has_bodies[request_log_rows_max];
    int64_t accounts[request_log_rows_max]; /* of the entries, next to each other: they are counted for each
                                               row */
    struct entry entries[request_log_rows_max];
};

struct request_log *request_log_new(void)
{
    struct request_log *log = calloc(1, sizeof *log);
    if (log == NULL)
        abort();
    log->arena = arena_new(arena_bytes);
    return log;
}

void request_log_free(struct request_log *log)
{
    if (log == NULL)
        return;
    arena_free(log->arena);
    free(log);
}

/* Copies printable ASCII; the rest becomes "?". */
static const char *text_copy(char *to, size_t size, const char *from)
{
    size_t length = strnlen(from, size - 1);
    for (size_t i = 0; i < length; i++)
        to[i] = from[i] >= 0x20 && from[i] < 0x7F ? from[i] : '?';
    to[length] = '\0';
    return to;
}

static bool has_room(const struct request_log *log, int64_t account_id)
{
    unsigned of_account = 0;
    for (unsigned i = 0; i < log->count; i++)
        of_account += log->accounts[i] == account_id;
    return log->count < request_log_rows_max && of_account < request_log_account_max;
}

static bool has_room_for_bodies(const struct request_log *log, int64_t account_id)
{
    unsigned of_account = 0;
    for (unsigned i = 0; i < log->count; i++)
        of_account += log->accounts[i] == account_id && log->has_bodies[i];
    return of_account < request_log_bodies_max;
}

static void bodies_copy(struct request_log *log, struct request_log_row *row,
                        const struct request_log_pair *bodies)
{
    row->request_body = redact(log->arena, bodies->request, bodies->request_bytes, redact_body_max);
    row->response_body = redact(log->arena, bodies->response, bodies->response_bytes, redact_body_max);
}

void request_log_add(struct request_log *log, const struct request_log_row *row,
                     const struct request_log_pair *bodies)
{
    if (log == NULL)
        return;
    if (!has_room(log, row->account_id)) {
        log->dropped++;
        return;
    }
    if (log->count == 0)
        log->due_ms = clock_monotonic_ms() + flush_every_ms;
    log->accounts[log->count] = row->account_id;
    log->has_bodies[log->count] = bodies != NULL && has_room_for_bodies(log, row->account_id);
    struct entry *entry = &log->entries[log->count++];
    entry->row = *row;
    entry->row.request_id = text_copy(entry->request_id, sizeof entry->request_id, row->request_id);
    entry->row.method = text_copy(entry->method, sizeof entry->method, row->method);
    entry->row.path = text_copy(entry->path, sizeof entry->path, row->path);
    if (log->has_bodies[log->count - 1])
        bodies_copy(log, &entry->row, bodies);
}

int request_log_wait_ms(const struct request_log *log)
{
    if (log->count == 0)
        return -1;
    int64_t wait_ms = log->due_ms - clock_monotonic_ms();
    return wait_ms > 0 ? (int)wait_ms : 0;
}

void request_log_flush(struct request_log *log, struct domain *domain, bool is_all)
{
    struct request_log_row rows[request_log_rows_max];
    struct context context, *before = domain->context;
    if (log->count == 0 || (!is_all && request_log_wait_ms(log) > 0))
        return;
    for (unsigned i = 0; i < log->count; i++)
        rows[i] = log->entries[i].row;
    context_init(&context, log->arena, NULL);
    domain_context_set(domain, &context);
    if (request_log_insert(&domain->db, rows, log->count) != IW_OK)
        log_event(LOG_WARN, NULL, "request_log_dropped", LOG_NUMBER("rows", log->count),
                  LOG_TEXT("reason", iw_error_code(context.error)), LOG_TEXT("cause", context.cause));
    if (log->dropped > 0)
        log_event(LOG_WARN, NULL, "request_log_dropped", LOG_NUMBER("rows", log->dropped),
                  LOG_TEXT("reason", "too_many"));
    log->dropped = 0;
    domain_context_set(domain, before);
    arena_reset(log->arena);
    log->count = 0;
}

enum iw_error request_log_list(struct domain *domain, const struct request_log_filter *filter,
                               struct request_log_rows *rows)
{
    return request_log_page(&domain->db, filter, rows);
}

enum iw_error request_log_find_bodies(struct domain *domain, int64_t account_id, const char *request_id,
                                      struct request_log_row *row)
{
    bool is_found = false;
    enum iw_error error = domain->config->console_keep_bodies
                              ? request_log_bodies(&domain->db, account_id, request_id, row, &is_found)
                              : IW_OK;
    return error == IW_OK && !is_found
               ? context_fail(domain->context, IW_RESOURCE_NOT_FOUND, "No bodies of this request are kept.")
               : error;
}

enum iw_error request_log_forget_old(struct domain *domain, int64_t *count)
{
    int64_t kept_ms = (int64_t)request_log_days * 24 * 60 * 60 * 1000;
    int64_t requests = 0, bodies = 0, deliveries = 0, now_ms = clock_now_ms(), before_ms = now_ms - kept_ms;
    enum iw_error error = request_log_forget(&domain->db, before_ms,
                                             domain->config->console_keep_bodies ? before_ms : now_ms, count);
    if (error == IW_OK)
        error = bounds_trim(&domain->db, BOUNDS_REQUESTS, &requests);
    if (error == IW_OK)
        error = bounds_trim(&domain->db, BOUNDS_BODIES, &bodies);
    if (error == IW_OK)
        error = bounds_trim_deliveries(&domain->db, &deliveries);
    *count += requests + bodies + deliveries;
    return error;
}
