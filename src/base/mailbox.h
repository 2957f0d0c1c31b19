/*
 * Mailboxes of mail: "name@example.com" or "Display name <name@example.com>" (RFC 5322, 3.4).
 */
#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include <stdbool.h>

enum {
    mailbox_address_size = 255, /* RFC 5321, 4.5.3.1.3, with the terminating zero */
    mailbox_name_size = 256
};

struct mailbox {
    char name[mailbox_name_size]; /* UTF-8 without quotation marks; "" if there is none */
    char address[mailbox_address_size];
};

/* True for printable ASCII with one "@" between a local part and a domain. */
bool mailbox_address_is_sound(const char *address);

/* Returns false for any other text, such as a list, a group or a comment. */
bool mailbox_read(const char *text, struct mailbox *mailbox);

#endif
