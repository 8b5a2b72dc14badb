/* Tests which hosts, origins and addresses belong to this server, and which tokens it accepts. */
#include "collector-server/http/guard.h"
#include "collector-server/http/login.h"
#include "tests/support/check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PORT = 42 };

static void only_loopback_hosts_with_the_own_port_are_allowed(void **state)
{
    static const struct {
        const char *name, *port;
        bool is_allowed;
    } hosts[] = {{"", NULL, false},
                 {"localhost", NULL, true},
                 {"LOCALHOST", ":42", true},
                 {"127.0.0.1", ":42", true},
                 {"[::1]", ":42", true},
                 {"[::1]", NULL, true},
                 {"::1", NULL, false},
                 {"localhost", ":43", false},
                 {"localhost", ":", false},
                 {"localhost", ":+42", false},
                 {"localhost", ":0000042", false},
                 {"localhost", ".example", false},
                 {"localhost", ":42.example", false},
                 {"127.0.0.1", ".example", false},
                 {"127.0.0.10", NULL, false},
                 {"example", ":42", false}};
    (void)state;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        char origin[64];
        snprintf(origin, sizeof(origin), "http://%s%s", hosts[i].name,
                 hosts[i].port != NULL ? hosts[i].port : "");
        if (sj_guard_host_allowed(strchr(origin, '/') + 2, PORT) != hosts[i].is_allowed ||
            sj_guard_origin_allowed(origin, PORT) != hosts[i].is_allowed) {
            fail_msg("%s", origin);
        }
    }
    assert_false(sj_guard_host_allowed(NULL, PORT));
    assert_false(sj_guard_origin_allowed(NULL, PORT));
    assert_false(sj_guard_origin_allowed("null", PORT));
    assert_false(sj_guard_origin_allowed("https://localhost", PORT));
}

static void an_origin_is_that_of_the_whole_host(void **state)
{
    (void)state;
    assert_true(sj_guard_origin_is_host("https://lab.example", "lab.example"));
    assert_true(sj_guard_origin_is_host("https://LAB.example:44", "lab.example:44"));
    assert_false(sj_guard_origin_is_host("https://lab.example.evil", "lab.example"));
    assert_false(sj_guard_origin_is_host("https://lab.example", "lab.example.evil"));
    assert_false(sj_guard_origin_is_host("https://lab.example:44", "lab.example"));
    assert_false(sj_guard_origin_is_host("http://lab.example", "lab.example"));
    assert_false(sj_guard_origin_is_host("https://", "lab.example"));
    assert_false(sj_guard_origin_is_host(NULL, "lab.example"));
    assert_false(sj_guard_origin_is_host("https://lab.example", NULL));
}

static void addresses_of_the_loopback_are_known(void **state)
{
    (void)state;
    assert_true(sj_guard_address_is_loopback("localhost"));
    assert_true(sj_guard_address_is_loopback("127.0.0.1"));
    assert_true(sj_guard_address_is_loopback("127.255.0.3"));
    assert_true(sj_guard_address_is_loopback("::1"));
    assert_false(sj_guard_address_is_loopback("128.0.0.1"));
    assert_false(sj_guard_address_is_loopback("0.0.0.0"));
    assert_false(sj_guard_address_is_loopback("::"));
    assert_false(sj_guard_address_is_loopback("lab.example"));
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* If other users may read or change a token's file, they know the token. */
static void a_token_is_the_owners_alone(void **state)
{
    static const mode_t modes[] = {0640, 0620, 0604, 0602, 0601, 0610, 0666};
    char folder[] = "/tmp/sj_login_XXXXXX";
    char path[64];
    char other[64];
    sj_login made = {0};
    sj_login login = {0};
    sj_error error = {0};
    struct stat about;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/token", folder);
    snprintf(other, sizeof(other), "%s/other", folder);
    assert_int_equal(sj_login_load(path, &made, &error), SJ_OK);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(sj_login_load(path, &login, &error), SJ_OK);
    assert_memory_equal(login.token_hash, made.token_hash, sizeof(made.token_hash));
    assert_string_equal(login.file, "token");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(sj_login_load(path, &login, &error), SJ_EPERM);
    }
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(sj_login_load(path, &login, &error), SJ_OK);
    assert_int_equal(symlink(path, other), 0);
    assert_int_equal(sj_login_load(other, &login, &error), SJ_EIO);
    assert_int_equal(unlink(other), 0);
    write_file(other, "short\n");
    assert_int_equal(chmod(other, 0600), 0);
    assert_int_equal(sj_login_load(other, &login, &error), SJ_EIO);
    unlink(other);
    unlink(path);
    rmdir(folder);
}

/* The test simulates a full disk by a process that may not write files. */
static void a_token_that_could_not_be_written_is_made_again(void **state)
{
    char folder[] = "/tmp/sj_login_XXXXXX";
    char path[64];
    sj_login login = {0};
    sj_error error = {0};
    struct rlimit before;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/token", folder);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    const sj_status status = sj_login_load(path, &login, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(status, SJ_EIO);
    assert_int_equal(sj_login_load(path, &login, &error), SJ_OK);
    unlink(path);
    rmdir(folder);
}

/* A link may open a page. Everything else is for the dashboard and the user only. */
static void other_sites_may_link_and_nothing_else(void **state)
{
    static const struct {
        const char *site, *mode, *destination;
        bool page, route; /* what the guard allows */
    } requests[] = {{NULL, NULL, NULL, true, true},
                    {"same-origin", "cors", "empty", true, true},
                    {"same-origin", "navigate", "document", true, true},
                    {"none", "navigate", "document", true, true},
                    {"cross-site", "navigate", "document", true, false},
                    {"same-site", "navigate", "document", true, false},
                    {"cross-site", "navigate", "iframe", false, false},
                    {"same-site", "navigate", "iframe", false, false},
                    {"cross-site", "navigate", NULL, false, false},
                    {"cross-site", "no-cors", "document", false, false},
                    {"cross-site", NULL, "document", false, false},
                    {"cross-site", "no-cors", "script", false, false},
                    {"same-site", "cors", "empty", false, false},
                    {"", "cors", "empty", false, false},
                    {"Same-Origin", "cors", "empty", false, false}};
    (void)state;
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        assert_int_equal(sj_guard_site_allowed(requests[i].site, requests[i].mode,
                                               requests[i].destination, true),
                         requests[i].page);
        assert_int_equal(sj_guard_site_allowed(requests[i].site, requests[i].mode,
                                               requests[i].destination, false),
                         requests[i].route);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_loopback_hosts_with_the_own_port_are_allowed),
        cmocka_unit_test(an_origin_is_that_of_the_whole_host),
        cmocka_unit_test(addresses_of_the_loopback_are_known),
        cmocka_unit_test(other_sites_may_link_and_nothing_else),
        cmocka_unit_test(a_token_is_the_owners_alone),
        cmocka_unit_test(a_token_that_could_not_be_written_is_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
