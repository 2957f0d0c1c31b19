/* imgwardctl: looks up the command, reads the options and runs the command. */
#include "ctl/ctl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The longest list that can be requested needs a few hundred MiB, in columns or as JSON. */
static const size_t arena_bytes = (size_t)1 << 30;

/* One line per file of commands, each of which has a table. */
const struct ctl_command *const main_families[] = {
    main_commands,          init_commands,    grants_commands,
    migrate_commands,       account_commands, key_commands,
    user_commands,          order_commands,   queue_commands,
    webhook_commands,       store_commands,   store_copy_commands,
    doctor_commands,        secret_commands,  image_watermark_commands,
    image_protect_commands, manual_commands,  NULL,
};

static int words_match(const struct ctl_command *command, int count, char **words)
{
    int length = 0;
    while (length < 3 && command->words[length] != NULL) {
        if (length >= count || strcmp(command->words[length], words[length]) != 0)
            return 0;
        length++;
    }
    return length;
}

static const struct ctl_command *command_find(int count, char **words, int *length)
{
    for (unsigned family = 0; main_families[family] != NULL; family++)
        for (const struct ctl_command *command = main_families[family]; command->words[0] != NULL; command++)
            if ((*length = words_match(command, count, words)) > 0)
                return command;
    return NULL;
}

static void command_print_line(const struct ctl_command *command, FILE *file)
{
    fprintf(file, "imgwardctl");
    for (int i = 0; i < 3 && command->words[i] != NULL; i++)
        fprintf(file, " %s", command->words[i]);
    for (unsigned i = 0; i < ctl_options_max && command->options[i].name != NULL; i++)
        fprintf(file, " [%s%s%s]", command->options[i].name, command->options[i].value ? " " : "",
                command->options[i].value ? command->options[i].value : "");
    fprintf(file, "%s%s\n", command->arguments[0] ? " " : "", command->arguments);
}

static void command_print_help(const struct ctl_command *command, FILE *file)
{
    fprintf(file, "Usage: ");
    command_print_line(command, file);
    fprintf(file, "\n%s\n", command->help);
    for (unsigned i = 0; i < ctl_options_max && command->options[i].name != NULL; i++)
        fprintf(file, "  %s%s%s\n        %s\n", command->options[i].name,
                command->options[i].value ? " " : "",
                command->options[i].value ? command->options[i].value : "", command->options[i].help);
}

static enum ctl_exit help_run(struct ctl *ctl)
{
    (void)ctl;
    printf("Usage: imgwardctl [--config FILE] COMMAND [OPTIONS] [ARGUMENTS]\n\n");
    for (unsigned family = 0; main_families[family] != NULL; family++)
        for (const struct ctl_command *command = main_families[family]; command->words[0] != NULL;
             command++) {
            printf("  ");
            command_print_line(command, stdout);
            printf("        %s\n", command->help);
        }
    printf("\nExit codes: 0 success; 1 negative result (no watermark, a failed check); 2 bad usage or an "
           "error.\n");
    return CTL_DONE;
}

static enum ctl_exit version_run(struct ctl *ctl)
{
    (void)ctl;
    printf("imgward %s\n", PACKAGE_VERSION);
    return CTL_DONE;
}

static enum ctl_exit config_sample_run(struct ctl *ctl)
{
    (void)ctl;
    config_print_sample(stdout);
    return CTL_DONE;
}

/* Also prints the values that were computed from the machine, as the programs use them. */
static enum ctl_exit config_check_run(struct ctl *ctl)
{
    struct config config;
    size_t count;
    const struct config_key *keys = config_keys(&count);
    if (!ctl_config(ctl, &config))
        return CTL_FAILED;
    printf("%s: ok\n", ctl->config_path);
    for (size_t i = 0; i < count; i++)
        if (keys[i].type == CONFIG_FOLLOWING)
            printf("%s.%s = %" PRId64 "\n", keys[i].section, keys[i].name,
                   *(const int64_t *)(const void *)((const char *)&config + keys[i].offset));
    return CTL_DONE;
}

const struct ctl_command main_commands[] = {
    {.words = {"help"}, .arguments = "", .help = "List every command.", .run = help_run},
    {.words = {"version"}, .arguments = "", .help = "Print the version.", .run = version_run},
    {.words = {"config", "sample"},
     .arguments = "",
     .help = "Print a sample configuration: every key with its default.",
     .run = config_sample_run},
    {.words = {"config", "check"},
     .arguments = "",
     .help = "Check the configuration file; print the values that follow this machine.",
     .run = config_check_run},
    {.words = {NULL}},
};

/* Parses the option at argv[*at]. After an error, prints a line on stderr and returns false. */
static bool option_take(struct ctl *ctl, int argc, char **argv, int *at)
{
    const struct ctl_option *options = ctl->command->options;
    for (unsigned i = 0; i < ctl_options_max && options[i].name != NULL; i++) {
        size_t length = strlen(options[i].name);
        const char *given = argv[*at];
        if (strncmp(given, options[i].name, length) != 0 || (given[length] != '\0' && given[length] != '='))
            continue;
        if (options[i].value == NULL && given[length] == '\0') {
            ctl->values[i] = "";
        } else if (options[i].value != NULL && given[length] == '=') {
            ctl->values[i] = given + length + 1;
        } else if (options[i].value != NULL && *at + 1 < argc) {
            ctl->values[i] = argv[++*at];
        } else {
            fprintf(stderr, "imgwardctl: %s %s.\n", options[i].name,
                    options[i].value != NULL ? "needs a value" : "takes no value");
            return false;
        }
        return true;
    }
    fprintf(stderr, "imgwardctl: unknown option %s.\n", argv[*at]);
    return false;
}

static bool arguments_take(struct ctl *ctl, int argc, char **argv)
{
    bool is_option_allowed = true;
    for (int at = 0; at < argc; at++) {
        if (is_option_allowed && strcmp(argv[at], "--") == 0) {
            is_option_allowed = false;
        } else if (is_option_allowed && argv[at][0] == '-' && argv[at][1] != '\0') {
            if (!option_take(ctl, argc, argv, &at))
                return false;
        } else if (ctl->argument_count < ctl_arguments_max) {
            ctl->arguments[ctl->argument_count++] = argv[at];
        }
    }
    if (ctl->argument_count >= ctl->command->arguments_least &&
        ctl->argument_count <= ctl->command->arguments_most)
        return true;
    fprintf(stderr, "imgwardctl: wrong number of arguments.\nUsage: ");
    command_print_line(ctl->command, stderr);
    return false;
}

static enum ctl_exit command_run(struct ctl *ctl, int argc, char **argv)
{
    if (argc > 0 && strcmp(argv[0], "--help") == 0) {
        command_print_help(ctl->command, stdout);
        return CTL_DONE;
    }
    return arguments_take(ctl, argc, argv) ? ctl->command->run(ctl) : CTL_FAILED;
}

int main(int argc, char **argv)
{
    struct context context;
    struct arena *arena = arena_new(arena_bytes);
    struct ctl ctl = {.context = &context, .config_path = config_default_path()};
    int at = 1, length = 0;
    context_init(&context, arena, NULL);
    if (at + 1 < argc && strcmp(argv[at], "--config") == 0) {
        ctl.config_path = argv[at + 1];
        at += 2;
    }
    bool is_help_asked = at >= argc || strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0;
    enum ctl_exit code = CTL_FAILED;
    if (is_help_asked)
        code = help_run(&ctl) == CTL_DONE && at < argc ? CTL_DONE : CTL_FAILED;
    else if ((ctl.command = command_find(argc - at, argv + at, &length)) != NULL)
        code = command_run(&ctl, argc - at - length, argv + at + length);
    else
        fprintf(stderr, "imgwardctl: unknown command; imgwardctl help lists the commands.\n");
    arena_free(arena);
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return (int)code;
    /* A key is shown only once, so the command must fail if the output could not be written. */
    fprintf(stderr, "imgwardctl: the output could not be written.\n");
    return CTL_FAILED;
}
