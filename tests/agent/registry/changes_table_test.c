/* Tests that the table of changes appears completely or not at all. */
#include "agent/policy/policy.h"
#include "agent/registry/changes_table.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SMALL_BYTES = 4096 };

static bool has(const char *directory, const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static void a_table_that_cannot_be_made_leaves_no_file(void **state)
{
    (void)state;
    char directory[] = "/dev/shm/sj-changes-XXXXXX";
    char path[PATH_MAX];
    struct stat status;
    struct rlimit before;
    sj_changes_table *table = NULL;
    sj_value_rules *rules = NULL;
    sj_error error = {0};
    assert_non_null(mkdtemp(directory));
    assert_int_equal(sj_value_rules_new(&rules), SJ_OK);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {.rlim_cur = SMALL_BYTES, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(sj_changes_table_new(directory, rules, "/bin/true", 1, &table, &error),
                     SJ_EIO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_false(has(directory, SJ_CHANGES_NAME));
    assert_false(has(directory, SJ_CHANGES_NAME ".new"));
    /* The next attempt succeeds. */
    assert_int_equal(sj_changes_table_new(directory, rules, "/bin/true", 1, &table, &error), SJ_OK);
    assert_false(has(directory, SJ_CHANGES_NAME ".new"));
    snprintf(path, sizeof(path), "%s/" SJ_CHANGES_NAME, directory);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, sizeof(sj_changes));
    sj_changes_table_free(table);
    sj_value_rules_free(rules);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

static sj_value_rules *rules_of(const char *marks)
{
    char text[512];
    sj_policy policy;
    sj_error error = {0};
    snprintf(
        text, sizeof(text),
        "{\"policy\": 1, \"values\": [{\"name\": \"a\", \"function\": \"work\", \"argument\": 1, "
        "\"as\": \"int\", \"change\": {\"between\": [%s], \"set\": 9}}]}",
        marks);
    if (sj_policy_parse(text, strlen(text), "t", &policy, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    sj_value_rules *rules = sj_value_rules_share(policy.selection.values);
    sj_policy_free(&policy);
    return rules;
}

static void a_rule_that_is_replaced_waits_for_its_own_mark(void **state)
{
    char directory[] = "/dev/shm/sj-changes-XXXXXX";
    char path[PATH_MAX];
    sj_changes_table *table = NULL;
    sj_error error = {0};
    size_t unknown = 1;
    (void)state;
    assert_non_null(mkdtemp(directory));
    sj_value_rules *before = rules_of("\"begin\", \"end\"");
    sj_value_rules *after = rules_of("\"later\", \"end\"");
    assert_int_equal(sj_changes_table_new(directory, before, "/bin/true", 1, &table, &error),
                     SJ_OK);
    snprintf(path, sizeof(path), "%s/" SJ_CHANGES_NAME, directory);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const sj_changes *shared = mmap(NULL, sizeof(*shared), PROT_READ, MAP_SHARED, file, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    sj_changes_table_mark(table, "begin", false);
    assert_int_equal(atomic_load(&shared->rules[0].is_between), 1);
    sj_changes_table_replace(table, after, &unknown);
    assert_int_equal(unknown, 0);
    assert_int_equal(atomic_load(&shared->rules[0].is_between), 0);
    sj_changes_table_mark(table, "begin", false);
    assert_int_equal(atomic_load(&shared->rules[0].is_between), 0);
    sj_changes_table_mark(table, "later", false);
    assert_int_equal(atomic_load(&shared->rules[0].is_between), 1);
    munmap((void *)(uintptr_t)shared, sizeof(*shared));
    close(file);
    sj_changes_table_free(table);
    sj_value_rules_free(before);
    sj_value_rules_free(after);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_that_cannot_be_made_leaves_no_file),
        cmocka_unit_test(a_rule_that_is_replaced_waits_for_its_own_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
