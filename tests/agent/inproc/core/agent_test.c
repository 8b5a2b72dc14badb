/* Runs the shipped agent in a real program, against a small recorder. The program's own output must
 * be the same as without the agent, whatever the recorder does. */
#include "tests/agent/inproc/core/test_recorder.h"
#include "tests/agent/inproc/recorder/probe_code.h"

#include <dlfcn.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { MAX_ENTRIES = 8, ENTRY_BYTES = 2 * PATH_MAX };

#define EARLIER_PRELOAD "libm.so.6"

static test_recorder traced;
static test_recorder plain;

/* Runs the sample. With `agent`, sets the environment as the launcher would. */
static void run(test_recorder *self, char *const *arguments, bool agent, bool preload_before)
{
    static char preload[ENTRY_BYTES];
    static char runtime[ENTRY_BYTES];
    char cwd[PATH_MAX];
    char *environment[MAX_ENTRIES];
    size_t used = 0;
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    environment[used++] = (char *)"FIRST=1";
    if (agent) {
        snprintf(preload, sizeof(preload), "LD_PRELOAD=%s%s", SJ_TEST_AGENT,
                 preload_before ? ":" EARLIER_PRELOAD : "");
        snprintf(runtime, sizeof(runtime), "SOJOURN_RUNTIME=%s/%s", cwd, self->directory);
        environment[used++] = preload;
        environment[used++] = runtime;
        if (preload_before) {
            environment[used++] = (char *)"SOJOURN_PRELOAD=" EARLIER_PRELOAD;
        }
    } else if (preload_before) {
        environment[used++] = (char *)"LD_PRELOAD=" EARLIER_PRELOAD;
    }
    environment[used++] = (char *)"LAST=2";
    environment[used] = NULL;
    test_recorder_run(self, arguments, environment);
}

static void run_both(char *const *arguments, test_recorder_fault fault, bool follow, bool preload)
{
    test_recorder_open(&plain, FAULT_NO_SOCKET, false);
    run(&plain, arguments, false, preload);
    test_recorder_close(&plain);
    assert_int_equal(plain.status, 0);
    assert_non_null(strstr(plain.output, "sum "));
    test_recorder_open(&traced, fault, follow);
    run(&traced, arguments, true, preload);
    assert_string_equal(traced.output, plain.output);
    assert_int_equal(traced.status, 0);
}

/* Counts the records of all threads in one arena. Writes the arena's state to `*state`. */
static void count_records(uint32_t arena_number, tally *sum, uint32_t *state)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", traced.directory, traced.arenas[arena_number]);
    uint8_t *base = map_arena_file(path);
    assert_non_null(base);
    const sj_arena_header *header = (const sj_arena_header *)base;
    assert_true(header->magic == SJ_ARENA_MAGIC);
    for (uint32_t i = 0; i < header->max_threads; i++) {
        drain_thread(base, i, false, sum);
    }
    *state = atomic_load(&header->state);
}

static char *const count_only[] = {(char *)SJ_TEST_SAMPLE, (char *)"1000", NULL};

static void test_a_recorded_program_runs_unchanged(void **unused)
{
    (void)unused;
    tally sum = {0};
    uint32_t state;
    run_both(count_only, FAULT_NONE, false, false);
    assert_int_equal(traced.hooked, 1);
    assert_int_equal(traced.failed, 0);
    assert_int_equal(traced.done, 1);
    assert_true(traced.modules >= 2);
    assert_true(traced.saw_build_id);
    assert_false(traced.saw_agent);
    count_records(0, &sum, &state);
    assert_int_equal(sum.enters, 1000);
    assert_int_equal(sum.leaves, 1000);
    assert_int_equal(sum.marks, 2);
    assert_int_equal(state, SJ_ARENA_ENDED);
    test_recorder_close(&traced);
}

static void test_an_earlier_preload_is_restored(void **unused)
{
    (void)unused;
    run_both(count_only, FAULT_NONE, false, true);
    assert_non_null(strstr(traced.output, "environment LD_PRELOAD=" EARLIER_PRELOAD "\n"));
    assert_int_equal(traced.hooked, 1);
    test_recorder_close(&traced);
}

static void test_without_a_recorder_the_program_runs_untouched(void **unused)
{
    (void)unused;
    static const test_recorder_fault faults[] = {FAULT_NO_SOCKET, FAULT_REFUSE, FAULT_GARBAGE};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        run_both(count_only, faults[i], false, true);
        assert_int_equal(traced.hooked, 0);
        test_recorder_close(&traced);
    }
}

static void test_a_conversation_that_breaks_disarms(void **unused)
{
    (void)unused;
    static const test_recorder_fault faults[] = {FAULT_AFTER_WELCOME, FAULT_AFTER_APPLIED};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        tally sum = {0};
        uint32_t state;
        run_both(count_only, faults[i], false, false);
        count_records(0, &sum, &state);
        assert_int_equal(sum.enters + sum.leaves, 0);
        assert_int_equal(state, SJ_ARENA_DISARMED);
        test_recorder_close(&traced);
    }
}

static void test_a_bad_plan_leaves_its_module_alone(void **unused)
{
    (void)unused;
    tally sum = {0};
    uint32_t state;
    run_both(count_only, FAULT_BAD_PLAN, false, false);
    assert_int_equal(traced.hooked, 0);
    assert_int_equal(traced.done, 1);
    count_records(0, &sum, &state);
    assert_int_equal(sum.enters, 0);
    test_recorder_close(&traced);
}

static void test_a_loaded_module_is_hooked_before_its_constructors(void **unused)
{
    (void)unused;
    char *const arguments[] = {(char *)SJ_TEST_SAMPLE, (char *)"100", (char *)"plugin",
                               (char *)SJ_TEST_PLUGIN, NULL};
    tally sum = {0};
    uint32_t state;
    run_both(arguments, FAULT_NONE, false, false);
    /* The plugin is loaded and unloaded twice. Each constructor makes ten calls. */
    assert_int_equal(traced.hooked, 3);
    assert_int_equal(traced.unloaded, 2);
    assert_int_equal(traced.hello_count[SJ_OCCASION_DLOPEN], 4);
    count_records(0, &sum, &state);
    assert_int_equal(sum.enters, 120);
    assert_int_equal(sum.leaves, 120);
    test_recorder_close(&traced);
}

static char *const with_fork[] = {(char *)SJ_TEST_SAMPLE, (char *)"1000", (char *)"fork", NULL};

static void test_a_forked_child_joins_the_session(void **unused)
{
    (void)unused;
    tally parent = {0};
    tally child = {0};
    uint32_t state;
    run_both(with_fork, FAULT_NONE, true, false);
    assert_int_equal(traced.hello_count[SJ_OCCASION_FORK], 1);
    assert_int_equal(traced.arena_count, 2);
    count_records(0, &parent, &state);
    assert_int_equal(parent.enters, 1000);
    assert_int_equal(parent.leaves, 1000);
    assert_int_equal(state, SJ_ARENA_ENDED);
    count_records(1, &child, &state);
    assert_int_equal(child.enters, 1000);
    assert_int_equal(child.leaves, 1000);
    assert_int_equal(state, SJ_ARENA_ENDED);
    test_recorder_close(&traced);
}

static void test_a_forked_child_that_is_not_followed_records_nothing(void **unused)
{
    (void)unused;
    tally sum = {0};
    uint32_t state;
    run_both(with_fork, FAULT_NONE, false, false);
    assert_int_equal(traced.arena_count, 1);
    count_records(0, &sum, &state);
    assert_int_equal(sum.enters, 1000);
    assert_int_equal(sum.leaves, 1000);
    test_recorder_close(&traced);
}

/* Reads the output of a command. */
static void read_command(const char *command, char *output, size_t bytes)
{
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    const size_t got = fread(output, 1, bytes - 1, pipe);
    output[got] = '\0';
    assert_int_equal(pclose(pipe), 0);
}

static void test_the_object_needs_libc_only_and_exports_its_api_only(void **unused)
{
    (void)unused;
    static const char *const forbidden[] = {
        "malloc", "calloc",    "realloc",        "free",   "printf", "exit",   "abort", "assert",
        "signal", "sigaction", "pthread_create", "dlopen", "setenv", "getenv", "open"};
    static char output[16384];
    read_command("readelf -d " SJ_TEST_AGENT " | grep -c NEEDED", output, sizeof(output));
    assert_string_equal(output, "1\n");
    read_command("readelf -d " SJ_TEST_AGENT " | grep NEEDED", output, sizeof(output));
    assert_non_null(strstr(output, "[libc.so.6]"));
    read_command("nm -D --defined-only " SJ_TEST_AGENT " | awk '{print $3}'", output,
                 sizeof(output));
    assert_string_equal(output, "Agent_OnAttach\n"
                                "Agent_OnLoad\n"
                                "_dl_find_object\n"
                                "dl_iterate_phdr\n"
                                "sojourn_agent_adopt_signals\n"
                                "sojourn_agent_attach\n"
                                "sojourn_agent_bind\n"
                                "sojourn_agent_detach\n"
                                "sojourn_agent_join_jvm\n"
                                "sojourn_agent_leave_heap\n"
                                "sojourn_agent_leave_jvm\n"
                                "sojourn_agent_leave_signals\n"
                                "sojourn_agent_mark_begin\n"
                                "sojourn_agent_mark_end\n"
                                "sojourn_agent_request\n"
                                "sojourn_agent_select_jvm\n"
                                "sojourn_agent_select_mono\n"
                                "sojourn_agent_shrink_heap\n"
                                "sojourn_agent_state\n"
                                "sojourn_agent_transition\n"
                                "sojourn_agent_unbind\n"
                                "sojourn_agent_unregister\n"
                                "sojourn_agent_watch_heap\n");
    read_command("nm -D --undefined-only " SJ_TEST_AGENT, output, sizeof(output));
    assert_non_null(strstr(output, "dlsym@"));
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        if (strstr(output, forbidden[i]) != NULL) {
            fail_msg("the agent imports %s", forbidden[i]);
        }
    }
    /* The agent uses errno in three places: where a rule sets it (sj_recorder_set_error), where a
     * rule reads it, and where it is recorded (recorder/values.c). */
    read_command("objdump -d --no-show-raw-insn " SJ_TEST_AGENT
                 " | grep -c '__errno_location@plt>$'",
                 output, sizeof(output));
    assert_string_equal(output, "3\n");
}

/* The agent keeps the app's vector registers. Its only instructions that write them are the loads
 * of sj_arch_values_entry, after a rule has set an argument, and the zeros that
 * sj_arch_freed_message returns for a freed object. Only the stores of sj_arch_values_entry read
 * them. */
static void test_no_instruction_of_the_agent_changes_a_vector_register(void **unused)
{
    (void)unused;
    static char output[256];
    read_command("objdump -d --no-show-raw-insn " SJ_TEST_AGENT " | grep -E '%[xyz]mm|%mm[0-7]|%st'"
                 " | grep -vE 'movq +%xmm[0-7],(0x[0-9a-f]+\\(%rsp\\)|%rax)$'"
                 " | grep -vE 'pxor +%xmm([01]),%xmm\\1$'"
                 " | grep -vcE 'movlps +0x[0-9a-f]+\\(%rsp\\),%xmm[0-7]$' || true",
                 output, sizeof(output));
    assert_string_equal(output, "0\n");
    read_command("objdump -d --no-show-raw-insn " SJ_TEST_AGENT " | grep -c rdtsc", output,
                 sizeof(output));
    assert_true(atoi(output) > 0);
    /* Functions of libc, for example memset, change vector registers. */
    static const char slow_path[] = " | awk '/<sj_recorder_slow>:$/,/^$/"
                                    " {found += /ret/; called += /@plt/}"
                                    " END {print (found > 0), called + 0}'";
    char command[1024];
    snprintf(command, sizeof(command), "objdump -d %s%s", SJ_TEST_AGENT, slow_path);
    read_command(command, output, sizeof(output));
    assert_string_equal(output, "1 0\n");
    snprintf(command, sizeof(command),
             "aarch64-linux-gnu-objdump -d $(dirname %s)/libsojourn-agent-aarch64.so%s",
             SJ_TEST_AGENT, slow_path);
    read_command(command, output, sizeof(output));
    assert_string_equal(output, "1 0\n");
}

/* Removes the execute permission from the mapped code of the agent. */
static void forbid_code(void)
{
    char line[PATH_MAX + 128];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned long low;
        unsigned long high;
        if (strstr(line, "libsojourn-agent") != NULL && strstr(line, " r-xp ") != NULL &&
            sscanf(line, "%lx-%lx", &low, &high) == 2) {
            mprotect((void *)low, high - low, PROT_READ);
        }
    }
    fclose(maps);
}

/* Attaches the agent, forbids its code and forks. Exits with 0 only if the fork runs no code of the
 * agent. */
static void fork_with_agent(bool unregisters)
{
    int status = 1;
    void *agent = dlopen(SJ_TEST_AGENT, RTLD_NOW);
    void (*attach)(void) = (void (*)(void))dlsym(agent, "sojourn_agent_attach");
    void (*unregister)(void) = (void (*)(void))dlsym(agent, "sojourn_agent_unregister");
    const struct rlimit no_core = {0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGSEGV, SIG_DFL);
    if (attach == NULL || unregister == NULL) {
        _exit(2);
    }
    attach(); /* no recorder replies, and the test needs none */
    if (unregisters) {
        unregister();
    }
    forbid_code();
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    waitpid(pid, &status, 0);
    _exit(status != 0);
}

static void test_no_fork_handler_is_called_when_they_are_unregistered(void **unused)
{
    (void)unused;
    for (int unregisters = 0; unregisters <= 1; unregisters++) {
        int status = 0;
        const pid_t pid = fork();
        if (pid == 0) {
            fork_with_agent(unregisters != 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (unregisters != 0) {
            assert_int_equal(status, 0);
        } else {
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_recorded_program_runs_unchanged),
        cmocka_unit_test(test_an_earlier_preload_is_restored),
        cmocka_unit_test(test_without_a_recorder_the_program_runs_untouched),
        cmocka_unit_test(test_a_conversation_that_breaks_disarms),
        cmocka_unit_test(test_a_bad_plan_leaves_its_module_alone),
        cmocka_unit_test(test_a_loaded_module_is_hooked_before_its_constructors),
        cmocka_unit_test(test_a_forked_child_joins_the_session),
        cmocka_unit_test(test_a_forked_child_that_is_not_followed_records_nothing),
        cmocka_unit_test(test_the_object_needs_libc_only_and_exports_its_api_only),
        cmocka_unit_test(test_no_instruction_of_the_agent_changes_a_vector_register),
        cmocka_unit_test(test_no_fork_handler_is_called_when_they_are_unregistered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
