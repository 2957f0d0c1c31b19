#include "ctl/help.h"

#include <string.h>

#include "base/text.h"

enum { edits_max = 2, word_bytes_max = 32, column = 34 };

static bool has_option(const struct ctl_command *command, unsigned i)
{
    return i < ctl_options_max && command->options[i].name != NULL;
}

static const char *option_value(const struct ctl_option *option)
{
    return option->value != NULL ? option->value : "";
}

static void words_print(const struct ctl_command *command, FILE *file)
{
    fprintf(file, "%s%s%s", command->words[0], command->words[1] != NULL ? " " : "",
            command->words[1] != NULL ? command->words[1] : "");
}

void help_print_usage(const struct ctl_command *command, FILE *file)
{
    fprintf(file, "imgwardctl ");
    words_print(command, file);
    for (unsigned i = 0; has_option(command, i); i++)
        fprintf(file, " [%s%s%s]", command->options[i].name, command->options[i].value != NULL ? " " : "",
                option_value(&command->options[i]));
    fprintf(file, "%s%s\n", command->arguments[0] != '\0' ? " " : "", command->arguments);
}

void help_print_command(const struct ctl_command *command, FILE *file)
{
    fprintf(file, "Usage: ");
    help_print_usage(command, file);
    fprintf(file, "\n%s\n", command->help);
    for (unsigned i = 0; has_option(command, i); i++)
        fprintf(file, "  %s%s%s\n        %s\n", command->options[i].name,
                command->options[i].value != NULL ? " " : "", option_value(&command->options[i]),
                command->options[i].help);
    if (command->example != NULL)
        fprintf(file, "\nExample:\n  %s\n", command->example);
}

/* Prints the words and the first sentence of the help. */
static void line_print(const struct ctl_command *command, FILE *file)
{
    char head[128];
    const char *end = strstr(command->help, ".  ");
    snprintf(head, sizeof head, "%s%s%s%s%s", command->words[0], command->words[1] != NULL ? " " : "",
             command->words[1] != NULL ? command->words[1] : "", command->arguments[0] != '\0' ? " " : "",
             command->arguments);
    fprintf(file, "  %-*s  %.*s\n", column, head, end != NULL ? (int)(end - command->help + 1) : 1024,
            command->help);
}

void help_print_all(const struct ctl_family *families, FILE *file)
{
    fprintf(file, "Usage: imgwardctl [--config FILE] COMMAND [OPTIONS] [ARGUMENTS]\n");
    for (; families->commands != NULL; families++) {
        if (families->title != NULL)
            fprintf(file, "\n%s:\n", families->title);
        for (const struct ctl_command *command = families->commands; command->words[0] != NULL; command++)
            line_print(command, file);
    }
    fprintf(file,
            "\n\"imgwardctl COMMAND --help\" prints options and an example.\n"
            "Exit codes: 0 success; 1 negative result (no watermark, a failed check); 2 bad usage or an "
            "error.\n");
}

bool help_print_group(const struct ctl_family *families, const char *word, FILE *file)
{
    bool is_found = false;
    for (; families->commands != NULL; families++)
        for (const struct ctl_command *command = families->commands; command->words[0] != NULL; command++) {
            if (strcmp(command->words[0], word) != 0)
                continue;
            if (!is_found)
                fprintf(file, "Usage: imgwardctl %s COMMAND [OPTIONS] [ARGUMENTS]\n\n", word);
            is_found = true;
            line_print(command, file);
        }
    return is_found;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The number of insertions, deletions, substitutions and swaps of neighbours; edits_max + 1 for long words.
 */
static unsigned distance(const char *a, const char *b)
{
    size_t rows = strlen(a), columns = strlen(b);
    unsigned edits[word_bytes_max + 1][word_bytes_max + 1] = {{0}};
    if (rows > word_bytes_max || columns > word_bytes_max)
        return edits_max + 1;
    for (unsigned y = 0; y <= rows; y++)
        for (unsigned x = 0; x <= columns; x++) {
            edits[y][x] = y == 0 ? x : y;
            if (y == 0 || x == 0)
                continue;
            edits[y][x] = least(least(edits[y - 1][x], edits[y][x - 1]) + 1,
                                edits[y - 1][x - 1] + (a[y - 1] != b[x - 1]));
            if (y > 1 && x > 1 && a[y - 1] == b[x - 2] && a[y - 2] == b[x - 1])
                edits[y][x] = least(edits[y][x], edits[y - 2][x - 2] + 1);
        }
    return edits[rows][columns];
}

const struct ctl_command *help_nearest(const struct ctl_family *families, const char *const words[2])
{
    const struct ctl_command *nearest = NULL;
    unsigned best = edits_max + 1;
    for (; families->commands != NULL; families++)
        for (const struct ctl_command *command = families->commands; command->words[0] != NULL; command++) {
            unsigned edits = distance(command->words[0], words[0]);
            if (words[1] != NULL && command->words[1] != NULL)
                edits += distance(command->words[1], words[1]);
            if (edits < best) {
                best = edits;
                nearest = command;
            }
        }
    return nearest;
}

const char *help_nearest_option(const struct ctl_command *command, const char *given)
{
    const char *nearest = NULL;
    unsigned best = edits_max + 1;
    for (unsigned i = 0; has_option(command, i); i++) {
        unsigned edits = distance(command->options[i].name, given);
        if (edits < best) {
            best = edits;
            nearest = command->options[i].name;
        }
    }
    return nearest;
}
