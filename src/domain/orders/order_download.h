/* The download of an order's results (contract 6), for the API and for webhook events. */
#ifndef DOMAIN_ORDERS_ORDER_DOWNLOAD_H
#define DOMAIN_ORDERS_ORDER_DOWNLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "db/orders.h"
#include "domain/domain.h"
#include "model/format.h"
#include "model/order.h"
#include "model/result.h"

/* The results of a complete order, and the one file that a client downloads. */
struct order_download {
    struct order order;
    struct order_result *results;
    size_t result_count;
    const char
        *url; /* presigned: the picture of a single result, the archive of several; NULL means no file */
    const char *name;   /* of that file; valid with url, as the next */
    enum format format; /* FORMAT_ZIP for the archive */
};

/* Finds the results of an order and decides which file is downloaded.  Does not check the order's status. */
enum iw_error order_download_make(struct domain *domain, const struct order *order,
                                  struct order_download *download) IW_MUST_USE;

/*
 * The same for a client's request, with the checks in the contract's order: ORDER_NOT_FOUND,
 * ORDER_TYPE_CANT_DOWNLOAD, ORDER_EXPIRED, ORDER_NOT_COMPLETED, PROCESSED_FILE_NOT_FOUND.
 */
enum iw_error order_download(struct domain *domain, int64_t account_id, int64_t id,
                             struct order_download *download) IW_MUST_USE;

/*
 * The name of an order's archive: the order's name without characters that file systems refuse. In the
 * console many orders have one name, so the time of the creation follows: "beach.jpg + 4
 * 2026-11-28T185203Z.zip". Reads id, name and channel.
 */
const char *order_archive_name(struct arena *arena, const struct order *order);

/* ---- presigned URLs, in the arena ---- */

const char *order_result_url(const struct domain *domain, struct arena *arena, int64_t order_id,
                             const struct order_result *result);

/* NULL if there is no thumbnail, or the order has expired. file NULL: of the order. */
const char *order_thumbnail_url(const struct domain *domain, struct arena *arena, const struct order *order,
                                const struct order_file *file);

#endif
