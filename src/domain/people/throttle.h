/*
 * Throttle against guessing, and budgets.
 *
 * Each attempt is counted before the password or code is checked, in one transaction, so that parallel
 * attempts cannot exceed the limit.  The first attempts are free; each further attempt waits twice as long
 * as the last, up to minutes.  A day without an attempt clears a count.  The counts are in the database:
 * they hold on all machines and while Redis is away.
 *
 * An attempt counts three times: by user and network, by network, and by user. The limit of the last count is
 * far higher, so others can hardly make a user wait, and not at all on networks from which the user signed in
 * before. A user is counted by the typed address, so an unknown user gets the same answers.
 */
#ifndef DOMAIN_PEOPLE_THROTTLE_H
#define DOMAIN_PEOPLE_THROTTLE_H

#include "domain/domain.h"

/* What is tried, and by whom. */
struct throttle_try {
    const char *what; /* a word that has separate counts; "": sign-in */
    const char *user_name;
    const char *address;
    bool is_known; /* the user signed in from this network before: the count by user is no obstacle */
};

/* Counts an attempt.  SIGN_IN_LIMITED with retry_after_s: the attempt must not be made. */
enum iw_error throttle_enter(struct domain *domain, const struct throttle_try *attempt) IW_MUST_USE;

/*
 * After a success, or another proof than a sign-in, such as a link of a mail: the counts of the user begin
 * again, and the network's loses this attempt.
 */
enum iw_error throttle_clear(struct domain *domain, const struct throttle_try *attempt) IW_MUST_USE;

/*
 * A proof of a signed-in user is counted only by session, so that the attempts of others never make it wait.
 */
enum iw_error throttle_session_enter(struct domain *domain, int64_t session_id) IW_MUST_USE;
enum iw_error throttle_session_clear(struct domain *domain, int64_t session_id) IW_MUST_USE;

/*
 * Takes one of most units that a name has in a window.  *wait_s is 0, or the seconds until the window ends.
 * The window begins with the first unit and lasts at most a day.
 */
enum iw_error throttle_spend(const struct domain *domain, const char *name, int64_t most, int64_t window_s,
                             unsigned *wait_s) IW_MUST_USE;

/* All units of the name are free again. */
enum iw_error throttle_refund(const struct domain *domain, const char *name) IW_MUST_USE;

/*
 * Returns the part of an address that counts, in the arena: the /64 of an IPv6 address, otherwise the whole
 * address.
 */
const char *throttle_network(struct arena *arena, const char *address);

#endif
