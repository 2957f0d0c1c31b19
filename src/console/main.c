/* imgward-console: the command line of the console's pool. */
#include "base/program.h"
#include "console/gate.h"
#include "console/tables.h"
#include "http/child.h"
#include "http/pool.h"

/* doc/console.md lists these codes. */
static const struct failure_status statuses[] = {
    {IW_SESSION_REQUIRED, 401}, {IW_SIGN_IN_FAILED, 401},     {IW_SIGN_IN_LIMITED, 429},
    {IW_SIGN_UP_CLOSED, 403},   {IW_CSRF_TOKEN_INVALID, 403}, {IW_ROLE_REQUIRED, 403},
    {IW_TOKEN_INVALID, 400},    {IW_EMAIL_UNVERIFIED, 403},   {IW_LAST_OWNER, 409},
    {.error = IW_OK},
};

static const struct edge edge = {
    .prefix = "/console",
    .routes = console_routes,
    .configure = config_read_console,
    .guard = gate_guard,
    .authenticate = gate_authenticate,
    .statuses = statuses,
    .scheme = "Session",
    .counter = "console:",
};

/* Reads the configuration, and the secrets and signing keys that it names. */
static enum iw_error config_check(struct context *context, const char *file)
{
    struct config config;
    enum iw_error error = edge.configure(context, file, &config);
    return error == IW_OK ? child_check(context, &config) : error;
}

static int run(struct context *context, const char *file)
{
    return pool_run(context, file, &edge);
}

int main(int argc, char **argv)
{
    static const struct program program = {
        .name = "imgward-console",
        .usage =
            "Signals: TERM finishes current requests and exits, a second TERM exits at once; HUP reloads.\n",
        .check = config_check,
        .run = run,
    };
    return program_main(&program, argc, argv);
}
