/* nginx's configuration as nginx reads it, for init and doctor. */
#ifndef CTL_SITE_H
#define CTL_SITE_H

#include "base/context.h"
#include "base/crypto.h"

/* A certificate must be valid for so many days more: certbot renews 30 days before the end. */
enum { site_certificate_days_least = 14 };

/* The first certificate of the configuration. */
struct site_certificate {
    const char *file; /* NULL: the configuration names none, or cannot be read */
    const char *host; /* host of api.public_url, for which it must be valid */
    enum crypto_certificate state;
    int64_t days; /* until it expires */
};

struct site {
    const char *text;  /* output of "nginx -T"; NULL when nginx cannot be run or refuses its configuration */
    const char *error; /* the refusal, for root only; NULL when there is none */
    struct site_certificate certificate;
};

/*
 * Reads a configuration file ("": nginx's default) and its certificate, into the arena. Only root can
 * read both.
 */
void site_read(struct context *context, const char *file, const char *public_url, struct site *site);

/*
 * Arguments of the first occurrence of a directive ("server_name a b" gives "a b"), in the
 * arena; NULL when there is none.
 */
const char *site_directive(struct context *context, const char *site, const char *name);

/* Output of a command of the shell, in the arena; NULL when it fails or prints nothing. */
const char *site_command(struct context *context, const char *command);

#endif
