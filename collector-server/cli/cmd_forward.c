#include "collector-server/cli/call_choice.h"
#include "collector-server/cli/cluster_options.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/forward/clickhouse.h"
#include "collector-server/forward/cluster_copy.h"
#include "collector-server/forward/forward_calls.h"
#include "collector-server/forward/forwarder.h"
#include "collector-server/query/session_set.h"
#include "collector-server/store/database.h"
#include "proto/base/units.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DAY_MS = 86400 * 1000, MOST_DAYS = 11574 /* sj_duration_parse accepts no more */ };

typedef struct forward_request {
    const char *database;
    const char *output;
    const char *session;
    sj_forward_window window;
    sj_forward_options cluster;
    sj_clickhouse_layout layout;
    int64_t retain_ms; /* 0: rows stay */
    bool as_json;
} forward_request;

/* Creates the tables on one node of the cluster. Appends the result to `done`, or prints the result
 * if `done` is NULL. */
static int init_node(const forward_request *request, const char *url, json_t *done)
{
    sj_forward_options options = request->cluster;
    sj_forward_target *target = NULL;
    sj_error error = {0};
    options.url = url;
    sj_status status = sj_forward_clickhouse.open(&options, &target, &error);
    if (status == SJ_OK) {
        status = sj_clickhouse_init(target, &request->layout, &error);
    }
    if (status == SJ_OK && request->retain_ms != 0) {
        status = sj_clickhouse_retain(target, (unsigned)(request->retain_ms / DAY_MS), &error);
    }
    sj_forward_clickhouse.close(target);
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_forward, &error);
    }
    if (done != NULL) {
        json_array_append_new(done, json_pack("{ss ss si}", "action", "init", "url", url,
                                              "tables_version", (int)SJ_CLICKHOUSE_SCHEMA));
        return SJ_EXIT_OK;
    }
    printf("%s has the tables of version %d\n", url, (int)SJ_CLICKHOUSE_SCHEMA);
    return SJ_EXIT_OK;
}

static int init_all(const forward_request *request, int count, char **urls)
{
    int failure_code = SJ_EXIT_OK;
    json_t *done = request->as_json ? json_array() : NULL;
    for (int i = 0; i < count; ++i) {
        const int code = init_node(request, urls[i], done);
        failure_code = code != SJ_EXIT_OK ? code : failure_code;
    }
    const int written = done != NULL ? sj_json_output(&sj_command_forward, done) : SJ_EXIT_OK;
    return failure_code != SJ_EXIT_OK ? failure_code : written;
}

static sj_status open_forwarder(forward_request *request, const char *url, sj_forwarder **forwarder,
                                sj_error *error)
{
    sqlite3 *reader = NULL;
    request->cluster.url = url;
    SJ_TRY(sj_database_choose(request->database, &reader, error));
    const sj_status status =
        sj_forwarder_open(sqlite3_db_filename(reader, "main"), &sj_forward_clickhouse,
                          &request->cluster, forwarder, error);
    sqlite3_close(reader);
    return status;
}

/* True if the failure concerns one session only, so that the next session can still be sent. */
static bool is_of_one_session(sj_status status)
{
    return status == SJ_ECORRUPT || status == SJ_EINVAL || status == SJ_EVERSION ||
           status == SJ_ENOMEM;
}

/* Sends all sessions. Skips sessions that cannot be sent; gives up after 100 of them, or when the
 * failure concerns all sessions. Returns the last failure. */
static sj_status send_all(sj_forwarder *forwarder, uint64_t *sent_count, sj_error *error)
{
    enum { MOST_FAILURES = 100 };
    sj_status failure_code = SJ_OK;
    sj_status status = SJ_OK;
    uint64_t sent = 0;
    unsigned failures = 0;
    do {
        sj_error why = {0};
        status = sj_forwarder_round(forwarder, &sent, &why);
        *sent_count += sent;
        if (status != SJ_OK) {
            failure_code = status;
            *error = why;
            failures++;
        }
    } while (status == SJ_OK ? sent != 0 : is_of_one_session(status) && failures < MOST_FAILURES);
    return failure_code;
}

/* A sender thread. It sends its share of the sessions. There are two, so that one reads rows while
 * the server processes the rows of the other. */
typedef struct sender {
    pthread_t thread;
    forward_request request;
    const char *url;
    uint64_t sent_count;
    sj_status status;
    sj_error error;
} sender;

static void *run_sender(void *held)
{
    sender *self = held;
    sj_forwarder *forwarder = NULL;
    self->status = open_forwarder(&self->request, self->url, &forwarder, &self->error);
    if (self->status == SJ_OK) {
        self->status = send_all(forwarder, &self->sent_count, &self->error);
        sj_forwarder_close(forwarder);
    }
    return NULL;
}

/* Returns the number of sessions to send, 0 if it is unknown or no progress is shown. */
static uint64_t count_owed(const forward_request *request, const char *url)
{
    forward_request request_copy = *request;
    sj_forwarder *forwarder = NULL;
    sj_forward_account account = {0};
    sj_error ignored;
    if (sj_progress_is_watched() &&
        open_forwarder(&request_copy, url, &forwarder, &ignored) == SJ_OK &&
        sj_forwarder_account(forwarder, &account, &ignored) != SJ_OK) {
        account.owed = 0;
    }
    sj_forwarder_close(forwarder);
    return account.owed;
}

/* Waits until a sender ends. Meanwhile shows the progress of all senders. */
static void join_sender(const sender *sender_to_join, sj_progress_work work,
                        _Atomic uint64_t *steps)
{
    enum { POLL_NS = 100000000, S_NS = 1000000000 };
    int result = ETIMEDOUT;
    while (result == ETIMEDOUT) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += POLL_NS;
        until.tv_sec += until.tv_nsec / S_NS;
        until.tv_nsec %= S_NS;
        result = pthread_timedjoin_np(sender_to_join->thread, NULL, &until);
        sj_progress_reach(work, atomic_load(steps));
    }
}

/* Warns if --tables is missing and earlier sessions were sent without some tables. The sent
 * sessions are the only record of the tables that the lab's owner does not send. */
static sj_status warn_of_tables(const forward_request *request, sj_forwarder *forwarder,
                                sj_error *error)
{
    char list[512];
    SJ_TRY(sj_forwarder_left_out(forwarder, list, sizeof(list), error));
    if (request->cluster.tables == NULL && list[0] != '\0') {
        fprintf(stderr,
                "sojourn forward: warning: sessions were given without the tables %s; without "
                "--tables, as the collector's --forward-tables, all are owed with all tables\n",
                list);
    }
    return SJ_OK;
}

/* Ignores errors, because the senders report them. */
static void warn_before_sending(const forward_request *request, const char *url)
{
    forward_request request_copy = *request;
    sj_forwarder *forwarder = NULL;
    sj_error ignored;
    if (open_forwarder(&request_copy, url, &forwarder, &ignored) == SJ_OK) {
        (void)!warn_of_tables(request, forwarder, &ignored);
    }
    sj_forwarder_close(forwarder);
}

static int send_owed(const forward_request *request, const char *url)
{
    /* Large batches, because ClickHouse then writes and merges fewer parts. */
    enum { SENDERS = 2, BATCH_BYTES = 64 << 20, STEPS_A_SESSION = 2 };
    sender senders[SENDERS];
    bool is_started[SENDERS];
    const sender *failed = NULL;
    uint64_t sent_count = 0;
    warn_before_sending(request, url);
    _Atomic uint64_t steps = 0;
    const sj_progress_work work = sj_progress_begin(STEPS_A_SESSION * count_owed(request, url));
    for (unsigned i = 0; i < SENDERS; ++i) {
        senders[i] = (sender){.request = *request, .url = url};
        senders[i].request.cluster.batch_bytes = BATCH_BYTES;
        senders[i].request.cluster.share = i;
        senders[i].request.cluster.shares = SENDERS;
        senders[i].request.cluster.steps = &steps;
        is_started[i] = pthread_create(&senders[i].thread, NULL, run_sender, &senders[i]) == 0;
    }
    for (unsigned i = 0; i < SENDERS; ++i) {
        if (is_started[i]) {
            join_sender(&senders[i], work, &steps);
        } else {
            run_sender(&senders[i]);
        }
        sent_count += senders[i].sent_count;
        failed = senders[i].status != SJ_OK && failed == NULL ? &senders[i] : failed;
    }
    sj_progress_end(work);
    if (request->as_json) {
        (void)sj_json_output(&sj_command_forward,
                             json_pack("{ss ss sI}", "action", "send", "url", url, "sessions",
                                       (json_int_t)sent_count));
    } else if (failed == NULL || sent_count != 0) {
        printf("%s %s sent to %s\n", SJ_COUNTED(sent_count, "session"),
               sent_count == 1 ? "was" : "were", url);
    }
    return failed == NULL ? SJ_EXIT_OK : sj_command_failed(&sj_command_forward, &failed->error);
}

static int show_status(forward_request *request, const char *url)
{
    sj_forwarder *forwarder = NULL;
    sj_forward_account account = {0};
    sj_error error = {0};
    char line[512];
    sj_status status = open_forwarder(request, url, &forwarder, &error);
    if (status == SJ_OK) {
        status = warn_of_tables(request, forwarder, &error);
    }
    if (status == SJ_OK) {
        status = sj_forwarder_account(forwarder, &account, &error);
    }
    if (status == SJ_OK) {
        status = sj_clickhouse_explain(sj_forwarder_target(forwarder), UINT64_MAX, line,
                                       sizeof(line), &error);
    }
    sj_forwarder_close(forwarder);
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_forward, &error);
    }
    if (request->as_json) {
        return sj_json_output(
            &sj_command_forward,
            json_pack("{ss ss sI sI sI sI sI ss ss}", "action", "status", "url", url, "sessions",
                      (json_int_t)account.forwarded, "rows", (json_int_t)account.rows, "bytes",
                      (json_int_t)account.bytes, "owed", (json_int_t)account.owed, "not_ready",
                      (json_int_t)account.unready, "lab", account.lab, "engine", line));
    }
    printf("%s there (%s, %s as sent), %llu owed, %llu not ready; this is lab %s\n%s\n",
           SJ_COUNTED(account.forwarded, "session"), SJ_COUNTED(account.rows, "row"),
           SJ_COUNTED(account.bytes, "byte"), (unsigned long long)account.owed,
           (unsigned long long)account.unready, account.lab, line);
    return SJ_EXIT_OK;
}

/* Writes the ids of the sessions in the sets to `chosen`, each once. Without sets, chooses the
 * newest session. Removes all other sessions from the copy. */
static sj_status choose_sessions(sqlite3 *copy, char **sets, int count, int64_t *chosen,
                                 size_t capacity, size_t *chosen_count, sj_error *error)
{
    static char *newest[] = {"last"};
    bool is_complete = true;
    for (int i = 0; i < (count != 0 ? count : 1); i++) {
        sj_session_set set = {0};
        SJ_TRY(sj_session_set_read(copy, count != 0 ? sets[i] : newest[0],
                                   SJ_SESSION_SET_MAX_SAMPLES, &set, error));
        for (size_t k = 0; k < set.count; k++) {
            bool is_new = true;
            for (size_t j = 0; j < *chosen_count && is_new; j++) {
                is_new = chosen[j] != set.samples[k].session_id;
            }
            is_complete &= !is_new || *chosen_count < capacity;
            if (is_new && *chosen_count < capacity) {
                chosen[(*chosen_count)++] = set.samples[k].session_id;
            }
        }
        sj_session_set_deinit(&set);
        if (!is_complete) {
            return sj_fail(error, SJ_ELIMIT,
                           "the sets have more than %zu sessions together; fetch them in parts",
                           capacity);
        }
    }
    return sj_cluster_copy_keep(copy, chosen, *chosen_count, error);
}

static sj_status fetch_sessions(sj_forward_target *target, sqlite3 *copy, char **sets, int count,
                                size_t *fetched, uint64_t *answered, sj_error *error)
{
    int64_t chosen[SJ_SESSION_SET_MAX_SAMPLES];
    size_t chosen_count = 0;
    SJ_TRY(sj_forward_clickhouse.check(target, error));
    SJ_TRY(sj_clickhouse_count_shards(target, answered, error));
    SJ_TRY(sj_cluster_copy_sessions(target, copy, NULL, error));
    SJ_TRY(choose_sessions(copy, sets, count, chosen, SJ_SESSION_SET_MAX_SAMPLES, &chosen_count,
                           error));
    sj_status status = SJ_OK;
    const sj_progress_work work = sj_progress_begin_list(chosen_count);
    for (*fetched = 0; *fetched < chosen_count && status == SJ_OK; (*fetched)++) {
        status = sj_cluster_copy_sums(target, copy, chosen[*fetched], error);
        sj_progress_step(work);
    }
    sj_progress_end(work);
    return status;
}

static sj_status warn_of_unknown(sqlite3 *copy, sj_error *error)
{
    int64_t unknown = 0;
    SJ_TRY(sj_cluster_copy_unknown(copy, &unknown, error));
    if (unknown != 0) {
        fprintf(stderr, "sojourn forward: warning: " SJ_CLUSTER_COPY_UNKNOWN "\n",
                (long long)unknown);
    }
    return SJ_OK;
}

/* Creates the output file and copies the sessions into it. Removes the file on a failure. */
static sj_status write_copy(const forward_request *request, sj_forward_target *target, char **sets,
                            int count, size_t *fetched, uint64_t *answered, sj_error *error)
{
    sqlite3 *copy = NULL;
    if (access(request->output, F_OK) == 0) {
        return sj_fail(error, SJ_EEXIST, "%s exists already; use another --output",
                       request->output);
    }
    sj_status status = sj_database_open(request->output, SJ_DATABASE_CREATE, &copy, error);
    if (status == SJ_OK) {
        status = fetch_sessions(target, copy, sets, count, fetched, answered, error);
    }
    if (status == SJ_OK) {
        status = warn_of_unknown(copy, error);
    }
    if (status == SJ_OK &&
        sqlite3_exec(copy, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK) {
        status = sj_fail(error, SJ_EIO, "cannot end the copy: %s", sqlite3_errmsg(copy));
    }
    sqlite3_close(copy);
    if (status != SJ_OK) {
        (void)unlink(request->output);
    }
    return status;
}

static int run_fetch(forward_request *request, const char *url, char **sets, int count)
{
    sj_forward_target *target = NULL;
    sj_error error = {0};
    char line[512];
    size_t fetched = 0;
    uint64_t answered = 0;
    request->cluster.url = url;
    sj_status status = sj_forward_clickhouse.open(&request->cluster, &target, &error);
    if (status == SJ_OK) {
        status = write_copy(request, target, sets, count, &fetched, &answered, &error);
    }
    if (status == SJ_OK) {
        status = sj_clickhouse_explain(target, answered, line, sizeof(line), &error);
    }
    if (status == SJ_OK && request->as_json) {
        (void)sj_json_output(&sj_command_forward,
                             json_pack("{ss ss sI so ss}", "action", "fetch", "url", url,
                                       "sessions", (json_int_t)fetched, "output",
                                       sj_json_clean_string(request->output), "engine", line));
    } else if (status == SJ_OK) {
        printf("%s, sums only -> %s\n%s\n", SJ_COUNTED(fetched, "session"), request->output, line);
    }
    sj_forward_clickhouse.close(target);
    return status == SJ_OK ? SJ_EXIT_OK : sj_command_failed(&sj_command_forward, &error);
}

static int send_calls(forward_request *request, const char *url)
{
    sqlite3 *database = NULL;
    sj_forward_target *target = NULL;
    sj_error error = {0};
    int64_t session_id = 0;
    uint64_t calls = 0;
    request->cluster.url = url;
    sj_status status = sj_database_choose(request->database, &database, &error);
    if (status == SJ_OK) {
        status = sj_session_choose(database, request->session, &session_id, &error);
    }
    if (status == SJ_OK) {
        status = sj_forward_clickhouse.open(&request->cluster, &target, &error);
    }
    if (status == SJ_OK) {
        status = sj_forward_calls_send(database, session_id, &request->window,
                                       &sj_forward_clickhouse, target, &calls, &error);
    }
    if (request->as_json) {
        (void)sj_json_output(&sj_command_forward,
                             json_pack("{ss ss sI sI}", "action", "calls", "url", url, "session_id",
                                       (json_int_t)session_id, "calls", (json_int_t)calls));
    } else if (status == SJ_OK || calls != 0) {
        printf("%s of session %lld %s sent to %s\n", SJ_COUNTED(calls, "call"),
               (long long)session_id, calls == 1 ? "was" : "were", url);
    }
    sj_forward_clickhouse.close(target);
    sqlite3_close(database);
    return status == SJ_OK ? SJ_EXIT_OK : sj_command_failed(&sj_command_forward, &error);
}

static int run_forward(int argc, char **argv)
{
    forward_request request = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_forward, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    sj_work_progress_start();
    const int count = argc - first - 1;
    const char *action = count >= 1 ? argv[first] : "";
    if (count >= 1 && strcmp(action, "init") == 0) {
        return init_all(&request, count, argv + first + 1);
    }
    if (count == 1 && strcmp(action, "send") == 0) {
        return send_owed(&request, argv[first + 1]);
    }
    if (count == 1 && strcmp(action, "status") == 0) {
        return show_status(&request, argv[first + 1]);
    }
    if (count >= 1 && strcmp(action, "fetch") == 0) {
        return request.output != NULL
                   ? run_fetch(&request, argv[first + 1], argv + first + 2, count - 1)
                   : sj_command_usage_error(&sj_command_forward, "fetch needs --output FILE");
    }
    if (count == 1 && strcmp(action, "calls") == 0) {
        return send_calls(&request, argv[first + 1]);
    }
    return sj_command_usage_error(
        &sj_command_forward,
        "give init URL..., send URL, calls URL, status URL or fetch URL [SET]...");
}

static const sj_option forward_options[] = {
    {.name = "database",
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(forward_request, database),
     .help = "the lab's database; else $SOJOURN_DATABASE or the newest sojourn-*.db here"},
    {.name = "session",
     .argument = "ID",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(forward_request, session),
     .help = "calls: a session_id, the beginning of a uuid, or `last` (default)"},
    {.name = "from",
     .argument = "TIME",
     .kind = SJ_ARG_PARSED,
     .parse = sj_moment_parse,
     .offset = offsetof(forward_request, window.from_ns),
     .help = "calls: entered from this time on, since the session's start: 1.5s, 20ms, 3us"},
    {.name = "to",
     .argument = "TIME",
     .kind = SJ_ARG_PARSED,
     .parse = sj_moment_parse,
     .offset = offsetof(forward_request, window.to_ns),
     .help = "calls: entered up to this time"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(forward_request, output),
     .help = "fetch: the new database"},
    SJ_CLUSTER_OPTIONS(offsetof(forward_request, cluster)),
    {.name = "tables",
     .argument = "NAME,...",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(forward_request, cluster.tables),
     .help = "send, status: only these tables, as `sojournd --forward-tables` (default: all)"},
    {.name = "shards",
     .argument = "NAME",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(forward_request, layout.cluster),
     .help = "init: the cluster as the servers' remote_servers names it (default: one node)"},
    {.name = "replicated",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(forward_request, layout.is_replicated),
     .help = "init: tables that replicas share, by the servers' macros shard and replica"},
    {.name = "retain",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(forward_request, retain_ms),
     .least = DAY_MS,
     .most = (int64_t)MOST_DAYS * DAY_MS,
     .help = "init: the nodes drop sessions older than this, such as 400d (default: never)"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(forward_request, as_json),
     .help = "as JSON"},
    {0}};

const sj_command sj_command_forward = {
    .name = "forward",
    .summary = "send a lab's sums to a ClickHouse cluster of many labs",
    .usage = "sojourn forward [OPTIONS] init URL... | send URL | calls URL | status URL |\n"
             "                         fetch URL [SET]...",
    .help = "init creates the tables on each node and may be repeated.\n"
            "send sends what the cluster lacks: ended and changed sessions, and removals. Single\n"
            "calls stay in the lab. `sojournd --forward URL` sends all the time.\n"
            "calls sends the single calls of a session or a window of it, and may be repeated.\n"
            "fetch creates a database with the sums of sessions of all labs, for report, tree,\n"
            "flame, diff, check and ui (SET as in `sojourn diff`, without marks; default last).\n",
    .options = forward_options,
    .examples =
        "Exit status: 0; 1 when it failed; 2 for wrong options; 3 without tables there.\n"
        "Examples:\n"
        "  sojourn forward init http://127.0.0.1:8123\n"
        "  sojourn forward --database lab.db send http://127.0.0.1:8123\n"
        "  sojourn forward -o builds.db fetch http://127.0.0.1:8123 tag:build=41 tag:build=42\n"
        "  sojourn diff tag:build=41 tag:build=42 builds.db\n"
        "  sojourn sql --cluster http://127.0.0.1:8123 \"SELECT count() FROM sessions\"\n",
    .run = run_forward,
};
