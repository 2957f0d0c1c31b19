#include "service/redis/redis.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "base/endpoint.h"
#include "base/fault.h"
#include "base/log.h"

enum { sentinel_port = 26379 };

struct redis {
    const struct config *config;
    struct endpoint sentinels[endpoints_max];
    unsigned sentinel_count; /* 0 for a fixed address */
    unsigned sentinel_first; /* the Sentinel that answered last */
    struct endpoint master;  /* of the connection, with Sentinels */
    char *password;
    redisContext *connection; /* NULL if not connected */
    int64_t away_until_ms;    /* monotonic */
    char cause[128];          /* of the last failure; "" if there is none */
    bool is_reply_owed;
};

struct redis *redis_new(const struct config *config, const char *password)
{
    struct redis *redis = calloc(1, sizeof *redis);
    if (redis == NULL || (redis->password = strdup(password)) == NULL)
        abort();
    redis->config = config;
    int count = endpoints_read(config->redis_sentinels, sentinel_port, redis->sentinels);
    redis->sentinel_count = count > 0 ? (unsigned)count : 0;
    return redis;
}

void redis_close(struct redis *redis)
{
    if (redis->connection != NULL)
        redisFree(redis->connection);
    redis->connection = NULL;
    redis->is_reply_owed = false;
}

void redis_free(struct redis *redis)
{
    if (redis == NULL)
        return;
    redis_close(redis);
    free(redis->password);
    free(redis);
}

const char *redis_cause(const struct redis *redis)
{
    return redis->cause;
}

/* Closes the connection and starts the back-off. If cause is NULL, the cause is that of the driver. */
static void redis_give_up(struct redis *redis, struct context *context, const char *reason, const char *cause)
{
    if (cause == NULL)
        cause = redis->connection != NULL ? redis->connection->errstr : "";
    snprintf(redis->cause, sizeof redis->cause, "%s", cause);
    log_event(LOG_WARN, context, "redis_away", LOG_TEXT("reason", reason), LOG_TEXT("cause", cause));
    redis_close(redis);
    redis->away_until_ms = clock_monotonic_ms() + redis->config->redis_retry_ms;
}

static struct timeval timeval_of(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

static bool log_in(redisContext *connection, const char *password)
{
    if (password[0] == '\0')
        return true;
    redisReply *reply = redisCommand(connection, "AUTH %s", password);
    bool is_in = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return is_in;
}

static redisContext *endpoint_connect(const struct endpoint *endpoint, struct timeval timeout)
{
    redisContext *connection = endpoint_is_socket(endpoint)
                                   ? redisConnectUnixWithTimeout(endpoint->host, timeout)
                                   : redisConnectWithTimeout(endpoint->host, endpoint->port, timeout);
    if (connection != NULL && connection->err == 0 && redisSetTimeout(connection, timeout) == REDIS_OK)
        return connection;
    if (connection != NULL)
        redisFree(connection);
    return NULL;
}

/* ---- Sentinels ---- */

/* Asks one Sentinel for the address of the master. All Sentinels together may take redis.timeout_ms. */
static bool sentinel_ask(const struct redis *redis, unsigned number, struct endpoint *master)
{
    const struct timeval timeout = timeval_of(1 + redis->config->redis_timeout_ms / redis->sentinel_count);
    redisContext *connection = endpoint_connect(&redis->sentinels[number], timeout);
    if (connection == NULL)
        return false;
    /* A Sentinel without a password refuses AUTH, but answers the next command. */
    log_in(connection, redis->password);
    redisReply *reply =
        redisCommand(connection, "SENTINEL GET-MASTER-ADDR-BY-NAME %s", redis->config->redis_master);
    bool is_known = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                    reply->element[0]->type == REDIS_REPLY_STRING &&
                    reply->element[1]->type == REDIS_REPLY_STRING;
    if (is_known) {
        snprintf(master->host, sizeof master->host, "%s", reply->element[0]->str);
        master->port = atoi(reply->element[1]->str);
    }
    freeReplyObject(reply);
    redisFree(connection);
    return is_known;
}

/* Checks the role, because a Sentinel may name an old master for a moment, and a replica refuses writes. */
static bool is_master(redisContext *connection)
{
    redisReply *reply = redisCommand(connection, "ROLE");
    bool is_it = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
                 reply->element[0]->type == REDIS_REPLY_STRING &&
                 strcmp(reply->element[0]->str, "master") == 0;
    freeReplyObject(reply);
    return is_it;
}

/* Connects to the master that the first answering Sentinel names. Returns NULL if no Sentinel answers. */
static redisContext *master_connect(struct redis *redis, const char **cause)
{
    *cause = "No Sentinel names a master.";
    for (unsigned i = 0; i < redis->sentinel_count; i++) {
        struct endpoint master;
        unsigned number = (redis->sentinel_first + i) % redis->sentinel_count;
        if (!sentinel_ask(redis, number, &master))
            continue;
        redis->sentinel_first = number;
        redisContext *connection = endpoint_connect(&master, timeval_of(redis->config->redis_timeout_ms));
        if (connection != NULL && log_in(connection, redis->password) && is_master(connection)) {
            redis->master = master;
            return connection;
        }
        *cause = connection == NULL ? "The master that the Sentinel names is not reachable."
                                    : "The server that the Sentinel names is not a master.";
        if (connection != NULL)
            redisFree(connection);
    }
    return NULL;
}

unsigned redis_sentinel_count(const struct redis *redis)
{
    return redis->sentinel_count;
}

const char *redis_sentinel_master(struct redis *redis, struct context *context, unsigned number)
{
    struct endpoint master;
    return sentinel_ask(redis, number, &master)
               ? arena_printf(context->arena, "%s:%d", master.host, master.port)
               : NULL;
}

static bool redis_open(struct redis *redis, struct context *context)
{
    const struct config *config = redis->config;
    const char *cause = NULL;
    if (redis->connection != NULL)
        return true;
    if (clock_monotonic_ms() < redis->away_until_ms)
        return false;
    struct endpoint before = redis->master;
    if (redis->sentinel_count > 0) {
        redis->connection = master_connect(redis, &cause);
        if (redis->connection != NULL && before.host[0] != '\0' &&
            (strcmp(before.host, redis->master.host) != 0 || before.port != redis->master.port))
            log_event(LOG_WARN, context, "redis_master_changed", LOG_TEXT("host", redis->master.host),
                      LOG_NUMBER("port", redis->master.port));
    } else {
        redis->connection = config->redis_socket[0] != '\0'
                                ? redisConnectUnixWithTimeout(config->redis_socket,
                                                              timeval_of(redis->config->redis_timeout_ms))
                                : redisConnectWithTimeout(config->redis_host, (int)config->redis_port,
                                                          timeval_of(redis->config->redis_timeout_ms));
    }
    bool is_open = redis->connection != NULL && redis->connection->err == 0;
    if (is_open && redis->sentinel_count == 0)
        is_open =
            redisSetTimeout(redis->connection, timeval_of(redis->config->redis_timeout_ms)) == REDIS_OK &&
            log_in(redis->connection, redis->password);
    if (!is_open)
        redis_give_up(redis, context, "connect", cause);
    return is_open;
}

bool redis_send(struct redis *redis, struct context *context, unsigned count, const char *const *arguments,
                const size_t *lengths)
{
    /* Reconnects, because a reply that was not read would be taken for the reply to this command. */
    if (redis->is_reply_owed)
        redis_close(redis);
    if (!redis_open(redis, context))
        return false;
    const char **given = (const char **)(uintptr_t)arguments;
    int is_flushed = 0;
    fault_key_clear(FAULT_COMMAND);
    for (unsigned i = 0; i < count; i++)
        fault_key_add(FAULT_COMMAND, arguments[i]);
    bool is_sent = !fault_fails(FAULT_REDIS_SEND, fault_key(FAULT_COMMAND)) &&
                   redisAppendCommandArgv(redis->connection, (int)count, given, lengths) == REDIS_OK;
    while (is_sent && !is_flushed)
        is_sent = redisBufferWrite(redis->connection, &is_flushed) == REDIS_OK;
    if (!is_sent)
        redis_give_up(redis, context, "send", NULL);
    redis->is_reply_owed = is_sent;
    return is_sent;
}

static struct redis_reply reply_copy(struct arena *arena, const redisReply *from)
{
    struct redis_reply to = {.kind = REDIS_NULL};
    struct redis_reply *items;
    switch (from->type) {
    case REDIS_REPLY_INTEGER:
        to.kind = REDIS_INTEGER;
        to.integer = from->integer;
        break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR:
        to.kind = from->type == REDIS_REPLY_ERROR ? REDIS_ERROR : REDIS_TEXT;
        to.length = (size_t)from->len;
        to.text = arena_text_n(arena, from->str, to.length);
        break;
    case REDIS_REPLY_ARRAY:
        to.kind = REDIS_LIST;
        to.length = from->elements;
        to.items = items = arena_array(arena, to.length, sizeof *items);
        for (size_t i = 0; i < to.length; i++)
            items[i] = reply_copy(arena, from->element[i]);
        break;
    default:
        break;
    }
    return to;
}

/*
 * Returns true for an error that every command would get: a replica, no replicas, no memory, no disk, no
 * rights.
 */
static bool is_refusing(const char *text)
{
    static const char *const codes[] = {"READONLY ",   "NOREPLICAS ",  "MISCONF ", "OOM ",    "LOADING ",
                                        "MASTERDOWN ", "CLUSTERDOWN ", "MOVED ",   "NOAUTH ", "NOPERM "};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        const char *at = strstr(text, codes[i]);
        /* Redis before 7 wraps a script's error: "ERR Error running script ...: -READONLY ..." */
        if (at != NULL && (at == text || at[-1] == '-'))
            return true;
    }
    return false;
}

/* Takes a complete reply from the connection; returns true if no reply is pending any longer. */
static bool reply_take(struct redis *redis, struct context *context, struct redis_reply *reply)
{
    void *raw = NULL;
    if (redisGetReplyFromReader(redis->connection, &raw) != REDIS_OK) {
        redis_give_up(redis, context, "protocol", NULL);
        return true;
    }
    if (raw == NULL)
        return false;
    *reply = reply_copy(context->arena, raw);
    freeReplyObject(raw);
    redis->is_reply_owed = false;
    if (reply->kind == REDIS_ERROR && is_refusing(reply->text)) {
        redis_give_up(redis, context, "refuses", reply->text);
        *reply = (struct redis_reply){.kind = REDIS_AWAY};
    }
    return true;
}

/* Like redis_receive_ready, but waits up to timeout_ms for data. */
static bool receive_within(struct redis *redis, struct context *context, struct redis_reply *reply,
                           int64_t wait_ms)
{
    *reply = (struct redis_reply){.kind = REDIS_AWAY};
    if (redis->connection == NULL || !redis->is_reply_owed || reply_take(redis, context, reply))
        return true;
    struct pollfd look = {.fd = redis->connection->fd, .events = POLLIN};
    if (poll(&look, 1, (int)wait_ms) <= 0)
        return false;
    if (redisBufferRead(redis->connection) != REDIS_OK) {
        redis_give_up(redis, context, "receive", NULL);
        return true;
    }
    return reply_take(redis, context, reply);
}

bool redis_receive_ready(struct redis *redis, struct context *context, struct redis_reply *reply)
{
    return receive_within(redis, context, reply, 0);
}

struct redis_reply redis_receive(struct redis *redis, struct context *context)
{
    struct redis_reply reply;
    int64_t until_ms = clock_monotonic_ms() + redis->config->redis_timeout_ms;
    if (redis->connection != NULL && fault_fails(FAULT_REDIS_RECEIVE, fault_key(FAULT_COMMAND))) {
        redis_give_up(redis, context, "fault", NULL);
        return (struct redis_reply){.kind = REDIS_AWAY};
    }
    int64_t left_ms = redis->config->redis_timeout_ms;
    while (!receive_within(redis, context, &reply, left_ms)) {
        left_ms = until_ms - clock_monotonic_ms();
        if (left_ms <= 0) {
            redis_give_up(redis, context, "timeout", NULL);
            return (struct redis_reply){.kind = REDIS_AWAY};
        }
    }
    return reply;
}

struct redis_reply redis_call(struct redis *redis, struct context *context, unsigned count,
                              const char *const *arguments, const size_t *lengths)
{
    if (!redis_send(redis, context, count, arguments, lengths))
        return (struct redis_reply){.kind = REDIS_AWAY};
    return redis_receive(redis, context);
}

int redis_descriptor(const struct redis *redis)
{
    return redis->connection != NULL && redis->is_reply_owed ? redis->connection->fd : -1;
}
