/* Users of the console: the rows that queries return.  Texts are in the arena. */
#ifndef MODEL_USER_H
#define MODEL_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/account.h"

enum user_role { USER_OWNER, USER_MEMBER, USER_ROLE_COUNT };
enum user_language { USER_ENGLISH, USER_KOREAN, USER_LANGUAGE_COUNT };

/* What a token permits, once. */
enum token_purpose { TOKEN_VERIFY, TOKEN_RESET, TOKEN_CHALLENGE, TOKEN_PURPOSE_COUNT };

/* "owner", "member"; "en", "ko"; "verify", "reset", "challenge", as in the database; static text. */
const char *user_role_name(enum user_role role);
const char *user_language_name(enum user_language language);
const char *token_purpose_name(enum token_purpose purpose);

/* False if the word is none of them. */
bool user_role_read(const char *name, enum user_role *role);
bool user_language_read(const char *name, enum user_language *language);

struct user {
    int64_t id;
    enum user_role role;
    const char *email; /* in lower case */
    const char *name;
    enum user_language language;
    const char *password_hash;  /* NULL if none is set */
    const uint8_t *totp_sealed; /* NULL if there is no secret */
    size_t totp_sealed_size;
    int64_t totp_enabled_ms; /* 0 means no second factor */
    int64_t totp_step;       /* of the last accepted code */
    bool is_admin;
    bool is_disabled;
    int64_t email_verified_ms; /* 0 if not verified */
    int64_t created_ms;
    int64_t last_sign_in_ms; /* 0 means never */
    const char *account_name;
    struct account account; /* channel, rate and in_flight_max are those of the API */
};

/* A session in a list. */
struct user_session {
    int64_t id;
    int64_t user_id;
    const char *address;
    const char *user_agent;
    int64_t created_ms;
    int64_t seen_ms;
    int64_t expires_ms;
};

struct invitation {
    int64_t id;
    int64_t account_id;
    const char *account_name;
    const char *email;
    enum user_role role;
    int64_t created_ms;
    int64_t expires_ms;
};

/* A security event in a list. */
struct audit_event {
    int64_t id;
    int64_t at_ms;
    const char *event;
    int64_t user_id; /* 0 if unknown, or the operator at the command line */
    const char *user_name;
    const char *user_email; /* NULL: an event of before this column */
    const char *address;
    const char *details; /* lines of name, tab and value */
};

#endif
