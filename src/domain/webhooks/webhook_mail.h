/* The mail to the owners of an account whose webhook was deactivated. */
#ifndef DOMAIN_WEBHOOKS_WEBHOOK_MAIL_H
#define DOMAIN_WEBHOOKS_WEBHOOK_MAIL_H

#include <stdint.h>

#include "domain/domain.h"

/* reason: "receiver_gone" or "receiver_failing".  No effect without a mail server. */
enum iw_error webhook_deactivated_mail(const struct domain *domain, int64_t account_id, int64_t id,
                                       const char *reason) IW_MUST_USE;

#endif
