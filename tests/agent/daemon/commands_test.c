/* Commands of a collector that is wrong or hostile change nothing, and the reason is reported. */
#include "agent/daemon/commands.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static char target[96];

/* The collector's file: `bytes` in all, in parts of at most `part`. */
typedef struct fake_collector {
    size_t bytes;
    size_t part;
    size_t asked;
} fake_collector;

static sj_status fetch(void *context, uint64_t file, uint64_t offset, uint8_t *bytes,
                       size_t capacity, size_t *got, sj_error *error)
{
    fake_collector *collector = context;
    collector->asked++;
    if (file != 7) {
        return sj_fail(error, SJ_EIO, "no such file");
    }
    const size_t left = offset < collector->bytes ? collector->bytes - (size_t)offset : 0;
    *got = left < collector->part ? left : collector->part;
    *got = *got < capacity ? *got : capacity;
    memset(bytes, 'x', *got);
    return SJ_OK;
}

static fake_collector collector;
static sj_device_command_context context;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/sj-orders-test.%d", (int)getpid());
    snprintf(target, sizeof(target), "%s/out", folder);
    collector = (fake_collector){.bytes = 100000, .part = 30000};
    context = (sj_device_command_context){
        .spool_root = folder, .spool_bytes = 1 << 20, .collector = &collector, .fetch = fetch};
    return mkdir(folder, 0700) != 0 || mkdir(target, 0700) != 0 ||
           setenv("XDG_STATE_HOME", folder, 1) != 0;
}

static int tear_down(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static sj_status execute(const char *kind, const char *arguments, json_t **result, sj_error *error)
{
    *result = NULL;
    return sj_device_command_run(&context, kind, arguments, 1000, result, error);
}

static void expect_refusal(const char *kind, const char *arguments, const char *said)
{
    json_t *result = NULL;
    sj_error error = {0};
    const sj_status status = execute(kind, arguments, &result, &error);
    if (status == SJ_OK || strstr(error.text, said) == NULL) {
        fail_msg("%s %s: %d, %s", kind, arguments, (int)status, error.text);
    }
    assert_null(result);
}

static void malformed_commands_are_refused(void **state)
{
    (void)state;
    expect_refusal("format-disk", "{}", "knows no command");
    expect_refusal("", "{}", "knows no command");
    expect_refusal("status", "", "not a JSON object");
    expect_refusal("status", "[]", "not a JSON object");
    expect_refusal("status", "{\"a\": 1, \"a\": 2}", "not a JSON object");
}

static void wrong_arguments_start_and_stop_nothing(void **state)
{
    (void)state;
    expect_refusal("launch", "{}", "command");
    expect_refusal("launch", "{\"command\": \"/bin/true\"}", "command");
    expect_refusal("launch", "{\"app\": \"none\"}", "no app \"none\"; add it to apps.json there");
    expect_refusal("attach", "{}", "pid");
    expect_refusal("attach", "{\"pid\": -1}", "pid");
    expect_refusal("attach", "{\"pid\": 99999999999}", "pid");
    expect_refusal("detach", "{\"pid\": 0}", "pid");
    expect_refusal("detach", "{\"pid\": 2147483647}", "no process");
    expect_refusal("shrink", "{}", "pid");
    expect_refusal("shrink", "{\"pid\": 2147483647}", "2147483647");
    expect_refusal("stop", "{\"session\": \"ab\"}", "no session");
    expect_refusal("mark", "{}", "name");
    expect_refusal("mark", "{\"mark\": \"a\"}", "nothing is being recorded");
    expect_refusal("dump", "{}", "nothing is being recorded");
    expect_refusal("policies", "{}", "digest");
}

static void a_full_spool_refuses_a_launch_with_the_reason(void **state)
{
    (void)state;
    context.spool_bytes = 0;
    expect_refusal("launch", "{\"command\": [\"/bin/true\"]}", "may hold no more");
}

static void write_to(const char *name, const char *said)
{
    char arguments[512];
    snprintf(arguments, sizeof(arguments),
             "{\"file\": 7, \"bytes\": 100000, \"directory\": \"%s\", \"name\": \"%s\"}", target,
             name);
    expect_refusal("write", arguments, said);
}

static unsigned count_files(void)
{
    unsigned count = 0;
    DIR *opened = opendir(target);
    assert_non_null(opened);
    for (struct dirent *entry = readdir(opened); entry != NULL; entry = readdir(opened)) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(opened);
    return count;
}

static void files_stay_in_the_directory_that_was_named(void **state)
{
    (void)state;
    static const char *const names[] = {"../x",    "a/b", "/etc/passwd", ".", "..",
                                        ".hidden", "",    "a b"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        write_to(names[i], "plain name");
    }
    expect_refusal("write", "{\"file\": 7, \"bytes\": 1, \"directory\": \"out\", \"name\": \"a\"}",
                   "absolute");
    expect_refusal("write",
                   "{\"file\": -1, \"bytes\": 1, \"directory\": \"/tmp\", \"name\": \"a\"}",
                   "not negative");
    expect_refusal("write",
                   "{\"file\": 7, \"bytes\": -1, \"directory\": \"/tmp\", \"name\": \"a\"}",
                   "not negative");
    expect_refusal("write",
                   "{\"file\": 7, \"bytes\": 1, \"directory\": \"/nowhere\", \"name\": \"a\"}",
                   "/nowhere");
    assert_int_equal(collector.asked, 0);
    assert_int_equal(count_files(), 0);
}

static void an_incomplete_file_is_removed(void **state)
{
    (void)state;
    char arguments[512];
    json_t *result = NULL;
    sj_error error = {0};
    collector.bytes = 50000; /* 100,000 were announced. */
    write_to("a.txt", "not as long");
    assert_int_equal(count_files(), 0);
    collector.bytes = 100000;
    snprintf(arguments, sizeof(arguments),
             "{\"file\": 8, \"bytes\": 10, \"directory\": \"%s\", \"name\": \"a.txt\"}", target);
    expect_refusal("write", arguments, "no such file");
    assert_int_equal(count_files(), 0);
    snprintf(arguments, sizeof(arguments),
             "{\"file\": 7, \"bytes\": 100000, \"directory\": \"%s\", \"name\": \"a.txt\"}",
             target);
    assert_int_equal(execute("write", arguments, &result, &error), SJ_OK);
    json_decref(result);
    struct stat about;
    char path[128];
    snprintf(path, sizeof(path), "%s/a.txt", target);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_size, 100000);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(count_files(), 1);
}

static void a_link_in_the_place_of_the_file_is_not_followed(void **state)
{
    (void)state;
    char path[128];
    char precious[128];
    char arguments[512];
    struct stat about;
    json_t *result = NULL;
    sj_error error = {0};
    snprintf(precious, sizeof(precious), "%s/precious", folder);
    FILE *file = fopen(precious, "we");
    assert_non_null(file);
    fputs("precious", file);
    fclose(file);
    snprintf(path, sizeof(path), "%s/a.txt", target);
    assert_int_equal(symlink(precious, path), 0);
    snprintf(path, sizeof(path), "%s/.a.txt.part", target);
    assert_int_equal(symlink(precious, path), 0);
    snprintf(arguments, sizeof(arguments),
             "{\"file\": 7, \"bytes\": 100000, \"directory\": \"%s\", \"name\": \"a.txt\"}",
             target);
    assert_int_equal(execute("write", arguments, &result, &error), SJ_OK);
    json_decref(result);
    assert_int_equal(stat(precious, &about), 0);
    assert_int_equal(about.st_size, 8);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(malformed_commands_are_refused),
        CASE(wrong_arguments_start_and_stop_nothing),
        CASE(a_full_spool_refuses_a_launch_with_the_reason),
        CASE(files_stay_in_the_directory_that_was_named),
        CASE(an_incomplete_file_is_removed),
        CASE(a_link_in_the_place_of_the_file_is_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
