/* Tests that the frames of a session leave out what its policy redacts: paths and command lines. */
#include "agent/session/redacted_frames.h"

#include "agent/policy/redaction.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static void a_path_becomes_a_file_name(void **state)
{
    (void)state;
    assert_string_equal(sj_redacted_path("/home/alice/lib.so"), "lib.so");
    assert_string_equal(sj_redacted_path("lib.so"), "lib.so");
    assert_string_equal(sj_redacted_path("/home/alice/"), SJ_REDACTED_TEXT);
    assert_string_equal(sj_redacted_path(""), "");
}

static void expect_text(const char *text, const char *wanted)
{
    char copy[128];
    sj_redacted_text(text, copy);
    assert_string_equal(copy, wanted);
}

static void paths_in_a_text_lose_their_folders(void **state)
{
    (void)state;
    expect_text("nothing", "nothing");
    expect_text("2 and/or 3", "2 and/or 3");
    expect_text("/home/alice/my own/lib.so!f", "lib.so!f");
    expect_text("cannot read /home/alice/my own/lib.so: no", "cannot read lib.so: no");
    expect_text("from \"/a/b\" to '/c/d'", "from \"d'");
    expect_text("in /home/", "in ");
}

static void all_strings_of_a_report_lose_their_folders(void **state)
{
    static const char report[] =
        "{\"n\":1,\"s\":[{\"module\":\"/home/alice/a.so\"},[\"/x/y\",\"z\"]]}";
    char *copy = NULL;
    (void)state;
    assert_int_equal(sj_redacted_json(report, strlen(report), &copy), SJ_OK);
    assert_string_equal(copy, "{\"n\":1,\"s\":[{\"module\":\"a.so\"},[\"y\",\"z\"]]}");
    free(copy);
    assert_int_equal(sj_redacted_json("{", 1, &copy), SJ_EINVAL);
}

static void fields_that_the_policy_names_are_removed_from_a_process(void **state)
{
    char executable[] = "/home/alice/app";
    char command[] = "app --password=x";
    Sojourn__Process process = SOJOURN__PROCESS__INIT;
    sj_redacted_message redacted;
    const ProtobufCMessage *sent = NULL;
    (void)state;
    process.executable = executable;
    process.command = command;
    assert_int_equal(sj_redacted_message_make(&redacted, 0, SJ_FRAME_PROCESS, &process.base, &sent),
                     SJ_OK);
    assert_ptr_equal(sent, &process.base);
    sj_redacted_message_deinit(&redacted);
    assert_int_equal(sj_redacted_message_make(&redacted, SJ_REDACT_COMMAND_LINES, SJ_FRAME_PROCESS,
                                              &process.base, &sent),
                     SJ_OK);
    assert_string_equal(((const Sojourn__Process *)sent)->command, SJ_REDACTED_TEXT);
    assert_string_equal(((const Sojourn__Process *)sent)->executable, executable);
    sj_redacted_message_deinit(&redacted);
    assert_int_equal(sj_redacted_message_make(&redacted, SJ_REDACT_COMMAND_LINES | SJ_REDACT_PATHS,
                                              SJ_FRAME_PROCESS, &process.base, &sent),
                     SJ_OK);
    assert_string_equal(((const Sojourn__Process *)sent)->executable, "app");
    sj_redacted_message_deinit(&redacted);
}

static void stacks_modules_and_texts_about_policies_have_file_names(void **state)
{
    char path[] = "/home/alice/a.so";
    char texts[] = "[\"cannot read /home/alice/a.so\"]";
    char *paths[] = {path, path};
    Sojourn__Stack stack = SOJOURN__STACK__INIT;
    Sojourn__Module module = SOJOURN__MODULE__INIT;
    Sojourn__Policy policy = SOJOURN__POLICY__INIT;
    sj_redacted_message redacted;
    const ProtobufCMessage *sent = NULL;
    (void)state;
    stack.n_path = 2;
    stack.path = paths;
    module.path = path;
    policy.not_applied = texts;
    assert_int_equal(
        sj_redacted_message_make(&redacted, SJ_REDACT_PATHS, SJ_FRAME_STACK, &stack.base, &sent),
        SJ_OK);
    assert_string_equal(((const Sojourn__Stack *)sent)->path[1], "a.so");
    assert_string_equal(stack.path[1], "/home/alice/a.so");
    sj_redacted_message_deinit(&redacted);
    assert_int_equal(
        sj_redacted_message_make(&redacted, SJ_REDACT_PATHS, SJ_FRAME_MODULE, &module.base, &sent),
        SJ_OK);
    assert_string_equal(((const Sojourn__Module *)sent)->path, "a.so");
    sj_redacted_message_deinit(&redacted);
    assert_int_equal(
        sj_redacted_message_make(&redacted, SJ_REDACT_PATHS, SJ_FRAME_POLICY, &policy.base, &sent),
        SJ_OK);
    assert_string_equal(((const Sojourn__Policy *)sent)->not_applied, "[\"cannot read a.so\"]");
    sj_redacted_message_deinit(&redacted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_becomes_a_file_name),
        cmocka_unit_test(paths_in_a_text_lose_their_folders),
        cmocka_unit_test(all_strings_of_a_report_lose_their_folders),
        cmocka_unit_test(fields_that_the_policy_names_are_removed_from_a_process),
        cmocka_unit_test(stacks_modules_and_texts_about_policies_have_file_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
