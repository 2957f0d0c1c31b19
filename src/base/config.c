#include "base/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ini.h>

#include "base/endpoint.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/mailbox.h"
#include "base/text.h"
#include "base/url.h"

#define KIND(kind, section, name, value, reload, sentence)                                                   \
    {                                                                                                        \
#section, #name, kind, offsetof(struct config, section##_##name), value, 0, 0, reload, sentence      \
    }
#define TEXT(section, name, value, reload, sentence) KIND(CONFIG_TEXT, section, name, value, reload, sentence)
#define INTEGER(section, name, value, least, most, reload, sentence)                                         \
    {                                                                                                        \
#section, #name, CONFIG_INTEGER, offsetof(struct config, section##_##name), value, least, most,      \
            reload, sentence                                                                                 \
    }
/* An integer that config_follow computes from the machine if the file sets 0, the default. */
#define FOLLOWING(section, name, least, most, sentence)                                                      \
    {                                                                                                        \
#section, #name, CONFIG_FOLLOWING, offsetof(struct config, section##_##name), "0", least, most,      \
            false, sentence                                                                                  \
    }
#define BOOLEAN(section, name, value, reload, sentence)                                                      \
    {                                                                                                        \
#section, #name, CONFIG_BOOLEAN, offsetof(struct config, section##_##name), value, 0, 1, reload,     \
            sentence                                                                                         \
    }

/* A key of each plan: a number of struct config_plan. */
#define LIMIT(section, name, value, least, most, sentence)                                                   \
    {                                                                                                        \
#section, #name, CONFIG_INTEGER, offsetof(struct config, section.name), value, least, most, true,    \
            sentence                                                                                         \
    }
#define QUOTA(section, name, value, what)                                                                    \
    LIMIT(section, name, value, 0, 4611686018427387904,                                                      \
          "Most " what " of an account of this plan; 0 is no limit.")

/* The section of a plan, with the defaults that differ between the plans. */
#define PLAN(section, rate, in_flight, retention, orders, files, promised, stored, day)                      \
    LIMIT(section, requests_per_minute, rate, 1, 1000000,                                                    \
          "Requests a minute of an account of this plan, with all of its keys."),                            \
        LIMIT(section, in_flight_max, in_flight, 1, 1024,                                                    \
              "Requests of an account of this plan that the API serves at the same time."),                  \
        LIMIT(section, result_retention_s, retention, 0, 315360000,                                          \
              "Seconds after an order's creation at which its results are deleted; 0 for "                   \
              "orders.result_retention_s."),                                                                 \
        QUOTA(section, orders_pending, orders, "orders that have not ended"),                                \
        QUOTA(section, files_pending, files, "files of orders that have not ended"),                         \
        QUOTA(section, promised_bytes, promised,                                                             \
              "bytes that pending orders may upload, store.upload_max_bytes a file"),                        \
        QUOTA(section, stored_bytes, stored, "bytes in the file store"),                                     \
        QUOTA(section, files_day, day, "files ordered in a UTC day"),                                        \
        QUOTA(section, texts_day, day, "new watermark texts in a UTC day"),                                  \
        QUOTA(section, webhooks, "20", "webhooks")

static const struct config_key keys[] = {
    TEXT(database, socket, "/run/mysqld/mysqld.sock", false,
         "Unix socket of MariaDB; empty to use host and port."),
    TEXT(database, host, "127.0.0.1", false, "Host of MariaDB if no socket is set."),
    INTEGER(database, port, "3306", 1, 65535, false, "Port of MariaDB if no socket is set."),
    KIND(CONFIG_ENDPOINTS, database, hosts, "", false,
         "Servers of a cluster, instead of socket, host and port: \"a, b:3307, /run/c.sock\"; the first "
         "server that is ready is used; empty if there is only one server."),
    INTEGER(database, back_s, "30", 0, 86400, false,
            "Seconds for which an earlier server of hosts must be ready before it is used again."),
    TEXT(database, name, "imgward", false, "Name of the database."),
    TEXT(database, user, "imgward", false, "User of the database."),
    TEXT(database, password_file, "", false,
         "File with the password on one line, mode 0600; empty for unix_socket authentication."),
    INTEGER(database, timeout_s, "5", 1, 60, false,
            "Seconds to wait for a connection, an answer or a write."),
    INTEGER(database, statement_max_s, "1", 1, 60, false,
            "Seconds after which the server ends a statement of imgward-api; the answer is 503."),
    TEXT(redis, socket, "", false, "Unix socket of Redis; empty to use host and port."),
    TEXT(redis, host, "127.0.0.1", false, "Host of Redis if no socket is set."),
    INTEGER(redis, port, "6379", 1, 65535, false, "Port of Redis if no socket is set."),
    KIND(CONFIG_ENDPOINTS, redis, sentinels, "", false,
         "Sentinels that report the master, instead of socket, host and port: \"a, b:26379, c\"; empty for "
         "none."),
    TEXT(redis, master, "mymaster", false, "Name under which the Sentinels monitor the master."),
    TEXT(redis, password_file, "", false,
         "File with the password on one line, mode 0600; empty for none. The Sentinels receive the same "
         "password."),
    INTEGER(redis, timeout_ms, "250", 10, 10000, false,
            "Milliseconds to wait for Redis before continuing without it."),
    INTEGER(redis, retry_ms, "1000", 10, 60000, false,
            "Milliseconds to wait before the next attempt after Redis failed."),
    TEXT(redis, prefix, "imgward:", false, "Prefix of every Redis key."),
    TEXT(api, socket, "/run/imgward/api.sock", false, "Unix socket of the pool, for nginx."),
    FOLLOWING(api, processes, 1, 1024,
              "Processes of the pool; 0 follows the machine: eight per core, fewer with little memory."),
    INTEGER(api, backlog, "1024", 1, 65535, false, "Connections that the kernel queues for the pool."),
    INTEGER(api, requests_per_process, "0", 0, 1000000000, true,
            "Requests after which a pool process is replaced; 0 means never."),
    INTEGER(api, key_cache_s, "5", 0, 300, true,
            "Seconds for which a process caches an API key, and after which a revocation takes effect at the "
            "latest; 0 disables the cache."),
    INTEGER(api, body_max_bytes, "1048576", 1024, 67108864, true, "Largest JSON body in bytes."),
    KIND(CONFIG_WEB_URL, api, public_url, "https://localhost", true,
         "Public base URL of the service: https://host or https://host:port."),
    TEXT(api, nginx_file, "", true,
         "Configuration file of nginx that imgwardctl doctor checks; empty for nginx's default."),
    TEXT(api, database_user, "", false, "User of the database for the API; empty for database.user."),
    TEXT(api, database_password_file, "", false,
         "File with the password of api.database_user, mode 0600; empty for unix_socket authentication."),
    TEXT(api, pid_file, "", false, "File for the process id of the supervisor; empty for none."),
    TEXT(store, driver, "local", false,
         "Driver of the file store: local is the folder store.path, s3 a bucket of an object store."),
    TEXT(store, s3_endpoint, "", false,
         "URL of the object store without a path, as https://s3.example.com; needed with driver s3."),
    TEXT(store, s3_public_endpoint, "", false,
         "The same for URLs that clients receive, if they reach the object store under another name; empty "
         "for s3_endpoint."),
    TEXT(store, s3_region, "us-east-1", false, "Region of the bucket; it is part of every signature."),
    TEXT(store, s3_bucket, "", false, "Name of the bucket; it must exist."),
    TEXT(store, s3_prefix, "", false,
         "Prefix of every key in the bucket: letters, digits, and - _ . /; must end with /; empty for none."),
    BOOLEAN(store, s3_path_style, "true", false,
            "true puts the name of the bucket into the path of URLs, false into the host name."),
    TEXT(store, s3_access_key_file, "", false, "File with the access key on one line, mode 0600."),
    TEXT(store, s3_secret_key_file, "", false, "File with the secret key on one line, mode 0600."),
    TEXT(store, s3_ca_file, "", false,
         "PEM file of trusted certificates for the object store; empty for the system's certificates."),
    INTEGER(store, s3_timeout_s, "5", 1, 60, false,
            "Seconds without progress after which a request to the object store is tried again."),
    TEXT(store, s3_events_key_file, "", false,
         "File with the key of the object store's notifications on one line, mode 0600; if empty, "
         "notifications are rejected."),
    BOOLEAN(console, enabled, "no", false, "Whether imgward-console serves the web console."),
    TEXT(console, socket, "/run/imgward-console/console.sock", false,
         "Unix socket of the console, for nginx."),
    FOLLOWING(console, processes, 1, 256,
              "Processes of the console, each of which handles one sign-in at a time; 0 follows the machine: "
              "2 to 8."),
    TEXT(console, database_user, "", false, "User of the database for the console; empty for database.user."),
    TEXT(console, database_password_file, "", false,
         "File with the password of console.database_user, mode 0600; empty for unix_socket authentication."),
    TEXT(console, pid_file, "", false, "File for the process id of the supervisor; empty for none."),
    TEXT(console, sign_up, "closed", true,
         "closed: only the operator creates users; invite: owners of accounts may invite; open: anyone may "
         "sign up."),
    TEXT(console, sign_up_plan, "free", true, "Plan of an account that a user creates by signing up."),
    INTEGER(console, requests_per_minute, "600", 60, 1000000, true,
            "Requests a minute that the users of one account may send to the console."),
    INTEGER(console, in_flight_max, "20", 1, 1024, true,
            "Requests of the users of one account that the console serves at the same time."),
    INTEGER(console, session_idle_s, "43200", 60, 31536000, true,
            "Seconds without a request after which a session ends."),
    INTEGER(console, session_s, "604800", 60, 31536000, true, "Seconds after which every session ends."),
    INTEGER(console, reset_s, "3600", 60, 604800, true,
            "Seconds for which a link that sets a password is valid."),
    INTEGER(console, invitation_s, "604800", 60, 31536000, true,
            "Seconds for which an invitation, or a link that verifies an address, is valid."),
    INTEGER(console, invitations_max, "20", 1, 100000, true,
            "Most open invitations of an account, and most invitations that an account may send in a day."),
    INTEGER(console, hash_operations, "2", 1, 100, true,
            "Passes of Argon2id over its memory for a password (libsodium: opslimit)."),
    INTEGER(console, hash_memory_bytes, "67108864", 8192, 4294967296, true,
            "Memory of Argon2id for a password in bytes (libsodium: memlimit)."),
    INTEGER(console, audit_kept_days, "400", 1, 3650, true, "Days after which a security event is deleted."),
    TEXT(console, operator_contact, "", true,
         "Email address or URL at which users reach the operator; the console shows it."),
    BOOLEAN(console, keep_bodies, "yes", true,
            "Whether the console shows the start of bodies without secrets, of changes and errors of the API "
            "and of webhook deliveries, for 7 days. If no, kept bodies are deleted."),
    KIND(CONFIG_MAIL_URL, mail, url, "", true,
         "Mail server, smtp://HOST[:PORT] with STARTTLS or smtps://HOST[:PORT]; if empty, no mail is sent."),
    KIND(CONFIG_MAILBOX, mail, from, "", true,
         "Sender of all mail, as name@example.com or Display name <name@example.com>."),
    TEXT(mail, user, "", true, "User name for the mail server; empty for none."),
    TEXT(mail, password_file, "", true, "File with the password of mail.user on one line, mode 0600."),
    BOOLEAN(mail, tls, "yes", true, "Whether smtp:// requires STARTTLS."),
    TEXT(store, path, IW_LOCALSTATEDIR "/lib/imgward/store", false,
         "Folder of uploads and results; it must be one file system."),
    TEXT(store, signing_keys_file, IW_SYSCONFDIR "/signing.keys", true,
         "File of the keys that sign URLs, one \"id:64 hex digits[:FROM]\" a line; FROM is in seconds since "
         "1970; "
         "the first key whose FROM is past signs."),
    INTEGER(store, upload_max_bytes, "52428800", 1024, 4294967296, true, "Largest uploaded file in bytes."),
    INTEGER(store, free_min_bytes, "1073741824", 0, 1125899906842624, true,
            "Free bytes on the file systems of the store and of a local database below which orders and "
            "uploads are refused; 0 disables the check."),
    INTEGER(store, upload_url_s, "3600", 10, 604800, true, "Seconds for which an upload URL is valid."),
    INTEGER(store, download_url_s, "3600", 10, 604800, true, "Seconds for which a download URL is valid."),
    TEXT(store, cors_origins, "", true,
         "Origins that may upload and download from a browser (CORS), separated by spaces."),
    INTEGER(orders, pending_s, "86400", 10, 31536000, true,
            "Seconds after which a pending order fails if it was not confirmed."),
    INTEGER(orders, rows_kept_days, "90", 0, 36500, true,
            "Days after which an ended order whose files were deleted is removed from the database; 0 means "
            "never."),
    INTEGER(
        orders, stuck_s, "86400", 60, 31536000, true,
        "Seconds after which an order in progress fails if one of its jobs has had twenty or more attempts."),
    INTEGER(orders, result_retention_s, "604800", 10, 315360000, true,
            "Seconds after an order's creation at which its results are deleted, if its plan has no other "
            "time."),
    /* requests, in progress, retention, orders, files, promised bytes, stored bytes, files and texts a day */
    PLAN(plan_free, "60", "4", "0", "500", "5000", "53687091200", "10737418240", "5000"),
    PLAN(plan_pro, "300", "10", "0", "5000", "50000", "536870912000", "107374182400", "50000"),
    PLAN(plan_enterprise, "1000", "32", "0", "50000", "500000", "5497558138880", "1099511627776", "1000000"),
    FOLLOWING(worker, processes, 1, 256,
              "Image processes; 0 follows the machine: one per core, fewer with little memory."),
    INTEGER(worker, lease_s, "30", 5, 3600, true, "Seconds until a lease without a heartbeat expires."),
    INTEGER(worker, heartbeat_s, "5", 1, 600, true, "Seconds between heartbeats."),
    INTEGER(worker, sweep_ms, "2000", 100, 600000, true,
            "Milliseconds between sweeps for jobs whose wake-up was lost."),
    INTEGER(worker, images_per_process, "100", 1, 1000000, false,
            "Pictures after which an image process is replaced."),
    INTEGER(worker, failures_max, "5", 1, 100, true, "Transient failures after which a job fails."),
    INTEGER(worker, deaths_max, "3", 1, 100, true,
            "Deaths of image processes after which the file that they processed fails."),
    INTEGER(worker, retry_first_ms, "1000", 10, 600000, true,
            "Milliseconds before the first retry; each further wait is twice as long."),
    INTEGER(worker, transfers, "32", 2, 200, false,
            "Parallel transfers of sources and results; one account may use at most half of them."),
    BOOLEAN(worker, allow_unsealed, "no", false,
            "Whether pictures may be processed on a machine without seccomp."),
    TEXT(worker, database_user, "", false, "User of the database for the worker; empty for database.user."),
    TEXT(worker, database_password_file, "", false,
         "File with the password of worker.database_user, mode 0600; empty for unix_socket authentication."),
    TEXT(worker, pid_file, "", false, "File for the process id of the supervisor; empty for none."),
    TEXT(worker, image_program, IW_LIBEXECDIR "/imgward-image", false, "Program of the image process."),
    INTEGER(image, pixels_max, "100000000", 4096, 1000000000, false,
            "Largest number of pixels of a picture."),
    INTEGER(image, side_max_px, "16384", 64, 65535, false, "Longest side of a picture in pixels."),
    INTEGER(image, result_times_max, "100", 1, 1000000, true,
            "A result may be at most this many times as large as its source."),
    INTEGER(image, result_floor_bytes, "8388608", 0, 4294967296, true,
            "Bytes that a result may always have, whatever the size of its source."),
    INTEGER(image, protect_growth_max_percent, "150", 100, 1000, false,
            "Largest JPEG or lossy WebP of a higher quality than the upload, in percent of the upload; it "
            "keeps more of the protection. 100: the quality stays."),
    INTEGER(image, timeout_s, "300", 1, 86400, true, "Seconds that an image process may take for one file."),
    FOLLOWING(image, memory_max_bytes, 268435456, 68719476736,
              "Memory of one image process in bytes, which limits the size of pictures; 0 follows the "
              "machine, up to 1 GiB."),
    TEXT(image, weights_file, IW_DATADIR "/protect.weights", false,
         "File of the protection network's weights."),
    TEXT(image, watermark_key_file, IW_SYSCONFDIR "/watermark.key", false,
         "File of the watermark key: 32 secret bytes, mode 0600."),
    BOOLEAN(image, read_heic, "yes", false, "Whether extractions read HEIC files, by libheif."),
    BOOLEAN(image, read_avif, "yes", false, "Whether extractions read AVIF files, by libheif."),
    BOOLEAN(image, read_tiff, "yes", false, "Whether extractions read TIFF files, by libtiff."),
    BOOLEAN(image, read_gif, "yes", false, "Whether extractions read GIF files, by giflib."),
    BOOLEAN(image, read_bmp, "yes", false, "Whether extractions read BMP files."),
    BOOLEAN(outgoing, allow_http, "no", true, "Whether source, target and webhook URLs may be plain http."),
    TEXT(outgoing, allow_addresses, "", true,
         "Address blocks (CIDR) that are allowed in addition to public addresses."),
    TEXT(outgoing, refuse_addresses, "own 168.63.129.16/32", true,
         "Address blocks (CIDR) that are refused; \"own\" stands for every address of this machine."),
    TEXT(outgoing, allow_ports, "", true,
         "Ports that URLs may have, such as 443 8000-8099; empty for 443, and also 80 with allow_http."),
    TEXT(outgoing, ca_file, "", true,
         "File of trusted certificates (PEM) for https servers; empty for the system's certificates."),
    INTEGER(outgoing, server_requests, "32", 1, 200, true,
            "Parallel transfers of one worker with one host and port, and parallel deliveries to it; one "
            "account may use half of them."),
    INTEGER(outgoing, fetch_timeout_s, "30", 1, 3600, true, "Seconds to fetch a source."),
    INTEGER(outgoing, push_timeout_s, "60", 1, 3600, true, "Seconds to push a result to its target."),
    TEXT(webhooks, secret_key_file, IW_SYSCONFDIR "/sealing.key", false,
         "File of the key that encrypts the secrets of webhooks: 64 hex digits, mode 0600."),
    INTEGER(webhooks, timeout_s, "15", 1, 300, true, "Seconds within which a receiver must answer."),
    INTEGER(webhooks, deliveries_max, "128", 1, 200, true, "Parallel deliveries of one worker."),
    INTEGER(webhooks, events_kept_days, "30", 1, 3650, true,
            "Days after which a delivered or failed event is deleted."),
    TEXT(log, level, "info", true, "debug, info, warn or error."),
    INTEGER(test, clock_offset_s, "0", -3153600000, 3153600000, true,
            "Seconds added to the clock of the program; for tests only."),
};

enum { key_count = sizeof keys / sizeof keys[0] };

/* Keys of the packages before the first release, for the error that an old file gets. */
static const struct {
    const char *section;
    const char *name; /* NULL: each key of the section */
    const char *instead;
} renamed[] = {
    {"orders", "complete_s", "orders.result_retention_s"},
    {"api", "in_flight_max", "in_flight_max in [plan_free], [plan_pro] and [plan_enterprise]"},
    {"quotas_free", NULL, "the same key in [plan_free]"},
    {"quotas_pro", NULL, "the same key in [plan_pro]"},
    {"quotas_enterprise", NULL, "the same key in [plan_enterprise]"},
};

struct config_load {
    struct context *context;
    const char *file;
    struct config *config;
    FILE *stream;
    bool is_set[key_count];
    int line;
};

const struct config_key *config_keys(size_t *count)
{
    *count = key_count;
    return keys;
}

static void *key_place(struct config *config, const struct config_key *key)
{
    return (char *)config + key->offset;
}

static bool boolean_read(const char *text, bool *value)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (text_equal_nocase(text, words[i])) {
            *value = i % 2 == 1;
            return true;
        }
    return false;
}

static bool endpoints_are_sound(const char *text)
{
    struct endpoint endpoints[endpoints_max];
    return endpoints_read(text, 1, endpoints) >= 0;
}

/* Paths are appended to this URL. */
static bool web_url_is_sound(const char *text)
{
    struct url url;
    return url_read(text, &url) && url.user.length == 0 && strpbrk(url.rest, "?#") == NULL &&
           (url_part_is(url.scheme, "https") || url_part_is(url.scheme, "http"));
}

/* libcurl would use a path as the name in EHLO. */
static bool mail_url_is_sound(const char *text)
{
    struct url url;
    return url_read(text, &url) && url.user.length == 0 && strpbrk(url.rest, "?#") == NULL &&
           (url_part_is(url.scheme, "smtp") || url_part_is(url.scheme, "smtps"));
}

static bool mailbox_is_sound(const char *text)
{
    struct mailbox mailbox;
    return mailbox_read(text, &mailbox);
}

/* The types of texts that must have a certain form. */
static const struct {
    bool (*is_sound)(const char *text);
    const char *wanted;
} forms[CONFIG_INTEGER] = {
    [CONFIG_ENDPOINTS] = {endpoints_are_sound,
                          "a list such as \"a, b:3307, [::1]:3306, /run/c.sock\" of 16 at most"},
    [CONFIG_WEB_URL] = {web_url_is_sound, "https://HOST or https://HOST:PORT"},
    [CONFIG_MAIL_URL] =
        {mail_url_is_sound,
         "smtp://HOST[:PORT] or smtps://HOST[:PORT]; user and password are mail.user and mail.password_file"},
    [CONFIG_MAILBOX] = {mailbox_is_sound,
                        "one address, as name@example.com or Display name <name@example.com>"},
};

/* Sets one key from text; returns false if the text has the wrong type or is out of range. */
static bool key_set(struct config *config, const struct config_key *key, const char *text)
{
    if (key->type == CONFIG_INTEGER)
        return text_integer(text, key->minimum, key->maximum, key_place(config, key));
    if (key->type == CONFIG_FOLLOWING)
        return text_integer(text, 0, 0, key_place(config, key)) ||
               text_integer(text, key->minimum, key->maximum, key_place(config, key));
    if (key->type == CONFIG_BOOLEAN)
        return boolean_read(text, key_place(config, key));
    bool is_empty = text[0] == '\0' && key->value_default[0] == '\0';
    if (!is_empty && forms[key->type].is_sound != NULL && !forms[key->type].is_sound(text))
        return false;
    *(const char **)key_place(config, key) = text;
    return true;
}

static void defaults_set(struct config *config)
{
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < key_count; i++)
        if (!key_set(config, &keys[i], keys[i].value_default))
            abort(); /* A default out of range is an error in the table. */
}

static void machine_follow(struct config *config)
{
    struct machine machine;
    machine_read("", &machine);
    config_follow(config, &machine);
}

void config_init(struct config *config)
{
    defaults_set(config);
    machine_follow(config);
}

static const struct config_key *key_find(const char *section, const char *name)
{
    for (size_t i = 0; i < key_count; i++)
        if (strcmp(keys[i].section, section) == 0 && strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

static void line_bad(struct config_load *load, int line, const char *why)
{
    context_detail(load->context, arena_printf(load->context->arena, "%s:%d", load->file, line), "%s", why);
}

static void value_bad(struct config_load *load, int line, const struct config_key *key, const char *value)
{
    struct arena *arena = load->context->arena;
    const char *wanted = key->type == CONFIG_BOOLEAN ? "yes or no"
                         : config_is_text(key->type)
                             ? forms[key->type].wanted
                             : arena_printf(arena, "%san integer from %lld to %lld",
                                            key->type == CONFIG_FOLLOWING ? "0 or " : "",
                                            (long long)key->minimum, (long long)key->maximum);
    /* A password in a URL must not get into a log. */
    bool is_secret = key->type == CONFIG_MAIL_URL && strchr(value, '@') != NULL;
    line_bad(load, line,
             arena_printf(arena, "%s.%s is \"%s\"; it must be %s", key->section, key->name,
                          is_secret ? "..." : value, wanted));
}

static void key_unknown(struct config_load *load, int line, const char *section, const char *name)
{
    struct arena *arena = load->context->arena;
    const char *remedy = "";
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(renamed[i].section, section) == 0 &&
            (renamed[i].name == NULL || strcmp(renamed[i].name, name) == 0))
            remedy = arena_printf(arena, "; set %s instead", renamed[i].instead);
    line_bad(load, line, arena_printf(arena, "section [%s] has no key \"%s\"%s", section, name, remedy));
}

/*
 * Line reader for inih. inih gives its handler no line number and splits long lines silently,
 * so the lines are counted and measured here.
 */
static char *line_next(char *line, int room, void *stream)
{
    struct config_load *load = stream;
    load->line++;
    char *read = fgets(line, room, load->stream);
    size_t length = read != NULL ? strlen(line) : 0;
    if (length + 1 == (size_t)room && line[length - 1] != '\n')
        line_bad(load, load->line,
                 arena_printf(load->context->arena, "the line is longer than %d characters", room - 2));
    return read;
}

/* Handler that inih calls for every "name = value" line. */
static int line_take(void *user, const char *section, const char *name, const char *value)
{
    struct config_load *load = user;
    int line = load->line;
    struct arena *arena = load->context->arena;
    const struct config_key *key = key_find(section, name);
    if (key == NULL) {
        key_unknown(load, line, section, name);
        return 1;
    }
    if (load->is_set[key - keys])
        line_bad(load, line, arena_printf(arena, "%s.%s is set twice", section, name));
    load->is_set[key - keys] = true;
    if (!key_set(load->config, key, arena_text(arena, value)))
        value_bad(load, line, key, value);
    return 1;
}

enum iw_error config_read(struct context *context, const char *file, struct config *config)
{
    struct config fresh;
    defaults_set(&fresh);
    struct config_load load = {.context = context, .file = file, .config = &fresh};
    FILE *stream = fopen(file, "re");
    if (stream == NULL)
        return context_fail(context, IW_CONFIG_INVALID, "The configuration %s cannot be read: %s.", file,
                            strerror(errno));
    load.stream = stream;
    int bad_line = ini_parse_stream(line_next, &load, line_take, &load);
    fclose(stream);
    if (bad_line > 0)
        line_bad(&load, bad_line, "the line is not a [section], not a \"name = value\" and not a comment");
    if (strcmp(fresh.console_sign_up, "closed") != 0 && strcmp(fresh.console_sign_up, "invite") != 0 &&
        strcmp(fresh.console_sign_up, "open") != 0)
        line_bad(&load, load.line,
                 arena_printf(context->arena, "console.sign_up is \"%s\"; it must be closed, invite or open",
                              fresh.console_sign_up));
    if (context->detail_count > 0)
        return context_fail(context, IW_CONFIG_INVALID, "%s: %s", context->details->field,
                            context->details->message);
    /* Paths that are appended to this URL begin with a slash. */
    size_t length = strlen(fresh.api_public_url);
    while (length > 0 && fresh.api_public_url[length - 1] == '/')
        length--;
    fresh.api_public_url = arena_text_n(context->arena, fresh.api_public_url, length);
    machine_follow(&fresh);
    *config = fresh;
    return IW_OK;
}

/* Uses the database user of this program if one is configured. */
static void database_user_set(struct config *config, const char *user, const char *password_file)
{
    if (user[0] == '\0')
        return;
    config->database_user = user;
    config->database_password_file = password_file;
}

enum iw_error config_read_api(struct context *context, const char *file, struct config *config)
{
    enum iw_error error = config_read(context, file, config);
    if (error == IW_OK)
        database_user_set(config, config->api_database_user, config->api_database_password_file);
    return error;
}

enum iw_error config_read_worker(struct context *context, const char *file, struct config *config)
{
    enum iw_error error = config_read(context, file, config);
    if (error == IW_OK)
        database_user_set(config, config->worker_database_user, config->worker_database_password_file);
    return error;
}

enum iw_error config_read_console(struct context *context, const char *file, struct config *config)
{
    enum iw_error error = config_read(context, file, config);
    if (error != IW_OK)
        return error;
    if (!config->console_enabled)
        return context_fail(context, IW_CONFIG_INVALID,
                            "The console is off: set enabled = yes in [console] of %s.", file);
    config->api_socket = config->console_socket;
    config->api_processes = config->console_processes;
    config->api_pid_file = config->console_pid_file;
    database_user_set(config, config->console_database_user, config->console_database_password_file);
    return IW_OK;
}

void config_keep_fixed(struct config *fresh, const struct config *old, struct arena *arena)
{
    for (size_t i = 0; i < key_count; i++) {
        void *to = key_place(fresh, &keys[i]);
        const void *from = (const char *)old + keys[i].offset;
        if (keys[i].is_reloaded)
            continue;
        if (keys[i].type == CONFIG_INTEGER || keys[i].type == CONFIG_FOLLOWING)
            *(int64_t *)to = *(const int64_t *)from;
        else if (keys[i].type == CONFIG_BOOLEAN)
            *(bool *)to = *(const bool *)from;
        else
            *(const char **)to = arena_text(arena, *(const char *const *)from);
    }
}

enum iw_error config_secret(struct context *context, const char *file, const char **secret)
{
    char line[1024];
    struct stat facts;
    *secret = "";
    if (file[0] == '\0')
        return IW_OK;
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &facts) != 0) {
        const char *why = strerror(errno);
        if (descriptor >= 0)
            close(descriptor);
        return context_fail(context, IW_CONFIG_INVALID, "The secret file %s cannot be read: %s.", file, why);
    }
    ssize_t size = read(descriptor, line, sizeof line - 1);
    close(descriptor);
    if ((facts.st_mode & 07) != 0)
        return context_fail(context, IW_CONFIG_INVALID,
                            "The secret file %s is readable by other users; chmod 0600 it.", file);
    if (size <= 0)
        return context_fail(context, IW_CONFIG_INVALID, "The secret file %s is empty.", file);
    line[size] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    *secret = arena_text(context->arena, line);
    return IW_OK;
}

void config_print_sample(FILE *file)
{
    const char *section = "";
    for (size_t i = 0; i < key_count; i++) {
        if (strcmp(section, keys[i].section) != 0)
            fprintf(file, "%s[%s]\n", i == 0 ? "" : "\n", section = keys[i].section);
        fprintf(file, "# %s", keys[i].sentence);
        if (keys[i].type == CONFIG_INTEGER || keys[i].type == CONFIG_FOLLOWING)
            fprintf(file, "%s %lld to %lld.", keys[i].type == CONFIG_FOLLOWING ? " 0, or" : "",
                    (long long)keys[i].minimum, (long long)keys[i].maximum);
        fprintf(file, " %s\n#%s = %s\n", keys[i].is_reloaded ? "Applied by a reload." : "Needs a restart.",
                keys[i].name, keys[i].value_default);
    }
}

const char *config_default_path(void)
{
    const char *path = getenv("IMGWARD_CONFIG");
    return path != NULL && path[0] != '\0' ? path : IW_SYSCONFDIR "/imgward.conf";
}
