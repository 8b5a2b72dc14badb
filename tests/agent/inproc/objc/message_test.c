/* The agent's own code rebinds and records objc_msgSend of the sample dispatcher. Arguments and
 * results are unchanged, and every message is one entry and one exit in the arena. Unhooking leaves
 * nothing behind. */
#include "agent/inproc/objc/dispatch.h"
#include "agent/inproc/recorder/internal.h"
#include "tests/samples/objc/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { NAMES = 64, NAME_BYTES = 128 };

static char names[NAMES][NAME_BYTES]; /* Indexed by function id. */
static uint32_t name_count;
static const char *unwanted; /* the name that the "policy" of this test excludes; NULL: none */

static bool register_method(const sj_objc_report *method, uint32_t *function)
{
    snprintf(names[++name_count], NAME_BYTES, "%s", method->name);
    const bool is_wanted = unwanted == NULL || strcmp(unwanted, method->name) != 0;
    *function = is_wanted ? name_count : 0;
    return true;
}

static void hook(void)
{
    assert_int_equal(sj_objc_dispatch_start(register_method), SJ_OK);
}

/* Counts the entries and exits of each function. All chunks belong to one thread. */
static void count_records(uint32_t enters[NAMES], uint32_t leaves[NAMES])
{
    const uint8_t *base = (const uint8_t *)sj_recorder.arena;
    const uint64_t first = sj_arena_chunks_start(sj_recorder.arena->max_threads);
    for (uint64_t at = first; at < sj_recorder.arena_bytes; at += SJ_RECORD_BYTES) {
        const sj_record *record = (const sj_record *)(const void *)(base + at);
        const uint32_t tag = sj_record_tag(record);
        const uint32_t function = tag & SJ_RECORD_FUNCTION_MASK;
        if ((at & 0xf000) == 0 || tag == 0 || function >= NAMES) {
            continue;
        }
        const uint32_t kind = tag >> SJ_RECORD_FUNCTION_BITS;
        enters[function] += kind == SJ_RECORD_ENTER;
        leaves[function] += kind == SJ_RECORD_LEAVE;
    }
}

static uint32_t id_of(const char *name)
{
    for (uint32_t i = 1; i <= name_count; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return 0;
}

static void test_messages_are_recorded_and_come_back_whole(void **state)
{
    uint32_t enters[NAMES] = {0};
    uint32_t leaves[NAMES] = {0};
    (void)state;
    assert_int_equal(send_messages(hook, sj_objc_dispatch_stop), 0);
    count_records(enters, leaves);
    const uint32_t rounds = SEND_MESSAGES_ROUNDS;
    const uint32_t recurse = id_of("-[Derived:Base recurse:]");
    const uint32_t jump = id_of("-[Derived:Base jump]");
    assert_true(recurse != 0 && jump != 0);
    assert_int_equal(enters[recurse], rounds * 35);
    assert_int_equal(leaves[recurse], rounds * 35);
    assert_int_equal(enters[id_of("-[Derived:Base big:]")], rounds * 5);
    assert_int_equal(leaves[id_of("-[Derived mixed:]")], rounds);
    assert_int_equal(enters[jump], rounds);
    assert_int_equal(leaves[jump], 0);
    uint32_t calls = 0;
    for (uint32_t i = 1; i < NAMES; i++) {
        calls += enters[i];
    }
    assert_int_equal(calls, rounds * SEND_MESSAGES_CALLS + SEND_MESSAGES_UNWINDS);
}

static void test_unhooked_messages_leave_no_record(void **state)
{
    uint32_t before[NAMES] = {0};
    uint32_t after[NAMES] = {0};
    uint32_t leaves[NAMES] = {0};
    (void)state;
    count_records(before, leaves);
    assert_int_equal(send_messages(NULL, NULL), 0);
    count_records(after, leaves);
    assert_memory_equal(before, after, sizeof(before));
    sj_objc_counters counters;
    sj_objc_get_counters(&counters);
    assert_true(counters.stubs > 0 && counters.refused == 0);
}

static int start(void **state)
{
    static char folder[] = "/tmp/sojourn-message-XXXXXX";
    static const sj_link_welcome welcome = {
        .max_threads = 2, .chunks_per_thread = 8, .full_policy = SJ_FULL_DROP_NEW};
    if (mkdtemp(folder) == NULL || sj_recorder_start(folder, "arena", &welcome) != SJ_OK) {
        return -1;
    }
    sj_recorder_set_state(SJ_ARENA_RECORDING);
    *state = folder;
    return 0;
}

static int finish(void **state)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/arena", (char *)*state);
    return unlink(path) | rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_are_recorded_and_come_back_whole),
        cmocka_unit_test(test_unhooked_messages_leave_no_record),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
