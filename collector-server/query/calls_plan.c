/* Design notes. The plan, idxStr, has two characters per used constraint: the column ('a' + number)
 * and the operator. Operators are = < > { (for <=) } (for >=) and ( (one of a set). "z+" stands for
 * OFFSET, and is the last. The cursor decides each of these constraints exactly, so SQLite does not
 * check them again. Cost estimates count the blocks to decode. */
#include "collector-server/query/calls_plan.h"

#include "proto/base/array.h"

#include <math.h>

/* The fraction of rows that match, and the fraction of blocks to decode for them. */
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

/* True if the cursor can test this constraint. */
static bool can_decide(int column, char op)
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

/* True if the query wants the longest calls first. */
static bool wants_longest(const sqlite3_index_info *info)
{
    const bool by_duration = info->nOrderBy > 0 && info->aOrderBy[0].desc &&
                             info->aOrderBy[0].iColumn == SJ_CALLS_DURATION_NS;
    return by_duration && (info->nOrderBy == 1 || (info->nOrderBy == 2 && !info->aOrderBy[1].desc &&
                                                   info->aOrderBy[1].iColumn == SJ_CALLS_CALL_ID));
}

/* True if the cursor can return the rows in the order that the query wants. Sets `grouped` if the
 * cursor must sort the rows by function for that. The order also serves GROUP BY and DISTINCT
 * (modes 1 to 3 of sqlite3_vtab_distinct), as rows in ascending order are grouped, too. */
static bool can_keep_order(sqlite3_index_info *info, bool is_one_stream, bool *grouped)
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
        return true; /* unique: later columns do not matter */
    }
    if (first == SJ_CALLS_START_NS) {
        return is_one_stream && info->nOrderBy <= 2 && second == SJ_CALLS_CALL_ID;
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

/* True if the constraint is `function_id IN (...)` and one scan can test it for all values. For
 * other columns SQLite calls the cursor once per value, which reads few blocks. The filter cannot
 * hold a second constraint on functions. */
static bool decides_set(sqlite3_index_info *info, int place)
{
    for (int i = 0; i < info->nConstraint; ++i) {
        if (i != place && info->aConstraint[i].iColumn == SJ_CALLS_FUNCTION_ID &&
            operator_code(info->aConstraint[i].op) == '=') {
            return false;
        }
    }
    return info->aConstraint[place].iColumn == SJ_CALLS_FUNCTION_ID && !wants_longest(info) &&
           sqlite3_vtab_in(info, place, 1) != 0;
}

/* Adds OFFSET to the plan if the cursor decides every other constraint and the order. */
static void use_offset(sqlite3_index_info *info, bool ordered, char *plan, int *used_count)
{
    int offset = -1;
    for (int i = 0; i < info->nConstraint; ++i) {
        if (info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_OFFSET) {
            offset = info->aConstraint[i].usable ? i : -1;
        } else if (info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_LIMIT &&
                   info->aConstraintUsage[i].argvIndex == 0) {
            return;
        }
    }
    if (offset < 0 || (info->nOrderBy > 0 && !ordered) ||
        ((unsigned)info->idxNum & (SJ_CALLS_GROUPED | SJ_CALLS_LONGEST)) != 0) {
        return;
    }
    plan[2 * *used_count] = 'z';
    plan[2 * *used_count + 1] = '+';
    info->aConstraintUsage[offset].argvIndex = ++*used_count;
    info->aConstraintUsage[offset].omit = 1;
    plan[2 * *used_count] = '\0';
}

int sj_calls_plan(sj_query_state *state, sqlite3_index_info *info)
{
    const totals sum = read_totals(state);
    selectivity remaining = {1.0, 1.0};
    bool is_one_stream = false;
    int used_count = 0;
    char *plan = sqlite3_malloc(2 * info->nConstraint + 1);
    if (plan == NULL) {
        return SQLITE_NOMEM;
    }
    for (int i = 0; i < info->nConstraint; ++i) {
        char op = operator_code(info->aConstraint[i].op);
        const int column = info->aConstraint[i].iColumn;
        if (!info->aConstraint[i].usable || op == '\0' || !can_decide(column, op)) {
            continue;
        }
        op = op == '=' && decides_set(info, i) ? '(' : op;
        plan[2 * used_count] = (char)('a' + column);
        plan[2 * used_count + 1] = op;
        info->aConstraintUsage[i].argvIndex = ++used_count;
        info->aConstraintUsage[i].omit = 1;
        const selectivity factor = estimate(&sum, column, op);
        remaining.rows *= factor.rows;
        remaining.blocks *= factor.blocks;
        is_one_stream |= op == '=' && (column == SJ_CALLS_STREAM_ID || column == SJ_CALLS_CALL_ID);
        if (op == '=' && column == SJ_CALLS_CALL_ID) {
            info->idxFlags |= SQLITE_INDEX_SCAN_UNIQUE;
        }
    }
    plan[2 * used_count] = '\0';
    info->idxStr = plan;
    info->needToFreeIdxStr = 1;
    bool grouped = false;
    const bool longest = wants_longest(info);
    const bool ordered =
        longest || (info->nOrderBy > 0 && can_keep_order(info, is_one_stream, &grouped));
    info->orderByConsumed = ordered;
    info->idxNum = (int)(info->colUsed & ((1u << SJ_CALLS_COLUMN_COUNT) - 1));
    if (ordered && grouped) {
        /* One row per function is enough if the query uses no other column. */
        const bool distinct = sqlite3_vtab_distinct(info) >= 2 &&
                              info->colUsed == UINT64_C(1) << SJ_CALLS_FUNCTION_ID;
        info->idxNum |= SJ_CALLS_GROUPED | (distinct ? SJ_CALLS_DISTINCT : 0);
    }
    info->idxNum |= longest ? SJ_CALLS_LONGEST : 0;
    use_offset(info, ordered, plan, &used_count);
    const double rows = fmax(sum.calls * remaining.rows, 1.0);
    info->estimatedRows = (sqlite3_int64)rows;
    /* In units of one step of SQLite: a block takes about a thousand. */
    info->estimatedCost = 1000.0 * fmax(sum.blocks * remaining.blocks, 1.0) + rows;
    return SQLITE_OK;
}

/* Converts a comparison of an integer column with any value to a comparison with an integer. May
 * change the operator. Returns false if no integer matches. */
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
        /* The bound is between two integers: x < 1.5 is x <= 1, and x > 1.5 is x > 1. */
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

/* Narrows the range [first, last] by a comparison with `bound`. */
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

/* Applies an equality. Returns false if another equality requires another value. */
static bool set_equal(bool *fixed, int64_t *value, int64_t bound)
{
    if (*fixed && *value != bound) {
        return false;
    }
    *fixed = true;
    *value = bound;
    return true;
}

static int add_number(sj_calls_set *set, sqlite3_value *value)
{
    char op = '=';
    int64_t number;
    if (!integer_bound(value, &op, &number) || op != '=') {
        return SQLITE_OK; /* no integer equals this value */
    }
    if (sj_array_reserve(&set->numbers, &set->capacity, set->count, 1, sizeof(*set->numbers)) !=
        SJ_OK) {
        return SQLITE_NOMEM;
    }
    size_t at = set->count++;
    /* This is an insertion sort, because SQLite passes the values almost sorted. */
    for (; at != 0 && set->numbers[at - 1] > number; --at) {
        set->numbers[at] = set->numbers[at - 1];
    }
    set->numbers[at] = number;
    return SQLITE_OK;
}

int sj_calls_read_set(const char *plan, int argc, sqlite3_value **argv, sj_calls_set *set)
{
    set->count = 0;
    int place = 0;
    while (place < argc && plan[2 * place + 1] != '(') {
        ++place;
    }
    if (place == argc) {
        return SQLITE_OK;
    }
    sqlite3_value *value = NULL;
    int result = sqlite3_vtab_in_first(argv[place], &value);
    while (result == SQLITE_OK && (result = add_number(set, value)) == SQLITE_OK) {
        result = sqlite3_vtab_in_next(argv[place], &value);
    }
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

int64_t sj_calls_offset(const char *plan, int argc, sqlite3_value **argv)
{
    return argc != 0 && plan[2 * argc - 1] == '+' ? sqlite3_value_int64(argv[argc - 1]) : 0;
}

/* The upper limits of duration and end. The filter has no member for them; they only show whether
 * the constraints contradict each other. */
typedef struct upper_bounds {
    int64_t duration_ns, end_ns;
} upper_bounds;

/* Narrows the filter by one constraint. Returns false if no call can match. */
static bool apply_constraint(int column, char op, int64_t bound, sj_scan_filter *filter,
                             upper_bounds *upper)
{
    switch (column) {
    case SJ_CALLS_CALL_ID:
        narrow(&filter->first_call, &filter->last_call, op, bound);
        return true;
    case SJ_CALLS_SESSION_ID:
        narrow(&filter->first_session, &filter->last_session, op, bound);
        return true;
    case SJ_CALLS_STREAM_ID:
        narrow(&filter->first_stream, &filter->last_stream, op, bound);
        return true;
    case SJ_CALLS_START_NS:
        narrow(&filter->first_start_ns, &filter->last_start_ns, op, bound);
        return true;
    case SJ_CALLS_DEPTH:
        narrow(&filter->min_depth, &filter->max_depth, op, bound);
        return true;
    case SJ_CALLS_DURATION_NS:
        filter->ended = true;
        narrow(&filter->min_duration_ns, &upper->duration_ns, op, bound);
        return true;
    case SJ_CALLS_END_NS:
        filter->ended = true;
        narrow(&filter->first_end_ns, &upper->end_ns, op, bound);
        return true;
    case SJ_CALLS_THREAD_ID:
        return set_equal(&filter->by_thread, &filter->thread_id, bound);
    case SJ_CALLS_PARENT_ID:
        return set_equal(&filter->by_parent, &filter->parent_id, bound);
    case SJ_CALLS_CALLER_FUNCTION_ID:
        return set_equal(&filter->by_caller, &filter->caller_function_id, bound);
    default:
        return set_equal(&filter->by_function, &filter->function_id, bound);
    }
}

bool sj_calls_filter(const char *plan, int argc, sqlite3_value **argv, const sj_calls_set *set,
                     sj_scan_filter *filter)
{
    *filter = sj_scan_everything;
    upper_bounds upper = {INT64_MAX, INT64_MAX};
    for (int i = 0; i < argc; ++i) {
        char op = plan[2 * i + 1];
        int64_t bound;
        if (op == '(' && set->count == 0) {
            return false;
        }
        if (op == '(') {
            filter->by_function = true;
            filter->functions = set->numbers;
            filter->function_count = set->count;
        } else if (op != '+' && (!integer_bound(argv[i], &op, &bound) ||
                                 !apply_constraint(plan[2 * i] - 'a', op, bound, filter, &upper))) {
            return false;
        }
    }
    if (filter->by_parent) {
        /* Callees are in the stream of their caller and have larger numbers. */
        const int64_t last_of_stream = filter->parent_id | ((INT64_C(1) << SJ_CALL_INDEX_BITS) - 1);
        narrow(&filter->first_call, &filter->last_call, '>', filter->parent_id);
        narrow(&filter->first_call, &filter->last_call, '{', last_of_stream);
        if (filter->parent_id < 0) {
            return false;
        }
    }
    return filter->first_call <= filter->last_call &&
           filter->first_session <= filter->last_session &&
           filter->first_stream <= filter->last_stream &&
           filter->first_start_ns <= filter->last_start_ns &&
           filter->min_depth <= filter->max_depth && filter->min_duration_ns <= upper.duration_ns &&
           filter->first_end_ns <= upper.end_ns;
}
