#include "proto/base/config_file.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option options[] = {
    {"listen", required_argument, NULL, 'l'},   {"open", no_argument, NULL, 'o'},
    {"database", required_argument, NULL, 'd'}, {"config", required_argument, NULL, 'c'},
    {"print-config", no_argument, NULL, 'p'},   {NULL, 0, NULL, 0}};

static char path[] = "/tmp/sojourn-config-XXXXXX";

static void write_file(const char *text, size_t bytes)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void test_lines_of_the_file_precede_the_command_line(void **state)
{
    static const char text[] = "# a comment\n\n  listen = tcp://a \r\nopen\nlisten=b = c";
    char *given[] = {"sojournd", "--open", "--config", path, "--listen", "d", NULL};
    const char *const expected[] = {"sojournd", "--listen=tcp://a", "--open", "--listen=b = c",
                                    "--open",   "--listen",         "d"};
    sj_config_file config;
    sj_error error = {0};
    char place[200];
    char wanted[200];
    (void)state;
    write_file(text, sizeof(text) - 1);
    assert_int_equal(sj_config_file_read(6, given, options, &config, &error), SJ_OK);
    assert_int_equal(config.argc, 7);
    for (int i = 0; i < 7; i++) {
        assert_string_equal(config.argv[i], expected[i]);
    }
    assert_null(config.argv[7]);
    sj_config_file_place(&config, 3, place, sizeof(place));
    snprintf(wanted, sizeof(wanted), "%s:5: ", path);
    assert_string_equal(place, wanted);
    sj_config_file_place(&config, 4, place, sizeof(place));
    assert_string_equal(place, "");
    sj_config_file_deinit(&config);
}

static void test_arguments_without_a_config_file_stay(void **state)
{
    char *given[] = {"sojournd", "--open", "--", "--config", NULL};
    sj_config_file config;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_config_file_read(4, given, options, &config, &error), SJ_OK);
    assert_int_equal(config.argc, 4);
    assert_string_equal(config.argv[3], "--config");
    sj_config_file_deinit(&config);
}

static void check_refused(const char *text, size_t bytes, sj_status status, const char *said)
{
    char option[64];
    char *given[] = {"sojournd", option, NULL};
    sj_config_file config;
    sj_error error = {0};
    snprintf(option, sizeof(option), "--config=%s", path);
    write_file(text, bytes);
    assert_int_equal(sj_config_file_read(2, given, options, &config, &error), status);
    assert_non_null(strstr(error.text, path));
    assert_non_null(strstr(error.text, said));
    sj_config_file_deinit(&config);
}

static void test_wrong_lines_are_named(void **state)
{
    static char big[SJ_CONFIG_MAX_BYTES + 1];
    (void)state;
    memset(big, '#', sizeof(big));
    check_refused("open\n--open\n", 12, SJ_EINVAL, ":2: \"--open\" is not an option");
    check_refused("= x", 3, SJ_EINVAL, ":1: \"\" is not an option");
    check_refused("\nopen it\n", 9, SJ_EINVAL, ":2: \"open it\" is not an option");
    check_refused("config = other", 14, SJ_EINVAL, ":1: \"config\" is not an option");
    check_refused("database\nopen", 13, SJ_EINVAL, ":1: database needs a value");
    check_refused("open\nlis =\n", 11, SJ_EINVAL, ":2: lis needs a value");
    check_refused("open\0", 5, SJ_EINVAL, "has a zero byte");
    check_refused(big, sizeof(big), SJ_ELIMIT, "has more than 65536 bytes");
}

static void test_a_missing_config_file_is_an_error(void **state)
{
    char *missing[] = {"sojournd", "--config", "/nowhere/at all", NULL};
    char *nothing[] = {"sojournd", "--config", NULL};
    sj_config_file config;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_config_file_read(3, missing, options, &config, &error), SJ_EIO);
    assert_string_equal(error.text, "/nowhere/at all: No such file or directory");
    sj_config_file_deinit(&config);
    assert_int_equal(sj_config_file_read(2, nothing, options, &config, &error), SJ_EINVAL);
    sj_config_file_deinit(&config);
}

/* The printed text is a configuration file with the same options. */
static void test_printed_file_is_read_again(void **state)
{
    char *given[] = {"sojournd", "--listen", "a", "--print-config", "--listen=b", NULL};
    static const char expected[] = "listen = a\nlisten = b\n# open\n# database =\n";
    char *text = NULL;
    size_t bytes = 0;
    sj_config_file config;
    sj_error error = {0};
    (void)state;
    assert_int_equal(sj_config_file_read(5, given, options, &config, &error), SJ_OK);
    FILE *output = open_memstream(&text, &bytes);
    assert_non_null(output);
    sj_config_file_print(&config, options, output);
    assert_int_equal(fclose(output), 0);
    assert_string_equal(text, expected);
    sj_config_file_deinit(&config);
    write_file(text, bytes);
    free(text);
    char *again[] = {"sojournd", "--config", path, NULL};
    assert_int_equal(sj_config_file_read(3, again, options, &config, &error), SJ_OK);
    assert_int_equal(config.argc, 3);
    assert_string_equal(config.argv[1], "--listen=a");
    assert_string_equal(config.argv[2], "--listen=b");
    sj_config_file_deinit(&config);
}

static int make_file(void **state)
{
    (void)state;
    const int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_of_the_file_precede_the_command_line),
        cmocka_unit_test(test_arguments_without_a_config_file_stay),
        cmocka_unit_test(test_wrong_lines_are_named),
        cmocka_unit_test(test_a_missing_config_file_is_an_error),
        cmocka_unit_test(test_printed_file_is_read_again)};
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
