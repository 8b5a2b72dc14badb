#include "agent/daemon/doctor.h"

#include "agent/control/directories.h"
#include "agent/daemon/apps.h"
#include "agent/daemon/enrolment.h"
#include "agent/daemon/lab_client.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MS = 5000, FILES_WANTED = 1024 };

/* check_answer says hello as the daemon does: TLS with the pinned certificate, token, versions. */
static void check_answer(json_t *checks, const sj_enrolment *lab)
{
    sj_device device;
    sj_error error = {0};
    sj_lab_client *client = NULL;
    sj_lab_answer answer = {0};
    uint8_t *hello = NULL;
    size_t size = 0;
    sj_status status = sj_enrolment_device(&device, &error);
    if (status == SJ_OK) {
        status = sj_device_hello(&device, lab->token, &hello, &size);
    }
    if (status == SJ_OK) {
        status = sj_lab_client_open(lab->lab, lab->certificate, &client, &error);
    }
    if (status == SJ_OK) {
        status = sj_lab_client_ask(client, (sj_slice){.data = hello, .size = size}, ANSWER_MS,
                                   &answer, &error);
    }
    const bool answers = status == SJ_OK && answer.ack != NULL;
    sj_doctor_add(checks, "certificate", answers, answers ? "the pinned one" : error.text,
                  "the port is open, but no lab with the pinned certificate speaks there: was the "
                  "lab set up anew, or is the device's date wrong? Enrol again with a new "
                  "invitation");
    if (answers) {
        const bool ok = answer.ack->status == SJ_OK;
        sj_doctor_add(checks, "token", ok, ok ? "accepted" : answer.ack->message,
                      "the lab revoked it; enrol again with a new invitation");
        sj_doctor_add(checks, "versions", answer.ack->major == SJ_FRAME_MAJOR,
                      answer.ack->server_version,
                      "lab and device speak different versions; update the older one");
    }
    sj_lab_answer_deinit(&answer);
    sj_lab_client_close(client);
    free(hello);
}

static void check_enrolment(json_t *checks)
{
    sj_enrolment lab;
    sj_error error = {0};
    const bool ok = sj_enrolment_load(&lab, &error) == SJ_OK;
    sj_doctor_add(checks, "enrolment", ok, ok ? lab.lab : error.text,
                  "enrol with \"sojourn-device enroll --token-file FILE\"");
    if (ok) {
        if (sj_doctor_check_reach(checks, lab.lab)) {
            check_answer(checks, &lab);
        }
        sj_enrolment_deinit(&lab);
    }
}

static void check_catalogue(json_t *checks)
{
    char found[32];
    json_t *apps = NULL;
    sj_error error = {0};
    const bool ok = sj_apps_load(&apps, &error) == SJ_OK;
    snprintf(found, sizeof(found), "%zu apps", json_array_size(apps));
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
    sj_doctor_check_room(checks, "shared memory", runtime != NULL ? runtime : "/dev/shm");
    if (sj_state_directory("device", state, sizeof(state), &error) == SJ_OK) {
        sj_doctor_check_room(checks, "spool", state);
    }
    check_catalogue(checks);
    check_enrolment(checks);
    return checks;
}
