/* Tests the live function.txt. Lines of all streams are in the order of time and are not written
 * too early. Names of calls may come from an earlier block or be unknown. Files keep their
 * limits. */
#include "agent/session/function_log.h"
#include "agent/session/function_log_file.h"

#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_BYTES = 16384, EVENTS_MAX = 16 };

typedef struct log_test {
    char directory[64];
    sj_function_log *log;
    sj_block_encoder *encoder;
    sj_clock_pair start;
} log_test;

static void begin(log_test *test, uint64_t max_bytes, uint32_t max_files)
{
    snprintf(test->directory, sizeof(test->directory), "/tmp/sojourn-log-XXXXXX");
    assert_non_null(mkdtemp(test->directory));
    sj_clock_read_pair(0, &test->start);
    const sj_function_log_options options = {.directory = test->directory,
                                             .max_bytes = max_bytes,
                                             .max_files = max_files,
                                             .start = test->start};
    assert_int_equal(sj_function_log_open(&options, &test->log, NULL), SJ_OK);
    assert_int_equal(sj_block_encoder_new(&test->encoder), SJ_OK);
    sj_function_log_name(test->log, 1, "outer", "/lib/m.so", 0x10);
    sj_function_log_name(test->log, 2, "_ZN3Npc6UpdateEi", "/lib/m.so", 0x20);
    sj_function_log_name(test->log, 3, "", "/lib/m.so", 0x30);
}

static void end(log_test *test)
{
    char command[128];
    sj_function_log_close(test->log);
    sj_block_encoder_free(test->encoder);
    snprintf(command, sizeof(command), "rm -r %s", test->directory);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
}

static uint32_t tails[EVENTS_MAX]; /* sj_event.tail_call of each event of a block */

/* Makes a block of a stream and gives it to the log. `functions` holds ids, and 0 for an exit.
 * Events are ten ticks apart, from `first_tick` on. */
static void give(log_test *test, uint32_t stream, uint64_t first_event, uint64_t first_tick,
                 const sj_stack_frame *frames, uint32_t depth, const uint32_t *functions,
                 size_t count, const sj_block_value *value, const sj_block_ending *ending)
{
    static uint8_t output[65536];
    sj_event events[EVENTS_MAX];
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        events[i] = (sj_event){.ticks = test->start.ticks + first_tick + 10 * i,
                               .function = functions[i],
                               .tail_call = tails[i]};
    }
    const sj_block_input input = {.header = {.version = SJ_BLOCK_VERSION,
                                             .kind = SJ_BLOCK_CALLS,
                                             .stream = stream,
                                             .first_event = first_event,
                                             .first_call = first_event,
                                             .clock_step = 1,
                                             .open_depth = depth},
                                  .frames = frames,
                                  .events = events,
                                  .values = value,
                                  .value_count = value != NULL,
                                  .endings = ending,
                                  .ending_count = ending != NULL};
    sj_block_input counted = input;
    counted.header.event_count = (uint32_t)count;
    assert_true(sj_block_bound(&counted) <= sizeof(output));
    assert_int_equal(sj_block_encode(test->encoder, &counted, output, sizeof(output), &size),
                     SJ_OK);
    sj_function_log_block(test->log, (sj_slice){.data = output, .size = size});
}

/* Returns the texts of a file's lines, without their numbers and times. */
static char *said(const log_test *test, const char *name)
{
    static char texts[TEXT_BYTES];
    char path[128];
    char line[1024];
    snprintf(path, sizeof(path), "%s/%s", test->directory, name);
    FILE *file = fopen(path, "re");
    texts[0] = '\0';
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        assert_non_null(strchr(line, ']'));
        strcat(texts, strchr(line, ']') + 1); /* NOLINT */
    }
    if (file != NULL) {
        fclose(file);
    }
    return texts;
}

static void lines_of_streams_come_in_the_order_of_time(void **state)
{
    (void)state;
    log_test test;
    const uint32_t first[] = {1, 2, 0, 0};
    const uint32_t second[] = {3, 0};
    begin(&test, 0, 1);
    sj_function_log_stream(test.log, 1, 4711);
    give(&test, 1, 0, 100, NULL, 0, first, 4, NULL, NULL);
    give(&test, 2, 0, 105, NULL, 0, second, 2, NULL, NULL);
    sj_function_log_advance(test.log, test.start.ticks + 105);
    assert_string_equal(said(&test, "function.txt"), "enter:outer tid:4711\n");
    sj_function_log_advance(test.log, test.start.ticks + 1000);
    assert_string_equal(said(&test, "function.txt"),
                        "enter:outer tid:4711\nenter:m.so+0x30\nenter:Npc::Update(int) tid:4711\n"
                        "leave:m.so+0x30ret:-\nleave:Npc::Update(int)ret:- tid:4711\n"
                        "leave:outerret:- tid:4711\n");
    end(&test);
}

static void estimated_durations_are_marked(void **state)
{
    (void)state;
    log_test test;
    const uint32_t first[] = {2, 1};
    const uint32_t second[] = {0, 0};
    const sj_stack_frame frames[] = {
        {.function = 2, .start_ticks = 1},
        {.function = 1, .start_ticks = 2, .call_index = 1, .flags = SJ_CALL_UNTIMED}};
    begin(&test, 0, 1);
    tails[1] = SJ_EVENT_UNTIMED;
    give(&test, 1, 0, 100, NULL, 0, first, 2, NULL, NULL);
    tails[1] = 0;
    give(&test, 1, 2, 200, frames, 2, second, 2, NULL, NULL);
    give(&test, 2, 2, 300, frames, 2, second, 2, NULL, NULL);
    sj_function_log_advance(test.log, UINT64_MAX);
    assert_string_equal(said(&test, "function.txt"),
                        "enter:Npc::Update(int)\nenter:outer ~\n"
                        "leave:outerret:- ~\nleave:Npc::Update(int)ret:-\n"
                        "leave:outerret:- ~\nleave:Npc::Update(int)ret:-\n");
    end(&test);
}

static void values_and_endings_stand_in_their_lines(void **state)
{
    (void)state;
    log_test test;
    const uint32_t entry[] = {2};
    const uint32_t exits[] = {0, 1, 0};
    const sj_block_value argument = {
        .call_index = 0, .bits = 7, .descriptor = sj_value_descriptor(1, SJ_VALUE_INT)};
    const sj_block_value result = {
        .call_index = 0, .bits = (uint64_t)-1, .descriptor = sj_value_descriptor(0, SJ_VALUE_INT)};
    const sj_block_ending thrown = {.event = 2, .ending = SJ_ENDING_UNWOUND};
    const sj_stack_frame frame = {.function = 2, .start_ticks = 1};
    begin(&test, 0, 1);
    give(&test, 1, 0, 100, NULL, 0, entry, 1, &argument, NULL);
    give(&test, 1, 1, 200, &frame, 1, exits, 3, &result, &thrown);
    sj_function_log_advance(test.log, UINT64_MAX);
    assert_string_equal(said(&test, "function.txt"),
                        "enter:Npc::Update(7)\nleave:Npc::Update(7)ret:-1\n"
                        "enter:outer\nleave:outerret:!\n");
    end(&test);
}

static void errno_stands_behind_the_result(void **state)
{
    (void)state;
    log_test test;
    const uint32_t call[] = {2, 0};
    const sj_block_value failed = {
        .call_index = 0, .bits = 13, .descriptor = sj_value_descriptor(0, SJ_VALUE_ERRNO)};
    begin(&test, 0, 1);
    give(&test, 1, 0, 100, NULL, 0, call, 2, &failed, NULL);
    sj_function_log_advance(test.log, UINT64_MAX);
    assert_string_equal(said(&test, "function.txt"),
                        "enter:Npc::Update(int)\nleave:Npc::Update(int)ret:- errno:13\n");
    end(&test);
}

static void behind_a_missing_block_calls_have_the_names_of_the_key_frame(void **state)
{
    (void)state;
    log_test test;
    const uint32_t entry[] = {1};
    const uint32_t exits[] = {0, 0};
    const sj_stack_frame frames[] = {{.function = 3, .start_ticks = 1},
                                     {.function = 4, .start_ticks = 2, .call_index = 1}};
    begin(&test, 0, 1);
    give(&test, 1, 0, 100, NULL, 0, entry, 1, NULL, NULL);
    give(&test, 1, 40, 200, frames, 2, exits, 2, NULL, NULL);
    sj_function_log_advance(test.log, UINT64_MAX);
    assert_string_equal(said(&test, "function.txt"),
                        "enter:outer\nleave:(unknown function)ret:-\nleave:m.so+0x30ret:-\n");
    end(&test);
}

static void files_stay_within_their_limits(void **state)
{
    (void)state;
    log_test test;
    sj_function_log_counters counters;
    const uint32_t calls[] = {1, 0, 1, 0, 1, 0, 1, 0};
    begin(&test, 128, 2);
    give(&test, 1, 0, 100, NULL, 0, calls, 8, NULL, NULL);
    sj_function_log_advance(test.log, UINT64_MAX);
    sj_function_log_get_counters(test.log, &counters);
    assert_int_equal(counters.lines, 8);
    assert_true(counters.removed_files >= 1);
    assert_int_equal(counters.failure, 0);
    assert_string_equal(said(&test, "function.2.txt"), "");
    assert_non_null(strstr(said(&test, "function.1.txt"), "outer"));
    assert_non_null(strstr(said(&test, "function.txt"), "outer"));
    end(&test);
}

static void a_directory_has_one_writer(void **state)
{
    (void)state;
    log_test test;
    sj_function_log *second = NULL;
    sj_error error = {0};
    begin(&test, 0, 1);
    const sj_function_log_options options = {.directory = test.directory, .max_files = 1};
    assert_int_equal(sj_function_log_open(&options, &second, &error), SJ_EAGAIN);
    assert_non_null(strstr(error.text, "another recording"));
    end(&test);
}

static void a_damaged_block_is_counted(void **state)
{
    (void)state;
    log_test test;
    static const uint8_t nothing[200];
    begin(&test, 0, 1);
    sj_function_log_block(test.log, (sj_slice){.data = nothing, .size = sizeof(nothing)});
    sj_function_log_advance(test.log, UINT64_MAX);
    assert_string_equal(said(&test, "function.txt"), "");
    end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_streams_come_in_the_order_of_time),
        cmocka_unit_test(estimated_durations_are_marked),
        cmocka_unit_test(values_and_endings_stand_in_their_lines),
        cmocka_unit_test(errno_stands_behind_the_result),
        cmocka_unit_test(behind_a_missing_block_calls_have_the_names_of_the_key_frame),
        cmocka_unit_test(files_stay_within_their_limits),
        cmocka_unit_test(a_directory_has_one_writer),
        cmocka_unit_test(a_damaged_block_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
