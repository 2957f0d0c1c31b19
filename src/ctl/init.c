/*
 * imgwardctl init: sets up an installed service for its first run. Each step is a row of a table. Each step
 * reports "made", "there" (it already existed), or the work that is left to the operator. A second run
 * changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "ctl/ctl.h"
#include "ctl/grants.h"
#include "ctl/migrate.h"
#include "ctl/remaining.h"
#include "ctl/user.h"
#include "db/accounts.h"
#include "db/db.h"
#include "db/keys.h"
#include "db/provision.h"
#include "db/users.h"
#include "domain/accounts/key.h"
#include "domain/keyring.h"
#include "domain/people/user.h"
#include "service/files/presign.h"
#include "service/files/storage.h"
#include "service/redis/redis.h"
#include "service/secret/secret_box.h"

enum { watermark_key_bytes = 32, password_bytes = 24 };

enum init_verdict { INIT_THERE, INIT_MADE, INIT_TO_DO };

struct init {
    struct ctl *ctl;
    struct config config;
    struct config administrator_config;
    const char *password; /* database password of the service's user; "" for unix_socket authentication */
    bool has_administrator;
    struct db
        db; /* connection is the administrator's if available, otherwise the service's, otherwise NULL */
    bool has_tables; /* all migrations are applied */
    char line[1024];
};

__attribute__((format(printf, 3, 4))) static enum init_verdict
say(struct init *init, enum init_verdict verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(init->line, sizeof init->line, format, arguments);
    va_end(arguments);
    return verdict;
}

/* Reports the context's error and clears it. */
static enum init_verdict say_error(struct init *init)
{
    struct context *context = init->ctl->context;
    say(init, INIT_TO_DO, "%s%s%s%s", context->sentence, context->cause != NULL ? " (" : "",
        context->cause != NULL ? context->cause : "", context->cause != NULL ? ")" : "");
    context_clear(context);
    return INIT_TO_DO;
}

/* ---- secrets ---- */

/*
 * If root creates a secret, its group becomes the group of its folder (root:imgward for
 * /etc/imgward). That group may read the secret but not write it.
 */
static bool secret_share(struct init *init, const char *path)
{
    struct stat folder;
    if (geteuid() != 0)
        return true;
    if (stat(dirname(arena_text(init->ctl->context->arena, path)), &folder) == 0 &&
        chown(path, 0, folder.st_gid) == 0 && chmod(path, folder.st_gid == 0 ? 0600 : 0640) == 0)
        return true;
    say(init, INIT_TO_DO, "%s: %s", path, strerror(errno));
    return false;
}

/* Reports whether a secret exists, was created, or could not be created. */
static enum init_verdict secret_report(struct init *init, const char *path, enum iw_error error)
{
    struct stat facts;
    if (error == IW_TWIN_EXISTS) {
        context_clear(init->ctl->context);
        if (stat(path, &facts) == 0 && (facts.st_mode & 07) != 0)
            return say(init, INIT_TO_DO, "%s is readable by other users; chmod 0640 it", path);
        return say(init, INIT_THERE, "%s", path);
    }
    if (error != IW_OK)
        return say_error(init);
    return secret_share(init, path) ? say(init, INIT_MADE, "%s", path) : INIT_TO_DO;
}

static enum iw_error signing_keys_make(struct context *context, const char *path)
{
    const char *id;
    return presign_keys_generate(context, path, &id);
}

static enum iw_error watermark_key_make(struct context *context, const char *path)
{
    uint8_t key[watermark_key_bytes];
    crypto_random(key, sizeof key);
    enum iw_error error = ctl_file_make(context, path, key, sizeof key, 0600);
    crypto_wipe(key, sizeof key);
    return error;
}

/*
 * Returns true if the database belongs to a service that has run. A missing key was then lost; the backup of
 * that service has it.
 */
static enum iw_error key_is_lost(struct init *init, enum keyring_purpose purpose, bool *is_lost)
{
    const struct keyring none = {.ids = {""}};
    struct account_row *accounts;
    size_t count = 0;
    enum keyring_fit fit;
    const char *known = "";
    enum iw_error error = keyring_compare(&init->db, &none, purpose, &fit, &known);
    if (error == IW_OK)
        error = accounts_list(&init->db, &accounts, &count);
    *is_lost = known[0] != '\0' || count > 0;
    return error;
}

/* Compares an existing key with the database, and records the id of the key if the database has none. */
static enum init_verdict key_compare(struct init *init, enum keyring_purpose purpose,
                                     enum init_verdict verdict)
{
    struct keyring keyring = {.ids = {""}};
    if (verdict == INIT_TO_DO || init->db.connection == NULL || !init->has_tables)
        return verdict;
    enum iw_error error = keyring_load(init->ctl->context, &init->config, purpose, &keyring);
    if (error == IW_OK)
        error = keyring_check(&init->db, &init->config, &keyring);
    return error == IW_OK ? verdict : say_error(init);
}

/* A key is created only for a new service. */
static enum init_verdict step_key(struct init *init, enum keyring_purpose purpose,
                                  enum iw_error (*make)(struct context *context, const char *path),
                                  const char *command)
{
    struct context *context = init->ctl->context;
    const char *path = keyring_path(&init->config, purpose);
    bool is_lost = false;
    if (access(path, F_OK) == 0)
        return key_compare(init, purpose, secret_report(init, path, IW_TWIN_EXISTS));
    if (init->db.connection != NULL && !init->has_tables)
        return say(init, INIT_TO_DO,
                   "needs the tables, because the database decides whether %s may be created", path);
    if (init->has_tables && key_is_lost(init, purpose, &is_lost) != IW_OK)
        return say_error(init);
    if (is_lost)
        return say(init, INIT_TO_DO,
                   "%s is missing, but the database was used with it; restore the file from the backup, or "
                   "from another host of this service.  If it is lost for ever: imgwardctl %s %s, then "
                   "imgwardctl secret accept %s",
                   path, command, path, keyring_name(purpose));
    return key_compare(init, purpose, secret_report(init, path, make(context, path)));
}

static enum init_verdict step_signing_keys(struct init *init)
{
    return step_key(init, KEYRING_SIGNING, signing_keys_make, "secret signing");
}

static enum init_verdict step_sealing_key(struct init *init)
{
    return step_key(init, KEYRING_SEALING, secret_box_generate, "secret sealing");
}

static enum init_verdict step_watermark_key(struct init *init)
{
    return step_key(init, KEYRING_WATERMARK, watermark_key_make, "image key");
}

static enum init_verdict step_password(struct init *init)
{
    struct context *context = init->ctl->context;
    const char *path = init->config.database_password_file;
    enum init_verdict verdict = INIT_THERE;
    uint8_t random[password_bytes];
    if (path[0] == '\0')
        return say(init, INIT_THERE, "not needed: the database authenticates the system user %s",
                   init->config.database_user);
    if (access(path, F_OK) == 0) {
        verdict = secret_report(init, path, IW_TWIN_EXISTS);
    } else {
        crypto_random(random, sizeof random);
        const char *line =
            arena_printf(context->arena, "%s\n", crypto_hex(context->arena, random, sizeof random));
        verdict = secret_report(init, path, ctl_file_make(context, path, line, strlen(line), 0600));
    }
    if (verdict == INIT_TO_DO)
        return verdict;
    return config_secret(context, path, &init->password) == IW_OK ? verdict : say_error(init);
}

/* ---- the database ---- */

/*
 * Tests whether the service's user can connect. With unix_socket authentication, a process of root takes the
 * id of that user for the test.
 */
static enum iw_error service_ping(struct init *init, const struct db *db)
{
    const struct passwd *user = getpwnam(init->config.database_user);
    bool is_other = geteuid() == 0 && ctl_is_socket_user(&init->config) && user != NULL;
    if (is_other && seteuid(user->pw_uid) != 0)
        return context_fail(init->ctl->context, IW_IO_FAILED, "Cannot become %s.", user->pw_name);
    enum iw_error error = provision_ping(db);
    if (is_other && seteuid(0) != 0)
        return context_fail(init->ctl->context, IW_IO_FAILED, "Cannot become root again.");
    return error;
}

/* Returns the handle of a local database's administrator, who is root over the socket; NULL if that fails. */
static struct db_connection *administrator_open(struct init *init, const char *database)
{
    if (geteuid() != 0 || init->config.database_socket[0] == '\0')
        return NULL;
    struct db_connection *connection =
        ctl_db_administrator(&init->config, database, &init->administrator_config);
    if (provision_ping(&(struct db){init->ctl->context, connection}) == IW_OK)
        return connection;
    context_clear(init->ctl->context);
    db_free(connection);
    return NULL;
}

/* Prints the statements with which the administrator must create the database. */
static enum init_verdict statements_report(struct init *init, const struct provision *provision)
{
    const char *statements[provision_statements_max];
    const struct provision shown = {provision->database, provision->user,
                                    provision->password[0] != '\0' ? "THE-PASSWORD" : ""};
    provision_statements(init->ctl->context->arena, &shown, statements);
    return say(init, INIT_TO_DO, "not reachable as %s; the administrator must run: %s; %s; %s",
               provision->user, statements[0], statements[1], statements[2]);
}

/* Opens the database for the following steps, as the administrator if possible. */
static enum iw_error database_open(struct init *init, bool has_administrator)
{
    const struct db service = {init->ctl->context, db_new(&init->config, init->password)};
    enum iw_error error = service_ping(init, &service);
    if (has_administrator)
        init->db.connection = administrator_open(init, init->config.database_name);
    else if (error == IW_OK)
        init->db = service;
    init->has_administrator = has_administrator && init->db.connection != NULL;
    if (init->db.connection != service.connection)
        db_free(service.connection);
    return error;
}

static enum init_verdict step_database(struct init *init)
{
    const struct config *config = &init->config;
    const struct provision provision = {config->database_name, config->database_user, init->password};
    unsigned made = 0;
    if (!provision_is_sound(&provision))
        return say(init, INIT_TO_DO,
                   "database.name, database.user or the password has characters that need quoting");
    const struct db administrator = {init->ctl->context, administrator_open(init, "mysql")};
    bool has_administrator = administrator.connection != NULL;
    enum iw_error error = has_administrator ? provision_run(&administrator, &provision, &made) : IW_OK;
    db_free(administrator.connection);
    if (error != IW_OK)
        return say_error(init);
    if (database_open(init, has_administrator) == IW_OK)
        return say(init, made > 0 ? INIT_MADE : INIT_THERE, "%s, readable and writable for the user %s",
                   config->database_name, config->database_user);
    if (has_administrator && ctl_is_socket_user(config) && getpwnam(config->database_user) == NULL)
        return say(init, INIT_TO_DO,
                   "the system user %s does not exist; systemd-sysusers creates it from imgward.sysusers",
                   config->database_user);
    if (has_administrator)
        return say_error(init);
    context_clear(init->ctl->context);
    return statements_report(init, &provision);
}

static enum init_verdict step_tables(struct init *init)
{
    unsigned applied = 0;
    if (init->db.connection == NULL)
        return say(init, INIT_TO_DO, "needs the database");
    if (migrate_all(init->ctl, &init->db, ctl_option(init->ctl, "--directory"), &applied) != IW_OK)
        return say_error(init);
    init->has_tables = true;
    return applied > 0 ? say(init, INIT_MADE, "%u migrations applied", applied)
                       : say(init, INIT_THERE, "up to date");
}

/* ---- the programs' users of the database ---- */

/* Creates the missing password files of the programs' users. */
static enum iw_error passwords_make(struct init *init)
{
    struct context *context = init->ctl->context;
    uint8_t random[password_bytes];
    enum iw_error error = IW_OK;
    for (int program = 0; error == IW_OK && program < GRANTS_PROGRAM_COUNT; program++) {
        const char *path = grants_password_file(&init->config, (enum grants_program)program);
        if (path == NULL || access(path, F_OK) == 0)
            continue;
        crypto_random(random, sizeof random);
        const char *line =
            arena_printf(context->arena, "%s\n", crypto_hex(context->arena, random, sizeof random));
        error = ctl_file_make(context, path, line, strlen(line), 0600);
        if (error == IW_OK)
            secret_share(init, path);
    }
    return error;
}

static enum init_verdict step_grants(struct init *init)
{
    unsigned made = 0;
    const struct config *config = &init->config;
    if (config->api_database_user[0] == '\0' && config->console_database_user[0] == '\0' &&
        config->worker_database_user[0] == '\0')
        return say(init, INIT_THERE, "not needed: all programs use %s", config->database_user);
    if (passwords_make(init) != IW_OK)
        return say_error(init);
    if (!init->has_administrator)
        return say(init, INIT_THERE,
                   "not checked; the administrator must run the statements that imgwardctl grants prints");
    if (grants_apply(&init->db, &init->config, &made) != IW_OK)
        return say_error(init);
    return made > 0 ? say(init, INIT_MADE, "%u users with the rights of their programs", made)
                    : say(init, INIT_THERE, "each program has its rights");
}

/* ---- Redis, the store ---- */

static enum init_verdict step_redis(struct init *init)
{
    const char *password;
    if (config_secret(init->ctl->context, init->config.redis_password_file, &password) != IW_OK)
        return say_error(init);
    struct redis *redis = redis_new(&init->config, password);
    struct redis_reply reply = redis_call(redis, init->ctl->context, 1, (const char *const[]){"PING"}, NULL);
    bool is_there = reply.kind == REDIS_TEXT;
    redis_free(redis);
    context_clear(init->ctl->context);
    if (is_there)
        return say(init, INIT_THERE, "answers");
    return say(init, INIT_TO_DO,
               "not reachable; start it, or check [redis] in %s (and whether %s may open "
               "its socket: adduser %s redis)",
               init->ctl->config_path, init->config.database_user, init->config.database_user);
}

static enum init_verdict step_store(struct init *init)
{
    struct stat facts;
    const char *path = init->config.store_path;
    if (stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode))
        return say(init, INIT_TO_DO, "%s: %s; systemd-tmpfiles --create creates it from imgward.tmpfiles",
                   path, strerror(errno != 0 ? errno : ENOTDIR));
    return say(init, INIT_THERE, "%s", path);
}

/* ---- the first account ---- */

static enum iw_error account_make(struct init *init, const char *name, char key[key_size])
{
    const char *plan = ctl_option(init->ctl, "--plan");
    uint8_t digest[32];
    char prefix[key_prefix_size];
    int64_t account = 0, id = 0, now_ms = clock_now_ms();
    enum iw_error error = accounts_create(&init->db, name, plan != NULL ? plan : "free", now_ms, &account);
    if (error != IW_OK)
        return error;
    key_make(key);
    key_digest(key, digest);
    key_prefix(key, prefix);
    const struct keys_row row = {
        .account_id = account, .name = "first", .digest = digest, .prefix = prefix, .created_ms = now_ms};
    return keys_insert(&init->db, &row, &id);
}

static enum init_verdict step_account(struct init *init)
{
    const char *name =
        ctl_option(init->ctl, "--account") != NULL ? ctl_option(init->ctl, "--account") : "first";
    struct account_row *accounts = NULL;
    size_t count = 0;
    char key[key_size];
    if (init->db.connection == NULL)
        return say(init, INIT_TO_DO, "needs the database");
    if (accounts_list(&init->db, &accounts, &count) != IW_OK)
        return say_error(init);
    if (count > 0)
        return say(init, INIT_THERE, "%zu accounts; imgwardctl account list shows them", count);
    if (account_make(init, name, key) != IW_OK)
        return say_error(init);
    say(init, INIT_MADE, "\"%s\"; its key, shown only once: %s", name, key);
    crypto_wipe(key, sizeof key);
    return INIT_MADE;
}

/* ---- the first user of the console ---- */

/* The user belongs to the first account in the list, which is sorted by number. */
static enum init_verdict user_report(struct init *init, const char *email, const struct account_row *account)
{
    struct context *context = init->ctl->context;
    struct user user = {.role = USER_OWNER, .is_admin = true};
    const char *password = user_password_make(context->arena);
    user.email = user_email_read(context, "--user", email);
    if (user.email == NULL)
        return say(init, INIT_TO_DO, "\"%s\" is not an email address", email);
    user.name = arena_text_n(context->arena, user.email, strcspn(user.email, "@"));
    user.account.id = account->id;
    if (user_make(&init->db, &init->config, &user, password) != IW_OK)
        return say_error(init);
    return say(init, INIT_MADE, "%s, owner of \"%s\" and of the operator; its password, shown only once: %s",
               user.email, account->name, password);
}

static enum init_verdict step_user(struct init *init)
{
    struct user *users = NULL;
    struct account_row *accounts = NULL;
    size_t count = 0, account_count = 0;
    int64_t total = 0;
    const char *email = ctl_option(init->ctl, "--user");
    const struct users_page one = {.limit = 1};
    if (email == NULL && !init->config.console_enabled)
        return say(init, INIT_THERE, "not needed: console.enabled is no");
    if (init->db.connection == NULL)
        return say(init, INIT_TO_DO, "needs the database");
    if (users_page(&init->db, &one, &users, &count, &total) != IW_OK ||
        accounts_list(&init->db, &accounts, &account_count) != IW_OK)
        return say_error(init);
    if (total > 0)
        return say(init, INIT_THERE, "%" PRId64 " users; imgwardctl user list shows them", total);
    if (email == NULL || account_count == 0)
        return say(init, INIT_TO_DO,
                   "run imgwardctl init --user EMAIL to create the first user of the console");
    return user_report(init, email, &accounts[0]);
}

static const struct {
    const char *name;
    enum init_verdict (*run)(struct init *init);
} steps[] = {
    {"password", step_password},
    {"database", step_database},
    {"tables", step_tables},
    {"grants", step_grants},
    /* This step follows the tables, because a missing key is created only for a new database. */
    {"signing keys", step_signing_keys},
    {"sealing key", step_sealing_key},
    {"watermark key", step_watermark_key},
    {"redis", step_redis},
    {"file store", step_store},
    {"account", step_account},
    {"user", step_user},
};

/* Prints the last lines: the number of things made, and the steps that are left to the operator. */
static void init_end(struct init *init, const unsigned counts[])
{
    struct site site;
    bool is_installed;
    const struct db db = {init->ctl->context, init->has_tables ? init->db.connection : NULL};
    site_read(init->ctl->context, init->config.api_nginx_file, init->config.api_public_url, &site);
    if (counts[INIT_TO_DO] > 0)
        printf("%u made, %u TO DO above; then run imgwardctl init again\n", counts[INIT_MADE],
               counts[INIT_TO_DO]);
    else if (counts[INIT_MADE] > 0)
        printf("%u made\n", counts[INIT_MADE]);
    unsigned left = remaining_print(init->ctl, &init->config, &db, &site, &is_installed);
    if (left == 0 && counts[INIT_TO_DO] == 0)
        printf("%s; imgwardctl doctor checks everything\n",
               is_installed ? "nothing is left to do" : "nothing to do");
}

static enum ctl_exit init_run(struct ctl *ctl)
{
    static const char *const words[] = {[INIT_THERE] = "there", [INIT_MADE] = "made", [INIT_TO_DO] = "TO DO"};
    struct init init = {.ctl = ctl, .db = {.context = ctl->context}, .password = ""};
    unsigned counts[INIT_TO_DO + 1] = {0};
    if (!ctl_config(ctl, &init.config))
        return CTL_FAILED;
    clock_offset_set_s(init.config.test_clock_offset_s);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        context_clear(ctl->context);
        init.line[0] = '\0';
        enum init_verdict verdict = steps[i].run(&init);
        counts[verdict]++;
        printf("%-14s %-6s %s\n", steps[i].name, words[verdict], init.line);
        fflush(stdout);
    }
    crypto_wipe(init.line, sizeof init.line);
    init_end(&init, counts);
    db_free(init.db.connection);
    return counts[INIT_TO_DO] > 0 ? CTL_NEGATIVE : CTL_DONE;
}

const struct ctl_command init_commands[] = {
    {.words = {"init"},
     .arguments = "",
     .options =
         {{"--account", "NAME", "name of the first account; \"first\" when omitted"},
          {"--plan", "PLAN", "plan of the first account: free (when omitted), pro or enterprise"},
          {"--user", "EMAIL",
           "create the first user of the web console, with the operator's rights, and print the password"},
          {"--directory", "DIR", "folder of the migrations, instead of the installed ones"}},
     .help = "Prepare the first run: create secrets, database, tables, and an account with a key; end with "
             "the steps that are left to do.  A repeated run changes nothing.",
     .example = "imgwardctl init --account studio --plan pro --user ada@example.com",
     .run = init_run},
    {.words = {NULL}},
};
