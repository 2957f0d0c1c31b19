#include "ctl/remaining.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "db/users.h"

/* The site of nginx.  The Debian package installs it there; make install leaves it in IW_NGINXDIR. */
#define SITE_FILE "/etc/nginx/sites-available/imgward"

enum { line_bytes = 512 };

/* The units in the order of systemctl's output. */
enum unit { UNIT_API, UNIT_WORKER, UNIT_CONSOLE, UNIT_NGINX, UNIT_COUNT };

static const char *const unit_names[] = {"imgward-api", "imgward-worker", "imgward-console", "nginx"};

struct remaining {
    struct ctl *ctl;
    const struct config *config;
    const struct db *db;
    const struct site *site;
    const char *units[UNIT_COUNT]; /* properties of each unit, one per line */
    char line[line_bytes];         /* empty if nothing remains */
};

__attribute__((format(printf, 2, 3))) static void say(struct remaining *remaining, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(remaining->line, sizeof remaining->line, format, arguments);
    va_end(arguments);
}

/* systemctl separates units by an empty line. Returns false if systemd does not run here. */
static bool units_read(struct remaining *remaining)
{
    struct arena *arena = remaining->ctl->context->arena;
    const char *text =
        site_command(remaining->ctl->context,
                     "systemctl show -p LoadState,ActiveState,UnitFileState,ExecStart imgward-api "
                     "imgward-worker imgward-console nginx 2>/dev/null");
    for (int i = 0; i < UNIT_COUNT; i++) {
        const char *end = text != NULL ? strstr(text, "\n\n") : NULL;
        if (text == NULL || (end == NULL && i + 1 < UNIT_COUNT))
            return false;
        remaining->units[i] = end != NULL ? arena_text_n(arena, text, (size_t)(end - text)) : text;
        text = end != NULL ? end + 2 : NULL;
    }
    return true;
}

static bool unit_is(const struct remaining *remaining, enum unit unit, const char *property)
{
    return strstr(remaining->units[unit], property) != NULL;
}

/* Adds the names of the units that have a property; adds nothing if there is none. */
static const char *units_with(const struct remaining *remaining, const char *property, bool has_property)
{
    const char *names = "";
    for (int i = 0; i < UNIT_COUNT; i++) {
        bool is_needed = i != UNIT_CONSOLE || remaining->config->console_enabled;
        if (is_needed && unit_is(remaining, (enum unit)i, "LoadState=loaded") &&
            unit_is(remaining, (enum unit)i, property) == has_property)
            names = arena_printf(remaining->ctl->context->arena, "%s %s", names, unit_names[i]);
    }
    return names;
}

/* ---- one function a line ---- */

static void name_of_service(struct remaining *remaining)
{
    if (strstr(remaining->config->api_public_url, "://localhost") != NULL)
        say(remaining, "set public_url = https://YOUR-NAME in [api] of %s", remaining->ctl->config_path);
}

static void site_of_nginx(struct remaining *remaining)
{
    const char *site = remaining->site->text;
    if (site == NULL && remaining->site->error != NULL)
        say(remaining, "nginx does not accept its configuration: %s", remaining->site->error);
    else if (site != NULL && strstr(site, "upstream imgward_api") == NULL)
        say(remaining, "echo 'include " IW_NGINXDIR "/http.con[f];' >/etc/nginx/conf.d/imgward.conf && "
                       "systemctl restart nginx");
    else if (site != NULL && strstr(site, "location ^~ /api/v2/") == NULL)
        say(remaining,
            "%sset name and certificate in " SITE_FILE ", then ln -s ../sites-available/imgward "
            "/etc/nginx/sites-enabled/ && systemctl restart nginx",
            access(SITE_FILE, F_OK) == 0 ? "" : "cp " IW_NGINXDIR "/site.conf " SITE_FILE ", ");
    else if (site != NULL && strstr(site, "server_name imgward.example;") != NULL)
        say(remaining, "set server_name and certificate of nginx's site; it still has imgward.example");
}

static void certificate(struct remaining *remaining)
{
    const struct site_certificate *found = &remaining->site->certificate;
    if (found->file == NULL)
        return;
    if (found->state == CRYPTO_CERTIFICATE_UNREADABLE)
        say(remaining, "replace %s: it cannot be read as a certificate", found->file);
    else if (found->state == CRYPTO_CERTIFICATE_OTHER_NAME)
        say(remaining, "replace %s, or set api.public_url: the certificate is not for %s", found->file,
            found->host);
    else if (found->days < site_certificate_days_least)
        say(remaining, "renew %s: it expires in %" PRId64 " days", found->file, found->days);
}

static void user_of_console(struct remaining *remaining)
{
    struct user *users = NULL;
    size_t count = 0;
    int64_t total = 0;
    const struct users_page one = {.limit = 1};
    if (!remaining->config->console_enabled || remaining->db->connection == NULL)
        return;
    if (users_page(remaining->db, &one, &users, &count, &total) != IW_OK)
        context_clear(remaining->ctl->context);
    else if (total == 0)
        say(remaining, "imgwardctl init --user EMAIL creates the first user of the console");
}

static void services_start(struct remaining *remaining)
{
    const char *names = units_with(remaining, "ActiveState=active", false);
    if (names[0] != '\0')
        say(remaining, "systemctl enable --now%s", names);
}

static void services_enable(struct remaining *remaining)
{
    const char *names = units_with(remaining, "ActiveState=active\nUnitFileState=disabled", true);
    if (names[0] != '\0')
        say(remaining, "systemctl enable%s: not started at boot", names);
}

static void (*const lines[])(struct remaining *remaining) = {
    name_of_service, site_of_nginx, certificate, user_of_console, services_start, services_enable};

unsigned remaining_print(struct ctl *ctl, const struct config *config, const struct db *db,
                         const struct site *site, bool *is_installed)
{
    struct remaining remaining = {.ctl = ctl, .config = config, .db = db, .site = site};
    unsigned count = 0;
    *is_installed =
        units_read(&remaining) &&
        unit_is(&remaining, UNIT_API, arena_printf(ctl->context->arena, " -c %s ", ctl->config_path));
    for (size_t i = 0; *is_installed && i < sizeof lines / sizeof lines[0]; i++) {
        remaining.line[0] = '\0';
        lines[i](&remaining);
        if (remaining.line[0] == '\0')
            continue;
        printf("%s  %s\n", count++ == 0 ? "left to do:\n" : "", remaining.line);
    }
    return count;
}
