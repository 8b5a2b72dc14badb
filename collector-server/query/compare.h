/* Compares two sets of sessions, A and B: which functions or call paths became slower, and how
 * certain that is.
 *
 * Functions are matched by functions.symbol_key, so that builds can be compared. The key is made of
 * the module's file name and the function's name, or of the code of a function without a name. Call
 * paths are matched by the chain of these keys. Each sample of a set is one measurement: a session,
 * or the time of a mark in it. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COMPARE_H
#define SJ_COLLECTOR_SERVER_QUERY_COMPARE_H

#include "collector-server/query/session_set.h"
#include "collector-server/query/statistics.h"

typedef enum sj_compare_verdict {
    SJ_COMPARE_SAME,   /* certainly a change of less than least_effect */
    SJ_COMPARE_SLOWER, /* certainly slower, by least_effect or more */
    SJ_COMPARE_FASTER,
    /* too few sessions; too much noise; the tests disagree; no call ended on one side; neither set
     * has calls; or the difference is below twice the error of estimated times */
    SJ_COMPARE_INCONCLUSIVE,
    SJ_COMPARE_ADDED,   /* called in B only; row 0: A has no calls */
    SJ_COMPARE_REMOVED, /* called in A only; row 0: B has no calls */
    /* not judged: no call ended, or the share is below least_share on both sides */
    SJ_COMPARE_MINOR,
    SJ_COMPARE_UNMATCHED /* has no name, and no function of the other side's build has its code */
} sj_compare_verdict;

/* The compared measure. CPU time and memory are of measured calls, without their measured
 * callees. */
typedef enum sj_compare_of {
    SJ_COMPARE_TIME, /* self time */
    SJ_COMPARE_CPU,
    SJ_COMPARE_ALLOCATED, /* bytes; SLOWER means more bytes, FASTER fewer */
    SJ_COMPARE_OF
} sj_compare_of;

/* Returns the measure with this name: "time", "cpu" or "allocated". Returns SJ_COMPARE_OF if there
 * is none. */
sj_compare_of sj_compare_of_find(const char *name);

/* Returns the name of a verdict, for example "slower", or "more" for memory. */
const char *sj_compare_verdict_name(sj_compare_verdict verdict, sj_compare_of of);

typedef struct sj_compare_options {
    sj_compare_of of;
    /* smallest change of interest, as share of the row's time, CPU time or bytes; 0 means 0.02 */
    double least_effect;
    /* rows with a smaller share of all self time, CPU time or bytes are not judged; 0 means 0.005
     */
    double least_share;
    bool tree; /* rows are call paths instead of functions */
} sj_compare_options;

/* One side of a comparison. Both sides may share a connection. */
typedef struct sj_compare_side {
    sqlite3 *database; /* with Sojourn's tables (sj_query_register); borrowed */
    const char *set;   /* see session_set.h */
} sj_compare_side;

/* The tests of a row. */
typedef enum sj_compare_by {
    SJ_COMPARE_BY_SUM,    /* all self time, including disturbances */
    SJ_COMPARE_BY_TYPICAL /* without calls that took more than twice the median (typical.h) */
} sj_compare_by;

typedef struct sj_compare_test {
    /* B / A, and its confidence interval, adjusted like the p-value. All three are 0 if A is 0 or
     * the row was not tested. ratio_low and ratio_high are 0 if there are too few sessions for an
     * interval. */
    double ratio, ratio_low, ratio_high;
    double p_value, p_adjusted; /* 1: not tested. Adjusted: for the number of tested rows */
} sj_compare_test;

typedef struct sj_compare_row {
    uint64_t symbol_key;    /* 0 in row 0: the sum of all rows */
    uint32_t parent;        /* row of the caller's path; 0: a root, or a function */
    uint32_t depth;         /* 0: the outermost */
    int64_t function_id[2]; /* in each side's database; 0: not called there */
    uint32_t sessions[2];   /* number of samples in which calls ended */
    double calls[2];        /* means over all samples of the side */
    double total_ns[2];     /* medians over all samples of the side */
    double self_ns[2];      /* medians over all samples of the side */
    double typical_ns[2];   /* medians of the self time without disturbances */
    /* Largest standard error of a sample's time. 0: all calls were timed. Else calls were counted
     * without a clock, and the error is in proportion to the row's share of the function's
     * calls. */
    double error_ns[2];
    double costs[2];                      /* medians of the measure, if it is not time */
    double least_calls[2], most_calls[2]; /* fewest and most calls of a sample of the side */
    /* Calls per sample of B divided by calls per sample of A. 0 if A has no calls, or a call was
     * lost. Also 0 if the number differs between the samples of a side, or a side has fewer than 4
     * samples. */
    double calls_ratio;
    double compared[2]; /* the medians that the verdict compares: of self_ns, typical_ns or costs */
    /* The fewest sessions per side with which a row can be decided. Row 0 has the number for the
     * sum of all rows. */
    uint32_t needed_sessions;
    sj_compare_test tests[2]; /* by sj_compare_by */
    sj_compare_by decided_by; /* the test that the verdict comes from */
    bool is_tested;
    bool is_nameless;
    bool is_unmatched; /* nameless, and not found in the other side's build */
    sj_compare_verdict verdict;
} sj_compare_row;

typedef struct sj_compare sj_compare;

/* Reads both sets and judges all rows. Blocks on the database. Fails with:
 * - SJ_EINVAL or SJ_ENOTFOUND: a set cannot be read (session_set.h).
 * - SJ_ENOTFOUND: the measure was not measured, or a session has calls, but their sums are missing.
 * - SJ_EUNSUPPORTED: a set has marks, and call paths, CPU time or memory are compared.
 * - SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_compare_run(const sj_compare_side sides[2],
                                       const sj_compare_options *options, sj_compare **compare,
                                       sj_error *error);
void sj_compare_free(sj_compare *compare); /* NULL is allowed */

/* Returns the rows, borrowed. Row 0 is the sum of all; parents precede their children. */
const sj_compare_row *sj_compare_rows(const sj_compare *compare, size_t *count);

/* Returns the number of samples of a side (0: A, 1: B). Writes the number of calls that were lost
 * in their sessions, which make times inexact. */
size_t sj_compare_samples(const sj_compare *compare, int side, int64_t *lost_calls);

/* Returns the number of calls of a side on folded call paths. The typical self time of these calls
 * is known per caller and function only. */
int64_t sj_compare_folded_calls(const sj_compare *compare, int side);

/* Writes to `*share` how much of the time of functions without names was matched by code: the lower
 * share of both sides. Returns false if all functions have names, or if both sides have the same
 * builds. */
bool sj_compare_matched_share(const sj_compare *compare, double *share);

/* True if functions cannot be compared, because the programs have no symbols. Then the share of
 * sj_compare_matched_share is below a half, and unmatched functions take at least a tenth of all
 * time. */
bool sj_compare_is_stripped(const sj_compare *compare);

#endif
