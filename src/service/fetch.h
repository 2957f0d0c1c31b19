/*
 * What goes out: sources fetched, results and webhooks pushed.  The only file
 * pair that includes libcurl.  Every connection passes netguard.h, on the
 * address really connected to, after DNS and after every redirect.
 *
 * Many transfers run side by side on one event loop and none waits for another.
 * Only http and https; no proxies from the environment, no credentials, no
 * cookies, no .netrc.  A body is cut off while it is read as soon as it passes
 * its limit.  URLs are read by libcurl's URL interface and by nothing else: two
 * parsers that disagree are a hole.
 */
#ifndef SERVICE_FETCH_H
#define SERVICE_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include <poll.h>

#include <imgward/context.h>

#include "base/config.h"

enum {
    fetch_url_bytes_max = 2048,
    fetch_headers_max = 24, /* the service's own and those of an output target (domain/outgoing.h) */
    fetch_descriptors_max = 512,
    fetch_host_size = 256 /* a name of DNS has at most 255 bytes */
};

struct fetch;

enum fetch_method { FETCH_GET, FETCH_PUT, FETCH_POST };

/* How a transfer ended. */
enum fetch_outcome {
    FETCH_ANSWERED,    /* there is a status that decides, and with a 2xx of a GET the whole body */
    FETCH_UNREACHABLE, /* DNS, connection, TLS, time, a broken answer: may go better later */
    FETCH_REFUSED,     /* an address or scheme we do not go to, too many redirects: will not go better */
    FETCH_TOO_LARGE,   /* the body of a GET passed its limit, as sent or decoded */
    FETCH_STOPPED      /* receive wanted no more */
};

struct fetch_result {
    enum fetch_outcome outcome;
    long status;           /* with FETCH_ANSWERED; 0 when there is none */
    bool is_partial;       /* a 206 that is not the whole file; its body was not read */
    bool is_coded;         /* labelled with a content coding that is not known here, and taken as it is */
    int64_t body_bytes;    /* received, not decoded */
    int64_t retry_after_s; /* from the answer, 0 when it said nothing */
    const char *reason;    /* a short constant word: "timeout", "address_refused", "dns" ... */
    const char *message;   /* a constant clause: "the server took too long" */
    char redirect_host[fetch_host_size]; /* of a redirect that was not followed; "" otherwise */
};

/*
 * The status decides as soon as it is there, whatever becomes of the body behind it, save for the body of a
 * GET that is asked for.  Of a PUT a 2xx counts only when all of the source was sent.
 *
 * A body comes decoded (decode.h); sources are asked for the identity coding, for a picture is compressed
 * already.  A transfer coding other than chunked, which nobody asked for, is a broken answer.
 *
 * While bytes are due, fewer than 1024 a second over low_speed_s end the transfer: of a GET from the first
 * byte of the body on, of a PUT until the source is read to its end.  Before the first byte, and while a
 * target thinks about its answer, timeout_s alone counts.
 */

struct fetch_request {
    enum fetch_method method;
    const char *url;
    const char *headers[fetch_headers_max]; /* "Content-Type: image/png"; NULL ends them */
    int source;       /* FETCH_PUT: a descriptor whose bytes are sent from its start; -1 otherwise */
    const void *body; /* FETCH_POST: bytes, borrowed until done */
    size_t body_bytes;
    int target; /* a descriptor the answer's body is written to; -1 drops it */
    /* Instead of target: takes the body of a 2xx answer, false ends the transfer.  Other bodies are not read.
     */
    bool (*receive)(void *user, const void *bytes, size_t size);
    int64_t body_max_bytes; /* of the answer; 0: none is kept and 64 KiB are read at most */
    int64_t timeout_s;      /* for all of it */
    int64_t low_speed_s;    /* 0: 15 s */
    unsigned redirects_max;
    void (*done)(void *user, const struct fetch_result *result);
    void *user;
};

/*
 * True when the text is a URL that a client may give us: absolute, http or https
 * (http only where allow_http), a host, no userinfo, ASCII without blanks and control
 * characters (RFC 3986), at most fetch_url_bytes_max bytes.  why gets a constant
 * sentence otherwise.
 */
bool fetch_url_is_valid(const char *url, bool allow_http, const char **why);

/* CONFIG_INVALID when outgoing.allow_addresses is none, or outgoing.ca_file cannot be read.  The caller owns
 * it. */
enum iw_error fetch_new(struct context *context, const struct config *config,
                        struct fetch **fetch) IW_MUST_USE;

/* False when a setting that fetch_new took from the configuration has another value there. */
bool fetch_is_made_with(const struct fetch *fetch, const struct config *config);

/* Ends every transfer without calling done. */
void fetch_free(struct fetch *fetch);

/* Starts a transfer; texts are copied, descriptors borrowed until done is called from fetch_step. */
enum iw_error fetch_start(struct fetch *fetch, struct context *context,
                          const struct fetch_request *request) IW_MUST_USE;

/* Transfers under way. */
unsigned fetch_count(const struct fetch *fetch);

/* Fills what to poll for, at most room of them, and answers how many. */
unsigned fetch_poll(const struct fetch *fetch, struct pollfd *polls, unsigned room);

/* Milliseconds until fetch_step wants to be called even without events; -1: no need. */
int fetch_wait_ms(const struct fetch *fetch);

/* Moves everything on after a poll; calls done of what ended. */
void fetch_step(struct fetch *fetch, const struct pollfd *polls, unsigned count);

#endif
