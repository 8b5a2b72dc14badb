/* Design notes.
 *
 * Whole sessions are measured by their call paths, because typical self time needs the callees of a
 * path. Typical self time is the typical time of the path minus the typical time of its callees,
 * and at most the measured self time. Callers precede their callees. A function is the sum of its
 * paths. Times between marks are measured by function, without typical times. */
#include "collector-server/query/compare_internal.h"

#include "collector-server/query/typical.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "proto/base/bisect.h"
#include "schema/queries/query/compare_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

static size_t find_slot(const sj_compare *compare, uint32_t parent, uint64_t key)
{
    uint64_t hash = (key ^ ((uint64_t)parent << 32 | parent)) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
    size_t slot = (size_t)hash & (compare->slot_count - 1);
    while (compare->slots[slot] != 0) {
        const sj_compare_row *row = &compare->rows[compare->slots[slot] - 1];
        if (row->parent == parent && row->symbol_key == key) {
            break;
        }
        slot = (slot + 1) & (compare->slot_count - 1);
    }
    return slot;
}

static sj_status grow_rows(sj_compare *compare)
{
    const size_t capacity = compare->capacity != 0 ? compare->capacity * 2 : FIRST_CAPACITY;
    const size_t row_bytes = compare->samples * SJ_MEASURES * sizeof(double);
    sj_compare_row *rows = realloc(compare->rows, capacity * sizeof(*rows));
    compare->rows = rows != NULL ? rows : compare->rows;
    double *values = realloc(compare->values, capacity * row_bytes);
    compare->values = values != NULL ? values : compare->values;
    uint32_t *slots = calloc(capacity * 2, sizeof(*slots));
    if (rows == NULL || values == NULL || slots == NULL) {
        free(slots);
        return SJ_ENOMEM;
    }
    free(compare->slots);
    compare->slots = slots;
    compare->slot_count = capacity * 2;
    compare->capacity = capacity;
    for (size_t i = 1; i < compare->count; ++i) { /* row 0 is not in the hash table */
        compare->slots[find_slot(compare, rows[i].parent, rows[i].symbol_key)] = (uint32_t)i + 1;
    }
    return SJ_OK;
}

sj_status sj_compare_add_row(sj_compare *compare, uint32_t parent, uint64_t key, uint32_t *number)
{
    if (compare->count == compare->capacity) {
        SJ_TRY(grow_rows(compare));
    }
    if (compare->count != 0) {
        const size_t slot = find_slot(compare, parent, key);
        if (compare->slots[slot] != 0) {
            *number = compare->slots[slot] - 1;
            return SJ_OK;
        }
        compare->slots[slot] = (uint32_t)compare->count + 1;
    }
    *number = (uint32_t)compare->count++;
    compare->rows[*number] = (sj_compare_row){
        .symbol_key = key,
        .parent = parent,
        .depth = parent != 0 ? compare->rows[parent].depth + 1 : 0,
        .tests = {{.p_value = 1, .p_adjusted = 1}, {.p_value = 1, .p_adjusted = 1}},
    };
    memset(sj_compare_value(compare, *number, 0, 0), 0,
           compare->samples * SJ_MEASURES * sizeof(double));
    return SJ_OK;
}

enum {
    COLUMN_KEY,
    COLUMN_FUNCTION,
    COLUMN_CALLS,
    COLUMN_TOTAL,
    COLUMN_SELF,
    COLUMN_NAMELESS,
    COLUMN_PATH,
    COLUMN_PARENT,
    COLUMN_RECURSIVE,
    COLUMN_HISTOGRAM,
    COLUMN_NS_PER_TICK,
    COLUMN_COST /* the first of one column for each sj_compare_of except SJ_COMPARE_TIME */
};

enum { ERROR_KEY, ERROR_NS, ERROR_CALLS, ERROR_SAMPLED };

static const char window_sql[] =
    "SELECT f.symbol_key, a.function_id, a.calls, a.total_ns, a.self_ns, f.symbol = '' FROM "
    "call_aggregate(?1, ?2, ?3) AS a JOIN functions AS f USING (function_id)";

/* A call path of the current session. */
typedef struct measured_path {
    int64_t path_id;
    uint32_t row;
    double self_ns;
    double typical_ns; /* total time, minus the time of the callees added so far */
} measured_path;

typedef struct path_list {
    measured_path *paths; /* sorted by path_id */
    size_t count, capacity;
} path_list;

static measured_path *find_path(const path_list *list, int64_t path_id)
{
    const size_t low = SJ_BISECT(0, list->count, i, list->paths[i].path_id < path_id);
    return low < list->count && list->paths[low].path_id == path_id ? &list->paths[low] : NULL;
}

static sj_status append_path(path_list *list, const measured_path *path)
{
    SJ_TRY(sj_array_reserve(&list->paths, &list->capacity, list->count, 1, sizeof(*path)));
    list->paths[list->count++] = *path;
    return SJ_OK;
}

/* Adds a value to a row and to row 0. */
static void add_value(sj_compare *compare, uint32_t row, size_t sample, int measure, double value)
{
    *sj_compare_value(compare, row, sample, measure) += value;
    *sj_compare_value(compare, 0, sample, measure) += value;
}

/* Adds the CPU time or memory of a path, if the comparison is about that and it was measured. */
static void add_cost(sj_compare *compare, sqlite3_stmt *statement, uint32_t row, size_t sample,
                     int side)
{
    const int column = COLUMN_COST + (int)compare->options.of - 1;
    if (compare->options.of != SJ_COMPARE_TIME &&
        sqlite3_column_type(statement, column) != SQLITE_NULL) {
        add_value(compare, row, sample, SJ_MEASURE_COST, sqlite3_column_double(statement, column));
        compare->has_costs[side] = true;
    }
}

static void set_function(sj_compare_row *row, sqlite3_stmt *statement, int side)
{
    row->function_id[side] = sqlite3_column_int64(statement, COLUMN_FUNCTION);
    row->is_nameless = sqlite3_column_int(statement, COLUMN_NAMELESS) != 0;
}

static sj_status add_path(sj_compare *compare, sqlite3_stmt *statement, size_t sample, int side,
                          path_list *list)
{
    const uint64_t key = (uint64_t)sqlite3_column_int64(statement, COLUMN_KEY);
    const double total_ns = sqlite3_column_double(statement, COLUMN_TOTAL);
    measured_path *parent = find_path(list, sqlite3_column_int64(statement, COLUMN_PARENT));
    measured_path path = {.path_id = sqlite3_column_int64(statement, COLUMN_PATH),
                          .self_ns = sqlite3_column_double(statement, COLUMN_SELF)};
    const void *bins = sqlite3_column_blob(statement, COLUMN_HISTOGRAM);
    const sj_slice histogram = {bins, (size_t)sqlite3_column_bytes(statement, COLUMN_HISTOGRAM)};
    path.typical_ns = sj_typical_total_ns(histogram, total_ns,
                                          sqlite3_column_double(statement, COLUMN_NS_PER_TICK));
    if (parent != NULL) {
        parent->typical_ns -= path.typical_ns;
    }
    const bool tree = compare->options.tree;
    SJ_TRY(sj_compare_add_row(compare, tree && parent != NULL ? parent->row : 0, key, &path.row));
    set_function(&compare->rows[path.row], statement, side);
    add_value(compare, path.row, sample, SJ_MEASURE_CALLS,
              sqlite3_column_double(statement, COLUMN_CALLS));
    add_value(compare, path.row, sample, SJ_MEASURE_SELF, path.self_ns);
    add_cost(compare, statement, path.row, sample, side);
    if (tree || sqlite3_column_int(statement, COLUMN_RECURSIVE) == 0) {
        *sj_compare_value(compare, path.row, sample, SJ_MEASURE_TOTAL) += total_ns;
    }
    *sj_compare_value(compare, 0, sample, SJ_MEASURE_TOTAL) += parent == NULL ? total_ns : 0;
    return append_path(list, &path);
}

/* Adds a function's sums for the time of a mark. */
static sj_status add_window(sj_compare *compare, sqlite3_stmt *statement, size_t sample, int side)
{
    const uint64_t key = (uint64_t)sqlite3_column_int64(statement, COLUMN_KEY);
    const double self_ns = sqlite3_column_double(statement, COLUMN_SELF);
    uint32_t row;
    SJ_TRY(sj_compare_add_row(compare, 0, key, &row));
    set_function(&compare->rows[row], statement, side);
    add_value(compare, row, sample, SJ_MEASURE_CALLS,
              sqlite3_column_double(statement, COLUMN_CALLS));
    add_value(compare, row, sample, SJ_MEASURE_SELF, self_ns);
    add_value(compare, row, sample, SJ_MEASURE_TYPICAL, self_ns);
    *sj_compare_value(compare, row, sample, SJ_MEASURE_TOTAL) +=
        sqlite3_column_double(statement, COLUMN_TOTAL);
    *sj_compare_value(compare, 0, sample, SJ_MEASURE_TOTAL) += self_ns;
    return SJ_OK;
}

/* A sample that is being measured. */
typedef struct sample_measure {
    sj_compare *compare;
    size_t sample;
    int side;
    path_list paths;
} sample_measure;

static sj_status measure_window(void *context, sqlite3_stmt *row)
{
    const sample_measure *measure = context;
    return add_window(measure->compare, row, measure->sample, measure->side);
}

static sj_status measure_path(void *context, sqlite3_stmt *row)
{
    sample_measure *measure = context;
    return add_path(measure->compare, row, measure->sample, measure->side, &measure->paths);
}

static sj_status measure_sample(sj_compare *compare, sqlite3_stmt *statement, size_t sample,
                                int side, bool windowed, sj_error *error)
{
    sample_measure measure = {.compare = compare, .sample = sample, .side = side};
    const sj_status status =
        sj_sql_each_row(statement, windowed ? measure_window : measure_path, &measure, error);
    for (size_t i = 0; i < measure.paths.count; ++i) {
        const measured_path *path = &measure.paths.paths[i];
        add_value(compare, path->row, sample, SJ_MEASURE_TYPICAL,
                  path->typical_ns > 0 ? fmin(path->typical_ns, path->self_ns) : path->self_ns);
    }
    free(measure.paths.paths);
    return status;
}

static sj_status check_set(const sj_compare *compare, const sj_session_set *set, sj_error *error)
{
    const bool windowed = set->samples[0].windowed;
    if (windowed && compare->options.of != SJ_COMPARE_TIME) {
        return sj_fail(
            error, SJ_EUNSUPPORTED,
            "CPU time and memory are added up for whole sessions: compare marks by time");
    }
    if (windowed && compare->options.tree) {
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "call paths are kept for whole sessions: compare marks by function");
    }
    for (size_t i = 1; i < set->count; ++i) {
        if (set->samples[i].windowed != windowed) {
            return sj_fail(error, SJ_EUNSUPPORTED,
                           "a set holds either whole sessions or marks, not both");
        }
    }
    return SJ_OK;
}

/* Fails, because a session that did not measure the cost must not count as one with cost 0. */
static sj_status refuse_sample(const sj_compare *compare, int64_t session_id, sj_error *error)
{
    return sj_fail(
        error, SJ_ENOTFOUND, "session %lld has no %s of calls: record with --%s FUNCTION",
        (long long)session_id, compare->options.of == SJ_COMPARE_CPU ? "CPU time" : "memory",
        compare->options.of == SJ_COMPARE_CPU ? "cpu-time" : "memory");
}

sj_status sj_compare_measure(sj_compare *compare, sqlite3 *database, int side, sj_error *error)
{
    const sj_session_set *set = &compare->sets[side];
    const size_t first = side == 0 ? 0 : compare->sets[0].count;
    const bool windowed = set->samples[0].windowed;
    sqlite3_stmt *statement = NULL;
    sj_status status = check_set(compare, set, error);
    if (status == SJ_OK &&
        sqlite3_prepare_v2(database, windowed ? window_sql : sj_compare_paths_sql, -1, &statement,
                           NULL) != SQLITE_OK) {
        status = sj_fail(error, SJ_EIO, "cannot read the sessions to compare: %s",
                         sqlite3_errmsg(database));
    }
    for (size_t i = 0; status == SJ_OK && i < set->count; ++i) {
        sqlite3_bind_int64(statement, 1, set->samples[i].session_id);
        if (windowed) {
            sqlite3_bind_int64(statement, 2, set->samples[i].from_ns);
            sqlite3_bind_int64(statement, 3, set->samples[i].to_ns);
        }
        compare->has_costs[side] = false;
        status = measure_sample(compare, statement, first + i, side, windowed, error);
        sqlite3_reset(statement);
        if (status == SJ_OK && compare->options.of != SJ_COMPARE_TIME &&
            !compare->has_costs[side]) {
            status = refuse_sample(compare, set->samples[i].session_id, error);
        }
    }
    sqlite3_finalize(statement);
    return status;
}

/* Returns the error of `calls` of a function's calls. The error of a sum grows with the square root
 * of their number. If fewer than two calls were timed, ERROR_NS is all the estimated time, so it is
 * divided in proportion. */
static double scale_error(sqlite3_stmt *function, double calls)
{
    const double share = fmin(1, calls / fmax(1, sqlite3_column_double(function, ERROR_CALLS)));
    const bool is_sampled = sqlite3_column_int64(function, ERROR_SAMPLED) >= 2;
    return sqlite3_column_double(function, ERROR_NS) * (is_sampled ? sqrt(share) : share);
}

/* Raises error_ns of the function's rows to the error that the function has in a sample. */
static void raise_error(sj_compare *compare, sqlite3_stmt *function, size_t sample, int side)
{
    const uint64_t key = (uint64_t)sqlite3_column_int64(function, ERROR_KEY);
    for (size_t row = 1; row < compare->count; ++row) {
        if (compare->rows[row].symbol_key == key) {
            const double calls = *sj_compare_value(compare, row, sample, SJ_MEASURE_CALLS);
            double *most = &compare->rows[row].error_ns[side];
            *most = fmax(*most, scale_error(function, calls));
        }
    }
}

/* A session whose estimated errors are read. */
typedef struct error_reading {
    sj_compare *compare;
    size_t sample;
    int side;
} error_reading;

static sj_status read_error(void *context, sqlite3_stmt *row)
{
    const error_reading *reading = context;
    raise_error(reading->compare, row, reading->sample, reading->side);
    return SJ_OK;
}

sj_status sj_compare_read_errors(sj_compare *compare, sqlite3 *database, int side, sj_error *error)
{
    static const char sql[] =
        "SELECT f.symbol_key, s.error_ns, s.calls, s.sampled_calls FROM function_stats AS s JOIN "
        "functions AS f USING (function_id) WHERE s.session_id = ?1 AND s.error_ns > 0";
    const size_t first = side == 0 ? 0 : compare->sets[0].count;
    for (size_t i = 0; i < compare->sets[side].count; ++i) {
        error_reading reading = {.compare = compare, .sample = first + i, .side = side};
        SJ_TRY(sj_sql_each(database, sql, SJ_SQL_INTS(compare->sets[side].samples[i].session_id),
                           read_error, &reading, error));
    }
    return SJ_OK;
}
