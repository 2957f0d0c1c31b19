/* imgwardctl webhook: lists webhooks and retries failed deliveries. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "ctl/table.h"
#include "db/db.h"
#include "db/deliveries.h"
#include "db/webhooks.h"

static enum ctl_exit list_run(struct ctl *ctl)
{
    struct config config;
    struct query_table table;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = webhooks_inspect(db, ctl->argument_count > 0 ? ctl->arguments[0] : NULL, &table);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    table_show(ctl, &table);
    return CTL_DONE;
}

/* A delivery that is being sent stays as it is. */
static enum iw_error failed_repeat(const struct db *db, int64_t webhook_id, int64_t *count)
{
    struct query_ids found = {.count = 0};
    enum iw_error error = deliveries_failed(db, webhook_id, &found);
    *count = 0;
    for (unsigned i = 0; error == IW_OK && i < found.count; i++) {
        bool is_repeated = false;
        error = deliveries_repeat(db, webhook_id, found.items[i], clock_now_ms(), &is_repeated);
        *count += is_repeated;
    }
    return error;
}

static enum ctl_exit retry_run(struct ctl *ctl)
{
    struct config config;
    int64_t id, count = 0;
    if (!text_integer(ctl->arguments[0], 1, INT64_MAX, &id)) {
        fprintf(stderr,
                "imgwardctl: a webhook id is a positive number; imgwardctl webhook list shows the ids.\n");
        return CTL_FAILED;
    }
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = failed_repeat(db, id, &count);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("webhook %" PRId64 ": %" PRId64 " deliveries are retried\n", id, count);
    return CTL_DONE;
}

const struct ctl_command webhook_commands[] = {
    {.words = {"webhook", "list"},
     .arguments = "[ACCOUNT]",
     .arguments_most = 1,
     .options = {{"--json", NULL, "print a JSON array"}},
     .help = "List the webhooks of one account or of all accounts, with the state of their deliveries.",
     .run = list_run},
    {.words = {"webhook", "retry"},
     .arguments = "WEBHOOK",
     .arguments_least = 1,
     .arguments_most = 1,
     .help = "Retry every failed delivery to a webhook, from the start of its schedule.",
     .run = retry_run},
    {.words = {NULL}},
};
