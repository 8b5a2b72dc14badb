/* For `sojourn tree --by-value`: groups the calls of each call path by their recorded values. */
#ifndef SJ_COLLECTOR_SERVER_CLI_TREE_VALUES_H
#define SJ_COLLECTOR_SERVER_CLI_TREE_VALUES_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/* The calls of one path with the same values. */
typedef struct sj_path_values {
    int64_t path_id;
    /* for example "(path='/etc/hosts', flags=0) = 3". If the arguments or the results have 1,024
     * bytes or more, they are cut and end with an ellipsis. */
    char *text;
    uint64_t hash; /* hash of the uncut text */
    int64_t calls;
    int64_t total_ns; /* duration of the calls that ended */
} sj_path_values;

typedef struct sj_tree_values sj_tree_values;

/* Reads every call of the session. Omits calls whose call path was folded. Makes at most 65,536
 * groups, and omits calls that belong to none of them. Fails with SJ_ENOMEM or SJ_EIO. Blocks on
 * the database. */
SJ_MUST_CHECK sj_status sj_tree_values_read(sqlite3 *database, int64_t session_id,
                                            sj_tree_values **values, sj_error *error);
void sj_tree_values_free(sj_tree_values *values); /* NULL is allowed */

/* Returns the number of groups of a path. Stores the groups, longest total time first, in `*of`
 * (borrowed). */
size_t sj_tree_values_of(const sj_tree_values *values, int64_t path_id, const sj_path_values **of);

/* Returns the number of calls that have values and that sj_tree_values_read omitted. */
int64_t sj_tree_values_left_out(const sj_tree_values *values);

#endif
