#include "http/child.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/process.h"
#include "db/db.h"
#include "domain/accounts/request_log.h"
#include "domain/domain.h"
#include "domain/health.h"
#include "domain/keyring.h"
#include "http/fastcgi.h"
#include "http/serve.h"
#include "service/files/presign.h"
#include "service/files/storage.h"
#include "service/redis/redis.h"
#include "service/secret/secret_box.h"

enum {
    rest_max = 64,
    /*
     * The text of a body grows by doubling, and the texts made from it are shorter. Jansson's values are not
     * in the arena.
     */
    arena_bytes_per_body_byte = 8,
    arena_bytes_min = 64 << 20
};

/* The handles of one process, open from its first request to its last. */
struct child {
    const struct config *config;
    const struct edge *edge;
    const struct child_share *share;
    struct arena *arena_process; /* lives as long as the process */
    struct arena *arena_request;
    struct domain domain;
    struct secret_box secret_box;
    struct keyring keyring; /* of the keys that this process loaded */
    bool is_keyring_checked;
    struct fastcgi *fastcgi;
    struct request_log *log; /* NULL if there is no console to show it */
    sigset_t accepting;      /* signal mask while waiting, the only time when TERM can interrupt */
};

/*
 * The supervisor forks with all signals blocked; a signal that arrived since then is handled while waiting.
 */
static void signals_hold(struct child *child)
{
    sigset_t held;
    process_signals_reset();
    process_signals_install();
    sigemptyset(&child->accepting);
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGHUP);
    sigprocmask(SIG_SETMASK, &held, NULL);
}

static enum iw_error child_open(struct child *child, struct context *context)
{
    const char *database_password, *redis_password;
    const struct config *config = child->config;
    enum iw_error error = config_secret(context, config->database_password_file, &database_password);
    if (error == IW_OK)
        error = config_secret(context, config->redis_password_file, &redis_password);
    if (error == IW_OK)
        error = presign_new(context, config, &child->domain.presign);
    if (error == IW_OK)
        error = secret_box_read(context, config->webhooks_secret_key_file, &child->secret_box);
    if (error == IW_OK)
        error = keyring_load(context, config, KEYRING_SEALING, &child->keyring);
    if (error == IW_OK)
        error = keyring_load(context, config, KEYRING_SIGNING, &child->keyring);
    if (error != IW_OK)
        return error;
    child->domain.config = config;
    child->domain.secret_box = &child->secret_box;
    child->domain.db.connection = db_new(config, database_password);
    if (child->share != NULL)
        db_share(child->domain.db.connection, child->share->hosts, child->share->metrics);
    db_statement_limit_s(child->domain.db.connection, (unsigned)config->database_statement_max_s);
    child->domain.redis = redis_new(config, redis_password);
    /*
     * The URLs of an object store need the store's keys; a local store is opened when the first file is
     * needed.
     */
    return strcmp(config->store_driver, "local") == 0 ? IW_OK
                                                      : storage_open(context, config, &child->domain.storage);
}

static void child_close(struct child *child)
{
    fastcgi_free(child->fastcgi);
    request_log_free(child->log);
    db_free(child->domain.db.connection);
    redis_free(child->domain.redis);
    presign_free(child->domain.presign);
    storage_close(child->domain.storage);
    arena_free(child->arena_request);
    arena_free(child->arena_process);
}

enum iw_error child_check(struct context *context, const struct config *config)
{
    struct child child = {.config = config};
    enum iw_error error = child_open(&child, context);
    child_close(&child);
    return error;
}

/* Any error except CONFIG_INVALID means that the database could not be asked. */
static enum iw_error keyring_ask(struct child *child, struct context *context)
{
    const struct db db = {context, child->domain.db.connection};
    enum iw_error error = keyring_check(&db, child->config, &child->keyring);
    child->is_keyring_checked = error == IW_OK;
    if (error == IW_CONFIG_INVALID)
        return error;
    context_clear(context);
    return IW_OK;
}

enum iw_error child_keyring_check(struct context *context, const struct config *config, bool *is_checked)
{
    struct child child = {.config = config};
    enum iw_error error = child_open(&child, context);
    if (error == IW_OK)
        error = keyring_ask(&child, context);
    *is_checked = child.is_keyring_checked;
    child_close(&child);
    return error;
}

/*
 * Uses the request id of nginx, or a random id behind another web server. Without a valid traceparent, the
 * request id is the id of the trace, too, so that nginx's log has it.
 */
static void request_name(struct request *request)
{
    const char *given = request_parameter(request, "REQUEST_ID");
    uint8_t random[16];
    if (given == NULL || given[0] == '\0') {
        crypto_random(random, sizeof random);
        given = crypto_hex(request->arena, random, sizeof random);
    }
    context_init(request->context, request->arena, given);
    if (!trace_read(request_header_once(request, "traceparent"), &request->context->trace))
        trace_begin(&request->context->trace, request->arena, given);
}

/*
 * Returns false if there was no request: after a signal or a timeout, or if another process accepted the
 * request.
 */
static bool child_serve_one(struct child *child, int timeout_ms)
{
    struct context context;
    struct request request = {.context = &context,
                              .arena = child->arena_request,
                              .config = child->config,
                              .edge = child->edge,
                              .log = child->log,
                              .metrics = child->share->metrics,
                              .in_flight = child->share->in_flight,
                              .in_flight_slot = child->share->in_flight_slot,
                              .domain = &child->domain};
    char *const *parameters = fastcgi_accept(child->fastcgi, &child->accepting, timeout_ms, &request.wire);
    if (parameters == NULL)
        return false;
    context_init(&context, child->arena_request, NULL);
    request_init(&request, parameters);
    request_name(&request);
    /* nginx answers 503 if the process ends during a request. */
    if (!child->is_keyring_checked && keyring_ask(child, &context) != IW_OK) {
        context.reason = "keys_refused";
        log_failure(&context, "child_failed");
        exit(EXIT_FAILURE);
    }
    domain_context_set(&child->domain, &context);
    serve(&request, child->edge->routes);
    fastcgi_finish(child->fastcgi, request.response.is_broken);
    arena_reset(child->arena_request);
    return true;
}

/* Serves requests until a signal arrives, or until the process has served as many as it may. */
static void child_serve(struct child *child)
{
    int64_t left = child->config->api_requests_per_process;
    while (process_stop_count == 0) {
        bool is_served = child_serve_one(child, child->log != NULL ? request_log_wait_ms(child->log) : -1);
        if (child->log != NULL)
            request_log_flush(child->log, &child->domain, false);
        if (is_served && left > 0 && --left == 0)
            break;
    }
    /*
     * Serves the connections that already wait, up to a bound, because other processes accept new
     * connections.
     */
    for (int served = 0; served < rest_max && child_serve_one(child, 0); served++)
        continue;
    if (child->log != NULL)
        request_log_flush(child->log, &child->domain, true);
}

const char *child_status(struct context *context, const struct config *config)
{
    struct child child = {.config = config};
    enum iw_error error = child_open(&child, context);
    if (error == IW_OK)
        error = keyring_ask(&child, context);
    if (error == IW_OK) {
        domain_context_set(&child.domain, context);
        struct health health = health_check(&child.domain);
        context->sentence = health_text(context->arena, &health);
    }
    child_close(&child);
    return context->sentence;
}

int child_run(const struct config *config, const struct edge *edge, int listener,
              const struct child_share *share)
{
    struct child child = {
        .config = config, .edge = edge, .share = share, .is_keyring_checked = share->is_keyring_checked};
    struct context context;
    /* The memory limit of one request. A request that exceeds the limit ends the process. */
    size_t request_bytes = (size_t)config->api_body_max_bytes * arena_bytes_per_body_byte;
    child.arena_process = arena_new(0);
    child.arena_request = arena_new(request_bytes > arena_bytes_min ? request_bytes : arena_bytes_min);
    context_init(&context, child.arena_process, NULL);
    signals_hold(&child);
    if (child_open(&child, &context) != IW_OK) {
        log_failure(&context, "child_failed");
        child_close(&child);
        return EXIT_FAILURE;
    }
    child.fastcgi = fastcgi_new(listener);
    fault_point(FAULT_PROCESS_STARTED, "pool");
    child.log = config->console_enabled ? request_log_new() : NULL;
    child_serve(&child);
    child_close(&child);
    return EXIT_SUCCESS;
}
