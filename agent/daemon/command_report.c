#include "agent/daemon/app_runtime.h"
#include "agent/daemon/apps.h"
#include "agent/daemon/command_kinds.h"
#include "agent/daemon/device_policies.h"
#include "agent/daemon/doctor.h"
#include "agent/daemon/session_list.h"
#include "proto/base/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROCESSES_MAX = 2000 };

typedef struct session_sums {
    uint64_t recording, undelivered, bytes;
    uint64_t refused; /* Sessions of which the collector finally refused a frame. */
} session_sums;

static bool count_session(void *context, const sj_listed_session *session)
{
    session_sums *sums = context;
    sums->recording += session->is_recording;
    sums->undelivered += !session->is_recording && !session->is_set_aside;
    sums->refused += session->is_set_aside;
    sums->bytes += session->spool_bytes;
    return true;
}

sj_status sj_device_command_spool_bytes(const sj_device_command_context *context, uint64_t *bytes,
                                        sj_error *error)
{
    session_sums sums = {0};
    const sj_status status = sj_session_list(context->spool_root, count_session, &sums, error);
    *bytes = sums.bytes;
    return status;
}

json_t *sj_device_command_status(const sj_device_command_context *context)
{
    session_sums sums = {0};
    char digest[SJ_POLICIES_DIGEST_BYTES];
    json_t *apps = NULL;
    sj_error error = {0};
    (void)!sj_session_list(context->spool_root, count_session, &sums, &error);
    const size_t app_count = sj_apps_load(&apps, &error) == SJ_OK ? json_array_size(apps) : 0;
    json_decref(apps);
    sj_device_policies_digest(context->policies, digest);
    if (error.text[0] == '\0' && sums.refused != 0) {
        sj_fail(&error, SJ_ECORRUPT, "the collector refused frames of %s: see its doctor",
                SJ_COUNTED(sums.refused, "session"));
    }
    /* Whole megabytes, because each change of the status writes to the collector's database. */
    return json_pack("{ss sI sI sI sI sb sI ss ss}", "version", SJ_VERSION, "recording",
                     (json_int_t)sums.recording, "undelivered", (json_int_t)sums.undelivered,
                     "refused", (json_int_t)sums.refused, "spool_mb",
                     (json_int_t)(sums.bytes >> 20), "spool_full",
                     sums.bytes >= context->spool_bytes, "apps", (json_int_t)app_count, "policies",
                     digest, "problem", error.text);
}

static sj_status or_no_memory(const json_t *result, sj_error *error)
{
    return result != NULL ? SJ_OK : sj_fail(error, SJ_ENOMEM, "out of memory");
}

/* Releases a list that lacks a row. */
static sj_status drop_incomplete(json_t **result, sj_error *error)
{
    json_decref(*result);
    *result = NULL;
    return or_no_memory(NULL, error);
}

sj_status sj_device_command_run_status(const sj_device_command *command, json_t **result,
                                       sj_error *error)
{
    *result = sj_device_command_status(command->context);
    return or_no_memory(*result, error);
}

sj_status sj_device_command_run_apps(const sj_device_command *command, json_t **result,
                                     sj_error *error)
{
    size_t index;
    json_t *app;
    (void)command;
    SJ_TRY(sj_apps_load(result, error));
    json_array_foreach(*result, index, app)
    {
        if (json_object_set_new(app, "runtime", json_string(sj_app_runtime_find(app))) != 0) {
            return drop_incomplete(result, error);
        }
    }
    return SJ_OK;
}

sj_status sj_device_command_run_doctor(const sj_device_command *command, json_t **result,
                                       sj_error *error)
{
    (void)command;
    *result = sj_device_doctor();
    return or_no_memory(*result, error);
}

/* A list of sessions. It is incomplete if memory ran out. */
typedef struct session_rows {
    json_t *list;
    bool is_incomplete;
} session_rows;

static bool list_session(void *context, const sj_listed_session *session)
{
    session_rows *rows = context;
    rows->is_incomplete =
        json_array_append_new(rows->list,
                              json_pack("{ss sb sI}", "session", session->session, "recording",
                                        session->is_recording, "spool_bytes",
                                        (json_int_t)session->spool_bytes)) != 0;
    return !rows->is_incomplete;
}

sj_status sj_device_command_run_sessions(const sj_device_command *command, json_t **result,
                                         sj_error *error)
{
    session_rows rows = {.list = json_array()};
    const sj_status status =
        sj_session_list(command->context->spool_root, list_session, &rows, error);
    *result = rows.list;
    if (status != SJ_OK || rows.is_incomplete) {
        const sj_status dropped = drop_incomplete(result, status == SJ_OK ? error : NULL);
        return status != SJ_OK ? status : dropped;
    }
    return or_no_memory(*result, error);
}

static void read_command(const char *pid, char *text, size_t capacity)
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/%.32s/cmdline", pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file >= 0 ? read(file, text, capacity - 1) : 0;
    if (file >= 0) {
        close(file);
    }
    text[got > 0 ? got : 0] = '\0';
    for (ssize_t i = 0; i + 1 < got; i++) {
        text[i] = text[i] == '\0' ? ' ' : text[i];
    }
}

/* Lists the processes that this daemon may trace: those of its own user, or all for root. */
sj_status sj_device_command_run_ps(const sj_device_command *command, json_t **result,
                                   sj_error *error)
{
    (void)command;
    DIR *folder = opendir("/proc");
    if (folder == NULL) {
        return sj_fail(error, SJ_EIO, "cannot read /proc: %s", strerror(errno));
    }
    bool is_incomplete = false;
    *result = json_array();
    for (struct dirent *entry = readdir(folder);
         entry != NULL && json_array_size(*result) < PROCESSES_MAX && !is_incomplete;
         entry = readdir(folder)) {
        struct stat about;
        char line[256];
        if (entry->d_name[strspn(entry->d_name, "0123456789")] != '\0' ||
            fstatat(dirfd(folder), entry->d_name, &about, 0) != 0 ||
            (geteuid() != 0 && about.st_uid != geteuid())) {
            continue;
        }
        read_command(entry->d_name, line, sizeof(line));
        if (line[0] != '\0') {
            json_t *text = json_string(line);
            json_t *row = json_pack("{si so? si}", "pid", (int)strtol(entry->d_name, NULL, 10),
                                    "command", text, "uid", (int)about.st_uid);
            is_incomplete = json_array_append_new(*result, row) != 0;
        }
    }
    closedir(folder);
    return is_incomplete ? drop_incomplete(result, error) : or_no_memory(*result, error);
}
