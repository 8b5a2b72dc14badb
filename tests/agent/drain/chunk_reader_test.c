#include "agent/drain/chunk_reader.h"
#include "agent/drain/record_stages.h"

#include "agent/host/clock.h"
#include "tests/support/check.h"
#include "tests/support/fake_arena.h"

#include <stdlib.h>
#include <sys/stat.h>

enum { STACK = 0x7f0000, FUNCTION = 5, CHUNKS = 4 };

typedef struct fixture {
    fake_arena arena;
    fake_thread thread;
    sj_block_encoder *encoder;
    sj_assembler *assembler;
    sj_read_progress progress;
    sj_record_stages stages;
    sj_chunk_reader reader;
    sj_record buffer[SJ_CHUNK_RECORDS];
} fixture;

static uint32_t open_stream(void *context, uint64_t stack, bool own_stack, uint64_t first_ticks)
{
    (void)context;
    (void)stack;
    (void)own_stack;
    (void)first_ticks;
    return 1;
}

static sj_status write_block(void *context, const sj_block_header *header, sj_slice bytes)
{
    (void)context;
    (void)header;
    (void)bytes;
    return SJ_OK;
}

static void write_mark(void *context, uint32_t mark_index, bool end, uint64_t ticks)
{
    (void)context;
    (void)mark_index;
    (void)end;
    (void)ticks;
}

static void start_reader(fixture *f)
{
    sj_chunk_reader_init(&f->reader, &f->arena.view, 0, &f->progress, f->buffer);
}

/* Reads a slot from its beginning. */
static void start_again(fixture *f)
{
    sj_read_progress_init(&f->progress, sj_arena_view_slot(&f->arena.view, 0));
    start_reader(f);
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    const sj_assembler_sink sink = {
        .open_stream = open_stream, .block = write_block, .mark = write_mark};
    fake_arena_make(&f->arena, "1.0.arena", 2, CHUNKS);
    fake_thread_start(&f->thread, &f->arena, 0, 77);
    assert_int_equal(sj_block_encoder_new(&f->encoder), SJ_OK);
    const sj_assembler_options options = {.stack_low = STACK - 0x10000,
                                          .stack_high = STACK + 0x10000,
                                          .start_ticks = f->thread.ticks,
                                          .encoder = f->encoder};
    assert_int_equal(sj_assembler_new(&options, &sink, &f->assembler), SJ_OK);
    start_again(f);
    const sj_staged_thread thread = {.slot = f->progress.slot, .view = &f->arena.view};
    sj_record_stages_init(&f->stages, &thread, f->assembler, &f->progress);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sj_record_stages_deinit(&f->stages);
    sj_assembler_free(f->assembler);
    sj_block_encoder_free(f->encoder);
    fake_arena_remove(&f->arena);
    free(f);
    return 0;
}

static uint64_t read_at(fixture *f, sj_read_mode mode, uint64_t now_ns)
{
    uint64_t count = 0;
    sj_record_batch batch;
    sj_chunk_reader_start(&f->reader, mode, now_ns);
    while (sj_chunk_reader_next(&f->reader, &batch)) {
        assert_int_equal(sj_record_stages_feed(&f->stages, &batch), SJ_OK);
        count += batch.count;
    }
    return count;
}

/* The assembler holds the newest record back until it knows that no older record follows. */
static void flush(fixture *f)
{
    assert_int_equal(sj_assembler_flush(f->assembler, sj_clock_ticks() + 1000000), SJ_OK);
}

static sj_assembler_counters counters(const fixture *f)
{
    sj_assembler_counters counted;
    sj_assembler_get_counters(f->assembler, &counted);
    return counted;
}

static uint64_t free_chunks(const fixture *f)
{
    return atomic_load(&sj_arena_view_slot(&f->arena.view, 0)->free_chunks);
}

static void test_nothing_is_read_from_an_empty_slot(void **state)
{
    assert_int_equal(read_at(*state, SJ_READ_ALL, 1), 0);
    assert_int_equal(read_at(*state, SJ_READ_LAST, 1), 0);
}

static void test_open_chunk_is_read_only_when_asked(void **state)
{
    fixture *f = *state;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    assert_int_equal(read_at(f, SJ_READ_CLOSED, 1), 0);
    assert_int_equal(read_at(f, SJ_READ_ALL, 1), 2);
    assert_int_equal(read_at(f, SJ_READ_ALL, 1), 0);
    assert_int_equal(counters(f).calls, 1);
}

static void test_chunks_go_round_many_times_and_nothing_is_lost(void **state)
{
    fixture *f = *state;
    const uint64_t calls = (uint64_t)20 * CHUNKS * SJ_CHUNK_RECORDS / 2;
    for (uint64_t i = 0; i < calls; i++) {
        if (!fake_thread_call(&f->thread, FUNCTION)) {
            fail_msg("no chunk was given back");
        }
        if (i % 1000 == 0) {
            (void)read_at(f, SJ_READ_CLOSED, 1);
        }
    }
    (void)read_at(f, SJ_READ_LAST, 1);
    flush(f);
    assert_int_equal(counters(f).calls, calls);
    assert_int_equal(counters(f).returned, calls);
    assert_int_equal(counters(f).lost_events, 0);
}

static void test_unread_chunks_are_not_given_back(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < CHUNKS * SJ_CHUNK_RECORDS; i++) {
        assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
    }
    assert_false(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
    assert_int_equal(free_chunks(f), 0);
    (void)read_at(f, SJ_READ_CLOSED, 1);
    assert_int_not_equal(free_chunks(f), 0);
}

static void test_hole_stops_the_reader_until_it_is_filled(void **state)
{
    fixture *f = *state;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    const uint64_t hole_ticks = f->thread.ticks++;
    sj_record *hole = fake_thread_reserve(&f->thread);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK));
    assert_int_equal(read_at(f, SJ_READ_ALL, 1), 2);
    assert_int_equal(read_at(f, SJ_READ_ALL, 2), 0);
    fake_record_write(hole, hole_ticks, SJ_RECORD_ENTER, FUNCTION, STACK);
    assert_int_equal(read_at(f, SJ_READ_ALL, 3), 2);
    flush(f);
    assert_int_equal(counters(f).returned, 2);
    assert_int_equal(f->reader.torn, 0);
}

static void test_old_hole_counts_as_torn_and_its_chunk_is_kept(void **state)
{
    fixture *f = *state;
    sj_record *hole = fake_thread_reserve(&f->thread);
    const uint64_t hole_ticks = f->thread.ticks++;
    for (int i = 1; i < SJ_CHUNK_RECORDS + 1; i++) {
        assert_true(fake_thread_put(&f->thread, i % 2 == 1 ? SJ_RECORD_ENTER : SJ_RECORD_LEAVE,
                                    FUNCTION, STACK));
    }
    assert_int_equal(read_at(f, SJ_READ_ALL, 1), 0);
    assert_int_equal(read_at(f, SJ_READ_ALL, SJ_TORN_NS), 0);
    assert_int_equal(read_at(f, SJ_READ_ALL, SJ_TORN_NS + 1), SJ_CHUNK_RECORDS);
    assert_int_equal(f->reader.torn, 1);
    /* The first chunk is closed and read, but not freed yet. */
    assert_int_equal(free_chunks(f) & 1, 0);
    fake_record_write(hole, hole_ticks, SJ_RECORD_ENTER, FUNCTION, STACK);
    (void)read_at(f, SJ_READ_ALL, SJ_TORN_NS + 2);
    assert_int_equal(free_chunks(f) & 1, 1);
    flush(f);
    assert_int_equal(counters(f).lost_events, 1);
}

/* The stages extend the times of records that wait with the time of the batch. */
static void test_batch_of_a_hole_has_a_time(void **state)
{
    fixture *f = *state;
    sj_record_batch batch;
    const uint64_t begun_ticks = sj_clock_ticks();
    (void)fake_thread_reserve(&f->thread);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK));
    sj_chunk_reader_start(&f->reader, SJ_READ_LAST, 1);
    assert_true(sj_chunk_reader_next(&f->reader, &batch));
    assert_int_equal(batch.count, 0);
    assert_int_equal(batch.lost_events, 1);
    assert_true(batch.now_ticks > begun_ticks);
}

static void test_idle_thread_has_no_hole(void **state)
{
    fixture *f = *state;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    for (uint64_t now_ns = 1; now_ns < 10 * SJ_TORN_NS; now_ns += SJ_TORN_NS / 2) {
        (void)read_at(f, SJ_READ_ALL, now_ns);
    }
    assert_int_equal(f->reader.torn, 0);
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    assert_int_equal(read_at(f, SJ_READ_ALL, 20 * SJ_TORN_NS), 2);
}

static void test_last_read_counts_holes_at_once_and_passes_missing_chunks(void **state)
{
    fixture *f = *state;
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
    (void)fake_thread_reserve(&f->thread);
    (void)fake_thread_reserve(&f->thread);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK));
    /* A thread claimed a chunk and was killed before the chunk had a number. Then a thread claimed
     * another chunk. */
    sj_thread_slot *slot = sj_arena_view_slot(&f->arena.view, 0);
    atomic_fetch_add(&slot->chunk_sequence, 1);
    f->thread.next = SJ_CHUNK_RECORDS;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    assert_int_equal(read_at(f, SJ_READ_LAST, 1), 4);
    assert_int_equal(f->reader.torn, SJ_CHUNK_RECORDS - 2);
}

static void test_notes_of_drops_are_summed(void **state)
{
    fixture *f = *state;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_CALLS, 7));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_EVENTS, 15));
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    (void)read_at(f, SJ_READ_ALL, 1);
    assert_int_equal(f->progress.noted_calls, 7);
    assert_int_equal(f->progress.noted_events, 15);
}

static const sj_thread_slot *slot(const fixture *f)
{
    return sj_arena_view_slot(&f->arena.view, 0);
}

/* Recovery reports these drops after a recorder was killed. */
static void test_drops_that_were_read_and_not_sent_are_unsent(void **state)
{
    fixture *f = *state;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_CALLS, 7));
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_NOTE, SJ_NOTE_DROPPED_EVENTS, 15));
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    (void)read_at(f, SJ_READ_ALL, 1);
    sj_read_progress_save(&f->progress);
    assert_int_equal(slot(f)->cursor.unsent, 2 + 15 + 2);
    assert_int_equal(slot(f)->unsent_calls, 7);
    sj_read_progress_sent(&f->progress, 7, 2 + 15);
    assert_int_equal(slot(f)->cursor.unsent, 2);
    assert_int_equal(slot(f)->unsent_calls, 0);
    sj_read_progress_settle(&f->progress, 3, 4);
    assert_int_equal(slot(f)->cursor.unsent, 4);
    assert_int_equal(slot(f)->unsent_calls, 3);
}

static void test_torn_records_are_unsent(void **state)
{
    fixture *f = *state;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    (void)fake_thread_reserve(&f->thread);
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    (void)read_at(f, SJ_READ_ALL, 1);
    (void)read_at(f, SJ_READ_ALL, 1 + SJ_TORN_NS);
    sj_read_progress_save(&f->progress);
    assert_int_equal(f->reader.torn, 1);
    assert_int_equal(slot(f)->cursor.unsent, 2 + 1 + 2);
}

/* The recorder was killed while it sent a block that ends where a chunk ends. */
static void test_resuming_behind_the_end_of_a_chunk_reads_it_not_again(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < SJ_CHUNK_RECORDS / 2 + 1; i++) {
        assert_true(fake_thread_call(&f->thread, FUNCTION));
    }
    f->progress.position = SJ_CHUNK_RECORDS;
    sj_read_progress_save(&f->progress);
    sj_read_progress_init(&f->progress, f->progress.slot);
    sj_read_progress_resume(&f->progress);
    start_reader(f);
    assert_int_equal(read_at(f, SJ_READ_LAST, 1), 2);
}

/* A thread writes records while the reader reads. Their processors' clocks differ a little. */
static void test_records_newer_than_the_readers_clock_keep_their_order(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < 100; i++) {
        f->thread.ticks = sj_clock_ticks();
        assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
        f->thread.ticks = sj_clock_ticks() + 500000;
        assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION + 1, STACK - 16));
        assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION + 1, STACK - 16));
        assert_true(fake_thread_put(&f->thread, SJ_RECORD_LEAVE, FUNCTION, STACK));
        (void)read_at(f, SJ_READ_ALL, 1);
    }
    flush(f);
    assert_int_equal(counters(f).returned, 200);
    assert_int_equal(counters(f).orphan_exits, 0);
}

static uint64_t allocated_bytes(const fixture *f)
{
    struct stat status;
    assert_int_equal(fstat(f->arena.view.fd, &status), 0);
    return (uint64_t)status.st_blocks * 512;
}

/* Pages that a thread never wrote, in its last chunk and in its window, stay unallocated. */
static void test_reading_what_a_short_thread_left_allocates_nothing(void **state)
{
    fixture *f = *state;
    uint64_t calls;
    uint64_t events;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    const uint64_t before = allocated_bytes(f);
    assert_int_equal(read_at(f, SJ_READ_LAST, 1), 2);
    sj_arena_view_discarded(&f->arena.view, 0, &calls, &events);
    assert_int_equal(calls + events, 0);
    sj_arena_view_recycle(&f->arena.view, 0);
    assert_true(allocated_bytes(f) <= before);
}

/* Written pages may follow pages that were never written. */
static void test_records_behind_unwritten_pages_are_read(void **state)
{
    fixture *f = *state;
    enum { UNWRITTEN = 4 * 4096 / SJ_RECORD_BYTES };
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    f->thread.next += UNWRITTEN;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    assert_int_equal(read_at(f, SJ_READ_LAST, 1), 4);
    assert_int_equal(f->reader.torn, UNWRITTEN);
}

static void test_recycled_slot_is_as_new_after_few_records(void **state)
{
    fixture *f = *state;
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    (void)read_at(f, SJ_READ_LAST, 1);
    sj_arena_view_recycle(&f->arena.view, 0);
    fake_thread_start(&f->thread, &f->arena, 0, 78);
    start_again(f);
    assert_int_equal(read_at(f, SJ_READ_LAST, 1), 0);
    assert_true(fake_thread_put(&f->thread, SJ_RECORD_ENTER, FUNCTION, STACK));
    assert_int_equal(read_at(f, SJ_READ_LAST, 1), 1);
}

static void test_recycled_slot_is_as_new(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < SJ_CHUNK_RECORDS; i++) {
        assert_true(fake_thread_call(&f->thread, FUNCTION));
    }
    (void)read_at(f, SJ_READ_LAST, 1);
    sj_arena_view_recycle(&f->arena.view, 0);
    const sj_thread_slot *slot = sj_arena_view_slot(&f->arena.view, 0);
    assert_int_equal(atomic_load(&slot->state), SJ_THREAD_FREE);
    assert_int_equal(free_chunks(f), (1 << CHUNKS) - 1);
    fake_thread_start(&f->thread, &f->arena, 0, 78);
    start_again(f);
    assert_true(fake_thread_call(&f->thread, FUNCTION));
    assert_int_equal(read_at(f, SJ_READ_ALL, 1), 2);
}

static void test_files_that_are_no_arena_are_refused(void **state)
{
    fixture *f = *state;
    sj_arena_view view;
    sj_arena_header *header = sj_arena_view_header(&f->arena.view);
    assert_int_equal(sj_arena_view_open("/dev/shm/sj-no-such-arena", &view), SJ_EAGAIN);
    /* An arena of an earlier version has no count of slots, so the reader visits all slots. */
    assert_int_equal(sj_arena_view_slots_begun(&f->arena.view), 1);
    header->version = SJ_ARENA_FIRST_VERSION;
    assert_int_equal(sj_arena_view_open(f->arena.path, &view), SJ_OK);
    assert_int_equal(sj_arena_view_slots_begun(&view), view.max_threads);
    sj_arena_view_close(&view);
    header->version = SJ_ARENA_VERSION;
    assert_int_equal(sj_arena_view_open(f->arena.path, &view), SJ_OK);
    atomic_store(&header->slots_begun, UINT32_MAX);
    assert_int_equal(sj_arena_view_slots_begun(&view), view.max_threads);
    sj_arena_view_close(&view);
    header->max_threads = SJ_ARENA_MAX_THREADS + 1;
    assert_int_equal(sj_arena_view_open(f->arena.path, &view), SJ_ECORRUPT);
    /* The arena would then be larger than the file. */
    header->max_threads = 100;
    assert_int_equal(sj_arena_view_open(f->arena.path, &view), SJ_ECORRUPT);
    header->version = SJ_ARENA_VERSION + 1;
    assert_int_equal(sj_arena_view_open(f->arena.path, &view), SJ_EVERSION);
    header->magic = 1;
    assert_int_equal(sj_arena_view_open(f->arena.path, &view), SJ_ECORRUPT);
    header->magic = 0;
    assert_int_equal(sj_arena_view_open(f->arena.path, &view), SJ_EAGAIN);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_nothing_is_read_from_an_empty_slot),
        WITH_FIXTURE(test_open_chunk_is_read_only_when_asked),
        WITH_FIXTURE(test_chunks_go_round_many_times_and_nothing_is_lost),
        WITH_FIXTURE(test_unread_chunks_are_not_given_back),
        WITH_FIXTURE(test_hole_stops_the_reader_until_it_is_filled),
        WITH_FIXTURE(test_old_hole_counts_as_torn_and_its_chunk_is_kept),
        WITH_FIXTURE(test_batch_of_a_hole_has_a_time),
        WITH_FIXTURE(test_idle_thread_has_no_hole),
        WITH_FIXTURE(test_last_read_counts_holes_at_once_and_passes_missing_chunks),
        WITH_FIXTURE(test_notes_of_drops_are_summed),
        WITH_FIXTURE(test_drops_that_were_read_and_not_sent_are_unsent),
        WITH_FIXTURE(test_torn_records_are_unsent),
        WITH_FIXTURE(test_resuming_behind_the_end_of_a_chunk_reads_it_not_again),
        WITH_FIXTURE(test_records_newer_than_the_readers_clock_keep_their_order),
        WITH_FIXTURE(test_reading_what_a_short_thread_left_allocates_nothing),
        WITH_FIXTURE(test_records_behind_unwritten_pages_are_read),
        WITH_FIXTURE(test_recycled_slot_is_as_new_after_few_records),
        WITH_FIXTURE(test_recycled_slot_is_as_new),
        WITH_FIXTURE(test_files_that_are_no_arena_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
