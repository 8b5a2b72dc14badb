/* Internal to the comparison: compare_rows.c holds the rows, compare_measure.c fills their values,
 * compare.c decides on them. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COMPARE_INTERNAL_H
#define SJ_COLLECTOR_SERVER_QUERY_COMPARE_INTERNAL_H

#include "collector-server/query/compare.h"

enum sj_compare_measure {
    SJ_MEASURE_CALLS,
    SJ_MEASURE_TOTAL,
    SJ_MEASURE_SELF,
    SJ_MEASURE_TYPICAL, /* self time without disturbances; see typical.h */
    SJ_MEASURE_COST,    /* what is compared, when that is not time */
    SJ_MEASURES
};

struct sj_compare {
    sj_compare_options options;
    sj_session_set sets[2];
    int64_t lost_calls[2];
    int64_t folded_calls[2];
    bool has_costs[2]; /* some session of the side has some */
    size_t samples;    /* of both sides */
    sj_compare_row *rows;
    double *values; /* rows x samples x SJ_MEASURES */
    size_t count, capacity;
    uint32_t *slots; /* hash table of rows: number + 1 */
    size_t slot_count;
    double *scratch; /* one value a sample */
};

static inline double *sj_compare_value(const sj_compare *compare, size_t row, size_t sample,
                                       int measure)
{
    return &compare->values[(row * compare->samples + sample) * SJ_MEASURES + (size_t)measure];
}

/* sj_compare_add_row finds or makes the row of a key below a parent. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_compare_add_row(sj_compare *compare, uint32_t parent, uint64_t key,
                                           uint32_t *number);

/* sj_compare_measure fills in the samples of side 0 or 1. Errors as sj_compare_run. */
SJ_MUST_CHECK sj_status sj_compare_measure(sj_compare *compare, sqlite3 *database, int side,
                                           sj_error *error);

/* sj_compare_read_errors fills in the error_ns of the rows of a side. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_compare_read_errors(sj_compare *compare, sqlite3 *database, int side,
                                               sj_error *error);

#endif
