/* imgward-console: the command line of the console's pool. */
#include "base/program.h"
#include "console/change.h"
#include "console/gate.h"
#include "console/tables.h"
#include "http/failure.h"
#include "http/pool.h"

/* No body of an open route needs more than 2 KiB; parsing 16 KiB takes at most 2.5 ms. */
enum { open_body_bytes_max = 16384 };

/* doc/console.md lists these codes. */
static const struct failure_status statuses[] = {
    {IW_SESSION_REQUIRED, 401}, {IW_SIGN_IN_FAILED, 401},     {IW_SIGN_IN_LIMITED, 429},
    {IW_SIGN_UP_CLOSED, 403},   {IW_CSRF_TOKEN_INVALID, 403}, {IW_ROLE_REQUIRED, 403},
    {IW_TOKEN_INVALID, 400},    {IW_EMAIL_UNVERIFIED, 403},   {IW_LAST_OWNER, 409},
    {.error = IW_OK},
};

static enum iw_error authenticate(struct request *request)
{
    enum iw_error error = gate_authenticate(request);
    return error == IW_OK ? change_count(request) : error;
}

static const struct edge edge = {
    .prefix = "/console",
    .routes = console_routes,
    .configure = config_read_console,
    .guard = gate_guard,
    .authenticate = authenticate,
    .changed = change_note,
    .open_body_bytes_max = open_body_bytes_max,
    .statuses = statuses,
    .scheme = "Session",
    .counter = "console:",
};

static enum iw_error check(struct context *context, const char *file)
{
    return pool_check(context, file, &edge);
}

static int run(struct context *context, const char *file)
{
    return pool_run(context, file, &edge);
}

int main(int argc, char **argv)
{
    static const struct program program = {
        .name = "imgward-console",
        .usage = pool_usage,
        .check = check,
        .run = run,
    };
    return program_main(&program, argc, argv);
}
