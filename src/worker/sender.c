#include "worker/sender.h"

#include "base/clock.h"
#include "base/log.h"

enum iw_error sender_open(struct sender *sender, struct context *context, const struct config *config)
{
    *sender = (struct sender){.config = config};
    return fetch_new(context, config, &sender->fetch);
}

void sender_close(struct sender *sender)
{
    fetch_free(sender->fetch);
    sender->fetch = NULL;
}

void sender_reload(struct sender *sender)
{
    sender->is_stale = !fetch_is_made_with(sender->fetch, sender->config);
}

unsigned sender_room(const struct sender *sender, unsigned busy, unsigned most)
{
    return sender->is_stale || busy >= most ? 0 : most - busy;
}

enum iw_error sender_send(struct sender *sender, struct context *context, const struct fetch_request *request)
{
    return fetch_start(sender->fetch, context, request);
}

unsigned sender_poll(const struct sender *sender, struct pollfd *polls, unsigned room)
{
    return fetch_poll(sender->fetch, polls, room);
}

int64_t sender_next_ms(const struct sender *sender)
{
    int wait_ms = fetch_wait_ms(sender->fetch);
    return wait_ms < 0 ? INT64_MAX : clock_monotonic_ms() + wait_ms;
}

/* If the new sender cannot be made, the old one stays in use. */
bool sender_step(struct sender *sender, struct context *context, const struct pollfd *polls, unsigned count)
{
    struct fetch *fresh;
    fetch_step(sender->fetch, polls, count);
    if (!sender->is_stale || fetch_count(sender->fetch) > 0)
        return false;
    sender->is_stale = false;
    if (fetch_new(context, sender->config, &fresh) != IW_OK) {
        log_failure(context, "reload_refused");
        context_clear(context);
        return true;
    }
    fetch_free(sender->fetch);
    sender->fetch = fresh;
    return true;
}
