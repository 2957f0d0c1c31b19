/*
 * Text that a person types or pastes: one form of what looks the same.
 *
 * Keyboards, input methods and other systems write one text in several forms.  The forms are those of RFC
 * 8265 (PRECIS) for user names and passwords.
 */
#ifndef SERVICE_SECRET_TYPED_H
#define SERVICE_SECRET_TYPED_H

#include "base/arena.h"

/*
 * A password in the form that is hashed: each kind of blank is U+0020, then NFC (RFC 8265, 4.2.2).  Text that
 * is not UTF-8 is unchanged.
 */
const char *typed_password(struct arena *arena, const char *text);

/*
 * An address or a code: compatible characters such as fullwidth ones become plain ones (NFKC).  The
 * ideographic full stop becomes a point, each dash "-".  Invisible characters and the blanks around the text
 * are removed.  Text that is not UTF-8 is unchanged.
 */
const char *typed_word(struct arena *arena, const char *text);

#endif
