/* The web server's configuration as nginx itself reads it; shared by init and doctor. */
#ifndef CTL_SITE_H
#define CTL_SITE_H

#include <imgward/context.h>

/*
 * All that "nginx -T" prints for a configuration file (NULL: nginx's own), the
 * arena's; NULL when there is no nginx here, it
 * cannot be run by this user, or its configuration is broken.
 */
const char *site_read(struct context *context, const char *file);

/* The words behind a directive's first appearance ("server_name a b" gives "a b"), the arena's; NULL: none.
 */
const char *site_directive(struct context *context, const char *site, const char *name);

#endif
