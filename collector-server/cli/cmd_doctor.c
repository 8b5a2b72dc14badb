#include "agent/host/direct_checks.h"
#include "agent/host/directories.h"
#include "agent/host/host_checks.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/database_choice.h"
#include "collector-server/fleet/certificate.h"
#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "schema/queries/cli/doctor.h"

#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_WANTED = 4096 };

typedef struct doctor_options {
    const char *database;
    const char *tls;
    const char *collector;
    bool is_named; /* the user named the database */
    bool as_json;
} doctor_options;

static void check_database(json_t *checks, sqlite3 *database, const char *path)
{
    char found[PATH_MAX + 64];
    struct stat about = {0};
    (void)stat(path, &about);
    snprintf(found, sizeof(found), "%.4000s, schema %d, %lld MB", path, sj_database_version(),
             (long long)about.st_size >> 20);
    sqlite3_stmt *statement = NULL;
    const bool ok = sqlite3_prepare_v2(database, "SELECT count(*) FROM sessions", -1, &statement,
                                       NULL) == SQLITE_OK &&
                    sqlite3_step(statement) == SQLITE_ROW;
    sqlite3_finalize(statement);
    sj_doctor_add(checks, "database", ok, ok ? found : sqlite3_errmsg(database),
                  "recover it with \"sqlite3 FILE .recover\", or restore a backup");
}

typedef struct found_rows {
    char text[512]; /* the first column of each row */
    size_t used, count;
} found_rows;

static sj_status add_found(void *context, sqlite3_stmt *row)
{
    found_rows *found = context;
    const size_t left = sizeof(found->text) - found->used;
    const int written =
        snprintf(found->text + found->used, left, "%s%.60s", found->count != 0 ? ", " : "",
                 (const char *)sqlite3_column_text(row, 0));
    found->used += written > 0 && (size_t)written < left ? (size_t)written : 0;
    found->count++;
    return SJ_OK;
}

/* Adds a check that fails if a query returns rows. Reports the first column of each row. */
static void check_no_rows(json_t *checks, sqlite3 *database, const char *check, const char *sql,
                          const char *advice)
{
    found_rows found = {.count = 0};
    sj_error error = {0};
    const sj_status status =
        sj_sql_each(database, sql, (sj_sql_binds){0}, add_found, &found, &error);
    const bool ok = status == SJ_OK && found.count == 0;
    sj_doctor_add(checks, check, ok,
                  status != SJ_OK ? error.text
                  : ok            ? "none"
                                  : found.text,
                  advice);
}

static void check_fleet(json_t *checks, sqlite3 *database)
{
    check_no_rows(
        checks, database, "namesakes",
        "SELECT name || ' (' || count(*) || ')' FROM devices GROUP BY name"
        " HAVING count(*) > 1",
        "several devices have each of these names: use their ids or UUIDs, or rename them with "
        "\"sojourn-device set --name NAME\"");
    check_no_rows(checks, database, "copied devices",
                  "SELECT d.name || ' (' || d.device_id || ')' FROM copied_devices JOIN devices d"
                  " USING (device_id)",
                  "two daemons use the identity and token of each of these devices, so a command "
                  "runs on only one of them; on the copy, stop sojourn-device, remove its file "
                  "device-id and enroll it with a new invitation");
    check_no_rows(
        checks, database, "silent devices", sj_doctor_silent_devices_sql,
        "these devices have not contacted the collector for a day; run \"sojourn-device doctor\" "
        "on them, or revoke them");
    check_no_rows(
        checks, database, "full spools",
        "SELECT d.name FROM device_status s JOIN devices d USING (device_id)"
        " WHERE s.status ->> 'spool_full'",
        "these devices record nothing until the collector has received their spools; see their "
        "logs, or start sojourn-device with a larger --spool-bytes");
    check_no_rows(checks, database, "quotas",
                  "SELECT d.name || ' (' || q.quota || ')' FROM devices_over_quota q JOIN devices d"
                  " USING (device_id)",
                  "the quota of each of these devices is used up, so they keep their records until "
                  "midnight UTC; \"sojourn device DEVICE quota\" sets another one");
    check_no_rows(
        checks, database, "missing calls",
        "SELECT 'session ' || session_id || ' (' || missing_calls || ' of ' || sent_calls"
        " || ')' FROM sessions WHERE missing_calls > 0",
        "devices sent these calls, but the database does not have them: frames were refused "
        "(see the log of sojournd, and run \"sojourn-device doctor\" on the device), or "
        "an older backup was restored");
    check_no_rows(checks, database, "versions",
                  "SELECT name || ' ' || agent_version FROM devices WHERE agent_version NOT IN"
                  " ('', '" SJ_VERSION "')",
                  "these devices run a version other than " SJ_VERSION "; update them");
}

static void check_certificate(json_t *checks, const doctor_options *options)
{
    char directory[PATH_MAX];
    char path[PATH_MAX + 32];
    char pem[SJ_PEM_MAX_BYTES];
    char text[SJ_MOMENT_BYTES] = "";
    char found[64];
    bool is_valid = false;
    struct stat key;
    sj_error error = {0};
    snprintf(directory, sizeof(directory), "%.4000s.tls", options->database);
    const char *place = options->tls != NULL ? options->tls : directory;
    snprintf(path, sizeof(path), "%.4000s/certificate.pem", place);
    sj_status status = sj_certificate_read(path, pem, &error);
    if (status == SJ_ENOTFOUND && options->tls == NULL) {
        return; /* the collector has never used TLS */
    }
    if (status == SJ_OK) {
        status = sj_certificate_ends(pem, text, &is_valid, &error);
    }
    snprintf(found, sizeof(found), "valid until %s UTC", text);
    sj_doctor_add(
        checks, "certificate", status == SJ_OK && is_valid, status == SJ_OK ? found : error.text,
        "move the certificate's directory away, restart sojournd and enroll the devices again");
    snprintf(path, sizeof(path), "%.4000s/key.pem", place);
    const bool is_there = stat(path, &key) == 0;
    sj_doctor_add(
        checks, "private key", is_there && (key.st_mode & 077) == 0, path,
        is_there
            ? "run \"chmod 600\" on this file: a user who can read it can impersonate the collector"
            : "the file is missing or cannot be reached: put it back from a backup, or move the "
              "certificate's directory away, restart sojournd and enroll the devices again");
}

static void check_collector(json_t *checks, const doctor_options *options)
{
    char directory[PATH_MAX];
    sqlite3 *database = NULL;
    sj_error error = {0};
    if (!options->is_named && access(options->database, F_OK) != 0) {
        return; /* there is no collector, and `sojourn record` does not need one */
    }
    if (sj_database_open(options->database, SJ_DATABASE_READ, &database, &error) != SJ_OK) {
        sj_doctor_add(
            checks, "database", false, error.text,
            "name the collector's database with --database, or start sojournd to create it");
        return;
    }
    check_database(checks, database, options->database);
    check_fleet(checks, database);
    sqlite3_close(database);
    snprintf(directory, sizeof(directory), "%.4000s", options->database);
    sj_doctor_check_space(checks, "disk", dirname(directory), "free at least 256 MB there");
    check_certificate(checks, options);
}

static int run_doctor(int argc, char **argv)
{
    doctor_options options = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_doctor, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    if (first != argc) {
        return sj_command_usage_error(&sj_command_doctor, "doctor takes no arguments");
    }
    options.is_named = options.database != NULL;
    if (!options.is_named) {
        const char *usual = getenv(SJ_ENV_DATABASE);
        options.database = usual != NULL && usual[0] != '\0' ? usual : "lab.db";
    }
    char spool[PATH_MAX];
    sj_error error = {0};
    json_t *checks = json_array();
    sj_doctor_check_agent(checks);
    sj_doctor_check_ptrace(checks);
    sj_doctor_check_direct(checks);
    sj_doctor_check_files(checks, FILES_WANTED);
    sj_doctor_check_clock(checks);
    sj_doctor_check_space(
        checks, "shared memory", "/dev/shm",
        "enlarge it to at least 256 MB (a container: --shm-size=1g), or use --buffer 4");
    if (sj_state_directory("spool", spool, sizeof(spool), &error) == SJ_OK) {
        sj_doctor_check_refused(checks, spool);
    }
    check_collector(checks, &options);
    if (options.collector != NULL) {
        (void)sj_doctor_check_reach(checks, options.collector);
    }
    const bool all_ok = sj_doctor_print(checks, options.as_json, stdout);
    json_decref(checks);
    return all_ok ? SJ_EXIT_OK : SJ_EXIT_FAILED;
}

static const sj_option doctor_table[] = {
    {.name = "database",
     .letter = 'd',
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(doctor_options, database),
     .help = "the collector's database (default $SOJOURN_DATABASE, else lab.db)"},
    {.name = "tls",
     .argument = "DIR",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(doctor_options, tls),
     .help = "directory of the collector's certificate (default DATABASE.tls)"},
    {.name = "collector",
     .argument = "URL",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(doctor_options, collector),
     .help = "also check that the collector accepts connections at this address"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(doctor_options, as_json),
     .help = "as JSON: a list of {check, ok, found, advice}"},
    {0}};

const sj_command sj_command_doctor = {
    .name = "doctor",
    .summary = "say what could keep recording or the collector from working, and what to do",
    .usage = "sojourn doctor [OPTIONS]",
    .help =
        "Checks this machine: whether processes may be traced, whether programs can record\n"
        "themselves (runs a small program), limits, clock and disk space.\n"
        "\n"
        "If there is a collector's database, also checks the database, the certificate, missing\n"
        "calls, and the devices (shared names or identities, silence, full spools, quotas,\n"
        "versions).\n"
        "To check a device, run `sojourn-device doctor` there, or `sojourn device NAME doctor`\n"
        "here.\n",
    .options = doctor_table,
    .examples = "Exit status: 0 if all checks pass, 1 if one fails.\n"
                "\n"
                "Examples:\n"
                "  sojourn doctor\n"
                "  sojourn doctor --database /var/lib/sojourn/lab.db --collector "
                "tls+tcp://collector:7655\n",
    .run = run_doctor,
};
