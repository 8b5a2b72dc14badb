/* Design notes. idxStr holds two characters for each constraint taken: the column ('a' + number)
 * and the operator (= < { > }, where { is <= and } is >=). Every one of them is decided exactly by
 * the cursor, so SQLite does not check again. Estimates count blocks: a block costs about 1
 * ms to decode, and a row costs the same whichever way it is found. */
#include "collector-server/query/calls_plan.h"

#include <math.h>

/* What a constraint leaves of the rows and of the blocks to decode, as fractions. */
typedef struct selectivity {
    double rows;
    double blocks;
} selectivity;

static char operator_code(unsigned char op)
{
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return '=';
    case SQLITE_INDEX_CONSTRAINT_LT:
        return '<';
    case SQLITE_INDEX_CONSTRAINT_LE:
        return '{';
    case SQLITE_INDEX_CONSTRAINT_GT:
        return '>';
    case SQLITE_INDEX_CONSTRAINT_GE:
        return '}';
    default:
        return '\0';
    }
}

static bool can_take(int column, char op)
{
    switch (column) {
    case SJ_CALLS_CALL_ID:
    case SJ_CALLS_SESSION_ID:
    case SJ_CALLS_STREAM_ID:
    case SJ_CALLS_START_NS:
    case SJ_CALLS_DEPTH:
        return true;
    case SJ_CALLS_THREAD_ID:
    case SJ_CALLS_FUNCTION_ID:
    case SJ_CALLS_PARENT_ID:
    case SJ_CALLS_CALLER_FUNCTION_ID:
        return op == '=';
    case SJ_CALLS_DURATION_NS:
    case SJ_CALLS_END_NS:
        return op == '>' || op == '}';
    default:
        return false;
    }
}

typedef struct totals {
    double calls, blocks, sessions, streams, functions;
} totals;

static totals read_totals(sj_query_state *state)
{
    totals sum = {1e6, 100, 1, 4, 500};
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(state->database,
                           "SELECT total(stored_calls), total(stored_blocks), count(*), "
                           "(SELECT count(*) FROM streams), "
                           "(SELECT coalesce(max(function_id), 1) FROM functions) FROM sessions",
                           -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW) {
        sum.calls = fmax(sqlite3_column_double(statement, 0), 1.0);
        sum.blocks = fmax(sqlite3_column_double(statement, 1), 1.0);
        sum.sessions = fmax(sqlite3_column_double(statement, 2), 1.0);
        sum.streams = fmax(sqlite3_column_double(statement, 3), 1.0);
        sum.functions = fmax(sqlite3_column_double(statement, 4), 1.0);
    }
    sqlite3_finalize(statement);
    return sum;
}

static selectivity estimate(const totals *sum, int column, char op)
{
    const double one_block = 1.0 / sum->blocks;
    switch (column) {
    case SJ_CALLS_CALL_ID:
        return op == '=' ? (selectivity){1.0 / sum->calls, one_block} : (selectivity){0.1, 0.1};
    case SJ_CALLS_SESSION_ID:
        return op == '=' ? (selectivity){1.0 / sum->sessions, 1.0 / sum->sessions}
                         : (selectivity){0.5, 0.5};
    case SJ_CALLS_STREAM_ID:
    case SJ_CALLS_THREAD_ID:
        return op == '=' ? (selectivity){1.0 / sum->streams, 1.0 / sum->streams}
                         : (selectivity){0.5, 0.5};
    case SJ_CALLS_FUNCTION_ID:
        return (selectivity){1.0 / sqrt(sum->functions), 0.3};
    case SJ_CALLS_PARENT_ID:
        return (selectivity){4.0 / sum->calls, 2.0 * one_block};
    case SJ_CALLS_CALLER_FUNCTION_ID:
        return (selectivity){1.0 / sqrt(sum->functions), 1.0};
    case SJ_CALLS_START_NS:
        return op == '=' ? (selectivity){10.0 / sum->calls, one_block} : (selectivity){0.1, 0.1};
    case SJ_CALLS_DURATION_NS:
        return (selectivity){0.02, 0.2};
    case SJ_CALLS_END_NS:
        return (selectivity){0.1, 0.1};
    default: /* depth */
        return op == '=' ? (selectivity){0.1, 1.0} : (selectivity){0.5, 1.0};
    }
}

/* Whether the query wants the longest calls first. */
static bool wants_longest(const sqlite3_index_info *info)
{
    const bool by_duration = info->nOrderBy > 0 && info->aOrderBy[0].desc &&
                             info->aOrderBy[0].iColumn == SJ_CALLS_DURATION_NS;
    return by_duration && (info->nOrderBy == 1 || (info->nOrderBy == 2 && !info->aOrderBy[1].desc &&
                                                   info->aOrderBy[1].iColumn == SJ_CALLS_CALL_ID));
}

/* Whether rows come in the order that the query wants; `grouped` when the cursor must sort them by
 * function for it. SQLite 3.40 wants every row in every mode of sqlite3_vtab_distinct; it asks to
 * have them in order (0, 3) or only together (1, 2): an ascending order serves all. */
static bool order_is_ours(sqlite3_index_info *info, bool one_stream, bool *grouped)
{
    *grouped = false;
    for (int i = 0; i < info->nOrderBy; ++i) {
        if (info->aOrderBy[i].desc) {
            return false;
        }
    }
    const int first = info->nOrderBy > 0 ? info->aOrderBy[0].iColumn : -1;
    const int second = info->nOrderBy > 1 ? info->aOrderBy[1].iColumn : SJ_CALLS_CALL_ID;
    if (first == SJ_CALLS_CALL_ID) {
        return true; /* unique: nothing after it matters */
    }
    if (first == SJ_CALLS_START_NS) {
        return one_stream && info->nOrderBy <= 2 && second == SJ_CALLS_CALL_ID;
    }
    if (first == SJ_CALLS_STREAM_ID) {
        return info->nOrderBy <= 2 && (second == SJ_CALLS_CALL_ID || second == SJ_CALLS_START_NS);
    }
    if (first == SJ_CALLS_FUNCTION_ID && info->nOrderBy == 1) {
        *grouped = true;
        return true;
    }
    return false;
}

int sj_calls_plan(sj_query_state *state, sqlite3_index_info *info)
{
    const totals sum = read_totals(state);
    selectivity left = {1.0, 1.0};
    bool one_stream = false;
    int taken = 0;
    char *plan = sqlite3_malloc(2 * info->nConstraint + 1);
    if (plan == NULL) {
        return SQLITE_NOMEM;
    }
    for (int i = 0; i < info->nConstraint; ++i) {
        const char op = operator_code(info->aConstraint[i].op);
        const int column = info->aConstraint[i].iColumn;
        if (!info->aConstraint[i].usable || op == '\0' || !can_take(column, op)) {
            continue;
        }
        plan[2 * taken] = (char)('a' + column);
        plan[2 * taken + 1] = op;
        info->aConstraintUsage[i].argvIndex = ++taken;
        info->aConstraintUsage[i].omit = 1;
        const selectivity part = estimate(&sum, column, op);
        left.rows *= part.rows;
        left.blocks *= part.blocks;
        one_stream |= op == '=' && (column == SJ_CALLS_STREAM_ID || column == SJ_CALLS_CALL_ID);
        if (op == '=' && column == SJ_CALLS_CALL_ID) {
            info->idxFlags |= SQLITE_INDEX_SCAN_UNIQUE;
        }
    }
    plan[2 * taken] = '\0';
    info->idxStr = plan;
    info->needToFreeIdxStr = 1;
    bool grouped = false;
    const bool longest = wants_longest(info);
    const bool ordered =
        longest || (info->nOrderBy > 0 && order_is_ours(info, one_stream, &grouped));
    info->orderByConsumed = ordered;
    info->idxNum = (int)(info->colUsed & ((1u << SJ_CALLS_COLUMN_COUNT) - 1));
    if (ordered && grouped) {
        info->idxNum |= SJ_CALLS_GROUPED;
    }
    info->idxNum |= longest ? SJ_CALLS_LONGEST : 0;
    const double rows = fmax(sum.calls * left.rows, 1.0);
    info->estimatedRows = (sqlite3_int64)rows;
    /* in units of one step of SQLite's: a block is about a thousand */
    info->estimatedCost = 1000.0 * fmax(sum.blocks * left.blocks, 1.0) + rows;
    return SQLITE_OK;
}

/* A comparison with an integer column, made one with an integer: false when it matches nothing. */
static bool integer_bound(sqlite3_value *value, char *op, int64_t *bound)
{
    switch (sqlite3_value_numeric_type(value)) {
    case SQLITE_INTEGER:
        *bound = sqlite3_value_int64(value);
        return true;
    case SQLITE_FLOAT: {
        const double number = sqlite3_value_double(value);
        if (number >= 9223372036854775808.0 || number < -9223372036854775808.0) {
            *bound = number > 0 ? INT64_MAX : INT64_MIN;
            const bool all = number > 0 ? *op == '<' || *op == '{' : *op == '>' || *op == '}';
            *op = number > 0 ? '{' : '}';
            return all;
        }
        *bound = (int64_t)floor(number);
        if ((double)*bound == number) {
            return true;
        }
        /* between two integers: x < 1.5 is x <= 1, x > 1.5 is x > 1 */
        *op = *op == '<' ? '{' : *op == '}' ? '>' : *op;
        return *op != '=';
    }
    case SQLITE_NULL:
        return false;
    default: /* text and blobs are greater than every number */
        *bound = INT64_MAX;
        if (*op == '<' || *op == '{') {
            *op = '{';
            return true;
        }
        return false;
    }
}

static void narrow(int64_t *first, int64_t *last, char op, int64_t bound)
{
    if (op == '<' || op == '>') {
        if (bound == (op == '<' ? INT64_MIN : INT64_MAX)) {
            *first = INT64_MAX;
            *last = INT64_MIN;
            return;
        }
        bound += op == '<' ? -1 : 1;
    }
    if (op != '<' && op != '{' && bound > *first) {
        *first = bound;
    }
    if (op != '>' && op != '}' && bound < *last) {
        *last = bound;
    }
}

/* EQ of a column that takes only one value. */
static bool fix(bool *fixed, int64_t *value, int64_t bound)
{
    if (*fixed && *value != bound) {
        return false;
    }
    *fixed = true;
    *value = bound;
    return true;
}

bool sj_calls_filter(const char *plan, int argc, sqlite3_value **argv, sj_scan_filter *filter)
{
    *filter = sj_scan_everything;
    int64_t longest = INT64_MAX;
    int64_t last_end = INT64_MAX;
    for (int i = 0; i < argc; ++i) {
        char op = plan[2 * i + 1];
        int64_t bound;
        const int column = plan[2 * i] - 'a';
        if (!integer_bound(argv[i], &op, &bound)) {
            return false;
        }
        switch (column) {
        case SJ_CALLS_CALL_ID:
            narrow(&filter->first_call, &filter->last_call, op, bound);
            break;
        case SJ_CALLS_SESSION_ID:
            narrow(&filter->first_session, &filter->last_session, op, bound);
            break;
        case SJ_CALLS_STREAM_ID:
            narrow(&filter->first_stream, &filter->last_stream, op, bound);
            break;
        case SJ_CALLS_START_NS:
            narrow(&filter->first_start_ns, &filter->last_start_ns, op, bound);
            break;
        case SJ_CALLS_DEPTH:
            narrow(&filter->min_depth, &filter->max_depth, op, bound);
            break;
        case SJ_CALLS_DURATION_NS:
            filter->ended = true;
            narrow(&filter->min_duration_ns, &longest, op, bound);
            break;
        case SJ_CALLS_END_NS:
            filter->ended = true;
            narrow(&filter->first_end_ns, &last_end, op, bound);
            break;
        case SJ_CALLS_THREAD_ID:
            if (!fix(&filter->by_thread, &filter->thread_id, bound)) {
                return false;
            }
            break;
        case SJ_CALLS_PARENT_ID:
            if (!fix(&filter->by_parent, &filter->parent_id, bound)) {
                return false;
            }
            break;
        case SJ_CALLS_CALLER_FUNCTION_ID:
            if (!fix(&filter->by_caller, &filter->caller_function_id, bound)) {
                return false;
            }
            break;
        default:
            if (!fix(&filter->by_function, &filter->function_id, bound)) {
                return false;
            }
        }
    }
    if (filter->by_parent) {
        /* callees are numbered after their caller, in its stream */
        const int64_t top = filter->parent_id | ((INT64_C(1) << SJ_CALL_INDEX_BITS) - 1);
        narrow(&filter->first_call, &filter->last_call, '>', filter->parent_id);
        narrow(&filter->first_call, &filter->last_call, '{', top);
        if (filter->parent_id < 0) {
            return false;
        }
    }
    return filter->first_call <= filter->last_call &&
           filter->first_session <= filter->last_session &&
           filter->first_stream <= filter->last_stream &&
           filter->first_start_ns <= filter->last_start_ns &&
           filter->min_depth <= filter->max_depth && filter->min_duration_ns <= longest &&
           filter->first_end_ns <= last_end;
}
