#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/cli/device_request.h"
#include "collector-server/cli/output_file.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/fleet/audit.h"
#include "collector-server/fleet/certificate.h"
#include "collector-server/fleet/control.h"
#include "collector-server/fleet/export_jobs.h"
#include "collector-server/fleet/fleet_commands.h"
#include "collector-server/fleet/fleet_devices.h"
#include "collector-server/store/sql.h"
#include "schema/queries/cli/device.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_HOURS = 24, LOOK_MS = 50, COPY_BYTES = 1 << 16, AUDITED_BYTES = 4096 };

/* Adds an entry to the audit log: the action, the devices, the request in `what`, and the
 * outcome. */
static void audit(sj_fleet *fleet, const char *action, const char *devices, const char *what,
                  const char *outcome)
{
    char object[AUDITED_BYTES];
    snprintf(object, sizeof(object), "%s %s", devices, what);
    sj_audit_add_local(sj_fleet_database(fleet), action, object, outcome);
}

static const char *user_name(void)
{
    const struct passwd *user = getpwuid(geteuid());
    return user != NULL ? user->pw_name : "?";
}

/* Writes the token and what else the device needs to the new file `path`. The token is secret, so
 * the file gets the mode 0600. */
static sj_status write_invitation(sj_fleet *fleet, const sj_device_options *options,
                                  const char *path, int64_t for_device, const char *certificate,
                                  sj_error *error)
{
    char token[SJ_SECRET_TEXT_BYTES];
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) {
        return sj_fail(error, SJ_EIO, "%s: %s", path, strerror(errno));
    }
    sj_status status = sj_fleet_invite(fleet, (unsigned)options->hours, for_device, token, error);
    if (status == SJ_OK) {
        json_t *object = json_pack("{ss ss ss}", "collector", options->collector, "token", token,
                                   "certificate", certificate);
        if (object == NULL || json_dumpfd(object, file, JSON_INDENT(2)) != 0) {
            status = sj_fail(error, SJ_EIO, "cannot write %s", path);
        }
        json_decref(object);
    }
    close(file);
    if (status != SJ_OK) {
        unlink(path);
    }
    return status;
}

/* Makes the invitation of a device: the collector's URL, a token and the certificate. */
static sj_status make_invitation(sj_fleet *fleet, const sj_device_options *options,
                                 const char *path, const char *device, sj_error *error)
{
    int64_t for_device = 0;
    char certificate[SJ_PEM_MAX_BYTES] = "";
    char usual[PATH_MAX];
    snprintf(usual, sizeof(usual), "%.4000s.tls/certificate.pem", options->database);
    if (strncmp(options->collector, "tls+", 4) == 0) {
        SJ_TRY(
            sj_certificate_read(options->tls != NULL ? options->tls : usual, certificate, error));
    }
    if (device != NULL) {
        SJ_TRY(sj_fleet_find_device(fleet, device, &for_device, error));
    }
    return write_invitation(fleet, options, path, for_device, certificate, error);
}

static int invite_device(sj_fleet *fleet, const sj_device_options *options, const char *path,
                         const char *device)
{
    sj_error error = {0};
    if (options->collector == NULL || path == NULL) {
        return sj_command_usage_error(&sj_command_device,
                                      "invite needs --collector URL and the FILE to write");
    }
    const sj_status status = make_invitation(fleet, options, path, device, &error);
    audit(fleet, "device", device != NULL ? device : "a new device", "invite",
          status == SJ_OK ? "done" : error.text);
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_device, &error);
    }
    printf("%s enrols one device within %lld hours; copy it to the device in a safe way, and run "
           "there\n"
           "  sojourn-device enroll --token-file FILE\n",
           path, (long long)options->hours);
    return SJ_EXIT_OK;
}

/* Waits until a command has ended. If `*done`, `*result` is the device's JSON; else it is a string
 * with the state and the reason. The caller releases `*result`. */
typedef struct command_end {
    bool is_done, has_ended;
    json_t *result;
} command_end;

static sj_status read_end(void *context, sqlite3_stmt *row)
{
    command_end *end = context;
    const char *state = (const char *)sqlite3_column_text(row, 0);
    const char *text = (const char *)sqlite3_column_text(row, 1);
    end->has_ended = true;
    end->is_done = strcmp(state, "done") == 0;
    end->result = end->is_done ? json_loads(text, JSON_DECODE_ANY, NULL)
                               : json_sprintf("%s: %s", state, text);
    return SJ_OK;
}

static sj_status wait_for_result(sj_fleet *fleet, int64_t command_id, bool *done, json_t **result,
                                 sj_error *error)
{
    static const char sql[] = "SELECT state, result FROM commands WHERE command_id = ?1"
                              " AND state NOT IN ('preparing', 'queued', 'sent')";
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    command_end end = {.has_ended = false};
    for (;;) {
        SJ_TRY(sj_sql_each(sj_fleet_database(fleet), sql, SJ_SQL_INTS(command_id), read_end, &end,
                           error));
        if (end.has_ended) {
            break;
        }
        nanosleep(&pause, NULL);
        /* The server usually expires commands. A command must also end if no server runs. */
        (void)!sj_fleet_expire(fleet, error);
    }
    *done = end.is_done;
    *result = end.result;
    return *result != NULL ? SJ_OK
                           : sj_fail(error, SJ_EIO, "the command's result is not valid JSON");
}

static void print_json(const json_t *value)
{
    char *text = json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY);
    puts(text != NULL ? text : "null");
    free(text);
}

/* Copies bytes until the end of `from`. Returns false with errno set if a read or write fails. */
static bool copy_bytes(FILE *from, FILE *to)
{
    char bytes[COPY_BYTES];
    size_t got;
    while ((got = fread(bytes, 1, sizeof(bytes), from)) != 0) {
        if (fwrite(bytes, 1, got, to) != got) {
            return false;
        }
    }
    return ferror(from) == 0 && fflush(to) == 0;
}

/* Copies the file of a finished export to the chosen output. */
static int write_file(const sj_device_options *options, int64_t command_id)
{
    char path[PATH_MAX];
    sj_output_file output;
    sj_command_file_path(options->database, (uint64_t)command_id, path, sizeof(path));
    FILE *from = fopen(path, "re");
    if (from == NULL) {
        return sj_command_error(&sj_command_device, SJ_EXIT_FAILED, "cannot read the export %s: %s",
                                path, strerror(errno));
    }
    int code = sj_output_file_open(&sj_command_device, options->output, &output);
    if (code == SJ_EXIT_OK) {
        if (!copy_bytes(from, output.file)) {
            code = sj_command_error(&sj_command_device, SJ_EXIT_FAILED,
                                    "cannot copy the export: %s", strerror(errno));
        }
        code = sj_output_file_close(&sj_command_device, &output, code);
    }
    fclose(from);
    return code;
}

/* Completes an export whose first command has ended with the result `made`. Without a next command,
 * copies the file to the chosen output. The next command writes the file on the device: waits for
 * that command and prints its result. */
static int finish_export(sj_fleet *fleet, const sj_device_options *options, int64_t command_id,
                         const json_t *made)
{
    sj_error error = {0};
    bool done = false;
    json_t *result = NULL;
    const json_t *next = json_object_get(made, "next_command");
    if (next == NULL) {
        return write_file(options, command_id);
    }
    if (wait_for_result(fleet, json_integer_value(next), &done, &result, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_device, &error);
    }
    int code = SJ_EXIT_OK;
    if (done) {
        print_json(result);
    } else {
        code =
            sj_command_error(&sj_command_device, SJ_EXIT_FAILED, "%s", json_string_value(result));
    }
    json_decref(result);
    return code;
}

/* Completes the export of a recording. Prints the recording's result only with --output, because
 * the file may otherwise go to standard output. */
static int finish_record(sj_fleet *fleet, const sj_device_options *options, int64_t command_id,
                         const json_t *made)
{
    if (options->output != NULL) {
        print_json(made);
    }
    return finish_export(fleet, options, command_id, made);
}

/* Waits for one command. Prints its result, and writes the file of an export or a recording. */
static int wait_for_one(sj_fleet *fleet, const sj_device_options *options, const char *kind,
                        const json_t *given)
{
    sj_error error = {0};
    bool done = false;
    json_t *result = NULL;
    const int64_t command_id = json_integer_value(json_object_get(given, "command"));
    if (wait_for_result(fleet, command_id, &done, &result, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_device, &error);
    }
    int code = SJ_EXIT_OK;
    if (!done) {
        code =
            sj_command_error(&sj_command_device, SJ_EXIT_FAILED, "%s", json_string_value(result));
    } else if (strcmp(kind, "export") == 0) {
        code = finish_export(fleet, options, command_id, result);
    } else if (strcmp(kind, "record") == 0) {
        code = finish_record(fleet, options, command_id, result);
    } else {
        print_json(result);
    }
    json_decref(result);
    return code;
}

/* Waits for the commands of several devices and prints the list of their results. Returns
 * SJ_EXIT_FAILED if a command failed. */
static int wait_for_all(sj_fleet *fleet, json_t *given)
{
    sj_error error = {0};
    size_t index;
    json_t *one;
    int code = SJ_EXIT_OK;
    json_array_foreach(given, index, one)
    {
        bool done = false;
        json_t *result = NULL;
        const int64_t command_id = json_integer_value(json_object_get(one, "command"));
        if (wait_for_result(fleet, command_id, &done, &result, &error) != SJ_OK) {
            return sj_command_failed(&sj_command_device, &error);
        }
        json_object_set_new(one, done ? "result" : "failed", result);
        code = done ? code : SJ_EXIT_FAILED;
    }
    print_json(given);
    return code;
}

static bool is_set(const char *devices)
{
    return strcmp(devices, "all") == 0 || strncmp(devices, "tag:", 4) == 0;
}

static int give_command(sj_fleet *fleet, const sj_device_options *options, const char *devices,
                        int argc, char **argv)
{
    sj_error error = {0};
    const char *kind = NULL;
    json_t *arguments = NULL;
    json_t *given = NULL;
    char what[AUDITED_BYTES / 2];
    const sj_status read = sj_device_request(options, argc, argv, &kind, &arguments, &error);
    if (read != SJ_OK) {
        audit(fleet, "command", devices, argv[0], error.text);
    }
    if (read == SJ_EINVAL) {
        return sj_command_usage_error(&sj_command_device, "%s", error.text);
    }
    if (read != SJ_OK) {
        return sj_command_failed(&sj_command_device, &error);
    }
    const sj_control_request request = {.devices = devices,
                                        .kind = kind,
                                        .arguments = arguments,
                                        .requested_by = user_name(),
                                        .timeout_ms = options->timeout_ms};
    const sj_status status = sj_control_give(fleet, &request, &given, &error);
    char *text = json_dumps(arguments, JSON_COMPACT);
    snprintf(what, sizeof(what), "%s %s", kind, text != NULL ? text : "");
    audit(fleet, "command", devices, what, status == SJ_OK ? "done" : error.text);
    free(text);
    json_decref(arguments);
    if (status == SJ_EINVAL || status == SJ_EUNSUPPORTED) {
        return sj_command_usage_error(&sj_command_device, "%s", error.text);
    }
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_device, &error);
    }
    int code = SJ_EXIT_OK;
    if (options->no_wait) {
        print_json(given);
    } else if (is_set(devices) || json_array_size(given) != 1) {
        code = wait_for_all(fleet, given);
    } else {
        code = wait_for_one(fleet, options, kind, json_array_get(given, 0));
    }
    json_decref(given);
    return code;
}

/* Prints the latest 200 commands of a device as JSON, newest first. */
static int print_audit(sj_fleet *fleet, int64_t device_id)
{
    const sj_query_options options = {.format = SJ_RESULT_JSON};
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(sj_fleet_database(fleet), sj_device_commands_sql, -1, &statement,
                           NULL) != SQLITE_OK) {
        return sj_command_error(&sj_command_device, SJ_EXIT_FAILED, "%s",
                                sqlite3_errmsg(sj_fleet_database(fleet)));
    }
    sqlite3_bind_int64(statement, 1, device_id);
    return sj_query_print(&sj_command_device, &options, statement);
}

static int run_words(sj_fleet *fleet, const sj_device_options *options, int argc, char **argv)
{
    sj_error error = {0};
    int64_t device_id = 0;
    if (strcmp(argv[0], "invite") == 0) {
        return invite_device(fleet, options, argc == 2 || argc == 3 ? argv[1] : NULL,
                             argc == 3 ? argv[2] : NULL);
    }
    if (argc < 2) {
        return sj_command_usage_error(&sj_command_device, "name the device and the command");
    }
    const bool is_revoke = strcmp(argv[1], "revoke") == 0;
    if (!is_revoke && strcmp(argv[1], "commands") != 0) {
        return give_command(fleet, options, argv[0], argc - 1, argv + 1);
    }
    if (argc != 2) {
        return sj_command_usage_error(&sj_command_device, "%s takes no arguments", argv[1]);
    }
    sj_status status = sj_fleet_find_device(fleet, argv[0], &device_id, &error);
    if (!is_revoke) {
        return status == SJ_OK ? print_audit(fleet, device_id)
                               : sj_command_failed(&sj_command_device, &error);
    }
    if (status == SJ_OK) {
        status = sj_fleet_revoke(fleet, device_id, user_name(), &error);
    }
    audit(fleet, "device", argv[0], "revoke", status == SJ_OK ? "done" : error.text);
    if (status != SJ_OK) {
        return sj_command_failed(&sj_command_device, &error);
    }
    printf("the token of %s is revoked\n", argv[0]);
    return SJ_EXIT_OK;
}

/* Parses the options after word `at`: those before the next word, or all if `is_last`. Removes them
 * from `argv`. Returns -1, or an exit code if the command must end. */
static int parse_after(sj_device_options *options, int at, bool is_last, int *argc, char **argv)
{
    sj_command command = sj_command_device;
    int first = 0;
    command.stops_at_argument = !is_last;
    if (*argc <= at + 1) {
        return -1;
    }
    const int code = sj_options_parse(&command, *argc - at, argv + at, options, &first);
    if (code < 0) {
        const int left = *argc - at - first;
        memmove(argv + at + 1, argv + at + first, (size_t)left * sizeof(*argv));
        *argc = at + 1 + left;
    }
    return code;
}

/* Parses the options after the device and after the command. Does not parse the options of a
 * program that the command runs. */
static int parse_later_options(sj_device_options *options, int *argc, char **argv)
{
    static const char *const runs_program[] = {"launch", "record", "prepare"};
    bool has_program = false;
    const int code = parse_after(options, 0, false, argc, argv);
    if (code >= 0 || *argc < 2) {
        return code;
    }
    for (size_t i = 0; i < sizeof(runs_program) / sizeof(runs_program[0]); i++) {
        has_program |= strcmp(argv[1], runs_program[i]) == 0;
    }
    return parse_after(options, 1, !has_program, argc, argv);
}

static int run_device(int argc, char **argv)
{
    sj_device_options options = {.hours = DEFAULT_HOURS};
    sj_error error = {0};
    sj_fleet *fleet = NULL;
    int first = 0;
    const int code = sj_options_parse(&sj_command_device, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    if (first == argc) {
        return sj_command_usage_error(&sj_command_device, "name the device and the command");
    }
    char **words = argv + first;
    int count = argc - first;
    const int later_code = parse_later_options(&options, &count, words);
    if (later_code >= 0) {
        return later_code;
    }
    if (options.database == NULL) {
        const char *usual = getenv(SJ_ENV_DATABASE);
        options.database = usual != NULL && usual[0] != '\0' ? usual : "lab.db";
    }
    if (sj_fleet_open(options.database, &fleet, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_device, &error);
    }
    const int exit_code = run_words(fleet, &options, count, words);
    sj_fleet_close(fleet);
    return exit_code;
}

static const sj_option device_options[] = {
    {.name = "database",
     .letter = 'd',
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_device_options, database),
     .help = "the collector's database (default $SOJOURN_DATABASE, else lab.db)"},
    {.name = "timeout",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(sj_device_options, timeout_ms),
     .least = 1000,
     .most = 86400 * 1000,
     .help = "time limit (default: a minute; export: ten minutes; record: an hour)"},
    {.name = "no-wait",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(sj_device_options, no_wait),
     .help = "print the commands' numbers instead of their results"},
    {.name = "name",
     .argument = "TEXT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_device_options, name),
     .help = "launch, record, attach: label of the session"},
    {.name = "policy",
     .argument = "FILE|NAME",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_device_options, policy),
     .help = "launch, record, attach: a policy for this session only"},
    {.name = "for",
     .argument = "TIME",
     .kind = SJ_ARG_TIME,
     .offset = offsetof(sj_device_options, for_ms),
     .least = 1000,
     .most = 86400 * 1000,
     .help = "attach: detach after this time"},
    {.name = "session",
     .argument = "ID",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_device_options, session),
     .help = "mark, dump: only this recording"},
    {.name = "format",
     .argument = "FORMAT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_device_options, format),
     .help = "export, record: function.txt (default), or another format of\n"
             "`sojourn export` except html"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_device_options, output),
     .help = "export, record: write here (default: standard output)"},
    {.name = "to",
     .argument = "DIR",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_device_options, directory),
     .help = "export, record: write it into a directory on the device instead"},
    {.name = "app",
     .argument = "NAME",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_device_options, app),
     .help = "policy: for this app of the catalogue only"},
    {.name = "collector",
     .argument = "URL",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_device_options, collector),
     .help = "invite: the address at which devices reach the collector"},
    {.name = "certificate",
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(sj_device_options, tls),
     .help = "invite: the collector's certificate (default DATABASE.tls/...)"},
    {.name = "hours",
     .argument = "N",
     .kind = SJ_ARG_NUMBER,
     .offset = offsetof(sj_device_options, hours),
     .least = 1,
     .most = 86400,
     .help = "invite: hours for which it is valid (default 24)"},
    {0}};

const sj_command sj_command_device = {
    .name = "device",
    .summary = "give devices a command, tags, a policy; invite or revoke one",
    .usage = "sojourn device [OPTIONS] DEVICE COMMAND [ARGUMENTS]\n"
             "       sojourn device [OPTIONS] --collector URL invite FILE [DEVICE]",
    .help =
        "A DEVICE is named by its name, its number or the beginning of its UUID; `all` is every\n"
        "enrolled one, `tag:KEY=VALUE` those with a tag. It carries the command out when it asks\n"
        "the collector next, at once as a rule; its result is printed as JSON. Every command "
        "stays\n"
        "in the table `commands`, with who gave it and its result.\n"
        "\n"
        "Commands:\n"
        "  status                what it records and holds\n"
        "  apps | ps | sessions  its catalogue, with what each app runs on (native, mono, java,\n"
        "                        objc); its processes; its undelivered sessions\n"
        "  launch APP            start an app of the catalogue and record it\n"
        "  launch /PATH ARGS...  start a program and record it\n"
        "  attach PID            record a running process\n"
        "  detach PID            end the recording of a process and restore it\n"
        "  shrink PID            halve the memory that a process keeps for freed blocks\n"
        "  prepare APP|/PATH     what an app wants done before its start, and what it runs on\n"
        "  record APP|/PATH ...  prepare, start and record it, and write its function.txt here "
        "or,\n"
        "                        with --to, on the device, when it has come to its end\n"
        "  stop [SESSION]        end the recording whose id begins so, or all recordings\n"
        "  mark begin|end NAME   mark a phase in all running recordings\n"
        "  dump [TRIGGER]        set off the policy's trigger \"command\" of that name (default\n"
        "                        dump): in flight mode, the device sends the last seconds\n"
        "  export SESSION        function.txt of a session, when it has come to its end; `last`\n"
        "  policy FILE|NAME      set the policy from the next start on; `none` removes it\n"
        "  tag KEY=VALUE...      set tags in the collector; KEY= removes one\n"
        "  quota bytes=SIZE sessions=N   store at most so much of it a day (UTC): it keeps the\n"
        "                        rest until the next day; `none`: all; `default`: sojournd's "
        "quota\n"
        "  doctor                what could keep it from working, and what to do\n"
        "  commands              the commands that it got, and their results\n"
        "  revoke                end its token: the collector refuses the device\n"
        "  invite FILE           write what one new device needs to enrol\n"
        "  invite FILE DEVICE    the same for an enrolled device: the machine that uses FILE\n"
        "                        becomes this device, and the old token ends\n",
    .options = device_options,
    .examples = "Examples:\n"
                "  sojourn device --collector tls+tcp://collector:7655 invite phone7.invitation\n"
                "  sojourn device --name cold phone7 launch shop\n"
                "  sojourn device -o function.txt phone7 record shop\n"
                "  sojourn device -o function.txt phone7 export last\n"
                "  sojourn device --app shop tag:site=berlin policy jank\n"
                "  sojourn device tag:site=berlin quota bytes=2G sessions=100\n",
    .stops_at_argument = true,
    .run = run_device,
};
