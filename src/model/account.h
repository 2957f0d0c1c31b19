/* Accounts and API keys: the rows that queries return.  Texts are in the arena. */
#ifndef MODEL_ACCOUNT_H
#define MODEL_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/order.h"
#include "model/quota.h"

enum { plan_name_size = 17 };

/* What an API key may do: bits.  No bit means everything. */
enum key_scope {
    KEY_SCOPE_READ = 1,
    KEY_SCOPE_ANTI_AI = 2, /* this and the next two in the order of enum order_type */
    KEY_SCOPE_WATERMARK_EMBED = 4,
    KEY_SCOPE_WATERMARK_EXTRACT = 8,
    KEY_SCOPE_WEBHOOKS = 16,
    KEY_SCOPE_UNKNOWN = 32 /* no route needs it; not counted */
};
enum { key_scope_count = 5 };

/* The scope for orders of a type. */
enum key_scope key_scope_of(enum order_type type);

/* "read", "antiAi" and so on, as in the database; static text.  index: of the bit. */
const char *key_scope_name(unsigned index);

/* The names of bits with a separator between them; NULL without a bit. */
const char *key_scopes_text(struct arena *arena, unsigned scopes, const char *separator);

/* Reads names that are separated by commas, and adds their bits.  False if a name is none of them. */
bool key_scopes_read(const char *names, unsigned *scopes);

/* The account that authentication found through an API key or a session.  key_*: 0 with a session. */
struct account {
    int64_t id;
    int64_t key_id;
    enum order_channel channel;   /* of the orders that it makes */
    unsigned requests_per_minute; /* the account's own rate; 0: the plan's (plan_rate) */
    unsigned in_flight_max;       /* requests in progress; 0 means the plan's */
    bool is_suspended;
    unsigned key_scopes;      /* bits of enum key_scope; 0 means everything */
    int64_t key_expires_ms;   /* 0 means never */
    int64_t key_revoked_ms;   /* 0 means never; a revoked key authenticates no request */
    int64_t key_last_used_ms; /* 0 means never; before this request */
    char plan[plan_name_size];
    struct quota_numbers quotas; /* the account's own limits; quota_of_plan: the plan's */
    struct quota_numbers
        used; /* when the key was read; with the reserve, without webhooks; see quotas_used */
};

enum account_status { ACCOUNT_ACTIVE, ACCOUNT_SUSPENDED, ACCOUNT_STATUS_COUNT };

/* "active", "suspended", as in the database; static text. */
const char *account_status_name(enum account_status status);

/* False if the word is none of them. */
bool account_status_read(const char *name, enum account_status *status);

/* An account as an operator sees it. */
struct account_row {
    int64_t id;
    const char *name;
    const char *plan;
    enum account_status status;
    int64_t requests_per_minute; /* the account's own rate; 0: the plan's (plan_rate) */
    int64_t created_at_ms;
    int64_t key_count;           /* neither revoked nor expired */
    int64_t user_count;          /* of the console */
    struct quota_numbers quotas; /* the account's own limits; quota_of_plan: the plan's */
};

/* An API key as an operator sees it. */
struct account_key {
    int64_t id;
    int64_t account_id;
    const char *account;
    const char *name;
    const char *prefix;
    unsigned scopes; /* bits of enum key_scope; 0 means everything */
    int64_t created_at_ms;
    int64_t expires_at_ms;   /* 0 means never */
    int64_t revoked_at_ms;   /* 0 if not revoked */
    int64_t last_used_at_ms; /* 0 means never */
    int64_t user_id;         /* who made it; 0: the operator, or unknown */
    const char *user_email;  /* of that user at that time; NULL with user_id 0 */
};

#endif
