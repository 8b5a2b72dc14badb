#include "agent/daemon/doctor.h"

#include "agent/daemon/apps.h"
#include "agent/daemon/collector_client.h"
#include "agent/daemon/enrolment.h"
#include "agent/host/directories.h"
#include "proto/base/units.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_MS = 5000, FILES_WANTED = 1024 };

/* Says hello like the daemon: with TLS and the pinned certificate, token and versions. */
static void check_reply(json_t *checks, const sj_session_collector *collector)
{
    sj_device device;
    sj_error error = {0};
    sj_server_client *client = NULL;
    sj_server_reply reply = {0};
    uint8_t *hello = NULL;
    size_t size = 0;
    sj_status status = sj_enrolment_device(&device, &error);
    if (status == SJ_OK) {
        status = sj_device_hello(&device, collector->token, (sj_slice){0}, &hello, &size);
    }
    if (status == SJ_OK) {
        status = sj_server_client_open(collector->url, collector->certificate, &client, &error);
    }
    if (status == SJ_OK) {
        status = sj_server_client_ask(client, (sj_slice){.data = hello, .size = size}, REPLY_MS,
                                      &reply, &error);
    }
    const bool replies = status == SJ_OK && reply.ack != NULL;
    sj_doctor_add(
        checks, "certificate", replies, replies ? "the pinned one" : error.text,
        "the port is open, but no collector with the pinned certificate speaks there: was the "
        "collector set up anew, or is the device's date wrong? Enrol again with a new "
        "invitation");
    if (replies) {
        const bool ok = reply.ack->status == SJ_OK;
        sj_doctor_add(checks, "token", ok, ok ? "accepted" : reply.ack->message,
                      "the collector revoked it; enrol again with a new invitation");
        sj_doctor_add(checks, "versions", reply.ack->major == SJ_FRAME_MAJOR,
                      reply.ack->server_version,
                      "collector and device speak different versions; update the older one");
    }
    sj_server_reply_deinit(&reply);
    sj_server_client_close(client);
    free(hello);
}

static void check_enrolment(json_t *checks)
{
    static const char what_to_do[] = "enrol with \"sojourn-device enroll --token-file FILE\"";
    sj_enrolment enrolment;
    sj_error error = {0};
    if (sj_enrolment_load(&enrolment, &error) != SJ_OK) {
        sj_doctor_add(checks, "enrolment", false, error.text, what_to_do);
        return;
    }
    for (size_t i = 0; i < enrolment.count; ++i) {
        const sj_session_collector *collector = &enrolment.collectors[i];
        sj_doctor_add(checks, "enrolment", true, collector->url, what_to_do);
        if (sj_doctor_check_reach(checks, collector->url)) {
            check_reply(checks, collector);
        }
    }
    sj_enrolment_deinit(&enrolment);
}

static void check_catalogue(json_t *checks)
{
    char found[32];
    json_t *apps = NULL;
    sj_error error = {0};
    const bool ok = sj_apps_load(&apps, &error) == SJ_OK;
    snprintf(found, sizeof(found), "%s", SJ_COUNTED(json_array_size(apps), "app"));
    sj_doctor_add(checks, "catalogue", ok, ok ? found : error.text, "correct this file");
    json_decref(apps);
}

json_t *sj_device_doctor(void)
{
    char state[PATH_MAX] = "";
    sj_error error = {0};
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    json_t *checks = json_array();
    if (checks == NULL) {
        return NULL;
    }
    sj_doctor_check_agent(checks);
    sj_doctor_check_ptrace(checks);
    sj_doctor_check_files(checks, FILES_WANTED);
    sj_doctor_check_clock(checks);
    sj_doctor_check_space(
        checks, "shared memory", runtime != NULL ? runtime : "/dev/shm",
        "enlarge it to at least 256 MB (a container: --shm-size=1g), or use --buffer 4");
    if (sj_state_directory("device", state, sizeof(state), &error) == SJ_OK) {
        sj_doctor_check_space(checks, "spool", state, "free at least 256 MB there");
    }
    if (sj_state_directory("device/spool", state, sizeof(state), &error) == SJ_OK) {
        sj_doctor_check_refused(checks, state);
    }
    check_catalogue(checks);
    check_enrolment(checks);
    return checks;
}
