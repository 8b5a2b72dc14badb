/* call_groups(keys [, session_id ...]): calls summed by several keys in one walk over the blocks.
 *
 * Design notes. SQLite lets no cursor compute aggregates, and sorts the rows of a GROUP BY with
 * more than one key; here they never leave the cursor. The rows are those of `calls`, and sums are
 * made of their nanoseconds, so that both answer the same. Keys of a stream are set once; the group
 * of each dictionary entry is remembered as long as the other keys of its calls stay the same. */
#include "collector-server/query/block_scan.h"
#include "collector-server/query/call_groups.h"
#include "collector-server/query/table_function.h"

#include <stdlib.h>
#include <string.h>

typedef enum key_kind {
    KEY_SESSION,
    KEY_PROCESS,
    KEY_THREAD,
    KEY_STREAM,
    KEY_MODULE,
    KEY_FUNCTION,
    KEY_CALLER,
    KEY_DEPTH,
    KEY_BUCKET
} key_kind;
_Static_assert(KEY_BUCKET + 1 == SJ_GROUP_KEYS, "each key has its column");

static const char *const key_names[SJ_GROUP_KEYS] = {
    "session", "process", "thread", "stream", "module", "function", "caller", "depth", "bucket"};

enum {
    COLUMN_CALLS = SJ_GROUP_KEYS, /* columns of the keys come first, in their order */
    COLUMN_OPEN,
    COLUMN_DURATION_NS,
    COLUMN_SELF_NS,
    COLUMN_MIN_NS,
    COLUMN_MAX_NS,
    COLUMN_P50_NS,
    COLUMN_P90_NS,
    COLUMN_P99_NS,
    COLUMN_HISTOGRAM,
    COLUMN_KEYS /* hidden from here on: arguments */
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
    ARGUMENTS
} argument;

enum { WITH_HISTOGRAM = 1 << 20 }; /* of idxNum, beside a bit for each argument given */

#define NO_KEY INT64_MIN /* NULL */

/* The group of a dictionary entry's last call. */
typedef struct last_group {
    uint32_t number; /* plus 1; 0: none */
    int64_t caller, depth, bucket;
} last_group;

typedef struct group_cursor {
    sqlite3_vtab_cursor base;
    sj_block_scan scan;
    bool scan_open;
    sqlite3_stmt *process, *module;
    sj_scan_filter filter;
    int64_t longest_ns;
    bool has_longest;
    bool by[SJ_GROUP_KEYS];
    int64_t bucket_ns;
    bool histogram;
    sj_call_groups groups;
    int64_t keys[SJ_GROUP_KEYS]; /* of the stream, then of the call */
    int64_t stream_id;           /* that `keys` is of */
    last_group *last;
    int64_t *modules; /* by dictionary entry */
    size_t entry_capacity;
    int64_t given[ARGUMENTS];
    unsigned given_bits;
    char *keys_text;
    size_t at;
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

static int close_cursor(sqlite3_vtab_cursor *base)
{
    group_cursor *cursor = (group_cursor *)base;
    if (cursor->scan_open) {
        sj_block_scan_close(&cursor->scan);
    }
    sqlite3_finalize(cursor->process);
    sqlite3_finalize(cursor->module);
    sj_call_groups_clear(&cursor->groups);
    free(cursor->last);
    free(cursor->modules);
    sqlite3_free(cursor->keys_text);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const sqlite3_uint64 of_histogram =
        UINT64_C(1) << COLUMN_P50_NS | UINT64_C(1) << COLUMN_P90_NS | UINT64_C(1) << COLUMN_P99_NS |
        UINT64_C(1) << COLUMN_HISTOGRAM;
    const int result = sj_table_take_arguments(base, info);
    info->idxNum |= (info->colUsed & of_histogram) != 0 ? WITH_HISTOGRAM : 0;
    return result;
}

static int fail(group_cursor *cursor, const char *why)
{
    sqlite3_free(cursor->base.pVtab->zErrMsg);
    cursor->base.pVtab->zErrMsg = sqlite3_mprintf("call_groups: %s", why);
    return SQLITE_ERROR;
}

static int fail_status(group_cursor *cursor, sj_status status)
{
    return status == SJ_ENOMEM
               ? SQLITE_NOMEM
               : fail(cursor, "more groups than fit in memory; fewer keys, a wider bucket or a "
                              "shorter time make fewer");
}

/* One key of the list: a name, or bucket:NANOSECONDS. */
static bool take_key(group_cursor *cursor, const char *text, size_t length)
{
    static const char bucket[] = "bucket:";
    if (length > sizeof(bucket) - 1 && memcmp(text, bucket, sizeof(bucket) - 1) == 0) {
        char *end;
        cursor->bucket_ns = strtoll(text + sizeof(bucket) - 1, &end, 10);
        cursor->by[KEY_BUCKET] = cursor->bucket_ns > 0 && end == text + length;
        return cursor->by[KEY_BUCKET];
    }
    for (size_t i = 0; i < KEY_BUCKET; ++i) {
        if (strlen(key_names[i]) == length && memcmp(key_names[i], text, length) == 0) {
            cursor->by[i] = true;
            return true;
        }
    }
    return false;
}

static bool take_keys(group_cursor *cursor, const char *text)
{
    memset(cursor->by, 0, sizeof(cursor->by));
    while (text != NULL && *text != '\0') {
        text += strspn(text, " ");
        const size_t length = strcspn(text, ", ");
        if (!take_key(cursor, text, length)) {
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

static bool is_given(const group_cursor *cursor, argument which)
{
    return (cursor->given_bits >> which & 1u) != 0;
}

static void bound(const group_cursor *cursor, argument which, int64_t *value)
{
    *value = is_given(cursor, which) ? cursor->given[which] : *value;
}

static void make_filter(group_cursor *cursor)
{
    sj_scan_filter *filter = &cursor->filter;
    *filter = sj_scan_everything;
    bound(cursor, ARGUMENT_SESSION, &filter->first_session);
    bound(cursor, ARGUMENT_SESSION, &filter->last_session);
    bound(cursor, ARGUMENT_FROM, &filter->first_start_ns);
    bound(cursor, ARGUMENT_TO, &filter->last_start_ns);
    if (is_given(cursor, ARGUMENT_TO) && filter->last_start_ns != INT64_MIN) {
        --filter->last_start_ns;
    }
    bound(cursor, ARGUMENT_SHALLOWEST, &filter->min_depth);
    bound(cursor, ARGUMENT_DEEPEST, &filter->max_depth);
    bound(cursor, ARGUMENT_SHORTEST, &filter->min_duration_ns);
    filter->by_thread = is_given(cursor, ARGUMENT_THREAD);
    bound(cursor, ARGUMENT_THREAD, &filter->thread_id);
    filter->by_function = is_given(cursor, ARGUMENT_FUNCTION);
    bound(cursor, ARGUMENT_FUNCTION, &filter->function_id);
    filter->by_caller = is_given(cursor, ARGUMENT_CALLER);
    bound(cursor, ARGUMENT_CALLER, &filter->caller_function_id);
    cursor->has_longest = is_given(cursor, ARGUMENT_LONGEST);
    cursor->longest_ns = INT64_MAX;
    bound(cursor, ARGUMENT_LONGEST, &cursor->longest_ns);
    filter->ended = is_given(cursor, ARGUMENT_SHORTEST) || cursor->has_longest;
}

/* The number that a lookup by id gives; NO_KEY when it gives none. */
static int look_up(sqlite3_stmt *statement, int64_t id, int64_t *found)
{
    sqlite3_bind_int64(statement, 1, id);
    const int result = sqlite3_step(statement);
    *found = result == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : NO_KEY;
    sqlite3_reset(statement);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

static int enter_stream(group_cursor *cursor)
{
    const sj_block_scan *scan = &cursor->scan;
    if (cursor->stream_id == scan->stream_id) {
        return SQLITE_OK;
    }
    cursor->stream_id = scan->stream_id;
    cursor->keys[KEY_SESSION] = cursor->by[KEY_SESSION] ? scan->session.session_id : 0;
    cursor->keys[KEY_THREAD] = cursor->by[KEY_THREAD] ? scan->thread_id : 0;
    cursor->keys[KEY_STREAM] = cursor->by[KEY_STREAM] ? scan->stream_id : 0;
    cursor->keys[KEY_PROCESS] = 0;
    return cursor->by[KEY_PROCESS]
               ? look_up(cursor->process, scan->thread_id, &cursor->keys[KEY_PROCESS])
               : SQLITE_OK;
}

static int enter_block(group_cursor *cursor)
{
    const sj_block_scan *scan = &cursor->scan;
    const size_t count = scan->block.function_count;
    if (count > cursor->entry_capacity) {
        last_group *last = realloc(cursor->last, count * sizeof(*last));
        cursor->last = last != NULL ? last : cursor->last;
        int64_t *modules = realloc(cursor->modules, count * sizeof(*modules));
        cursor->modules = modules != NULL ? modules : cursor->modules;
        if (last == NULL || modules == NULL) {
            return SQLITE_NOMEM;
        }
        cursor->entry_capacity = count;
    }
    int result = SQLITE_OK;
    for (size_t i = 0; i < count && result == SQLITE_OK; ++i) {
        cursor->last[i] = (last_group){0};
        if (cursor->by[KEY_MODULE]) {
            result = look_up(cursor->module, scan->function_ids[i], &cursor->modules[i]);
        }
    }
    return result;
}

/* The function that called a row's call; NO_KEY: nothing recorded, or not known. */
static int64_t caller_of(group_cursor *cursor, size_t row)
{
    sj_block_scan *scan = &cursor->scan;
    const uint32_t parent = scan->rows.parents[row];
    const uint32_t depth = scan->rows.depths[row];
    int64_t function = 0;
    sj_stack_frame frame;
    if (parent != SJ_ROW_NO_PARENT) {
        function = scan->function_ids[scan->rows.symbols[parent]];
    } else if (depth != 0 && sj_block_scan_frame(scan, depth - 1, &frame) == SQLITE_OK) {
        function = sj_scan_function_id(&scan->session, frame.function);
    }
    return function != 0 ? function : NO_KEY;
}

static int64_t bucket_of(const group_cursor *cursor, int64_t ns)
{
    const int64_t into = ns % cursor->bucket_ns;
    int64_t bucket;
    const bool below = __builtin_sub_overflow(ns - into, into < 0 ? cursor->bucket_ns : 0, &bucket);
    return below ? -INT64_MAX : bucket; /* INT64_MIN stands for NULL */
}

/* Whether a row is asked for, by what is known without its caller. */
static bool row_matches(const group_cursor *cursor, size_t row)
{
    const sj_block_scan *scan = &cursor->scan;
    const sj_block_rows *rows = &scan->rows;
    const sj_scan_filter *filter = &cursor->filter;
    if (!scan->function_matches[rows->symbols[row]] || rows->depths[row] < filter->min_depth ||
        rows->depths[row] > filter->max_depth || rows->starts[row] < scan->session.first_start ||
        rows->starts[row] > scan->session.last_start) {
        return false;
    }
    if (!filter->ended) {
        return true;
    }
    const int64_t duration =
        sj_scan_ns(&scan->session, rows->ends[row]) - sj_scan_ns(&scan->session, rows->starts[row]);
    return rows->endings[row] != SJ_ENDING_OPEN && duration >= filter->min_duration_ns &&
           duration <= cursor->longest_ns;
}

/* The group of a row's call. */
static sj_status find_group(group_cursor *cursor, size_t row, int64_t caller, uint32_t *number)
{
    const sj_block_scan *scan = &cursor->scan;
    const uint32_t symbol = scan->rows.symbols[row];
    const last_group now = {
        .caller = cursor->by[KEY_CALLER] ? caller : 0,
        .depth = cursor->by[KEY_DEPTH] ? scan->rows.depths[row] : 0,
        .bucket = cursor->by[KEY_BUCKET]
                      ? bucket_of(cursor, sj_scan_ns(&scan->session, scan->rows.starts[row]))
                      : 0,
    };
    last_group *last = &cursor->last[symbol];
    if (last->number != 0 && last->caller == now.caller && last->depth == now.depth &&
        last->bucket == now.bucket) {
        *number = last->number - 1;
        return SJ_OK;
    }
    const int64_t function = scan->function_ids[symbol];
    cursor->keys[KEY_FUNCTION] = !cursor->by[KEY_FUNCTION] ? 0 : function != 0 ? function : NO_KEY;
    cursor->keys[KEY_MODULE] = cursor->by[KEY_MODULE] ? cursor->modules[symbol] : 0;
    cursor->keys[KEY_CALLER] = now.caller;
    cursor->keys[KEY_DEPTH] = now.depth;
    cursor->keys[KEY_BUCKET] = now.bucket;
    const sj_status status = sj_call_groups_find(&cursor->groups, cursor->keys, number);
    *last = now;
    last->number = status == SJ_OK ? *number + 1 : 0;
    return status;
}

static sj_status add_row(group_cursor *cursor, size_t row)
{
    const sj_block_rows *rows = &cursor->scan.rows;
    const sj_scan_session *session = &cursor->scan.session;
    const sj_scan_filter *filter = &cursor->filter;
    const int64_t caller =
        cursor->by[KEY_CALLER] || filter->by_caller ? caller_of(cursor, row) : NO_KEY;
    if (filter->by_caller && (caller == NO_KEY || caller != filter->caller_function_id)) {
        return SJ_OK;
    }
    uint32_t number;
    SJ_TRY(find_group(cursor, row, caller, &number));
    if (rows->endings[row] == SJ_ENDING_OPEN) {
        ++cursor->groups.groups[number].open;
        return SJ_OK;
    }
    return sj_call_groups_add(
        &cursor->groups, number,
        sj_scan_ns(session, rows->ends[row]) - sj_scan_ns(session, rows->starts[row]),
        sj_ticks_to_ns(&session->scale, rows->selves[row]), cursor->histogram);
}

static int add_block(group_cursor *cursor)
{
    int result = sj_block_scan_rows(&cursor->scan, true);
    if (result != SQLITE_OK) {
        return result == SQLITE_CORRUPT ? SQLITE_OK : result; /* it was named in the warnings */
    }
    result = enter_stream(cursor);
    if (result == SQLITE_OK) {
        result = enter_block(cursor);
    }
    for (size_t row = 0; result == SQLITE_OK && row < cursor->scan.rows.count; ++row) {
        if (row_matches(cursor, row)) {
            const sj_status status = add_row(cursor, row);
            result = status == SJ_OK ? SQLITE_OK : fail_status(cursor, status);
        }
    }
    return result;
}

static int open_scan(group_cursor *cursor)
{
    static const char process_sql[] =
        "SELECT p.process_id FROM threads AS t JOIN processes AS p ON p.session_id = t.session_id "
        "AND p.number = t.process_number WHERE t.thread_id = ?1";
    static const char module_sql[] = "SELECT module_id FROM functions WHERE function_id = ?1";
    sj_query_state *state = sj_table_of(&cursor->base)->state;
    if (cursor->scan_open) {
        return SQLITE_OK;
    }
    cursor->scan_open = true;
    int result = sj_block_scan_open(&cursor->scan, state);
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v3(state->database, process_sql, -1, SQLITE_PREPARE_PERSISTENT,
                                    &cursor->process, NULL);
    }
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v3(state->database, module_sql, -1, SQLITE_PREPARE_PERSISTENT,
                                    &cursor->module, NULL);
    }
    return result;
}

/* Takes the arguments; one that is NULL is as if it were not given. */
static int take_arguments(group_cursor *cursor, int given, sqlite3_value **argv)
{
    cursor->given_bits = 0;
    for (int i = 0, next = 0; i < ARGUMENTS; ++i) {
        if ((given >> i & 1) == 0) {
            continue;
        }
        sqlite3_value *value = argv[next++];
        if (i == ARGUMENT_KEYS) {
            sqlite3_free(cursor->keys_text);
            cursor->keys_text = sqlite3_mprintf("%s", sqlite3_value_text(value));
            if (cursor->keys_text == NULL) {
                return SQLITE_NOMEM;
            }
        } else if (sqlite3_value_type(value) != SQLITE_NULL) {
            cursor->given[i] = sqlite3_value_int64(value);
            cursor->given_bits |= 1u << i;
        }
    }
    if (!take_keys(cursor, cursor->keys_text)) {
        return fail(cursor, "keys are a list of session, process, thread, stream, module, "
                            "function, caller, depth and bucket:NANOSECONDS");
    }
    return SQLITE_OK;
}

static int filter_rows(sqlite3_vtab_cursor *base, int plan_number, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan;
    (void)argc;
    group_cursor *cursor = (group_cursor *)base;
    sj_call_groups_clear(&cursor->groups);
    cursor->at = 0;
    cursor->stream_id = INT64_MIN;
    cursor->histogram = (plan_number & WITH_HISTOGRAM) != 0;
    int result = take_arguments(cursor, plan_number & (WITH_HISTOGRAM - 1), argv);
    if (result == SQLITE_OK) {
        result = open_scan(cursor);
    }
    if (result != SQLITE_OK) {
        return result;
    }
    make_filter(cursor);
    result = sj_block_scan_start(&cursor->scan, &cursor->filter, SJ_SCAN_TIMES);
    while (result == SQLITE_OK && (result = sj_block_scan_next(&cursor->scan)) == SQLITE_ROW) {
        result = add_block(cursor);
    }
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    ++((group_cursor *)base)->at;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const group_cursor *cursor = (const group_cursor *)base;
    return cursor->at >= cursor->groups.count;
}

static void give_argument(const group_cursor *cursor, sqlite3_context *context, int which)
{
    if (which == ARGUMENT_KEYS) {
        sqlite3_result_text(context, cursor->keys_text, -1, SQLITE_TRANSIENT);
    } else if (is_given(cursor, (argument)which)) {
        sqlite3_result_int64(context, cursor->given[which]);
    }
}

/* Columns that only calls that ended have. */
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
    const sj_call_group *group = &cursor->groups.groups[cursor->at];
    if (column < SJ_GROUP_KEYS) {
        if (cursor->by[column] && group->keys[column] != NO_KEY) {
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
        if (column >= COLUMN_KEYS) {
            give_argument(cursor, context, column - COLUMN_KEYS);
        } else {
            give_durations(group, context, column);
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
    static const sj_table_kind kind = {
        .name = "call_groups",
        .declaration =
            "CREATE TABLE call_groups(session_id INTEGER, process_id INTEGER, thread_id INTEGER, "
            "stream_id INTEGER, module_id INTEGER, function_id INTEGER, "
            "caller_function_id INTEGER, depth INTEGER, bucket_ns INTEGER, calls INTEGER, "
            "open INTEGER, duration_ns INTEGER, self_ns INTEGER, min_ns INTEGER, max_ns INTEGER, "
            "p50_ns INTEGER, p90_ns INTEGER, p99_ns INTEGER, histogram BLOB, keys HIDDEN, "
            "in_session HIDDEN, from_ns HIDDEN, to_ns HIDDEN, in_thread HIDDEN, "
            "of_function HIDDEN, called_by HIDDEN, shortest_ns HIDDEN, longest_ns HIDDEN, "
            "least_depth HIDDEN, greatest_depth HIDDEN)",
        .first_argument = COLUMN_KEYS,
        .argument_count = ARGUMENTS,
        .required_count = 1,
        .rows = 1000,
        .cost = 1e6};
    return sj_table_register(state, &kind, &group_module);
}
