/* imgward-worker: the command line of the supervisor. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "worker/supervisor.h"

static int complain(const struct context *context)
{
    fprintf(stderr, "imgward-worker: %s\n", context->sentence);
    for (const struct context_detail *detail = context->details; detail != NULL; detail = detail->next)
        fprintf(stderr, "imgward-worker: %s: %s\n", detail->field, detail->message);
    return EXIT_FAILURE;
}

static int check(struct context *context, const char *file)
{
    if (supervisor_check(context, file) != IW_OK)
        return complain(context);
    printf("%s: ok\n", file);
    return EXIT_SUCCESS;
}

static int run(struct context *context, const char *file)
{
    int code = supervisor_run(context, file);
    return code == EXIT_SUCCESS ? code : complain(context);
}

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"test", no_argument, NULL, 't'},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char usage[] =
    "Usage: imgward-worker [--config FILE] [--test]\n"
    "  -c, --config FILE  the configuration (default: $IMGWARD_CONFIG or " IW_SYSCONFDIR "/imgward.conf)\n"
    "  -t, --test         checks the configuration and ends\n"
    "  -v, --version      prints the version\n"
    "  -h, --help         prints this\n"
    "TERM finishes the pictures under way, a second TERM does not; HUP reloads.\n";

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
            fputs(option == 'v' ? "imgward-worker " PACKAGE_VERSION "\n" : usage,
                  option == '?' ? stderr : stdout);
            arena_free(arena);
            return option == '?' ? 2 : EXIT_SUCCESS;
        }
    }
    int code = is_check ? check(&context, file) : run(&context, file);
    arena_free(arena);
    return code;
}
