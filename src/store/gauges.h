/* What the database alone knows of the service's state, for watching; reads only. */
#ifndef STORE_GAUGES_H
#define STORE_GAUGES_H

#include <stdint.h>

#include <imgward/context.h>

#include "store/db.h"

/* A number of something in a state. */
struct gauge {
    const char *state;
    int64_t count;
};

/* Orders that wait or are under way, by status; deliveries by status.  The arrays are the arena's. */
enum iw_error gauges_orders(const struct store *store, struct gauge **gauges, unsigned *count) IW_MUST_USE;
enum iw_error gauges_deliveries(const struct store *store, struct gauge **gauges,
                                unsigned *count) IW_MUST_USE;

/* Bytes that rows name, of "inputs", "results" and "archives".  Reads every such row. */
enum iw_error gauges_store(const struct store *store, struct gauge **gauges, unsigned *count) IW_MUST_USE;

/* Seconds that the oldest delivery that is due has waited; 0: none is due. */
enum iw_error gauges_delivery_oldest(const struct store *store, int64_t now_ms, int64_t *seconds) IW_MUST_USE;

#endif
