#include "agent/attach/detach_request.h"
#include "agent/daemon/apps.h"
#include "agent/daemon/command_kinds.h"
#include "agent/daemon/device_policies.h"
#include "agent/daemon/session_list.h"
#include "agent/daemon/state_file.h"
#include "agent/daemon/worker.h"
#include "agent/livepatch/heap_watch.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static sj_status find_app(const char *name, json_t **app, sj_error *error)
{
    json_t *apps = NULL;
    json_t *one;
    size_t index;
    SJ_TRY(sj_apps_load(&apps, error));
    json_array_foreach(apps, index, one)
    {
        const char *own = json_string_value(json_object_get(one, "name"));
        if (own != NULL && strcmp(own, name) == 0) {
            *app = json_incref(one);
        }
    }
    json_decref(apps);
    return *app != NULL ? SJ_OK
                        : sj_fail(error, SJ_ENOTFOUND,
                                  "this device has no app \"%s\"; add it to apps.json there (man 8 "
                                  "sojourn-device)",
                                  name);
}

/* Selects the policy. The command's own precedes the collector's, which precedes the
 * catalogue's. */
static sj_status add_policy(json_t *task, const sj_device_command *command, const char *app,
                            sj_error *error)
{
    json_t *policy = NULL;
    if (json_object_get(command->arguments, "policy") != NULL) {
        return sj_state_set(task, "policy_from", json_string("command"), error);
    }
    SJ_TRY(sj_device_policies_find(command->context->policies, app, &policy, error));
    if (policy != NULL) {
        SJ_TRY(sj_state_set(task, "policy", policy, error));
        return sj_state_set(task, "policy_from", json_string("collector"), error);
    }
    return json_object_get(task, "policy") != NULL
               ? sj_state_set(task, "policy_from", json_string("catalogue"), error)
               : SJ_OK;
}

/* Adds the limit of the spool's disk space. Fails if the spool is full. */
static sj_status add_limits(json_t *task, const sj_device_command_context *context, sj_error *error)
{
    char stamp[32];
    struct timespec now;
    uint64_t used = 0;
    SJ_TRY(sj_device_command_spool_bytes(context, &used, error));
    if (used >= context->spool_bytes) {
        return sj_fail(
            error, SJ_EFULL,
            "the spool holds %llu MB and may hold no more; it empties when the collector "
            "can be reached",
            (unsigned long long)(used >> 20));
    }
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(stamp, sizeof(stamp), "%lld-%09ld", (long long)now.tv_sec, now.tv_nsec);
    SJ_TRY(sj_state_set(task, "stamp", json_string(stamp), error));
    return sj_state_set(task, "spool_bytes", json_integer((json_int_t)context->spool_bytes), error);
}

/* Starts a worker with the catalogue's app and the command's arguments. */
static sj_status start(const sj_device_command *command, const char *name, const json_t *app,
                       bool only_prepare, json_t **result, sj_error *error)
{
    json_t *work = app != NULL ? json_deep_copy(app) : json_object();
    if (work == NULL || json_object_update(work, (json_t *)(uintptr_t)command->arguments) != 0) {
        json_decref(work);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (app != NULL && json_object_get(command->arguments, "name") == NULL) {
        json_object_del(work, "name"); /* This is the app's name, not the session's. */
    }
    sj_status status = sj_state_set(work, "only_prepare", json_boolean(only_prepare), error);
    if (status == SJ_OK) {
        status = add_limits(work, command->context, error);
    }
    if (status == SJ_OK) {
        status = add_policy(work, command, name, error);
    }
    if (status == SJ_OK) {
        status = sj_worker_start(work, command->timeout_ms, result, error);
    }
    json_decref(work);
    return status;
}

/* Starts an app or a program. With `only_prepare` it only runs the steps that precede the start. */
static sj_status launch(const sj_device_command *command, bool only_prepare, json_t **result,
                        sj_error *error)
{
    json_t *app = NULL;
    const char *name = json_string_value(json_object_get(command->arguments, "app"));
    sj_status status = SJ_OK;
    if (name != NULL) {
        status = find_app(name, &app, error);
    } else {
        status = sj_apps_check(command->arguments, error);
    }
    if (status == SJ_OK) {
        status = start(command, name, app, only_prepare, result, error);
    }
    json_decref(app);
    return status;
}

sj_status sj_device_command_run_launch(const sj_device_command *command, json_t **result,
                                       sj_error *error)
{
    return launch(command, false, result, error);
}

sj_status sj_device_command_run_prepare(const sj_device_command *command, json_t **result,
                                        sj_error *error)
{
    return launch(command, true, result, error);
}

static sj_status read_pid(const sj_device_command *command, pid_t *pid, sj_error *error)
{
    const json_int_t number = json_integer_value(json_object_get(command->arguments, "pid"));
    *pid = (pid_t)number;
    return number > 0 && number <= INT_MAX
               ? SJ_OK
               : sj_fail(error, SJ_EINVAL, "\"pid\" has to be the number of a process");
}

sj_status sj_device_command_run_attach(const sj_device_command *command, json_t **result,
                                       sj_error *error)
{
    pid_t pid = 0;
    sj_recorded recorded;
    SJ_TRY(read_pid(command, &pid, error));
    /* Checked before the session begins. The collector would see a session without an end
     * otherwise. */
    if (sj_detach_find(pid, &recorded, NULL) == SJ_OK && recorded.recorder != 0) {
        return sj_fail(error, SJ_EEXIST,
                       "process %d is recorded already, by process %d; `detach` ends that",
                       (int)pid, (int)recorded.recorder);
    }
    return start(command, NULL, NULL, false, result, error);
}

sj_status sj_device_command_run_detach(const sj_device_command *command, json_t **result,
                                       sj_error *error)
{
    pid_t pid = 0;
    sj_detach_report report;
    SJ_TRY(read_pid(command, &pid, error));
    SJ_TRY(sj_detach(pid, &report, error));
    if (!report.recorded.has_agent) {
        return sj_fail(error, SJ_ENOTFOUND, "process %d is not recorded", (int)pid);
    }
    *result =
        json_pack("{si sI}", "left", (int)pid, "left_bytes", (json_int_t)report.process.left_bytes);
    return SJ_OK;
}

sj_status sj_device_command_run_shrink(const sj_device_command *command, json_t **result,
                                       sj_error *error)
{
    pid_t pid = 0;
    SJ_TRY(read_pid(command, &pid, error));
    SJ_TRY(sj_heap_shrink(pid, error));
    *result = json_pack("{si}", "shrunk", (int)pid);
    return SJ_OK;
}

typedef struct stop_request {
    const char *session; /* Beginning of the session's id. NULL: all sessions. */
    json_t *stopped;
    bool is_incomplete; /* `stopped` lacks a session that was stopped. */
} stop_request;

static bool stop_session(void *context, const sj_listed_session *session)
{
    stop_request *request = context;
    if (session->is_recording && session->recorder > 0 &&
        (request->session == NULL ||
         strncmp(session->session, request->session, strlen(request->session)) == 0) &&
        kill(session->recorder, SIGTERM) == 0) {
        request->is_incomplete |=
            json_array_append_new(request->stopped, json_string(session->session)) != 0;
    }
    return true;
}

/* Ends recordings by SIGTERM to their recorders. Launched programs get SIGTERM; attached ones
 * continue without the recorder. */
sj_status sj_device_command_run_stop(const sj_device_command *command, json_t **result,
                                     sj_error *error)
{
    stop_request request = {.session =
                                json_string_value(json_object_get(command->arguments, "session")),
                            .stopped = json_array()};
    const sj_status status =
        sj_session_list(command->context->spool_root, stop_session, &request, error);
    if (status == SJ_OK && !request.is_incomplete && request.session != NULL &&
        json_array_size(request.stopped) == 0) {
        json_decref(request.stopped);
        return sj_fail(error, SJ_ENOTFOUND, "no session \"%.40s\" is being recorded",
                       request.session);
    }
    if (status != SJ_OK || request.is_incomplete) {
        json_decref(request.stopped);
        return status;
    }
    *result = json_pack("{so}", "stopped", request.stopped);
    return SJ_OK;
}
