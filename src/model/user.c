#include "model/user.h"

#include "model/word.h"

static const char *const role_names[USER_ROLE_COUNT] = {"owner", "member"};
static const char *const language_names[USER_LANGUAGE_COUNT] = {"en", "ko"};
static const char *const purpose_names[TOKEN_PURPOSE_COUNT] = {"verify", "reset", "challenge"};

const char *user_role_name(enum user_role role)
{
    return role_names[role];
}

const char *user_language_name(enum user_language language)
{
    return language_names[language];
}

const char *token_purpose_name(enum token_purpose purpose)
{
    return purpose_names[purpose];
}

bool user_role_read(const char *name, enum user_role *role)
{
    int found = word_find(name, role_names, USER_ROLE_COUNT);
    if (found >= 0)
        *role = (enum user_role)found;
    return found >= 0;
}

bool user_language_read(const char *name, enum user_language *language)
{
    int found = word_find(name, language_names, USER_LANGUAGE_COUNT);
    if (found >= 0)
        *language = (enum user_language)found;
    return found >= 0;
}
