/* Function groups: rows of calls sorted by function within bounded memory, for GROUP BY
 * function_id.
 *
 * Rows come in batches and are stored by function, a few bytes each. If they exceed the memory,
 * they are written to a temporary file, one run per function, and read back in long pieces. */
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

/* A batch: row r is of function function_ids[entries[r]]. Borrowed until the next batch. */
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
    /* returns SQLITE_ROW, SQLITE_DONE or an error */
    int (*give)(void *context, sj_group_batch *batch);
    void *context;
    /* State: */
    bool end;
    int8_t positions[SJ_GROUP_MAX_COLUMNS]; /* of columns in `current` */
    sj_group_list *lists;
    size_t list_count, list_capacity;
    uint32_t *table; /* hash table: list number + 1 */
    size_t table_capacity;
    uint32_t *entry_lists; /* list numbers of the batch's dictionary */
    size_t entry_capacity;
    sj_group_batch batch;
    size_t held_bytes;
    sj_spill_file spill;
    uint32_t *order; /* lists with rows, sorted by function */
    size_t order_count, at_list;
    uint64_t left_rows; /* rows left in the current list */
    /* Rows are read from `at`. At `refill` fewer bytes are left than a row may need. */
    const uint8_t *at, *end_of_piece, *refill;
    uint8_t *piece; /* bytes of a run */
    const sj_group_chunk *chunk;
    const sj_group_run *run;
    int64_t run_at; /* bytes of the run that were read */
    int64_t current_id;
    int64_t current[SJ_GROUP_MAX_COLUMNS];
} sj_function_groups;

/* sj_function_groups_start reads all rows. sj_function_groups_next moves to the next row, and sets
 * `end` after the last. Return SQLite result codes. */
int sj_function_groups_start(sj_function_groups *groups);
int sj_function_groups_next(sj_function_groups *groups);

/* Returns a value of the current row: column number `column` (one of `columns`), or the function id
 * for -1. */
static inline int64_t sj_function_groups_value(const sj_function_groups *groups, int column)
{
    return column == -1 ? groups->current_id : groups->current[groups->positions[column]];
}

void sj_function_groups_deinit(sj_function_groups *groups); /* safe on a zeroed one */

#endif
