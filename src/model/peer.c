#include "model/peer.h"

#include <stddef.h>

/*
 * The first row that matches counts.  The transfer retries a partial 206 of a source before it asks here.
 * Webhook deliveries are always retried, by the schedule in delivery.c.
 */
static const struct peer_status rows[] = {
    {200, 201, {PEER_TAKEN, PEER_TAKEN, PEER_TAKEN}, NULL},
    {202, 202, {PEER_RETRIED, PEER_TAKEN, PEER_TAKEN}, "the file is not ready yet"},
    {203, 203, {PEER_TAKEN, PEER_TAKEN, PEER_TAKEN}, NULL},
    {204, 205, {PEER_FINAL, PEER_TAKEN, PEER_TAKEN}, "there is no file in the answer"},
    {206, 299, {PEER_TAKEN, PEER_TAKEN, PEER_TAKEN}, NULL},
    {304, 304, {PEER_FINAL, PEER_FINAL, PEER_RETRIED}, "there is no file in the answer"},
    {300, 399, {PEER_FINAL, PEER_FINAL, PEER_RETRIED}, "the redirect leads to no other URL"},
    {401, 401, {PEER_FINAL, PEER_FINAL, PEER_RETRIED}, "it asks for credentials; give a presigned URL"},
    {403, 403, {PEER_FINAL, PEER_FINAL, PEER_RETRIED}, "access is refused; a presigned URL may have expired"},
    {404, 404, {PEER_FINAL, PEER_FINAL, PEER_RETRIED}, "there is nothing at this URL"},
    {408, 408, {PEER_RETRIED, PEER_RETRIED, PEER_RETRIED}, NULL},
    {410, 410, {PEER_FINAL, PEER_FINAL, PEER_GONE}, "there is no longer anything at this URL"},
    {421, 421, {PEER_RETRIED, PEER_RETRIED, PEER_RETRIED}, NULL},
    {425, 425, {PEER_RETRIED, PEER_RETRIED, PEER_RETRIED}, NULL},
    {429, 429, {PEER_RETRIED, PEER_RETRIED, PEER_RETRIED}, "it takes no more requests at the moment"},
    {400, 499, {PEER_FINAL, PEER_FINAL, PEER_RETRIED}, NULL},
    {500, 599, {PEER_RETRIED, PEER_RETRIED, PEER_RETRIED}, NULL},
};

/* RFC 9110, 15: a status outside 100 to 599 counts as a server error, and so does a final 1xx. */
static const struct peer_status other = {
    0, 0, {PEER_RETRIED, PEER_RETRIED, PEER_RETRIED}, "that is no final status of HTTP"};

const struct peer_status *peer_status(long status)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (status >= rows[i].first && status <= rows[i].last)
            return &rows[i];
    return &other;
}
