/* Compares two sets of sessions: what became slower, and how certain that is.
 *
 * Functions are matched by functions.symbol_key (module file name and function name; code for
 * functions without a name), so that builds can be compared. Call paths are matched by the chain of
 * these keys. Each session of a set is one measurement. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COMPARE_H
#define SJ_COLLECTOR_SERVER_QUERY_COMPARE_H

#include "collector-server/query/session_set.h"
#include "collector-server/query/statistics.h"

typedef enum sj_compare_verdict {
    SJ_COMPARE_SAME,   /* certainly within the least effect */
    SJ_COMPARE_SLOWER, /* certainly, by at least the least effect */
    SJ_COMPARE_FASTER,
    /* Not decided: too few sessions, too much noise, or the sum and the typical time disagree. Or
     * no call ended on one side, or no set has calls. */
    SJ_COMPARE_INCONCLUSIVE,
    SJ_COMPARE_ADDED, /* called in B only, whether calls ended or not; row 0: A has no calls */
    SJ_COMPARE_REMOVED,
    SJ_COMPARE_MINOR,    /* its share of the time is too small to be judged */
    SJ_COMPARE_UNMATCHED /* has no name, and no function of the other side's build has its code */
} sj_compare_verdict;

/* The compared measure. CPU time and memory are those of measured calls of whole sessions, without
 * measured callees (call_paths). */
typedef enum sj_compare_of {
    SJ_COMPARE_TIME, /* self time */
    SJ_COMPARE_CPU,
    SJ_COMPARE_ALLOCATED, /* bytes; SLOWER means more bytes, FASTER fewer */
    SJ_COMPARE_OF
} sj_compare_of;

/* Returns the measure with this name: time, cpu, allocated; SJ_COMPARE_OF: there is none. */
sj_compare_of sj_compare_of_find(const char *name);

/* Returns the name of a verdict on a measure. */
const char *sj_compare_verdict_name(sj_compare_verdict verdict, sj_compare_of of);

typedef struct sj_compare_options {
    sj_compare_of of;
    double least_effect; /* share of a row's own time, or of the whole time for row 0; 0: 0.02 */
    double least_share;  /* minimum share of self time, in A or B, to be judged; 0: 0.005 */
    bool tree;           /* call paths instead of functions */
} sj_compare_options;

/* A side's connection and set; both sides may share a connection. */
typedef struct sj_compare_side {
    sqlite3 *database; /* with Sojourn's tables (sj_query_register); borrowed */
    const char *set;   /* see session_set.h */
} sj_compare_side;

/* How self times were compared. */
typedef enum sj_compare_by {
    SJ_COMPARE_BY_SUM,    /* all self time, including disturbances */
    SJ_COMPARE_BY_TYPICAL /* without calls that took more than twice the median (typical.h) */
} sj_compare_by;

typedef struct sj_compare_test {
    /* B / A, and its interval, which is adjusted like the p-value. 0: unknown, A is 0, or too few
     * sessions for an interval. */
    double ratio, ratio_low, ratio_high;
    double p_value, p_adjusted; /* 1: not tested */
} sj_compare_test;

typedef struct sj_compare_row {
    uint64_t symbol_key;    /* 0 in row 0: the sum of all rows */
    uint32_t parent;        /* row of the caller's path; 0: none. Functions: 0 */
    uint32_t depth;         /* 0: the outermost */
    int64_t function_id[2]; /* in each side's database; 0: not called there */
    uint32_t sessions[2];   /* samples in which its calls ended */
    double calls[2];        /* means over all samples of the side */
    double total_ns[2];     /* medians */
    double self_ns[2];      /* medians; row 0: of all functions together */
    double typical_ns[2];   /* medians of self time without disturbances */
    /* Largest standard error of a sample's time, if calls were counted without a clock, from the
     * share of the function's calls in it. 0: all calls were timed. */
    double error_ns[2];
    double costs[2]; /* medians of the measure, if it is not time */
    double least_calls[2], most_calls[2];
    /* Calls of a session of B divided by calls of a session of A. 0 if a call was lost, if sessions
     * of a side differ, or if a side has fewer than 4. */
    double calls_ratio;
    double compared[2]; /* the medians that the verdict is about: of self_ns, typical_ns or costs */
    /* With fewer sessions per side, no row of this question can be decided. Row 0 is one question,
     * all other rows are another. */
    uint32_t needed_sessions;
    sj_compare_test tests[2]; /* by sj_compare_by */
    sj_compare_by decided_by; /* the test that the verdict comes from */
    bool is_tested;
    bool is_nameless;
    bool is_unmatched; /* without a name, and not found in the other side's build */
    sj_compare_verdict verdict;
} sj_compare_row;

typedef struct sj_compare sj_compare;

/* Reads both sets and judges all rows. Returns SJ_EINVAL or SJ_ENOTFOUND for a set (session_set.h),
 * if the measure was not measured, or if a session has calls but no sums of them. Returns
 * SJ_EUNSUPPORTED for call paths, CPU time or memory of marks; SJ_EIO; SJ_ENOMEM. Blocks on the
 * database. */
SJ_MUST_CHECK sj_status sj_compare_run(const sj_compare_side sides[2],
                                       const sj_compare_options *options, sj_compare **compare,
                                       sj_error *error);
void sj_compare_free(sj_compare *compare); /* NULL is allowed */

/* Borrows the rows: row 0 is the sum, parents precede their children. */
const sj_compare_row *sj_compare_rows(const sj_compare *compare, size_t *count);

/* Returns the number of samples of a side (0: A, 1: B). `*lost_calls` is the number of calls lost
 * in them, which make times inexact. */
size_t sj_compare_samples(const sj_compare *compare, int side, int64_t *lost_calls);

/* Returns the number of calls of a side on folded call paths. Their typical self time is that of
 * their caller and function, whatever the path. */
int64_t sj_compare_folded_calls(const sj_compare *compare, int side);

/* Returns in `*share` how much of the time of functions without names was matched by code, the
 * lower of both sides. Returns false if there are none, or if both sides have the same builds. */
bool sj_compare_matched_share(const sj_compare *compare, double *share);

/* True if functions cannot be compared, because the programs have no symbols: that share is below a
 * half, and unmatched functions take a tenth of all time. */
bool sj_compare_is_stripped(const sj_compare *compare);

#endif
