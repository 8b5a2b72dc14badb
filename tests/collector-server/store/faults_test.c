/* Disks and memory that fail at any step of ingest, and power failures. Acknowledged frames are
 * stored. The others can be sent again, and then give the sums of an undisturbed run. Tests some of
 * the steps; SJ_LONG=1: each one. */
#include "collector-server/store/store_internal.h"
#include "collector-server/store/verify.h"
#include "tests/collector-server/store/lab_file.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/power_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    EVENTS = 150,
    BLOCKS = 8,
    MOST_FRAMES = BLOCKS + 12,
    STEPS = 8,
    DISK_WAYS = FAULT_KINDS * 2,
    DELAYS = 2
};

/* The frames that a device sends, and those that the store acknowledged. */
typedef struct sent_frames {
    sj_slice frames[MOST_FRAMES];
    size_t count;
    size_t batch_ends[MOST_FRAMES]; /* frame after the last of each batch */
    size_t batches;
    size_t acknowledged; /* acknowledged batches */
} sent_frames;

/* One run: how faults are planted, and their effects. */
typedef struct fault_plan {
    bool in_memory; /* else the fault is on the disk */
    uint64_t step;
    fault_kind kind;
    bool lasts;
    uint32_t delay_ms;
} fault_plan;

static sent_frames sent;
static char *reference[DELAYS]; /* sums of an undisturbed run, deferred or not */
static uint64_t log_at_batch[MOST_FRAMES];

static bool is_long(void)
{
    return getenv("SJ_LONG") != NULL;
}

static void add(sj_slice made)
{
    uint8_t *copy = malloc(made.size);
    assert_non_null(copy);
    memcpy(copy, made.data, made.size);
    assert_true(sent.count < MOST_FRAMES);
    sent.frames[sent.count++] = (sj_slice){.data = copy, .size = made.size};
}

static void end_batch(void)
{
    sent.batch_ends[sent.batches++] = sent.count;
}

static int make_frames(void **state)
{
    frame_maker maker;
    (void)state;
    frame_maker_init(&maker, 1);
    add(frame_maker_hello(&maker));
    add(frame_maker_session(&maker));
    add(frame_maker_module(&maker));
    add(frame_maker_thread(&maker));
    end_batch();
    for (int i = 0; i < BLOCKS; ++i) {
        maker.lost_calls = i == 3 ? 5 : 0;
        add(frame_maker_block(&maker, EVENTS, i == BLOCKS - 1 ? SJ_BLOCK_LAST : 0));
        if (i % 2 == 1) {
            end_batch();
        }
    }
    add(frame_maker_mark(&maker, 1));
    add(frame_maker_report(&maker, 1, "leak", "{}"));
    add(frame_maker_end(&maker));
    end_batch();
    frame_maker_deinit(&maker);
    fault_vfs_install();
    return 0;
}

static int free_frames(void **state)
{
    (void)state;
    for (size_t i = 0; i < sent.count; ++i) {
        free((void *)(uintptr_t)sent.frames[i].data);
    }
    for (int i = 0; i < DELAYS; ++i) {
        sqlite3_free(reference[i]);
    }
    return 0;
}

static bool ends_batch(sj_status status)
{
    return status == SJ_EFULL || status == SJ_EIO || status == SJ_ENOMEM || status == SJ_EAGAIN;
}

/* Stores a batch as the ingest does: rolls it back if a frame is refused. */
static sj_status deliver(lab_file *lab, size_t batch)
{
    lab->error.text[0] = '\0';
    sj_status status = sj_store_begin(lab->store, &lab->error);
    if (status != SJ_OK) {
        return status;
    }
    const size_t first = batch == 0 ? 0 : sent.batch_ends[batch - 1];
    for (size_t i = first; i < sent.batch_ends[batch] && status == SJ_OK; ++i) {
        bool duplicate = false;
        status = lab_file_apply(lab, sent.frames[i], &duplicate);
    }
    if (status != SJ_OK) {
        sj_store_rollback(lab->store);
        return status;
    }
    return sj_store_commit(lab->store, &lab->error);
}

static void arm(const fault_plan *plan)
{
    if (plan->in_memory) {
        fail_alloc_at(plan->step);
    } else {
        fault_vfs_at(plan->step, plan->kind, plan->lasts);
    }
}

static bool disarm(const fault_plan *plan)
{
    return plan->in_memory ? fail_alloc_stop() : fault_vfs_stop();
}

static sj_status open_store(lab_file *lab, uint32_t delay_ms)
{
    const sj_store_options options = {
        .path = lab->path, .create = true, .aggregates_delay_ms = delay_ms};
    lab->error.text[0] = '\0';
    lab->store = NULL;
    return sj_store_open(&options, &lab->store, &lab->error);
}

static const char *name_of(const fault_plan *plan)
{
    static char text[96];
    snprintf(text, sizeof(text), "%s step %llu kind %d%s delay %u",
             plan->in_memory ? "memory" : "disk", (unsigned long long)plan->step, (int)plan->kind,
             plan->lasts ? " lasting" : "", plan->delay_ms);
    return text;
}

static void check_refusal(const lab_file *lab, const fault_plan *plan, sj_status status)
{
    if (!ends_batch(status) || lab->error.text[0] == '\0' ||
        strstr(lab->error.text, "not an error") != NULL) {
        fail_msg("%s: status %d, \"%s\"", name_of(plan), (int)status, lab->error.text);
    }
}

/* Delivers all batches while the fault is armed. Sends a refused batch again. Stops at a batch that
 * is refused twice, which only a lasting fault may cause. */
static void deliver_under_fault(lab_file *lab, const fault_plan *plan)
{
    sent.acknowledged = 0;
    arm(plan);
    sj_status status = open_store(lab, plan->delay_ms);
    if (status != SJ_OK) {
        disarm(plan);
        check_refusal(lab, plan, status);
        return;
    }
    while (sent.acknowledged < sent.batches) {
        status = deliver(lab, sent.acknowledged);
        if (status != SJ_OK) {
            check_refusal(lab, plan, status);
            status = deliver(lab, sent.acknowledged);
        }
        if (status != SJ_OK) {
            check_refusal(lab, plan, status);
            if (!plan->lasts) {
                fail_msg("%s: the batch is refused again: %s", name_of(plan), lab->error.text);
            }
            break;
        }
        log_at_batch[sent.acknowledged++] = power_log_count();
        sj_store_recover(lab->store);
        (void)sj_store_maintain(lab->store);
    }
    sj_store_close(lab->store);
}

static void print_finding(void *context, const sj_finding *finding)
{
    (void)context;
    print_error("found: %s\n", finding->what);
}

/* Sends what was not acknowledged, and compares everything with an undisturbed run. */
static void finish(lab_file *lab, const char *name, const char *expected)
{
    sj_verified verified;
    const sj_verify_options check_options = {.check_only = true, .report = print_finding};
    if (open_store(lab, 0) != SJ_OK) {
        fail_msg("%s: cannot be opened: %s", name, lab->error.text);
    }
    for (size_t i = sent.acknowledged; i < sent.batches; ++i) {
        if (deliver(lab, i) != SJ_OK) {
            fail_msg("%s: batch %zu is refused: %s", name, i, lab->error.text);
        }
    }
    assert_int_equal(sj_store_verify(lab->store, &check_options, &verified, &lab->error), SJ_OK);
    sj_store_close(lab->store);
    char *sums = lab_file_ask(lab, lab_file_sums_sql);
    if (expected != NULL &&
        (strcmp(sums, expected) != 0 || verified.bad_blocks != 0 || verified.other != 0)) {
        fail_msg("%s: %zu batches were acknowledged, findings %llu\n%s\nexpected\n%s", name,
                 sent.acknowledged, (unsigned long long)(verified.bad_blocks + verified.other),
                 sums, expected);
    }
    sqlite3_free(sums);
    lab_file_expect(lab,
                    "SELECT sent_calls = stored_calls + lost_calls, missing_calls, lost_calls"
                    " FROM sessions",
                    "1|0|5|\n");
}

static void name_file(lab_file *lab)
{
    snprintf(lab->path, sizeof(lab->path), "faults_test.%d.db", (int)getpid());
    lab_file_remove(lab->path);
}

/* Makes an undisturbed run and keeps its sums. Returns its number of disk operations. */
static uint64_t run_undisturbed(lab_file *lab, uint32_t delay_ms)
{
    const fault_plan none = {.step = UINT64_MAX, .delay_ms = delay_ms};
    char **sums = &reference[delay_ms != 0];
    name_file(lab);
    deliver_under_fault(lab, &none);
    const uint64_t steps = fault_vfs_done();
    assert_int_equal(sent.acknowledged, sent.batches);
    *sums = lab_file_ask(lab, lab_file_sums_sql);
    finish(lab, "undisturbed", *sums);
    return steps;
}

static bool run(lab_file *lab, const fault_plan *plan)
{
    name_file(lab);
    deliver_under_fault(lab, plan);
    const bool failed = disarm(plan);
    finish(lab, name_of(plan), reference[plan->delay_ms != 0]);
    lab_file_remove(lab->path);
    return failed;
}

static void a_disk_that_fails_at_any_step_loses_nothing_acknowledged(void **state)
{
    lab_file lab = {0};
    unsigned failed = 0;
    (void)state;
    const uint64_t steps = run_undisturbed(&lab, 1000);
    (void)run_undisturbed(&lab, 0);
    const uint64_t runs = is_long() ? steps * DISK_WAYS * DELAYS : STEPS;
    for (uint64_t i = 0; i < runs; ++i) {
        const uint64_t way = is_long() ? i % (DISK_WAYS * DELAYS) : i;
        const fault_plan plan = {
            .step = is_long() ? i / (DISK_WAYS * DELAYS) : i * steps / STEPS,
            .kind = (fault_kind)(way % FAULT_KINDS),
            .lasts = way / FAULT_KINDS % 2 != 0,
            .delay_ms = way / DISK_WAYS % 2 != 0 ? 1000 : 0,
        };
        failed += run(&lab, &plan);
    }
    assert_true(failed > runs * 9 / 10);
}

/* The tests with failed allocations are worth something only if those of libraries fail, too. */
static void failed_allocations_reach_the_libraries(void **state)
{
    sqlite3 *database = NULL;
    (void)state;
    fail_alloc_from(0);
    const int opened = sqlite3_open(":memory:", &database);
    char *made = sqlite3_mprintf("%d", 1);
    char *copied = strdup("text");
    Sojourn__Hello *hello = sojourn__hello__unpack(NULL, 0, NULL);
    assert_true(fail_alloc_stop());
    assert_int_equal(opened, SQLITE_NOMEM);
    assert_null(made);
    assert_null(copied);
    assert_null(hello);
    sqlite3_close(database);
}

static void a_failed_allocation_loses_nothing_acknowledged(void **state)
{
    lab_file lab = {0};
    (void)state;
    bool failed = true;
    uint64_t round = 0;
    for (uint64_t n = 0; failed; n += is_long() ? 1 : 1 + n, ++round) {
        const fault_plan plan = {
            .in_memory = true, .step = n, .delay_ms = round % 2 != 0 ? 1000 : 0};
        failed = run(&lab, &plan);
    }
    assert_true(round > 10);
}

/* Returns the batches that were acknowledged before the log had `entries` entries. */
static size_t count_acknowledged(uint64_t entries)
{
    size_t count = 0;
    while (count < sent.batches && log_at_batch[count] <= entries) {
        count++;
    }
    return count;
}

static void record_power_log(lab_file *lab, uint32_t delay_ms)
{
    const fault_plan none = {.step = UINT64_MAX, .delay_ms = delay_ms};
    name_file(lab);
    power_log_begin();
    deliver_under_fault(lab, &none);
    power_log_end();
    assert_int_equal(sent.acknowledged, sent.batches);
}

static void a_power_loss_at_any_step_loses_nothing_acknowledged(void **state)
{
    lab_file lab = {0};
    char name[96];
    (void)state;
    record_power_log(&lab, 0);
    const uint64_t entries = power_log_count();
    const uint64_t runs = is_long() ? (entries + 1) * 3 : STEPS + sent.batches;
    for (uint64_t i = 0; i < runs; ++i) {
        const bool is_at_batch =
            !is_long() && i >= STEPS; /* an acknowledgement was the last step */
        const uint64_t at = is_long()     ? i / 3
                            : is_at_batch ? log_at_batch[i - STEPS]
                                          : i * entries / STEPS;
        const power_loss loss = is_at_batch ? LOSS_DROPS : (power_loss)(i % 3);
        power_log_lose(lab.path, at, loss, 0, i);
        sent.acknowledged = count_acknowledged(at);
        snprintf(name, sizeof(name), "power went after %llu of %llu, loss %d",
                 (unsigned long long)at, (unsigned long long)entries, (int)loss);
        finish(&lab, name, reference[0]);
        lab_file_remove(lab.path);
    }
}

/* Nothing prevents a disk from losing what it had stored. The store then says what is missing, or
 * that the file is damaged. */
static void check_truth(lab_file *lab, const char *name)
{
    sj_verified verified = {0};
    const sj_verify_options check_options = {.check_only = true};
    sj_status status = open_store(lab, 0);
    if (status != SJ_OK) {
        if (strstr(lab->error.text, lab->path) == NULL) {
            fail_msg("%s: \"%s\" does not name the file", name, lab->error.text);
        }
        return;
    }
    status = sj_store_verify(lab->store, &check_options, &verified, &lab->error);
    if (status == SJ_OK && verified.bad_blocks + verified.other == 0) {
        status = deliver(lab, 0); /* the device announces again, and ends the session */
        if (status == SJ_OK) {
            status = deliver(lab, sent.batches - 1);
        }
        assert_int_equal(status, SJ_OK);
        lab_file_expect(
            lab,
            "SELECT sent_calls = stored_calls + lost_calls, lost_calls = missing_calls +"
            " (SELECT coalesce(sum(calls), 0) FROM gaps WHERE reason != 'not_stored')"
            " FROM sessions",
            "1|1|\n");
    }
    sj_store_close(lab->store);
}

static void acknowledged_frames_that_a_lying_disk_lost_are_reported(void **state)
{
    lab_file lab = {0};
    char name[96];
    (void)state;
    record_power_log(&lab, 0);
    const uint64_t entries = power_log_count();
    const uint64_t runs = is_long() ? entries * 6 : STEPS;
    for (uint64_t i = 0; i < runs; ++i) {
        const uint64_t at = is_long() ? i / 6 : (i + 1) * entries / STEPS;
        const power_loss loss = i % 2 != 0 ? LOSS_SHUFFLES : LOSS_DROPS;
        const unsigned lies = 1 + (unsigned)(i / 2 % 3) * 2;
        power_log_lose(lab.path, at, loss, lies, i);
        snprintf(name, sizeof(name), "power went after %llu of %llu, loss %d, lies %u",
                 (unsigned long long)at, (unsigned long long)entries, (int)loss, lies);
        check_truth(&lab, name);
        lab_file_remove(lab.path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disk_that_fails_at_any_step_loses_nothing_acknowledged),
        cmocka_unit_test(failed_allocations_reach_the_libraries),
        cmocka_unit_test(a_failed_allocation_loses_nothing_acknowledged),
        cmocka_unit_test(a_power_loss_at_any_step_loses_nothing_acknowledged),
        cmocka_unit_test(acknowledged_frames_that_a_lying_disk_lost_are_reported),
    };
    return cmocka_run_group_tests(tests, make_frames, free_frames);
}
