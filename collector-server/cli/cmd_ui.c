#include "collector-server/cli/cluster_database.h"
#include "collector-server/cli/cluster_options.h"
#include "collector-server/cli/command.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/query_command.h"

#include "collector-server/http/http.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
extern const sj_command sj_ui_command;

typedef struct ui_options {
    int64_t port; /* 0: any free port */
    bool no_open;
    const char *file;
    sj_forward_options cluster; /* url is NULL: show the database of one lab */
} ui_options;

enum { REFRESH_S = 3, ADDRESS_BYTES = 256, LOGIN_PAGE_BYTES = PATH_MAX + 32 };

static bool has_display(void)
{
    const char *display = getenv("DISPLAY");
    const char *wayland = getenv("WAYLAND_DISPLAY");
    return (display != NULL && display[0] != '\0') || (wayland != NULL && wayland[0] != '\0');
}

/* Starts a browser. Ignores a failure, because the address is on the screen. */
static void open_browser(const char *page)
{
    char *const argv[] = {"xdg-open", (char *)page, NULL};
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

static bool write_login_page(const char *base, const char *address, char path[LOGIN_PAGE_BYTES])
{
    static const char ending[] = ".html";
    snprintf(path, LOGIN_PAGE_BYTES, "%s.ui-XXXXXX%s", base, ending);
    const int page = mkostemps(path, (int)strlen(ending), O_CLOEXEC);
    if (page < 0) {
        return false;
    }
    const bool is_made = dprintf(page,
                                 "<!doctype html><title>Sojourn</title>"
                                 "<meta http-equiv=\"refresh\" content=\"0; url=%s\">\n",
                                 address) > 0;
    close(page);
    if (!is_made) {
        (void)!unlink(path);
    }
    return is_made;
}

/* Writes a page that only this user can read and that redirects to `address`. The browser is
 * started with the page instead of the address, because all users of the machine can read a command
 * line. The page is beside the database if it can be written there: some browsers cannot read
 * temporary files. Else the page is a temporary file. Writes the page's absolute path to `path`. */
static bool make_login_page(const char *file, const char *address, char path[LOGIN_PAGE_BYTES])
{
    char base[PATH_MAX];
    const char *folder = getenv("TMPDIR");
    if (realpath(file, base) != NULL && write_login_page(base, address, path)) {
        return true;
    }
    snprintf(base, sizeof(base), "%s/sojourn",
             folder != NULL && folder[0] == '/' ? folder : "/tmp");
    return write_login_page(base, address, path);
}

/* The thread that refreshes the mirror. It is separate so that Ctrl-C works while the cluster does
 * not respond. */
typedef struct ui_follower {
    sj_cluster_mirror *mirror;
    atomic_bool is_ending; /* also stops a refresh that is running */
    atomic_bool is_behind; /* a refresh is due or running */
    sem_t wanted;          /* posted when one of the two becomes true */
} ui_follower;

static void *refresh_mirror(void *context)
{
    ui_follower *follower = context;
    while (!atomic_load(&follower->is_ending)) {
        if (atomic_load(&follower->is_behind)) {
            sj_error ignored = {0}; /* the dashboard shows the error */
            (void)!sj_cluster_mirror_refresh(follower->mirror, &ignored);
            atomic_store(&follower->is_behind, false);
        }
        (void)sem_wait(&follower->wanted);
    }
    return NULL;
}

static sj_status wait_for_end(const sigset_t *wanted, ui_follower *follower, sj_error *error)
{
    const struct timespec pause = {.tv_sec = REFRESH_S};
    pthread_t thread;
    int received;
    if (follower == NULL) {
        sigwait(wanted, &received);
        return SJ_OK;
    }
    sem_init(&follower->wanted, 0, 0);
    const int code = pthread_create(&thread, NULL, refresh_mirror, follower);
    while (code == 0 && sigtimedwait(wanted, NULL, &pause) < 0) {
        if (!atomic_exchange(&follower->is_behind, true)) {
            sem_post(&follower->wanted);
        }
    }
    atomic_store(&follower->is_ending, true);
    if (code == 0) {
        sem_post(&follower->wanted);
        pthread_join(thread, NULL);
    }
    sem_destroy(&follower->wanted);
    return code == 0 ? SJ_OK : sj_fail(error, SJ_EIO, "cannot start a thread: %s", strerror(code));
}

/* Prints the address, opens a browser and waits for a signal. The token is in the address after
 * "#", because browsers do not send that part. */
static sj_status serve_until_end(const ui_options *options, const char *file, const char *title,
                                 const sj_http *server, const sigset_t *wanted,
                                 ui_follower *follower, sj_error *error)
{
    char address[ADDRESS_BYTES];
    char page[LOGIN_PAGE_BYTES];
    snprintf(address, sizeof(address), "%s#token=%s", sj_http_url(server), sj_http_token(server));
    printf("%s shows %s; Ctrl-C ends it.\n", address, title);
    fflush(stdout);
    const bool is_wanted = !options->no_open && has_display();
    const bool is_opened = is_wanted && make_login_page(file, address, page);
    if (is_opened) {
        open_browser(page);
    } else if (is_wanted) {
        fputs("sojourn ui: no browser was opened, because the page that leads it there cannot be "
              "written, neither beside the database nor in $TMPDIR; open the address above\n",
              stderr);
    }
    const sj_status status = wait_for_end(wanted, follower, error);
    if (is_opened) {
        (void)!unlink(page);
    }
    return status;
}

/* Serves a database until a signal comes. Prints `title` as the name of the database. */
static int serve(const ui_options *options, const char *file, const char *title,
                 ui_follower *follower)
{
    sj_cluster_mirror *mirror = follower != NULL ? follower->mirror : NULL;
    sj_error error;
    /* Block the signals before the server creates threads, so that only sigwait receives them. */
    sigset_t wanted;
    sigset_t before;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &wanted, &before);
    const sj_http_options http = {
        .database_path = file, .port = (uint16_t)options->port, .mirror = mirror};
    sj_http *server = NULL;
    sj_status status = sj_http_start(&http, &server, &error);
    if (status == SJ_OK) {
        status = serve_until_end(options, file, title, server, &wanted, follower, &error);
        sj_http_stop(server);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status == SJ_OK ? SJ_EXIT_OK : sj_command_failed(&sj_ui_command, &error);
}

static int show_cluster(const ui_options *options)
{
    ui_follower follower = {0};
    sj_forward_options cluster = options->cluster;
    sj_cluster_database database;
    sj_error error;
    cluster.stop = &follower.is_ending;
    if (sj_cluster_database_open(&cluster, &database, &error) != SJ_OK) {
        return sj_command_failed(&sj_ui_command, &error);
    }
    follower.mirror = database.mirror;
    const int code = serve(options, database.path, options->cluster.url, &follower);
    sj_cluster_database_close(&database);
    return code;
}

static int run_ui(int argc, char **argv)
{
    ui_options options = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_ui_command, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    const int file_code = sj_query_parse_file(&sj_ui_command, argc, argv, first, &options.file);
    if (file_code >= 0) {
        return file_code;
    }
    if (options.cluster.url != NULL) {
        return options.file == NULL
                   ? show_cluster(&options)
                   : sj_command_usage_error(&sj_ui_command, "give --cluster or FILE, not both");
    }
    char file[PATH_MAX];
    sj_error error;
    if (sj_database_path(options.file, file, &error) != SJ_OK) {
        return sj_command_failed(&sj_ui_command, &error);
    }
    return serve(&options, file, file, NULL);
}

static const sj_option ui_table[] = {
    SJ_DATABASE_OPTION(offsetof(ui_options, file)),
    {.name = "port",
     .argument = "N",
     .kind = SJ_ARG_NUMBER,
     .offset = offsetof(ui_options, port),
     .least = 0,
     .most = 65535,
     .letter = 'p',
     .help = "listen on port N (default: a free one)"},
    {.name = "no-open",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(ui_options, no_open),
     .letter = 'n',
     .help = "do not start a browser (none is started without a display)"},
    {.name = "cluster",
     .argument = "URL",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(ui_options, cluster.url),
     .help = "show the sessions of all labs that feed a ClickHouse cluster"},
    SJ_CLUSTER_OPTIONS(offsetof(ui_options, cluster)),
    SJ_CLUSTER_LIST_OPTION(offsetof(ui_options, cluster)),
    {0}};

const sj_command sj_ui_command = {
    .name = "ui",
    .summary = "show a recording in the browser",
    .usage = "sojourn ui [OPTIONS] [FILE]",
    .help =
        "Serves the dashboard for FILE, a database of `sojourn record` or of the collector,\n"
        "on 127.0.0.1 and prints its address. A running recording is shown live. The address\n"
        "holds a token that is valid until the command ends. Only with it can one read FILE, and\n"
        "change it by pins, tags, notes, removals and imports. Ends with Ctrl-C.\n"
        "With --cluster: shows what all labs sent to a cluster (sojourn forward). The sums of a\n"
        "session are fetched when a page needs them. Single calls stay in the labs.\n"
        "Without FILE: $SOJOURN_DATABASE, else the newest sojourn-*.db here.\n",
    .options = ui_table,
    .examples = "Examples:\n"
                "  sojourn ui\n"
                "  sojourn ui --port 8377 --no-open lab.db\n"
                "  sojourn ui --cluster http://127.0.0.1:8123\n"
                "  ssh -L 8377:127.0.0.1:8377 collector sojourn ui --port 8377 lab.db\n",
    .run = run_ui,
};
