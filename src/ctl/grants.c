/* imgwardctl grants: prints the statements for an administrator on another machine. */
#include "ctl/grants.h"

#include <stddef.h>
#include <stdio.h>

/* The separate users that the configuration names. */
static const struct {
    size_t user;
    size_t password_file;
} keys[GRANTS_PROGRAM_COUNT] = {
    [GRANTS_API] = {offsetof(struct config, api_database_user),
                    offsetof(struct config, api_database_password_file)},
    [GRANTS_CONSOLE] = {offsetof(struct config, console_database_user),
                        offsetof(struct config, console_database_password_file)},
    [GRANTS_WORKER] = {offsetof(struct config, worker_database_user),
                       offsetof(struct config, worker_database_password_file)},
};

static const char *text_of(const struct config *config, size_t offset)
{
    return *(const char *const *)((const char *)config + offset);
}

/* Fills the user of a program and the password; user->user is "" if the program has no separate user. */
static enum iw_error user_read(struct context *context, const struct config *config,
                               enum grants_program program, struct provision *user)
{
    *user =
        (struct provision){.database = config->database_name, .user = text_of(config, keys[program].user)};
    enum iw_error error =
        config_secret(context, text_of(config, keys[program].password_file), &user->password);
    if (error != IW_OK || user->user[0] == '\0' || provision_is_sound(user))
        return error;
    return context_fail(
        context, IW_CONFIG_INVALID,
        "The name or the password of the user %s of %s has characters that need quoting; choose others.",
        user->user, grants_program_name(program));
}

const char *grants_password_file(const struct config *config, enum grants_program program)
{
    const char *path = text_of(config, keys[program].password_file);
    return text_of(config, keys[program].user)[0] != '\0' && path[0] != '\0' ? path : NULL;
}

enum iw_error grants_apply(const struct db *administrator, const struct config *config, unsigned *made)
{
    enum iw_error error = IW_OK;
    *made = 0;
    for (int program = 0; error == IW_OK && program < GRANTS_PROGRAM_COUNT; program++) {
        bool is_new = false;
        struct provision user;
        error = user_read(administrator->context, config, (enum grants_program)program, &user);
        if (error == IW_OK && user.user[0] != '\0')
            error = grants_run(administrator, &user, (enum grants_program)program, &is_new);
        *made += is_new;
    }
    return error;
}

static enum ctl_exit grants_print_run(struct ctl *ctl)
{
    struct config config;
    unsigned count;
    if (!ctl_config(ctl, &config))
        return CTL_FAILED;
    for (int program = 0; program < GRANTS_PROGRAM_COUNT; program++) {
        struct provision user;
        if (user_read(ctl->context, &config, (enum grants_program)program, &user) != IW_OK)
            return ctl_failed(ctl);
        if (user.user[0] == '\0')
            continue;
        user.password = user.password[0] != '\0' ? "THE-PASSWORD" : "";
        printf("-- %s\n%s;\n", grants_program_name((enum grants_program)program),
               grants_user_statement(ctl->context->arena, &user));
        const char **statements =
            grants_statements(ctl->context->arena, &user, (enum grants_program)program, &count);
        for (unsigned i = 0; i < count; i++)
            printf("%s;\n", statements[i]);
    }
    return CTL_DONE;
}

const struct ctl_command grants_commands[] = {
    {.words = {"grants"},
     .arguments = "",
     .help = "Print the statements that create the database users of the programs and grant them their "
             "rights.  init runs the statements itself if root is the database's administrator.",
     .run = grants_print_run},
    {.words = {NULL}},
};
