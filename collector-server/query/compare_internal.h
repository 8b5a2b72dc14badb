/* Internal header of the comparison. compare_measure.c adds the rows and their values,
 * compare_stripped.c matches functions without names, and compare_judge.c decides verdicts.
 * compare.c calls them. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COMPARE_INTERNAL_H
#define SJ_COLLECTOR_SERVER_QUERY_COMPARE_INTERNAL_H

#include "collector-server/query/compare.h"

enum sj_compare_measure {
    SJ_MEASURE_CALLS,
    SJ_MEASURE_TOTAL,
    SJ_MEASURE_SELF,
    SJ_MEASURE_TYPICAL, /* self time without disturbances (typical.h) */
    SJ_MEASURE_COST,    /* CPU time or bytes, if the comparison is about CPU time or memory */
    SJ_MEASURES
};

struct sj_compare {
    sj_compare_options options;
    sj_session_set sets[2];
    int64_t lost_calls[2];
    int64_t folded_calls[2];
    bool has_costs[2]; /* a session of the side has SJ_MEASURE_COST */
    size_t samples;    /* number of samples of both sides */
    sj_compare_row *rows;
    double *values;         /* rows x samples x SJ_MEASURES */
    size_t count, capacity; /* of rows */
    size_t judged;          /* number of tested rows, without row 0 */
    uint32_t *slots;        /* hash table of rows: number + 1; 0: free */
    size_t slot_count;
    double *scratch;        /* one value per sample */
    bool has_nameless;      /* functions without names are in builds that only one side has */
    double matched_share;   /* how much of the time of these functions was matched */
    double unmatched_share; /* time of unmatched functions, as share of all time */
};

static inline double *sj_compare_value(const sj_compare *compare, size_t row, size_t sample,
                                       int measure)
{
    return &compare->values[(row * compare->samples + sample) * SJ_MEASURES + (size_t)measure];
}

/* Writes the number of the row with this key and parent to `*number`. Adds the row if it is new.
 * Fails with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_compare_add_row(sj_compare *compare, uint32_t parent, uint64_t key,
                                           uint32_t *number);

/* Adds the rows of a side (0 or 1) and their values. The errors are as for sj_compare_run. */
SJ_MUST_CHECK sj_status sj_compare_measure(sj_compare *compare, sqlite3 *database, int side,
                                           sj_error *error);

/* Writes error_ns of a side to all rows. Fails with SJ_EIO. */
SJ_MUST_CHECK sj_status sj_compare_read_errors(sj_compare *compare, sqlite3 *database, int side,
                                               sj_error *error);

/* Copies the values of one measure of a row, one per sample of a side, to `output`. Returns the
 * number of values. */
size_t sj_compare_copy_values(const sj_compare *compare, size_t row, int side, int measure,
                              double *output);

/* Computes the medians and call counts of a row from its values. */
void sj_compare_summarize(sj_compare *compare, size_t number);

/* Marks the functions without names that were not matched by code, and sets the shares. The rows
 * must be summarized. Fails with SJ_EIO. */
SJ_MUST_CHECK sj_status sj_compare_match_nameless(sj_compare *compare,
                                                  const sj_compare_side sides[2], sj_error *error);

/* Tests all rows and decides their verdicts. The rows must be summarized, and lost_calls must be
 * known. Fails with SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_compare_judge(sj_compare *compare);

#endif
