/* Applies plans to running programs. The output must not change, and every entry must have its
 * exit. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { OUTPUT_BYTES = 1 << 20, ARGUMENTS = 8 };

typedef struct report {
    unsigned long entries;
    unsigned long exits;
    long open_calls;
    unsigned more_exits;
    unsigned refused;
} report;

static char report_path[] = "planner_report.XXXXXX";

static size_t run_program(const char *const *arguments, bool with_plan, char *output)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        if (with_plan) {
            setenv("LD_PRELOAD", PLANNER_PRELOAD, 1);
            setenv("SJ_TEST_REPORT", report_path, 1);
        }
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(ends[1]);
    size_t size = 0;
    for (ssize_t got; (got = read(ends[0], output + size, OUTPUT_BYTES - size)) > 0;) {
        size += (size_t)got;
    }
    close(ends[0]);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    return size;
}

static report compare_runs(const char *const *arguments)
{
    char *plain = malloc(OUTPUT_BYTES);
    char *hooked = malloc(OUTPUT_BYTES);
    assert_int_equal(truncate(report_path, 0), 0);
    const size_t plain_bytes = run_program(arguments, false, plain);
    const size_t hooked_bytes = run_program(arguments, true, hooked);
    assert_true(plain_bytes > 0);
    assert_int_equal(hooked_bytes, plain_bytes);
    assert_memory_equal(hooked, plain, plain_bytes);
    free(plain);
    free(hooked);
    report found = {0};
    FILE *file = fopen(report_path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "entries %lu exits %lu open %ld more_exits %u refused %u",
                            &found.entries, &found.exits, &found.open_calls, &found.more_exits,
                            &found.refused),
                     5);
    fclose(file);
    assert_int_equal(found.refused, 0);
    return found;
}

static report run_both(const char *const *arguments)
{
    const report found = compare_runs(arguments);
    assert_int_equal(found.more_exits, 0);
    return found;
}

/* At most the six calls that longjmp ends stay open. */
static void samples_of_every_compiler_run_the_same_and_balance(void **state)
{
    (void)state;
    static const char *const samples[] = {PLANNER_SAMPLES};
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        const char *const arguments[ARGUMENTS] = {samples[i]};
        const report found = run_both(arguments);
        print_message("%s: %lu entries\n", samples[i], found.entries);
        assert_true(found.entries > 2000);
        assert_in_range(found.open_calls, 1, 6);
    }
}

static void rare_shapes_of_code_run_the_same_and_balance(void **state)
{
    (void)state;
    const char *const arguments[ARGUMENTS] = {PLANNER_SHAPES};
    const report found = run_both(arguments);
    assert_true(found.entries > 3000);
    assert_int_equal(found.open_calls, 0);
}

/* One function may stay unhooked: arms of its switch lead to its entry. */
static void switches_stay_in_their_function_wherever_arms_lie(void **state)
{
    (void)state;
    static const char *const programs[] = {PLANNER_SWITCHES};
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        const char *const arguments[ARGUMENTS] = {programs[i]};
        const report found = run_both(arguments);
        print_message("%s: %lu entries\n", programs[i], found.entries);
        assert_in_range(found.entries, 4621, 4631);
        assert_int_equal(found.open_calls, 0);
    }
}

/* Some functions are entered in their middle, so they have more exits than entries. */
static void results_in_flags_survive_the_probes(void **state)
{
    (void)state;
    static const char *const programs[] = {PLANNER_FLAGS, PLANNER_FLAGS "-fixed",
                                           PLANNER_FLAGS "-stripped"};
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        const char *const arguments[ARGUMENTS] = {programs[i]};
        assert_true(compare_runs(arguments).entries > 400);
    }
}

static void a_program_with_false_tables_runs_the_same(void **state)
{
    (void)state;
    const char *const arguments[ARGUMENTS] = {PLANNER_LIARS};
    const report found = run_both(arguments);
    /* The entries are those of functions with correct tables: main and the bystander. */
    assert_int_equal(found.entries, 2001);
    assert_int_equal(found.open_calls, 0);
}

static void exceptions_land_between_packed_exits(void **state)
{
    (void)state;
    static const char *const programs[] = {PLANNER_LANDING "-gcc", PLANNER_LANDING "-clang",
                                           PLANNER_LANDING "-sections"};
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        const char *const arguments[ARGUMENTS] = {programs[i]};
        assert_true(compare_runs(arguments).entries > 100);
    }
}

static void bash_runs_the_same_hooked(void **state)
{
    (void)state;
    const char *const arguments[ARGUMENTS] = {
        "/bin/bash", "-c",
        "f() { if [ $1 -gt 0 ]; then f $(( $1 - 1 )); fi; }; f 40; a=(1 2 3); x=abc;"
        "for i in 1 2 3 4; do a+=($i); done; echo ${a[@]} ${x/b/c} ${#x}"};
    const report found = run_both(arguments);
    assert_true(found.entries > 10000);
    assert_in_range(found.open_calls, 0, 64); /* main, and calls that exit() never leaves */
}

static void perl_runs_the_same_hooked(void **state)
{
    (void)state;
    const char *const arguments[ARGUMENTS] = {
        "/usr/bin/perl", "-e",
        "my %h; for (1..5000) { $h{$_ % 97} .= chr(65 + $_ % 26); }"
        "print join(',', map { \"$_=\" . length $h{$_} } sort keys %h);"
        "eval { die 'x' }; print $@; print 'ok' if 'foobar' =~ /o+(b|c)a/;"};
    const report found = run_both(arguments);
    assert_true(found.entries > 100000);
    assert_in_range(found.open_calls, 0, 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_of_every_compiler_run_the_same_and_balance),
        cmocka_unit_test(rare_shapes_of_code_run_the_same_and_balance),
        cmocka_unit_test(switches_stay_in_their_function_wherever_arms_lie),
        cmocka_unit_test(results_in_flags_survive_the_probes),
        cmocka_unit_test(a_program_with_false_tables_runs_the_same),
        cmocka_unit_test(exceptions_land_between_packed_exits),
        cmocka_unit_test(bash_runs_the_same_hooked),
        cmocka_unit_test(perl_runs_the_same_hooked),
    };
    const int file = mkstemp(report_path);
    if (file < 0) {
        return 1;
    }
    close(file);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(report_path);
    return failed;
}
