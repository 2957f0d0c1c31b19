/* imgward-api: the command line of the pool. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "http/child.h"
#include "http/pool.h"

static int complain(const struct context *context)
{
    fprintf(stderr, "imgward-api: %s\n", context->sentence);
    for (const struct context_detail *detail = context->details; detail != NULL; detail = detail->next)
        fprintf(stderr, "imgward-api: %s: %s\n", detail->field, detail->message);
    return EXIT_FAILURE;
}

/* -t: the file, and the secrets and signing keys that it names. */
static int check(struct context *context, const char *file)
{
    struct config config;
    enum iw_error error = config_read(context, file, &config);
    if (error == IW_OK)
        error = child_check(context, &config);
    if (error != IW_OK)
        return complain(context);
    printf("%s: ok\n", file);
    return EXIT_SUCCESS;
}

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"test", no_argument, NULL, 't'},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "Usage: imgward-api [--config FILE] [--test]\n"
    "  -c, --config FILE  the configuration (default: $IMGWARD_CONFIG or " IW_SYSCONFDIR "/imgward.conf)\n"
    "  -t, --test         checks the configuration and ends\n"
    "  -v, --version      prints the version\n"
    "  -h, --help         prints this\n"
    "TERM finishes the requests under way, a second TERM does not; HUP reloads.\n";

int main(int argc, char **argv)
{
    struct context context;
    const char *file = config_default_path();
    bool is_check = false;
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    for (int option; (option = getopt_long(argc, argv, "c:tvh", options, NULL)) != -1;) {
        if (option == 'c')
            file = optarg;
        else if (option == 't')
            is_check = true;
        else {
            fputs(option == 'v' ? "imgward-api " PACKAGE_VERSION "\n" : usage,
                  option == '?' ? stderr : stdout);
            arena_free(arena);
            return option == '?' ? 2 : EXIT_SUCCESS;
        }
    }
    int code = is_check ? check(&context, file) : pool_run(&context, file);
    if (!is_check && code != EXIT_SUCCESS)
        complain(&context);
    arena_free(arena);
    return code;
}
