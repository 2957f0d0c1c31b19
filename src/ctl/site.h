/* nginx's configuration as nginx reads it, for init and doctor. */
#ifndef CTL_SITE_H
#define CTL_SITE_H

#include <imgward/context.h>

/*
 * Output of "nginx -T" for a configuration file (NULL: nginx's default), in the arena. NULL
 * when nginx is not installed, this user may not run it, or its configuration is invalid.
 */
const char *site_read(struct context *context, const char *file);

/*
 * Arguments of the first occurrence of a directive ("server_name a b" gives "a b"), in the
 * arena; NULL when there is none.
 */
const char *site_directive(struct context *context, const char *site, const char *name);

#endif
