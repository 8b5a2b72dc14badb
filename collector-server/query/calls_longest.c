#include "collector-server/query/calls_longest.h"

#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "schema/queries/query/calls_longest.h"

#include <stdlib.h>
#include <string.h>

/* A pass that would reach a quarter of the blocks (LEAST_SHARE) reads all of them. */
enum { FIRST_BLOCKS = 16, BLOCKS_GROWTH = 8, LEAST_SHARE = 4, MAX_BOUNDS = 1 << 20 };

static const char *const column_names[SJ_CALLS_COLUMN_COUNT] = {
    [SJ_CALLS_CALL_ID] = "call_id",
    [SJ_CALLS_SESSION_ID] = "session_id",
    [SJ_CALLS_STREAM_ID] = "stream_id",
    [SJ_CALLS_THREAD_ID] = "thread_id",
    [SJ_CALLS_FUNCTION_ID] = "function_id",
    [SJ_CALLS_PARENT_ID] = "parent_id",
    [SJ_CALLS_DEPTH] = "depth",
    [SJ_CALLS_START_NS] = "start_ns",
    [SJ_CALLS_END_NS] = "end_ns",
    [SJ_CALLS_DURATION_NS] = "duration_ns",
    [SJ_CALLS_SELF_NS] = "self_ns",
    [SJ_CALLS_ENDING] = "ending",
    [SJ_CALLS_FLAGS] = "flags",
    [SJ_CALLS_CALLER_FUNCTION_ID] = "caller_function_id",
    [SJ_CALLS_TAIL_CALLER_ID] = "tail_caller_id",
    [SJ_CALLS_PHYSICAL_PARENT_ID] = "physical_parent_id",
    [SJ_CALLS_PHYSICAL_DURATION_NS] = "physical_duration_ns",
    [SJ_CALLS_CPU_NS] = "cpu_ns",
    [SJ_CALLS_CPU_SELF_NS] = "cpu_self_ns",
    [SJ_CALLS_ALLOCATIONS] = "allocations",
    [SJ_CALLS_ALLOCATED_BYTES] = "allocated_bytes",
    [SJ_CALLS_FREES] = "frees",
    [SJ_CALLS_FREED_BYTES] = "freed_bytes",
    [SJ_CALLS_NET_BYTES] = "net_bytes",
    [SJ_CALLS_ALLOCATED_SELF_BYTES] = "allocated_self_bytes",
};

/* Reads the longest duration of each block that the filter may reach. */
static int add_bound(void *context, sqlite3_stmt *row)
{
    sj_calls_longest *longest = context;
    if (sj_array_reserve(&longest->bounds, &longest->bound_capacity, longest->bound_count, 1,
                         sizeof(*longest->bounds)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    longest->bounds[longest->bound_count++] = sqlite3_column_int64(row, 0);
    return SQLITE_OK;
}

static int read_bounds(sj_calls_longest *longest)
{
    const sj_scan_filter *filter = longest->source.filter;
    longest->bound_count = 0;
    return sj_sql_scan_text(longest->source.database, sj_calls_longest_bounds_sql,
                            SJ_SQL_INTS(filter->first_session, filter->last_session,
                                        filter->first_stream, filter->last_stream,
                                        filter->by_thread, filter->thread_id, MAX_BOUNDS),
                            add_bound, longest);
}

static int64_t *row_at(const sj_calls_longest *longest, size_t row)
{
    return longest->rows + row * longest->width;
}

static int64_t row_duration(const sj_calls_longest *longest, size_t row)
{
    return row_at(longest, row)[longest->positions[SJ_CALLS_DURATION_NS]];
}

static int compare_rows(const void *left, const void *right, void *context)
{
    const sj_calls_longest *longest = context;
    const int64_t *a = row_at(longest, *(const uint32_t *)left);
    const int64_t *b = row_at(longest, *(const uint32_t *)right);
    const int duration = longest->positions[SJ_CALLS_DURATION_NS];
    const int call = longest->positions[SJ_CALLS_CALL_ID];
    if (a[duration] != b[duration]) {
        return a[duration] > b[duration] ? -1 : 1;
    }
    return (a[call] > b[call]) - (a[call] < b[call]);
}

static int sort_rows(sj_calls_longest *longest)
{
    uint32_t *sorted = realloc(longest->sorted, (longest->row_count + 1) * sizeof(*sorted));
    if (sorted == NULL) {
        return SQLITE_NOMEM;
    }
    longest->sorted = sorted;
    for (size_t i = 0; i < longest->row_count; ++i) {
        sorted[i] = (uint32_t)i;
    }
    qsort_r(sorted, longest->row_count, sizeof(*sorted), compare_rows, longest);
    return SQLITE_OK;
}

/* Keeps the longer half of the rows, and all rows that are as long as the shortest of that half.
 * Writes this duration to `*min_ns`. Returns SQLITE_FULL if that keeps max_rows or more. */
static int keep_longer_half(sj_calls_longest *longest, int64_t *min_ns)
{
    const int result = sort_rows(longest);
    if (result != SQLITE_OK) {
        return result;
    }
    const int64_t least = row_duration(longest, longest->sorted[longest->row_count / 2]);
    size_t kept = 0;
    for (size_t row = 0; row < longest->row_count; ++row) {
        if (row_duration(longest, row) >= least) {
            memmove(row_at(longest, kept++), row_at(longest, row),
                    longest->width * sizeof(*longest->rows));
        }
    }
    longest->row_count = kept;
    *min_ns = least;
    return kept < longest->max_rows ? SQLITE_OK : SQLITE_FULL;
}

/* Adds the rows of a batch that last at least `*min_ns` and were not returned by an earlier
 * pass. */
static int add_rows(sj_calls_longest *longest, const sj_group_batch *batch, int64_t *min_ns)
{
    const sj_longest_source *source = &longest->source;
    const int64_t *durations = batch->columns[longest->positions[SJ_CALLS_DURATION_NS]];
    for (size_t i = 0; i < batch->row_count; ++i) {
        if (durations[i] < *min_ns || durations[i] >= longest->given_ns) {
            continue;
        }
        if (longest->row_count == longest->max_rows) {
            const int result = keep_longer_half(longest, min_ns);
            if (result != SQLITE_OK) {
                return result;
            }
            if (durations[i] < *min_ns) {
                continue;
            }
        }
        if (sj_array_reserve(&longest->rows, &longest->row_capacity,
                             longest->row_count * longest->width, longest->width,
                             sizeof(*longest->rows)) != SJ_OK) {
            return SQLITE_NOMEM;
        }
        int64_t *row = row_at(longest, longest->row_count++);
        for (size_t column = 0; column < source->column_count; ++column) {
            row[column] = batch->columns[column][i];
        }
        row[source->column_count] = batch->function_ids[batch->entries[i]];
    }
    return SQLITE_OK;
}

/* Collects and sorts the calls that last at least `min_ns` and were not returned by an earlier
 * pass. If there are too many, collects only the longer calls. Returns SQLITE_FULL if that is
 * impossible, because too many are equally long. */
static int run_pass(sj_calls_longest *longest, int64_t min_ns)
{
    const sj_longest_source *source = &longest->source;
    sj_group_batch batch;
    longest->row_count = longest->at = 0;
    int result = source->begin(source->context, min_ns);
    while (result == SQLITE_OK && (result = source->give(source->context, &batch)) == SQLITE_ROW) {
        result = add_rows(longest, &batch, &min_ns);
    }
    if (result != SQLITE_DONE) {
        return result;
    }
    longest->given_ns = min_ns;
    return sort_rows(longest);
}

static const char *operator_text(char code)
{
    return code == '{' ? "<=" : code == '}' ? ">=" : code == '<' ? "<" : code == '>' ? ">" : "=";
}

/* Returns the query for the remaining rows; SQLite sorts them. The plus sign in "+duration_ns"
 * makes SQLite use its own sorter instead of this cursor. */
static char *make_remaining_sql(const sj_calls_longest *longest)
{
    sqlite3_str *sql = sqlite3_str_new(NULL);
    const sj_longest_source *source = &longest->source;
    sqlite3_str_appendall(sql, "SELECT ");
    for (size_t i = 0; i < source->column_count; ++i) {
        sqlite3_str_appendf(sql, "%s, ", column_names[source->columns[i]]);
    }
    sqlite3_str_appendall(sql, "function_id FROM calls WHERE ");
    for (int i = 0; i < source->argument_count; ++i) {
        sqlite3_str_appendf(sql, "%s %s ?%d AND ", column_names[longest->plan[2 * i] - 'a'],
                            operator_text(longest->plan[2 * i + 1]), i + 1);
    }
    if (longest->given_ns == 0) {
        sqlite3_str_appendall(sql, "duration_ns IS NULL");
    } else if (longest->given_ns != INT64_MAX) {
        sqlite3_str_appendf(sql, "(duration_ns IS NULL OR duration_ns < %lld)", longest->given_ns);
    } else {
        sqlite3_str_appendall(sql, "1");
    }
    sqlite3_str_appendall(sql, " ORDER BY +duration_ns DESC, call_id");
    return sqlite3_str_finish(sql);
}

static int step_remaining(sj_calls_longest *longest)
{
    const int result = sqlite3_step(longest->remaining);
    longest->end = result != SQLITE_ROW;
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int start_remaining(sj_calls_longest *longest)
{
    longest->row_count = longest->at = 0;
    if (longest->given_ns == 0 && longest->source.filter->ended) {
        longest->end = true;
        return SQLITE_OK;
    }
    char *sql = make_remaining_sql(longest);
    if (sql == NULL) {
        return SQLITE_NOMEM;
    }
    const int result =
        sqlite3_prepare_v2(longest->source.database, sql, -1, &longest->remaining, NULL);
    sqlite3_free(sql);
    if (result != SQLITE_OK) {
        return result;
    }
    for (int i = 0; i < longest->source.argument_count; ++i) {
        sqlite3_bind_value(longest->remaining, i + 1, longest->arguments[i]);
    }
    return step_remaining(longest);
}

/* Moves to the first row of the next pass that has rows. After the last pass, or if a pass has too
 * many equally long rows, starts the query for the remaining rows. */
static int advance(sj_calls_longest *longest)
{
    while (longest->blocks != 0) {
        const bool is_last = longest->blocks * LEAST_SHARE >= longest->bound_count;
        const int64_t min_ns = is_last ? 0 : longest->bounds[longest->blocks];
        longest->blocks = is_last ? 0 : longest->blocks * BLOCKS_GROWTH;
        if (min_ns >= longest->given_ns) {
            continue;
        }
        const int result = run_pass(longest, min_ns);
        if (result == SQLITE_FULL) {
            break;
        }
        if (result != SQLITE_OK || longest->row_count != 0) {
            return result;
        }
    }
    longest->blocks = 0;
    return start_remaining(longest);
}

static void free_source(sj_calls_longest *longest)
{
    for (int i = 0; longest->arguments != NULL && i < longest->source.argument_count; ++i) {
        sqlite3_value_free(longest->arguments[i]);
    }
    free(longest->arguments);
    free(longest->plan);
    sqlite3_finalize(longest->remaining);
    longest->arguments = NULL;
    longest->plan = NULL;
    longest->remaining = NULL;
}

static int copy_source(sj_calls_longest *longest, const sj_longest_source *source)
{
    free_source(longest);
    longest->source = *source;
    longest->plan = strdup(source->plan);
    longest->arguments = calloc((size_t)source->argument_count + 1, sizeof(*longest->arguments));
    if (longest->plan == NULL || longest->arguments == NULL) {
        longest->source.argument_count = 0;
        return SQLITE_NOMEM;
    }
    for (int i = 0; i < source->argument_count; ++i) {
        longest->arguments[i] = sqlite3_value_dup(source->arguments[i]);
        if (longest->arguments[i] == NULL) {
            return SQLITE_NOMEM;
        }
    }
    for (size_t i = 0; i < source->column_count; ++i) {
        longest->positions[source->columns[i]] = (int8_t)i;
    }
    longest->positions[SJ_CALLS_FUNCTION_ID] = (int8_t)source->column_count;
    longest->width = source->column_count + 1;
    return SQLITE_OK;
}

int sj_calls_longest_start(sj_calls_longest *longest, const sj_longest_source *source)
{
    int result = copy_source(longest, source);
    if (result != SQLITE_OK) {
        return result;
    }
    longest->max_rows = longest->max_rows != 0 ? longest->max_rows : SJ_LONGEST_MAX_ROWS;
    longest->given_ns = INT64_MAX;
    longest->blocks = FIRST_BLOCKS;
    longest->end = false;
    result = read_bounds(longest);
    return result == SQLITE_OK ? advance(longest) : result;
}

int sj_calls_longest_next(sj_calls_longest *longest)
{
    if (longest->remaining != NULL) {
        return step_remaining(longest);
    }
    return ++longest->at < longest->row_count ? SQLITE_OK : advance(longest);
}

int64_t sj_calls_longest_value(const sj_calls_longest *longest, int column, sqlite3_value **value)
{
    const int position = longest->positions[column];
    *value = longest->remaining != NULL ? sqlite3_column_value(longest->remaining, position) : NULL;
    return longest->remaining != NULL ? 0 : row_at(longest, longest->sorted[longest->at])[position];
}

void sj_calls_longest_deinit(sj_calls_longest *longest)
{
    free_source(longest);
    free(longest->rows);
    free(longest->sorted);
    free(longest->bounds);
}
