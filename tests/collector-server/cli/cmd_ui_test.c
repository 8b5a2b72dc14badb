/* `sojourn ui` as a process: what it prints, serves, and how it ends. The three functions that a
 * command calls for its messages are this program's own, so that what they are given can be seen.
 */
#include "collector-server/cli/command.h"
#include "tests/collector-server/http/fixture.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern const sj_command sj_ui_command;
static char last_message[1024];

int sj_command_help(const sj_command *command)
{
    snprintf(last_message, sizeof(last_message), "%s", command->examples);
    return SJ_EXIT_OK;
}

int sj_command_usage_error(const sj_command *command, const char *format, ...)
{
    va_list arguments;
    (void)command;
    va_start(arguments, format);
    vsnprintf(last_message, sizeof(last_message), format, arguments);
    va_end(arguments);
    return SJ_EXIT_USAGE;
}

int sj_command_error(const sj_command *command, int exit_code, const char *format, ...)
{
    va_list arguments;
    (void)command;
    va_start(arguments, format);
    vsnprintf(last_message, sizeof(last_message), format, arguments);
    va_end(arguments);
    return exit_code;
}

static int run_with(const char *first, const char *second, const char *third)
{
    char *argv[] = {"ui", (char *)first, (char *)second, (char *)third, NULL};
    int argc = 1;
    while (argc < 4 && argv[argc] != NULL) {
        argc++;
    }
    last_message[0] = '\0';
    return sj_ui_command.run(argc, argv);
}

static void wrong_arguments_are_usage_errors(void **state)
{
    (void)state;
    assert_int_equal(run_with("a.db", "b.db", NULL), SJ_EXIT_USAGE);
    assert_int_equal(run_with("--port", "65536", "a.db"), SJ_EXIT_USAGE);
    assert_int_equal(run_with("--port", "-1", "a.db"), SJ_EXIT_USAGE);
    assert_int_equal(run_with("--port", "80x", "a.db"), SJ_EXIT_USAGE);
    assert_non_null(strstr(last_message, "80x"));
    assert_int_equal(run_with("--nonsense", "a.db", NULL), SJ_EXIT_USAGE);
    assert_int_equal(run_with("--help", NULL, NULL), SJ_EXIT_OK);
    assert_non_null(strstr(last_message, "Examples:"));
}

static void files_that_cannot_be_shown_are_reported_apart(void **state)
{
    (void)state;
    assert_int_equal(run_with("--no-open", "no_such_file.db", NULL), SJ_EXIT_NOT_FOUND);
    assert_non_null(strstr(last_message, "no_such_file.db"));
    assert_int_equal(run_with("--no-open", "CMakeCache.txt", NULL), SJ_EXIT_FAILED);
    assert_non_null(strstr(last_message, "not a Sojourn database"));
}

static void it_prints_its_address_serves_and_ends_with_ctrl_c(void **state)
{
    (void)state;
    char path[64];
    int output[2];
    snprintf(path, sizeof(path), "ui_command_test.%d.db", (int)getpid());
    sqlite3_close(fixture_create(path, 0));
    assert_int_equal(pipe(output), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(output[1], STDOUT_FILENO);
        _exit(run_with("--no-open", path, NULL));
    }
    close(output[1]);
    char line[256] = "";
    assert_true(read(output[0], line, sizeof(line) - 1) > 0);
    unsigned port = 0;
    assert_int_equal(sscanf(line, "http://127.0.0.1:%u/ shows", &port), 1);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    static const char request[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    char answer[32] = "";
    send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL);
    assert_true(recv(fd, answer, sizeof(answer) - 1, 0) > 12);
    assert_int_equal(strncmp(answer, "HTTP/1.1 200", 12), 0);
    kill(child, SIGINT);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == SJ_EXIT_OK);
    close(fd);
    close(output[0]);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_arguments_are_usage_errors),
        cmocka_unit_test(files_that_cannot_be_shown_are_reported_apart),
        cmocka_unit_test(it_prints_its_address_serves_and_ends_with_ctrl_c),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
