#include "collector-server/cli/waits.h"

#include "collector-server/cli/wait_steps.h"
#include "collector-server/store/sql.h"
#include "proto/base/array.h"
#include "schema/queries/cli/waits.h"

#include <stdlib.h>

enum { NO_NODE = 0, MOST_FRAMES = 4096, MOST_CALLS = 4 * 1024 * 1024 };

/* A call path with long calls. Node 0 is the caller of all roots. */
typedef struct wait_node {
    int64_t function_id;
    uint32_t first_callee, next; /* NO_NODE: none */
    bool is_known;               /* `parts` has the sum of at least one call */
    sj_waits_parts parts;
} wait_node;

typedef struct function_parts {
    int64_t function_id;
    sj_waits_parts parts;
    bool is_measured; /* from the measured CPU time of the function */
} function_parts;

struct sj_waits {
    wait_node *nodes;
    size_t node_count, node_capacity;
    function_parts *functions; /* sorted by id */
    size_t function_count, function_capacity;
};

/* A call on the stack of open calls. */
typedef struct wait_frame {
    int64_t call_id;
    int64_t function_id;
    uint32_t node;
} wait_frame;

/* The state of a loop through the long calls, in the order of their entries. */
typedef struct wait_walk {
    sj_waits *waits;
    sj_wait_steps steps;
    sqlite3_stmt *caller; /* reads one call by its id */
    wait_frame frames[MOST_FRAMES];
    size_t depth;
    size_t calls;
} wait_walk;

static int compare_functions(const void *one, const void *other)
{
    const function_parts *a = one;
    const function_parts *b = other;
    return (a->function_id > b->function_id) - (a->function_id < b->function_id);
}

static uint32_t find_callee(const sj_waits *waits, uint32_t node, int64_t function_id)
{
    uint32_t callee = waits->nodes[node].first_callee;
    while (callee != NO_NODE && waits->nodes[callee].function_id != function_id) {
        callee = waits->nodes[callee].next;
    }
    return callee;
}

static sj_status find_or_add_callee(sj_waits *waits, uint32_t node, int64_t function_id,
                                    uint32_t *callee)
{
    *callee = find_callee(waits, node, function_id);
    if (*callee != NO_NODE) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&waits->nodes, &waits->node_capacity, waits->node_count, 1,
                            sizeof(*waits->nodes)));
    *callee = (uint32_t)waits->node_count++;
    waits->nodes[*callee] =
        (wait_node){.function_id = function_id, .next = waits->nodes[node].first_callee};
    waits->nodes[node].first_callee = *callee;
    return SJ_OK;
}

static sj_status push_frame(wait_walk *walk, int64_t call_id, int64_t function_id)
{
    if (walk->depth == MOST_FRAMES) {
        return SJ_ELIMIT;
    }
    uint32_t node;
    SJ_TRY(find_or_add_callee(walk->waits,
                              walk->depth != 0 ? walk->frames[walk->depth - 1].node : 0,
                              function_id, &node));
    walk->frames[walk->depth++] =
        (wait_frame){.call_id = call_id, .function_id = function_id, .node = node};
    return SJ_OK;
}

/* Makes a call's caller the innermost frame. A caller may be missing among the long calls, because
 * it has not ended: then reads it from the database. */
static sj_status set_innermost_frame(wait_walk *walk, int64_t parent_id)
{
    int64_t missing[MOST_FRAMES][2];
    size_t count = 0;
    while (parent_id != 0 && count < MOST_FRAMES) {
        size_t at = walk->depth;
        while (at > 0 && walk->frames[at - 1].call_id != parent_id) {
            at--;
        }
        if (at > 0) {
            walk->depth = at;
            break;
        }
        sqlite3_reset(walk->caller);
        sqlite3_bind_int64(walk->caller, 1, parent_id);
        if (sqlite3_step(walk->caller) != SQLITE_ROW) {
            parent_id = 0;
            break;
        }
        missing[count][0] = parent_id;
        missing[count++][1] = sqlite3_column_int64(walk->caller, 1);
        parent_id = sqlite3_column_int64(walk->caller, 0);
    }
    walk->depth = parent_id == 0 ? 0 : walk->depth;
    while (count-- > 0) {
        SJ_TRY(push_frame(walk, missing[count][0], missing[count][1]));
    }
    return SJ_OK;
}

/* True if the innermost call is inside another call of the same function. */
static bool is_nested(const wait_walk *walk, int64_t function_id)
{
    for (size_t i = 0; i + 1 < walk->depth; i++) {
        if (walk->frames[i].function_id == function_id) {
            return true;
        }
    }
    return false;
}

static void add_parts(sj_waits_parts *sum, const sj_waits_parts *parts)
{
    sum->working_ns += parts->working_ns;
    sum->waiting_ns += parts->waiting_ns;
}

/* Adds a call to its call path. Adds it to its function unless a call of the same function contains
 * it. `row` is a row of sj_waits_calls_sql. */
static sj_status add_call(void *context, sqlite3_stmt *row)
{
    wait_walk *walk = context;
    const int64_t function_id = sqlite3_column_int64(row, 2);
    const int64_t start_ns = sqlite3_column_int64(row, 4);
    sj_waits *waits = walk->waits;
    sj_waits_parts parts;
    if (walk->calls++ == MOST_CALLS) {
        return SJ_ELIMIT;
    }
    SJ_TRY(set_innermost_frame(walk, sqlite3_column_int64(row, 1)));
    if (walk->depth == MOST_FRAMES) {
        return SJ_OK; /* a call deeper than MOST_FRAMES counts only in its callers */
    }
    SJ_TRY(push_frame(walk, sqlite3_column_int64(row, 0), function_id));
    sj_wait_steps_bound(&walk->steps, sqlite3_column_int64(row, 3), start_ns,
                        start_ns + sqlite3_column_int64(row, 5), &parts.working_ns,
                        &parts.waiting_ns);
    wait_node *node = &waits->nodes[walk->frames[walk->depth - 1].node];
    node->is_known = true;
    add_parts(&node->parts, &parts);
    if (is_nested(walk, function_id)) {
        return SJ_OK;
    }
    SJ_TRY(sj_array_reserve(&waits->functions, &waits->function_capacity, waits->function_count, 1,
                            sizeof(*waits->functions)));
    waits->functions[waits->function_count++] =
        (function_parts){.function_id = function_id, .parts = parts};
    return SJ_OK;
}

/* Merges the entries of each function into one: the measured entry if there is one, else the sum of
 * all. */
static void merge_functions(sj_waits *waits)
{
    size_t kept = 0;
    if (waits->function_count != 0) {
        qsort(waits->functions, waits->function_count, sizeof(*waits->functions),
              compare_functions);
    }
    for (size_t i = 0; i < waits->function_count; i++) {
        const function_parts *next = &waits->functions[i];
        function_parts *last = kept != 0 ? &waits->functions[kept - 1] : NULL;
        if (last == NULL || last->function_id != next->function_id) {
            waits->functions[kept++] = *next;
        } else if (next->is_measured) {
            *last = *next;
        } else if (!last->is_measured) {
            add_parts(&last->parts, &next->parts);
        }
    }
    waits->function_count = kept;
}

static sj_status read_calls(sqlite3 *database, wait_walk *walk, int64_t session_id,
                            const sj_call_choice *choice, sj_error *error)
{
    sqlite3_stmt *row = NULL;
    if (sqlite3_prepare_v2(database, sj_waits_calls_sql, -1, &row, NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot read the long calls: %s", sqlite3_errmsg(database));
    }
    sqlite3_bind_int64(row, 1, session_id);
    sqlite3_bind_int64(row, 2, SJ_WAITS_LEAST_NS);
    if (choice != NULL) {
        sj_call_choice_bind(choice, row);
    }
    const sj_status status = sj_sql_each_row(row, add_call, walk, error);
    sqlite3_finalize(row);
    return status;
}

/* Adds an entry for a function whose CPU time was measured. */
static sj_status add_cost(void *context, sqlite3_stmt *row)
{
    sj_waits *waits = context;
    SJ_TRY(sj_array_reserve(&waits->functions, &waits->function_capacity, waits->function_count, 1,
                            sizeof(*waits->functions)));
    waits->functions[waits->function_count++] =
        (function_parts){.function_id = sqlite3_column_int64(row, 0),
                         .parts.working_ns = sqlite3_column_int64(row, 1),
                         .parts.waiting_ns = sqlite3_column_int64(row, 2),
                         .is_measured = true};
    return SJ_OK;
}

/* Reads the measured times, which are sums over the whole session. */
static sj_status read_costs(sqlite3 *database, sj_waits *waits, int64_t session_id, sj_error *error)
{
    static const char sql[] =
        "SELECT c.function_id, c.cpu_ns, max(s.total_ns - c.cpu_ns, 0) FROM function_costs AS c "
        "JOIN function_stats AS s ON s.session_id = ?1 AND s.function_id = c.function_id "
        "WHERE c.session_id = ?1 AND c.cpu_ns IS NOT NULL"; /* perhaps only memory was measured */
    return sj_sql_each(database, sql, SJ_SQL_INTS(session_id), add_cost, waits, error);
}

static sj_status read_waits(sqlite3 *database, int64_t session_id, const sj_call_choice *choice,
                            wait_walk *walk, sj_error *error)
{
    sj_waits *waits = walk->waits;
    const bool all = choice == NULL || choice->selection == NULL;
    SJ_TRY(sj_wait_steps_read(database, session_id, &walk->steps, error));
    sj_status status =
        sj_array_reserve(&waits->nodes, &waits->node_capacity, 0, 1, sizeof(*waits->nodes));
    waits->node_count = 1;
    if (status == SJ_OK && walk->steps.count != 0) {
        status = sqlite3_prepare_v2(database,
                                    "SELECT parent_id, function_id FROM calls WHERE call_id = ?1",
                                    -1, &walk->caller, NULL) == SQLITE_OK
                     ? read_calls(database, walk, session_id, choice, error)
                     : sj_fail(error, SJ_EIO, "cannot read the long calls: %s",
                               sqlite3_errmsg(database));
    }
    if (status == SJ_OK && all) {
        status = read_costs(database, waits, session_id, error);
    }
    merge_functions(waits);
    return status;
}

sj_status sj_waits_read(sqlite3 *database, int64_t session_id, const sj_call_choice *choice,
                        sj_waits **waits, sj_error *error)
{
    wait_walk *walk = calloc(1, sizeof(*walk));
    sj_waits *waits_new = calloc(1, sizeof(*waits_new));
    sj_status status = walk != NULL && waits_new != NULL ? SJ_OK : SJ_ENOMEM;
    if (status == SJ_OK) {
        walk->waits = waits_new;
        status = read_waits(database, session_id, choice, walk, error);
        sqlite3_finalize(walk->caller);
        sj_wait_steps_deinit(&walk->steps);
    }
    free(walk);
    if (status != SJ_OK) {
        sj_waits_free(waits_new);
        return status == SJ_ENOMEM || status == SJ_ELIMIT
                   ? sj_fail(error, status,
                             "too many long calls to divide their time; use --from and --to")
                   : status;
    }
    *waits = waits_new;
    return SJ_OK;
}

void sj_waits_free(sj_waits *waits)
{
    if (waits != NULL) {
        free(waits->nodes);
        free(waits->functions);
        free(waits);
    }
}

static const function_parts *find_function(sqlite3_context *context, sqlite3_value *id)
{
    const sj_waits *waits = sqlite3_user_data(context);
    const function_parts key = {.function_id = sqlite3_value_int64(id)};
    return waits->function_count != 0 ? bsearch(&key, waits->functions, waits->function_count,
                                                sizeof(key), compare_functions)
                                      : NULL;
}

static void working_ns(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    (void)count;
    const function_parts *found = find_function(context, arguments[0]);
    if (found != NULL) {
        sqlite3_result_int64(context, found->parts.working_ns);
    }
}

static void waiting_ns(sqlite3_context *context, int count, sqlite3_value **arguments)
{
    (void)count;
    const function_parts *found = find_function(context, arguments[0]);
    if (found != NULL) {
        sqlite3_result_int64(context, found->parts.waiting_ns);
    }
}

sj_status sj_waits_register(sqlite3 *database, const sj_waits *waits, sj_error *error)
{
    const int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
    void *context = (void *)(uintptr_t)waits;
    return sqlite3_create_function(database, "working_ns", 1, flags, context, working_ns, NULL,
                                   NULL) == SQLITE_OK &&
                   sqlite3_create_function(database, "waiting_ns", 1, flags, context, waiting_ns,
                                           NULL, NULL) == SQLITE_OK
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "no memory for the columns of waits");
}

bool sj_waits_enter(const sj_waits *waits, sj_waits_walk *walk, int64_t depth, int64_t function_id,
                    sj_waits_parts *parts)
{
    if (depth < 0 || depth >= SJ_WAITS_DEPTH) {
        return false;
    }
    const uint32_t caller = depth > 0 ? walk->nodes[depth - 1] : 0;
    const bool has_caller = depth == 0 || caller != NO_NODE;
    walk->nodes[depth] = has_caller ? find_callee(waits, caller, function_id) : NO_NODE;
    const wait_node *node = &waits->nodes[walk->nodes[depth]];
    if (!node->is_known) {
        return false;
    }
    *parts = node->parts;
    return true;
}
