#include "collector-server/cli/command.h"

#include "collector-server/http/http.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;
extern const sj_command sj_ui_command;

typedef struct ui_options {
    const char *file;
    uint16_t port;
    bool open_browser;
    bool help;
} ui_options;

static bool parse_port(const char *text, uint16_t *port)
{
    char *end = NULL;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value > UINT16_MAX) {
        return false;
    }
    *port = (uint16_t)value;
    return true;
}

/* SJ_EXIT_OK, or the exit code of an error that was printed. */
static int parse_options(int argc, char **argv, ui_options *options)
{
    static const struct option long_options[] = {{"port", required_argument, NULL, 'p'},
                                                 {"no-open", no_argument, NULL, 'n'},
                                                 {"help", no_argument, NULL, 'h'},
                                                 {NULL, 0, NULL, 0}};
    *options = (ui_options){.open_browser = true};
    optind = 0;
    opterr = 0;
    int option;
    while ((option = getopt_long(argc, argv, "p:nh", long_options, NULL)) != -1) {
        if (option == 'h') {
            options->help = true;
            return SJ_EXIT_OK;
        }
        if (option == 'n') {
            options->open_browser = false;
        } else if (option == '?') {
            return sj_command_usage_error(&sj_ui_command, "wrong option '%s'", argv[optind - 1]);
        } else if (!parse_port(optarg, &options->port)) {
            return sj_command_usage_error(&sj_ui_command, "'%s' is no port (0 to 65535)", optarg);
        }
    }
    if (argc - optind != 1) {
        return sj_command_usage_error(&sj_ui_command,
                                      argc == optind ? "which file?" : "one file at a time");
    }
    options->file = argv[optind];
    return SJ_EXIT_OK;
}

/* A browser that does not come is no failure: the URL is on the screen. */
static void open_browser(const char *url)
{
    const char *display = getenv("DISPLAY");
    const char *wayland = getenv("WAYLAND_DISPLAY");
    const bool has_display =
        (display != NULL && display[0] != '\0') || (wayland != NULL && wayland[0] != '\0');
    if (!has_display) {
        return;
    }
    char *const argv[] = {"xdg-open", (char *)url, NULL};
    posix_spawn_file_actions_t quiet;
    pid_t child;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnp(&child, argv[0], &quiet, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&quiet);
}

static int exit_code_of(sj_status status)
{
    return status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED;
}

static int run(int argc, char **argv)
{
    ui_options options;
    const int parsed = parse_options(argc, argv, &options);
    if (parsed != SJ_EXIT_OK) {
        return parsed;
    }
    if (options.help) {
        return sj_command_help(&sj_ui_command);
    }
    /* Blocked before the server's threads are made, so that only sigwait gets them. */
    sigset_t wanted;
    sigset_t before;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &wanted, &before);
    const sj_http_options http = {.database_path = options.file, .port = options.port};
    sj_http *server = NULL;
    sj_error error;
    const sj_status status = sj_http_start(&http, &server, &error);
    if (status != SJ_OK) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return sj_command_error(&sj_ui_command, exit_code_of(status), "%s", error.text);
    }
    printf("%s shows %s; Ctrl-C ends it.\n", sj_http_url(server), options.file);
    fflush(stdout);
    if (options.open_browser) {
        open_browser(sj_http_url(server));
    }
    int received;
    sigwait(&wanted, &received);
    sj_http_stop(server);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return SJ_EXIT_OK;
}

const sj_command sj_ui_command = {
    .name = "ui",
    .summary = "show a recording in the browser",
    .usage = "sojourn ui [--port N] [--no-open] FILE",
    .help = "Serves the dashboard for FILE, a database of `sojourn record` or of the lab server,\n"
            "on 127.0.0.1 and prints its address. A recording that is still being made is shown\n"
            "live. Nothing is written to FILE. Ends with Ctrl-C.\n"
            "\n"
            "  --port N     listen on port N (default: one that is free)\n"
            "  --no-open    do not start a browser (none is started without a display)\n"
            "  --help       this text\n"
            "\n"
            "Examples:\n"
            "  sojourn ui run.sojourn\n"
            "  sojourn ui --port 8377 --no-open lab.db\n"
            "  ssh -L 8377:127.0.0.1:8377 lab sojourn ui --port 8377 lab.db\n",
    .run = run,
};
