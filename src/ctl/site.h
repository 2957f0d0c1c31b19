/* nginx's configuration as nginx reads it, for init and doctor. */
#ifndef CTL_SITE_H
#define CTL_SITE_H

#include "base/context.h"
#include "base/crypto.h"

/* A certificate must be valid for this many more days; certbot renews 30 days before the end. */
enum { site_certificate_days_least = 14 };

/* The first certificate of the configuration. */
struct site_certificate {
    const char *file; /* NULL if the configuration names no certificate or cannot be read */
    const char *host; /* host of api.public_url, for which the certificate must be valid */
    enum crypto_certificate state;
    int64_t days; /* until the certificate expires */
};

struct site {
    const char *text;  /* output of "nginx -T"; NULL if nginx cannot be run or rejects the configuration */
    const char *error; /* the error that nginx reports, only for root; NULL if there is none */
    struct site_certificate certificate;
};

/*
 * Reads a configuration file ("" for nginx's default) and the certificate into the arena. Only root can read
 * both.
 */
void site_read(struct context *context, const char *file, const char *public_url, struct site *site);

/*
 * Returns the arguments of the first occurrence of a directive ("server_name a b" gives "a b"), in the arena;
 * NULL if there is none.
 */
const char *site_directive(struct context *context, const char *site, const char *name);

/* Returns the output of a shell command, in the arena; NULL if the command fails or prints nothing. */
const char *site_command(struct context *context, const char *command);

#endif
