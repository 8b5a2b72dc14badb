/* References of the JVM are removed only while no thread uses them, and no thread uses them
 * afterwards. */
#include "agent/inproc/jvm/internal.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { USERS = 2, TIMES = 20 };

sj_jvm_state sj_jvm;

static _Atomic uint32_t is_there; /* 1 while the reference exists. */
static _Atomic uint32_t missing;  /* How often a thread used a reference that was gone. */
static _Atomic uint32_t uses;
static _Atomic uint32_t is_done;

static void *use(void *unused)
{
    while (atomic_load(&is_done) == 0) {
        if (sj_jvm_begin_use()) {
            atomic_fetch_add(&missing, atomic_load(&is_there) == 0 ? 1 : 0);
            sched_yield();
            atomic_fetch_add(&missing, atomic_load(&is_there) == 0 ? 1 : 0);
            atomic_fetch_add(&uses, 1);
            sj_jvm_end_use();
        }
    }
    return unused;
}

static void test_a_reference_in_use_is_not_removed(void **state)
{
    pthread_t threads[USERS];
    (void)state;
    for (int i = 0; i < USERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use, NULL), 0);
    }
    for (int i = 0; i < TIMES; i++) {
        const uint32_t before = atomic_load(&uses);
        atomic_store(&is_there, 1);
        atomic_store(&sj_jvm.enabled, 1);
        while (atomic_load(&uses) == before) {
            sched_yield();
        }
        atomic_store(&sj_jvm.enabled, 0); /* The agent detaches. */
        while (atomic_load(&sj_jvm.users) != 0) {
            sched_yield();
        }
        atomic_store(&is_there, 0);
        sched_yield();
    }
    atomic_store(&is_done, 1);
    for (int i = 0; i < USERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&missing), 0);
    assert_int_equal(atomic_load(&sj_jvm.users), 0);
}

static void test_a_refused_use_is_not_counted(void **state)
{
    (void)state;
    atomic_store(&sj_jvm.enabled, 0);
    assert_false(sj_jvm_begin_use());
    assert_int_equal(atomic_load(&sj_jvm.users), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_reference_in_use_is_not_removed),
                                       cmocka_unit_test(test_a_refused_use_is_not_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
