/* Tests which processes of a device's daemon are known, and which of their polls wait. */
#include "collector-server/fleet/device_instances.h"
#include "collector-server/fleet/parked_polls.h"
#include "tests/support/check.h"

enum { DEVICES = 300, NEWS_MS = 600000 };

static void a_copy_is_reported_once_in_ten_minutes(void **state)
{
    (void)state;
    sj_device_instances *all = sj_device_instances_new();
    assert_non_null(all);
    for (int64_t id = DEVICES; id > 0; id--) { /* these affect no other device */
        assert_true(sj_device_instances_note(all, id, 1, 5).is_restart);
        assert_false(sj_device_instances_note(all, id, 1, 6).is_restart);
    }
    unsigned proofs = 0;
    unsigned news = 0;
    for (uint64_t i = 0; i < 20; i++) {
        const int64_t instance = i % 2 == 0 ? 2 : 1;
        const sj_instance_verdict verdict = sj_device_instances_note(all, 7, instance, 10 + i);
        assert_int_equal(verdict.is_restart, i == 0);
        proofs += verdict.is_proof;
        news += verdict.is_news;
    }
    assert_int_equal(proofs, 17); /* 2 begins, 1 and 2 return once, then each poll proves it */
    assert_int_equal(news, 1);
    /* A third process of a device with a copy may be a restarted one or another copy. */
    assert_false(sj_device_instances_note(all, 7, 3, 40).is_restart);
    assert_true(sj_device_instances_note(all, 7, 4, 40 + NEWS_MS).is_restart);
    assert_true(sj_device_instances_note(all, 7, 1, 50 + NEWS_MS).is_news);
    assert_false(sj_device_instances_note(all, 8, 1, 50 + NEWS_MS).is_proof);
    sj_device_instances_free(all);
}

/* All copies poll in turn. When a copy polls again, it has been forgotten or was never known. */
static void any_number_of_copies_is_reported(void **state)
{
    static const int64_t counts[] = {2, 8, 9, 50, 1000};
    (void)state;
    sj_device_instances *all = sj_device_instances_new();
    assert_non_null(all);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        unsigned news = 0;
        for (int64_t poll = 0; poll < 4 * counts[i]; poll++) {
            const uint64_t now = 1 + (uint64_t)(poll * 60000 / counts[i]);
            news += sj_device_instances_note(all, counts[i], 1 + poll % counts[i], now).is_news;
        }
        assert_int_equal(news, 1);
    }
    sj_device_instances_free(all);
}

/* A device has more processes than are remembered. A remembered process that polls again counts
 * neither as a restart nor as a copy. */
static void a_process_that_is_not_remembered_starts_once(void **state)
{
    (void)state;
    sj_device_instances *all = sj_device_instances_new();
    assert_non_null(all);
    for (int64_t instance = 1; instance <= 2 * SJ_DEVICE_INSTANCES_MAX; instance++) {
        assert_true(sj_device_instances_note(all, 1, instance, 10).is_restart);
    }
    for (int i = 0; i < 3; i++) {
        const sj_instance_verdict again =
            sj_device_instances_note(all, 1, 2 * SJ_DEVICE_INSTANCES_MAX, 20);
        assert_false(again.is_restart || again.is_proof);
    }
    sj_device_instances_free(all);
}

/* A daemon that is restarted repeatedly is not a copy, however long this lasts. */
static void restarts_do_not_prove_a_copy(void **state)
{
    (void)state;
    sj_device_instances *all = sj_device_instances_new();
    assert_non_null(all);
    for (int64_t instance = 1; instance < 100; instance++) {
        const sj_instance_verdict first = sj_device_instances_note(all, 1, instance, 10);
        assert_true(first.is_restart && !first.is_proof);
        assert_false(sj_device_instances_note(all, 1, instance, 10).is_proof);
    }
    sj_device_instances_free(all);
}

static bool pop(sj_parked_polls *polls, int64_t device, int64_t instance, uint64_t *deadline)
{
    sj_parked_poll older;
    const sj_parked_poll poll = {.device_id = device, .instance = instance};
    const bool is_popped = sj_parked_polls_pop_older(polls, &poll, &older);
    *deadline = is_popped ? older.deadline_ms : 0;
    return is_popped;
}

static void a_poll_replaces_the_previous_one_of_its_process(void **state)
{
    (void)state;
    sj_parked_polls polls = {0};
    uint64_t deadline = 0;
    for (int64_t i = 0; i < SJ_PARKED_OF_A_DEVICE_MAX; i++) {
        for (int64_t device = 1; device < 3; device++) {
            const sj_parked_poll poll = {
                .device_id = device, .instance = i, .deadline_ms = (uint64_t)(100 - i)};
            assert_false(pop(&polls, device, i, &deadline));
            assert_true(sj_parked_polls_add(&polls, &poll));
        }
    }
    assert_true(pop(&polls, 1, 3, &deadline)); /* the same process */
    assert_int_equal(deadline, 97);
    assert_false(pop(&polls, 1, 3, &deadline));
    /* the table has one poll too many: the poll that ends first is answered */
    assert_true(pop(&polls, 2, 99, &deadline));
    assert_int_equal(deadline, 100 - SJ_PARKED_OF_A_DEVICE_MAX + 1);
    assert_int_equal(polls.count, 2 * SJ_PARKED_OF_A_DEVICE_MAX - 2);
    sj_parked_polls_deinit(&polls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_reported_once_in_ten_minutes),
        cmocka_unit_test(any_number_of_copies_is_reported),
        cmocka_unit_test(a_process_that_is_not_remembered_starts_once),
        cmocka_unit_test(restarts_do_not_prove_a_copy),
        cmocka_unit_test(a_poll_replaces_the_previous_one_of_its_process),
    };
    return cmocka_run_group_tests_name("fleet.device_instances", tests, NULL, NULL);
}
