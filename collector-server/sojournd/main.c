/* sojournd: the collector. */
#include "collector-server/cli/command.h"
#include "collector-server/fleet/certificate.h"
#include "collector-server/fleet/export_jobs.h"
#include "collector-server/fleet/fleet_service.h"
#include "collector-server/forward/clickhouse.h"
#include "collector-server/forward/forward_thread.h"
#include "collector-server/http/guard.h"
#include "collector-server/http/http.h"
#include "collector-server/http/question_worker.h"
#include "collector-server/ingest/ingest.h"
#include "collector-server/sojournd/database_watch.h"
#include "collector-server/sojournd/disk_watch.h"
#include "collector-server/sojournd/retainer.h"
#include "collector-server/store/store.h"
#include "proto/base/config_file.h"
#include "proto/base/log.h"
#include "proto/base/units.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    URLS_MAX = 16,
    RULES_MAX = 32,
    DEFAULT_RESERVE_BYTES = 256000000,
    DISK_LOOK_S = 2,
    DISK_TEXT_BYTES = 4500
};

static const char default_url[] = "tcp://127.0.0.1:7654";
static const char default_database[] = "lab.db";

typedef struct server_options {
    const char *urls[URLS_MAX];
    size_t url_count;
    const char *database;
    const char *http; /* ADDRESS:PORT of the dashboard; NULL: no dashboard */
    uint64_t max_bytes;
    uint64_t reserve_bytes; /* minimum of free disk space */
    sj_retention_rule rules[RULES_MAX];
    size_t rule_count;
    unsigned retain_period_s;
    unsigned lost_after_s;
    sj_quota quota;  /* quota of each device that has no quota of its own */
    const char *tls; /* directory of certificate.pem and key.pem; NULL: beside the database */
    bool is_open;    /* devices that never enrolled may send sessions */
    bool is_config_printed;     /* print the options as a configuration file, and end */
    sj_forward_options forward; /* forwards sessions, unless its `url` is NULL */
} server_options;

static void print_help(void)
{
    printf(
        "Usage: sojournd [OPTIONS]\n\n"
        "Collects the sessions of a collector's devices into one database, until SIGTERM or "
        "SIGINT;\n"
        "then stores what it has received and ends.\n\n"
        "Options:\n"
        "  --listen URL      the address that devices send to (repeatable; default %s)\n"
        "  --database FILE   the database, created if missing (default %s)\n"
        "  --http ADDR:PORT  serve the dashboard and the API to those who show the token in\n"
        "                    DATABASE.token; by HTTPS where ADDR is not a loopback address\n"
        "  --tls DIR         certificate.pem and key.pem for tls+tcp:// addresses and HTTPS;\n"
        "                    made if missing (default: DATABASE.tls)\n"
        "  --open            accept sessions of devices that have not enrolled\n"
        "  --max-bytes N     refuse sessions beyond this size of the database\n"
        "  --reserve-bytes N keep that much of the disk free: with less, recordings wait on their\n"
        "                    devices; below four times that, it warns (default 256 MB)\n"
        "  --retain RULE     remove sessions by age or size: all=30d, tag:nightly=50G\n"
        "                    (repeatable; pinned and annotated sessions are kept)\n"
        "  --retain-every S  seconds between two checks of the rules (default 60)\n"
        "  --lost-after TIME a session that sends nothing for this time ends as \"lost contact\";\n"
        "                    it continues if its device sends again (default 1d)\n"
        "  --quota-bytes N   store at most so much of each device a day (UTC); it keeps the rest\n"
        "                    until the next day (default: all)\n"
        "  --quota-sessions N  the same for new sessions; `sojourn device DEVICE quota` sets\n"
        "                    other quotas for a device\n"
        "  --forward URL     send the sums of ended sessions to a ClickHouse cluster of many\n"
        "                    labs (sojourn forward init makes its tables); single calls stay\n"
        "  --forward-db NAME, --forward-user NAME   there (default: sojourn, default)\n"
        "  --forward-password FILE   the first line is the password there\n"
        "  --forward-ca FILE certificates that https:// trusts (PEM)\n"
        "  --forward-tables NAME,...   only these tables, as call_paths,marks (default: all)\n"
        "  --config FILE     read options from a file, one a line: NAME = VALUE; an\n"
        "                    option of the command line overrides the file's\n"
        "  --print-config    print all options in that form, and end\n"
        "  --help            this text\n"
        "  --version         the version\n\n"
        "Examples:\n"
        "  sojournd --database lab.db --http 127.0.0.1:8440\n"
        "  sojournd --listen tls+tcp://0.0.0.0:7655 --http 0.0.0.0:8440 \\\n"
        "           --database /var/lib/sojourn/lab.db\n",
        default_url, default_database);
}

/* All arguments: lines of a configuration file, and the command line. */
static sj_config_file config;

static int usage_error(const char *problem, const char *argument)
{
    char place[PATH_MAX];
    sj_config_file_place(&config, optind - 1, place, sizeof(place));
    fprintf(stderr, "sojournd: %s%s: %s\nTry \"sojournd --help\".\n", place, argument, problem);
    return SJ_EXIT_USAGE;
}

static int parse_rule(server_options *options)
{
    sj_error error = {0};
    if (options->rule_count == RULES_MAX) {
        return usage_error("too many --retain", optarg);
    }
    if (sj_retention_rule_read(optarg, &options->rules[options->rule_count], &error) != SJ_OK) {
        return usage_error(error.text, "--retain");
    }
    ++options->rule_count;
    return -1;
}

/* Parses the argument of an option as bytes. Returns -1 to continue, else the exit code. */
static int read_bytes(uint64_t *bytes)
{
    return sj_size_parse(optarg, bytes) ? -1 : usage_error("not a size as 4096, 64k or 2G", optarg);
}

/* Parses the argument of an option as a whole number. Returns -1 to continue, else the exit code.
 */
static int read_count(uint64_t *count)
{
    char *end = NULL;
    errno = 0;
    *count = strtoull(optarg, &end, 10);
    const bool is_read =
        optarg[0] >= '0' && optarg[0] <= '9' && *end == '\0' && errno == 0 && *count <= INT64_MAX;
    return is_read ? -1 : usage_error("not a whole number", optarg);
}

/* Parses the argument of an option as a time, rounded to whole seconds, at least one. Returns -1 to
 * continue, else the exit code. */
static int read_seconds(unsigned *seconds)
{
    const uint64_t second_ns = 1000000000;
    uint64_t ns = 0;
    const bool is_read = sj_duration_parse(optarg, &ns) && ns >= second_ns / 2;
    *seconds = (unsigned)((ns + second_ns / 2) / second_ns);
    return is_read ? -1 : usage_error("not a time as 60, 10m or 1h", optarg);
}

/* Handles an option. Returns -1 to continue, else the exit code. */
static int parse_option(server_options *options, int option, const char *word)
{
    switch (option) {
    case 'l':
        if (options->url_count == URLS_MAX) {
            return usage_error("too many --listen", optarg);
        }
        options->urls[options->url_count++] = optarg;
        return -1;
    case 'd':
        options->database = optarg;
        return -1;
    case 'w':
        options->http = optarg;
        return -1;
    case 't':
        options->tls = optarg;
        return -1;
    case 'o':
        options->is_open = true;
        return -1;
    case 'm':
        return read_bytes(&options->max_bytes);
    case 'f':
        return read_bytes(&options->reserve_bytes);
    case 'r':
        return parse_rule(options);
    case 'e':
        return read_seconds(&options->retain_period_s);
    case 'L':
        return read_seconds(&options->lost_after_s);
    case 'q':
        return read_bytes(&options->quota.bytes);
    case 's':
        return read_count(&options->quota.sessions);
    case 'F':
        options->forward.url = optarg;
        return -1;
    case 'D':
        options->forward.database = optarg;
        return -1;
    case 'U':
        options->forward.user = optarg;
        return -1;
    case 'P':
        options->forward.password_file = optarg;
        return -1;
    case 'C':
        options->forward.ca_file = optarg;
        return -1;
    case 'T':
        options->forward.tables = optarg;
        return -1;
    case 'p':
        options->is_config_printed = true;
        return -1;
    case 'h':
        print_help();
        return SJ_EXIT_OK;
    case 'v':
        printf("sojournd %s\n", SJ_VERSION);
        return SJ_EXIT_OK;
    default:
        return usage_error(option == ':' ? "needs a value" : "unknown option", word);
    }
}

static const struct option long_options[] = {{"listen", required_argument, NULL, 'l'},
                                             {"database", required_argument, NULL, 'd'},
                                             {"http", required_argument, NULL, 'w'},
                                             {"max-bytes", required_argument, NULL, 'm'},
                                             {"reserve-bytes", required_argument, NULL, 'f'},
                                             {"retain", required_argument, NULL, 'r'},
                                             {"retain-every", required_argument, NULL, 'e'},
                                             {"lost-after", required_argument, NULL, 'L'},
                                             {"quota-bytes", required_argument, NULL, 'q'},
                                             {"quota-sessions", required_argument, NULL, 's'},
                                             {"tls", required_argument, NULL, 't'},
                                             {"open", no_argument, NULL, 'o'},
                                             {"forward", required_argument, NULL, 'F'},
                                             {"forward-db", required_argument, NULL, 'D'},
                                             {"forward-user", required_argument, NULL, 'U'},
                                             {"forward-password", required_argument, NULL, 'P'},
                                             {"forward-ca", required_argument, NULL, 'C'},
                                             {"forward-tables", required_argument, NULL, 'T'},
                                             {"config", required_argument, NULL, 'c'},
                                             {"print-config", no_argument, NULL, 'p'},
                                             {"help", no_argument, NULL, 'h'},
                                             {"version", no_argument, NULL, 'v'},
                                             {NULL, 0, NULL, 0}};

/* Parses the arguments, of which the first ones may be lines of a configuration file. Returns -1 to
 * continue, else the exit code. */
static int parse_options(server_options *options)
{
    int option;
    opterr = 0;
    while ((option = getopt_long(config.argc, config.argv, ":", long_options, NULL)) != -1) {
        const int code = parse_option(options, option, config.argv[optind - 1]);
        if (code >= 0) {
            return code;
        }
    }
    if (optind != config.argc) {
        return usage_error("unexpected argument", config.argv[optind]);
    }
    if (options->url_count == 0) {
        options->urls[options->url_count++] = default_url;
    }
    if (options->is_config_printed) {
        sj_config_file_print(&config, long_options, stdout);
        return SJ_EXIT_OK;
    }
    return -1;
}

/* The collector's certificate for devices and browsers, and its key. */
static struct {
    char certificate[SJ_PEM_MAX_BYTES];
    char key[SJ_PEM_MAX_BYTES];
} identity;

static sj_status load_identity(const server_options *options, sj_error *error)
{
    char directory[PATH_MAX];
    snprintf(directory, sizeof(directory), "%.4000s.tls", options->database);
    return sj_certificate_load(options->tls != NULL ? options->tls : directory,
                               identity.certificate, identity.key, error);
}

static void write_counter(FILE *text, const char *name, const char *help, uint64_t value)
{
    fprintf(text, "# HELP sojourn_%s %s\n# TYPE sojourn_%s counter\nsojourn_%s %llu\n", name, help,
            name, name, (unsigned long long)value);
}

static void write_gauge(FILE *text, const char *name, const char *help, double value)
{
    fprintf(text, "# HELP sojourn_%s %s\n# TYPE sojourn_%s gauge\nsojourn_%s %.6f\n", name, help,
            name, name, value);
}

/* Writes metrics of the delay between receiving and storing frames. */
static void write_lag_metrics(FILE *text, const sj_ingest_counters *counters)
{
    write_gauge(text, "refusing", "1: the last batch of frames was refused, and devices keep it.",
                counters->is_refusing);
    write_gauge(text, "ingest_lag_seconds",
                "Time from receipt to the answer, of the oldest frame of the last batch.",
                (double)counters->lag_ns / 1e9);
    write_gauge(text, "oldest_unacknowledged_seconds",
                "Age of the oldest frame that was received and is not stored; 0: none.",
                (double)counters->oldest_unacknowledged_ns / 1e9);
}

static void write_edge_metrics(FILE *text, const sj_edge_counters *edge)
{
    write_counter(text, "connections_total", "Connections accepted.", edge->accepted);
    write_counter(text, "connections_displaced_total",
                  "Connections without a device that made room for newer ones.", edge->displaced);
    write_counter(text, "connections_timed_out_total", "Connections that took too long.",
                  edge->timed_out);
    write_counter(text, "connections_broken_total", "Connections that did not speak the protocol.",
                  edge->broken);
    write_counter(text, "connections_slow_total", "Connections that did not read their answers.",
                  edge->slow);
}

/* Writes the ingest's counters. */
static void write_metrics(void *context, FILE *text)
{
    sj_ingest_counters counters;
    sj_ingest_get_counters(context, &counters);
    write_counter(text, "frames_total", "Frames received.", counters.frames);
    write_counter(text, "bytes_total", "Bytes received.", counters.bytes);
    write_counter(text, "commits_total", "Transactions committed.", counters.commits);
    write_counter(text, "ingested_calls_total", "Calls stored since the start.", counters.calls);
    write_counter(text, "duplicates_total", "Frames that had been stored before.",
                  counters.duplicates);
    write_counter(text, "refused_total", "Frames that could not be taken then.", counters.refused);
    write_counter(text, "rejected_total", "Frames that can never be taken.", counters.rejected);
    write_counter(text, "strangers_total", "Frames of connections without a valid token.",
                  counters.strangers);
    write_counter(text, "foreign_total", "Frames for sessions of another device.",
                  counters.foreign);
    write_counter(text, "unanswered_probes_total", "Times that an address did not answer.",
                  counters.unanswered_probes);
    write_lag_metrics(text, &counters);
    write_edge_metrics(text, &counters.edge);
    write_counter(text, "writer_cpu_seconds_total", "CPU time of the writer thread, rounded.",
                  counters.writer_cpu_ns / 1000000000);
}

/* Checks the database's file, also between batches. NULL until it is opened. */
static sj_database_watch *database_watch;

static sj_status check_ingest(void *context, sj_error *error)
{
    return sj_database_watch_check(database_watch, error) == SJ_OK ? sj_ingest_check(context, error)
                                                                   : SJ_EAGAIN;
}

/* Parses --http ADDRESS:PORT. */
static sj_status read_place(const char *place, char address[64], uint16_t *port_number,
                            sj_error *error)
{
    char *end = NULL;
    const char *colon = strrchr(place, ':');
    if (colon == NULL || colon == place || (size_t)(colon - place) >= 64) {
        return sj_fail(error, SJ_EINVAL, "--http %s: give ADDRESS:PORT, as in 127.0.0.1:8440",
                       place);
    }
    memcpy(address, place, (size_t)(colon - place));
    address[colon - place] = '\0';
    const unsigned long port = strtoul(colon + 1, &end, 10);
    if (colon[1] < '0' || colon[1] > '9' || *end != '\0' || port > UINT16_MAX) {
        return sj_fail(error, SJ_EINVAL, "--http %s: \"%s\" is not a port", place, colon + 1);
    }
    *port_number = (uint16_t)port;
    return SJ_OK;
}

/* Starts the dashboard at --http ADDRESS:PORT, if given. */
static sj_status start_http(const server_options *server, sj_ingest *ingest, sj_http **http,
                            sj_error *error)
{
    char address[64];
    uint16_t port = 0;
    if (server->http == NULL) {
        return SJ_OK;
    }
    SJ_TRY(read_place(server->http, address, &port, error));
    if (!sj_guard_address_is_loopback(address)) {
        SJ_TRY(load_identity(server, error));
    }
    char token_path[PATH_MAX];
    snprintf(token_path, sizeof(token_path), "%.4000s.token", server->database);
    const sj_http_options options = {.database_path = server->database,
                                     .token_path = token_path,
                                     .address = address,
                                     .port = port,
                                     .certificate = identity.certificate,
                                     .key = identity.key,
                                     .metrics_context = ingest,
                                     .write_metrics = write_metrics,
                                     .check = check_ingest};
    return sj_http_start(&options, http, error);
}

/* Logs once that the database's file was removed, replaced or overwritten. */
static void check_database(bool *is_said)
{
    sj_error error = {0};
    if (sj_database_watch_check(database_watch, &error) == SJ_OK) {
        *is_said = false;
    } else if (!*is_said) {
        sj_log(SJ_LOG_ERROR, "database", "%s", error.text);
        *is_said = true;
    }
}

static void wait_for_end(const server_options *options, const sj_http *http,
                         const sigset_t *signals)
{
    const struct timespec period = {.tv_sec = DISK_LOOK_S};
    sj_disk_watch disk = {.path = options->database, .reserve_bytes = options->reserve_bytes};
    char said[DISK_TEXT_BYTES];
    bool is_database_said = false;
    int signal_number = 0;
    for (size_t i = 0; i < options->url_count; i++) {
        sj_log(SJ_LOG_INFO, "listening", "collecting into %s at %s", options->database,
               options->urls[i]);
    }
    if (http != NULL) {
        sj_log(SJ_LOG_INFO, "serving", "dashboard at %s", sj_http_url(http));
    }
    do {
        if (sj_disk_watch_check(&disk, sj_disk_free_bytes(disk.path), said, sizeof(said))) {
            sj_log(disk.state == SJ_DISK_FREE ? SJ_LOG_INFO : SJ_LOG_WARN, "disk", "%s", said);
        }
        check_database(&is_database_said);
        signal_number = sigtimedwait(signals, NULL, &period);
    } while (signal_number < 0);
    sj_log(SJ_LOG_INFO, "ending", "%s: storing what was received",
           signal_number == SIGINT ? "interrupted" : "asked to end");
}

/* True if only users of this machine can reach an address. */
static bool is_local(const char *url)
{
    static const char *const starts[] = {"inproc://",  "ipc://",      "abstract://",
                                         "tcp://127.", "tcp://[::1]", "tcp://localhost:"};
    url += strncmp(url, "tls+", 4) == 0 ? 4 : 0;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        if (strncmp(url, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool needs_tls(const server_options *options)
{
    for (size_t i = 0; i < options->url_count; i++) {
        if (strncmp(options->urls[i], "tls+", 4) == 0) {
            return true;
        }
    }
    return false;
}

/* True unless all addresses are local, or --open was given. */
static bool requires_tokens(const server_options *options)
{
    for (size_t i = 0; i < options->url_count; i++) {
        if (!is_local(options->urls[i])) {
            return !options->is_open;
        }
    }
    return false;
}

typedef struct server {
    sj_store *store;
    sj_fleet_service *fleet;
    sj_ingest *ingest;
    sj_http *http;
    sj_retainer *retainer;
    sj_export_jobs *files;
    sj_forward_thread *forward;
} server;

static void log_complaint(void *context, const char *line)
{
    (void)context;
    sj_log(SJ_LOG_WARN, "dropped", "%s", line);
}

static sj_status start_ingest(server *components, const server_options *options, sj_error *error)
{
    sj_ingest_options ingest = {.urls = options->urls,
                                .url_count = options->url_count,
                                .gate = sj_fleet_service_gate(components->fleet),
                                .complain = log_complaint};
    if (needs_tls(options)) {
        SJ_TRY(load_identity(options, error));
        ingest.certificate = identity.certificate;
        ingest.key = identity.key;
    }
    return sj_ingest_start(components->store, &ingest, &components->ingest, error);
}

static sj_status start_components(server *components, const server_options *options,
                                  sj_error *error)
{
    const sj_store_options store = {.path = options->database,
                                    .create = true,
                                    .max_bytes = options->max_bytes,
                                    .reserve_bytes = options->reserve_bytes,
                                    .aggregates_delay_ms = SJ_AGGREGATES_DELAY_MS,
                                    .lost_after_s = options->lost_after_s,
                                    .quota = options->quota};
    const sj_fleet_service_options fleet = {.database = options->database,
                                            .requires_tokens = requires_tokens(options)};
    SJ_TRY(sj_store_open(&store, &components->store, error));
    SJ_TRY(sj_database_watch_open(options->database, &database_watch, error));
    SJ_TRY(sj_fleet_service_start(&fleet, &components->fleet, error));
    SJ_TRY(start_ingest(components, options, error));
    SJ_TRY(sj_retainer_start(options->database, options->rules, options->rule_count,
                             options->retain_period_s, &components->retainer, error));
    SJ_TRY(sj_export_jobs_start(options->database, &components->files, error));
    if (options->forward.url != NULL) {
        SJ_TRY(sj_forward_thread_start(options->database, &sj_forward_clickhouse, &options->forward,
                                       &components->forward, error));
    }
    return start_http(options, components->ingest, &components->http, error);
}

/* Writes "FILE:LINE: " if `value` comes from a line of the configuration file, else "". */
static void find_place(const char *value, char *place, size_t capacity)
{
    place[0] = '\0';
    for (int i = 1; i < config.argc; i++) {
        if (value >= config.argv[i] && value <= config.argv[i] + strlen(config.argv[i])) {
            sj_config_file_place(&config, i, place, capacity);
        }
    }
}

/* Reports why the server did not start, with the line of the configuration file whose value the
 * error names. Of several values in the error, it is the longest one, because an address can begin
 * with another one. Of equal addresses, the last one failed. */
static void report_start(const server_options *options, const sj_error *error)
{
    char place[PATH_MAX] = "";
    const char *named = "";
    const char *const others[] = {options->http, options->database, options->tls};
    for (size_t i = 0; i < options->url_count + 3; i++) {
        const char *value =
            i < options->url_count ? options->urls[i] : others[i - options->url_count];
        if (value != NULL && strlen(value) >= strlen(named) && strstr(error->text, value) != NULL) {
            named = value;
        }
    }
    find_place(named, place, sizeof(place));
    fprintf(stderr, "sojournd: %s%s\n", place, error->text);
}

static int serve(const server_options *options, const sigset_t *signals)
{
    server components = {0};
    sj_ingest_counters counters = {0};
    sj_error error = {0};
    const sj_status status = start_components(&components, options, &error);
    if (status == SJ_OK) {
        wait_for_end(options, components.http, signals);
    } else {
        report_start(options, &error);
    }
    sj_http_stop(components.http);
    sj_forward_thread_stop(components.forward);
    sj_export_jobs_stop(components.files);
    sj_retainer_stop(components.retainer);
    sj_fleet_service_stop(components.fleet);
    if (components.ingest != NULL) {
        sj_ingest_get_counters(components.ingest, &counters);
        sj_ingest_stop(components.ingest);
    }
    sj_fleet_service_free(components.fleet);
    sj_database_watch_close(database_watch);
    sj_store_close(components.store);
    if (status == SJ_OK) {
        sj_log(SJ_LOG_INFO, "ended", "%s, %s, %s, %llu rejected, %llu without a valid token",
               SJ_COUNTED(counters.frames, "frame"), SJ_COUNTED(counters.calls, "call"),
               SJ_COUNTED(counters.duplicates, "duplicate"), (unsigned long long)counters.rejected,
               (unsigned long long)counters.strangers);
    }
    return status == SJ_OK ? SJ_EXIT_OK : SJ_EXIT_FAILED;
}

/* Collects until a signal. Returns the exit code. */
static int run(const server_options *options)
{
    sigset_t signals;
    sj_log_open("sojournd");
    /* Blocked before any thread starts, so that only this thread handles these signals. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file at its size limit is handled like a full disk */
    /* Only the collector's user may read the files, whatever the shell's umask is. */
    umask(0077);
    return serve(options, &signals);
}

int main(int argc, char **argv)
{
    server_options options = {.database = default_database,
                              .retain_period_s = 60,
                              .lost_after_s = 86400,
                              .reserve_bytes = DEFAULT_RESERVE_BYTES};
    sj_error error = {0};
    sj_question_worker_main(argc, argv);
    const sj_status status = sj_config_file_read(argc, argv, long_options, &config, &error);
    if (status != SJ_OK) {
        fprintf(stderr, "sojournd: %s\n", error.text);
        sj_config_file_deinit(&config);
        return status == SJ_ENOMEM ? SJ_EXIT_FAILED : SJ_EXIT_USAGE;
    }
    int code = parse_options(&options);
    if (code < 0) {
        code = run(&options);
    }
    sj_config_file_deinit(&config);
    return code;
}
