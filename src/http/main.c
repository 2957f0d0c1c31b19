/* imgward-api: the command line of the pool. */
#include "api/tables.h"
#include "base/config.h"
#include "base/program.h"
#include "http/auth.h"
#include "http/child.h"
#include "http/pool.h"

static const struct edge edge = {
    .prefix = "",
    .routes = api_routes,
    .configure = config_read_api,
    .authenticate = auth_check,
    .scheme = "Bearer",
    .counter = "",
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
        .name = "imgward-api",
        .usage =
            "Signals: TERM finishes current requests and exits, a second TERM exits at once; HUP reloads.\n",
        .check = config_check,
        .run = run,
    };
    return program_main(&program, argc, argv);
}
