/* Function groups: sorts rows of calls by function in bounded memory, for GROUP BY function_id.
 *
 * Rows are read in batches and kept in one list per function, a few bytes each. If they exceed the
 * memory limit, they are moved to a temporary file, one run per function, and read back in long
 * pieces. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_FUNCTION_GROUPS_H
#define SJ_COLLECTOR_SERVER_QUERY_FUNCTION_GROUPS_H

#include "collector-server/query/spill_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SJ_GROUP_MAX_COLUMNS = 28, /* column numbers are below this, too */
    SJ_GROUP_DEFAULT_BYTES = 128 * 1024 * 1024
};

/* A batch of rows. Row r is a call of the function function_ids[entries[r]]. The arrays are valid
 * until the next batch. */
typedef struct sj_group_batch {
    size_t row_count;
    const uint32_t *entries;
    const int64_t *function_ids;
    size_t function_count;
    const int64_t *columns[SJ_GROUP_MAX_COLUMNS]; /* in the order of sj_function_groups.columns */
} sj_group_batch;

typedef struct sj_group_chunk sj_group_chunk;
typedef struct sj_group_run sj_group_run;

/* The rows of one function: its runs in the file, then its chunks. */
typedef struct sj_group_list {
    uint8_t *at, *end; /* free part of the last chunk */
    uint64_t rows;
    int64_t function_id;
    sj_group_chunk *first, *last;
    sj_group_run *first_run, *last_run;
} sj_group_list;

typedef struct sj_function_groups {
    /* Set by the caller before sj_function_groups_start: */
    int columns[SJ_GROUP_MAX_COLUMNS]; /* column numbers of the values */
    size_t column_count;
    size_t limit_bytes; /* 0: the default */
    /* writes the next batch; returns SQLITE_ROW, SQLITE_DONE or an error */
    int (*give)(void *context, sj_group_batch *batch);
    void *context;
    /* State: */
    bool end;                               /* there is no current row */
    int8_t positions[SJ_GROUP_MAX_COLUMNS]; /* by column number: its index in `current` */
    sj_group_list *lists;
    size_t list_count, list_capacity;
    uint32_t *table; /* hash table: list number + 1; 0: free */
    size_t table_capacity;
    uint32_t *entry_lists; /* by entry of the batch's dictionary: list number */
    size_t entry_capacity;
    sj_group_batch batch;
    size_t held_bytes; /* memory of all chunks */
    sj_spill_file spill;
    uint32_t *sorted; /* numbers of the lists with rows, sorted by function */
    size_t sorted_count, at_list;
    uint64_t left_rows; /* rows left in the current list */
    /* Rows are read from `at`. From `refill` on, the bytes up to `end_of_piece` may be only a part
     * of a row. */
    const uint8_t *at, *end_of_piece, *refill;
    uint8_t *piece; /* buffer for the bytes of a run */
    const sj_group_chunk *chunk;
    const sj_group_run *run;
    int64_t run_at; /* number of bytes of the run that were read */
    int64_t current_id;
    int64_t current[SJ_GROUP_MAX_COLUMNS]; /* values of the current row */
} sj_function_groups;

/* sj_function_groups_start reads all rows and moves to the first row. sj_function_groups_next moves
 * to the next row. Both set `end` if there is none, and return SQLite result codes. */
int sj_function_groups_start(sj_function_groups *groups);
int sj_function_groups_next(sj_function_groups *groups);

/* Returns a value of the current row: the column `column`, which is one of `columns`, or the
 * function_id for -1. */
static inline int64_t sj_function_groups_value(const sj_function_groups *groups, int column)
{
    return column == -1 ? groups->current_id : groups->current[groups->positions[column]];
}

void sj_function_groups_deinit(sj_function_groups *groups); /* safe on zeroed groups */

#endif
