/*
 * Sends one message over SMTP (RFC 5321) with libcurl. Blocks until the server has accepted the message, at
 * most for smtp_timeout_s.
 *
 * The text is UTF-8 and is sent as base 64, so that no server changes it. This module does not depend on the
 * queue or on users.
 */
#ifndef SERVICE_NET_SMTP_H
#define SERVICE_NET_SMTP_H

#include "base/config.h"
#include "base/context.h"

/*
 * A server may take ten minutes to accept a message (RFC 5321, 4.5.3.2.6). If the client ends the session
 * earlier, the message may arrive twice.
 */
enum { smtp_timeout_s = 660 };

struct smtp_mail {
    const char *recipient; /* an address of printable ASCII */
    const char *subject;   /* UTF-8 without control characters */
    const char *text;      /* UTF-8, lines end with a line feed */
    const char *id;        /* the left part of Message-ID; a repeated message has the same id */
};

/* SERVICE_UNAVAILABLE with the reason as its cause; CONFIG_INVALID if the password file cannot be read. */
enum iw_error smtp_send(struct context *context, const struct config *config,
                        const struct smtp_mail *mail) IW_MUST_USE;

/* Connects as if to send a message: greeting, EHLO, and STARTTLS and AUTH as configured. The same errors. */
enum iw_error smtp_try(struct context *context, const struct config *config) IW_MUST_USE;

#endif
