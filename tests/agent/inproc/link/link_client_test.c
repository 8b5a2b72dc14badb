/* A child that was forked during a conversation leaves the replies to its parent. */
#include "agent/inproc/link/link_client.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/link_client_test.XXXXXX";
static int listener;
static int recorder; /* the recorder's end of the conversation */
static volatile pid_t child = -1;
static volatile int child_status = -1;

static int start(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)state;
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", folder);
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return listener >= 0 &&
                   bind(listener, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
                   listen(listener, 1) == 0
               ? 0
               : -1;
}

static int stop(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof(path), "%s/control", folder);
    return unlink(path) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static void begin(sj_link *link)
{
    assert_int_equal(sj_link_open(link, folder), SJ_OK);
    recorder = accept(listener, NULL, NULL);
    assert_true(recorder >= 0);
}

static void reply(void)
{
    const sj_link_packet packet = {.version = SJ_LINK_VERSION, .type = SJ_LINK_DONE};
    (void)!send(recorder, &packet, sizeof(packet), 0);
}

static void test_a_child_can_neither_send_nor_receive(void **state)
{
    sj_link link;
    int status = -1;
    (void)state;
    begin(&link);
    reply();
    const pid_t forked = fork();
    if (forked == 0) {
        _exit(sj_link_receive(&link) == SJ_ECLOSED &&
                      sj_link_send(&link, SJ_LINK_DONE, 0) == SJ_ECLOSED &&
                      sj_link_send_file(&link, SJ_LINK_DONE, 0, STDIN_FILENO) == SJ_ECLOSED
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_int_equal(status, 0);
    assert_int_equal(sj_link_receive(&link), SJ_OK);
    assert_int_equal(link.packet.type, SJ_LINK_DONE);
    sj_link_close(&link);
    close(recorder);
}

/* Sends a signal to the parent as soon as it sleeps, from a process of its own. */
static pid_t start_signaller(void)
{
    char path[64];
    char state = '?';
    const pid_t parent = getpid();
    const pid_t signaller = fork();
    if (signaller != 0) {
        return signaller;
    }
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)parent);
    while (state != 'S') {
        FILE *file = fopen(path, "re");
        if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) {
            _exit(1);
        }
        fclose(file);
    }
    _exit(kill(parent, SIGUSR1) == 0 ? 0 : 1);
}

/* The recorder replies when the child has ended. */
static void fork_in_handler(int signal)
{
    int status = -1;
    (void)signal;
    child = fork();
    if (child > 0) {
        child_status = waitpid(child, &status, 0) == child ? status : -1;
        reply();
    }
}

static void test_a_child_that_returns_from_a_handler_does_not_wait_for_the_reply(void **state)
{
    sj_link link;
    (void)state;
    begin(&link);
    const struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    const pid_t signaller = start_signaller();
    assert_true(signaller > 0);
    const sj_status status = sj_link_receive(&link);
    if (child == 0) {
        _exit(status == SJ_ECLOSED ? 0 : 1);
    }
    assert_int_equal(status, SJ_OK);
    assert_int_equal(child_status, 0);
    assert_int_equal(waitpid(signaller, NULL, 0), signaller);
    sj_link_close(&link);
    close(recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_child_can_neither_send_nor_receive),
        cmocka_unit_test(test_a_child_that_returns_from_a_handler_does_not_wait_for_the_reply),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
