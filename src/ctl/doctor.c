/*
 * imgwardctl doctor: one line per check, with "ok" or the remedy.
 *
 * Each check is a row of the table. If the database or Redis is not reachable, the checks that depend on it
 * are skipped, so that one failure is reported only once.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/endpoint.h"
#include "base/process.h"
#include "ctl/ctl.h"
#include "ctl/migrate.h"
#include "ctl/remaining.h"
#include "db/db.h"
#include "db/db_hosts.h"
#include "db/workers.h"
#include "domain/health.h"
#include "domain/keyring.h"
#include "domain/people/mail.h"
#include "image/image_client.h"
#include "image/seal.h"
#include "model/picture.h"
#include "service/files/presign.h"
#include "service/files/storage.h"
#include "service/net/smtp.h"
#include "service/redis/redis.h"
#include "service/secret/secret_box.h"

enum {
    version_major_least = 10, /* MariaDB 10.6 is the first version with SKIP LOCKED */
    version_minor_least = 6,
    clock_difference_max_ms = 2000,
    image_start_ms = 20000,
    watermark_key_bytes = 32,
    room_percent_least = 5,
    packet_bytes_least = 16 * 1024 * 1024,
    connections_beside = 10,
    worker_mib = 256,  /* the worker itself, with its transfers */
    uploads_least = 64 /* twice the uploads that one address may have in progress (nginx/upload.conf) */
};

static const int64_t room_bytes_least = INT64_C(1) << 30;

enum doctor_verdict { DOCTOR_OK, DOCTOR_WRONG, DOCTOR_SKIPPED };

struct doctor {
    struct ctl *ctl;
    struct config config;
    struct db db;        /* connection is NULL if the password cannot be read */
    struct redis *redis; /* NULL if the password cannot be read */
    struct db_server server;
    struct site site;
    bool is_database_there;
    bool is_redis_there;
    char line[512]; /* result of the check, or the remedy */
};

__attribute__((format(printf, 3, 4))) static enum doctor_verdict
say(struct doctor *doctor, enum doctor_verdict verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(doctor->line, sizeof doctor->line, format, arguments);
    va_end(arguments);
    return verdict;
}

/* Reports the context's error and clears it. */
static enum doctor_verdict say_error(struct doctor *doctor, const char *advice)
{
    struct context *context = doctor->ctl->context;
    say(doctor, DOCTOR_WRONG, "%s%s%s%s%s", context->sentence, context->cause != NULL ? " (" : "",
        context->cause != NULL ? context->cause : "", context->cause != NULL ? ")" : "", advice);
    context_clear(context);
    return DOCTOR_WRONG;
}

/* ---- secrets ---- */

static enum doctor_verdict check_passwords(struct doctor *doctor)
{
    struct context *context = doctor->ctl->context;
    const char *password;
    if (config_secret(context, doctor->config.database_password_file, &password) != IW_OK)
        return say_error(doctor, "");
    doctor->db = (struct db){doctor->ctl->context, db_new(&doctor->config, password)};
    if (config_secret(context, doctor->config.redis_password_file, &password) != IW_OK)
        return say_error(doctor, "");
    doctor->redis = redis_new(&doctor->config, password);
    return say(doctor, DOCTOR_OK, "readable, but not by other users");
}

static enum doctor_verdict check_signing_keys(struct doctor *doctor)
{
    struct presign *presign;
    if (presign_new(doctor->ctl->context, &doctor->config, &presign) != IW_OK)
        return say_error(doctor, "; restore it from the backup (a new service: imgwardctl init)");
    presign_free(presign);
    return say(doctor, DOCTOR_OK, "%s", doctor->config.store_signing_keys_file);
}

static enum doctor_verdict check_watermark_key(struct doctor *doctor)
{
    const char *path = doctor->config.image_watermark_key_file;
    struct stat facts;
    if (stat(path, &facts) != 0)
        return say(doctor, DOCTOR_WRONG,
                   "%s: %s; restore it from the backup (a new service: imgwardctl init)", path,
                   strerror(errno));
    if (facts.st_size != watermark_key_bytes)
        return say(doctor, DOCTOR_WRONG, "%s has %lld bytes and must have %d", path, (long long)facts.st_size,
                   watermark_key_bytes);
    if ((facts.st_mode & 07) != 0)
        return say(doctor, DOCTOR_WRONG, "%s is readable by other users; chmod 0600 it", path);
    return say(doctor, DOCTOR_OK, "%s", path);
}

static enum doctor_verdict check_sealing_key(struct doctor *doctor)
{
    struct secret_box secret_box;
    if (secret_box_read(doctor->ctl->context, doctor->config.webhooks_secret_key_file, &secret_box) != IW_OK)
        return say_error(doctor, "; restore it from the backup (a new service: imgwardctl init)");
    crypto_wipe(&secret_box, sizeof secret_box);
    return say(doctor, DOCTOR_OK, "%s", doctor->config.webhooks_secret_key_file);
}

/* ---- the database ---- */

static enum doctor_verdict check_database(struct doctor *doctor)
{
    int major = 0, minor = 0;
    if (doctor->db.connection == NULL)
        return say(doctor, DOCTOR_SKIPPED, "its password cannot be read");
    if (db_server_read(&doctor->db, &doctor->server) != IW_OK)
        return say_error(doctor, "; see [database] of the configuration");
    doctor->is_database_there = true;
    if (sscanf(doctor->server.version, "%d.%d", &major, &minor) != 2 || major < version_major_least ||
        (major == version_major_least && minor < version_minor_least))
        return say(doctor, DOCTOR_WRONG, "version %s; MariaDB %d.%d or later is needed",
                   doctor->server.version, version_major_least, version_minor_least);
    if (doctor->server.is_read_only)
        return say(doctor, DOCTOR_WRONG, "version %s, but it is read-only", doctor->server.version);
    int64_t free_bytes, size_bytes;
    const char *folder = db_folder(&doctor->db);
    if (folder == NULL || !storage_room(folder, &free_bytes, &size_bytes))
        return say(doctor, DOCTOR_OK, "version %s; the free space on its disk is unknown",
                   doctor->server.version);
    return say(doctor, free_bytes < doctor->config.store_free_min_bytes ? DOCTOR_WRONG : DOCTOR_OK,
               "version %s, %" PRId64 " MiB are free at %s", doctor->server.version, free_bytes >> 20,
               folder);
}

static enum doctor_verdict check_modes(struct doctor *doctor)
{
    const struct db_server *server = &doctor->server;
    if (!doctor->is_database_there)
        return say(doctor, DOCTOR_SKIPPED, "the database is not reachable");
    if (server->session_unset[0] != '\0')
        return say(doctor, DOCTOR_WRONG,
                   "the session could not set %s; check proxies, and the server's global values",
                   server->session_unset);
    if (server->is_statement_logged)
        return say(doctor, DOCTOR_WRONG,
                   "binlog_format is STATEMENT, which refuses writes at READ-COMMITTED; set MIXED or ROW");
    if (strcmp(server->connection_set, "utf8mb4") != 0 || server->database_set == NULL ||
        strcmp(server->database_set, "utf8mb4") != 0)
        return say(doctor, DOCTOR_WRONG,
                   "connection %s, database %s; ALTER DATABASE ... CHARACTER SET utf8mb4",
                   server->connection_set, server->database_set != NULL ? server->database_set : "unknown");
    if (server->packet_bytes < packet_bytes_least)
        return say(doctor, DOCTOR_WRONG, "max_allowed_packet is %" PRId64 "; set 16M or more",
                   server->packet_bytes);
    return say(doctor, DOCTOR_OK, "strict, utf8mb4");
}

/* Each pool process keeps one connection. The worker, its children and commands need a few more. */
static enum doctor_verdict check_connections(struct doctor *doctor)
{
    int64_t processes = doctor->config.api_processes, most = doctor->server.connections_max;
    processes += doctor->config.console_enabled ? doctor->config.console_processes : 0;
    if (!doctor->is_database_there)
        return say(doctor, DOCTOR_SKIPPED, "the database is not reachable");
    if (most < processes + connections_beside)
        return say(doctor, DOCTOR_WRONG,
                   "max_connections or max_user_connections is %" PRId64 ", and the pool uses %" PRId64
                   "; set it to %" PRId64 " or more, or reduce api.processes",
                   most, processes, processes + connections_beside);
    return say(doctor, DOCTOR_OK, "the pool uses %" PRId64 " of %" PRId64, processes, most);
}

static enum doctor_verdict check_clock(struct doctor *doctor)
{
    if (!doctor->is_database_there)
        return say(doctor, DOCTOR_SKIPPED, "the database is not reachable");
    /* The time is read again, because the previous checks took time. */
    if (db_server_read(&doctor->db, &doctor->server) != IW_OK)
        return say_error(doctor, "");
    int64_t difference_ms = clock_now_ms() - doctor->server.now_ms;
    if (llabs((long long)difference_ms) > clock_difference_max_ms)
        return say(doctor, DOCTOR_WRONG, "%+" PRId64 " ms from the database's; set both by NTP",
                   difference_ms);
    return say(doctor, DOCTOR_OK, "%+" PRId64 " ms from the database's", difference_ms);
}

/*
 * The folder of migrations: from --directory, else the installed one. A program in a build
 * tree uses sql/ above it. The files there are only compared, never executed.
 */
static const char *migrations_folder(const struct doctor *doctor)
{
    struct arena *arena = doctor->ctl->context->arena;
    const char *named = ctl_option(doctor->ctl, "--directory");
    char program[4096];
    if (named != NULL || access(migrate_directory_default, R_OK) == 0)
        return named != NULL ? named : migrate_directory_default;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    char *slash = length > 0 ? memrchr(program, '/', (size_t)length) : NULL;
    if (slash == NULL)
        return migrate_directory_default;
    *slash = '\0';
    const char *beside = arena_printf(arena, "%s/sql", program);
    const char *above = arena_printf(arena, "%s/../sql", program);
    return access(beside, R_OK) == 0 ? beside : access(above, R_OK) == 0 ? above : migrate_directory_default;
}

static enum doctor_verdict check_migrations(struct doctor *doctor)
{
    struct context *context = doctor->ctl->context;
    struct migration *migrations;
    const char *directory = migrations_folder(doctor);
    unsigned count, pending = 0;
    if (!doctor->is_database_there)
        return say(doctor, DOCTOR_SKIPPED, "the database is not reachable");
    if (access(directory, R_OK) != 0)
        return say(doctor, DOCTOR_WRONG,
                   "%s: %s; imgward is not installed here, give the folder with --directory", directory,
                   strerror(errno));
    if (migrate_read(context, directory, &migrations, &count) != IW_OK)
        return say_error(doctor, "");
    if (migrate_compare(&doctor->db, migrations, count) != IW_OK)
        return say_error(doctor, "");
    for (unsigned i = 0; i < count; i++)
        pending += !migrations[i].is_applied;
    if (pending > 0)
        return say(doctor, DOCTOR_WRONG, "%u of %u not applied; imgwardctl migrate applies them", pending,
                   count);
    return say(doctor, DOCTOR_OK, "all %u applied", count);
}

/* Reads only ids. A key that cannot be read has a separate line above. */
static enum doctor_verdict check_keys(struct doctor *doctor)
{
    struct context *context = doctor->ctl->context;
    struct keyring keyring = {.ids = {""}};
    unsigned unknown = 0;
    if (!doctor->is_database_there)
        return say(doctor, DOCTOR_SKIPPED, "the database is not reachable");
    for (unsigned i = 0; i < keyring_purpose_count; i++) {
        enum keyring_purpose purpose = (enum keyring_purpose)i;
        enum keyring_fit fit = KEYRING_ABSENT;
        const char *known;
        if (keyring_load(context, &doctor->config, purpose, &keyring) != IW_OK)
            context_clear(context);
        else if (keyring_compare(&doctor->db, &keyring, purpose, &fit, &known) != IW_OK)
            return say_error(doctor, "");
        if (fit == KEYRING_OTHER)
            return say(
                doctor, DOCTOR_WRONG,
                "%s: the %s key (%s) is not the key of this database (%s); restore the file from the backup",
                keyring_path(&doctor->config, purpose), keyring_name(purpose), keyring.ids[purpose], known);
        unknown += fit == KEYRING_UNKNOWN;
    }
    if (unknown > 0)
        return say(doctor, DOCTOR_OK, "%u are not recorded in the database yet; the next start records them",
                   unknown);
    return say(doctor, DOCTOR_OK, "are those of this database");
}

/*
 * Checks each server of database.hosts. Two writable servers that do not replicate from each other would
 * diverge.
 */
static enum doctor_verdict check_hosts(struct doctor *doctor)
{
    unsigned count = doctor->db.connection == NULL ? 0 : db_host_count(doctor->db.connection), ready = 0,
             plain = 0;
    const char *in_use = "none";
    if (!doctor->is_database_there)
        return say(doctor, DOCTOR_SKIPPED, "the database is not reachable");
    if (count < 2)
        return say(doctor, DOCTOR_OK, "one server; database.hosts names several");
    for (unsigned i = 0; i < count; i++) {
        struct db_host host;
        db_host_check(&doctor->db, i, &host);
        if (!host.is_reachable)
            return say(doctor, DOCTOR_WRONG, "%s is not reachable (%s)", host.name, host.cause);
        if (doctor->server.cluster_size > 0 && host.cause[0] != '\0')
            return say(doctor, DOCTOR_WRONG, "%s is not ready (%s)", host.name, host.cause);
        ready += host.cause[0] == '\0';
        plain += host.cause[0] == '\0' && !host.is_cluster;
        in_use = host.is_in_use ? host.name : in_use;
    }
    if (plain > 1)
        return say(doctor, DOCTOR_WRONG,
                   "%u servers without Galera are writable; set read_only on all but one", plain);
    if (doctor->server.cluster_size > 0 && doctor->server.cluster_size != count)
        return say(doctor, DOCTOR_WRONG,
                   "wsrep_cluster_size is %" PRId64 ", but database.hosts names %u servers",
                   doctor->server.cluster_size, count);
    return say(doctor, DOCTOR_OK, "%u of %u are writable, %s is used%s%s", ready, count, in_use,
               doctor->server.cluster_size > 0 ? ", its node is " : "",
               doctor->server.cluster_size > 0 ? doctor->server.cluster_state : "");
}

/* ---- the mail server ---- */

static enum doctor_verdict check_mail_server(struct doctor *doctor)
{
    const struct config *config = &doctor->config;
    if (config->mail_url[0] == '\0')
        return say(doctor, DOCTOR_OK, "off; mail.url names a server");
    if (config->mail_from[0] == '\0')
        return say(doctor, DOCTOR_WRONG, "mail.url is set, but mail.from is empty; no mail is sent");
    if (smtp_try(doctor->ctl->context, config) != IW_OK)
        return say_error(doctor, "; see [mail] of the configuration");
    return say(doctor, DOCTOR_OK, "%s answers%s", config->mail_url,
               config->mail_user[0] != '\0' ? " and accepts mail.user" : "");
}

/* ---- Redis ---- */

static enum doctor_verdict check_redis(struct doctor *doctor)
{
    struct context *context = doctor->ctl->context;
    if (doctor->redis == NULL)
        return say(doctor, DOCTOR_SKIPPED, "its password cannot be read");
    struct redis_reply reply = redis_call(doctor->redis, context, 1, (const char *const[]){"PING"}, NULL);
    if (reply.kind != REDIS_TEXT)
        return say(doctor, DOCTOR_WRONG,
                   "not reachable; the service runs without rate limits, see [redis] of the configuration");
    doctor->is_redis_there = true;
    reply = redis_call(doctor->redis, context, 3, (const char *const[]){"CONFIG", "GET", "maxmemory-policy"},
                       NULL);
    if (reply.kind != REDIS_LIST || reply.length != 2 || reply.items[1].kind != REDIS_TEXT)
        return say(doctor, DOCTOR_OK, "answers; it does not allow reading its eviction policy");
    /* Keys with a lifetime may be evicted early; wake-ups and other keys without a lifetime must stay. */
    if (strncmp(reply.items[1].text, "allkeys", 7) == 0)
        return say(doctor, DOCTOR_WRONG,
                   "evicts by %s and may lose rate limits and wake-ups; set maxmemory-policy volatile-ttl",
                   reply.items[1].text);
    return say(doctor, DOCTOR_OK, "answers, evicts by %s", reply.items[1].text);
}

/* All Sentinels must answer and name the same master. */
static enum doctor_verdict check_sentinels(struct doctor *doctor)
{
    struct endpoint sentinels[endpoints_max];
    const char *master = NULL;
    unsigned count = doctor->redis == NULL ? 0 : redis_sentinel_count(doctor->redis);
    if (doctor->redis == NULL)
        return say(doctor, DOCTOR_SKIPPED, "Redis's password cannot be read");
    if (count == 0)
        return say(doctor, DOCTOR_OK, "not used; redis.sentinels would name them");
    endpoints_read(doctor->config.redis_sentinels, 0, sentinels);
    for (unsigned i = 0; i < count; i++) {
        const char *named = redis_sentinel_master(doctor->redis, doctor->ctl->context, i);
        if (named == NULL)
            return say(doctor, DOCTOR_WRONG, "%s does not know a master %s", sentinels[i].host,
                       doctor->config.redis_master);
        if (master != NULL && strcmp(master, named) != 0)
            return say(doctor, DOCTOR_WRONG, "the Sentinels disagree: %s and %s are named as master", master,
                       named);
        master = named;
    }
    return say(doctor, DOCTOR_OK, "all %u name %s", count, master);
}

/* ---- the file store ---- */

static enum iw_error store_try(struct context *context, struct storage *storage)
{
    const struct storage_key key = {
        .kind = FILEKEY_UPLOAD, .order_id = 1, .number = 1, .version = storage_version_new()};
    int descriptor = -1;
    enum iw_error error = storage_put_bytes(storage, context, &key, "doctor", 6);
    if (error == IW_OK)
        error = storage_get(storage, context, &key, &descriptor, NULL);
    if (descriptor >= 0)
        close(descriptor);
    return error == IW_OK ? storage_delete(storage, context, &key) : error;
}

/* Returns false if a folder of the store is on another file system than the store. */
static bool is_one_file_system(struct doctor *doctor)
{
    static const char *const folders[] = {"in", "original", "out", "zip", "thumb", "tmp"};
    struct stat whole, part;
    if (stat(doctor->config.store_path, &whole) != 0)
        return false;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *path =
            arena_printf(doctor->ctl->context->arena, "%s/%s", doctor->config.store_path, folders[i]);
        if (stat(path, &part) == 0 && part.st_dev != whole.st_dev)
            return false;
    }
    return true;
}

static enum doctor_verdict check_store(struct doctor *doctor)
{
    struct context *context = doctor->ctl->context;
    struct storage *storage;
    int64_t free_bytes, all_bytes;
    if (storage_open(context, &doctor->config, &storage) != IW_OK)
        return say_error(doctor, "");
    enum iw_error error = store_try(context, storage);
    bool is_direct = storage_is_direct(storage);
    storage_close(storage);
    if (error != IW_OK)
        return say_error(doctor, "");
    if (is_direct)
        return say(doctor, DOCTOR_OK, "the bucket %s at %s is writable", doctor->config.store_s3_bucket,
                   doctor->config.store_s3_endpoint);
    if (!is_one_file_system(doctor))
        return say(doctor, DOCTOR_WRONG, "%s spans several file systems; use one", doctor->config.store_path);
    if (!storage_room(doctor->config.store_path, &free_bytes, &all_bytes))
        return say(doctor, DOCTOR_WRONG, "%s: %s", doctor->config.store_path, strerror(errno));
    if (free_bytes < room_bytes_least || free_bytes < doctor->config.store_free_min_bytes ||
        free_bytes < all_bytes / 100 * room_percent_least)
        return say(doctor, DOCTOR_WRONG, "only %" PRId64 " MiB are free", free_bytes >> 20);
    return say(doctor, DOCTOR_OK, "%s is writable, %" PRId64 " MiB are free", doctor->config.store_path,
               free_bytes >> 20);
}

/* ---- the image process: one check for program, seal, weights and key, because it loads them all ---- */

static bool first_answer(const struct image_client *client, struct image_answer *answer)
{
    int64_t end_ms = clock_monotonic_ms() + image_start_ms;
    for (;;) {
        struct pollfd place = {.fd = client->socket, .events = POLLIN};
        int64_t left_ms = end_ms - clock_monotonic_ms();
        if (left_ms <= 0 || (poll(&place, 1, (int)left_ms) < 0 && errno != EINTR))
            return false;
        enum image_client_event event = image_client_receive(client, answer);
        if (event != IMAGE_CLIENT_NOTHING)
            return event == IMAGE_CLIENT_ANSWER && answer->kind == IMAGE_READY;
    }
}

static enum doctor_verdict answer_verdict(struct doctor *doctor, const struct image_answer *answer)
{
    if (answer->error != IW_OK)
        return say(doctor, DOCTOR_WRONG, "%s %s%s%s", iw_error_code((enum iw_error)answer->error),
                   answer->sentence, answer->cause[0] != '\0' ? " " : "", answer->cause);
    bool is_landlocked = (answer->seal_missing & SEAL_LANDLOCK) == 0;
    if ((answer->seal_missing & SEAL_SECCOMP) != 0)
        return say(doctor, DOCTOR_WRONG,
                   "is not sealed: %s Missing: seccomp%s; worker.allow_unsealed allows that", answer->cause,
                   is_landlocked ? "" : ", landlock");
    return say(
        doctor, DOCTOR_OK,
        "starts, is sealed%s, and has read the weights and the key (started by doctor, outside the unit)",
        is_landlocked ? "" : " (only by seccomp: this kernel has no Landlock)");
}

static enum doctor_verdict check_image_process(struct doctor *doctor)
{
    const struct config *config = &doctor->config;
    struct image_client_options options = image_client_options_of(config);
    struct image_client client;
    struct image_answer answer;
    int wait_status;
    options.is_unsealed_allowed = true;
    if (access(config->worker_image_program, X_OK) != 0)
        return say(doctor, DOCTOR_WRONG, "%s: %s", config->worker_image_program, strerror(errno));
    if (access(config->image_weights_file, R_OK) != 0)
        return say(doctor, DOCTOR_WRONG, "%s: %s", config->image_weights_file, strerror(errno));
    if (image_client_spawn(doctor->ctl->context, &options, &client) != IW_OK)
        return say_error(doctor, "");
    bool is_ready = first_answer(&client, &answer);
    image_client_kill(&client);
    image_client_close(&client);
    while (waitpid(client.pid, &wait_status, 0) < 0 && errno == EINTR)
        continue;
    if (!is_ready)
        return say(doctor, DOCTOR_WRONG, "%s does not respond; see its messages above",
                   config->worker_image_program);
    return answer_verdict(doctor, &answer);
}

/* ---- memory ---- */

static uint64_t megapixels_most(const struct config *config, enum order_type type)
{
    uint64_t allowed = (uint64_t)config->image_pixels_max / 1000000;
    uint64_t held = picture_megapixels(type, picture_allowed_bytes((uint64_t)config->image_memory_max_bytes));
    return held < allowed ? held : allowed;
}

/* Each process may use its memory limit, and half as much again for its results (image/main.c). */
static enum doctor_verdict check_memory(struct doctor *doctor)
{
    const struct config *config = &doctor->config;
    int64_t processes = config->worker_processes;
    int64_t each_bytes = config->image_memory_max_bytes + config->image_memory_max_bytes / 2;
    int64_t needed_mib = processes * (each_bytes >> 20) + worker_mib;
    struct machine machine;
    machine_read("", &machine);
    bool is_unit = machine.worker_bytes < machine.memory_bytes;
    int64_t there_mib = (is_unit ? machine.worker_bytes : machine.memory_bytes) >> 20;
    const char *whose = is_unit ? "MemoryMax of imgward-worker" : "this machine";
    if (there_mib < needed_mib)
        return say(doctor, DOCTOR_WRONG,
                   "%" PRId64 " image processes may need %" PRId64 " MiB, but %s has %" PRId64
                   "; set worker.processes or image.memory_max_bytes lower",
                   processes, needed_mib, whose, there_mib);
    return say(doctor, DOCTOR_OK,
               "fits: %" PRId64 " image process%s of %" PRId64 " MiB, at most %" PRId64 " of %" PRId64
               " MiB of %s; JPEG up to %" PRIu64 " megapixels (%s), %" PRIu64 " (%s)",
               processes, processes == 1 ? "" : "es", config->image_memory_max_bytes >> 20, needed_mib,
               there_mib, whose, megapixels_most(config, ORDER_ANTI_AI), order_type_name(ORDER_ANTI_AI),
               megapixels_most(config, ORDER_WATERMARK_EMBED), order_type_name(ORDER_WATERMARK_EMBED));
}

/* ---- running processes ---- */

/* A socket that no process serves is left over from a pool that died. */
static enum doctor_verdict check_socket(struct doctor *doctor, const char *path, const char *unit)
{
    struct stat facts;
    if (!process_listens(path))
        return say(doctor, DOCTOR_WRONG, "%s: %s; systemctl start %s, systemctl status %s has the reason",
                   path, strerror(errno), unit, unit);
    if (stat(path, &facts) != 0 || !S_ISSOCK(facts.st_mode) || (facts.st_mode & 0060) != 0060)
        return say(doctor, DOCTOR_WRONG, "%s is not writable by its group: nginx cannot connect", path);
    return say(doctor, DOCTOR_OK, "%s accepts connections", path);
}

static enum doctor_verdict check_pool(struct doctor *doctor)
{
    return check_socket(doctor, doctor->config.api_socket, "imgward-api");
}

static enum doctor_verdict check_console(struct doctor *doctor)
{
    if (!doctor->config.console_enabled)
        return say(doctor, DOCTOR_OK, "off; console.enabled turns it on");
    return check_socket(doctor, doctor->config.console_socket, "imgward-console");
}

static enum doctor_verdict check_workers(struct doctor *doctor)
{
    struct worker_row *workers;
    unsigned count, live = 0;
    bool is_paused = false, is_well = true;
    const char *report = "";
    if (!doctor->is_database_there)
        return say(doctor, DOCTOR_SKIPPED, "the database is not reachable");
    if (workers_list(&doctor->db, &workers, &count) != IW_OK ||
        workers_paused(&doctor->db, &is_paused) != IW_OK)
        return say_error(doctor, "");
    for (unsigned i = 0; i < count; i++) {
        if (!health_worker_is_up(&workers[i]))
            continue;
        live++;
        if (strcmp(workers[i].version, PACKAGE_VERSION) != 0)
            return say(doctor, DOCTOR_WRONG, "%s runs version %s, this is " PACKAGE_VERSION "; restart it",
                       workers[i].host, workers[i].version);
        report = health_worker_text(doctor->ctl->context->arena, &workers[i], &is_well);
        if (!is_well)
            return say(doctor, DOCTOR_WRONG, "%s:%" PRId64 ": %s", workers[i].host, workers[i].pid, report);
    }
    if (live == 0)
        return say(doctor, DOCTOR_WRONG,
                   "no worker sends heartbeats; systemctl start imgward-worker, "
                   "systemctl status imgward-worker has the reason");
    if (is_paused)
        return say(doctor, DOCTOR_WRONG, "%u, but the queue is paused; imgwardctl queue resume", live);
    return say(doctor, DOCTOR_OK, "%u of version " PACKAGE_VERSION "; started by the worker: %s", live,
               report);
}

/* The worker sends mail; doctor reads the outcome of the last messages. */
static enum doctor_verdict check_mail(struct doctor *doctor)
{
    struct worker_row *workers;
    unsigned count;
    int64_t sent_ms = 0;
    struct arena *arena = doctor->ctl->context->arena;
    if (!mail_is_on(&doctor->config))
        return say(doctor, DOCTOR_OK, "off; mail.url and mail.from turn it on");
    if (!doctor->is_database_there)
        return say(doctor, DOCTOR_SKIPPED, "the database is not reachable");
    if (workers_list(&doctor->db, &workers, &count) != IW_OK)
        return say_error(doctor, "");
    const struct worker_row *failed = health_mail_failed(workers, count);
    if (failed != NULL)
        return say(doctor, DOCTOR_WRONG, "the last mail failed at %s: %s; see [mail] of the configuration",
                   clock_iso_text(arena, failed->mail_failed_ms), failed->mail_reason);
    for (unsigned i = 0; i < count; i++)
        sent_ms = workers[i].mail_sent_ms > sent_ms ? workers[i].mail_sent_ms : sent_ms;
    if (sent_ms == 0)
        return say(doctor, DOCTOR_OK, "no mail was sent or failed since the worker started");
    return say(doctor, DOCTOR_OK, "the last mail was sent at %s", clock_iso_text(arena, sent_ms));
}

/* ---- nginx ---- */

static enum doctor_verdict check_nginx(struct doctor *doctor)
{
    if (doctor->site.text == NULL)
        return say(doctor, DOCTOR_SKIPPED,
                   "its configuration cannot be read; run this as root on the host of nginx%s%s",
                   doctor->site.error != NULL ? ": " : "",
                   doctor->site.error != NULL ? doctor->site.error : "");
    if (strstr(doctor->site.text, "upstream imgward_api") == NULL)
        return say(
            doctor, DOCTOR_WRONG,
            "has no upstream imgward_api; write \"include imgward/http.con[f];\" to conf.d/imgward.conf");
    if (strstr(doctor->site.text, "location ^~ /api/v2/") == NULL)
        return say(doctor, DOCTOR_WRONG, "has no location /api/v2/; enable sites-available/imgward");
    if (strstr(doctor->site.text,
               arena_printf(doctor->ctl->context->arena, "unix:%s", doctor->config.api_socket)) == NULL)
        return say(doctor, DOCTOR_WRONG, "passes requests to a socket other than api.socket (%s)",
                   doctor->config.api_socket);
    if (strstr(doctor->site.text, doctor->config.store_path) == NULL)
        return say(doctor, DOCTOR_WRONG, "does not serve files from store.path (%s)",
                   doctor->config.store_path);
    return say(doctor, DOCTOR_OK, "passes requests to the pool and serves files from the store");
}

/* Parses an nginx size such as "50m" into bytes; -1 if it is invalid. */
static int64_t size_read(const char *text)
{
    char *end;
    long long value = strtoll(text, &end, 10);
    int shift = *end == 'k' || *end == 'K'   ? 10
                : *end == 'm' || *end == 'M' ? 20
                : *end == 'g' || *end == 'G' ? 30
                                             : 0;
    return end == text ? -1 : (int64_t)value << shift;
}

/* Returns client_max_body_size of a location, or -1 if it is missing. */
static int64_t location_size(const struct doctor *doctor, const char *location)
{
    const char *at = strstr(doctor->site.text, location);
    const char *size = at == NULL ? NULL : site_directive(doctor->ctl->context, at, "client_max_body_size");
    return size == NULL ? -1 : size_read(size);
}

static enum doctor_verdict check_body_sizes(struct doctor *doctor)
{
    if (doctor->site.text == NULL)
        return say(doctor, DOCTOR_SKIPPED, "nginx's configuration cannot be read");
    int64_t api = location_size(doctor, "location ^~ /api/v2/");
    int64_t upload = location_size(doctor, "location @imgward_receive_unsized");
    if (api != doctor->config.api_body_max_bytes)
        return say(doctor, DOCTOR_WRONG,
                   "client_max_body_size of /api/v2/ is %" PRId64
                   " bytes, but api.body_max_bytes is %" PRId64,
                   api, doctor->config.api_body_max_bytes);
    if (upload != doctor->config.store_upload_max_bytes)
        return say(doctor, DOCTOR_WRONG,
                   "client_max_body_size of uploads is %" PRId64
                   " bytes, but store.upload_max_bytes is %" PRId64,
                   upload, doctor->config.store_upload_max_bytes);
    return say(doctor, DOCTOR_OK, "nginx and imgward.conf agree");
}

/* Uploads in progress are written here as unlinked files. */
static enum doctor_verdict check_upload_room(struct doctor *doctor)
{
    int64_t free_bytes, all_bytes, least_bytes = doctor->config.store_upload_max_bytes * uploads_least;
    if (doctor->site.text == NULL)
        return say(doctor, DOCTOR_SKIPPED, "nginx's configuration cannot be read");
    const char *path = site_directive(doctor->ctl->context, doctor->site.text, "client_body_temp_path");
    if (path == NULL)
        path = "/var/lib/nginx/body"; /* Debian's default */
    if (!storage_room(path, &free_bytes, &all_bytes))
        return say(doctor, DOCTOR_SKIPPED, "%s: %s; set client_body_temp_path", path, strerror(errno));
    if (free_bytes < least_bytes)
        return say(doctor, DOCTOR_WRONG,
                   "only %" PRId64 " MiB are free in %s (client_body_temp_path); %d uploads of "
                   "store.upload_max_bytes need %" PRId64 " MiB",
                   free_bytes >> 20, path, uploads_least, least_bytes >> 20);
    return say(doctor, DOCTOR_OK, "%" PRId64 " MiB are free in %s for uploads in progress", free_bytes >> 20,
               path);
}

static enum doctor_verdict check_tls_name(struct doctor *doctor)
{
    const struct site_certificate *certificate = &doctor->site.certificate;
    if (strncmp(doctor->config.api_public_url, "https://", 8) != 0)
        return say(doctor, DOCTOR_WRONG, "api.public_url is %s; clients need https://",
                   doctor->config.api_public_url);
    if (doctor->site.text == NULL)
        return say(doctor, DOCTOR_SKIPPED, "nginx's configuration cannot be read");
    if (certificate->file == NULL)
        return say(doctor, DOCTOR_WRONG, "nginx has no ssl_certificate");
    if (certificate->state == CRYPTO_CERTIFICATE_UNREADABLE)
        return say(doctor, DOCTOR_WRONG, "%s cannot be read as a certificate", certificate->file);
    if (certificate->state == CRYPTO_CERTIFICATE_OTHER_NAME)
        return say(doctor, DOCTOR_WRONG, "%s is not for %s, the host of api.public_url", certificate->file,
                   certificate->host);
    if (certificate->days < site_certificate_days_least)
        return say(doctor, DOCTOR_WRONG, "%s expires in %" PRId64 " days; renew it", certificate->file,
                   certificate->days);
    return say(doctor, DOCTOR_OK, "the certificate is for %s and expires in %" PRId64 " days",
               certificate->host, certificate->days);
}

static const struct {
    const char *name;
    enum doctor_verdict (*run)(struct doctor *doctor);
} checks[] = {
    {"passwords", check_passwords},
    {"signing keys", check_signing_keys},
    {"sealing key", check_sealing_key},
    {"watermark key", check_watermark_key},
    {"database", check_database},
    {"servers", check_hosts},
    {"modes", check_modes},
    {"connections", check_connections},
    {"migrations", check_migrations},
    {"keys", check_keys},
    {"clock", check_clock},
    {"redis", check_redis},
    {"sentinels", check_sentinels},
    {"smtp", check_mail_server},
    {"file store", check_store},
    {"image process", check_image_process},
    {"memory", check_memory},
    {"pool", check_pool},
    {"console", check_console},
    {"workers", check_workers},
    {"mail", check_mail},
    {"nginx", check_nginx},
    {"body sizes", check_body_sizes},
    {"upload room", check_upload_room},
    {"tls name", check_tls_name},
};

static enum ctl_exit doctor_run(struct ctl *ctl)
{
    static const char *const words[] = {
        [DOCTOR_OK] = "ok", [DOCTOR_WRONG] = "WRONG", [DOCTOR_SKIPPED] = "skipped"};
    struct doctor doctor = {.ctl = ctl};
    bool is_well = true, is_installed;
    if (!ctl_config(ctl, &doctor.config))
        return CTL_NEGATIVE;
    clock_offset_set_s(doctor.config.test_clock_offset_s);
    /* Only root can read these files, so they are read before the process becomes the service's user. */
    const char *file = ctl_option(ctl, "--nginx");
    site_read(ctl->context, file != NULL ? file : doctor.config.api_nginx_file, doctor.config.api_public_url,
              &doctor.site);
    if (!ctl_user_become(&doctor.config))
        return CTL_FAILED;
    printf("%-14s %-8s %s\n", "configuration", "ok", ctl->config_path);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        doctor.line[0] = '\0';
        context_clear(ctl->context);
        enum doctor_verdict verdict = checks[i].run(&doctor);
        printf("%-14s %-8s %s\n", checks[i].name, words[verdict], doctor.line);
        is_well = is_well && verdict == DOCTOR_OK;
    }
    const struct db db = {ctl->context, doctor.is_database_there ? doctor.db.connection : NULL};
    unsigned left = remaining_print(ctl, &doctor.config, &db, &doctor.site, &is_installed);
    redis_free(doctor.redis);
    db_free(doctor.db.connection);
    return is_well && left == 0 ? CTL_DONE : CTL_NEGATIVE;
}

const struct ctl_command doctor_commands[] = {
    {.words = {"doctor"},
     .arguments = "",
     .options = {{"--nginx", "FILE", "nginx's configuration file, instead of api.nginx_file"},
                 {"--directory", "DIR", "folder of the migrations, instead of the installed ones"}},
     .help = "Check everything that the service needs, one line each; end with the remaining steps; exit "
             "code 1 if a check fails or a step remains.",
     .run = doctor_run},
    {.words = {NULL}},
};
