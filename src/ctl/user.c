/* imgwardctl user: users of the web console. A password is printed only when it is created. */
#include "ctl/user.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"
#include "ctl/table.h"
#include "db/accounts.h"
#include "db/db.h"
#include "db/users.h"
#include "domain/people/member.h"
#include "domain/people/second_factor.h"
#include "domain/people/token.h"
#include "service/secret/password.h"

enum { password_bytes = 15 };

const char *user_password_make(struct arena *arena)
{
    uint8_t random[password_bytes];
    crypto_random(random, sizeof random);
    return crypto_base64url(arena, random, sizeof random);
}

enum iw_error user_make(const struct db *db, const struct config *config, struct user *user,
                        const char *password)
{
    const struct audit_actor actor = {.account_id = user->account.id, .address = ""};
    const struct domain domain = {.context = db->context, .config = config, .db = *db};
    int64_t now_ms = clock_now_ms();
    enum iw_error error = password_hash(db->context, config, password, &user->password_hash);
    user->email_verified_ms = now_ms;
    if (error == IW_OK)
        error = users_insert(db, user, now_ms, &user->id);
    if (error == IW_TWIN_EXISTS) {
        context_clear(db->context);
        return context_fail(db->context, error, "A user with the address %s already exists.", user->email);
    }
    return error == IW_OK ? audit_add(&domain, &actor, "userMade", "email", user->email, NULL) : error;
}

/*
 * Returns the address in the first argument in lower case. If it is not an address, prints a line on stderr
 * and returns NULL.
 */
static const char *email_of(struct ctl *ctl)
{
    const char *email = user_email_read(ctl->context, "EMAIL", ctl->arguments[0]);
    if (email == NULL)
        fprintf(stderr, "imgwardctl: \"%s\" is not an email address.\n", ctl->arguments[0]);
    return email;
}

/* Reads the options of create. */
static bool options_read(struct ctl *ctl, struct user *user)
{
    const char *role = ctl_option(ctl, "--role"), *language = ctl_option(ctl, "--language");
    const char *name = ctl_option(ctl, "--name");
    user->role = USER_OWNER;
    user->name = name != NULL && name[0] != '\0'
                     ? name
                     : arena_text_n(ctl->context->arena, user->email, strcspn(user->email, "@"));
    user->is_admin = ctl_option(ctl, "--admin") != NULL;
    bool is_sound = (role == NULL || user_role_read(role, &user->role)) &&
                    (language == NULL || user_language_read(language, &user->language)) &&
                    text_is_utf8(user->name, strlen(user->name)) &&
                    !text_has_control(user->name, strlen(user->name)) &&
                    text_code_points(user->name, strlen(user->name)) <= user_name_code_points_max;
    if (!is_sound)
        fprintf(stderr,
                "imgwardctl: --name must be UTF-8 of at most %d characters without control characters.\n",
                user_name_code_points_max);
    return is_sound;
}

static enum ctl_exit create_run(struct ctl *ctl)
{
    struct config config;
    struct account_row account;
    struct user user = {.email = email_of(ctl)};
    if (user.email == NULL || !options_read(ctl, &user))
        return CTL_FAILED;
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    const char *password = user_password_make(ctl->context->arena);
    enum iw_error error = accounts_find(db, ctl->arguments[1], &account);
    user.account.id = account.id;
    if (error == IW_OK)
        error = user_make(db, &config, &user, password);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    fprintf(stderr, "user %" PRId64 " of account %" PRId64 "; the password is shown only once:\n", user.id,
            account.id);
    puts(password);
    return CTL_DONE;
}

/* ---- list ---- */

static void list_print(const struct ctl *ctl, const struct user *users, size_t count)
{
    printf("%6s  %-6s  %-8s  %-13s  %-24s  %s\n", "id", "role", "state", "second factor", "last sign-in",
           "address, name, account");
    for (size_t i = 0; i < count; i++)
        printf("%6" PRId64 "  %-6s  %-8s  %-13s  %-24s  %s, %s, %s%s\n", users[i].id,
               user_role_name(users[i].role), users[i].is_disabled ? "disabled" : "active",
               users[i].totp_enabled_ms != 0 ? "on" : "off", ctl_time(ctl, users[i].last_sign_in_ms),
               users[i].email, users[i].name, users[i].account_name, users[i].is_admin ? " (operator)" : "");
}

static void row_render(struct render *render, const void *facts)
{
    const struct user *user = facts;
    render_integer(render, "id", user->id);
    render_string(render, "email", user->email);
    render_string(render, "name", user->name);
    render_integer(render, "accountId", user->account.id);
    render_string(render, "account", user->account_name);
    render_string(render, "role", user_role_name(user->role));
    render_boolean(render, "isAdmin", user->is_admin);
    render_boolean(render, "isDisabled", user->is_disabled);
    render_boolean(render, "totpEnabled", user->totp_enabled_ms != 0);
    render_time(render, "lastSignInAt", user->last_sign_in_ms);
}

static enum ctl_exit list_run(struct ctl *ctl)
{
    struct config config;
    struct account_row account;
    struct user *users = NULL;
    size_t count = 0;
    int64_t total = 0;
    const struct users_page all = {.limit = INT64_MAX};
    const struct db *db = ctl_db_open(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = IW_OK;
    if (ctl->argument_count > 0)
        error = accounts_find(db, ctl->arguments[0], &account);
    if (error == IW_OK)
        error = ctl->argument_count > 0 ? users_of_account(db, account.id, &users, &count)
                                        : users_page(db, &all, &users, &count, &total);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    if (ctl_option(ctl, "--json") != NULL)
        table_array_print(ctl, row_render, users, count, sizeof *users);
    else
        list_print(ctl, users, count);
    return CTL_DONE;
}

/* ---- changes ---- */

/* A user, and the domain's handles for changing the user. */
struct user_change {
    struct config config;
    const struct db *db;
    struct domain domain;
    struct user user;
};

/*
 * Opens the database and finds the user that the first argument names. After an error, prints a line on
 * stderr and returns false.
 */
static bool change_begin(struct ctl *ctl, struct user_change *change)
{
    const char *email = email_of(ctl);
    change->db = email != NULL ? ctl_db_open(ctl, &change->config) : NULL;
    if (change->db == NULL)
        return false;
    change->domain = (struct domain){.context = ctl->context, .config = &change->config, .db = *change->db};
    bool is_found = false;
    enum iw_error error = users_find_by_email(change->db, email, &change->user, &is_found);
    if (error == IW_OK && is_found)
        return true;
    if (error == IW_OK)
        context_fail(ctl->context, IW_NOT_FOUND, "There is no user with the address %s.", email);
    ctl_failed(ctl);
    ctl_db_close(change->db);
    return false;
}

static enum ctl_exit reset_run(struct ctl *ctl)
{
    struct user_change change;
    const char *token = NULL;
    if (!change_begin(ctl, &change))
        return CTL_FAILED;
    const struct audit_actor actor = {.account_id = change.user.account.id, .address = ""};
    enum iw_error error = user_reset_token(&change.domain, &change.user, &token);
    if (error == IW_OK && ctl_option(ctl, "--second-factor") != NULL)
        error = second_factor_disable(&change.domain, &change.user, &actor);
    if (error == IW_OK)
        error = audit_add(&change.domain, &actor, "resetLinkMade", "email", change.user.email, NULL);
    ctl_db_close(change.db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    fprintf(stderr, "user %" PRId64 ": this link sets a password once, within %" PRId64 " s:\n",
            change.user.id, change.config.console_reset_s);
    puts(token_link(ctl->context->arena, &change.config, "reset", token));
    return CTL_DONE;
}

static enum ctl_exit flags_run(struct ctl *ctl, const struct member_flags *flags, const char *done)
{
    struct user_change change;
    const struct audit_actor actor = {.address = ""};
    if (!change_begin(ctl, &change))
        return CTL_FAILED;
    enum iw_error error = member_flags_set(&change.domain, &change.user, flags, &actor);
    ctl_db_close(change.db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    printf("user %" PRId64 ": %s\n", change.user.id, done);
    return CTL_DONE;
}

static enum ctl_exit disable_run(struct ctl *ctl)
{
    bool is_undo = ctl_option(ctl, "--undo") != NULL;
    return flags_run(ctl, &(struct member_flags){.is_admin = -1, .is_disabled = !is_undo},
                     is_undo ? "may sign in" : "may not sign in; its sessions have ended");
}

static enum ctl_exit admin_run(struct ctl *ctl)
{
    bool is_undo = ctl_option(ctl, "--undo") != NULL;
    return flags_run(ctl, &(struct member_flags){.is_admin = !is_undo, .is_disabled = -1},
                     is_undo ? "is no longer a user of the operator" : "is a user of the operator");
}

const struct ctl_command user_commands[] = {
    {.words = {"user", "create"},
     .arguments = "EMAIL ACCOUNT",
     .arguments_least = 2,
     .arguments_most = 2,
     .options = {{"--name", "NAME", "name of the person; the first part of the address when omitted"},
                 {"--role", "owner|member", "role in the account; owner when omitted"},
                 {"--language", "en|ko", "language of mails and pages; en when omitted"},
                 {"--admin", NULL, "make this a user of the operator, who sees all accounts"}},
     .help = "Create a user of the web console in an account (name or number) and print its password once.",
     .example = "imgwardctl user create --role member ada@example.com studio",
     .run = create_run},
    {.words = {"user", "list"},
     .arguments = "[ACCOUNT]",
     .arguments_most = 1,
     .options = {{"--json", NULL, "print a JSON array"}},
     .help = "List the users of one account or of all accounts.",
     .run = list_run},
    {.words = {"user", "reset"},
     .arguments = "EMAIL",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--second-factor", NULL, "also turn off the second factor"}},
     .help = "Print a link with which a user sets a new password.",
     .run = reset_run},
    {.words = {"user", "disable"},
     .arguments = "EMAIL",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--undo", NULL, "allow the user to sign in again"}},
     .help = "Block a user and end all sessions of the user.",
     .run = disable_run},
    {.words = {"user", "admin"},
     .arguments = "EMAIL",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--undo", NULL, "revoke it"}},
     .help = "Make a user a user of the operator, who sees all accounts, users and jobs.",
     .run = admin_run},
    {.words = {NULL}},
};
