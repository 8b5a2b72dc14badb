/* Tests records that are read but not sent, because blocks are refused. If the recorder is killed,
 * they must be counted as lost. Also tests calls whose function is unhooked while they are open, or
 * while their entry is being written. */
#include "agent/drain/stored_offers.h"
#include "agent/drain/thread_drain.h"
#include "agent/host/clock.h"

#include "tests/support/check.h"
#include "tests/support/fake_arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK = 0x7f0000, FUNCTION = 5, CHUNKS = 4, BLOCK_EVENTS = 16, DEPTH = 40, CLOCK_STEP = 3 };

typedef struct fixture {
    fake_arena arena;
    fake_thread thread;
    char folder[64];
    sj_spool *spool;
    sj_frame_writer *writer;
    sj_drain_shared shared;
    sj_journal_data journal;
    sj_process_drain process;
    sj_thread_drain *drained;
    uint64_t start; /* when the clocks of the tests start */
} fixture;

static uint32_t told_step;     /* clock step that the assembler got */
static unsigned offered;       /* blocks with events */
static unsigned first_refused; /* number of the first refused block */
static unsigned last_refused;
static unsigned pauses;               /* gaps with the reason "paused" */
static const sj_thread_slot *watched; /* copied at each offer: the state after a kill */
static sj_thread_slot left_slot;
static unsigned pause_event; /* number of the event after the latest of these gaps */

/* The linker redirects the drain's calls here: blocks are short, and are refused on demand. */
sj_status __real_sj_assembler_new(const sj_assembler_options *options,
                                  const sj_assembler_sink *sink, sj_assembler **assembler);
sj_status __wrap_sj_assembler_new(const sj_assembler_options *options,
                                  const sj_assembler_sink *sink, sj_assembler **assembler);
sj_status __wrap_sj_assembler_new(const sj_assembler_options *options,
                                  const sj_assembler_sink *sink, sj_assembler **assembler)
{
    sj_assembler_options small = *options;
    told_step = options->clock_step;
    small.block_events = BLOCK_EVENTS;
    return __real_sj_assembler_new(&small, sink, assembler);
}

static void note_pauses(sj_slice bytes)
{
    sj_block_decoder *decoder;
    sj_block block;
    assert_int_equal(sj_block_decoder_new(&decoder), SJ_OK);
    assert_int_equal(sj_block_decode(decoder, bytes, SJ_WANT_ALL, &block), SJ_OK);
    for (size_t i = 0; i < block.gap_count; i++) {
        if (block.gaps[i].reason == SJ_GAP_PAUSED) {
            pauses++;
            pause_event = block.gaps[i].before_event;
        }
    }
    sj_block_decoder_free(decoder);
}

sj_status __wrap_sj_block_sink_write(const sj_drain_shared *shared, const sj_block_header *header,
                                     sj_slice bytes);
sj_status __wrap_sj_block_sink_write(const sj_drain_shared *shared, const sj_block_header *header,
                                     sj_slice bytes)
{
    (void)shared;
    note_pauses(bytes);
    left_slot = watched != NULL ? *watched : left_slot;
    offered += header->event_count != 0;
    return offered >= first_refused && offered <= last_refused ? SJ_EFULL : SJ_OK;
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    sj_error error = {0};
    f->start = sj_clock_ticks() - 1000000;
    offered = 0;
    first_refused = 0;
    last_refused = 0;
    pauses = 0;
    watched = NULL;
    fake_arena_make(&f->arena, "1.0.arena", 1, CHUNKS);
    fake_thread_start(&f->thread, &f->arena, 0, 77);
    snprintf(f->folder, sizeof(f->folder), "/tmp/sj_drained_XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    const sj_spool_options spool = {.directory = f->folder, .reserve_bytes = 1};
    assert_int_equal(sj_spool_open(&spool, &f->spool, &error), SJ_OK);
    const sj_frame_writer_options writer = {.spool = f->spool};
    assert_int_equal(sj_frame_writer_new(&writer, &f->writer), SJ_OK);
    f->shared.options.writer = f->writer;
    f->shared.journal = &f->journal;
    f->shared.clock_step = CLOCK_STEP;
    f->shared.buffer = malloc(SJ_CHUNK_RECORDS * sizeof(sj_record));
    assert_int_equal(sj_block_encoder_new(&f->shared.encoder), SJ_OK);
    f->process = (sj_process_drain){
        .shared = &f->shared, .tracked = {.pid = 1, .pidfd = -1}, .view = f->arena.view};
    assert_int_equal(sj_unhooked_set_new(&f->process.freed), SJ_OK);
    assert_int_equal(sj_thread_drain_new(&f->process, 0, &f->drained), SJ_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[96];
    snprintf(command, sizeof(command), "rm -rf %s", f->folder);
    sj_thread_drain_free(f->drained);
    sj_unhooked_set_release(f->process.freed);
    sj_frame_writer_free(f->writer);
    sj_spool_close(f->spool);
    sj_block_encoder_free(f->shared.encoder);
    free(f->shared.buffer);
    fake_arena_remove(&f->arena);
    free(f);
    return system(command);
}

static uint64_t unsent(const fixture *f)
{
    return sj_arena_view_slot(&f->arena.view, 0)->cursor.unsent;
}

/* Writes the entries of DEPTH nested calls and the exit of the outermost call only. */
static void unwind(fixture *f)
{
    for (uint64_t i = 0; i < DEPTH; i++) {
        assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK - 16 * i));
    }
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK));
}

static void read_all(fixture *f)
{
    uint64_t records = 0;
    assert_int_equal(sj_thread_drain_read(f->drained, SJ_READ_ALL, 1, &records), SJ_OK);
}

/* Blocks 1 to 3 hold entries, blocks 3 to 5 hold endings, and block 5 also holds the exit. */
static void endings_of_refused_blocks_do_not_count_in_the_next_block(void **state)
{
    fixture *f = *state;
    first_refused = 3;
    last_refused = 4;
    unwind(f);
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    read_all(f);
    assert_int_equal(offered, 5);
    assert_int_equal(unsent(f), 2); /* the call is in no block yet */
    assert_int_equal(sj_thread_drain_flush(f->drained), SJ_OK);
    assert_int_equal(unsent(f), 0);
}

/* Resumes from the state in the slot, with `stored_blocks` blocks of the session in the spool. */
static uint64_t unsent_after_kill(fixture *f, uint64_t stored_blocks)
{
    sj_thread_slot *slot = sj_arena_view_slot(&f->arena.view, 0);
    *slot = left_slot;
    sj_stored_offers_settle_slot(slot, &(sj_stored_offers){.blocks = stored_blocks});
    return unsent(f);
}

/* The recorder is killed while a block is written to the spool. A stored block is not lost. */
static void a_block_that_is_stored_is_not_lost_by_a_kill(void **state)
{
    fixture *f = *state;
    const uint64_t number = sj_frame_writer_next_block(f->writer);
    watched = sj_arena_view_slot(&f->arena.view, 0);
    for (int i = 0; i < BLOCK_EVENTS / 2 + 1; i++) {
        assert_true(fake_thread_call(&f->thread, FUNCTION));
    }
    read_all(f);
    assert_int_equal(offered, 1);
    const uint64_t now = unsent(f);
    assert_int_equal(now, 2);
    const sj_thread_slot settled = *watched;
    assert_int_equal(unsent_after_kill(f, number - 1), now + BLOCK_EVENTS);
    assert_int_equal(unsent_after_kill(f, number), now);
    left_slot = settled;
    assert_int_equal(unsent_after_kill(f, number + 1), now); /* counted once */
}

static uint64_t frames(const fixture *f)
{
    sj_spool_counters counters;
    sj_spool_get_counters(f->spool, &counters);
    return counters.appended_frames;
}

static void a_short_thread_takes_one_frame(void **state)
{
    fixture *f = *state;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    read_all(f);
    assert_int_equal(frames(f), 0);
    assert_int_equal(sj_thread_drain_end(f->drained, true, 0), SJ_OK);
    assert_int_equal(offered, 1);
    assert_int_equal(frames(f), 1);
}

static void a_running_thread_is_announced(void **state)
{
    fixture *f = *state;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    read_all(f);
    assert_int_equal(sj_thread_drain_flush(f->drained), SJ_OK);
    assert_true(f->drained->emitter.is_announced);
    const uint64_t announced = frames(f);
    assert_int_not_equal(announced, 0);
    assert_int_equal(sj_thread_drain_end(f->drained, true, 0), SJ_OK);
    assert_int_equal(frames(f), announced + 1);
}

static void check_name(const fixture *f, const char *given, const char *wanted)
{
    assert_int_equal(prctl(PR_SET_NAME, given), 0);
    const uint64_t before = frames(f);
    sj_thread_drain_follow_name(f->drained);
    assert_int_equal(frames(f) - before, strcmp(given, wanted) == 0);
    assert_string_equal(f->drained->emitter.name, wanted);
}

/* Makes the test's own thread the drained thread, so that the test can rename it. */
static void a_later_name_of_a_thread_is_sent(void **state)
{
    fixture *f = *state;
    f->drained->emitter.tid = (uint32_t)syscall(SYS_gettid);
    sj_tracked_process_open(getpid(), &f->process.tracked);
    assert_int_equal(sj_thread_emitter_announce(&f->drained->emitter), SJ_OK);
    f->drained->next_name_ns = 0;
    check_name(f, "worker-1", "worker-1");
    f->drained->next_name_ns = UINT64_MAX; /* the name is not checked yet */
    check_name(f, "worker-2", "worker-1");
    f->drained->next_name_ns = 0;
    check_name(f, "worker-3", "worker-3");
    f->drained->next_name_ns = 0;
    f->process.tracked.program.inode++; /* as after exec */
    check_name(f, "successor", "worker-3");
    f->drained->next_name_ns = 0;
    f->process.tracked.program.inode--;
    f->shared.options.salvage = true; /* in salvage, the tid may belong to another thread by now */
    check_name(f, "stranger", "worker-3");
    sj_tracked_process_close(&f->process.tracked);
}

/* Renames the thread, then writes a call of FUNCTION + 1, with an entry or exit of FUNCTION around
 * it. Checks the sum of the kept calls so far and how many of them are open. */
static void check_chosen(fixture *f, const char *name, bool enters, bool leaves, uint64_t calls,
                         uint64_t open)
{
    sj_drain_counters counters = {0};
    f->drained->next_name_ns = 0;
    assert_int_equal(prctl(PR_SET_NAME, name), 0);
    sj_thread_drain_follow_name(f->drained);
    if (enters) {
        assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
    }
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 64));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION + 1, STACK - 64));
    if (leaves) {
        assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK));
    }
    read_all(f);
    sj_thread_drain_add_counters(f->drained, &counters);
    assert_int_equal(counters.calls, calls);
    assert_int_equal(counters.returned, calls - open);
    assert_int_equal(counters.unwound, 0);
    assert_int_equal(counters.orphan_exits, 0);
}

/* The new name also applies to calls that are open at that time. */
static void a_thread_that_renames_itself_is_chosen_by_its_new_name(void **state)
{
    static const char text[] = "{\"policy\": 1, \"calls\": {\"threads\": [\"worker*\"]}}";
    fixture *f = *state;
    sj_policy policy;
    sj_error error = {0};
    assert_int_equal(sj_policy_parse(text, sizeof(text) - 1, "test", &policy, &error), SJ_OK);
    assert_int_equal(sj_function_rules_new(&policy, &f->shared.options.rules), SJ_OK);
    f->shared.options.policy = &policy;
    f->shared.options.ns_per_tick = 1;
    f->drained->emitter.tid = (uint32_t)syscall(SYS_gettid);
    sj_tracked_process_open(getpid(), &f->process.tracked);
    assert_int_equal(sj_thread_drain_set_policy(f->drained), SJ_OK);
    check_chosen(f, "painter", false, false, 0, 0);
    check_chosen(f, "worker-1", false, false, 1, 0);
    check_chosen(f, "painter", true, false, 1, 0);
    check_chosen(f, "worker-2", false, true, 2, 0);
    check_chosen(f, "worker-3", true, true, 4, 0);
    check_chosen(f, "worker-4", true, false, 6, 1);
    check_chosen(f, "painter", false, true, 6, 0);
    sj_tracked_process_close(&f->process.tracked);
    sj_function_rules_free(f->shared.options.rules);
    f->shared.options.rules = NULL;
    f->shared.options.policy = NULL;
    sj_policy_free(&policy);
}

static void the_last_name_of_a_thread_is_sent(void **state)
{
    fixture *f = *state;
    f->drained->emitter.tid = (uint32_t)syscall(SYS_gettid);
    sj_tracked_process_open(getpid(), &f->process.tracked);
    assert_int_equal(sj_thread_emitter_announce(&f->drained->emitter), SJ_OK);
    f->drained->next_name_ns = UINT64_MAX;
    check_name(f, "worker", "fake");
    f->process.is_finishing = true; /* the recording ends, and the program keeps running */
    check_name(f, "at the end", "at the end");
    f->process.is_gone = true;
    check_name(f, "stranger", "at the end");
    sj_thread_slot *slot = sj_arena_view_slot(&f->process.view, 0);
    memcpy(slot->last_name, "sixteen letters!", sizeof(slot->last_name));
    sj_thread_drain_follow_name(f->drained);
    assert_string_equal(f->drained->emitter.name, "sixteen letters!");
    sj_tracked_process_close(&f->process.tracked);
}

/* All events of the three refused blocks are unsent, once each. */
static void events_of_refused_blocks_are_unsent_once(void **state)
{
    fixture *f = *state;
    first_refused = 3;
    last_refused = 5;
    unwind(f);
    read_all(f);
    assert_int_equal(sj_thread_drain_flush(f->drained), SJ_OK);
    assert_int_equal(offered, 5);
    assert_int_equal(unsent(f), 3 * BLOCK_EVENTS);
    for (int i = 0; i < BLOCK_EVENTS / 2 + 1; i++) {
        assert_true(fake_thread_call(&f->thread, FUNCTION));
    }
    read_all(f);
    assert_int_equal(offered, 6);
    assert_int_equal(unsent(f), 2);
}

/* Writes entries and exits without a clock into one slot of the arena. */
static void put_shorts(fixture *f, uint32_t count)
{
    sj_record *place = fake_thread_reserve(&f->thread);
    assert_non_null(place);
    for (uint32_t part = 0; part < count; part++) {
        const uint32_t word = SJ_SHORT_FILLER | part % 2 << SJ_SHORT_EXIT_BIT |
                              (STACK / SJ_STACK_ALIGNMENT & 0xfff) << SJ_SHORT_STACK_BIT | FUNCTION;
        memcpy(place->bytes + (size_t)part * SJ_SHORT_BYTES, &word, sizeof(word));
    }
}

static void put_counted_calls(fixture *f)
{
    put_shorts(f, SJ_SHORTS);
}

static uint64_t unsent_calls(const fixture *f)
{
    return sj_arena_view_slot(&f->arena.view, 0)->unsent_calls;
}

/* No gap of a later block has reported the calls. */
static void calls_of_refused_blocks_are_not_sent(void **state)
{
    enum { CALLS = BLOCK_EVENTS / 2 + 1 };
    fixture *f = *state;
    first_refused = 1;
    last_refused = 2;
    for (int i = 0; i < CALLS; i++) {
        assert_true(fake_thread_call(&f->thread, FUNCTION));
    }
    read_all(f);
    assert_int_equal(sj_thread_drain_flush(f->drained), SJ_OK);
    assert_int_equal(offered, 2);
    assert_int_equal(unsent_calls(f), CALLS);
    assert_int_equal(unsent(f), 2 * CALLS);
}

/* These calls wait for the time of a later record, so a flush does not put them into a block. */
static void counted_calls_of_an_idle_thread_are_unsent(void **state)
{
    fixture *f = *state;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK + 16));
    put_counted_calls(f);
    read_all(f);
    assert_int_equal(sj_thread_drain_flush(f->drained), SJ_OK);
    assert_int_equal(offered, 1);
    assert_int_equal(unsent(f), 4);
    assert_int_equal(unsent_calls(f), 2);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK + 16));
    read_all(f);
    assert_int_equal(sj_thread_drain_flush(f->drained), SJ_OK);
    assert_int_equal(offered, 2);
    assert_int_equal(unsent(f), 0);
    assert_int_equal(unsent_calls(f), 0);
}

/* A killed recorder had read the full-size record that these calls need for decoding. */
static void counted_calls_of_unknown_functions_are_lost_calls(void **state)
{
    fixture *f = *state;
    sj_assembler_counters counters;
    put_counted_calls(f);
    read_all(f);
    assert_int_equal(f->drained->emitter.progress.unsent_calls, 2);
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    read_all(f);
    assert_int_equal(sj_thread_drain_flush(f->drained), SJ_OK);
    assert_int_equal(unsent_calls(f), 0);
    sj_assembler_get_counters(f->drained->assembler, &counters);
    assert_int_equal(counters.lost_calls, 2);
    assert_int_equal(counters.lost_events, 4);
}

static void call_often(fixture *f, sj_process_drain *process)
{
    uint64_t records = 0;
    for (int i = 0; i < 600; i++) {
        assert_true(fake_thread_call(&f->thread, FUNCTION));
    }
    process->next_check_ns = 0;
    assert_int_equal(sj_process_drain_poll(process, 1, &records), SJ_OK);
    assert_int_equal(records, 1200);
}

sj_status __wrap_sj_registry_end_process(sj_registry *registry, uint64_t process,
                                         const sj_process_end *end);
sj_status __wrap_sj_registry_end_process(sj_registry *registry, uint64_t process,
                                         const sj_process_end *end)
{
    (void)registry;
    (void)process;
    (void)end;
    return SJ_OK;
}

/* The process keeps running, as after `detach`, and its last slot is partly filled. */
static void a_partly_filled_slot_of_a_running_process_is_read(void **state)
{
    fixture *f = *state;
    sj_process_drain *process;
    f->shared.options.runtime_directory = f->arena.directory;
    f->shared.options.threadless = true;
    sj_tracked_process own;
    sj_tracked_process_open(getpid(), &own);
    assert_int_equal(sj_process_drain_new(&f->shared, 2, &own, "1.0.arena", &process), SJ_OK);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK + 16));
    put_counted_calls(f);
    put_shorts(f, 3);
    assert_int_equal(sj_process_drain_finish(process, false), SJ_OK);
    assert_int_equal(f->shared.ended.calls, 1 + 2 + 2);
    assert_int_equal(f->shared.ended.short_records, 4 + 3);
    assert_int_equal(f->shared.ended.lost_events, 0);
    sj_process_drain_free(process);
}

/* A process joins while every call is timed, and a later policy asks for counts. */
static bool is_counted_after_a_change(fixture *f, bool may_count)
{
    static const sj_policy exact = {.counts_calls = false};
    static const sj_policy adaptive = {.counts_calls = true};
    sj_process_drain *process;
    f->shared.options.runtime_directory = f->arena.directory;
    f->shared.options.ns_per_tick = 1;
    f->shared.options.threadless = true;
    f->shared.options.may_count_calls = may_count;
    f->shared.options.policy = &exact;
    sj_tracked_process own;
    sj_tracked_process_open(getpid(), &own);
    assert_int_equal(sj_process_drain_new(&f->shared, 2, &own, "1.0.arena", &process), SJ_OK);
    call_often(f, process);
    assert_int_equal(sj_arena_view_counted(&f->arena.view)[FUNCTION], 0);
    f->shared.options.policy = &adaptive;
    assert_int_equal(sj_process_drain_set_policy(process, false), SJ_OK);
    call_often(f, process);
    const bool is_counted = sj_arena_view_counted(&f->arena.view)[FUNCTION] != 0;
    sj_process_drain_free(process);
    return is_counted;
}

static void a_process_that_joined_with_every_clock_counts_when_a_policy_says_so(void **state)
{
    assert_true(is_counted_after_a_change(*state, true));
}

static void an_agent_without_counting_yields_no_counted_calls(void **state)
{
    assert_false(is_counted_after_a_change(*state, false));
}

static void blocks_are_given_times_in_clock_steps(void **state)
{
    read_all(*state);
    assert_int_equal(told_step, CLOCK_STEP);
}

static void the_receiver_rewriter_knows_the_unhooked_functions(void **state)
{
    const fixture *f = *state;
    assert_ptr_equal(f->drained->stages.receivers.freed, f->process.freed);
}

/* Writes two nested entries of FUNCTION at 1,000, and unhooks FUNCTION + 1 at 1,500. */
static void free_next_function(fixture *f)
{
    static const uint32_t freed = FUNCTION + 1;
    f->thread.ticks = f->start + 1000;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK - 16));
    sj_unhooked_set_add(f->process.freed, &freed, 1, f->start + 1500);
    f->thread.ticks = f->start + 2000;
}

static void end_calls(fixture *f)
{
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK));
    read_all(f);
    assert_int_equal(sj_thread_drain_flush(f->drained), SJ_OK);
}

/* FUNCTION + 1 is unhooked, so this call will have no exit. */
static void an_entry_under_way_at_the_unhooking_is_followed_by_a_gap(void **state)
{
    fixture *f = *state;
    free_next_function(f);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_NOTE, SJ_NOTE_WAITED, 800));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 32));
    end_calls(f);
    assert_int_equal(pauses, 1);
    assert_int_equal(pause_event, 3);
}

static void an_entry_at_the_time_of_an_exit_is_followed_by_a_gap(void **state)
{
    fixture *f = *state;
    free_next_function(f);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK - 16));
    f->thread.ticks--;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 16));
    end_calls(f);
    assert_int_equal(pauses, 1);
    assert_int_equal(pause_event, 4);
}

/* The entry read its clock at 1,400, before the change. Then a handler interrupted it, so the
 * handler's records come first. */
static void an_entry_that_a_handler_interrupted_is_followed_by_a_gap(void **state)
{
    fixture *f = *state;
    free_next_function(f);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK - 64));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK - 64));
    f->thread.ticks = f->start + 1400;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 32));
    f->thread.ticks = f->start + 3000;
    end_calls(f);
    assert_int_equal(pauses, 1);
    assert_int_equal(pause_event, 5);
}

/* The filter holds calls back until they reach the minimum duration. Such calls get their gap,
 * too. */
static void an_entry_that_is_held_back_is_followed_by_a_gap(void **state)
{
    static const sj_policy policy = {.minimum_ns = 5000};
    static const uint32_t freed = FUNCTION + 1;
    fixture *f = *state;
    sj_policy_judge rules = {.policy = &policy, .ns_per_tick = 1};
    assert_int_equal(sj_function_rules_new(&policy, &rules.rules), SJ_OK);
    assert_int_equal(sj_record_stages_set_policy(&f->drained->stages, &rules, 1), SJ_OK);
    f->thread.ticks = f->start + 1000;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 16));
    read_all(f);
    sj_unhooked_set_add(f->process.freed, &freed, 1, f->start + 1500);
    f->thread.ticks = f->start + 9000;
    end_calls(f);
    assert_int_equal(pauses, 1);
    assert_int_equal(pause_event, 2);
    sj_function_rules_free(rules.rules);
}

/* A recorder that is killed has read these records, and no other process can read them again. */
static void open_calls_that_are_held_back_are_unsent(void **state)
{
    static const sj_policy policy = {.minimum_ns = 5000};
    fixture *f = *state;
    sj_policy_judge rules = {.policy = &policy, .ns_per_tick = 1};
    assert_int_equal(sj_function_rules_new(&policy, &rules.rules), SJ_OK);
    assert_int_equal(sj_record_stages_set_policy(&f->drained->stages, &rules, 1), SJ_OK);
    f->thread.ticks = sj_clock_ticks() + ((uint64_t)1 << 40); /* no call ages by itself */
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK - 16));
    read_all(f);
    assert_int_equal(sj_thread_drain_flush(f->drained), SJ_OK);
    assert_int_equal(unsent(f), 2);
    assert_int_equal(unsent_calls(f), 2);
    f->thread.ticks += 9000;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK - 16));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK));
    read_all(f);
    assert_int_equal(sj_thread_drain_flush(f->drained), SJ_OK);
    assert_int_equal(unsent(f), 0);
    assert_int_equal(unsent_calls(f), 0);
    sj_function_rules_free(rules.rules);
}

static void entries_of_functions_hooked_again_follow_no_change(void **state)
{
    static const uint32_t hooked = FUNCTION + 1;
    fixture *f = *state;
    free_next_function(f);
    sj_unhooked_set_remove(f->process.freed, &hooked, 1);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 32));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION + 1, STACK - 32));
    end_calls(f);
    assert_int_equal(pauses, 0);
}

static void a_call_between_two_changes_is_whole(void **state)
{
    static const uint32_t changed = FUNCTION + 1;
    fixture *f = *state;
    free_next_function(f);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK - 16));
    read_all(f);
    sj_unhooked_set_remove(f->process.freed, &changed, 1);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 16));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION + 1, STACK - 16));
    sj_unhooked_set_add(f->process.freed, &changed, 1, f->start + 3000);
    f->thread.ticks = f->start + 4000;
    end_calls(f);
    assert_int_equal(pauses, 0);
}

/* The call of FUNCTION + 1 ended after the first change, so its gap is there. */
static void a_call_that_ends_between_two_changes_has_the_first_gap(void **state)
{
    static const uint32_t other = FUNCTION + 2;
    static const uint32_t freed = FUNCTION + 1;
    fixture *f = *state;
    f->thread.ticks = f->start + 1000;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 16));
    sj_unhooked_set_add(f->process.freed, &freed, 1, f->start + 1500);
    f->thread.ticks = f->start + 2000;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK - 16));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK - 16));
    sj_unhooked_set_add(f->process.freed, &other, 1, f->start + 3000);
    f->thread.ticks = f->start + 4000;
    end_calls(f);
    assert_int_equal(pauses, 1);
    assert_int_equal(pause_event, 2);
}

/* The change is older than half the range of a record's 48-bit clock. */
static void a_change_of_long_ago_still_makes_a_gap(void **state)
{
    static const uint32_t freed = FUNCTION + 1;
    fixture *f = *state;
    const uint64_t early = f->start + 1000;
    const uint64_t late = early + (UINT64_C(3) << 46);
    sj_record_stages *stages = &f->drained->stages;
    sj_record records[2];
    fake_record_write(&records[0], early, SJ_RECORD_ENTER, FUNCTION, STACK);
    fake_record_write(&records[1], early, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 16);
    assert_int_equal(
        sj_record_stages_feed(
            stages, &(sj_record_batch){.records = records, .count = 2, .now_ticks = early + 100}),
        SJ_OK);
    sj_unhooked_set_add(f->process.freed, &freed, 1, early + 500);
    fake_record_write(&records[0], late, SJ_RECORD_LEAVE, FUNCTION, STACK);
    assert_int_equal(
        sj_record_stages_feed(
            stages, &(sj_record_batch){.records = records, .count = 1, .now_ticks = late + 100}),
        SJ_OK);
    assert_int_equal(sj_assembler_flush(f->drained->assembler, late), SJ_OK);
    assert_int_equal(pauses, 1);
    assert_int_equal(pause_event, 2);
}

/* A value has no time. The record that it belongs to follows later. */
static void values_alone_do_not_follow_a_change(void **state)
{
    static const uint32_t freed = FUNCTION + 1;
    fixture *f = *state;
    f->thread.ticks = f->start + 1000;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 16));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_VALUE, FUNCTION + 1, STACK - 16));
    sj_unhooked_set_add(f->process.freed, &freed, 1, f->start + 1500);
    read_all(f);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION + 1, STACK - 16));
    f->thread.ticks = f->start + 4000;
    end_calls(f);
    assert_int_equal(pauses, 0);
}

/* Calls that were open at the attach have no records. They may end, unseen, before the thread's
 * first record. */
static void calls_open_at_the_attach_get_the_gaps_of_later_changes(void **state)
{
    static const uint32_t freed = FUNCTION + 1;
    fixture *f = *state;
    sj_open_call_at_attach open[] = {{.tid = 77, .function = FUNCTION, .stack = STACK},
                                     {.tid = 77, .function = FUNCTION + 1, .stack = STACK - 16}};
    sj_thread_drain_free(f->drained);
    f->shared.preopened = open;
    f->shared.preopened_count = 2;
    f->shared.preopened_pid = f->process.tracked.pid;
    f->shared.preopened_ticks = f->start + 1000;
    sj_unhooked_set_add(f->process.freed, &freed, 1, f->start + 1500);
    sj_arena_view_slot(&f->arena.view, 0)->start_ticks = f->start + 2000;
    assert_int_equal(sj_thread_drain_new(&f->process, 0, &f->drained), SJ_OK);
    f->thread.ticks = f->start + 2000;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK - 32));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK - 32));
    end_calls(f);
    assert_int_equal(pauses, 1);
    assert_int_equal(pause_event, 2);
}

static void a_thread_first_read_after_a_change_has_calls_from_before_it(void **state)
{
    static const sj_policy policy = {.budget_percent = 5};
    static const uint32_t freed = FUNCTION + 1;
    fixture *f = *state;
    assert_int_equal(sj_function_rules_new(&policy, &f->shared.options.rules), SJ_OK);
    f->shared.options.policy = &policy;
    f->shared.options.ns_per_tick = 1;
    sj_thread_drain_free(f->drained);
    sj_arena_view_slot(&f->arena.view, 0)->start_ticks = f->start + 900;
    f->thread.ticks = f->start + 1000;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 16));
    sj_unhooked_set_add(f->process.freed, &freed, 1, f->start + 1500);
    sj_unhooked_set_remove(f->process.freed, &freed, 1); /* hooked again */
    assert_int_equal(sj_thread_drain_new(&f->process, 0, &f->drained), SJ_OK);
    f->thread.ticks = f->start + 2000;
    end_calls(f);
    assert_int_equal(pauses, 1);
    assert_int_equal(pause_event, 2);
    sj_function_rules_free(f->shared.options.rules);
    f->shared.options.rules = NULL;
}

#define DRAIN_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DRAIN_TEST(a_short_thread_takes_one_frame),
        DRAIN_TEST(a_block_that_is_stored_is_not_lost_by_a_kill),
        DRAIN_TEST(a_running_thread_is_announced),
        DRAIN_TEST(a_later_name_of_a_thread_is_sent),
        DRAIN_TEST(a_thread_that_renames_itself_is_chosen_by_its_new_name),
        DRAIN_TEST(calls_of_refused_blocks_are_not_sent),
        DRAIN_TEST(the_last_name_of_a_thread_is_sent),
        DRAIN_TEST(endings_of_refused_blocks_do_not_count_in_the_next_block),
        DRAIN_TEST(events_of_refused_blocks_are_unsent_once),
        DRAIN_TEST(an_entry_under_way_at_the_unhooking_is_followed_by_a_gap),
        DRAIN_TEST(an_entry_at_the_time_of_an_exit_is_followed_by_a_gap),
        DRAIN_TEST(an_entry_that_a_handler_interrupted_is_followed_by_a_gap),
        DRAIN_TEST(values_alone_do_not_follow_a_change),
        DRAIN_TEST(calls_open_at_the_attach_get_the_gaps_of_later_changes),
        DRAIN_TEST(a_change_of_long_ago_still_makes_a_gap),
        DRAIN_TEST(a_thread_first_read_after_a_change_has_calls_from_before_it),
        DRAIN_TEST(a_call_between_two_changes_is_whole),
        DRAIN_TEST(a_call_that_ends_between_two_changes_has_the_first_gap),
        DRAIN_TEST(an_entry_that_is_held_back_is_followed_by_a_gap),
        DRAIN_TEST(open_calls_that_are_held_back_are_unsent),
        DRAIN_TEST(entries_of_functions_hooked_again_follow_no_change),
        DRAIN_TEST(counted_calls_of_an_idle_thread_are_unsent),
        DRAIN_TEST(counted_calls_of_unknown_functions_are_lost_calls),
        DRAIN_TEST(a_partly_filled_slot_of_a_running_process_is_read),
        DRAIN_TEST(a_process_that_joined_with_every_clock_counts_when_a_policy_says_so),
        DRAIN_TEST(an_agent_without_counting_yields_no_counted_calls),
        DRAIN_TEST(the_receiver_rewriter_knows_the_unhooked_functions),
        DRAIN_TEST(blocks_are_given_times_in_clock_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
