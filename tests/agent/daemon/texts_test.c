/* Tests texts that a device reads: catalogue, invitation, policies of the collector, its own
 * files. */
#include "agent/daemon/apps.h"
#include "agent/daemon/device_policies.h"
#include "agent/daemon/enrolment.h"
#include "agent/daemon/state_file.h"

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

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/sj-daemon-test.%d", (int)getpid());
    return mkdir(folder, 0700) != 0 || setenv("XDG_STATE_HOME", folder, 1) != 0;
}

static int tear_down(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void write_state(const char *name, const char *text)
{
    char path[512];
    sj_error error = {0};
    assert_int_equal(sj_state_file_path(name, path, sizeof(path), &error), SJ_OK);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

typedef sj_status (*checker)(const json_t *object, sj_error *error);

/* Checks that `check` refuses each text with an error that contains the expected words. */
static void expect_refusals(checker check, const char *const (*mistakes)[2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_error_t problem;
        sj_error error = {0};
        json_t *object = json_loads(mistakes[i][0], 0, &problem);
        assert_non_null(object);
        const sj_status status = check(object, &error);
        if (status == SJ_OK || strstr(error.text, mistakes[i][1]) == NULL) {
            fail_msg("%s: %d, %s", mistakes[i][0], (int)status, error.text);
        }
        json_decref(object);
    }
}

static void mistakes_in_the_catalogue_are_named(void **state)
{
    (void)state;
    static const char *const mistakes[][2] = {
        {"{}", "\"apps\""},
        {"{\"apps\": {}}", "\"apps\""},
        {"{\"apps\": [1]}", "app 1 has no \"name\""},
        {"{\"apps\": [{\"name\": \"\"}]}", "no \"name\""},
        {"{\"apps\": [{\"name\": \"a\"}]}", "a: \"command\""},
        {"{\"apps\": [{\"name\": \"a\", \"command\": []}]}", "a: \"command\""},
        {"{\"apps\": [{\"name\": \"a\", \"command\": \"/bin/true\"}]}", "a: \"command\""},
        {"{\"apps\": [{\"name\": \"a\", \"command\": [1]}]}", "a: \"command\""},
        {"{\"apps\": [{\"name\": \"a\", \"comand\": [\"x\"]}]}", "did you mean \"command\""},
        {"{\"apps\": [{\"name\": \"a\", \"command\": [\"x\"], \"environment\": [1]}]}",
         "a: \"environment\""},
        {"{\"apps\": [{\"name\": \"a\", \"command\": [\"x\"], \"environment\": {\"\": \"1\"}}]}",
         "a: \"environment\""},
        {"{\"apps\": [{\"name\": \"a\", \"command\": [\"x\"], \"prepare\": [[]]}]}",
         "a: \"prepare\""},
        {"{\"apps\": [{\"name\": \"a\", \"command\": [\"x\"], \"prepare\": [\"rm\"]}]}",
         "a: \"prepare\""},
        {"{\"apps\": [{\"name\": \"a\", \"command\": [\"x\"], \"directory\": \"opt\"}]}",
         "absolute"},
        {"{\"apps\": [{\"name\": \"a\", \"command\": [\"x\"]}, {\"name\": \"a\","
         " \"command\": [\"y\"]}]}",
         "two apps"}};
    expect_refusals(sj_apps_check_catalogue, mistakes, sizeof(mistakes) / sizeof(mistakes[0]));
}

static void a_catalogue_is_read_again_and_its_path_is_reported(void **state)
{
    (void)state;
    json_t *apps = NULL;
    sj_error error = {0};
    assert_int_equal(sj_apps_load(&apps, &error), SJ_OK);
    assert_int_equal(json_array_size(apps), 0);
    json_decref(apps);
    write_state("apps.json", "{\"apps\": [{\"name\": \"shop\", \"command\": [\"/bin/true\"],"
                             " \"environment\": {\"A\": \"1\"}, \"prepare\": [[\"true\"]],"
                             " \"directory\": \"/\", \"policy\": \"jank\"}]}");
    assert_int_equal(sj_apps_load(&apps, &error), SJ_OK);
    assert_int_equal(json_array_size(apps), 1);
    json_decref(apps);
    write_state("apps.json", "{\"apps\": [\n  {\"name\" \"shop\"}]}");
    assert_int_equal(sj_apps_load(&apps, &error), SJ_ECORRUPT);
    assert_non_null(strstr(error.text, "apps.json, line 2"));
    write_state("apps.json", "{\"apps\": [], \"apps\": []}");
    assert_int_equal(sj_apps_load(&apps, &error), SJ_ECORRUPT);
    write_state("apps.json", "{\"apps\": [{}]}");
    assert_int_equal(sj_apps_load(&apps, &error), SJ_ECORRUPT);
    assert_non_null(strstr(error.text, "apps.json"));
}

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void malformed_invitations_are_refused_without_a_request(void **state)
{
    (void)state;
    static const char *const mistakes[][2] = {
        {"{}", "\"collector\""},
        {"{\"collector\": 1, \"token\": \"" TOKEN "\"}", "\"collector\""},
        {"{\"collector\": \"lab:7655\", \"token\": \"" TOKEN "\"}", "\"collector\""},
        {"{\"collector\": \"tcp://lab:1\"}", "\"token\""},
        {"{\"collector\": \"tcp://lab:1\", \"token\": \"abc\"}", "\"token\""},
        {"{\"collector\": \"tcp://lab:1\", \"token\": \"" TOKEN "0\"}", "\"token\""},
        {"{\"collector\": \"tls+tcp://lab:1\", \"token\": \"" TOKEN "\"}", "\"certificate\""},
        {"{\"collector\": \"tls+tcp://lab:1\", \"token\": \"" TOKEN "\", \"certificate\": \"x\"}",
         "\"certificate\""}};
    expect_refusals(sj_invitation_check, mistakes, sizeof(mistakes) / sizeof(mistakes[0]));
    json_t *good =
        json_loads("{\"collector\": \"tcp://lab:1\", \"token\": \"" TOKEN "\"}", 0, NULL);
    sj_error error = {0};
    assert_int_equal(sj_invitation_check(good, &error), SJ_OK);
    json_decref(good);
}

static void names_and_tags_are_checked_and_kept(void **state)
{
    (void)state;
    sj_error error = {0};
    sj_device device;
    sj_enrolment_names names = {
        .name = "shelf 3", .tags = {"site=oslo", "a.b-c_d=1=2"}, .tag_count = 2};
    assert_int_equal(sj_enrolment_rename(&names, &error), SJ_ENOTFOUND);
    write_state("collector.json", "{\"collector\": \"tcp://lab:1\", \"token\": \"t\"}");
    assert_int_equal(sj_enrolment_rename(&names, &error), SJ_OK);
    assert_int_equal(sj_enrolment_device(&device, &error), SJ_OK);
    assert_string_equal(device.name, "shelf 3");
    assert_int_equal(device.tag_count, 2);
    assert_string_equal(device.tags[1], "a.b-c_d=1=2");
    static const char *const wrong[] = {"site", "=oslo", "a b=c", "a\"b=c", "k=\xff\xfe"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        names = (sj_enrolment_names){.tags = {wrong[i]}, .tag_count = 1};
        assert_int_not_equal(sj_enrolment_rename(&names, &error), SJ_OK);
    }
    names = (sj_enrolment_names){.name = ""};
    assert_int_equal(sj_enrolment_rename(&names, &error), SJ_EINVAL);
    names = (sj_enrolment_names){.tags = {"site="}, .tag_count = 1};
    assert_int_equal(sj_enrolment_rename(&names, &error), SJ_OK);
    assert_int_equal(sj_enrolment_device(&device, &error), SJ_OK);
    assert_int_equal(device.tag_count, 1);
    char path[512];
    struct stat about;
    assert_int_equal(sj_state_file_path("collector.json", path, sizeof(path), &error), SJ_OK);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
}

static void expect_collectors(const char *const *urls, size_t count)
{
    sj_enrolment enrolment;
    sj_error error = {0};
    assert_int_equal(sj_enrolment_load(&enrolment, &error), SJ_OK);
    assert_int_equal(enrolment.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(enrolment.collectors[i].url, urls[i]);
    }
    sj_enrolment_deinit(&enrolment);
}

static void collectors_are_kept_in_order_and_forgotten(void **state)
{
    (void)state;
    sj_error error = {0};
    sj_enrolment enrolment;
    write_state(
        "collector.json",
        "{\"collector\": \"tcp://a:1\", \"token\": \"ta\", \"certificate\": \"ca\", \"more\":"
        " [{\"collector\": \"tcp://b:1\", \"token\": \"tb\"},"
        " {\"collector\": \"tcp://c:1\", \"token\": \"tc\"}]}");
    expect_collectors((const char *const[]){"tcp://a:1", "tcp://b:1", "tcp://c:1"}, 3);
    assert_int_equal(sj_enrolment_forget("tcp://d:1", &error), SJ_ENOTFOUND);
    assert_int_equal(sj_enrolment_forget("tcp://b:1", &error), SJ_OK);
    assert_int_equal(sj_enrolment_forget("tcp://a:1", &error), SJ_OK);
    expect_collectors((const char *const[]){"tcp://c:1"}, 1);
    assert_int_equal(sj_enrolment_load(&enrolment, &error), SJ_OK);
    assert_string_equal(enrolment.collectors[0].token, "tc");
    assert_null(enrolment.collectors[0].certificate);
    sj_enrolment_deinit(&enrolment);
    assert_int_equal(sj_enrolment_forget("tcp://c:1", &error), SJ_EINVAL);
    write_state("collector.json", "{\"collector\": \"tcp://a:1\", \"token\": \"ta\", \"more\":"
                                  " [{\"collector\": \"tcp://b:1\"}]}");
    assert_int_equal(sj_enrolment_load(&enrolment, &error), SJ_ECORRUPT);
}

static void rules_of_the_collector_are_checked_as_a_whole(void **state)
{
    (void)state;
    static const char *const mistakes[][2] = {
        {"{}", "\"digest\""},
        {"{\"digest\": \"a\"}", "\"rules\""},
        {"{\"digest\": 1, \"rules\": []}", "\"digest\""},
        {"{\"digest\": \"a\", \"rules\": [{}]}", "rule 1"},
        {"{\"digest\": \"a\", \"rules\": [{\"app\": \"\"}]}", "rule 1 has no policy"},
        {"{\"digest\": \"a\", \"rules\": [{\"app\": \"\", \"policy\": {\"policy\": 1}},"
         " {\"app\": \"x\", \"policy\": {\"policy\": 1, \"mode\": \"trase\"}}]}",
         "rule 2"}};
    expect_refusals(sj_device_policies_check, mistakes, sizeof(mistakes) / sizeof(mistakes[0]));
}

static void the_first_rule_that_fits_holds(void **state)
{
    (void)state;
    sj_error error = {0};
    json_t *policy = NULL;
    char digest[SJ_POLICIES_DIGEST_BYTES];
    sj_device_policies_digest(0, digest);
    assert_string_equal(digest, "");
    assert_int_equal(sj_device_policies_find(0, "shop", &policy, &error), SJ_OK);
    assert_null(policy);
    json_t *rules = json_loads(
        "{\"digest\": \"d1\", \"rules\": [{\"app\": \"shop\", \"policy\": {\"policy\": 1,"
        " \"name\": \"first\"}}, {\"app\": \"\", \"policy\": {\"policy\": 1, \"name\": "
        "\"rest\"}}]}",
        0, NULL);
    assert_int_equal(sj_device_policies_keep(0, rules, &error), SJ_OK);
    json_decref(rules);
    sj_device_policies_digest(0, digest);
    assert_string_equal(digest, "d1");
    static const char *const asked[][2] = {{"shop", "first"}, {"mail", "rest"}, {NULL, "rest"}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sj_device_policies_find(0, asked[i][0], &policy, &error), SJ_OK);
        assert_string_equal(json_string_value(json_object_get(policy, "name")), asked[i][1]);
        json_decref(policy);
    }
    write_state("policies.json", "{\"digest\": ");
    sj_device_policies_digest(0, digest);
    assert_string_equal(digest, "?"); /* so the collector sends the policies again */
    assert_int_equal(sj_device_policies_find(0, "shop", &policy, &error), SJ_ECORRUPT);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(mistakes_in_the_catalogue_are_named),
        CASE(a_catalogue_is_read_again_and_its_path_is_reported),
        CASE(malformed_invitations_are_refused_without_a_request),
        CASE(names_and_tags_are_checked_and_kept),
        CASE(collectors_are_kept_in_order_and_forgotten),
        CASE(rules_of_the_collector_are_checked_as_a_whole),
        CASE(the_first_rule_that_fits_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
