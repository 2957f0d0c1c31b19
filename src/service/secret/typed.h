/*
 * Text that a person types or pastes, in one form for texts that look the same.
 *
 * Keyboards, input methods and systems write the same text in different forms. The forms are those of RFC
 * 8265 (PRECIS) for user names and passwords.
 */
#ifndef SERVICE_SECRET_TYPED_H
#define SERVICE_SECRET_TYPED_H

#include "base/arena.h"

/*
 * Returns a password in the form that is hashed: each kind of blank becomes U+0020, then NFC (RFC 8265,
 * 4.2.2). Text that is not UTF-8 is returned unchanged.
 */
const char *typed_password(struct arena *arena, const char *text);

/*
 * Returns an address or a code in a plain form: compatible characters, such as fullwidth letters, become
 * plain characters (NFKC). The ideographic full stop becomes a point, and each dash "-". Invisible characters
 * and the blanks around the text are removed. Text that is not UTF-8 is returned unchanged.
 */
const char *typed_word(struct arena *arena, const char *text);

#endif
