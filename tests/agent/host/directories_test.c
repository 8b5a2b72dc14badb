/* Tests that runtime directories lie where no other user can have created a file first. */
#include "agent/host/directories.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char own[64];

/* Returns a user id without an account. It is unique, so that tests that run at once do not share
 * the folder of that user. */
static uid_t another_user(void)
{
    return 200000 + (uid_t)getpid();
}

static int set_up(void **state)
{
    (void)state;
    snprintf(own, sizeof(own), "/tmp/directories_test.%d", (int)getpid());
    return mkdir(own, 0700) != 0 || setenv("XDG_RUNTIME_DIR", own, 1) != 0;
}

static int tear_down(void **state)
{
    (void)state;
    return rmdir(own);
}

static bool is_used(void)
{
    char path[256];
    sj_error error = {0};
    assert_int_equal(sj_runtime_root(path, sizeof(path), &error), SJ_OK);
    return strncmp(path, own, strlen(own)) == 0;
}

static void the_users_own_directory_is_used(void **state)
{
    (void)state;
    assert_true(is_used());
}

static void a_directory_that_others_may_write_to_is_not_used(void **state)
{
    (void)state;
    assert_int_equal(chmod(own, 0777), 0);
    assert_false(is_used());
    assert_int_equal(chmod(own, 0770), 0);
    assert_false(is_used());
}

static void a_directory_of_another_user_is_not_used(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip(); /* chown needs root */
    }
    assert_int_equal(chown(own, another_user(), (gid_t)-1), 0);
    assert_false(is_used());
}

static void a_link_to_the_directory_is_not_used(void **state)
{
    (void)state;
    char link[80];
    snprintf(link, sizeof(link), "%s.link", own);
    assert_int_equal(symlink(own, link), 0);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", link, 1), 0);
    assert_false(is_used());
    assert_int_equal(unlink(link), 0);
}

static void a_sessions_directory_is_for_its_user_only(void **state)
{
    (void)state;
    sj_session_id session = {{7}};
    char path[256];
    char parent[128];
    struct stat about;
    sj_error error = {0};
    umask(0);
    assert_int_equal(sj_runtime_directory_make(&session, path, sizeof(path), &error), SJ_OK);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    snprintf(parent, sizeof(parent), "%s/sojourn", own);
    assert_int_equal(stat(parent, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(parent), 0);
}

/* True if `user`, with HOME=`home`, gets a state directory whose path begins with `expected`. */
static bool other_state_is_in(uid_t user, const char *home, const char *expected)
{
    const pid_t child = fork();
    int status = -1;
    if (child == 0) {
        char path[256] = "";
        sj_error error = {0};
        bool fits = setresuid(user, user, user) == 0 && setenv("HOME", home, 1) == 0 &&
                    unsetenv("XDG_STATE_HOME") == 0 &&
                    sj_state_directory("x", path, sizeof(path), &error) == SJ_OK &&
                    strncmp(path, expected, strlen(expected)) == 0;
        _exit(fits ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status == 0;
}

/* Removes the empty state folders in `home`. */
static void remove_state(const char *home)
{
    static const char *const names[] = {"/.local/state/sojourn/x", "/.local/state/sojourn",
                                        "/.local/state", "/.local"};
    char made[128];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(made, sizeof(made), "%s%s", home, names[i]);
        (void)rmdir(made);
    }
}

static void the_home_of_another_user_is_left_alone(void **state)
{
    (void)state;
    const uid_t user = another_user();
    char fallback[64];
    if (geteuid() != 0) {
        skip(); /* setresuid needs root */
    }
    snprintf(fallback, sizeof(fallback), "/var/tmp/sojourn-%u", (unsigned)user);
    assert_true(other_state_is_in(user, own, fallback));
    remove_state(fallback);
    assert_int_equal(rmdir(fallback), 0);
    assert_int_equal(chown(own, user, (gid_t)-1), 0);
    assert_true(other_state_is_in(user, own, own));
    remove_state(own);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(the_users_own_directory_is_used),
        CASE(a_directory_that_others_may_write_to_is_not_used),
        CASE(a_directory_of_another_user_is_not_used),
        CASE(a_link_to_the_directory_is_not_used),
        CASE(the_home_of_another_user_is_left_alone),
        CASE(a_sessions_directory_is_for_its_user_only),
    };
    return cmocka_run_group_tests_name("host.directories", tests, NULL, NULL);
}
