/* The texts of mails, by kind and language. */
#ifndef DOMAIN_PEOPLE_MAIL_TEXT_H
#define DOMAIN_PEOPLE_MAIL_TEXT_H

#include "domain/people/mail.h"

/* The subject and the text of a mail; the arena's. */
void mail_text(struct arena *arena, const struct mail *mail, const char **subject, const char **text);

#endif
