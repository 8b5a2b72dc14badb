#include "agent/registry/registry.h"

#include "agent/abi/record.h"
#include "agent/host/clock.h"
#include "agent/planner/plan_file.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)

/* A registry over a real spool in memory. The planned module is this test's program. */
typedef struct fixture {
    char directory[64];
    char spool_directory[96];
    sj_spool *spool;
    sj_frame_writer *writer;
    sj_selection selection;
    sj_registry *registry;
} fixture;

enum { PID = 4194000, CHILD = 4194001, BIAS = 0x10000 };

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof(*f));
    snprintf(f->directory, sizeof(f->directory), "/dev/shm/sj-registry-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->spool_directory, sizeof(f->spool_directory), "%s/spool", f->directory);
    const sj_spool_options spool = {.directory = f->spool_directory};
    assert_int_equal(sj_spool_open(&spool, &f->spool, NULL), SJ_OK);
    const sj_frame_writer_options writer = {.spool = f->spool};
    assert_int_equal(sj_frame_writer_new(&writer, &f->writer), SJ_OK);
    const sj_registry_options options = {
        .writer = f->writer, .selection = &f->selection, .runtime_directory = f->directory};
    assert_int_equal(sj_registry_new(&options, &f->registry), SJ_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[256];
    sj_registry_free(f->registry);
    sj_frame_writer_free(f->writer);
    sj_spool_close(f->spool);
    sj_selection_free(&f->selection);
    snprintf(command, sizeof(command), "rm -rf '%s'", f->directory);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static uint64_t add_process(const fixture *f, pid_t pid, pid_t parent, sj_link_occasion occasion)
{
    uint64_t number = 0;
    assert_int_equal(sj_registry_add_process(f->registry, pid, parent, occasion, 1, &number),
                     SJ_OK);
    return number;
}

static uint64_t frames(const fixture *f)
{
    sj_frame_writer_counters counters;
    sj_frame_writer_get_counters(f->writer, &counters);
    return counters.frames;
}

static void processes_are_numbered_and_a_pid_that_comes_again_ends_its_old_entry(void **state)
{
    const fixture *f = *state;
    uint64_t number = 0;
    pid_t living[4];
    assert_int_equal(add_process(f, PID, 1, SJ_OCCASION_START), 1);
    assert_int_equal(add_process(f, CHILD, PID, SJ_OCCASION_FORK), 2);
    assert_int_equal(add_process(f, PID, 1, SJ_OCCASION_START), 3);
    assert_int_equal(sj_registry_find_process(f->registry, PID, &number), SJ_OK);
    assert_int_equal(number, 3);
    assert_int_equal(sj_registry_list_living(f->registry, living, 4), 2);
    const sj_process_end end = {.ended_ticks = 9};
    assert_int_equal(sj_registry_end_process(f->registry, 2, &end), SJ_OK);
    assert_int_equal(sj_registry_find_process(f->registry, CHILD, &number), SJ_ENOTFOUND);
    assert_int_equal(sj_registry_list_living(f->registry, living, 4), 1);
    assert_int_equal(sj_registry_end_process(f->registry, 4, &end), SJ_ENOTFOUND);
}

typedef struct ender {
    const fixture *f;
    atomic_bool stop;
    uint64_t ended;
} ender;

/* Ends all processes of the registry repeatedly, as the drain does, while another thread adds
 * processes. */
static void *end_processes(void *argument)
{
    ender *self = argument;
    const sj_process_end end = {.ended_ticks = 9};
    pid_t living[64];
    while (!atomic_load(&self->stop)) {
        const size_t count = sj_registry_list_living(self->f->registry, living, 64);
        for (size_t i = 0; i < count; i++) {
            uint64_t number = 0;
            self->ended +=
                sj_registry_find_process(self->f->registry, living[i], &number) == SJ_OK &&
                sj_registry_end_process(self->f->registry, number, &end) == SJ_OK;
        }
    }
    return NULL;
}

static void processes_of_a_journal_are_adopted_while_others_end(void **state)
{
    enum { ADOPTED = 3 * SJ_JOURNAL_PROCESSES };
    ender ending = {.f = *state};
    pthread_t thread;
    pid_t living[ADOPTED];
    assert_int_equal(pthread_create(&thread, NULL, end_processes, &ending), 0);
    for (uint64_t i = 1; i <= ADOPTED; i++) {
        const sj_journal_process process = {.number = i, .pid = (uint32_t)(PID + i), .how = "fork"};
        assert_int_equal(sj_registry_adopt_process(ending.f->registry, &process), SJ_OK);
        sched_yield();
    }
    atomic_store(&ending.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(sj_registry_list_living(ending.f->registry, living, ADOPTED) + ending.ended,
                     ADOPTED);
}

static sj_plan_request request_for(uint64_t process, const sj_link_module *module, const char *path)
{
    return (sj_plan_request){.process = process,
                             .module = module,
                             .path = path,
                             .now_ticks = 2,
                             .asked_ns = sj_clock_ns(CLOCK_MONOTONIC)};
}

static void own_path(char path[PATH_MAX])
{
    const ssize_t bytes = readlink("/proc/self/exe", path, PATH_MAX - 1);
    assert_true(bytes > 0);
    path[bytes] = '\0';
}

static void a_module_is_planned_once_and_mapped_in_each_process(void **state)
{
    const fixture *f = *state;
    char path[PATH_MAX];
    sj_plan_reply first = {0};
    sj_plan_reply again = {0};
    const sj_link_module module = {
        .bias = BIAS, .is_main = 1, .build_id = {7}, .build_id_bytes = 20};
    own_path(path);
    const uint64_t one = add_process(f, PID, 1, SJ_OCCASION_START);
    const uint64_t two = add_process(f, CHILD, 1, SJ_OCCASION_START);
    sj_plan_request request = request_for(one, &module, path);
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &first), SJ_OK);
    assert_int_equal(first.first_function, 1);
    assert_int_equal(access(first.plan_path, R_OK), 0);
    const uint64_t before = frames(f);
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &again), SJ_OK);
    assert_int_equal(frames(f), before);
    request.process = two;
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &again), SJ_OK);
    assert_int_equal(frames(f), before + 1); /* only its mapping */
    assert_int_equal(again.first_function, first.first_function);
    assert_string_equal(again.plan_path, first.plan_path);
    assert_int_equal(sj_registry_unloaded(f->registry, two, BIAS, 3), SJ_OK);
    assert_int_equal(sj_registry_unloaded(f->registry, two, BIAS, 3), SJ_ENOTFOUND);
}

/* This does not depend on other processes, nor on the order in which processes end. */
static void a_child_inherits_what_its_parent_has_mapped(void **state)
{
    enum { CHILDREN = 300 };
    const fixture *f = *state;
    sj_plan_reply reply;
    pid_t living[4];
    const sj_process_end end = {.ended_ticks = 9};
    const sj_link_module module = {.bias = BIAS, .build_id = {7}, .build_id_bytes = 20};
    const uint64_t parent = add_process(f, PID, 1, SJ_OCCASION_START);
    const sj_plan_request request = request_for(parent, &module, "/proc/self/exe");
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &reply), SJ_OK);
    for (int i = 0; i < CHILDREN; i++) {
        const uint64_t before = frames(f);
        const uint64_t child = add_process(f, CHILD + i, PID, SJ_OCCASION_FORK);
        assert_int_equal(frames(f), before + 2); /* the process and its one mapping */
        const uint64_t grandchild =
            add_process(f, CHILD + CHILDREN + i, CHILD + i, SJ_OCCASION_FORK);
        assert_int_equal(frames(f), before + 4);
        assert_int_equal(sj_registry_unloaded(f->registry, child, BIAS, 3), SJ_OK);
        assert_int_equal(sj_registry_unloaded(f->registry, child, BIAS, 3), SJ_ENOTFOUND);
        assert_int_equal(sj_registry_list_living(f->registry, living, 4), 3);
        assert_true(living[0] == PID && living[1] == CHILD + i);
        assert_int_equal(living[2], CHILD + CHILDREN + i);
        assert_int_equal(sj_registry_end_process(f->registry, child, &end), SJ_OK);
        assert_int_equal(sj_registry_unloaded(f->registry, grandchild, BIAS, 3), SJ_OK);
        assert_int_equal(sj_registry_end_process(f->registry, grandchild, &end), SJ_OK);
    }
    assert_int_equal(sj_registry_unloaded(f->registry, parent, BIAS, 3), SJ_OK);
}

/* Makes the registry with a cache of plans. A process waits at most `wait_ms` for a plan. */
static void plan_in_time(fixture *f, uint32_t wait_ms, sj_plan_ahead *ahead)
{
    const sj_registry_options options = {.writer = f->writer,
                                         .selection = &f->selection,
                                         .runtime_directory = f->directory,
                                         .cache_directory = f->directory,
                                         .ahead = ahead,
                                         .plan_wait_ms = wait_ms};
    sj_registry_free(f->registry);
    assert_int_equal(sj_registry_new(&options, &f->registry), SJ_OK);
}

/* The plan is still made, and the next process that asks gets it. */
static void a_program_does_not_wait_long_for_a_plan(void **state)
{
    fixture *f = *state;
    sj_plan_reply reply = {0};
    sj_registry_counters counters;
    const sj_link_module module = {.is_main = 1, .build_id = {9}, .build_id_bytes = 20};
    for (unsigned round = 0; round < 2; round++) {
        plan_in_time(f, 1, NULL);
        const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
        sj_plan_request request = request_for(process, &module, "/usr/bin/python3.11");
        request.asked_ns -= NS_PER_MS;
        assert_int_equal(sj_registry_plan_module(f->registry, &request, &reply),
                         round == 0 ? SJ_EUNSUPPORTED : SJ_OK);
        sj_registry_end_late(f->registry);
        sj_registry_get_counters(f->registry, &counters);
        assert_int_equal(counters.late_plans, round == 0);
        assert_int_equal(counters.late_unhooked, round == 0);
        assert_string_equal(counters.late_module, round == 0 ? request.path : "");
        assert_int_equal(counters.plan_failures, 0);
        assert_false(sj_registry_has_late(f->registry));
    }
}

/* The programs ask again in a review. Functions that were known before keep their state. */
static void a_late_plan_is_given_in_the_same_session(void **state)
{
    fixture *f = *state;
    sj_plan_reply reply = {0};
    sj_function_states states = {0};
    sj_registry_counters counters;
    const sj_link_module module = {.is_main = 1, .build_id = {9}, .build_id_bytes = 20};
    plan_in_time(f, 1, NULL);
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    sj_plan_request request = request_for(process, &module, "/usr/bin/python3.11");
    request.asked_ns -= NS_PER_MS;
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &reply), SJ_EUNSUPPORTED);
    while (!sj_registry_has_late(f->registry)) {
        usleep(1000);
    }
    assert_int_equal(sj_registry_begin_late(f->registry, &states), SJ_OK);
    assert_int_equal(states.count, 1);
    assert_true(states.asks_agents);
    sj_registry_settle_late(f->registry, true); /* no process has asked, so the plan stays late */
    assert_true(sj_registry_has_late(f->registry));
    sj_registry_begin_review(f->registry, process, states.states, states.count);
    assert_int_equal(sj_registry_review_module(f->registry, &request, &reply), SJ_OK);
    assert_int_equal(reply.first_function, states.count);
    sj_registry_end_review(f->registry);
    sj_registry_settle_late(f->registry, false); /* a process has not applied the plan */
    assert_true(sj_registry_has_late(f->registry));
    sj_registry_settle_late(f->registry, true);
    assert_false(sj_registry_has_late(f->registry));
    sj_registry_end_late(f->registry);
    sj_registry_get_counters(f->registry, &counters);
    assert_int_equal(counters.late_plans, 1);
    assert_int_equal(counters.late_unhooked, 0);
    assert_true(counters.late_missed_ns > 0);
    sj_function_states_deinit(&states);
}

/* The program is a FIFO. Its plan waits for the FIFO's writer as long as the test wants. */
static void a_process_waits_once_for_all_its_late_plans(void **state)
{
    fixture *f = *state;
    char fifo[128];
    sj_plan_ahead *ahead = NULL;
    sj_plan_reply reply = {0};
    const sj_link_module module = {.is_main = 1, .build_id = {9}, .build_id_bytes = 20};
    const sj_link_module library = {.build_id = {8}, .build_id_bytes = 20};
    const uint32_t wait_ms = 600000;
    snprintf(fifo, sizeof(fifo), "%s/program", f->directory);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const sj_planner_options planner = {.module_path = fifo, .cache_directory = f->directory};
    assert_int_equal(sj_plan_ahead_start(&planner, &ahead), SJ_OK);
    f->selection.all_libraries = true;
    plan_in_time(f, wait_ms, ahead);
    sj_plan_request request = request_for(add_process(f, PID, 1, SJ_OCCASION_START), &module, fifo);
    const uint64_t now_ns = request.asked_ns;
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &reply), SJ_EAGAIN);
    request.asked_ns = now_ns - wait_ms * NS_PER_MS;
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &reply), SJ_EUNSUPPORTED);
    request.asked_ns = now_ns;
    request.module = &library;
    request.path = "/usr/bin/perl";
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &reply), SJ_EUNSUPPORTED);
    const int writer = open(fifo, O_RDWR | O_CLOEXEC);
    sj_plan_ahead_free(ahead);
    close(writer);
}

static void modules_not_selected_or_not_planned_are_refused(void **state)
{
    const fixture *f = *state;
    sj_plan_reply reply = {0};
    sj_registry_counters counters;
    const sj_link_module module = {.build_id = {8}, .build_id_bytes = 20};
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    sj_plan_request request = request_for(process, &module, "/usr/lib/libz.so.1");
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &reply), SJ_EUNSUPPORTED);
    sj_registry_get_counters(f->registry, &counters);
    assert_int_equal(counters.plan_failures, 0);
    request.path = "/no/such/library.so";
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &reply), SJ_EUNSUPPORTED);
    sj_registry_get_counters(f->registry, &counters);
    assert_int_equal(counters.plan_failures, 1);
    assert_non_null(strstr(counters.plan_failure, "/no/such/library.so"));
    assert_int_equal(sj_registry_plan_imports(f->registry, &request, &reply), SJ_EUNSUPPORTED);
    assert_int_equal(sj_registry_review_module(f->registry, &request, &reply), SJ_EUNSUPPORTED);
}

static void another_selection_moves_marks_and_a_review_gives_what_is_missing(void **state)
{
    fixture *f = *state;
    char path[PATH_MAX];
    sj_plan_reply reply = {0};
    sj_function_states states = {0};
    sj_selection none = {0};
    const sj_link_module module = {
        .bias = BIAS, .is_main = 1, .build_id = {9}, .build_id_bytes = 20};
    own_path(path);
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    const sj_plan_request request = request_for(process, &module, path);
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &reply), SJ_OK);
    assert_int_equal(sj_selection_add(none.functions, &none.function_count, "no_such_name", NULL),
                     SJ_OK);
    assert_int_equal(sj_registry_select(f->registry, &none, NULL, &states), SJ_OK);
    size_t wanted = 0;
    size_t unwanted = 0;
    for (uint32_t i = 0; i < states.count; i++) {
        wanted += states.states[i] == SJ_FUNCTION_WANTED;
        unwanted += states.states[i] == SJ_FUNCTION_UNWANTED;
    }
    assert_int_equal(wanted, 0);
    assert_true(unwanted > 0);
    sj_function_states_deinit(&states);
    assert_int_equal(sj_registry_select(f->registry, &f->selection, NULL, &states), SJ_OK);
    sj_registry_begin_review(f->registry, process, states.states, 0);
    assert_int_equal(sj_registry_review_module(f->registry, &request, &reply), SJ_OK);
    assert_string_equal(reply.plan_path + strlen(reply.plan_path) - 5, ".more");
    /* All functions have hooks, so the review has no plan. */
    memset(states.states, 1, states.count);
    sj_registry_begin_review(f->registry, process, states.states, states.count);
    assert_int_equal(sj_registry_review_module(f->registry, &request, &reply), SJ_EUNSUPPORTED);
    sj_registry_end_review(f->registry);
    sj_function_states_deinit(&states);
    sj_selection_free(&none);
}

/* Returns a list to which one rule was added late. The rule is about argument 1 of main, if set_up
 * called it. */
static sj_value_rules *late_rules(void)
{
    static const char text[] =
        "{\"policy\": 1, \"values\": [{\"function\": \"main\", \"argument\": 1, \"as\": \"int\", "
        "\"change\": {\"set\": 1}, \"when\": [{\"caller\": \"set_up\"}]}]}";
    sj_policy policy;
    sj_error error = {0};
    sj_value_rules *rules = NULL;
    assert_int_equal(sj_policy_parse(text, sizeof(text) - 1, "t", &policy, &error), SJ_OK);
    assert_int_equal(sj_value_rules_new(&rules), SJ_OK);
    assert_int_equal(sj_value_rules_add_missing(rules, policy.selection.values, NULL, NULL), SJ_OK);
    sj_policy_free(&policy);
    return rules;
}

static void count_renewals(const sj_function_states *states, uint32_t *values, uint32_t *callers)
{
    *values = *callers = 0;
    for (uint32_t id = 0; id < states->count; id++) {
        *values += (states->renewed[id] & SJ_RENEWAL_VALUES) != 0;
        *callers += (states->renewed[id] & SJ_RENEWAL_CALLER) != 0;
    }
}

static void renewed_functions_stay_so_until_the_selection_is_settled(void **state)
{
    const fixture *f = *state;
    char path[PATH_MAX];
    char aside[PATH_MAX];
    uint32_t values = 0;
    uint32_t callers = 0;
    sj_plan_reply first = {0};
    sj_plan_reply second = {0};
    sj_function_states states = {0};
    sj_selection late = {.values = late_rules()};
    const sj_link_module module = {
        .bias = BIAS, .is_main = 1, .build_id = {11}, .build_id_bytes = 20};
    const sj_link_module other = {
        .bias = 2 * BIAS, .is_main = 1, .build_id = {12}, .build_id_bytes = 20};
    own_path(path);
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    const sj_plan_request request = request_for(process, &module, path);
    const sj_plan_request of_other = request_for(process, &other, "/proc/self/exe");
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &first), SJ_OK);
    assert_int_equal(sj_registry_plan_module(f->registry, &of_other, &second), SJ_OK);
    /* The first module's plan is written, but the second module's plan cannot be. */
    snprintf(aside, sizeof(aside), "%s/aside", f->directory);
    assert_int_equal(rename(second.plan_path, aside), 0);
    assert_int_not_equal(sj_registry_select(f->registry, &late, NULL, &states), SJ_OK);
    sj_function_states_deinit(&states);
    assert_int_equal(rename(aside, second.plan_path), 0);
    for (int i = 0; i < 2; i++) { /* the renewals repeat, because none was settled */
        assert_int_equal(sj_registry_select(f->registry, &late, NULL, &states), SJ_OK);
        assert_true(states.renewed_count != 0);
        count_renewals(&states, &values, &callers);
        assert_int_equal(values, 2); /* main of both modules */
        assert_int_equal(callers, 2);
        sj_function_states_deinit(&states);
    }
    assert_int_equal(sj_registry_select(f->registry, &late, NULL, &states), SJ_OK);
    /* No function lacks hooks, but the plan says where the caller lies. */
    memset(states.states, 1, states.count);
    sj_registry_begin_review(f->registry, process, states.states, states.count);
    assert_int_equal(sj_registry_review_module(f->registry, &request, &first), SJ_OK);
    sj_registry_settle_renewed(f->registry);
    assert_int_equal(sj_registry_review_module(f->registry, &request, &first), SJ_EUNSUPPORTED);
    sj_registry_end_review(f->registry);
    sj_function_states_deinit(&states);
    assert_int_equal(sj_registry_select(f->registry, &late, NULL, &states), SJ_OK);
    assert_int_equal(states.renewed_count, 0);
    sj_function_states_deinit(&states);
    assert_int_equal(sj_registry_select(f->registry, &f->selection, NULL, &states), SJ_OK);
    sj_function_states_deinit(&states);
    sj_value_rules_free(late.values);
}

static void methods_of_a_runtime_become_functions_of_a_group(void **state)
{
    const fixture *f = *state;
    static const char names[] = "-[View draw]\0-[View hide]";
    uint8_t wanted[2] = {1, 0};
    uint32_t first = 0;
    sj_registry_counters counters;
    const sj_slice slice = {.data = (const uint8_t *)names, .size = sizeof(names)};
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    assert_int_equal(
        sj_registry_add_methods(f->registry, process, "objc:View", slice, 2, 2, &first, wanted),
        SJ_OK);
    assert_int_equal(first, 1);
    assert_int_equal(wanted[0], 1);
    assert_int_equal(wanted[1], 0);
    sj_registry_get_counters(f->registry, &counters);
    assert_int_equal(counters.functions, 2);
    assert_int_equal(counters.hooked, 1);
    assert_int_equal(
        sj_registry_add_methods(f->registry, process, "objc:View", slice, 3, 2, &first, wanted),
        SJ_ECORRUPT);
    const uint64_t before = frames(f);
    uint8_t excluded[] = {0, 0};
    assert_int_equal(
        sj_registry_add_methods(f->registry, process, "objc:View", slice, 2, 2, &first, excluded),
        SJ_OK);
    assert_int_equal(frames(f), before); /* unwanted methods are not stored */
    sj_registry_get_counters(f->registry, &counters);
    assert_int_equal(counters.functions, 4);
}

/* Adds a class. `host` is the host of a hidden class, or "" if the class is not hidden. */
static sj_status add_class_of(const fixture *f, uint64_t process, const char *host,
                              uint32_t least_function, sj_slice bytes, sj_class_reply *reply)
{
    static const char app[] = "app";
    const size_t host_bytes = strlen(host);
    const sj_link_class class = {.class_bytes = (uint32_t)bytes.size,
                                 .host_bytes = (uint32_t)host_bytes,
                                 .least_function = least_function,
                                 .listing = SJ_CLASS_TRACED};
    const sj_class_texts named = {.loader = {.data = (const uint8_t *)app, .size = sizeof(app) - 1},
                                  .host = {.data = (const uint8_t *)host, .size = host_bytes}};
    const sj_status status =
        sj_registry_add_class(f->registry, process, &class, &named, bytes, 2, reply);
    free(reply->bytes);
    return status;
}

/* Adds a class as a JVM describes it. */
static sj_status add_class(const fixture *f, uint64_t process, const char *texts, size_t size,
                           sj_class_reply *reply)
{
    const sj_slice bytes = {.data = (const uint8_t *)texts, .size = size};
    return add_class_of(f, process, "", 0, bytes, reply);
}

/* Like add_class, but the functions get no number below `least`. */
static sj_status add_class_from(const fixture *f, uint64_t process, uint32_t least,
                                const char *texts, size_t size, sj_class_reply *reply)
{
    const sj_slice bytes = {.data = (const uint8_t *)texts, .size = size};
    return add_class_of(f, process, "", least, bytes, reply);
}

static const char first_bytes[] = "Hot\0+run\0()V\0+stop\0()V";
static const char other_bytes[] = "Hot\0+run\0()V\0+stop\0()V\0+wait\0()V";

static void a_method_is_left_out_in_the_process_where_it_costs(void **state)
{
    const fixture *f = *state;
    sj_class_reply reply;
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    const uint64_t other = add_process(f, CHILD, PID, SJ_OCCASION_FORK);
    assert_int_equal(add_class(f, process, first_bytes, sizeof(first_bytes), &reply), SJ_OK);
    assert_int_equal(reply.rewritten, 2);
    uint32_t functions[] = {reply.first_function + 1, 1000, 1001};
    assert_int_equal(sj_registry_leave_out(f->registry, process, functions, 3, true), 2);
    assert_int_equal(functions[0], 1000);
    assert_int_equal(functions[1], 1001);
    assert_int_equal(functions[2], reply.first_function + 1);
    assert_int_equal(add_class(f, other, first_bytes, sizeof(first_bytes), &reply), SJ_OK);
    assert_int_equal(reply.rewritten, 2);
    assert_int_equal(add_class(f, process, first_bytes, sizeof(first_bytes), &reply), SJ_OK);
    assert_int_equal(reply.rewritten, 1);
    assert_int_equal(sj_registry_leave_out(f->registry, process, functions + 2, 1, false), 0);
    assert_int_equal(add_class(f, process, first_bytes, sizeof(first_bytes), &reply), SJ_OK);
    assert_int_equal(reply.rewritten, 2);
}

static bool is_rare(void *context, uint32_t function)
{
    return function != *(const uint32_t *)context;
}

static void a_method_that_keeps_its_probes_is_muted(void **state)
{
    const fixture *f = *state;
    sj_class_reply reply;
    uint32_t frequent = 0;
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    assert_int_equal(add_class(f, process, first_bytes, sizeof(first_bytes), &reply), SJ_OK);
    uint32_t method = reply.first_function + 1;
    const sj_left_out_choice choice = {.process = process,
                                       .methods = &method,
                                       .count = 1,
                                       .is_rare = is_rare,
                                       .context = &frequent};
    assert_int_equal(sj_registry_leave_out(f->registry, process, &method, 1, true), 0);
    frequent = method;
    assert_int_equal(sj_registry_mute(f->registry, &choice), 0);
    assert_int_equal(add_class(f, process, first_bytes, sizeof(first_bytes), &reply), SJ_OK);
    assert_int_equal(reply.rewritten, 1);
    frequent = 0;
    assert_int_equal(sj_registry_mute(f->registry, &choice), 1);
    assert_int_equal(add_class(f, process, first_bytes, sizeof(first_bytes), &reply), SJ_OK);
    assert_int_equal(reply.rewritten, 2);
    assert_int_equal(sj_registry_leave_out(f->registry, process, &method, 1, false), 0);
    assert_int_equal(sj_registry_find_muted(f->registry, process, &method, 1), 1);
    assert_int_equal(sj_registry_unmute_found(f->registry, process, &method, 1), 1);
    assert_int_equal(sj_registry_find_muted(f->registry, process, &method, 1), 0);
    assert_int_equal(sj_registry_unmute_found(f->registry, process, &method, 1), 0);
    assert_int_equal(sj_registry_leave_out(f->registry, process, &method, 1, true), 0);
    assert_int_equal(sj_registry_mute(f->registry, &choice), 1);
    sj_registry_leave_out_none(f->registry);
    method = 0;
    assert_int_equal(sj_registry_find_all_muted(f->registry, process, &method, 1), 1);
    assert_int_equal(method, reply.first_function + 1);
    assert_int_equal(sj_registry_find_all_muted(f->registry, process, &method, 1), 1);
    assert_int_equal(sj_registry_unmute_found(f->registry, process, &method, 1), 1);
    assert_int_equal(sj_registry_find_all_muted(f->registry, process, &method, 1), 0);
}

/* Methods of hidden classes keep their probes, so they are muted even if values are recorded. */
static void methods_of_hidden_classes_are_muted(void **state)
{
    fixture *f = *state;
    sj_class_reply reply;
    uint32_t frequent = 0;
    uint32_t method = 0;
    const sj_slice bytes = {.data = (const uint8_t *)first_bytes, .size = sizeof(first_bytes)};
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    const sj_left_out_choice choice = {.process = process,
                                       .methods = &method,
                                       .count = 1,
                                       .is_rare = is_rare,
                                       .context = &frequent};
    assert_int_equal(sj_value_rules_new(&f->selection.values), SJ_OK);
    assert_int_equal(add_class_of(f, process, "Host", 0, bytes, &reply), SJ_OK);
    frequent = method = reply.first_function;
    assert_int_equal(sj_registry_leave_out(f->registry, process, &method, 1, true), 0);
    assert_int_equal(sj_registry_mute(f->registry, &choice), 1);
    assert_int_equal(add_class(f, process, first_bytes, sizeof(first_bytes), &reply), SJ_OK);
    frequent = 0;
    method = reply.first_function;
    assert_int_equal(sj_registry_leave_out(f->registry, process, &method, 1, true), 0);
    assert_int_equal(sj_registry_mute(f->registry, &choice), 0);
}

/* The JVM describes such a class. The class has no probes, which the registry counts. */
static void a_hidden_class_that_was_there_before_is_listed(void **state)
{
    static const char before[] = "com/acme/Made.0x0800\0+run\0()V\0-bare\0()V\0+stop\0()V";
    static const char app[] = "app";
    const fixture *f = *state;
    sj_registry_counters counters;
    sj_class_reply reply;
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    const sj_slice bytes = {.data = (const uint8_t *)before, .size = sizeof(before)};
    const sj_slice host = {.data = (const uint8_t *)before, .size = strlen("com/acme/Made")};
    const sj_link_class class = {.class_bytes = sizeof(before),
                                 .host_bytes = (uint32_t)host.size,
                                 .listing = SJ_CLASS_FIXED};
    const sj_class_texts texts = {.loader = {.data = (const uint8_t *)app, .size = sizeof(app) - 1},
                                  .host = host};
    for (int i = 0; i < 2; i++) { /* again when a policy is set */
        assert_int_equal(
            sj_registry_add_class(f->registry, process, &class, &texts, bytes, 2, &reply), SJ_OK);
        assert_int_equal(reply.count, 3);
        assert_int_equal(reply.rewritten, 0);
        free(reply.bytes);
    }
    sj_registry_get_counters(f->registry, &counters);
    assert_int_equal(counters.functions, 3);
    assert_int_equal(counters.hooked, 0);
    assert_int_equal(counters.skips[SJ_SKIP_FIXED_CLASS], 2);
    assert_int_equal(counters.skips[SJ_SKIP_NO_CODE], 1);
}

/* Another process of the session has the class with a number that means another function in this
 * process. */
static void a_class_that_a_jvm_cannot_record_is_reported(void **state)
{
    const fixture *f = *state;
    sj_class_reply reply;
    sj_registry_counters counters;
    const sj_slice bytes = {.data = (const uint8_t *)first_bytes, .size = sizeof(first_bytes)};
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    const uint64_t other = add_process(f, CHILD, 1, SJ_OCCASION_START);
    assert_int_equal(add_class_of(f, process, "", 0, bytes, &reply), SJ_OK);
    assert_int_equal(add_class_of(f, other, "", reply.first_function + 1, bytes, &reply),
                     SJ_EUNSUPPORTED);
    sj_registry_get_counters(f->registry, &counters);
    assert_int_equal(counters.plan_failures, 1);
    assert_non_null(strstr(counters.plan_failure, "jvm:Hot: "));
}

static void class_numbers_of_one_program_do_not_exhaust_those_of_others(void **state)
{
    static const char nothing[] = "Cold\0";
    const fixture *f = *state;
    sj_class_reply reply;
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    const uint32_t all[] = {UINT32_MAX, SJ_RECORD_FUNCTIONS_END, SJ_RECORD_FUNCTIONS_END - 1};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        assert_int_equal(
            add_class_from(f, process, all[i], first_bytes, sizeof(first_bytes), &reply),
            SJ_ELIMIT);
        assert_int_equal(add_class_from(f, process, all[i], nothing, sizeof(nothing), &reply),
                         SJ_EUNSUPPORTED);
    }
    assert_int_equal(add_class(f, process, other_bytes, sizeof(other_bytes), &reply), SJ_OK);
    assert_int_equal(reply.first_function, 1);
    assert_int_equal(add_class_from(f, process, 1000, first_bytes, sizeof(first_bytes), &reply),
                     SJ_OK);
    assert_int_equal(reply.first_function, 1000);
    /* The class has numbers below 2000 already, so it cannot be used. */
    assert_int_equal(add_class_from(f, process, 2000, first_bytes, sizeof(first_bytes), &reply),
                     SJ_EUNSUPPORTED);
}

/* Each time a mapping begins and another ends, even if another process still has the class. */
static void a_class_that_is_redefined_ends(void **state)
{
    const fixture *f = *state;
    sj_class_reply reply;
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    const uint64_t other = add_process(f, CHILD, PID, SJ_OCCASION_FORK);
    assert_int_equal(add_class(f, other, first_bytes, sizeof(first_bytes), &reply), SJ_OK);
    assert_int_equal(add_class(f, process, first_bytes, sizeof(first_bytes), &reply), SJ_OK);
    assert_int_equal(add_class(f, process, other_bytes, sizeof(other_bytes), &reply), SJ_OK);
    uint64_t before = frames(f);
    assert_int_equal(add_class(f, process, first_bytes, sizeof(first_bytes), &reply), SJ_OK);
    assert_int_equal(frames(f), before + 2);
    before = frames(f);
    static const char nothing[] = "Hot\0-run\0()V";
    assert_int_equal(add_class(f, process, nothing, sizeof(nothing), &reply), SJ_EUNSUPPORTED);
    assert_int_equal(frames(f), before + 1);
}

static void refusals_of_the_agent_are_counted_and_sent(void **state)
{
    const fixture *f = *state;
    char path[PATH_MAX];
    sj_plan_reply reply = {0};
    sj_registry_counters counters;
    const sj_link_module module = {.is_main = 1, .build_id = {5}, .build_id_bytes = 20};
    own_path(path);
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    const sj_plan_request request = request_for(process, &module, path);
    assert_int_equal(sj_registry_plan_module(f->registry, &request, &reply), SJ_OK);
    const sj_link_failure failure = {.function = 0, .skip = SJ_SKIP_CODE_DIFFERS};
    sj_link_applied applied = {
        .first_function = reply.first_function, .hooked = 3, .failed = 1, .cpu_ns = 10};
    const uint64_t before = frames(f);
    assert_int_equal(sj_registry_applied(f->registry, process, &applied, &failure, 1), SJ_OK);
    assert_int_equal(frames(f), before + 1);
    sj_registry_get_counters(f->registry, &counters);
    assert_int_equal(counters.hooked, 3);
    assert_int_equal(counters.failed, 1);
    assert_int_equal(counters.hook_ns, 10);
    applied.first_function = 12345;
    assert_int_equal(sj_registry_applied(f->registry, process, &applied, NULL, 0), SJ_ENOTFOUND);
}

static void a_runtime_is_reported_once_a_process_where_calls_are_counted(void **state)
{
    fixture *f = *state;
    sj_plan_reply reply = {0};
    sj_registry_counters counters;
    const sj_link_module module = {.build_id = {5}, .build_id_bytes = 20};
    sj_registry_free(f->registry);
    const sj_registry_options options = {.writer = f->writer,
                                         .selection = &f->selection,
                                         .runtime_directory = f->directory,
                                         .counts_calls = true};
    assert_int_equal(sj_registry_new(&options, &f->registry), SJ_OK);
    const uint64_t process = add_process(f, PID, 1, SJ_OCCASION_START);
    const uint64_t other = add_process(f, CHILD, 1, SJ_OCCASION_START);
    const struct {
        uint64_t process;
        const char *path;
        uint64_t frames;
    } cases[] = {
        {process, "/usr/lib/libm.so.6", 0},         {process, "/usr/lib/libobjc.so.4", 0},
        {process, "/usr/lib/jvm/lib/libjvm.so", 1}, {process, "/usr/lib/jvm/lib/libjli.so", 0},
        {other, "/usr/lib/jvm/lib/libjvm.so", 1},   {other, "/usr/lib/libmonosgen-2.0.so", 1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const sj_plan_request request = request_for(cases[i].process, &module, cases[i].path);
        const uint64_t before = frames(f);
        assert_int_equal(sj_registry_plan_module(f->registry, &request, &reply), SJ_EUNSUPPORTED);
        assert_int_equal(frames(f), before + cases[i].frames);
    }
    sj_registry_get_counters(f->registry, &counters);
    assert_string_equal(counters.unrecorded_runtime, "java");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            processes_are_numbered_and_a_pid_that_comes_again_ends_its_old_entry, set_up,
            tear_down),
        cmocka_unit_test_setup_teardown(processes_of_a_journal_are_adopted_while_others_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_module_is_planned_once_and_mapped_in_each_process, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_child_inherits_what_its_parent_has_mapped, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_late_plan_is_given_in_the_same_session, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_program_does_not_wait_long_for_a_plan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_process_waits_once_for_all_its_late_plans, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(modules_not_selected_or_not_planned_are_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            another_selection_moves_marks_and_a_review_gives_what_is_missing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(renewed_functions_stay_so_until_the_selection_is_settled,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(methods_of_a_runtime_become_functions_of_a_group, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_method_that_keeps_its_probes_is_muted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(methods_of_hidden_classes_are_muted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_hidden_class_that_was_there_before_is_listed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_class_that_a_jvm_cannot_record_is_reported, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_method_is_left_out_in_the_process_where_it_costs, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(class_numbers_of_one_program_do_not_exhaust_those_of_others,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_class_that_is_redefined_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(refusals_of_the_agent_are_counted_and_sent, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            a_runtime_is_reported_once_a_process_where_calls_are_counted, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
