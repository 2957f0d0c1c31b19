/* imgwardctl key: API keys. A key is printed only when it is created. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"
#include "ctl/table.h"
#include "db/accounts.h"
#include "db/db.h"
#include "db/keys.h"
#include "domain/accounts/key.h"

static const int64_t day_ms = 24 * 60 * 60 * 1000;

enum { days_max = 36500, name_code_points_max = 100 };

static bool name_check(const char *name)
{
    size_t length = strlen(name);
    if (text_is_utf8(name, length) && !text_has_control(name, length) &&
        text_code_points(name, length) <= name_code_points_max)
        return true;
    fprintf(stderr, "imgwardctl: a name must have at most %d characters and no control characters.\n",
            name_code_points_max);
    return false;
}

static bool scopes_read(const struct ctl *ctl, unsigned *scopes)
{
    const char *names = ctl_option(ctl, "--scope");
    *scopes = 0;
    if (names == NULL || strcmp(names, "all") == 0 || key_scopes_read(names, scopes))
        return true;
    fprintf(stderr, "imgwardctl: --scope is \"%s\"; it must be all, or names separated by commas: %s.\n",
            names, key_scopes_text(ctl->context->arena, ~0u, ", "));
    return false;
}

static enum iw_error key_add(struct ctl *ctl, const struct db *db, const struct keys_row *wish, int64_t days,
                             char key[key_size])
{
    struct account_row account;
    uint8_t digest[32];
    char prefix[key_prefix_size];
    int64_t id = 0, now_ms = clock_now_ms();
    enum iw_error error = accounts_find(db, ctl->arguments[0], &account);
    if (error != IW_OK)
        return error;
    key_make(key);
    key_digest(key, digest);
    key_prefix(key, prefix);
    const struct keys_row row = {.account_id = account.id,
                                 .name = wish->name,
                                 .digest = digest,
                                 .prefix = prefix,
                                 .scopes = wish->scopes,
                                 .created_ms = now_ms,
                                 .expires_ms = days > 0 ? now_ms + days * day_ms : 0};
    error = keys_insert(db, &row, &id);
    if (error == IW_OK)
        fprintf(stderr, "key %" PRId64 " of account %" PRId64 "; it is shown only once:\n", id, account.id);
    return error;
}

static enum ctl_exit create_run(struct ctl *ctl)
{
    struct config config;
    char key[key_size];
    int64_t days = 0;
    struct keys_row wish = {.name = ctl_option(ctl, "--name") != NULL ? ctl_option(ctl, "--name") : ""};
    if (!name_check(wish.name) || !scopes_read(ctl, &wish.scopes) ||
        !ctl_option_integer(ctl, "--expires-days", 1, days_max, 0, &days))
        return CTL_FAILED;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = key_add(ctl, db, &wish, days, key);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    puts(key);
    crypto_wipe(key, sizeof key);
    return CTL_DONE;
}

static const char *state_of(const struct account_key *key, int64_t now_ms)
{
    if (key->revoked_at_ms != 0)
        return "revoked";
    return key->expires_at_ms != 0 && key->expires_at_ms <= now_ms ? "expired" : "valid";
}

static const char *scope_text(struct arena *arena, const struct account_key *key)
{
    const char *scopes = key_scopes_text(arena, key->scopes, ",");
    return key->scopes == 0 ? "all" : scopes != NULL ? scopes : "unknown";
}

static void list_print(const struct ctl *ctl, const struct account_key *keys, size_t count)
{
    int64_t now_ms = clock_now_ms();
    printf("%6s  %-16s  %-7s  %-24s  %-24s  %-24s  %-8s  %s\n", "id", "begins with", "state", "created",
           "expires", "last used", "scope", "account, name");
    for (size_t i = 0; i < count; i++)
        printf("%6" PRId64 "  %-16s  %-7s  %-24s  %-24s  %-24s  %-8s  %s%s%s\n", keys[i].id, keys[i].prefix,
               state_of(&keys[i], now_ms), ctl_time(ctl, keys[i].created_at_ms),
               ctl_time(ctl, keys[i].expires_at_ms), ctl_time(ctl, keys[i].last_used_at_ms),
               scope_text(ctl->context->arena, &keys[i]), keys[i].account,
               keys[i].name[0] != '\0' ? ", " : "", keys[i].name);
}

static void row_render(struct render *render, const void *facts)
{
    const struct account_key *key = facts;
    render_integer(render, "id", key->id);
    render_integer(render, "accountId", key->account_id);
    render_string(render, "account", key->account);
    render_string(render, "name", key->name);
    render_string(render, "prefix", key->prefix);
    render_string(render, "scope", scope_text(render->text->arena, key));
    render_string(render, "state", state_of(key, clock_now_ms()));
    render_time(render, "createdAt", key->created_at_ms);
    render_time(render, "expiresAt", key->expires_at_ms);
    render_time(render, "revokedAt", key->revoked_at_ms);
    render_time(render, "lastUsedAt", key->last_used_at_ms);
}

static enum ctl_exit list_run(struct ctl *ctl)
{
    struct config config;
    struct account_row account = {.id = 0};
    struct account_key *keys = NULL;
    size_t count = 0;
    enum iw_error error = IW_OK;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    if (ctl->argument_count > 0)
        error = accounts_find(db, ctl->arguments[0], &account);
    if (error == IW_OK)
        error = keys_list(db, account.id, &keys, &count);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    if (ctl_option(ctl, "--json") != NULL)
        table_array_print(ctl, row_render, keys, count, sizeof *keys);
    else
        list_print(ctl, keys, count);
    return CTL_DONE;
}

/* A number is the id of a key; any other text is the beginning of a key, or a whole key. */
static enum iw_error key_find(struct ctl *ctl, const struct db *db, int64_t *id)
{
    const char *given = ctl->arguments[0];
    char prefix[key_prefix_size];
    if (text_integer(given, 1, INT64_MAX, id))
        return IW_OK;
    if (strlen(given) < key_prefix_length)
        return context_fail(ctl->context, IW_VALIDATION_FAILED,
                            "Give the id of the key or its first %d characters.", key_prefix_length);
    key_prefix(given, prefix);
    return keys_find_by_prefix(db, prefix, id);
}

static enum ctl_exit revoke_run(struct ctl *ctl)
{
    struct config config;
    int64_t id = 0;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = key_find(ctl, db, &id);
    if (error == IW_OK)
        error = keys_revoke(db, id, clock_now_ms());
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("key %" PRId64 ": revoked; every process refuses it within %" PRId64 " s\n", id,
           config.api_key_cache_s);
    return CTL_DONE;
}

static enum ctl_exit expire_run(struct ctl *ctl)
{
    struct config config;
    int64_t id = 0, days = 0, expires_at_ms;
    if (!ctl_option_integer(ctl, "--days", 0, days_max, 0, &days))
        return CTL_FAILED;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = key_find(ctl, db, &id);
    expires_at_ms = clock_now_ms() + days * day_ms;
    if (error == IW_OK)
        error = keys_expire(db, id, expires_at_ms);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("key %" PRId64 ": expires %s\n", id, ctl_time(ctl, expires_at_ms));
    return CTL_DONE;
}

const struct ctl_command key_commands[] = {
    {.words = {"key", "create"},
     .arguments = "ACCOUNT",
     .arguments_least = 1,
     .arguments_most = 1,
     .options =
         {{"--name", "NAME", "name to distinguish the keys of an account"},
          {"--scope", "LIST",
           "what the key may do: read, antiAi, watermarkEmbed, watermarkExtract, webhooks, several of them "
           "separated by commas, or all (default); webhooks: may receive every order's results"},
          {"--expires-days", "N", "days until the key expires; never when omitted"}},
     .help = "Create a key for an account (name or number) and print it once.",
     .example = "imgwardctl key create --name website --expires-days 365 studio",
     .run = create_run},
    {.words = {"key", "list"},
     .arguments = "[ACCOUNT]",
     .arguments_most = 1,
     .options = {{"--json", NULL, "print a JSON array"}},
     .help = "List the keys of one account or of all accounts.",
     .run = list_run},
    {.words = {"key", "revoke"},
     .arguments = "KEY",
     .arguments_least = 1,
     .arguments_most = 1,
     .help = "Revoke a key, named by its id or its prefix.",
     .run = revoke_run},
    {.words = {"key", "expire"},
     .arguments = "KEY",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--days", "N", "days until the key expires; it expires now when omitted"}},
     .help = "Set the time at which a key expires, so that its owner can change to another key.",
     .run = expire_run},
    {.words = {NULL}},
};
