/* `sojourn ui` as a process: its output, its pages, and its end. This program defines the three
 * functions that a command calls for its messages, so that the test sees their arguments. */
#include "collector-server/cli/command.h"
#include "collector-server/fleet/secret.h"
#include "tests/collector-server/http/fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

extern const sj_command sj_ui_command;
static char last_message[1024];

int sj_command_help(const sj_command *command, bool shows_all)
{
    (void)shows_all;
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

/* A process that runs `sojourn ui`. */
typedef struct running_ui {
    char path[64];
    char token[SJ_SECRET_TEXT_BYTES];
    const char *display; /* NULL: it does not open a browser */
    /* folder of the browser's command, and of the address that the browser got */
    const char *folder;
    pid_t child;
    unsigned port;
} running_ui;

static void show_display(const running_ui *ui)
{
    char text[PATH_MAX];
    setenv("DISPLAY", ui->display, 1);
    snprintf(text, sizeof(text), "%s:%s", ui->folder, getenv("PATH"));
    setenv("PATH", text, 1);
    snprintf(text, sizeof(text), "%s/told", ui->folder);
    setenv("UI_TOLD", text, 1);
}

static void start_ui(running_ui *ui)
{
    int output[2];
    char line[512] = "";
    assert_int_equal(pipe(output), 0);
    ui->child = fork();
    if (ui->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no server */
        dup2(output[1], STDOUT_FILENO);
        if (ui->display != NULL) {
            show_display(ui);
        }
        _exit(run_with(ui->display != NULL ? ui->path : "--no-open",
                       ui->display != NULL ? NULL : ui->path, NULL));
    }
    close(output[1]);
    assert_true(read(output[0], line, sizeof(line) - 1) > 0);
    assert_int_equal(
        sscanf(line, "http://127.0.0.1:%u/#token=%64[0-9a-f] shows", &ui->port, ui->token), 2);
    assert_int_equal(strlen(ui->token), SJ_SECRET_TEXT_BYTES - 1);
    close(output[0]);
}

static void end_ui(const running_ui *ui)
{
    int status = -1;
    kill(ui->child, SIGINT);
    assert_int_equal(waitpid(ui->child, &status, 0), ui->child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == SJ_EXIT_OK);
}

static void make_file(running_ui *ui)
{
    ui->display = NULL;
    snprintf(ui->path, sizeof(ui->path), "ui_command_test.%d.db", (int)getpid());
    sqlite3_close(fixture_create(ui->path, 0));
}

static char last_reply[2048]; /* the beginning of it */

/* Returns the status of the answer to a request. The request says "Connection: close". */
static int ask(const running_ui *ui, const char *request)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)ui->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    size_t size = 0;
    ssize_t got;
    int status = 0;
    send(fd, request, strlen(request), MSG_NOSIGNAL);
    while (size < sizeof(last_reply) - 1 &&
           (got = recv(fd, last_reply + size, sizeof(last_reply) - 1 - size, 0)) > 0) {
        size += (size_t)got;
    }
    last_reply[size] = '\0';
    assert_int_equal(sscanf(last_reply, "HTTP/1.1 %d", &status), 1);
    close(fd);
    return status;
}

static void ui_prints_its_address_serves_and_ends_with_ctrl_c(void **state)
{
    (void)state;
    running_ui ui;
    make_file(&ui);
    start_ui(&ui);
    assert_int_equal(ask(&ui, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"),
                     200);
    end_ui(&ui);
    unlink(ui.path);
}

/* The browser is a script. It notes the mode, the content and the path of the page that it opens.
 */
static void a_browser_opens_a_page_of_this_user_only(void **state)
{
    (void)state;
    static const char browser[] =
        "#!/bin/sh\n{ stat -c %a \"$1\"; cat \"$1\"; echo \"$1\"; } >\"$UI_TOLD\".part\n"
        "mv \"$UI_TOLD\".part \"$UI_TOLD\"\n";
    char folder[] = "ui_command_test.XXXXXX";
    char path[128];
    char told[512] = "";
    running_ui ui;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/xdg-open", folder);
    const int script = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
    assert_int_equal(write(script, browser, strlen(browser)), strlen(browser));
    close(script);
    make_file(&ui);
    ui.display = ":0";
    ui.folder = folder;
    start_ui(&ui);
    snprintf(path, sizeof(path), "%s/told", folder);
    int file;
    while ((file = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
        usleep(1000);
    }
    assert_true(read(file, told, sizeof(told) - 1) > 0);
    close(file);
    assert_memory_equal(told, "600\n", 4);
    assert_non_null(strstr(told, ui.token));
    char *page = strrchr(told, '/');
    assert_non_null(page);
    assert_non_null(strstr(page, ".ui-"));
    page[strcspn(page, "\n")] = '\0';
    assert_int_equal(access(page + 1, F_OK), 0);
    end_ui(&ui);
    assert_int_equal(access(page + 1, F_OK), -1);
    unlink(path);
    snprintf(path, sizeof(path), "%s/xdg-open", folder);
    unlink(path);
    rmdir(folder);
    unlink(ui.path);
}

static int pin(const running_ui *ui, const char *token)
{
    static const char body[] = "{\"sessions\": [\"1\"], \"do\": \"pin\"}";
    char request[512];
    snprintf(request, sizeof(request),
             "POST /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
             "Authorization: Bearer %s\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             token, strlen(body), body);
    return ask(ui, request);
}

static int health(const running_ui *ui, const char *header)
{
    char request[512];
    snprintf(request, sizeof(request),
             "GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s\r\n",
             header);
    return ask(ui, request);
}

static void only_requests_with_the_token_read_and_change_the_file(void **state)
{
    (void)state;
    running_ui ui;
    char first[SJ_SECRET_TEXT_BYTES];
    char header[128];
    make_file(&ui);
    start_ui(&ui);
    memcpy(first, ui.token, sizeof(first));
    snprintf(header, sizeof(header), "Authorization: Bearer %s\r\n", first);
    assert_int_equal(health(&ui, ""), 401);
    assert_int_equal(health(&ui, header), 200);
    assert_int_equal(pin(&ui, "guess"), 401);
    assert_non_null(strstr(last_reply, "sojourn ui")); /* the message names the right address */
    assert_int_equal(pin(&ui, first), 202);
    end_ui(&ui);
    start_ui(&ui);
    assert_string_not_equal(first, ui.token); /* the old token was for the first run only */
    assert_int_equal(health(&ui, header), 401);
    assert_int_equal(pin(&ui, first), 401);
    end_ui(&ui);
    unlink(ui.path);
}

static void the_collectors_token_is_refused(void **state)
{
    (void)state;
    static const char token[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    running_ui ui;
    make_file(&ui);
    char path[128];
    snprintf(path, sizeof(path), "%s.token", ui.path);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_int_equal(write(file, token, SJ_SECRET_TEXT_BYTES - 1), SJ_SECRET_TEXT_BYTES - 1);
    close(file);
    start_ui(&ui);
    assert_int_equal(pin(&ui, token), 401);
    end_ui(&ui);
    assert_int_equal(unlink(path), 0); /* the command left its file */
    unlink(ui.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_arguments_are_usage_errors),
        cmocka_unit_test(files_that_cannot_be_shown_are_reported_apart),
        cmocka_unit_test(ui_prints_its_address_serves_and_ends_with_ctrl_c),
        cmocka_unit_test(a_browser_opens_a_page_of_this_user_only),
        cmocka_unit_test(only_requests_with_the_token_read_and_change_the_file),
        cmocka_unit_test(the_collectors_token_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
