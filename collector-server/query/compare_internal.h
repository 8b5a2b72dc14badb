/* Internal header of the comparison. compare_measure.c adds the rows and fills in their
 * values, compare_judge.c decides their verdicts; compare.c runs both. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COMPARE_INTERNAL_H
#define SJ_COLLECTOR_SERVER_QUERY_COMPARE_INTERNAL_H

#include "collector-server/query/compare.h"

enum sj_compare_measure {
    SJ_MEASURE_CALLS,
    SJ_MEASURE_TOTAL,
    SJ_MEASURE_SELF,
    SJ_MEASURE_TYPICAL, /* self time without disturbances; see typical.h */
    SJ_MEASURE_COST,    /* the measure, if it is not time */
    SJ_MEASURES
};

struct sj_compare {
    sj_compare_options options;
    sj_session_set sets[2];
    int64_t lost_calls[2];
    int64_t folded_calls[2];
    bool has_costs[2]; /* some session of the side has costs */
    size_t samples;    /* of both sides */
    sj_compare_row *rows;
    double *values; /* rows x samples x SJ_MEASURES */
    size_t count, capacity;
    size_t judged;   /* number of tested rows, without row 0 */
    uint32_t *slots; /* hash table of rows: number + 1 */
    size_t slot_count;
    double *scratch;        /* one value per sample */
    bool has_nameless;      /* functions without names, of builds that only one side has */
    double matched_share;   /* matched share of their time */
    double unmatched_share; /* share of the time of all functions */
};

static inline double *sj_compare_value(const sj_compare *compare, size_t row, size_t sample,
                                       int measure)
{
    return &compare->values[(row * compare->samples + sample) * SJ_MEASURES + (size_t)measure];
}

/* Finds or adds the row of a key below a parent. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_compare_add_row(sj_compare *compare, uint32_t parent, uint64_t key,
                                           uint32_t *number);

/* Fills in the samples of side 0 or 1. Errors as sj_compare_run. */
SJ_MUST_CHECK sj_status sj_compare_measure(sj_compare *compare, sqlite3 *database, int side,
                                           sj_error *error);

/* Fills in the error_ns of the rows of a side. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_compare_read_errors(sj_compare *compare, sqlite3 *database, int side,
                                               sj_error *error);

/* Copies one measure of a row, of one side, to `output`, which holds one value per sample. Returns
 * the number of values. */
size_t sj_compare_copy_values(const sj_compare *compare, size_t row, int side, int measure,
                              double *output);

/* Computes the medians and call counts of a row from its values. */
void sj_compare_summarize(sj_compare *compare, size_t number);

/* Marks functions without names that were not matched because the sides have other builds. The rows
 * are summarized. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_compare_match_nameless(sj_compare *compare,
                                                  const sj_compare_side sides[2], sj_error *error);

/* Tests all rows and fills in the results. The rows are summarized, and the lost calls of both
 * sides are known. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_compare_judge(sj_compare *compare);

#endif
