/* call_aggregate(session_id [, from_ns, to_ns [, stream_id]]): calls per function, straight from
 * the blocks.
 *
 * Design notes. Counts the calls that began in [from_ns, to_ns) and have ended, whenever that was,
 * so that windows that touch add up. It walks the events of each block with a small stack and adds
 * up per dictionary entry; rows are never made. Calls that end in a later block take their end from
 * that block's late leaves. Counted calls that are still open are carried to the next block of
 * their stream, so that recursion is seen across blocks. Sums are made of ticks and converted once,
 * like function_stats. total_ns counts the time of recursive activations once; duration_ns is the
 * plain sum. */
#include "collector-server/query/block_scan.h"
#include "collector-server/query/table_function.h"
#include "proto/base/array.h"

#include <stdlib.h>
#include <string.h>

enum {
    COLUMN_FUNCTION_ID,
    COLUMN_CALLS,
    COLUMN_TOTAL_NS,
    COLUMN_SELF_NS,
    COLUMN_DURATION_NS,
    COLUMN_MIN_NS,
    COLUMN_MAX_NS,
    COLUMN_OPEN,
    COLUMN_SESSION_ID, /* hidden from here on: arguments */
    COLUMN_FROM_NS,
    COLUMN_TO_NS,
    COLUMN_STREAM_ID
};

enum { ARGUMENTS = 4 };

/* Sums of one function: of a block's dictionary entry while it is walked, then of the session. */
typedef struct function_sum {
    uint64_t calls;
    uint64_t nested_ticks; /* of the calls that an outer call of the same function contains */
    uint64_t self_ticks;
    uint64_t duration_ticks;
    uint64_t min_ticks;
    uint64_t max_ticks;
    uint64_t open;   /* calls that never ended */
    uint32_t active; /* open calls of the function that count */
    uint32_t slot;   /* session's sums: the function's first dictionary entry, plus 1 */
} function_sum;

/* A counting call that is open across a block boundary. */
typedef struct carried_call {
    uint64_t index;
    uint32_t depth;
    uint32_t function;
} carried_call;

typedef struct open_call {
    uint64_t start;
    uint64_t child;
    uint32_t slot;          /* first dictionary entry of its function */
    uint32_t row : 31;      /* position among the calls of the block */
    uint32_t outermost : 1; /* set at the end of the block */
} open_call;

typedef struct aggregate_cursor {
    sqlite3_vtab_cursor base;
    sj_block_scan scan;
    bool scan_open;
    function_sum *sums; /* by session-wide function id */
    size_t sum_count;
    function_sum *slots; /* of the block, by the first dictionary entry of a function */
    uint32_t *slot_of;   /* by dictionary entry: these differ in how calls were entered, too */
    size_t slot_capacity;
    open_call *stack;
    uint64_t *open_indexes;
    size_t stack_capacity;
    carried_call *carried; /* of the stream, outermost first */
    size_t carried_count, carried_capacity;
    int64_t stream_id;
    size_t at;
    int64_t arguments[ARGUMENTS];
} aggregate_cursor;

static int open_cursor(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    (void)base;
    aggregate_cursor *cursor = sj_table_new_cursor(sizeof(*cursor));
    if (cursor == NULL) {
        return SQLITE_NOMEM;
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *base)
{
    aggregate_cursor *cursor = (aggregate_cursor *)base;
    if (cursor->scan_open) {
        sj_block_scan_close(&cursor->scan);
    }
    free(cursor->sums);
    free(cursor->slots);
    free(cursor->slot_of);
    free(cursor->stack);
    free(cursor->open_indexes);
    free(cursor->carried);
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int reserve(aggregate_cursor *cursor)
{
    const sj_block *block = &cursor->scan.block;
    if (block->function_count > cursor->slot_capacity) {
        function_sum *slots = realloc(cursor->slots, block->function_count * sizeof(*slots));
        if (slots == NULL) {
            return SQLITE_NOMEM;
        }
        cursor->slots = slots;
        uint32_t *slot_of = realloc(cursor->slot_of, block->function_count * sizeof(*slot_of));
        if (slot_of == NULL) {
            return SQLITE_NOMEM;
        }
        cursor->slot_of = slot_of;
        cursor->slot_capacity = block->function_count;
    }
    const size_t depth = (size_t)block->header.call_count + 1;
    if (depth > cursor->stack_capacity) {
        open_call *stack = realloc(cursor->stack, depth * sizeof(*stack));
        cursor->stack = stack != NULL ? stack : cursor->stack;
        uint64_t *indexes = realloc(cursor->open_indexes, depth * sizeof(*indexes));
        cursor->open_indexes = indexes != NULL ? indexes : cursor->open_indexes;
        if (stack == NULL || indexes == NULL) {
            return SQLITE_NOMEM;
        }
        cursor->stack_capacity = depth;
    }
    uint32_t highest = 0;
    for (size_t i = 0; i < block->function_count; ++i) {
        highest = block->functions[i] > highest ? block->functions[i] : highest;
    }
    if (highest >= cursor->sum_count) {
        const size_t count = (size_t)highest + 1;
        function_sum *sums = realloc(cursor->sums, count * sizeof(*sums));
        if (sums == NULL) {
            return SQLITE_NOMEM;
        }
        memset(sums + cursor->sum_count, 0, (count - cursor->sum_count) * sizeof(*sums));
        cursor->sums = sums;
        cursor->sum_count = count;
    }
    return SQLITE_OK;
}

static inline __attribute__((always_inline)) void add_call(function_sum *sum, uint64_t duration,
                                                           uint64_t self, bool outermost)
{
    ++sum->calls;
    sum->duration_ticks += duration;
    /* rare, all three: branches are cheaper than writing back what did not change. Between the two
     * sums, as the compiler would else add both at once, and wait for both to be written. */
    if (__builtin_expect(duration < sum->min_ticks, 0)) {
        sum->min_ticks = duration;
    }
    if (__builtin_expect(duration > sum->max_ticks, 0)) {
        sum->max_ticks = duration;
    }
    sum->self_ticks += self;
    if (__builtin_expect(!outermost, 0)) {
        sum->nested_ticks += duration;
    }
}

/* The call of the key-frame at `depth` has ended. */
static void end_carried(aggregate_cursor *cursor, uint32_t depth)
{
    while (cursor->carried_count != 0 &&
           cursor->carried[cursor->carried_count - 1].depth >= depth) {
        function_sum *sum = &cursor->sums[cursor->carried[--cursor->carried_count].function];
        --sum->active;
        if (sum->slot != 0) {
            --cursor->slots[sum->slot - 1].active;
        }
    }
}

/* walk adds up the calls that are entered and left within the block. Returns how many are open at
 * its end (on the stack), or SIZE_MAX when the events contradict each other. The two flags are
 * constants where it is inlined. */
static inline __attribute__((always_inline)) size_t walk(aggregate_cursor *cursor, bool wide,
                                                         bool windowed)
{
    /* a copy: the sums that the loop writes might be it, as far as the compiler knows */
    const sj_block block = cursor->scan.block;
    const uint64_t first = cursor->scan.session.first_start;
    const uint64_t last = cursor->scan.session.last_start;
    const size_t event_count = block.header.event_count;
    const uint32_t *slot_of = cursor->slot_of;
    function_sum *slots = cursor->slots;
    open_call *stack = cursor->stack;
    size_t top = 0;
    uint32_t row = 0;
    uint32_t base = block.header.open_depth;
    for (size_t event = 0; event < event_count; ++event) {
        const uint32_t symbol = wide ? block.symbols32[event] : block.symbols16[event];
        const uint64_t now = block.ticks[event];
        if (symbol != SJ_EVENT_LEAVE) {
            if (symbol > block.function_count || row == block.header.call_count) {
                return SIZE_MAX;
            }
            const uint32_t slot = slot_of[symbol - 1];
            const bool counts = !windowed || (now >= first && now <= last);
            function_sum *sum = &slots[slot];
            if (event + 1 < event_count &&
                (wide ? block.symbols32[event + 1] : block.symbols16[event + 1]) ==
                    SJ_EVENT_LEAVE) { /* it calls nothing */
                const uint64_t duration = block.ticks[++event] - now;
                if (counts) {
                    add_call(sum, duration, duration, sum->active == 0);
                }
                if (top != 0) {
                    stack[top - 1].child += duration;
                }
                ++row;
                continue;
            }
            sum->active += counts;
            stack[top++] = (open_call){.start = now, .slot = slot, .row = row++ & INT32_MAX};
            continue;
        }
        if (top == 0) {
            if (base == 0) {
                return SIZE_MAX;
            }
            end_carried(cursor, --base);
            continue;
        }
        const open_call *call = &stack[--top];
        const uint64_t duration = now - call->start;
        if (!windowed || (call->start >= first && call->start <= last)) {
            function_sum *sum = &slots[call->slot];
            --sum->active;
            add_call(sum, duration, duration - call->child, sum->active == 0);
        }
        if (top != 0) {
            stack[top - 1].child += duration;
        }
    }
    return row == block.header.call_count ? top : SIZE_MAX;
}

static size_t walk_any(aggregate_cursor *cursor, bool windowed)
{
    if (cursor->scan.block.symbols16 != NULL) {
        return windowed ? walk(cursor, false, true) : walk(cursor, false, false);
    }
    return windowed ? walk(cursor, true, true) : walk(cursor, true, false);
}

/* Whether a carried call is among those open at the start of the block. */
static bool still_open(const sj_block *block, const carried_call *call)
{
    if (call->depth >= block->header.open_depth) {
        return false;
    }
    const uint32_t deep = block->header.stack_frames;
    return call->depth < deep || (call->depth - deep < block->frame_count &&
                                  block->frames[call->depth - deep].call_index == call->index);
}

static void begin_block(aggregate_cursor *cursor)
{
    const sj_block *block = &cursor->scan.block;
    if (cursor->stream_id != cursor->scan.stream_id) {
        end_carried(cursor, 0);
        cursor->stream_id = cursor->scan.stream_id;
    }
    for (size_t i = 0; i < cursor->carried_count; ++i) {
        if (!still_open(block, &cursor->carried[i])) {
            end_carried(cursor, cursor->carried[i].depth); /* it and all that it called */
            break;
        }
    }
    for (size_t i = 0; i < block->function_count; ++i) {
        function_sum *sum = &cursor->sums[block->functions[i]];
        sum->slot = sum->slot != 0 ? sum->slot : (uint32_t)i + 1;
        cursor->slot_of[i] = sum->slot - 1;
        cursor->slots[i] = (function_sum){.min_ticks = UINT64_MAX, .active = sum->active};
    }
}

static int carry(aggregate_cursor *cursor, const carried_call *call)
{
    if (sj_array_reserve(&cursor->carried, &cursor->carried_capacity, cursor->carried_count, 1,
                         sizeof(*cursor->carried)) != SJ_OK) {
        return SQLITE_NOMEM;
    }
    cursor->carried[cursor->carried_count++] = *call;
    ++cursor->sums[call->function].active;
    return SQLITE_OK;
}

/* How many calls were lost before an ENTER: asked of rising ones, in one walk over the block. */
typedef struct lost_walk {
    size_t gap, event;
    uint32_t entered;
    uint64_t lost;
} lost_walk;

static uint64_t lost_before(lost_walk *at, const sj_block *block, uint32_t row)
{
    for (; at->gap < block->gap_count; ++at->gap) {
        const sj_gap *gap = &block->gaps[at->gap];
        if (gap->calls == 0) {
            continue; /* the thread waited */
        }
        for (; at->event < gap->before_event; ++at->event) {
            at->entered +=
                (block->symbols16 != NULL ? block->symbols16[at->event]
                                          : block->symbols32[at->event]) != SJ_EVENT_LEAVE;
        }
        if (at->entered > row) {
            break;
        }
        at->lost += gap->calls;
    }
    return at->lost;
}

static void add_late(void *context, size_t position, const sj_deferred_exit *leave)
{
    aggregate_cursor *cursor = context;
    open_call *call = &cursor->stack[position];
    function_sum *sum = &cursor->slots[call->slot];
    if (leave->ending != SJ_ENDING_OPEN && sum->open != 0) {
        add_call(sum, leave->end_ticks - call->start, leave->self_ticks, call->outermost);
        --sum->open;
    }
}

/* Counts the calls of the block that are open at its end, and carries them. */
static int finish_open(aggregate_cursor *cursor, size_t top)
{
    const sj_block *block = &cursor->scan.block;
    const sj_scan_session *session = &cursor->scan.session;
    size_t counting = top;
    size_t inner = 0; /* begun after the window: the innermost ones */
    for (size_t i = top; i-- > 0;) {
        const open_call *call = &cursor->stack[i];
        if (call->start < session->first_start || call->start > session->last_start) {
            inner += call->start > session->last_start;
            continue;
        }
        cursor->stack[i].outermost = --cursor->slots[call->slot].active == 0;
        cursor->stack[--counting] = cursor->stack[i]; /* those that count move to the end */
    }
    const size_t count = top - counting;
    memmove(cursor->stack, cursor->stack + counting, count * sizeof(*cursor->stack));
    lost_walk lost = {0};
    for (size_t i = 0; i < count; ++i) {
        const open_call *call = &cursor->stack[i];
        cursor->open_indexes[i] =
            block->header.first_call + call->row + lost_before(&lost, block, call->row);
        ++cursor->slots[call->slot].open;
        const carried_call carried = {
            .index = cursor->open_indexes[i],
            .depth = block->header.end_depth - (uint32_t)(inner + count - i),
            .function = block->functions[call->slot],
        };
        const int result = carry(cursor, &carried);
        if (result != SQLITE_OK) {
            return result;
        }
    }
    return sj_late_exits_find(&cursor->scan.late, cursor->scan.stream_id, cursor->open_indexes,
                              count, add_late, cursor);
}

static void add_up(aggregate_cursor *cursor)
{
    const sj_block *block = &cursor->scan.block;
    for (size_t i = 0; i < block->function_count; ++i) {
        const function_sum *part = &cursor->slots[i];
        function_sum *sum = &cursor->sums[block->functions[i]];
        sum->slot = 0;
        if (part->calls != 0) {
            sum->min_ticks = sum->calls == 0 || part->min_ticks < sum->min_ticks ? part->min_ticks
                                                                                 : sum->min_ticks;
            sum->max_ticks = part->max_ticks > sum->max_ticks ? part->max_ticks : sum->max_ticks;
        }
        sum->calls += part->calls;
        sum->nested_ticks += part->nested_ticks;
        sum->self_ticks += part->self_ticks;
        sum->duration_ticks += part->duration_ticks;
        sum->open += part->open;
    }
}

static int aggregate_block(aggregate_cursor *cursor)
{
    const sj_block *block = &cursor->scan.block;
    const sj_scan_session *session = &cursor->scan.session;
    const int reserved = reserve(cursor);
    if (reserved != SQLITE_OK) {
        return reserved;
    }
    begin_block(cursor);
    const bool windowed = block->header.first_ticks < session->first_start ||
                          block->header.last_ticks > session->last_start;
    const size_t top = walk_any(cursor, windowed);
    if (top == SIZE_MAX) {
        sj_block_scan_warn(&cursor->scan, "its events contradict each other");
        add_up(cursor);
        return SQLITE_OK;
    }
    const int result = finish_open(cursor, top);
    add_up(cursor);
    return result;
}

static void make_filter(const aggregate_cursor *cursor, int given, sj_scan_filter *filter)
{
    *filter = sj_scan_everything;
    filter->first_session = filter->last_session = cursor->arguments[0];
    if ((given & 2) != 0) {
        filter->first_start_ns = cursor->arguments[1];
    }
    if ((given & 4) != 0) {
        filter->last_start_ns =
            cursor->arguments[2] == INT64_MIN ? INT64_MIN : cursor->arguments[2] - 1;
    }
    if ((given & 8) != 0) {
        filter->first_stream = filter->last_stream = cursor->arguments[3];
    }
}

static void skip_empty(aggregate_cursor *cursor)
{
    while (cursor->at < cursor->sum_count && cursor->sums[cursor->at].calls == 0 &&
           cursor->sums[cursor->at].open == 0) {
        ++cursor->at;
    }
}

static int filter_rows(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
                       sqlite3_value **argv)
{
    (void)plan;
    aggregate_cursor *cursor = (aggregate_cursor *)base;
    for (int i = 0, next = 0; i < ARGUMENTS && next < argc; ++i) {
        if ((given >> i & 1) != 0) {
            cursor->arguments[i] = sqlite3_value_int64(argv[next++]);
        }
    }
    int result = SQLITE_OK;
    if (!cursor->scan_open) {
        result = sj_block_scan_open(&cursor->scan, sj_table_of(base)->state);
        cursor->scan_open = true;
    }
    if (result != SQLITE_OK) {
        return result;
    }
    for (size_t i = 0; i < cursor->sum_count; ++i) {
        cursor->sums[i] = (function_sum){0};
    }
    cursor->carried_count = 0;
    cursor->stream_id = INT64_MIN;
    sj_scan_filter filter;
    make_filter(cursor, given, &filter);
    result = sj_block_scan_start(&cursor->scan, &filter, SJ_SCAN_SUMS);
    while (result == SQLITE_OK && (result = sj_block_scan_next(&cursor->scan)) == SQLITE_ROW) {
        result = aggregate_block(cursor);
    }
    cursor->at = 0;
    skip_empty(cursor);
    return result == SQLITE_DONE ? SQLITE_OK : result;
}

static int next_row(sqlite3_vtab_cursor *base)
{
    aggregate_cursor *cursor = (aggregate_cursor *)base;
    ++cursor->at;
    skip_empty(cursor);
    return SQLITE_OK;
}

static int at_end(sqlite3_vtab_cursor *base)
{
    const aggregate_cursor *cursor = (const aggregate_cursor *)base;
    return cursor->at >= cursor->sum_count;
}

static void give_span(sqlite3_context *context, const aggregate_cursor *cursor, uint64_t ticks)
{
    sqlite3_result_int64(context, sj_ticks_to_ns(&cursor->scan.session.scale, ticks));
}

static int give_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
    const aggregate_cursor *cursor = (const aggregate_cursor *)base;
    const function_sum *sum = &cursor->sums[cursor->at];
    switch (column) {
    case COLUMN_FUNCTION_ID: {
        const int64_t id = sj_scan_function_id(&cursor->scan.session, (uint32_t)cursor->at);
        if (id != 0) {
            sqlite3_result_int64(context, id);
        }
        break;
    }
    case COLUMN_CALLS:
        sqlite3_result_int64(context, (sqlite3_int64)sum->calls);
        break;
    case COLUMN_TOTAL_NS:
        give_span(context, cursor, sum->duration_ticks - sum->nested_ticks);
        break;
    case COLUMN_SELF_NS:
        give_span(context, cursor, sum->self_ticks);
        break;
    case COLUMN_DURATION_NS:
        give_span(context, cursor, sum->duration_ticks);
        break;
    case COLUMN_MIN_NS:
    case COLUMN_MAX_NS:
        if (sum->calls != 0) {
            give_span(context, cursor, column == COLUMN_MIN_NS ? sum->min_ticks : sum->max_ticks);
        }
        break;
    case COLUMN_OPEN:
        sqlite3_result_int64(context, (sqlite3_int64)sum->open);
        break;
    default:
        sqlite3_result_int64(context, cursor->arguments[column - COLUMN_SESSION_ID]);
    }
    return SQLITE_OK;
}

static int give_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = (sqlite3_int64)((const aggregate_cursor *)base)->at;
    return SQLITE_OK;
}

static const sqlite3_module aggregate_module = SJ_TABLE_METHODS(sj_table_take_arguments);

int sj_register_call_aggregate(sj_query_state *state)
{
    static const sj_table_kind kind = {
        .name = "call_aggregate",
        .declaration =
            "CREATE TABLE call_aggregate(function_id INTEGER, calls INTEGER, total_ns INTEGER, "
            "self_ns INTEGER, duration_ns INTEGER, min_ns INTEGER, max_ns INTEGER, open INTEGER, "
            "session_id HIDDEN, from_ns HIDDEN, to_ns HIDDEN, stream_id HIDDEN)",
        .first_argument = COLUMN_SESSION_ID,
        .argument_count = ARGUMENTS,
        .required_count = 1,
        .rows = 500,
        .cost = 1e5};
    return sj_table_register(state, &kind, &aggregate_module);
}
