/* The numbers of rows and bytes for /metrics, whatever the tables hold. */
#ifndef DOMAIN_CENSUS_H
#define DOMAIN_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

#include "domain/domain.h"
#include "store/census.h"

enum { census_sums_max = 64 };

/* A census in progress, in a worker's memory. */
struct census {
    enum census_source source;
    int64_t after_id;
    unsigned count;
    struct {
        char kind[20], state[20];
        int64_t number, oldest_ms;
    } sums[census_sums_max];
};

/* Counts one slice of some milliseconds; publishes after the last slice of a source.  is_round: of all
 * sources. */
enum iw_error census_step(struct domain *domain, struct census *census, bool *is_round) IW_MUST_USE;

/*
 * The numbers now; a number above census_live_max is a published one, which is some seconds to minutes old.
 */
enum iw_error census_numbers(struct domain *domain, struct census_rows *rows) IW_MUST_USE;

#endif
