/* imgwardctl account: accounts, plans and rate limits. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "ctl/table.h"
#include "db/accounts.h"
#include "db/db.h"
#include "db/erasure.h"
#include "domain/accounts/quota.h"
#include "model/plan.h"
#include "service/redis/redis.h"

enum { name_code_points_max = 100, requests_per_minute_max = 1000000 };

static bool name_check(const char *name)
{
    size_t length = strlen(name);
    if (length > 0 && text_is_utf8(name, length) && !text_has_control(name, length) &&
        text_code_points(name, length) <= name_code_points_max)
        return true;
    fprintf(stderr, "imgwardctl: a name must have 1 to %d characters and no control characters.\n",
            name_code_points_max);
    return false;
}

static enum ctl_exit create_run(struct ctl *ctl)
{
    struct config config;
    int64_t id = 0;
    const char *plan = ctl_option(ctl, "--plan");
    if (!name_check(ctl->arguments[0]))
        return CTL_FAILED;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error =
        accounts_create(db, ctl->arguments[0], plan != NULL ? plan : "free", clock_now_ms(), &id);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("account %" PRId64 "\n", id);
    return CTL_DONE;
}

/* An account with its rate: its own, or that of its plan. */
struct listed {
    const struct account_row *account;
    int64_t requests_per_minute;
};

static void list_print(const struct ctl *ctl, const struct listed *list, size_t count)
{
    printf("%6s  %-10s  %-9s  %10s  %5s  %-24s  %s\n", "id", "plan", "status", "per minute", "keys",
           "created", "name");
    for (size_t i = 0; i < count; i++) {
        const struct account_row *account = list[i].account;
        printf("%6" PRId64 "  %-10s  %-9s  %9" PRId64 "%c  %5" PRId64 "  %-24s  %s\n", account->id,
               account->plan, account_status_name(account->status), list[i].requests_per_minute,
               account->requests_per_minute > 0 ? '*' : ' ', account->key_count,
               ctl_time(ctl, account->created_at_ms), account->name);
    }
}

static void row_render(struct render *render, const void *facts)
{
    const struct listed *listed = facts;
    const struct account_row *account = listed->account;
    render_integer(render, "id", account->id);
    render_string(render, "name", account->name);
    render_string(render, "plan", account->plan);
    render_string(render, "status", account_status_name(account->status));
    render_integer(render, "requestsPerMinute", listed->requests_per_minute);
    render_boolean(render, "isOverridden", account->requests_per_minute > 0);
    render_integer(render, "keyCount", account->key_count);
    render_time(render, "createdAt", account->created_at_ms);
}

static enum ctl_exit list_run(struct ctl *ctl)
{
    struct config config;
    struct account_row *accounts = NULL;
    size_t count = 0;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = accounts_list(db, &accounts, &count);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    struct listed *list = arena_array(ctl->context->arena, count + 1, sizeof *list);
    for (size_t i = 0; i < count; i++)
        list[i] = (struct listed){&accounts[i],
                                  plan_rate(&config, accounts[i].plan, accounts[i].requests_per_minute)};
    if (ctl_option(ctl, "--json") != NULL)
        table_array_print(ctl, row_render, list, count, sizeof *list);
    else
        list_print(ctl, list, count);
    return CTL_DONE;
}

/* ---- commands about one account ---- */

/* The account of a command, and the handles that an action needs. */
struct account_work {
    struct ctl *ctl;
    struct config config;
    const struct db *db;
    struct account_row account;
    const char *plan;
    int64_t requests; /* requests a minute; 0 for the limit of the plan */
    enum account_status status;
    int quota;
    int64_t limit;
    int64_t grace_days;
    int64_t delete_ms;
    struct quota_numbers used;
};

/*
 * Opens the database, finds the account that the first argument names, runs the action and closes the
 * database. After an error, prints a line on stderr and returns false.
 */
static bool account_do(struct account_work *work, enum iw_error (*action)(struct account_work *work))
{
    work->db = ctl_db_open(work->ctl, &work->config);
    if (work->db == NULL)
        return false;
    enum iw_error error = accounts_find(work->db, work->ctl->arguments[0], &work->account);
    if (error == IW_OK)
        error = action(work);
    ctl_db_close(work->db);
    if (error != IW_OK)
        ctl_failed(work->ctl);
    return error == IW_OK;
}

/* ---- account rename ---- */

static enum iw_error name_write(struct account_work *work)
{
    const char *name = work->ctl->arguments[1];
    enum iw_error error = accounts_rename(work->db, work->account.id, name);
    if (error != IW_TWIN_EXISTS)
        return error;
    context_clear(work->ctl->context);
    return context_fail(work->ctl->context, error, "An account with the name \"%s\" already exists.", name);
}

static enum ctl_exit rename_run(struct ctl *ctl)
{
    struct account_work work = {.ctl = ctl};
    if (!name_check(ctl->arguments[1]) || !account_do(&work, name_write))
        return CTL_FAILED;
    printf("account %" PRId64 ": %s\n", work.account.id, ctl->arguments[1]);
    return CTL_DONE;
}

/* ---- account plan, account limit ---- */

static enum iw_error plan_set(struct account_work *work)
{
    const char *plan = work->plan != NULL ? work->plan : work->account.plan;
    enum iw_error error = accounts_plan_set(work->db, work->account.id, plan, work->requests);
    return error == IW_OK ? accounts_find(work->db, work->ctl->arguments[0], &work->account) : error;
}

static enum ctl_exit plan_run(struct ctl *ctl)
{
    struct account_work work = {.ctl = ctl, .plan = ctl->arguments[1]};
    const struct account_row *account = &work.account;
    if (!ctl_option_integer(ctl, "--requests-per-minute", 0, requests_per_minute_max, 0, &work.requests) ||
        !account_do(&work, plan_set))
        return CTL_FAILED;
    printf("account %" PRId64 ": %s, %" PRId64 " requests a minute%s\n", account->id, account->plan,
           plan_rate(&work.config, account->plan, account->requests_per_minute),
           account->requests_per_minute > 0 ? " (individual limit)" : "");
    return CTL_DONE;
}

static enum ctl_exit limit_run(struct ctl *ctl)
{
    struct account_work work = {.ctl = ctl};
    const struct account_row *account = &work.account;
    const char *given = ctl->arguments[1];
    if (strcmp(given, "plan") != 0 && !text_integer(given, 1, requests_per_minute_max, &work.requests)) {
        fprintf(stderr, "imgwardctl: the limit must be 1 to %d requests a minute, or the word plan.\n",
                requests_per_minute_max);
        return CTL_FAILED;
    }
    if (!account_do(&work, plan_set))
        return CTL_FAILED;
    printf("account %" PRId64 ": %" PRId64 " requests a minute%s\n", account->id,
           plan_rate(&work.config, account->plan, account->requests_per_minute),
           account->requests_per_minute > 0 ? " (individual limit)" : "");
    return CTL_DONE;
}

/* ---- account suspend, account resume ---- */

/* Sets the status and wakes the worker, because jobs and deliveries may have waited. */
static enum iw_error status_write(struct account_work *work)
{
    int64_t id = work->account.id;
    if (work->account.status == work->status)
        return IW_OK;
    if (work->status == ACCOUNT_SUSPENDED)
        return accounts_suspend(work->db, id);
    enum iw_error error =
        accounts_resume(work->db, id, clock_now_ms() + work->config.orders_pending_s * 1000);
    if (error == IW_OK)
        ctl_worker_wake(work->ctl, &work->config, 0);
    return error;
}

static enum ctl_exit status_set(struct ctl *ctl, enum account_status status)
{
    struct account_work work = {.ctl = ctl, .status = status};
    if (!account_do(&work, status_write))
        return CTL_FAILED;
    printf("account %" PRId64 ": %s\n", work.account.id, account_status_name(status));
    return CTL_DONE;
}

static enum ctl_exit suspend_run(struct ctl *ctl)
{
    return status_set(ctl, ACCOUNT_SUSPENDED);
}

static enum ctl_exit resume_run(struct ctl *ctl)
{
    return status_set(ctl, ACCOUNT_ACTIVE);
}

/* ---- account quota, account show ---- */

static enum iw_error quota_write(struct account_work *work)
{
    work->account.quotas.of[work->quota] = work->limit;
    return quotas_limit_set(work->db, work->account.id, (enum quota)work->quota, work->limit);
}

static enum ctl_exit quota_run(struct ctl *ctl)
{
    struct account_work work = {.ctl = ctl, .quota = quota_find(ctl->arguments[1]), .limit = quota_of_plan};
    const struct account_row *account = &work.account;
    if (work.quota < 0) {
        fprintf(stderr, "imgwardctl: the limits are");
        for (int i = 0; i < QUOTA_COUNT; i++)
            fprintf(stderr, "%s %s", i > 0 ? "," : "", quota_name((enum quota)i));
        fprintf(stderr, ".\n");
        return CTL_FAILED;
    }
    if (strcmp(ctl->arguments[2], "plan") != 0 &&
        !text_integer(ctl->arguments[2], 0, INT64_MAX / 2, &work.limit)) {
        fprintf(stderr, "imgwardctl: a limit must be a number, 0 for no limit, or the word plan.\n");
        return CTL_FAILED;
    }
    if (!account_do(&work, quota_write))
        return CTL_FAILED;
    int64_t limit = quota_limits(&work.config, account->plan, &account->quotas).of[work.quota];
    printf("account %" PRId64 ": %s %s%s\n", account->id, quota_name((enum quota)work.quota),
           limit == quota_unlimited ? "no limit" : arena_printf(ctl->context->arena, "%" PRId64, limit),
           account->quotas.of[work.quota] != quota_of_plan ? " (individual limit)" : "");
    return CTL_DONE;
}

/* An account with its use and its limits. */
struct usage {
    const struct account_row *account;
    const struct config *config;
    const struct quota_numbers *used, *limits;
};

static int64_t usage_rate(const struct usage *usage)
{
    return plan_rate(usage->config, usage->account->plan, usage->account->requests_per_minute);
}

/* Days for which results are kept, with a fraction. */
static double usage_retention_days(const struct usage *usage)
{
    return (double)plan_retention_ms(usage->config, usage->account->plan) / (24 * 60 * 60 * 1000.0);
}

static void usage_print(const struct usage *usage)
{
    const struct account_row *account = usage->account;
    const struct quota_numbers *used = usage->used, *limits = usage->limits;
    printf("id          %" PRId64 "\nname        %s\nplan        %s\nstatus      %s\nper minute  %" PRId64
           "\nretention   %g days\n\n%-14s  %20s  %20s  %5s\n",
           account->id, account->name, account->plan, account_status_name(account->status), usage_rate(usage),
           usage_retention_days(usage), "limit", "used", "allowed", "used");
    for (int i = 0; i < QUOTA_COUNT; i++) {
        printf("%-14s  %20" PRId64, quota_name((enum quota)i), used->of[i]);
        if (limits->of[i] == quota_unlimited)
            printf("  %20s\n", "no limit");
        else
            printf("  %19" PRId64 "%c  %4.0f%%\n", limits->of[i],
                   account->quotas.of[i] != quota_of_plan ? '*' : ' ',
                   100 * (double)used->of[i] / (double)limits->of[i]);
    }
}

static void usage_show(struct render *render, const void *facts)
{
    const struct usage *usage = facts;
    render_integer(render, "id", usage->account->id);
    render_string(render, "name", usage->account->name);
    render_string(render, "plan", usage->account->plan);
    render_string(render, "status", account_status_name(usage->account->status));
    render_integer(render, "requestsPerMinute", usage_rate(usage));
    render_integer(render, "resultRetentionSeconds",
                   plan_retention_ms(usage->config, usage->account->plan) / 1000);
    render_array_begin(render, "limits");
    for (int i = 0; i < QUOTA_COUNT; i++) {
        render_object_begin(render, NULL);
        render_string(render, "name", quota_name((enum quota)i));
        render_integer(render, "used", usage->used->of[i]);
        render_integer(render, "limit", usage->limits->of[i]);
        render_boolean(render, "isOverridden", usage->account->quotas.of[i] != quota_of_plan);
        render_object_end(render);
    }
    render_array_end(render);
}

static enum iw_error usage_load(struct account_work *work)
{
    const struct domain domain = {.context = work->ctl->context,
                                  .config = &work->config,
                                  .db = *work->db,
                                  .redis = ctl_redis_open(work->ctl, &work->config)};
    enum iw_error error = quota_used(&domain, work->account.id, &work->used);
    redis_free(domain.redis);
    return error;
}

static enum ctl_exit show_run(struct ctl *ctl)
{
    struct account_work work = {.ctl = ctl};
    if (!account_do(&work, usage_load))
        return CTL_FAILED;
    struct quota_numbers limits = quota_limits(&work.config, work.account.plan, &work.account.quotas);
    const struct usage usage = {&work.account, &work.config, &work.used, &limits};
    if (ctl_option(ctl, "--json") != NULL)
        table_object_print(ctl, usage_show, &usage);
    else
        usage_print(&usage);
    return CTL_DONE;
}

/* ---- account delete ---- */

static enum iw_error deletion_schedule(struct account_work *work)
{
    work->delete_ms = clock_now_ms() + work->grace_days * 86400000;
    return erasure_schedule(work->db, work->account.id, work->delete_ms);
}

static enum ctl_exit delete_run(struct ctl *ctl)
{
    struct account_work work = {.ctl = ctl};
    if (!ctl_option_integer(ctl, "--grace-days", 0, 3650, 7, &work.grace_days) ||
        !account_do(&work, deletion_schedule))
        return CTL_FAILED;
    printf("account %" PRId64
           ": suspended; will be deleted at %s.  Until then, account resume cancels the deletion.\n",
           work.account.id, ctl_time(ctl, work.delete_ms));
    return CTL_DONE;
}

const struct ctl_command account_commands[] = {
    {.words = {"account", "create"},
     .arguments = "NAME",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--plan", "PLAN", "free (when omitted), pro or enterprise"}},
     .help = "Create an account and print its number.",
     .example = "imgwardctl account create --plan pro studio",
     .run = create_run},
    {.words = {"account", "list"},
     .arguments = "",
     .options = {{"--json", NULL, "print a JSON array"}},
     .help = "List the accounts; an asterisk marks an overridden rate limit.",
     .run = list_run},
    {.words = {"account", "rename"},
     .arguments = "ACCOUNT NAME",
     .arguments_least = 2,
     .arguments_most = 2,
     .help = "Change the name of an account (name or number).  Keys, orders and users stay.",
     .run = rename_run},
    {.words = {"account", "plan"},
     .arguments = "ACCOUNT PLAN",
     .arguments_least = 2,
     .arguments_most = 2,
     .options = {{"--requests-per-minute", "N",
                  "override the rate limit; when omitted, the plan's limit applies"}},
     .help = "Change the plan of an account (name or number).",
     .run = plan_run},
    {.words = {"account", "limit"},
     .arguments = "ACCOUNT REQUESTS",
     .arguments_least = 2,
     .arguments_most = 2,
     .help = "Override an account's rate limit (requests a minute); the word plan removes the override.",
     .run = limit_run},
    {.words = {"account", "show"},
     .arguments = "ACCOUNT",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--json", NULL, "print a JSON object; a limit of 0 means no limit"}},
     .help = "Show an account with its usage and its limits; an asterisk marks an overridden limit.",
     .run = show_run},
    {.words = {"account", "quota"},
     .arguments = "ACCOUNT LIMIT VALUE",
     .arguments_least = 3,
     .arguments_most = 3,
     .help = "Override a limit of an account: ordersPending, filesPending, promisedBytes, storedBytes, "
             "filesPerDay, textsPerDay or webhooks.  0 means no limit; the word plan removes the override.",
     .run = quota_run},
    {.words = {"account", "suspend"},
     .arguments = "ACCOUNT",
     .arguments_least = 1,
     .arguments_most = 1,
     .help = "Suspend an account: its requests and URLs answer AUTH_FORBIDDEN, its jobs and deliveries wait.",
     .run = suspend_run},
    {.words = {"account", "delete"},
     .arguments = "ACCOUNT",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--grace-days", "N", "wait N days; 7 when omitted, 0 deletes immediately"}},
     .help = "Suspend an account, and delete it after a grace period with its orders, files, keys, webhooks "
             "and watermark texts.  After that its marks can no longer be read.",
     .example = "imgwardctl account delete --grace-days 30 studio",
     .run = delete_run},
    {.words = {"account", "resume"},
     .arguments = "ACCOUNT",
     .arguments_least = 1,
     .arguments_most = 1,
     .help = "Resume a suspended account: its jobs and deliveries continue, and a deletion is cancelled.",
     .run = resume_run},
    {.words = {NULL}},
};
