/* The help of imgwardctl: all commands, a group of commands, one command, and the nearest name. */
#ifndef CTL_HELP_H
#define CTL_HELP_H

#include <stdio.h>

#include "ctl/ctl.h"

/* Prints the line of usage: words, options and arguments. */
void help_print_usage(const struct ctl_command *command, FILE *file);

/* Prints usage, help, options and example of one command. */
void help_print_command(const struct ctl_command *command, FILE *file);

/* Prints the groups with one line a command. */
void help_print_all(const struct ctl_family *families, FILE *file);

/* Prints the commands that begin with a word; false if there are none. */
bool help_print_group(const struct ctl_family *families, const char *word, FILE *file);

/*
 * Returns the command whose words are nearest to the given ones, or, with one word, whose first word is. NULL
 * if none is within two edits (optimal string alignment distance: Damerau, CACM 7(3), 1964).
 */
const struct ctl_command *help_nearest(const struct ctl_family *families, const char *const words[2]);

/* Returns the nearest option of a command; NULL if none is within two edits. */
const char *help_nearest_option(const struct ctl_command *command, const char *given);

#endif
