/* Tests which open calls are known after records were dropped. A simulated program runs on a
 * simulated stack, and its buffer is emptied now and then. The assembler turns the kept records
 * into calls. Each call has a function of its own, so that each caller can be compared with the
 * true one. */
#include "agent/inproc/recorder/internal.h"
#include "tests/agent/inproc/recorder/arena_account.h"
#include "tests/support/assembler_check.h"
#include "tests/support/call_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum {
    CHUNKS = 2,
    STEPS = 150000,
    MOST_CALLS = 2 * STEPS,
    MOST_DEPTH = 1000,
    LOG = 2 * STEPS,
    LAST_STEPS = 1500,
    ARRAY_BYTES = 512 * 1024
};

typedef struct program {
    uint32_t most_depth;
    bool has_strangers; /* calls on another stack, and calls that a handler drops */
    bool has_array;     /* calls of handlers on an array of the outermost call */
    uint64_t random;
    uint32_t calls;
    uint32_t depth;
    bool has_thrown; /* the next call begins where a call that was left by an exception had begun */
    struct {
        uint32_t function;
        uint64_t stack;
        bool has_jumped;
    } open[MOST_DEPTH];
} program;

static program run;
static uint32_t callers[MOST_CALLS]; /* by function; 0: none */
static sj_record records[LOG];
static size_t record_count;

static uint32_t draw(uint32_t below)
{
    return (uint32_t)(trace_random(&run.random) % below);
}

static void record(sj_record_kind kind, uint32_t function, uint64_t stack)
{
    const uint32_t tag = sj_record_make_tag(kind, function);
    const uint64_t ticks = sj_arch_ticks();
    sj_recorder_put(sj_recorder_reserve(tag), ticks, stack, tag);
}

static void open_call(uint64_t stack)
{
    const uint32_t function = ++run.calls;
    callers[function] = run.depth > 0 ? run.open[run.depth - 1].function : 0;
    run.open[run.depth].function = function;
    run.open[run.depth].has_jumped = false;
    run.open[run.depth++].stack = stack;
    record(SJ_RECORD_ENTER, function, stack);
}

static void close_call(void)
{
    run.depth--;
    while (run.depth > 0 && run.open[run.depth - 1].has_jumped) {
        run.depth--;
    }
}

/* Returns the number of calls at the innermost address that have jumped. The assembler folds longer
 * chains (tail_calls.h). */
static uint32_t chain(void)
{
    uint32_t count = 0;
    while (count + 1 < run.depth && run.open[run.depth - 2 - count].has_jumped) {
        count++;
    }
    return count;
}

static void jump(void)
{
    const uint64_t stack = run.open[run.depth - 1].stack;
    run.open[run.depth - 1].has_jumped = true;
    record(SJ_RECORD_LEAVE, run.open[run.depth - 1].function, stack + SJ_STACK_TAIL_CALL);
    open_call(stack);
}

static void call_strangely(void)
{
    const uint32_t function = ++run.calls;
    const uint64_t cursor = sj_recorder_self.cursor;
    const bool is_handler = draw(2) == 0;
    if (is_handler) { /* the handler interrupts the slow path */
        sj_recorder_self.busy = 1;
        sj_recorder_self.cursor = 0;
    }
    record(SJ_RECORD_ENTER, function, is_handler ? 64 : 4096);
    record(SJ_RECORD_LEAVE, function, is_handler ? 64 : 4096);
    if (is_handler) {
        sj_recorder_self.busy = 0;
        sj_recorder_self.cursor = cursor;
    }
}

/* Reads the full chunks in order and frees them. `all`: reads the open chunk, too. */
static void empty_buffer(bool all)
{
    static uint64_t taken;
    for (uint32_t i = 0; i < 2 * CHUNKS; i++) {
        uint8_t *bytes = arena + sj_arena_chunk_offset(2, CHUNKS, 0, i % CHUNKS);
        const sj_chunk_header *chunk = (const sj_chunk_header *)bytes;
        const sj_record *from = (const sj_record *)(bytes + SJ_CHUNK_HEADER_BYTES);
        const bool is_open = atomic_load(&chunk->closed_records) == UINT32_MAX;
        if (atomic_load(&chunk->sequence) != taken + 1 || (is_open && !all)) {
            continue;
        }
        for (uint32_t r = 0; r < SJ_CHUNK_RECORDS && sj_record_tag(&from[r]) != 0; r++) {
            CHECK(record_count < LOG);
            records[record_count++] = from[r];
        }
        taken++;
        if (!is_open) {
            memset(bytes, 0, SJ_CHUNK_BYTES);
            atomic_fetch_or(&arena_slot(arena, 0)->free_chunks, UINT64_C(1) << i % CHUNKS);
        }
    }
}

/* A handler runs on an array of the outermost call. Some handlers leave it by longjmp. The array
 * also holds the test's own frames, by which the recorder knows that a handler runs. */
static void call_on_array(void)
{
    const uint64_t high = run.open[0].stack;
    const uint32_t function = ++run.calls;
    sj_recorder_begin_handler(high - ARRAY_BYTES, high);
    if (draw(4) == 0) {
        empty_buffer(false);
    }
    record(SJ_RECORD_ENTER, function, high - 64);
    if (draw(2) == 0) {
        record(SJ_RECORD_LEAVE, function, high - 64);
        sj_recorder_end_handler();
    }
}

static void step(void)
{
    const uint32_t choice = draw(1000);
    if (run.has_strangers && draw(3000) == 0) {
        call_strangely();
    } else if (run.has_array && draw(3000) == 0) {
        call_on_array();
    } else if (choice < 30 && run.depth > 1 && chain() < 3) {
        jump();
    } else if (choice < 40) {
        for (uint32_t left = draw(8); left > 0 && run.depth > 1; left--) {
            close_call();
        }
        run.has_thrown = true;
        return;
    } else if (run.depth < 2 || (draw(2) == 0 && run.depth < run.most_depth)) {
        const uint64_t least = run.depth == 1 ? ARRAY_BYTES : 0;
        const uint64_t size = least + (run.has_thrown ? 16 : 16 * (1 + (uint64_t)draw(4)));
        open_call(run.open[run.depth - 1].stack - size);
    } else {
        const uint32_t function = run.open[run.depth - 1].function;
        record(SJ_RECORD_LEAVE, function, run.open[run.depth - 1].stack);
        close_call();
    }
    run.has_thrown = false;
}

static void run_program(const char *directory)
{
    start(directory, make_welcome(2, CHUNKS, SJ_FULL_DROP_NEW));
    record(SJ_RECORD_ENTER, ++run.calls, 4096); /* claims the slot */
    open_call((arena_slot(arena, 0)->stack_high & ~UINT64_C(15)) - 16);
    for (uint32_t i = 0, pause = 0; i < STEPS; i++, pause--) {
        step();
        if (pause == 0) {
            empty_buffer(false);
            pause = 1 + draw(20000);
        }
    }
    empty_buffer(false);
    for (uint32_t i = 0; i < LAST_STEPS; i++) { /* more than the window holds, less than a chunk */
        step();
    }
    empty_buffer(true);
}

static block_store store;

static sj_assembler *assemble(sj_block_encoder *encoder)
{
    const sj_thread_slot *slot = arena_slot(arena, 0);
    const sj_assembler_options options = {.stack_low = slot->stack_low,
                                          .stack_high = slot->stack_high,
                                          .start_ticks = slot->start_ticks,
                                          .encoder = encoder};
    const sj_assembler_sink sink = block_store_sink(&store);
    sj_assembler *assembler;
    sj_assembler_counters counters;
    CHECK(sj_assembler_new(&options, &sink, &assembler) == SJ_OK);
    CHECK(sj_assembler_feed(assembler, records, record_count, sj_arch_ticks()) == SJ_OK);
    CHECK(sj_assembler_flush(assembler, sj_arch_ticks()) == SJ_OK);
    sj_assembler_get_counters(assembler, &counters);
    CHECK(assembler_check(&counters, &store) == NULL);
    CHECK(counters.lost_calls > STEPS / 10 && counters.calls > STEPS / 20);
    return assembler;
}

/* Checks that each unmarked call has its true caller. Returns the number of marked calls. */
static uint32_t check_rows(const sj_call_rows *rows, uint32_t *functions)
{
    uint32_t marked = 0;
    for (size_t i = 0; i < rows->count; i++) {
        CHECK(rows->index[i] < 2 * MOST_CALLS);
        functions[rows->index[i]] = rows->function[i];
        if ((rows->flags[i] & SJ_CALL_UNCERTAIN_DEPTH) != 0) {
            marked++;
            continue;
        }
        const uint32_t caller =
            rows->parent[i] == SJ_CALL_NO_PARENT ? 0 : functions[rows->parent[i]];
        if (rows->function[i] != 1 && caller != callers[rows->function[i]]) {
            fprintf(stderr, "call %u of %u, in truth of %u\n", rows->function[i], caller,
                    callers[rows->function[i]]);
            _exit(1);
        }
    }
    return marked;
}

static uint32_t check_blocks(void)
{
    static uint32_t functions[2 * MOST_CALLS]; /* by the number of the call */
    sj_block_decoder *decoder;
    sj_call_reader *reader;
    uint32_t marked = 0;
    CHECK(sj_block_decoder_new(&decoder) == SJ_OK && sj_call_reader_new(&reader) == SJ_OK);
    for (size_t i = 0; i < store.count; i++) {
        const sj_slice bytes = {.data = store.blocks[i].data, .size = store.blocks[i].size};
        const sj_call_rows *rows;
        sj_block block;
        /* The first stream belongs to the call that claimed the slot. */
        if (store.blocks[i].header.kind != SJ_BLOCK_CALLS || store.blocks[i].header.stream != 2) {
            continue;
        }
        CHECK(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block) == SJ_OK);
        CHECK(sj_call_reader_read(reader, &block, block_store_lookup, &store, &rows) == SJ_OK);
        marked += check_rows(rows, functions);
    }
    sj_call_reader_free(reader);
    sj_block_decoder_free(decoder);
    return marked;
}

static void match_open(void *context, const sj_stack_frame *call)
{
    uint32_t *place = context;
    while (*place < run.depth && run.open[*place].has_jumped) {
        (*place)++;
    }
    if (call->jumped_ticks == 0) {
        CHECK(*place < run.depth && call->function == run.open[*place].function);
        (*place)++;
    }
}

static void check_run(const char *directory)
{
    sj_block_encoder *encoder;
    CHECK(sj_block_encoder_new(&encoder) == SJ_OK);
    run_program(directory);
    sj_assembler *assembler = assemble(encoder);
    const uint32_t marked = check_blocks();
    if (!run.has_strangers && !run.has_array && run.most_depth < 100) {
        uint32_t place = 0;
        sj_assembler_visit_open(assembler, match_open, &place);
        CHECK(place == run.depth);
        CHECK(marked > 0 && marked < run.calls / 20);
    }
    sj_assembler_free(assembler);
    block_store_free(&store);
    sj_block_encoder_free(encoder);
}

static uint64_t seeds(void)
{
    return getenv("SJ_LONG") != NULL ? 300 : 4;
}

static void run_seeds(const program *like)
{
    for (uint64_t seed = 1; seed <= seeds(); seed++) {
        run = *like;
        run.random = seed;
        assert_int_equal(run_in_child(check_run), 0);
    }
}

static void test_depth_is_found_again_after_drops(void **state)
{
    (void)state;
    run_seeds(&(program){.most_depth = 60});
}

static void test_a_wrong_caller_is_marked_however_deep(void **state)
{
    (void)state;
    run_seeds(&(program){.most_depth = 600});
}

static void test_a_wrong_caller_is_marked_whatever_else_is_dropped(void **state)
{
    (void)state;
    run_seeds(&(program){.most_depth = 60, .has_strangers = true});
}

static void test_a_wrong_caller_is_marked_although_handlers_run_on_an_array(void **state)
{
    (void)state;
    run_seeds(&(program){.most_depth = 60, .has_array = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_depth_is_found_again_after_drops),
        cmocka_unit_test(test_a_wrong_caller_is_marked_however_deep),
        cmocka_unit_test(test_a_wrong_caller_is_marked_whatever_else_is_dropped),
        cmocka_unit_test(test_a_wrong_caller_is_marked_although_handlers_run_on_an_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
