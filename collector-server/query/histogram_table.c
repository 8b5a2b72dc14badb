/* The table function histogram(blob [, session_id]): one row for each bin with a count, of a stored
 * histogram, lowest bin first. With a session, bounds are in nanoseconds, else in the unit of the
 * blob. */
#include "collector-server/query/session_clock.h"
#include "collector-server/query/table_function.h"
#include "proto/callgraph/histogram.h"

enum { COLUMN_LOW, COLUMN_HIGH, COLUMN_COUNT, COLUMN_SHARE, COLUMN_HISTOGRAM, COLUMN_SESSION_ID };

typedef struct histogram_cursor {
    sqlite3_vtab_cursor base;
    sj_histogram histogram;
    sqlite3_value *arguments[2];
    bool scaled; /* a session was given: `scale` is its clock */
    sj_tick_scale scale;
    uint32_t bin, bins; /* current bin, and number of bins */
    uint64_t total;     /* sum of all bins */
} histogram_cursor;

static uint64_t bin_count(const histogram_cursor *cursor, uint32_t bin)
{
    const uint32_t sub = bin & ((1u << SJ_HISTOGRAM_SUB_BITS) - 1);
    return cursor->histogram.octaves[bin >> SJ_HISTOGRAM_SUB_BITS].count[sub];
}

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    histogram_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static void clear_cursor(histogram_cursor *cursor)
{
    sj_histogram_deinit(&cursor->histogram);
    for (int i = 0; i < 2; ++i) {
        sqlite3_value_free(cursor->arguments[i]);
        cursor->arguments[i] = NULL;
    }
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    clear_cursor((histogram_cursor *)base);
    sqlite3_free(base);
    return SQLITE_OK;
}

static int fail(sqlite3_vtab_cursor *base, int result, const char *text)
{
    sqlite3_free(base->pVtab->zErrMsg);
    base->pVtab->zErrMsg = sqlite3_mprintf("%s", text);
    return result;
}

static int read_scale(histogram_cursor *cursor, int64_t session_id)
{
    sqlite3_stmt *statement = NULL;
    uint64_t started_ticks = 0;
    const int result =
        sj_session_clock_read(sj_table_of(&cursor->base)->state->database, &statement, session_id,
                              &cursor->scale, &started_ticks);
    sqlite3_finalize(statement);
    switch (result) {
    case SQLITE_NOTFOUND:
        return fail(&cursor->base, SQLITE_ERROR, "no session with the id given to histogram()");
    case SJ_SCAN_NO_CLOCK:
        return fail(&cursor->base, SQLITE_ERROR, "the session's clock makes no sense");
    default:
        return result;
    }
}

static void skip_empty(histogram_cursor *cursor)
{
    while (cursor->bin < cursor->bins && bin_count(cursor, cursor->bin) == 0) {
        ++cursor->bin;
    }
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan;
    histogram_cursor *cursor = (histogram_cursor *)base;
    clear_cursor(cursor);
    for (int i = 0; i < argc; ++i) {
        cursor->arguments[i] = sqlite3_value_dup(argv[i]);
    }
    cursor->bin = cursor->bins = 0;
    cursor->total = 0;
    cursor->scaled = (given & 2) != 0;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL) {
        return SQLITE_OK;
    }
    /* call it before sqlite3_value_bytes: it may convert the value */
    const void *data = sqlite3_value_blob(argv[0]);
    const sj_slice bytes = {data, (size_t)sqlite3_value_bytes(argv[0])};
    const sj_status status = sj_histogram_decode(bytes, &cursor->histogram);
    if (status != SJ_OK) {
        return status == SJ_ENOMEM ? SQLITE_NOMEM
                                   : fail(base, SQLITE_ERROR,
                                          "not a histogram of durations, or of a newer version");
    }
    cursor->bins = cursor->histogram.octave_count << SJ_HISTOGRAM_SUB_BITS;
    for (uint32_t i = 0; i < cursor->bins; ++i) {
        cursor->total += bin_count(cursor, i);
    }
    skip_empty(cursor);
    return cursor->scaled ? read_scale(cursor, sqlite3_value_int64(argv[1])) : SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    histogram_cursor *cursor = (histogram_cursor *)base;
    ++cursor->bin;
    skip_empty(cursor);
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const histogram_cursor *cursor = (const histogram_cursor *)base;
    return cursor->bin >= cursor->bins;
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const histogram_cursor *cursor = (const histogram_cursor *)base;
    const uint32_t bin = (cursor->histogram.first_octave << SJ_HISTOGRAM_SUB_BITS) + cursor->bin;
    const uint64_t count = bin_count(cursor, cursor->bin);
    if (column == COLUMN_LOW || column == COLUMN_HIGH) {
        const uint64_t bound =
            column == COLUMN_LOW ? sj_histogram_low(bin) : sj_histogram_high(bin);
        sqlite3_result_int64(context, cursor->scaled ? sj_ticks_to_ns(&cursor->scale, bound)
                                                     : (sqlite3_int64)bound);
    } else if (column == COLUMN_COUNT) {
        sqlite3_result_int64(context, (sqlite3_int64)count);
    } else if (column == COLUMN_SHARE) {
        sqlite3_result_double(context, (double)count / (double)cursor->total);
    } else if (cursor->arguments[column - COLUMN_HISTOGRAM] != NULL) {
        sqlite3_result_value(context, cursor->arguments[column - COLUMN_HISTOGRAM]);
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = ((const histogram_cursor *)base)->bin;
    return SQLITE_OK;
}

static const sqlite3_module histogram_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_histogram_table(sj_query_state *state)
{
    static const sj_table_kind kind = {
        .name = "histogram",
        .declaration =
            "CREATE TABLE histogram(low INTEGER, high INTEGER, count INTEGER, share REAL, "
            "histogram HIDDEN, session_id HIDDEN)",
        .first_argument = COLUMN_HISTOGRAM,
        .argument_count = 2,
        .required_count = 1,
        .rows = 50,
        .cost = 100};
    return sj_table_register(state, &kind, &histogram_methods);
}
