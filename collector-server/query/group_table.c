/* The table function call_groups(keys [, session_id ...]): sums of calls, grouped by several keys,
 * in one scan of the blocks.
 *
 * Design notes. GROUP BY over `calls` would be slow: SQLite gets every call as a row, and sorts the
 * rows if there is more than one key. Here a row is a group (group_walk.h). */
#include "schema/queries/query/group_table.h"
#include "collector-server/query/group_walk.h"
#include "collector-server/query/table_function.h"

#include <stdlib.h>
#include <string.h>

/* All keys except the last, bucket:NANOSECONDS. */
static const char *const key_names[SJ_KEY_BUCKET] = {
    [SJ_KEY_SESSION] = "session", [SJ_KEY_PROCESS] = "process", [SJ_KEY_THREAD] = "thread",
    [SJ_KEY_STREAM] = "stream",   [SJ_KEY_MODULE] = "module",   [SJ_KEY_FUNCTION] = "function",
    [SJ_KEY_CALLER] = "caller",   [SJ_KEY_MARK] = "mark",       [SJ_KEY_DEPTH] = "depth",
};

enum {
    COLUMN_CALLS = SJ_GROUP_KEYS, /* after one column per key, in the order of sj_group_key */
    COLUMN_OPEN,
    COLUMN_DURATION_NS,
    COLUMN_SELF_NS,
    COLUMN_MIN_NS,
    COLUMN_MAX_NS,
    COLUMN_P50_NS,
    COLUMN_P90_NS,
    COLUMN_P99_NS,
    COLUMN_HISTOGRAM,
    COLUMN_KEYS /* from here on: hidden columns, the arguments */
};

typedef enum argument {
    ARGUMENT_KEYS,
    ARGUMENT_SESSION,
    ARGUMENT_FROM,
    ARGUMENT_TO,
    ARGUMENT_THREAD,
    ARGUMENT_FUNCTION,
    ARGUMENT_CALLER,
    ARGUMENT_SHORTEST,
    ARGUMENT_LONGEST,
    ARGUMENT_SHALLOWEST,
    ARGUMENT_DEEPEST,
    ARGUMENT_ENDING,
    ARGUMENT_POSITION,
    ARGUMENT_VALUE,
    ARGUMENT_LEAST_VALUE,
    ARGUMENT_GREATEST_VALUE,
    ARGUMENTS
} argument;

/* A bit of idxNum, above one bit per given argument: the query uses quantiles or histograms. */
enum { WITH_HISTOGRAM = 1 << 20 };

typedef struct group_cursor {
    sqlite3_vtab_cursor base;
    sj_block_scan scan;
    bool is_open;
    sj_group_walk walk;
    sqlite3_value *given[ARGUMENTS]; /* NULL: not given, or given as NULL */
    size_t at;                       /* number of the current group */
} group_cursor;

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    group_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static void free_arguments(group_cursor *cursor)
{
    for (int i = 0; i < ARGUMENTS; ++i) {
        sqlite3_value_free(cursor->given[i]);
        cursor->given[i] = NULL;
    }
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    group_cursor *cursor = (group_cursor *)base;
    if (cursor->is_open) {
        sj_block_scan_close(&cursor->scan);
    }
    sj_group_walk_close(&cursor->walk);
    free_arguments(cursor);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const sqlite3_uint64 histogram_columns =
        UINT64_C(1) << COLUMN_P50_NS | UINT64_C(1) << COLUMN_P90_NS | UINT64_C(1) << COLUMN_P99_NS |
        UINT64_C(1) << COLUMN_HISTOGRAM;
    const int result = sj_table_use_arguments(base, info);
    info->idxNum |= (info->colUsed & histogram_columns) != 0 ? WITH_HISTOGRAM : 0;
    return result;
}

static int fail(group_cursor *cursor, const char *why)
{
    sqlite3_free(cursor->base.pVtab->zErrMsg);
    cursor->base.pVtab->zErrMsg = sqlite3_mprintf("call_groups: %s", why);
    return SQLITE_ERROR;
}

/* Parses one key: a name, or bucket:NANOSECONDS. Returns false if it is not a key. */
static bool parse_key(sj_group_question *asked, const char *text, size_t length)
{
    static const char bucket[] = "bucket:";
    if (length > sizeof(bucket) - 1 && memcmp(text, bucket, sizeof(bucket) - 1) == 0) {
        char *end;
        asked->bucket_ns = strtoll(text + sizeof(bucket) - 1, &end, 10);
        asked->by[SJ_KEY_BUCKET] = asked->bucket_ns > 0 && end == text + length;
        return asked->by[SJ_KEY_BUCKET];
    }
    for (size_t i = 0; i < SJ_KEY_BUCKET; ++i) {
        if (strlen(key_names[i]) == length && memcmp(key_names[i], text, length) == 0) {
            asked->by[i] = true;
            return true;
        }
    }
    return false;
}

static bool parse_keys(sj_group_question *asked, const char *text)
{
    while (text != NULL && *text != '\0') {
        text += strspn(text, " ");
        const size_t length = strcspn(text, ", ");
        if (!parse_key(asked, text, length)) {
            return false;
        }
        text += length;
        text += strspn(text, " ");
        if (*text == ',' && text[1 + strspn(text + 1, " ")] == '\0') {
            return false;
        }
        text += *text == ',';
    }
    return true;
}

static bool parse_ending(const group_cursor *cursor, int *ending)
{
    static const char *const names[] = {"returned", "unwound", "open", "truncated"};
    *ending = SJ_ANY_ENDING;
    if (cursor->given[ARGUMENT_ENDING] == NULL) {
        return true;
    }
    const char *text = (const char *)sqlite3_value_text(cursor->given[ARGUMENT_ENDING]);
    for (int i = 0; text != NULL && i < (int)(sizeof(names) / sizeof(names[0])); ++i) {
        if (strcmp(text, names[i]) == 0) {
            *ending = i;
        }
    }
    return *ending != SJ_ANY_ENDING;
}

/* Writes an argument to `*value` if it is given. Returns whether it is given. */
static bool read_limit(const group_cursor *cursor, argument which, int64_t *value)
{
    const bool is_given = cursor->given[which] != NULL;
    *value = is_given ? sqlite3_value_int64(cursor->given[which]) : *value;
    return is_given;
}

static void make_filter(const group_cursor *cursor, sj_group_question *asked)
{
    sj_scan_filter *filter = &asked->filter;
    *filter = sj_scan_everything;
    read_limit(cursor, ARGUMENT_SESSION, &filter->first_session);
    read_limit(cursor, ARGUMENT_SESSION, &filter->last_session);
    read_limit(cursor, ARGUMENT_FROM, &filter->first_start_ns);
    if (read_limit(cursor, ARGUMENT_TO, &filter->last_start_ns) &&
        filter->last_start_ns != INT64_MIN) {
        --filter->last_start_ns;
    }
    read_limit(cursor, ARGUMENT_SHALLOWEST, &filter->min_depth);
    read_limit(cursor, ARGUMENT_DEEPEST, &filter->max_depth);
    filter->by_thread = read_limit(cursor, ARGUMENT_THREAD, &filter->thread_id);
    filter->by_function = read_limit(cursor, ARGUMENT_FUNCTION, &filter->function_id);
    filter->by_caller = read_limit(cursor, ARGUMENT_CALLER, &filter->caller_function_id);
    asked->longest_ns = INT64_MAX;
    filter->ended = read_limit(cursor, ARGUMENT_SHORTEST, &filter->min_duration_ns);
    filter->ended |= read_limit(cursor, ARGUMENT_LONGEST, &asked->longest_ns);
}

static void make_value_filter(const group_cursor *cursor, sj_group_question *asked)
{
    sqlite3_value *const *given = cursor->given;
    sqlite3_value *same = given[ARGUMENT_VALUE];
    asked->values = (sj_value_filter){
        .position = given[ARGUMENT_POSITION],
        .same = same,
        .least = given[ARGUMENT_LEAST_VALUE],
        .greatest = given[ARGUMENT_GREATEST_VALUE],
    };
    asked->by_value = asked->values.position != NULL || same != NULL ||
                      asked->values.least != NULL || asked->values.greatest != NULL;
}

/* Copies the given arguments that are not NULL. */
static int read_arguments(group_cursor *cursor, int given, sqlite3_value **argv)
{
    free_arguments(cursor);
    for (int i = 0, next = 0; i < ARGUMENTS; ++i) {
        if ((given >> i & 1) == 0) {
            continue;
        }
        sqlite3_value *value = argv[next++];
        if (sqlite3_value_type(value) != SQLITE_NULL &&
            (cursor->given[i] = sqlite3_value_dup(value)) == NULL) {
            return SQLITE_NOMEM;
        }
    }
    return SQLITE_OK;
}

static int make_question(group_cursor *cursor, sj_group_question *asked)
{
    sqlite3_value *keys = cursor->given[ARGUMENT_KEYS];
    if (!parse_keys(asked, keys != NULL ? (const char *)sqlite3_value_text(keys) : NULL)) {
        return fail(cursor, "keys are a list of session, process, thread, stream, module, "
                            "function, caller, mark, depth and bucket:NANOSECONDS");
    }
    if (!parse_ending(cursor, &asked->ending)) {
        return fail(cursor, "ended_as is returned, unwound, open or truncated");
    }
    make_filter(cursor, asked);
    make_value_filter(cursor, asked);
    return SQLITE_OK;
}

static int open_walk(group_cursor *cursor)
{
    sj_query_state *state = sj_table_of(&cursor->base)->state;
    if (cursor->is_open) {
        return SQLITE_OK;
    }
    cursor->is_open = true;
    const int result = sj_block_scan_open(&cursor->scan, state);
    return result == SQLITE_OK ? sj_group_walk_open(&cursor->walk, state->database) : result;
}

static int add_blocks(group_cursor *cursor, const sj_group_question *asked)
{
    sj_block_scan *scan = &cursor->scan;
    int result = sj_group_walk_start(&cursor->walk, scan->state->database, asked);
    if (result == SQLITE_OK) {
        result = sj_block_scan_start(scan, &asked->filter, SJ_SCAN_SUMS);
    }
    while (result == SQLITE_OK && (result = sj_block_scan_next(scan)) == SQLITE_ROW) {
        result = sj_group_walk_add(&cursor->walk, scan);
    }
    return result == SQLITE_FULL
               ? fail(cursor, "more groups than fit in memory; fewer keys, a wider bucket or a "
                              "shorter time make fewer")
               : (result == SQLITE_DONE ? SQLITE_OK : result);
}

static int filter_rows(sqlite3_vtab_cursor *base, int plan_number, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan;
    (void)argc;
    group_cursor *cursor = (group_cursor *)base;
    sj_group_question asked = {.histogram = (plan_number & WITH_HISTOGRAM) != 0};
    cursor->at = 0;
    int result = read_arguments(cursor, plan_number & (WITH_HISTOGRAM - 1), argv);
    if (result == SQLITE_OK) {
        result = make_question(cursor, &asked);
    }
    if (result == SQLITE_OK) {
        result = open_walk(cursor);
    }
    return result == SQLITE_OK ? add_blocks(cursor, &asked) : result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    ++((group_cursor *)base)->at;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const group_cursor *cursor = (const group_cursor *)base;
    return cursor->at >= cursor->walk.groups.count;
}

/* Writes a column that is NULL for a group in which no call ended. */
static void give_durations(const sj_call_group *group, sqlite3_context *context, int column)
{
    if (group->calls == 0) {
        return;
    }
    switch (column) {
    case COLUMN_MIN_NS:
        sqlite3_result_int64(context, group->min_ns);
        break;
    case COLUMN_MAX_NS:
        sqlite3_result_int64(context, group->max_ns);
        break;
    case COLUMN_HISTOGRAM:
        sj_result_histogram(context, &group->durations);
        break;
    default: {
        const double q = column == COLUMN_P50_NS ? 0.5 : column == COLUMN_P90_NS ? 0.9 : 0.99;
        sqlite3_result_int64(context, sj_call_groups_quantile(group, q));
    }
    }
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const group_cursor *cursor = (const group_cursor *)base;
    const sj_call_group *group = &cursor->walk.groups.groups[cursor->at];
    if (column < SJ_GROUP_KEYS) {
        if (cursor->walk.asked.by[column] && group->keys[column] != SJ_NO_KEY) {
            sqlite3_result_int64(context, group->keys[column]);
        }
        return SQLITE_OK;
    }
    switch (column) {
    case COLUMN_CALLS:
        sqlite3_result_int64(context, (sqlite3_int64)group->calls);
        break;
    case COLUMN_OPEN:
        sqlite3_result_int64(context, (sqlite3_int64)group->open);
        break;
    case COLUMN_DURATION_NS:
        sqlite3_result_int64(context, group->duration_ns);
        break;
    case COLUMN_SELF_NS:
        sqlite3_result_int64(context, group->self_ns);
        break;
    default:
        if (column < COLUMN_KEYS) {
            give_durations(group, context, column);
        } else if (cursor->given[column - COLUMN_KEYS] != NULL) {
            sqlite3_result_value(context, cursor->given[column - COLUMN_KEYS]);
        }
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = (sqlite3_int64)((const group_cursor *)base)->at;
    return SQLITE_OK;
}

static const sqlite3_module group_module = SJ_TABLE_METHODS(best_index);

int sj_register_call_groups(sj_query_state *state)
{
    static const sj_table_kind kind = {.name = "call_groups",
                                       .declaration = sj_group_columns_sql,
                                       .first_argument = COLUMN_KEYS,
                                       .argument_count = ARGUMENTS,
                                       .required_count = 1,
                                       .rows = 1000,
                                       .cost = 1e6};
    return sj_table_register(state, &kind, &group_module);
}
