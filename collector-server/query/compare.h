/* Two sets of sessions against each other: what got slower, and how sure that is.
 *
 * Functions are matched by functions.symbol_key (module file name and name; code where there is no
 * name), so that builds can be compared; call paths by the chain of such keys. Each session of a
 * set is one measurement. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_COMPARE_H
#define SJ_COLLECTOR_SERVER_QUERY_COMPARE_H

#include "collector-server/query/session_set.h"
#include "collector-server/query/statistics.h"

typedef enum sj_compare_verdict {
    SJ_COMPARE_SAME,   /* sure to lie within the least effect */
    SJ_COMPARE_SLOWER, /* sure, and by at least the least effect */
    SJ_COMPARE_FASTER,
    SJ_COMPARE_INCONCLUSIVE, /* too few sessions or too much noise to decide, the sum and the
                           typical time do not agree, no call ended on one side, or no set has calls
                         */
    SJ_COMPARE_ADDED,        /* called in B only, whether calls ended or not; of row 0: A has no
                                calls */
    SJ_COMPARE_REMOVED,
    SJ_COMPARE_MINOR,    /* takes too small a share of the time to be judged */
    SJ_COMPARE_UNMATCHED /* has no name, and no function of the other side's build has its code */
} sj_compare_verdict;

/* What is compared; of CPU time and memory, that of measured calls of whole sessions, each without
 * measured calls below (call_paths). */
typedef enum sj_compare_of {
    SJ_COMPARE_TIME, /* self time */
    SJ_COMPARE_CPU,
    SJ_COMPARE_ALLOCATED, /* bytes; SLOWER is more of them, FASTER is less */
    SJ_COMPARE_OF
} sj_compare_of;

/* sj_compare_of_find finds one by its name: time, cpu, allocated; SJ_COMPARE_OF: there is none. */
sj_compare_of sj_compare_of_find(const char *name);

/* sj_compare_verdict_name names a verdict on what was compared. */
const char *sj_compare_verdict_name(sj_compare_verdict verdict, sj_compare_of of);

typedef struct sj_compare_options {
    sj_compare_of of;
    double least_effect; /* of a row's own time, or of the whole for the first row; 0: 0.02 */
    double least_share;  /* of self time, in A or B, to be judged; 0: 0.005 */
    bool tree;           /* call paths instead of functions */
} sj_compare_options;

/* A side's own connection and set; both sides may share a connection. */
typedef struct sj_compare_side {
    sqlite3 *database; /* with Sojourn's tables (sj_query_register); borrowed */
    const char *set;   /* see session_set.h */
} sj_compare_side;

/* How self times were compared. */
typedef enum sj_compare_by {
    SJ_COMPARE_BY_SUM,    /* all of it, disturbances included */
    SJ_COMPARE_BY_TYPICAL /* without the calls that took more than twice the median (typical.h) */
} sj_compare_by;

typedef struct sj_compare_test {
    double ratio, ratio_low, ratio_high; /* B / A, and its interval, which is adjusted as the
                                          * p-value is; 0: unknown, A is 0, or too few sessions for
                                          * an interval */
    double p_value, p_adjusted;          /* 1: not tested */
} sj_compare_test;

typedef struct sj_compare_row {
    uint64_t symbol_key;    /* 0 in row 0: everything together */
    uint32_t parent;        /* row of the caller's path; 0: none. Functions: 0 */
    uint32_t depth;         /* 0 for the outermost */
    int64_t function_id[2]; /* in each side's database; 0: not called there */
    uint32_t sessions[2];   /* samples in which calls of it ended */
    double calls[2];        /* means over all samples of the side */
    double total_ns[2];     /* medians */
    double self_ns[2];      /* medians; row 0: of all functions together */
    double typical_ns[2];   /* medians of self time without disturbances */
    double error_ns[2];     /* greatest standard error of a sample's time, where calls were counted
                               without a clock, from the share of the function's calls that are in
                               it; 0: all were timed */
    double costs[2];        /* medians of what is compared, when that is not time */
    double least_calls[2], most_calls[2];
    double calls_ratio;       /* calls of any session of B / of any of A: no call was lost, and the
                                 number is the same in all sessions of a side, 4 at least; else 0 */
    double compared[2];       /* the medians that the verdict is about: of self_ns, typical_ns or
                                 costs */
    uint32_t needed_sessions; /* with fewer a side, no row of this question can be decided: row 0 is
                                 a question of its own, all others are one */
    sj_compare_test tests[2]; /* by sj_compare_by */
    sj_compare_by decided_by; /* the test that the verdict comes from */
    bool is_tested;
    bool is_nameless;
    bool is_unmatched; /* nameless, and not found in the other side's build */
    sj_compare_verdict verdict;
} sj_compare_row;

typedef struct sj_compare sj_compare;

/* sj_compare_run reads both sets and judges. SJ_EINVAL, SJ_ENOTFOUND: a set (see session_set.h);
 * nothing of what is to be compared was measured, or a session has calls and no sums of them;
 * SJ_EUNSUPPORTED: call paths, CPU time or memory
 * of marks; SJ_EIO, SJ_ENOMEM. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_compare_run(const sj_compare_side sides[2],
                                       const sj_compare_options *options, sj_compare **compare,
                                       sj_error *error);
void sj_compare_free(sj_compare *compare); /* NULL is allowed */

/* sj_compare_rows borrows the rows: row 0 is the sum, parents stand before their children. */
const sj_compare_row *sj_compare_rows(const sj_compare *compare, size_t *count);

/* sj_compare_samples returns how many samples a side (0: A, 1: B) has, and how many calls were lost
 * in them: those make times inexact. */
size_t sj_compare_samples(const sj_compare *compare, int side, int64_t *lost_calls);

/* sj_compare_folded_calls returns how many calls of a side were on call paths that were folded:
 * their typical self time is that of their caller and function, whatever the path. */
int64_t sj_compare_folded_calls(const sj_compare *compare, int side);

/* sj_compare_matched_share gives the share of the time of functions without names that were matched
 * by their code, the lower of both sides. False: there are none, or both sides have their builds.
 */
bool sj_compare_matched_share(const sj_compare *compare, double *share);

/* sj_compare_is_stripped returns whether functions cannot be compared, because the programs have no
 * symbols: that share is below a half, and what was not matched takes a tenth of all time. */
bool sj_compare_is_stripped(const sj_compare *compare);

#endif
