/* Accounts and API keys: the rows that queries return.  Texts are in the arena. */
#ifndef MODEL_ACCOUNT_H
#define MODEL_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "model/order.h"
#include "model/quota.h"

enum { plan_name_size = 17 };

/* The account that authentication found through an API key or a session.  key_*: 0 with a session. */
struct account {
    int64_t id;
    int64_t key_id;
    enum order_channel channel;   /* of the orders that it makes */
    unsigned requests_per_minute; /* the account's own rate; 0: the plan's (plan_rate) */
    unsigned in_flight_max;       /* requests in progress; 0 means the plan's */
    bool is_suspended;
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
    int64_t created_at_ms;
    int64_t expires_at_ms;   /* 0 means never */
    int64_t revoked_at_ms;   /* 0 if not revoked */
    int64_t last_used_at_ms; /* 0 means never */
    int64_t user_id;         /* who made it; 0: the operator, or unknown */
    const char *user_email;  /* of that user at that time; NULL with user_id 0 */
};

#endif
