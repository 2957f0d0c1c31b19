/*
 * The configuration: one file, one table (config.c), one struct.
 *
 * The table has section, name, type, default, range, reload behaviour and description of every
 * key. Parser, checker, sample file, manual page and "imgwardctl config" read it. An unknown
 * key, a bad value or a key that is set twice is an error with its line number. A file with
 * errors leaves the current configuration unchanged.
 */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <imgward/context.h>

#include "base/machine.h"

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
    const char *redis_master;    /* its name at the Sentinels */
    const char *redis_password_file;
    int64_t redis_timeout_ms;
    int64_t redis_retry_ms; /* pause after a failure before Redis is tried again */
    const char *redis_prefix;
    /* [api] */
    const char *api_socket;
    int64_t api_processes;
    int64_t api_backlog;
    int64_t api_requests_per_process; /* 0: no limit */
    int64_t api_key_cache_s;          /* 0: off */
    int64_t api_in_flight_max;
    int64_t api_body_max_bytes;
    const char *api_nginx_file;
    const char *api_public_url;             /* "https://host[:port]", no trailing slash */
    const char *api_database_user;          /* "": that of [database] */
    const char *api_database_password_file; /* valid with a user */
    const char *api_pid_file;               /* "" for none */
    /* [console] */
    bool console_enabled;
    const char *console_socket;
    int64_t console_processes;
    const char *console_database_user;          /* "": that of [database] */
    const char *console_database_password_file; /* valid with a user */
    const char *console_pid_file;
    const char *console_sign_up; /* "closed", "invite" or "open" */
    const char *console_sign_up_plan;
    int64_t console_requests_per_minute;
    int64_t console_session_idle_s;
    int64_t console_session_s;
    int64_t console_reset_s;
    int64_t console_invitation_s;
    int64_t console_invitations_max;
    int64_t console_hash_operations;
    int64_t console_hash_memory_bytes;
    int64_t console_audit_kept_days;
    const char *console_operator_contact;
    /* [mail] */
    const char *mail_url; /* "": no mail is sent */
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
    int64_t store_free_min_bytes; /* 0: off */
    int64_t store_upload_url_s;
    int64_t store_download_url_s;
    const char
        *store_cors_origins; /* separated by spaces, "" for none; nginx reads its list from the snippet */
    /* [orders] */
    int64_t orders_pending_s;      /* a pending order fails when it is not confirmed in this time */
    int64_t orders_rows_kept_days; /* 0: for ever */
    int64_t orders_stuck_s;        /* an order whose job is retried for longer fails */
    int64_t orders_complete_s;     /* files of a complete order are deleted after this time */
    /* [quotas_free] in the order of enum quota; 0: no limit */
    int64_t quotas_free_orders_pending;
    int64_t quotas_free_files_pending;
    int64_t quotas_free_promised_bytes;
    int64_t quotas_free_stored_bytes;
    int64_t quotas_free_files_day;
    int64_t quotas_free_texts_day;
    int64_t quotas_free_webhooks;
    /* [quotas_pro] in the order of enum quota; 0: no limit */
    int64_t quotas_pro_orders_pending;
    int64_t quotas_pro_files_pending;
    int64_t quotas_pro_promised_bytes;
    int64_t quotas_pro_stored_bytes;
    int64_t quotas_pro_files_day;
    int64_t quotas_pro_texts_day;
    int64_t quotas_pro_webhooks;
    /* [quotas_enterprise] in the order of enum quota; 0: no limit */
    int64_t quotas_enterprise_orders_pending;
    int64_t quotas_enterprise_files_pending;
    int64_t quotas_enterprise_promised_bytes;
    int64_t quotas_enterprise_stored_bytes;
    int64_t quotas_enterprise_files_day;
    int64_t quotas_enterprise_texts_day;
    int64_t quotas_enterprise_webhooks;
    /* [worker] */
    int64_t worker_processes; /* image processes */
    int64_t worker_lease_s;
    int64_t worker_heartbeat_s;
    int64_t worker_sweep_ms;
    int64_t worker_images_per_process;
    int64_t worker_failures_max; /* transient failures before a job fails */
    int64_t worker_deaths_max; /* attempts that end with the death of the image process, after which the file
                                  fails */
    int64_t worker_retry_first_ms;
    int64_t worker_transfers; /* fetches and pushes in parallel */
    bool worker_allow_unsealed;
    const char *worker_database_user;          /* "": that of [database] */
    const char *worker_database_password_file; /* valid with a user */
    const char *worker_pid_file;
    const char *worker_image_program;
    /* [image] */
    int64_t image_pixels_max;
    int64_t image_side_max_px;
    int64_t image_result_times_max;
    int64_t image_result_floor_bytes;
    int64_t image_timeout_s;
    int64_t image_memory_max_bytes;
    const char *image_weights_file;
    const char *image_watermark_key_file;
    bool image_read_heic; /* this and the next: by extractions */
    bool image_read_avif;
    bool image_read_tiff;
    bool image_read_gif;
    bool image_read_bmp;
    /* [outgoing] */
    bool outgoing_allow_http;
    const char *outgoing_allow_addresses; /* CIDR blocks, separated by spaces, that are allowed in addition to
                                             public addresses */
    const char *outgoing_refuse_addresses; /* the same for refused ones; "own" is this machine */
    const char *outgoing_allow_ports;      /* "443 8000-8099"; "" for the schemes' own */
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
 * Texts first: of any form, for endpoints_read (endpoint.h), url_read (url.h), and mailbox_read (mailbox.h).
 * CONFIG_FOLLOWING is an integer that is chosen for the machine where the file sets 0 or nothing; programs
 * never read the 0.
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
    bool is_reloaded;     /* true: SIGHUP applies a new value; false: needs a restart */
    const char *sentence; /* meaning and unit */
};

/* The table of keys; *count is its length. */
const struct config_key *config_keys(size_t *count);

/* Sets every key to its default on this machine. Texts are static. */
void config_init(struct config *config);

/*
 * Reads a file; keys that it does not set get their defaults. Texts are allocated in the
 * arena. On errors it returns CONFIG_INVALID with one detail per bad line (field "FILE:LINE")
 * and leaves config unchanged.
 */
enum iw_error config_read(struct context *context, const char *file, struct config *config) IW_MUST_USE;

/* For a reload: keys that need a restart keep the value of old. Their texts are copied into arena. */
void config_keep_fixed(struct config *fresh, const struct config *old, struct arena *arena);

/*
 * Reads a file for a program: the user of the database becomes that of [api], [worker] or [console].  For
 * imgward-console also api_socket, api_processes and api_pid_file become those of [console], and
 * CONFIG_INVALID means as well that console.enabled is no.
 */
enum iw_error config_read_api(struct context *context, const char *file, struct config *config) IW_MUST_USE;
enum iw_error config_read_worker(struct context *context, const char *file,
                                 struct config *config) IW_MUST_USE;
enum iw_error config_read_console(struct context *context, const char *file,
                                  struct config *config) IW_MUST_USE;

/* Replaces each 0 of a CONFIG_FOLLOWING key by the value for a machine. */
void config_follow(struct config *config, const struct machine *machine);

/*
 * Reads a secret of one line. The file must not be readable by other users, else
 * CONFIG_INVALID. An empty path gives "".
 */
enum iw_error config_secret(struct context *context, const char *file, const char **secret) IW_MUST_USE;

/* Prints the sample file: every key with its default, commented out. */
void config_print_sample(FILE *file);

/* Path of the file when no option names one: $IMGWARD_CONFIG, else the one in sysconfdir. */
const char *config_default_path(void);

#endif
