/* Internal to the comparison: compare_rows.c holds the rows, compare_measure.c fills their values,
 * compare_judge.c decides on them; compare.c runs all three. */
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
    size_t judged;   /* rows but the first that were tested */
    uint32_t *slots; /* hash table of rows: number + 1 */
    size_t slot_count;
    double *scratch;        /* one value a sample */
    bool has_nameless;      /* functions without names, of builds that one side has only */
    double matched_share;   /* of their time */
    double unmatched_share; /* of the time of everything */
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

/* sj_compare_copy_values copies one measure of a row, of one side, to `output`, which has a place
 * for each sample. Returns how many there are. */
size_t sj_compare_copy_values(const sj_compare *compare, size_t row, int side, int measure,
                              double *output);

/* sj_compare_summarize fills in the medians and call counts of a row, from its values. */
void sj_compare_summarize(sj_compare *compare, size_t number);

/* sj_compare_match_nameless finds out which functions without names were not matched because the
 * sides are of other builds. The rows are summarized. SJ_EIO. */
SJ_MUST_CHECK sj_status sj_compare_match_nameless(sj_compare *compare,
                                                  const sj_compare_side sides[2], sj_error *error);

/* sj_compare_judge tests all rows and fills in what depends on that. They are summarized, and the
 * lost calls of both sides are known. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_compare_judge(sj_compare *compare);

#endif
