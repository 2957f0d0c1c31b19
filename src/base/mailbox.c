#include "base/mailbox.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

enum { local_bytes_max = 64 /* RFC 5321, 4.5.3.1.1 */ };

static bool is_word(char byte)
{
    return (byte & 0x80) == 0 && isalnum((unsigned char)byte) != 0;
}

bool mailbox_address_is_sound(const char *address)
{
    static const char marks[] = "!#$%&'*+-/=?^_`{|}~.";
    size_t length = strlen(address);
    const char *at = strrchr(address, '@');
    bool is_sound = length < mailbox_address_size && at != NULL && at > address &&
                    at - address <= local_bytes_max && at[1] != '\0' && at[1] != '.' &&
                    address[length - 1] != '.' && strstr(at, "..") == NULL;
    for (const char *byte = address; is_sound && *byte != '\0'; byte++)
        is_sound = byte == at || is_word(*byte) ||
                   (byte < at ? strchr(marks, *byte) != NULL : *byte == '.' || *byte == '-');
    return is_sound;
}

/* Reads a quoted name, such as "a \"quoted\" name", without the quotation marks. */
static bool quoted_read(const char *text, size_t length, char *name)
{
    if (length < 2 || text[length - 1] != '"')
        return false;
    for (size_t i = 1; i < length - 1; i++) {
        if (text[i] == '"' || (text[i] == '\\' && ++i == length - 1))
            return false;
        *name++ = text[i];
    }
    *name = '\0';
    return true;
}

static bool name_read(const char *text, size_t length, char name[mailbox_name_size])
{
    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (length >= mailbox_name_size || !text_is_utf8(text, length) || text_has_control(text, length))
        return false;
    if (text[0] == '"')
        return quoted_read(text, length, name);
    memcpy(name, text, length);
    name[length] = '\0';
    return strpbrk(name, "()<>[]:;@\\,\"") == NULL; /* specials of RFC 5322, 3.2.3, without the dot */
}

bool mailbox_read(const char *text, struct mailbox *mailbox)
{
    *mailbox = (struct mailbox){.name = ""};
    text += strspn(text, " ");
    const char *open = strrchr(text, '<');
    const char *address = open != NULL ? open + 1 : text;
    size_t length = strlen(address);
    while (length > 0 && address[length - 1] == ' ')
        length--;
    if (open != NULL && (length == 0 || address[--length] != '>'))
        return false;
    if (length >= mailbox_address_size)
        return false;
    memcpy(mailbox->address, address, length);
    mailbox->address[length] = '\0';
    return mailbox_address_is_sound(mailbox->address) &&
           (open == NULL || name_read(text, (size_t)(open - text), mailbox->name));
}
