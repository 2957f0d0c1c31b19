#include "base/program.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/process.h"

enum { exit_usage = 2 };

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"test", no_argument, NULL, 't'},
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char common_usage[] =
    "  -c, --config FILE  the configuration (default: $IMGWARD_CONFIG or " IW_SYSCONFDIR "/imgward.conf)\n"
    "  -t, --test         check the configuration and exit\n"
    "  -v, --version      print the version\n"
    "  -h, --help         print this help\n";

/* Sends systemd the sentence with the first invalid key, and logs all invalid keys. */
static int complain(const struct program *program, const struct context *context)
{
    const struct context_detail *first = context->details;
    process_status("%s%s%s%s%s", context->sentence, first != NULL ? " " : "",
                   first != NULL ? first->field : "", first != NULL ? ": " : "",
                   first != NULL ? first->message : "");
    fprintf(stderr, "%s: %s\n", program->name, context->sentence);
    for (const struct context_detail *detail = context->details; detail != NULL; detail = detail->next)
        fprintf(stderr, "%s: %s: %s\n", program->name, detail->field, detail->message);
    return EXIT_FAILURE;
}

static int check(const struct program *program, struct context *context, const char *file)
{
    if (program->check(context, file) != IW_OK)
        return complain(program, context);
    printf("%s: ok\n", file);
    return EXIT_SUCCESS;
}

static int run(const struct program *program, struct context *context, const char *file)
{
    int code = program->run(context, file);
    return code == EXIT_SUCCESS ? code : complain(program, context);
}

/* Prints the version, or the usage for --help and for wrong options. */
static int usage_print(const struct program *program, int option)
{
    if (option == 'v')
        printf("%s " PACKAGE_VERSION "\n", program->name);
    else
        fprintf(option == 'h' ? stdout : stderr, "Usage: %s [--config FILE] [--test]\n%s%s", program->name,
                common_usage, program->usage);
    return option == 'v' || option == 'h' ? EXIT_SUCCESS : exit_usage;
}

int program_main(const struct program *program, int argc, char **argv)
{
    struct context context;
    const char *file = config_default_path();
    bool is_check = false;
    for (int option; (option = getopt_long(argc, argv, "c:tvh", options, NULL)) != -1;) {
        if (option == 'c')
            file = optarg;
        else if (option == 't')
            is_check = true;
        else
            return usage_print(program, option);
    }
    if (optind < argc)
        return usage_print(program, '?');
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    int code = is_check ? check(program, &context, file) : run(program, &context, file);
    arena_free(arena);
    return code;
}
