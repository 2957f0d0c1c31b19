/* imgward-api: the command line of the pool. */
#include "api/tables.h"
#include "base/program.h"
#include "http/auth.h"
#include "http/pool.h"

static const struct edge edge = {
    .prefix = "",
    .routes = api_routes,
    .configure = config_read_api,
    .authenticate = auth_check,
    .scheme = "Bearer",
    .counter = "",
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
        .name = "imgward-api",
        .usage = pool_usage,
        .check = check,
        .run = run,
    };
    return program_main(&program, argc, argv);
}
