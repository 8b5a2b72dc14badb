/* The state that the tables and functions of one connection share. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_QUERY_STATE_H
#define SJ_COLLECTOR_SERVER_QUERY_QUERY_STATE_H

#include <sqlite3.h>
#include <stdint.h>

enum { SJ_QUERY_MAX_WARNINGS = 64 };

typedef struct sj_query_warning {
    int64_t block_id;
    char *text; /* allocated by sqlite3_malloc */
} sj_query_warning;

typedef struct sj_query_state {
    sqlite3 *database;   /* borrowed: the connection owns the state */
    unsigned references; /* modules and functions that use the state */
    unsigned warning_count;
    uint64_t warnings_left_out; /* number of warnings after the first SJ_QUERY_MAX_WARNINGS */
    struct sj_sums_cache *sums; /* borrowed; NULL: no cache */
    /* The decoder of an earlier scan, for the next scan to reuse, because a decoder takes several
     * megabytes. NULL: none. */
    struct sj_block_decoder *idle_decoder;
    sj_query_warning warnings[SJ_QUERY_MAX_WARNINGS];
} sj_query_state;

/* Records why the calls of a block are missing in results, once per block. Takes ownership of
 * `text` (sqlite3_malloc). Ignores NULL. */
void sj_query_warn(sj_query_state *state, int64_t block_id, char *text);

/* Register the tables and functions of one file each. Return an SQLite result code. A registered
 * module or function holds a reference to `state` until SQLite destroys it. */
int sj_register_warnings(sj_query_state *state);
int sj_register_calls(sj_query_state *state);
int sj_register_call_aggregate(sj_query_state *state);
int sj_register_call_groups(sj_query_state *state);
int sj_register_lineage(sj_query_state *state);
int sj_register_ancestors(sj_query_state *state);
int sj_register_trees(sj_query_state *state);
int sj_register_statements(sj_query_state *state);
int sj_register_concurrency(sj_query_state *state);
int sj_register_overlaps(sj_query_state *state);
int sj_register_durations(sj_query_state *state);
int sj_register_histograms(sj_query_state *state);
int sj_register_diffs(sj_query_state *state);
int sj_register_histogram_table(sj_query_state *state);
int sj_register_percentiles(sj_query_state *state);
int sj_register_demangle(sj_query_state *state);
int sj_register_coverage(sj_query_state *state);
int sj_register_session_set(sj_query_state *state);
int sj_register_open_paths(sj_query_state *state);
int sj_register_open_now(sj_query_state *state);

struct sj_histogram;

/* Sets a histogram, encoded as a blob, as the result of an SQL function. */
void sj_result_histogram(sqlite3_context *context, const struct sj_histogram *histogram);

/* sj_query_state_hold adds a reference and returns `state`. sj_query_state_release removes a
 * reference, and frees the state after the last one. It has the signature of an SQLite
 * destructor. */
sj_query_state *sj_query_state_hold(sj_query_state *state);
void sj_query_state_release(void *state);

#endif
