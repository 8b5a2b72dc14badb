/* call_tree(session_id), flame(session_id) and physical_tree(session_id): the call paths of a
 * session, depth first.
 *
 * call_tree and flame read the table call_paths. call_tree sorts siblings by total time, largest
 * first. flame sorts siblings by function name, for drawing. `left_ns` is the start of a path on an
 * axis as long as the session's total time. `open_calls` counts calls that had not ended when their
 * stream ended; `calls` includes such a call if the time of its end is known. If a session has too
 * many paths, its rarest are folded: of such a path, only the last function and its direct caller
 * are known. call_tree shows rare paths below roots named "CALLER (rare paths)". flame omits them;
 * their time stays in the totals of their callers.
 *
 * The optional arguments after the session are JSON arrays. `selection` is an array of [stream_id,
 * from_ns, to_ns]. The tree then has only the calls that began in one of these windows, and the
 * table reads the blocks of these calls. `callees_of` and `callers_of` are arrays of function_ids:
 * the tree shows the callees or the callers of these functions.
 *
 * physical_tree is call_tree by stack frames, unless it has a selection. A call that another call
 * jumped to (a tail call) is below the call that its frame returns to. The call that jumped ended
 * at the jump. physical_tree reads every call of the session.
 *
 * Design notes. A query loads all paths into memory and links each path to its caller. SQL's
 * recursion cannot sort and add up at the same time. A path takes about 130 bytes. */
#include "schema/queries/query/tree_table.h"
#include "collector-server/query/table_function.h"
#include "collector-server/query/tree_rows.h"
#include "collector-server/query/tree_window.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PHYSICAL "physical_tree"

enum {
    COLUMN_PATH_ID,
    COLUMN_PARENT_PATH_ID,
    COLUMN_FUNCTION_ID,
    COLUMN_NAME,
    COLUMN_DEPTH,
    COLUMN_CALLS,
    COLUMN_TOTAL_NS,
    COLUMN_SELF_NS,
    COLUMN_MIN_NS,
    COLUMN_MAX_NS,
    COLUMN_SHARE,
    COLUMN_LEFT_NS,
    COLUMN_OPEN_CALLS,
    COLUMN_CPU_NS, /* the first cost of measured calls */
    COLUMN_CPU_SELF_NS,
    COLUMN_ALLOCATIONS,
    COLUMN_ALLOCATED_BYTES,
    COLUMN_FREES,
    COLUMN_FREED_BYTES,
    COLUMN_NET_BYTES,
    COLUMN_ALLOCATED_SELF_BYTES,
    COLUMN_SESSION_ID, /* the first argument, a hidden column */
    COLUMN_SELECTION,
    COLUMN_CALLEES_OF,
    COLUMN_CALLERS_OF
};

enum { ARGUMENTS = 4, FIRST_COST = 11 /* first cost column of the statement tree_table_paths */ };

/* A stack frame that the next call may return to. */
typedef struct open_frame {
    int64_t call_id;
    uint32_t row;
} open_frame;

typedef struct tree_cursor {
    sqlite3_vtab_cursor base;
    sqlite3_stmt *frames;
    sqlite3_stmt *paths;
    sqlite3_stmt *name;
    sqlite3_stmt *open_paths;
    sqlite3_stmt *parts; /* windows of a selection; prepared at the first use */
    sj_tree_window window;
    sj_tree_rows tree;
    uint32_t *order;
    size_t at, order_count;
    int64_t session_id;
} tree_cursor;

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    static const char name_sql[] =
        "SELECT iif(?2, name || ' (rare paths)', name) FROM functions WHERE function_id = ?1";
    static const char open_sql[] = "SELECT path_id, open_calls FROM open_paths(?1)";
    tree_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    sqlite3 *database = ((sj_table *)base)->state->database;
    int result = sqlite3_prepare_v2(database, sj_tree_table_frames_sql, -1, &cursor->frames, NULL);
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(database, sj_tree_table_paths_sql, -1, &cursor->paths, NULL);
    }
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(database, name_sql, -1, &cursor->name, NULL);
    }
    if (result == SQLITE_OK) {
        result = sqlite3_prepare_v2(database, open_sql, -1, &cursor->open_paths, NULL);
    }
    if (result != SQLITE_OK) {
        sqlite3_finalize(cursor->frames);
        sqlite3_finalize(cursor->paths);
        sqlite3_finalize(cursor->name);
        sqlite3_free(cursor);
        return result;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    tree_cursor *cursor = (tree_cursor *)base;
    sqlite3_finalize(cursor->frames);
    sqlite3_finalize(cursor->paths);
    sqlite3_finalize(cursor->name);
    sqlite3_finalize(cursor->open_paths);
    sqlite3_finalize(cursor->parts);
    sj_tree_window_deinit(&cursor->window);
    sj_tree_rows_deinit(&cursor->tree);
    free(cursor->order);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

/* Sets the costs of the row that was added last. */
static bool load_cost(tree_cursor *cursor, sqlite3_stmt *row)
{
    sj_tree_cost cost = {0};
    for (int i = 0; i < SJ_TREE_COSTS; i++) {
        if (sqlite3_column_type(row, FIRST_COST + i) != SQLITE_NULL) {
            cost.sums[i] = sqlite3_column_int64(row, FIRST_COST + i);
            cost.known |= UINT32_C(1) << i;
        }
    }
    return cost.known == 0 ||
           sj_tree_rows_add_cost(&cursor->tree, (uint32_t)cursor->tree.count - 1, &cost);
}

static int add_path(void *context, sqlite3_stmt *path)
{
    tree_cursor *cursor = context;
    const sj_tree_row row = {
        .path_id = sqlite3_column_int64(path, 0),
        .parent_id = sqlite3_column_int64(path, 1),
        .function_id = sqlite3_column_int64(path, 2),
        .calls = sqlite3_column_int64(path, 3),
        .total_ns = sqlite3_column_int64(path, 4),
        .self_ns = sqlite3_column_int64(path, 5),
        .min_ns = sqlite3_column_int64(path, 6),
        .max_ns = sqlite3_column_int64(path, 7),
        .depth = sqlite3_column_int64(path, 8),
        .rank = (uint32_t)sqlite3_column_int64(path, 9),
        .is_rare = sqlite3_column_int(path, 10) != 0,
    };
    return sj_tree_rows_add(&cursor->tree, &row) && load_cost(cursor, path) ? SQLITE_OK
                                                                            : SQLITE_NOMEM;
}

static int load_paths(tree_cursor *cursor)
{
    sqlite3_bind_int64(cursor->paths, 1, cursor->session_id);
    return sj_tree_rows_begin(&cursor->tree) ? sj_sql_scan(cursor->paths, add_path, cursor)
                                             : SQLITE_NOMEM;
}

/* The stack frames that are open while calls are read. */
typedef struct frame_stack {
    tree_cursor *cursor;
    open_frame *frames;
    size_t depth, capacity;
} frame_stack;

static bool push_frame(tree_cursor *cursor, frame_stack *open, int64_t call_id, int64_t function_id)
{
    const uint32_t parent = open->depth > 0 ? open->frames[open->depth - 1].row : 0;
    const uint32_t row =
        sj_tree_rows_find_or_add(&cursor->tree, cursor->session_id, parent, function_id);
    if (row == 0 || sj_array_reserve(&open->frames, &open->capacity, open->depth, 1,
                                     sizeof(*open->frames)) != SJ_OK) {
        return false;
    }
    open->frames[open->depth++] = (open_frame){.call_id = call_id, .row = row};
    return true;
}

/* Adds calls sorted by call_id, the order in which a stream entered them. So the call that a frame
 * returns to is among the open frames. */
static int add_frame(void *context, sqlite3_stmt *call)
{
    frame_stack *open = context;
    tree_cursor *cursor = open->cursor;
    const int64_t call_id = sqlite3_column_int64(call, 0);
    const bool is_root = sqlite3_column_type(call, 1) == SQLITE_NULL;
    const int64_t caller = sqlite3_column_int64(call, 1);
    while (open->depth > 0 && (is_root || open->frames[open->depth - 1].call_id != caller)) {
        open->depth--;
    }
    const uint32_t parent = open->depth > 0 ? open->frames[open->depth - 1].row : 0;
    if (!push_frame(cursor, open, call_id, sqlite3_column_int64(call, 2))) {
        return SQLITE_NOMEM;
    }
    const uint32_t row = open->frames[open->depth - 1].row;
    cursor->tree.rows[row].open_calls += sqlite3_column_int64(call, 4);
    if (sqlite3_column_type(call, 3) != SQLITE_NULL) {
        sj_tree_rows_count(&cursor->tree, row, parent, sqlite3_column_int64(call, 3));
    }
    return SQLITE_OK;
}

/* Sets negative self times to 0. They arise where the time of callees was subtracted but the
 * caller's own duration is missing: open calls, and callers that are not selected. */
static void clamp_self_times(tree_cursor *cursor)
{
    for (size_t i = 0; i < cursor->tree.count; i++) {
        sj_tree_row *row = &cursor->tree.rows[i];
        row->self_ns = row->self_ns > 0 ? row->self_ns : 0;
    }
}

static int load_frames(tree_cursor *cursor)
{
    frame_stack open = {.cursor = cursor};
    int result = sj_tree_rows_begin(&cursor->tree) ? SQLITE_OK : SQLITE_NOMEM;
    sqlite3_bind_int64(cursor->frames, 1, cursor->session_id);
    if (result == SQLITE_OK) {
        result = sj_sql_scan(cursor->frames, add_frame, &open);
    }
    free(open.frames);
    clamp_self_times(cursor);
    return result;
}

static int add_part(void *context, sqlite3_stmt *part)
{
    tree_cursor *cursor = context;
    return sj_tree_window_add(&cursor->window, sj_table_of(&cursor->base)->state, &cursor->tree,
                              cursor->session_id, sqlite3_column_int64(part, 0),
                              sqlite3_column_int64(part, 1), sqlite3_column_int64(part, 2));
}

/* Makes the paths of the calls that began in a window of `selection`. */
static int load_selected(tree_cursor *cursor, sqlite3_value *selection)
{
    sj_query_state *state = sj_table_of(&cursor->base)->state;
    int result = sj_tree_rows_begin(&cursor->tree) ? SQLITE_OK : SQLITE_NOMEM;
    if (result == SQLITE_OK && cursor->parts == NULL) {
        result = sqlite3_prepare_v2(state->database,
                                    "SELECT value ->> 0, value ->> 1, value ->> 2 FROM "
                                    "json_each(?1)",
                                    -1, &cursor->parts, NULL);
    }
    if (result != SQLITE_OK) {
        return result;
    }
    sqlite3_bind_value(cursor->parts, 1, selection);
    result = sj_sql_scan(cursor->parts, add_part, cursor);
    clamp_self_times(cursor);
    return result;
}

/* Adds the function_ids of a JSON array to the set `functions`. */
static int put_function(void *functions, sqlite3_stmt *row)
{
    const sj_hash_entry entry = {.key = (uint64_t)sqlite3_column_int64(row, 0)};
    return sj_hash_map_put(functions, &entry) == SJ_OK ? SQLITE_OK : SQLITE_NOMEM;
}

static int read_functions(sqlite3 *database, sqlite3_value *list, sj_hash_map *functions)
{
    return sj_sql_scan_text(database, "SELECT DISTINCT value FROM json_each(?1)",
                            SJ_SQL_TEXT((const char *)sqlite3_value_text(list)), put_function,
                            functions);
}

/* Replaces the tree by the tree of the callers or callees of the functions in `list`. */
static int derive_tree(tree_cursor *cursor, sqlite3 *database, sqlite3_value *list, bool to_callers)
{
    sj_hash_map functions = {0};
    sj_tree_rows derived = {0};
    int result = read_functions(database, list, &functions);
    if (result == SQLITE_OK) {
        const bool succeeded =
            to_callers
                ? sj_tree_rows_callers(&cursor->tree, &functions, cursor->session_id, &derived)
                : sj_tree_rows_callees(&cursor->tree, &functions, cursor->session_id, &derived);
        result = succeeded ? SQLITE_OK : SQLITE_NOMEM;
        sj_tree_rows_deinit(&cursor->tree);
        cursor->tree = derived;
    }
    sj_hash_map_deinit(&functions);
    return result;
}

typedef struct sort_entry {
    int64_t time_key; /* negative total */
    uint32_t rank;
    uint32_t row;
} sort_entry;

static int compare_times(const void *left, const void *right)
{
    const sort_entry *a = left;
    const sort_entry *b = right;
    if (a->time_key != b->time_key) {
        return a->time_key < b->time_key ? -1 : 1;
    }
    return (a->row > b->row) - (a->row < b->row);
}

static int compare_names(const void *left, const void *right)
{
    const sort_entry *a = left;
    const sort_entry *b = right;
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    return (a->row > b->row) - (a->row < b->row);
}

/* Links every row to its parent and sorts siblings. The root becomes the parent if the parent is
 * missing, or if the parent does not come before the row, which would make a loop. If `by_name`,
 * omits rare paths. */
static int link_rows(tree_cursor *cursor, bool by_name)
{
    for (size_t i = 0; i < cursor->tree.count; ++i) {
        cursor->tree.rows[i].first_child = cursor->tree.rows[i].next_sibling = 0;
    }
    sort_entry *entries = malloc(cursor->tree.count * sizeof(*entries));
    if (entries == NULL) {
        return SQLITE_NOMEM;
    }
    for (size_t i = 1; i < cursor->tree.count; ++i) {
        entries[i - 1] =
            (sort_entry){-cursor->tree.rows[i].total_ns, cursor->tree.rows[i].rank, (uint32_t)i};
    }
    qsort(entries, cursor->tree.count - 1, sizeof(*entries),
          by_name ? compare_names : compare_times);
    /* The loop runs backwards, because it adds each row before its siblings. */
    for (size_t i = cursor->tree.count - 1; i-- > 0;) {
        sj_tree_row *row = &cursor->tree.rows[entries[i].row];
        if (by_name && row->is_rare) {
            continue;
        }
        uint32_t parent = sj_tree_rows_find(&cursor->tree, row->parent_id);
        parent = parent < entries[i].row ? parent : 0;
        row->next_sibling = cursor->tree.rows[parent].first_child;
        cursor->tree.rows[parent].first_child = entries[i].row;
    }
    free(entries);
    return SQLITE_OK;
}

/* Adds the number of open calls of each path. The root counts the open calls without a path. */
static int add_open_calls(void *context, sqlite3_stmt *path)
{
    tree_cursor *cursor = context;
    const uint32_t row = sj_tree_rows_find(&cursor->tree, sqlite3_column_int64(path, 0));
    cursor->tree.rows[row].open_calls += sqlite3_column_int64(path, 1);
    return SQLITE_OK;
}

static int count_open_calls(tree_cursor *cursor)
{
    sqlite3_bind_int64(cursor->open_paths, 1, cursor->session_id);
    return sj_sql_scan(cursor->open_paths, add_open_calls, cursor);
}

/* Raises the total time of a path to the total of its callees, if that is longer: the time of open
 * calls is missing. The root's total leaves out rare paths, because their time is part of other
 * paths. */
static void raise_totals(tree_cursor *cursor)
{
    for (size_t i = cursor->tree.count; i-- > 0;) {
        sj_tree_row *row = &cursor->tree.rows[i];
        int64_t callees_ns = 0;
        for (uint32_t child = row->first_child; child != 0;
             child = cursor->tree.rows[child].next_sibling) {
            callees_ns +=
                i != 0 || !cursor->tree.rows[child].is_rare ? cursor->tree.rows[child].total_ns : 0;
        }
        if (callees_ns > row->total_ns) {
            row->total_ns = callees_ns;
        }
    }
}

/* Writes the rows to `order`, depth first, and their start on the axis to left_ns. */
static int order_rows(tree_cursor *cursor)
{
    uint32_t *order = realloc(cursor->order, cursor->tree.count * sizeof(*order));
    uint32_t *stack = malloc(cursor->tree.count * sizeof(*stack));
    cursor->order = order != NULL ? order : cursor->order;
    if (order == NULL || stack == NULL) {
        free(stack);
        return SQLITE_NOMEM;
    }
    size_t top = 0;
    uint32_t next = cursor->tree.rows[0].first_child;
    int64_t left_ns = 0;
    cursor->order_count = 0;
    while (next != 0 || top != 0) {
        if (next == 0) {
            const sj_tree_row *done = &cursor->tree.rows[stack[--top]];
            left_ns = done->left_ns + done->total_ns;
            next = done->next_sibling;
            continue;
        }
        cursor->tree.rows[next].left_ns = left_ns;
        order[cursor->order_count++] = next;
        stack[top++] = next;
        next = cursor->tree.rows[next].first_child;
    }
    free(stack);
    return SQLITE_OK;
}

/* Makes the rows that the arguments ask for. Bit i of `given` says that argument i is in `argv`. */
static int load_tree(tree_cursor *cursor, int given, sqlite3_value **argv)
{
    const sj_table *table = sj_table_of(&cursor->base);
    sqlite3 *database = table->state->database;
    sqlite3_value *arguments[ARGUMENTS] = {NULL};
    for (int i = 0; i < ARGUMENTS; i++) {
        arguments[i] = (given >> i & 1) != 0 ? *argv++ : NULL;
        if (arguments[i] != NULL && sqlite3_value_type(arguments[i]) == SQLITE_NULL) {
            arguments[i] = NULL;
        }
    }
    const bool is_physical = strcmp(table->kind->name, PHYSICAL) == 0;
    cursor->session_id = arguments[0] != NULL ? sqlite3_value_int64(arguments[0]) : 0;
    int result = SQLITE_OK;
    if (arguments[1] != NULL) {
        result = load_selected(cursor, arguments[1]);
    } else {
        result = is_physical ? load_frames(cursor) : load_paths(cursor);
    }
    if (result == SQLITE_OK && !is_physical && arguments[1] == NULL) {
        result = count_open_calls(cursor);
    }
    if (result == SQLITE_OK && (arguments[2] != NULL || arguments[3] != NULL)) {
        result = derive_tree(cursor, database, arguments[arguments[2] != NULL ? 2 : 3],
                             arguments[2] == NULL);
    }
    return result;
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan;
    (void)argc;
    tree_cursor *cursor = (tree_cursor *)base;
    cursor->at = cursor->order_count = 0;
    int result = load_tree(cursor, given, argv);
    if (result == SQLITE_OK) {
        result = link_rows(cursor, sj_table_of(base)->kind->variant);
    }
    if (result == SQLITE_OK) {
        raise_totals(cursor);
        result = order_rows(cursor);
    }
    return result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    ++((tree_cursor *)base)->at;
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const tree_cursor *cursor = (const tree_cursor *)base;
    return cursor->at >= cursor->order_count;
}

static int give_name(tree_cursor *cursor, sqlite3_context *context, const sj_tree_row *row)
{
    sqlite3_bind_int64(cursor->name, 1, row->function_id);
    sqlite3_bind_int(cursor->name, 2, row->is_rare);
    const int result = sqlite3_step(cursor->name);
    if (result == SQLITE_ROW) {
        sqlite3_result_value(context, sqlite3_column_value(cursor->name, 0));
    }
    sqlite3_reset(cursor->name);
    return result == SQLITE_ROW || result == SQLITE_DONE ? SQLITE_OK : result;
}

/* Makes the value of a cost column the SQL result; NULL if the cost was not measured. */
static void give_cost(const sj_tree_cost *cost, sqlite3_context *context, int column)
{
    static const uint8_t places[] = {
        [0] = SJ_TREE_CPU_NS,
        [COLUMN_CPU_SELF_NS - COLUMN_CPU_NS] = SJ_TREE_CPU_SELF_NS,
        [COLUMN_ALLOCATIONS - COLUMN_CPU_NS] = SJ_TREE_ALLOCATIONS,
        [COLUMN_ALLOCATED_BYTES - COLUMN_CPU_NS] = SJ_TREE_ALLOCATED_BYTES,
        [COLUMN_FREES - COLUMN_CPU_NS] = SJ_TREE_FREES,
        [COLUMN_FREED_BYTES - COLUMN_CPU_NS] = SJ_TREE_FREED_BYTES,
        [COLUMN_NET_BYTES - COLUMN_CPU_NS] = SJ_TREE_FREED_BYTES,
        [COLUMN_ALLOCATED_SELF_BYTES - COLUMN_CPU_NS] = SJ_TREE_ALLOCATED_SELF_BYTES,
    };
    const uint8_t place = places[column - COLUMN_CPU_NS];
    if (cost == NULL || (cost->known >> place & 1) == 0) {
        return;
    }
    const bool is_net = column == COLUMN_NET_BYTES;
    sqlite3_result_int64(context, is_net ? cost->sums[SJ_TREE_ALLOCATED_BYTES] - cost->sums[place]
                                         : cost->sums[place]);
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    tree_cursor *cursor = (tree_cursor *)base;
    const sj_tree_row *row = &cursor->tree.rows[cursor->order[cursor->at]];
    const int64_t integers[] = {
        [COLUMN_PATH_ID] = row->path_id,
        [COLUMN_PARENT_PATH_ID] = row->parent_id,
        [COLUMN_FUNCTION_ID] = row->function_id,
        [COLUMN_NAME] = 0,
        [COLUMN_DEPTH] = row->depth,
        [COLUMN_CALLS] = row->calls,
        [COLUMN_TOTAL_NS] = row->total_ns,
        [COLUMN_SELF_NS] = row->self_ns,
        [COLUMN_MIN_NS] = row->min_ns,
        [COLUMN_MAX_NS] = row->max_ns,
        [COLUMN_SHARE] = 0,
        [COLUMN_LEFT_NS] = row->left_ns,
        [COLUMN_OPEN_CALLS] = row->open_calls,
        [COLUMN_SESSION_ID] = cursor->session_id,
    };
    if (column == COLUMN_NAME) {
        return give_name(cursor, context, row);
    }
    if (column >= COLUMN_CPU_NS && column < COLUMN_SESSION_ID) {
        give_cost(sj_tree_rows_cost(&cursor->tree, cursor->order[cursor->at]), context, column);
        return SQLITE_OK;
    }
    if (column == COLUMN_SHARE) {
        const int64_t root_ns = cursor->tree.rows[0].total_ns;
        sqlite3_result_double(context, root_ns > 0 ? (double)row->total_ns / (double)root_ns : 0.0);
        return SQLITE_OK;
    }
    const bool missing = column > COLUMN_SESSION_ID ||
                         (column == COLUMN_PARENT_PATH_ID && row->parent_id == 0) ||
                         (row->calls == 0 && (column == COLUMN_MIN_NS || column == COLUMN_MAX_NS));
    if (!missing) {
        sqlite3_result_int64(context, integers[column]);
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    const tree_cursor *cursor = (const tree_cursor *)base;
    *rowid = cursor->tree.rows[cursor->order[cursor->at]].path_id;
    return SQLITE_OK;
}

static const sqlite3_module tree_methods = SJ_TABLE_METHODS(sj_table_use_arguments);

int sj_register_trees(sj_query_state *state)
{
    static const sj_table_kind physical = {.name = PHYSICAL,
                                           .declaration = sj_tree_physical_columns_sql,
                                           .first_argument = COLUMN_SESSION_ID,
                                           .argument_count = ARGUMENTS,
                                           .required_count = 1,
                                           .rows = 5000,
                                           .cost = 1e7};
    static const sj_table_kind by_time = {.name = "call_tree",
                                          .declaration = sj_tree_call_columns_sql,
                                          .first_argument = COLUMN_SESSION_ID,
                                          .argument_count = ARGUMENTS,
                                          .required_count = 1,
                                          .rows = 5000,
                                          .cost = 50000};
    static const sj_table_kind by_name = {.name = "flame",
                                          .declaration = sj_tree_flame_columns_sql,
                                          .variant = true,
                                          .first_argument = COLUMN_SESSION_ID,
                                          .argument_count = ARGUMENTS,
                                          .required_count = 1,
                                          .rows = 5000,
                                          .cost = 50000};
    const sj_table_kind *const kinds[] = {&by_time, &by_name, &physical};
    int result = SQLITE_OK;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && result == SQLITE_OK; i++) {
        result = sj_table_register(state, kinds[i], &tree_methods);
    }
    return result;
}
