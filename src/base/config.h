/*
 * The configuration: one file, one table (config.c), one struct.
 *
 * The table has section, name, type, default, range, reload behaviour and description of every key. Parser,
 * checker, sample file, manual page and "imgwardctl config" read it. An unknown key, an invalid value or a
 * key that is set twice is an error that names the line. If the file has errors, the current configuration
 * stays in force.
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/context.h"
#include "base/machine.h"

/* A section [plan_NAME]: every limit of an account of this plan.  model/plan.h finds the section of a plan.
 */
struct config_plan {
    int64_t requests_per_minute;
    int64_t in_flight_max;      /* requests that the API serves at the same time */
    int64_t result_retention_s; /* 0: orders.result_retention_s */
    /* Quotas (enum quota); 0 means no limit. */
    int64_t orders_pending;
    int64_t files_pending;
    int64_t promised_bytes;
    int64_t stored_bytes;
    int64_t files_day;
    int64_t texts_day;
    int64_t webhooks;
};

struct config {
    /* [database] */
    const char *database_socket; /* "" to use host and port */
    const char *database_host;
    int64_t database_port;
    const char *database_hosts; /* "" to use socket, or host and port */
    int64_t database_back_s;
    const char *database_name;
    const char *database_user;
    const char *database_password_file; /* "" for none (unix_socket authentication) */
    int64_t database_timeout_s;
    int64_t database_statement_max_s;
    /* [redis] */
    const char *redis_socket; /* "" to use host and port */
    const char *redis_host;
    int64_t redis_port;
    const char *redis_sentinels; /* "" to use socket, or host and port */
    const char *redis_master;    /* the name under which the Sentinels monitor the master */
    const char *redis_password_file;
    int64_t redis_timeout_ms;
    int64_t redis_retry_ms; /* pause between a failure of Redis and the next attempt */
    const char *redis_prefix;
    /* [api] */
    const char *api_socket;
    int64_t api_processes;
    int64_t api_backlog;
    int64_t api_requests_per_process; /* 0 means no limit */
    int64_t api_key_cache_s;          /* 0 means off */
    int64_t api_body_max_bytes;
    const char *api_nginx_file;
    const char *api_public_url;             /* "https://host[:port]", no trailing slash */
    const char *api_database_user;          /* "" for the user of [database] */
    const char *api_database_password_file; /* used only if a database_user is set */
    const char *api_pid_file;               /* "" for none */
    /* [console] */
    bool console_enabled;
    const char *console_socket;
    int64_t console_processes;
    const char *console_database_user;          /* "" for the user of [database] */
    const char *console_database_password_file; /* used only if a database_user is set */
    const char *console_pid_file;
    const char *console_sign_up; /* "closed", "invite" or "open" */
    const char *console_sign_up_plan;
    int64_t console_requests_per_minute;
    int64_t console_in_flight_max;
    int64_t console_session_idle_s;
    int64_t console_session_s;
    int64_t console_reset_s;
    int64_t console_invitation_s;
    int64_t console_invitations_max;
    int64_t console_hash_operations;
    int64_t console_hash_memory_bytes;
    int64_t console_audit_kept_days;
    const char *console_operator_contact;
    bool console_keep_bodies;
    /* [mail] */
    const char *mail_url; /* if "", no mail is sent */
    const char *mail_from;
    const char *mail_user;
    const char *mail_password_file;
    bool mail_tls;
    /* [store] */
    const char *store_driver; /* "local" or "s3" */
    const char *store_s3_endpoint;
    const char *store_s3_public_endpoint; /* "" for store_s3_endpoint */
    const char *store_s3_region;
    const char *store_s3_bucket;
    const char *store_s3_prefix; /* "" or ends with '/' */
    bool store_s3_path_style;
    const char *store_s3_access_key_file;
    const char *store_s3_secret_key_file;
    const char *store_s3_ca_file; /* "" for the system's certificates */
    int64_t store_s3_timeout_s;
    const char *store_s3_events_key_file; /* "" refuses notifications */
    const char *store_path;
    const char *store_signing_keys_file;
    int64_t store_upload_max_bytes;
    int64_t store_free_min_bytes; /* 0 means off */
    int64_t store_upload_url_s;
    int64_t store_download_url_s;
    const char
        *store_cors_origins; /* separated by spaces, "" for none; nginx reads its list from the snippet */
    /* [orders] */
    int64_t orders_pending_s;          /* a pending order fails if it is not confirmed within this time */
    int64_t orders_rows_kept_days;     /* 0 keeps the rows for ever */
    int64_t orders_stuck_s;            /* an order fails if one of its jobs is retried for longer */
    int64_t orders_result_retention_s; /* results are deleted this long after the order's creation */
    struct config_plan plan_free;
    struct config_plan plan_pro;
    struct config_plan plan_enterprise;
    /* [worker] */
    int64_t worker_processes; /* image processes */
    int64_t worker_lease_s;
    int64_t worker_heartbeat_s;
    int64_t worker_sweep_ms;
    int64_t worker_images_per_process;
    int64_t worker_failures_max; /* transient failures before a job fails */
    int64_t worker_deaths_max;   /* the file fails after this many attempts in which the image process died */
    int64_t worker_retry_first_ms;
    int64_t worker_transfers; /* fetches and pushes in parallel */
    bool worker_allow_unsealed;
    const char *worker_database_user;          /* "" for the user of [database] */
    const char *worker_database_password_file; /* used only if a database_user is set */
    const char *worker_pid_file;
    const char *worker_image_program;
    /* [image] */
    int64_t image_pixels_max;
    int64_t image_side_max_px;
    int64_t image_result_times_max;
    int64_t image_result_floor_bytes;
    int64_t image_protect_growth_max_percent;
    int64_t image_timeout_s;
    int64_t image_memory_max_bytes;
    const char *image_weights_file;
    const char *image_watermark_key_file;
    bool image_read_heic; /* these formats are read only by extractions */
    bool image_read_avif;
    bool image_read_tiff;
    bool image_read_gif;
    bool image_read_bmp;
    /* [outgoing] */
    bool outgoing_allow_http;
    const char *outgoing_allow_addresses; /* CIDR blocks, separated by spaces, that are allowed in addition to
                                             public addresses */
    const char *outgoing_refuse_addresses; /* the same for refused blocks; "own" stands for this machine */
    const char *outgoing_allow_ports;      /* "443 8000-8099"; "" for the standard ports of the schemes */
    const char *outgoing_ca_file;          /* "" for the system's certificates */
    int64_t outgoing_server_requests;
    int64_t outgoing_fetch_timeout_s;
    int64_t outgoing_push_timeout_s;
    /* [webhooks] */
    const char *webhooks_secret_key_file;
    int64_t webhooks_timeout_s;
    int64_t webhooks_deliveries_max;
    int64_t webhooks_events_kept_days;
    /* [log] */
    const char *log_level;
    /* [test] */
    int64_t test_clock_offset_s;
};

/*
 * The first types are texts: of any form, or as endpoints_read (endpoint.h), url_read (url.h) or mailbox_read
 * (mailbox.h) reads them. CONFIG_FOLLOWING is an integer that is computed from the machine if the file sets 0
 * or nothing, so programs never see the 0.
 */
enum config_type {
    CONFIG_TEXT,
    CONFIG_ENDPOINTS,
    CONFIG_WEB_URL,
    CONFIG_MAIL_URL,
    CONFIG_MAILBOX,
    CONFIG_INTEGER,
    CONFIG_FOLLOWING,
    CONFIG_BOOLEAN
};

static inline bool config_is_text(enum config_type type)
{
    return type < CONFIG_INTEGER;
}

struct config_key {
    const char *section;
    const char *name;
    enum config_type type;
    size_t offset;
    const char *value_default;
    int64_t minimum;
    int64_t maximum;
    bool is_reloaded;     /* true if SIGHUP applies a new value, false if the key needs a restart */
    const char *sentence; /* meaning and unit */
};

/* Returns the table of keys; *count is the number of keys. */
const struct config_key *config_keys(size_t *count);

/* Sets every key to its default on this machine. Texts are static. */
void config_init(struct config *config);

/*
 * Reads a file; keys that the file does not set get their defaults. Texts are allocated in the arena. If the
 * file has errors, returns CONFIG_INVALID with one detail for each invalid line (field "FILE:LINE") and
 * leaves config unchanged.
 */
enum iw_error config_read(struct context *context, const char *file, struct config *config) IW_MUST_USE;

/*
 * For a reload: copies the values of keys that need a restart from old to fresh, and their texts into arena.
 */
void config_keep_fixed(struct config *fresh, const struct config *old, struct arena *arena);

/*
 * Reads a file for one program: the database user becomes the user of [api], [worker] or [console]. For
 * imgward-console, api_socket, api_processes and api_pid_file also take their values from [console], and
 * CONFIG_INVALID is returned if console.enabled is no.
 */
enum iw_error config_read_api(struct context *context, const char *file, struct config *config) IW_MUST_USE;
enum iw_error config_read_worker(struct context *context, const char *file,
                                 struct config *config) IW_MUST_USE;
enum iw_error config_read_console(struct context *context, const char *file,
                                  struct config *config) IW_MUST_USE;

/* Replaces the 0 of each CONFIG_FOLLOWING key by the value for a machine. */
void config_follow(struct config *config, const struct machine *machine);

/*
 * Reads a secret of one line. CONFIG_INVALID if the file is readable by other users. An empty path gives "".
 */
enum iw_error config_secret(struct context *context, const char *file, const char **secret) IW_MUST_USE;

/* Prints the sample file: every key with its default, commented out. */
void config_print_sample(FILE *file);

/*
 * Returns the path of the file if no option names one: $IMGWARD_CONFIG, or imgward.conf in sysconfdir if the
 * variable is not set.
 */
const char *config_default_path(void);

#endif
