#include "collector-server/fleet/export_jobs.h"

#include "collector-server/export/exporter.h"
#include "collector-server/fleet/fleet_commands.h"
#include "collector-server/fleet/fleet_internal.h"
#include "collector-server/fleet/record_jobs.h"
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"
#include "schema/queries/fleet/export_jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 200, SWEEP_ROUNDS = 3600 * 1000 / LOOK_MS, KEEP_S = 86400 };

struct sj_export_jobs {
    sj_fleet *fleet;
    char database[PATH_MAX];
    char directory[PATH_MAX];
    atomic_bool stopping;
    pthread_t thread;
    sj_fleet_command command;
};

void sj_command_file_path(const char *database, uint64_t command, char *path, size_t capacity)
{
    snprintf(path, capacity, "%.4000s.files/%" PRIu64, database, command);
}

/* Finds the device's session that `wanted` names: "last", or the first digits of the session's id.
 * Returns SJ_EAGAIN if the session does not exist yet or is not complete. Returns SJ_EINVAL if more
 * than one session matches. */
static sj_status find_session(sqlite3 *database, int64_t device_id, const char *wanted,
                              int64_t *session_id, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    sj_status status = SJ_EAGAIN;
    if (sqlite3_prepare_v2(database, sj_export_jobs_session_sql, -1, &statement, NULL) !=
        SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "cannot look for the session: %s", sqlite3_errmsg(database));
    }
    sqlite3_bind_int64(statement, 1, device_id);
    sqlite3_bind_text(statement, 2, wanted, -1, SQLITE_STATIC);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        *session_id = sqlite3_column_int64(statement, 0);
        status = sqlite3_column_int(statement, 1) != 0 ? SJ_OK : SJ_EAGAIN;
        if (strcmp(wanted, "last") != 0 && sqlite3_step(statement) == SQLITE_ROW) {
            status = sj_fail(error, SJ_EINVAL,
                             "more than one session of this device begins with \"%.40s\"", wanted);
        }
    }
    sqlite3_finalize(statement);
    return status;
}

/* Writes the export to a temporary file and renames the file, so that readers never see part of an
 * export. Sets `*bytes` to the size of the file. */
static sj_status write_file(sj_export_jobs *maker, sqlite3 *database, int64_t session_id,
                            const sj_exporter *exporter, int64_t *bytes, sj_error *error)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX + 8];
    sj_command_file_path(maker->database, (uint64_t)maker->command.command_id, path, sizeof(path));
    snprintf(fresh, sizeof(fresh), "%s.part", path);
    if (mkdir(maker->directory, 0700) != 0 && errno != EEXIST) {
        return sj_fail(error, SJ_EIO, "cannot make %s: %s", maker->directory, strerror(errno));
    }
    const int descriptor = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file == NULL) {
        const sj_status status = sj_fail(error, errno == ENOMEM ? SJ_ENOMEM : SJ_EIO,
                                         "cannot write %s: %s", fresh, strerror(errno));
        if (descriptor >= 0) {
            close(descriptor);
            unlink(fresh);
        }
        return status;
    }
    sj_status status =
        exporter->write(database, &(sj_call_part){.session_id = session_id}, file, error);
    *bytes = ftell(file);
    const bool is_written = ferror(file) == 0;
    if ((fclose(file) != 0 || !is_written || rename(fresh, path) != 0) && status == SJ_OK) {
        status = sj_fail(error, SJ_EIO, "cannot write %s: %s", path, strerror(errno));
    }
    if (status != SJ_OK) {
        unlink(fresh);
    }
    return status;
}

/* Queues a command `write`, by which the device fetches the file into `directory`. */
static sj_status send_file(sj_export_jobs *maker, const char *directory, const char *name,
                           int64_t bytes, int64_t *command_id, sj_error *error)
{
    const sj_fleet_command *command = &maker->command;
    json_t *arguments = json_pack("{sI ss ss sI}", "file", (json_int_t)command->command_id,
                                  "directory", directory, "name", name, "bytes", (json_int_t)bytes);
    char *text = json_dumps(arguments, JSON_COMPACT);
    const sj_fleet_new_command new_command = {.device_id = command->device_id,
                                              .kind = "write",
                                              .arguments = text != NULL ? text : "",
                                              .requested_by = "collector",
                                              .timeout_ms = command->timeout_ms};
    const sj_status status =
        text != NULL ? sj_fleet_command_add(maker->fleet, &new_command, command_id, error)
                     : sj_fail(error, SJ_ENOMEM, "out of memory");
    free(text);
    json_decref(arguments);
    return status;
}

/* Exports a session for the current command and adds the file's name and size to the JSON object
 * `result`. `directory` is the folder on the device that gets the file, or NULL. */
static sj_status make(sj_export_jobs *maker, const char *session, const char *directory,
                      json_t *result, sj_error *error)
{
    sqlite3 *database = NULL;
    int64_t session_id = 0;
    int64_t bytes = 0;
    int64_t next = 0;
    json_t *arguments = json_loads(maker->command.arguments, 0, NULL);
    const char *format = json_string_value(json_object_get(arguments, "format"));
    const sj_exporter *exporter = sj_exporter_find_file(format != NULL ? format : "function.txt");
    sj_status status = SJ_OK;
    if (exporter == NULL || session == NULL) {
        status =
            sj_fail(error, SJ_EINVAL,
                    "\"%.40s\" is not the format of a file; `sojourn export --help` lists them",
                    format != NULL ? format : "");
    }
    if (status == SJ_OK) {
        status = sj_database_open_reader(maker->database, &database, error);
    }
    if (status == SJ_OK) {
        status = find_session(database, maker->command.device_id, session, &session_id, error);
    }
    if (status == SJ_OK) {
        status = write_file(maker, database, session_id, exporter, &bytes, error);
    }
    if (status == SJ_OK) {
        status = sj_fleet_note_file(maker->fleet, maker->command.command_id, bytes, error);
    }
    if (status == SJ_OK && directory != NULL) {
        status = send_file(maker, directory, exporter->name, bytes, &next, error);
    }
    sqlite3_close(database);
    if (status == SJ_OK) {
        json_object_set_new(result, "name", json_string(exporter->name));
        json_object_set_new(result, "bytes", json_integer((json_int_t)bytes));
        json_object_set_new(result, "session_id", json_integer((json_int_t)session_id));
        if (next != 0) {
            json_object_set_new(result, "next_command", json_integer((json_int_t)next));
        }
    }
    json_decref(arguments);
    return status;
}

/* Carries out the current command as far as possible now. Sets `*result` to a JSON object that the
 * caller releases. Returns SJ_EAGAIN if the command must be tried again later. */
static sj_status carry_out(sj_export_jobs *maker, json_t **result, sj_error *error)
{
    const bool is_export = strcmp(maker->command.kind, "export") == 0;
    json_t *arguments = json_loads(maker->command.arguments, 0, NULL);
    const char *directory =
        json_string_value(json_object_get(arguments, is_export ? "directory" : "to"));
    sj_status status = SJ_OK;
    if (is_export) {
        *result = json_object();
        status = make(maker, json_string_value(json_object_get(arguments, "session")), directory,
                      *result, error);
    } else {
        status = sj_record_job_step(maker->fleet, &maker->command, result, error);
        if (status == SJ_OK) {
            status = make(maker, json_string_value(json_object_get(*result, "session")), directory,
                          *result, error);
            sj_record_job_reach(*result, "finished");
        }
    }
    json_decref(arguments);
    return status;
}

static void finish(sj_export_jobs *maker, sj_status status, const json_t *result,
                   const sj_error *problem)
{
    sj_error error = {0};
    char *text = status == SJ_OK ? json_dumps(result, JSON_COMPACT) : NULL;
    /* If the database fails here, the command stays open, and the next round repeats it. */
    (void)!sj_fleet_finish(maker->fleet, maker->command.device_id,
                           (uint64_t)maker->command.command_id, text == NULL,
                           text != NULL ? text : problem->text, &error);
    free(text);
}

/* Tries each waiting command once, then ends the commands whose timeout has passed. */
static void do_round(sj_export_jobs *maker)
{
    sj_error error = {0};
    int64_t after = 0;
    while (!atomic_load(&maker->stopping) &&
           sj_fleet_next_for_collector(maker->fleet, after, &maker->command, &error) == SJ_OK) {
        json_t *result = NULL;
        sj_error problem = {0};
        after = maker->command.command_id;
        if (strcmp(maker->command.kind, "export") != 0 &&
            strcmp(maker->command.kind, "record") != 0) {
            continue; /* another process carries the command out and finishes it */
        }
        const sj_status status = carry_out(maker, &result, &problem);
        if (status != SJ_EAGAIN) {
            finish(maker, status, result, &problem);
        }
        json_decref(result);
    }
    (void)!sj_fleet_expire(maker->fleet, &error);
}

/* Removes exported files older than a day. */
static void sweep(const sj_export_jobs *maker)
{
    DIR *folder = opendir(maker->directory);
    const time_t now = time(NULL);
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        struct stat about;
        if (fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(about.st_mode) && now - about.st_mtime > KEEP_S) {
            unlinkat(dirfd(folder), entry->d_name, 0);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

static void *run(void *argument)
{
    sj_export_jobs *maker = argument;
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    for (unsigned round = 0; !atomic_load(&maker->stopping); round++) {
        if (round % SWEEP_ROUNDS == 0) {
            sweep(maker);
        }
        do_round(maker);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

sj_status sj_export_jobs_start(const char *database, sj_export_jobs **maker, sj_error *error)
{
    sj_export_jobs *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    snprintf(made->database, sizeof(made->database), "%.4000s", database);
    snprintf(made->directory, sizeof(made->directory), "%.4000s.files", database);
    sj_status status = sj_fleet_open(database, &made->fleet, error);
    if (status == SJ_OK && pthread_create(&made->thread, NULL, run, made) != 0) {
        sj_fleet_close(made->fleet);
        status = sj_fail(error, SJ_EIO, "cannot start the thread that makes files");
    }
    if (status != SJ_OK) {
        free(made);
        return status;
    }
    *maker = made;
    return SJ_OK;
}

void sj_export_jobs_stop(sj_export_jobs *maker)
{
    if (maker == NULL) {
        return;
    }
    atomic_store(&maker->stopping, true);
    pthread_join(maker->thread, NULL);
    sj_fleet_close(maker->fleet);
    free(maker);
}
