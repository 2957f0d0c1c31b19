/*
 * The passwords that guessing programs try first: data/common-passwords.txt has the 10,000 commonest
 * passwords of published leaks (NIST SP 800-63B, 5.1.1.2, requires such a comparison). The list is compiled
 * in.
 */
#ifndef SERVICE_SECRET_COMMON_PASSWORD_H
#define SERVICE_SECRET_COMMON_PASSWORD_H

#include <stdbool.h>

#include "base/arena.h"

/*
 * Returns true if the password is one of the list, without regard to case, or such a password followed by
 * another one or by digits, or one repeated character.
 */
bool common_password_is(struct arena *arena, const char *password);

#endif
