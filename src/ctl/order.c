/* imgwardctl order: shows, finds, retries and cancels orders. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/render.h"
#include "base/text.h"
#include "ctl/table.h"
#include "db/db.h"
#include "domain/files/retention.h"
#include "domain/orders/job_retry.h"
#include "service/files/storage.h"
#include "service/redis/queue.h"

enum { listed_default = 50, listed_max = 100000 };

/* ---- order show ---- */

static void order_render(struct render *render, const void *facts)
{
    const struct query_table *tables = facts;
    table_row_render(render, &tables[0], 0);
    for (int i = 1; i < orders_inspect_tables; i++)
        table_render(render, &tables[i]);
}

static bool id_read(const struct ctl *ctl, int64_t *id)
{
    if (text_integer(ctl->arguments[0], 1, INT64_MAX, id))
        return true;
    fprintf(stderr, "imgwardctl: an order id is a positive decimal number.\n");
    return false;
}

static enum ctl_exit show_run(struct ctl *ctl)
{
    struct config config;
    struct query_table tables[orders_inspect_tables];
    int64_t id;
    if (!id_read(ctl, &id))
        return CTL_FAILED;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = orders_inspect(db, id, tables);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    if (ctl_option(ctl, "--json") != NULL) {
        table_object_print(ctl, order_render, tables);
        return CTL_DONE;
    }
    table_row_print(ctl, &tables[0]);
    for (int i = 1; i < orders_inspect_tables; i++)
        table_print(ctl, &tables[i]);
    return CTL_DONE;
}

/* ---- order find ---- */

static enum ctl_exit find_run(struct ctl *ctl)
{
    struct config config;
    struct query_table table;
    struct orders_search wanted = {.account = ctl_option(ctl, "--account"),
                                   .status = ctl_option(ctl, "--status"),
                                   .request_id = ctl_option(ctl, "--request-id"),
                                   .name = ctl_option(ctl, "--name")};
    if (!ctl_option_integer(ctl, "--most", 1, listed_max, listed_default, &wanted.most))
        return CTL_FAILED;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = orders_search(db, &wanted, &table);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    table_show(ctl, &table);
    return CTL_DONE;
}

/* ---- order retry, order cancel ---- */

/* Prints the result of a retry. Returns false if no job was changed. */
static bool retry_print(int64_t id, const struct job_retry *done)
{
    if (done->status == ORDER_PENDING)
        printf("order %" PRId64 ": is pending; its client must confirm it\n", id);
    else if (done->status != ORDER_IN_PROGRESS)
        printf("order %" PRId64 ": a finished order (%s) cannot be restarted, because its inputs are "
               "deleted; the client must submit a new order\n",
               id, order_status_name(done->status));
    else
        printf("order %" PRId64 ": %" PRId64 " waiting jobs start now, %" PRId64 " failed jobs are retried\n",
               id, done->hurried, done->reopened);
    if (done->lost > 0)
        printf("order %" PRId64 ": %" PRId64
               " results were deleted because no target accepted them; they cannot be pushed again\n",
               id, done->lost);
    return done->hurried + done->reopened > 0;
}

static enum ctl_exit retry_run(struct ctl *ctl)
{
    struct config config;
    struct job_retry done;
    int64_t id;
    if (!id_read(ctl, &id))
        return CTL_FAILED;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    const struct domain domain = {.context = ctl->context, .config = &config, .db = *db};
    enum iw_error error = job_retry_order(&domain, id, &done);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    if (!retry_print(id, &done))
        return CTL_NEGATIVE;
    ctl_worker_wake(ctl, &config, id);
    return CTL_DONE;
}

static enum ctl_exit cancel_run(struct ctl *ctl)
{
    struct config config;
    struct storage *storage = NULL;
    int64_t id;
    if (!id_read(ctl, &id))
        return CTL_FAILED;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    const struct domain domain = {.context = ctl->context, .config = &config, .db = *db};
    enum iw_error error = storage_open(ctl->context, &config, &storage);
    if (error == IW_OK)
        error = retention_cancel(&domain, storage, id, ctl_option(ctl, "--force") != NULL);
    storage_close(storage);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("order %" PRId64 ": cancelled\n", id);
    return CTL_DONE;
}

const struct ctl_command order_commands[] = {
    {.words = {"order", "show"},
     .arguments = "ID",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--json", NULL, "print a JSON object"}},
     .help = "Show an order of any account with its files, results, jobs and history.",
     .run = show_run},
    {.words = {"order", "find"},
     .arguments = "",
     .options = {{"--account", "ACCOUNT", "only orders of this account (name or number)"},
                 {"--status", "pending|inProgress|complete|failed|detected|undetected|expired",
                  "only orders with this status"},
                 {"--request-id", "ID", "only the order that this request created (X-Request-Id)"},
                 {"--name", "WORD", "only orders with this text in the name"},
                 {"--most", "N", "print at most N orders; 50 when omitted"},
                 {"--json", NULL, "print a JSON array"}},
     .help = "List orders of any account, newest first.",
     .example = "imgwardctl order find --account studio --status failed",
     .run = find_run},
    {.words = {"order", "retry"},
     .arguments = "ID",
     .arguments_least = 1,
     .arguments_most = 1,
     .help =
         "Start the waiting jobs of an order in progress now, and retry its failed jobs with new attempts.  "
         "A finished order cannot be restarted: exit code 1.",
     .run = retry_run},
    {.words = {"order", "cancel"},
     .arguments = "ID",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--force", NULL, "also cancel an order that has results; they are deleted"}},
     .help = "Cancel an order that has no result yet: the order fails, webhooks are notified, and the "
             "uploads are deleted.",
     .run = cancel_run},
    {.words = {NULL}},
};
