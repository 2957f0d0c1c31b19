/*
 * The HTTP client: fetches sources, pushes results and webhooks. The only module that includes
 * libcurl. netguard.h checks the address of every connection, after DNS and after every
 * redirect.
 *
 * Many transfers run in parallel on one event loop. Only http and https are allowed; proxies from the
 * environment, credentials, cookies and .netrc are not used. A body over its limit is cut off while it
 * arrives. Only libcurl's URL interface parses URLs, because two parsers that disagree are a security hole.
 */
#ifndef SERVICE_NET_FETCH_H
#define SERVICE_NET_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include <poll.h>

#include "base/config.h"
#include "base/context.h"

enum {
    fetch_url_bytes_max = 2048,
    fetch_headers_max =
        24, /* the service's headers and those of an output target (domain/webhooks/outgoing.h) */
    fetch_descriptors_max = 512,
    fetch_answer_size = 1024,
    fetch_host_size = 256,  /* DNS names have at most 255 bytes */
    fetch_server_size = 264 /* the host and a port */
};

struct fetch;

enum fetch_method { FETCH_GET, FETCH_PUT, FETCH_POST };

/* Outcome of a transfer. */
enum fetch_outcome {
    FETCH_ANSWERED,    /* the status decides; for a 2xx of a GET the whole body arrived */
    FETCH_UNREACHABLE, /* DNS, refused address, connection, TLS, timeout, invalid response: retry later */
    FETCH_REFUSED,     /* refused scheme, too many redirects: do not retry */
    FETCH_TOO_LARGE,   /* the decoded body of a GET exceeds the limit */
    FETCH_STOPPED      /* receive returned false */
};

struct fetch_result {
    enum fetch_outcome outcome;
    long status;                         /* with FETCH_ANSWERED, otherwise 0 */
    bool is_partial;                     /* a 206 with only a part of the file; the body was not read */
    bool is_coded;                       /* the body could not be decoded and was passed on unchanged */
    int64_t body_bytes;                  /* received, decoded */
    int64_t retry_after_s;               /* from the response, 0 if absent */
    const char *reason;                  /* short constant word: "timeout", "address" ... */
    const char *message;                 /* constant clause: "the server took too long" */
    const char *answer;                  /* FETCH_POST: the start of the body; valid in done */
    size_t answer_bytes;                 /* at most fetch_answer_size */
    char redirect_host[fetch_host_size]; /* host of a redirect that was not followed, otherwise "" */
};

/*
 * The status decides as soon as it arrives, even if the body then fails, except for a GET whose body is
 * wanted. A 2xx for a PUT counts only after the whole source was sent.
 *
 * Sources are requested with the identity coding, because pictures are already compressed. libcurl decodes a
 * body in one content coding. A body in several codings, or one that libcurl cannot decode, is requested
 * again and passed on unchanged. A transfer coding other than chunked was not requested and makes the
 * response invalid.
 *
 * A transfer is ended if fewer than 1024 bytes a second arrive over low_speed_s. This applies to a GET from
 * the first byte of the body, and to a PUT until the source is sent. Otherwise only timeout_s limits the
 * transfer.
 */

struct fetch_request {
    enum fetch_method method;
    const char *url;
    const char *headers[fetch_headers_max]; /* "Content-Type: image/png"; a NULL ends the list */
    int source;       /* FETCH_PUT: descriptor of the file to send from its start; else -1 */
    const void *body; /* FETCH_POST: bytes, borrowed until done is called */
    size_t body_bytes;
    int target; /* descriptor that the response body is written to; -1 drops the body */
    /*
     * Receives the body of a 2xx response in place of target; returns false to end the transfer.
     * Other bodies are not read.
     */
    bool (*receive)(void *user, const void *bytes, size_t size);
    int64_t body_max_bytes; /* of the response; 0 keeps none and reads at most 64 KiB */
    int64_t timeout_s;      /* for the whole transfer */
    int64_t low_speed_s;    /* 0 for 15 s */
    unsigned redirects_max;
    void (*done)(void *user, const struct fetch_result *result);
    void *user;
};

/*
 * Returns true if a client may use this URL. It must be absolute, with a host and without userinfo. The
 * scheme must be https, or http with outgoing.allow_http, and the port must be in outgoing.allow_ports. The
 * URL may have at most fetch_url_bytes_max bytes, all ASCII without blanks and control characters (RFC 3986).
 * Otherwise sets *why to a constant clause.
 */
bool fetch_url_is_valid(const char *url, const struct config *config, const char **why);

/* Returns the server of a URL as "host:port" in lower case; "" if the URL is invalid. */
void fetch_server(const char *url, char server[fetch_server_size]);

/*
 * CONFIG_INVALID if a list of addresses or ports in [outgoing] is invalid or outgoing.ca_file
 * cannot be read. The caller owns the result.
 */
enum iw_error fetch_new(struct context *context, const struct config *config,
                        struct fetch **fetch) IW_MUST_USE;

/* Returns false if a setting that fetch_new uses has another value in config. */
bool fetch_is_made_with(const struct fetch *fetch, const struct config *config);

/* Ends every transfer without calling done. */
void fetch_free(struct fetch *fetch);

/* Starts a transfer. Texts are copied; descriptors and body are borrowed until fetch_step calls done. */
enum iw_error fetch_start(struct fetch *fetch, struct context *context,
                          const struct fetch_request *request) IW_MUST_USE;

/* Returns the number of transfers in progress. */
unsigned fetch_count(const struct fetch *fetch);

/* Fills polls with at most room entries and returns their number. */
unsigned fetch_poll(const struct fetch *fetch, struct pollfd *polls, unsigned room);

/*
 * Returns the milliseconds until fetch_step must be called even without events, or -1 if it need not be
 * called.
 */
int fetch_wait_ms(const struct fetch *fetch);

/* Processes the events of a poll and calls done for ended transfers. */
void fetch_step(struct fetch *fetch, const struct pollfd *polls, unsigned count);

/*
 * Returns a URL as its server sees it, in the arena: scheme and host in lower case, numeric hosts as
 * addresses, dot segments resolved, without a default port, an empty query and a fragment. A URL that cannot
 * be parsed is returned unchanged.
 */
const char *fetch_url_normal(struct arena *arena, const char *url);

#endif
