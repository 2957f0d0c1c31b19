/* imgwardctl: looks up the command, reads the options and runs the command. */
#include "ctl/help.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* The longest list that can be requested needs a few hundred MiB, in columns or as JSON. */
static const size_t arena_bytes = (size_t)1 << 30;

/* One line per file of commands, each of which has a table.  A title begins a group of the help. */
static const struct ctl_family families[] = {
    {"First steps", init_commands},
    {NULL, doctor_commands},
    {NULL, main_commands},
    {"Pictures, without the service", image_protect_commands},
    {NULL, image_watermark_commands},
    {"Accounts, keys and users", account_commands},
    {NULL, key_commands},
    {NULL, user_commands},
    {"Orders, queue and webhooks", queue_commands},
    {NULL, order_commands},
    {NULL, webhook_commands},
    {"Database, files and secrets", migrate_commands},
    {NULL, grants_commands},
    {NULL, store_commands},
    {NULL, store_copy_commands},
    {NULL, secret_commands},
    {"Documents", manual_commands},
    {NULL, NULL},
};

/* Returns how many words of a command stand at the beginning; 0 if another command is meant. */
static int words_match(const struct ctl_command *command, int count, const char *const *words)
{
    int length = 0;
    while (length < 2 && command->words[length] != NULL) {
        if (length >= count || strcmp(command->words[length], words[length]) != 0)
            return 0;
        length++;
    }
    return length;
}

static const struct ctl_command *command_find(int count, const char *const *words, int *length)
{
    for (const struct ctl_family *family = families; family->commands != NULL; family++)
        for (const struct ctl_command *command = family->commands; command->words[0] != NULL; command++)
            if ((*length = words_match(command, count, words)) > 0)
                return command;
    return NULL;
}

/* Prints the nearest command, or where the commands are listed. */
static enum ctl_exit command_unknown(int count, const char *const *words)
{
    const char *const given[2] = {words[0], count > 1 && words[1][0] != '-' ? words[1] : NULL};
    const struct ctl_command *nearest = help_nearest(families, given);
    const char *second = nearest != NULL && given[1] != NULL ? nearest->words[1] : NULL;
    fprintf(stderr, "imgwardctl: unknown command \"%s%s%s\"", given[0], given[1] != NULL ? " " : "",
            given[1] != NULL ? given[1] : "");
    if (nearest != NULL)
        fprintf(stderr, "; did you mean \"%s%s%s\"?\n", nearest->words[0], second != NULL ? " " : "",
                second != NULL ? second : "");
    else
        fprintf(stderr, "; imgwardctl help lists the commands.\n");
    return CTL_FAILED;
}

/* The help of no word, of a group, or of a command. */
static enum ctl_exit help_words(int count, const char *const *words)
{
    int length;
    const struct ctl_command *command = count > 0 ? command_find(count, words, &length) : NULL;
    if (count == 0)
        help_print_all(families, stdout);
    else if (command != NULL && length == count)
        help_print_command(command, stdout);
    else if (count > 1 || !help_print_group(families, words[0], stdout))
        return command_unknown(count, words);
    return CTL_DONE;
}

static enum ctl_exit help_run(struct ctl *ctl)
{
    return help_words((int)ctl->argument_count, ctl->arguments);
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
    {.words = {"help"},
     .arguments = "[COMMAND]",
     .arguments_most = 2,
     .help = "List the commands, or explain one.",
     .run = help_run},
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

/* Whether a value is one of "a|b|c". */
static bool is_choice(const char *choices, const char *value)
{
    size_t length = strlen(value);
    for (const char *at = choices; at != NULL; at = strchr(at, '|')) {
        at += *at == '|';
        if (length > 0 && strncmp(at, value, length) == 0 && (at[length] == '|' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* Takes the value of an option.  A name such as "low|high" lists the permitted values. */
static bool value_take(struct ctl *ctl, unsigned option, const char *value)
{
    const char *choices = ctl->command->options[option].value;
    ctl->values[option] = value;
    if (strchr(choices, '|') == NULL || is_choice(choices, value))
        return true;
    fprintf(stderr, "imgwardctl: %s is \"%s\" but must be ", ctl->command->options[option].name, value);
    for (; *choices != '\0'; choices++)
        fputs(*choices != '|'            ? (const char[]){*choices, '\0'}
              : strchr(choices + 1, '|') ? ", "
                                         : " or ",
              stderr);
    fputs(".\n", stderr);
    return false;
}

static bool option_unknown(const struct ctl *ctl, const char *given)
{
    const char *nearest = help_nearest_option(ctl->command, given);
    fprintf(stderr, "imgwardctl: unknown option %s", given);
    if (nearest != NULL)
        fprintf(stderr, "; did you mean %s?\n", nearest);
    else
        fprintf(stderr, ".\n");
    return false;
}

/* Parses the option at argv[*at]. After an error, prints a line on stderr and returns false. */
static bool option_take(struct ctl *ctl, int argc, const char *const *argv, int *at)
{
    const struct ctl_option *options = ctl->command->options;
    for (unsigned i = 0; i < ctl_options_max && options[i].name != NULL; i++) {
        size_t length = strlen(options[i].name);
        const char *given = argv[*at];
        if (strncmp(given, options[i].name, length) != 0 || (given[length] != '\0' && given[length] != '='))
            continue;
        if (options[i].value == NULL && given[length] == '\0') {
            ctl->values[i] = "";
            return true;
        }
        if (options[i].value != NULL && given[length] == '=')
            return value_take(ctl, i, given + length + 1);
        if (options[i].value != NULL && *at + 1 < argc)
            return value_take(ctl, i, argv[++*at]);
        fprintf(stderr, "imgwardctl: %s %s.\n", options[i].name,
                options[i].value != NULL ? "needs a value" : "takes no value");
        return false;
    }
    return option_unknown(ctl, argv[*at]);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool arguments_take(struct ctl *ctl, int argc, const char *const *argv)
{
    bool is_option_allowed = true;
    for (int at = 0; at < argc; at++) {
        if (is_option_allowed && strcmp(argv[at], "--") == 0) {
            is_option_allowed = false;
        } else if (is_option_allowed && argv[at][0] == '-' && argv[at][1] != '\0') {
            if (!option_take(ctl, argc, argv, &at))
                return false;
        } else {
            ctl->arguments[ctl->argument_count++] = argv[at];
        }
    }
    if (ctl->argument_count >= ctl->command->arguments_least &&
        ctl->argument_count <= ctl->command->arguments_most)
        return true;
    fprintf(stderr, "imgwardctl: %u %s given; the command takes %s.\nUsage: ", ctl->argument_count,
            ctl->argument_count == 1 ? "argument was" : "arguments were",
            ctl->command->arguments[0] != '\0' ? ctl->command->arguments : "none");
    help_print_usage(ctl->command, stderr);
    return false;
}

static enum ctl_exit command_run(struct ctl *ctl, int argc, const char *const *argv)
{
    for (int at = 0; at < argc && strcmp(argv[at], "--") != 0; at++)
        if (is_help(argv[at])) {
            help_print_command(ctl->command, stdout);
            return CTL_DONE;
        }
    return arguments_take(ctl, argc, argv) ? ctl->command->run(ctl) : CTL_FAILED;
}

/* Runs the command of the words; a word that only begins commands prints them. */
static enum ctl_exit words_run(struct ctl *ctl, int count, const char *const *words)
{
    int length = 0;
    if (count == 0) {
        help_print_all(families, stderr);
        return CTL_FAILED;
    }
    if (is_help(words[0]))
        return help_words(0, words);
    if (ctl->config_path == NULL) {
        fprintf(stderr, "imgwardctl: --config needs a file.\n");
        return CTL_FAILED;
    }
    if (strcmp(words[0], "--version") == 0 || strcmp(words[0], "-V") == 0)
        return version_run(ctl);
    ctl->command = command_find(count, words, &length);
    if (ctl->command != NULL)
        return command_run(ctl, count - length, words + length);
    if (count == 2 && is_help(words[1]))
        return help_words(1, words);
    if (count == 1 && help_print_group(families, words[0], stderr))
        return CTL_FAILED;
    return command_unknown(count, words);
}

/* Returns how many words are taken; 0, with the usage as the command, if the file is missing. */
static int config_take(struct ctl *ctl, const char *path, int words)
{
    ctl->is_config_named = true;
    ctl->config_path = path;
    return path != NULL ? words : 0;
}

int main(int argc, char **argv)
{
    struct context context;
    struct arena *arena = arena_new(arena_bytes);
    struct ctl ctl = {.context = &context, .families = families, .config_path = config_default_path()};
    int at = 1;
    context_init(&context, arena, NULL);
    ctl.arguments = arena_array(arena, (size_t)argc + 1, sizeof *ctl.arguments);
    ctl.is_config_named = getenv("IMGWARD_CONFIG") != NULL;
    log_plain_set("imgwardctl");
    log_level_set(LOG_WARN);
    if (at < argc && strncmp(argv[at], "--config=", 9) == 0)
        at += config_take(&ctl, argv[at] + 9, 1);
    else if (at < argc && strcmp(argv[at], "--config") == 0)
        at += config_take(&ctl, argv[at + 1], 2);
    enum ctl_exit code = words_run(&ctl, argc - at, (const char *const *)argv + at);
    arena_free(arena);
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return (int)code;
    /* A key is shown only once, so the command must fail if the output could not be written. */
    fprintf(stderr, "imgwardctl: the output could not be written.\n");
    return CTL_FAILED;
}
