/* Who asks: an account as authentication finds it through one of its keys. */
#ifndef DOMAIN_CALLER_H
#define DOMAIN_CALLER_H

#include <stdbool.h>
#include <stdint.h>

struct caller {
    int64_t id;
    int64_t key_id;
    unsigned requests_per_minute; /* of the plan, or the account's own */
    bool is_suspended;
    int64_t key_expires_ms;   /* 0: never */
    int64_t key_last_used_ms; /* 0: never; as it was when the key was looked up */
};

#endif
