/*
 * Manual pages and shell completion, generated from the tables that the programs use, so that
 * they always agree. The pages are in mdoc(7); make builds and installs them.
 */
#include "ctl/ctl.h"

#include <stdio.h>
#include <string.h>

/*
 * Escapes text for a page: a dot or quote at the start of a line would begin a macro, a
 * backslash an escape.
 */
static void text_print(const char *text)
{
    if (text[0] == '.' || text[0] == '\'')
        fputs("\\&", stdout);
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void head_print(const char *name, const char *section, const char *summary)
{
    printf(".\\\" Written by imgwardctl from its own tables.\n.Dd November 21, 2026\n.Dt %s %s\n.Os imgward "
           "%s\n.Sh NAME\n"
           ".Nm %s\n.Nd %s\n",
           name, section, PACKAGE_VERSION, name, summary);
}

static void command_print(const struct ctl_command *command)
{
    printf(".It Nm");
    for (int i = 0; i < 3 && command->words[i] != NULL; i++)
        printf(" Cm %s", command->words[i]);
    for (unsigned i = 0; i < ctl_options_max && command->options[i].name != NULL; i++) {
        printf(" Oo Cm \\-\\-%s", command->options[i].name + 2);
        if (command->options[i].value != NULL)
            printf(" Ar %s", command->options[i].value);
        printf(" Oc");
    }
    if (command->arguments[0] != '\0')
        printf(" Ar %s", command->arguments);
    printf("\n");
    text_print(command->help);
    printf("\n");
    if (command->options[0].name == NULL)
        return;
    printf(".Bl -tag -width Ds -compact\n");
    for (unsigned i = 0; i < ctl_options_max && command->options[i].name != NULL; i++) {
        printf(".It Cm \\-\\-%s\n", command->options[i].name + 2);
        text_print(command->options[i].help);
        printf("\n");
    }
    printf(".El\n");
}

static enum ctl_exit commands_manual_run(struct ctl *ctl)
{
    (void)ctl;
    head_print("imgwardctl", "8", "administer the imgward image protection service");
    printf(".Sh SYNOPSIS\n.Nm\n.Op Fl \\-config Ar FILE\n.Ar COMMAND\n.Op Ar OPTIONS\n.Op Ar ARGUMENTS\n"
           ".Sh DESCRIPTION\nEvery command reads the configuration file given by\n.Fl \\-config ,\n"
           "else by the environment variable\n.Ev IMGWARD_CONFIG ,\nelse\n.Pa %s/imgward.conf .\n"
           "The\n.Cm image\ncommands work on files only; they need no configuration and no database.\n"
           ".Sh COMMANDS\n.Bl -tag -width Ds\n",
           IW_SYSCONFDIR);
    for (unsigned family = 0; main_families[family] != NULL; family++)
        for (const struct ctl_command *command = main_families[family]; command->words[0] != NULL; command++)
            command_print(command);
    printf(
        ".El\n.Sh EXIT STATUS\n.Bl -tag -width Ds\n.It 0\nSuccess.\n.It 1\nNegative result: the image has no "
        "watermark, a check of\n.Cm doctor\nfailed.\n.It 2\nBad usage, bad input or an error; one line "
        "on standard error names it.\n.El\n.Sh SEE ALSO\n.Xr imgward.conf 5 ,\n.Xr imgward\\-api 8 ,\n.Xr "
        "imgward\\-worker 8\n");
    return CTL_DONE;
}

static void key_print(const struct config_key *key)
{
    printf(".It Cm %s\n", key->name);
    text_print(key->sentence);
    if (key->type == CONFIG_INTEGER)
        printf("\nAn integer from %lld to %lld;", (long long)key->minimum, (long long)key->maximum);
    if (key->type == CONFIG_FOLLOWING)
        printf("\n0, or an integer from %lld to %lld;", (long long)key->minimum, (long long)key->maximum);
    if (key->type == CONFIG_BOOLEAN)
        printf("\nyes or no;");
    printf("\n%s default ", config_is_text(key->type) ? "The" : "the");
    if (key->value_default[0] == '\0')
        printf("is empty.\n");
    else {
        printf("is\n.Ql ");
        text_print(key->value_default);
        printf(" .\n");
    }
    printf("%s\n", key->is_reloaded ? "Applied by a reload." : "Needs a restart.");
}

static enum ctl_exit config_manual_run(struct ctl *ctl)
{
    size_t count;
    const char *section = "";
    const struct config_key *keys = config_keys(&count);
    (void)ctl;
    head_print("imgward.conf", "5", "configuration of the imgward image protection service");
    printf(
        ".Sh DESCRIPTION\nOne file for\n.Xr imgward\\-api 8 ,\n.Xr imgward\\-worker 8\nand\n.Xr imgwardctl 8 "
        ":\n"
        "sections in brackets, one\n.Dq name = value\na line, comments after a semicolon or number sign.\n"
        "Unknown keys, invalid values and keys set twice are errors with the number of the line.\n"
        "A reload (SIGHUP) of a file with errors is logged and keeps the old configuration.\n"
        "Secrets are in separate files that other users cannot read.\n.Sh KEYS\n");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(section, keys[i].section) != 0)
            printf("%s.Ss [%s]\n.Bl -tag -width Ds\n", i == 0 ? "" : ".El\n", section = keys[i].section);
        key_print(&keys[i]);
    }
    printf(".El\n.Sh FILES\n.Bl -tag -width Ds\n.It Pa %s/imgward.conf\nThe default file.\n.El\n.Sh SEE "
           "ALSO\n"
           ".Xr imgward\\-api 8 ,\n.Xr imgward\\-worker 8 ,\n.Xr imgwardctl 8\n",
           IW_SYSCONFDIR);
    return CTL_DONE;
}

/* Completes the words of all commands that begin with the typed text. */
static enum ctl_exit completion_run(struct ctl *ctl)
{
    (void)ctl;
    printf("# bash completion of imgwardctl, written by imgwardctl completion.\n_imgwardctl()\n{\n"
           "    local line=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\" word=\"${COMP_WORDS[COMP_CWORD]}\"\n"
           "    case \"$line\" in\n    '') COMPREPLY=($(compgen -W '--config");
    for (unsigned family = 0; main_families[family] != NULL; family++)
        for (const struct ctl_command *command = main_families[family]; command->words[0] != NULL; command++)
            printf(" %s", command->words[0]);
    printf("' -- \"$word\")) ;;\n");
    for (unsigned family = 0; main_families[family] != NULL; family++)
        for (const struct ctl_command *command = main_families[family]; command->words[0] != NULL;
             command++) {
            if (command->words[1] != NULL)
                printf("    '%s') COMPREPLY+=($(compgen -W '%s' -- \"$word\")) ;;&\n", command->words[0],
                       command->words[1]);
            printf("    '%s%s%s'*) COMPREPLY+=($(compgen -f -W '", command->words[0],
                   command->words[1] ? " " : "", command->words[1] ? command->words[1] : "");
            for (unsigned i = 0; i < ctl_options_max && command->options[i].name != NULL; i++)
                printf("%s ", command->options[i].name);
            printf("' -- \"$word\")) ;;&\n");
        }
    printf("    esac\n}\ncomplete -F _imgwardctl imgwardctl\n");
    return CTL_DONE;
}

const struct ctl_command manual_commands[] = {
    {.words = {"manual", "imgwardctl"},
     .arguments = "",
     .help = "Print the manual page imgwardctl(8), generated from the table of commands.",
     .run = commands_manual_run},
    {.words = {"manual", "imgward.conf"},
     .arguments = "",
     .help = "Print the manual page imgward.conf(5), generated from the table of keys.",
     .run = config_manual_run},
    {.words = {"completion"},
     .arguments = "",
     .help = "Print the completion for bash.",
     .run = completion_run},
    {.words = {NULL}},
};
