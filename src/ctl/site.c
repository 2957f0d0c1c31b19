#include "ctl/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

enum { site_bytes_max = 4 * 1024 * 1024 };

/* Sets *is_well if the exit status of the command is 0. */
static const char *output_read(struct context *context, const char *command, bool *is_well)
{
    struct text text;
    char piece[4096];
    size_t size;
    FILE *pipe = popen(command, "re");
    *is_well = false;
    if (pipe == NULL)
        return NULL;
    text_init(&text, context->arena);
    while ((size = fread(piece, 1, sizeof piece, pipe)) > 0)
        if (text.length < site_bytes_max)
            text_add(&text, piece, size);
    *is_well = pclose(pipe) == 0;
    return text.length > 0 ? text.data : NULL;
}

const char *site_command(struct context *context, const char *command)
{
    bool is_well;
    const char *output = output_read(context, command, &is_well);
    return is_well ? output : NULL;
}

/* nginx's first line of level emerg, without the level. */
static const char *refusal(struct context *context, const char *command)
{
    static const char level[] = "[emerg] ";
    bool is_well;
    const char *output = output_read(context, command, &is_well);
    const char *line = output != NULL ? strstr(output, level) : NULL;
    if (line == NULL)
        return NULL;
    line += sizeof level - 1;
    line += strspn(line, "0123456789#: "); /* process#thread: */
    return arena_text_n(context->arena, line, strcspn(line, "\n"));
}

static void certificate_read(struct context *context, const char *public_url, struct site *site)
{
    struct site_certificate *certificate = &site->certificate;
    const char *host = strstr(public_url, "://");
    host = host != NULL ? host + 3 : public_url;
    certificate->host = arena_text_n(context->arena, host, strcspn(host, ":/"));
    if (site->text == NULL)
        return;
    certificate->file = site_directive(context, site->text, "ssl_certificate");
    if (certificate->file != NULL)
        certificate->state =
            crypto_certificate_check(certificate->file, certificate->host, &certificate->days);
}

void site_read(struct context *context, const char *file, const char *public_url, struct site *site)
{
    /* Only the PATH of root contains sbin. */
#define NGINX(options)                                                                                       \
    "PATH=\"$PATH:/usr/sbin:/sbin\" nginx " options " ${IMGWARD_NGINX_FILE:+-c \"$IMGWARD_NGINX_FILE\"} "
    /* nginx resolves a relative path under its prefix, not in the current folder. */
    bool is_named = file[0] != '\0';
    char *whole = is_named ? realpath(file, NULL) : NULL;
    bool is_set =
        (!is_named || whole != NULL) && setenv("IMGWARD_NGINX_FILE", whole != NULL ? whole : "", 1) == 0;
    free(whole);
    *site = (struct site){.text = is_set ? site_command(context, NGINX("-T") "2>/dev/null") : NULL};
    if (is_set && site->text == NULL && geteuid() == 0)
        site->error = refusal(context, NGINX("-t") "2>&1");
    certificate_read(context, public_url, site);
}

const char *site_directive(struct context *context, const char *site, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = site; line != NULL && *line != '\0';) {
        const char *word = line + strspn(line, " \t");
        if (strncmp(word, name, length) == 0 && (word[length] == ' ' || word[length] == '\t')) {
            const char *value = word + length + strspn(word + length, " \t");
            return arena_text_n(context->arena, value, strcspn(value, ";\n"));
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return NULL;
}
