#include "collector-server/cli/spool_flush.h"

#include "agent/daemon/enrolment.h"
#include "agent/host/device.h"
#include "agent/host/directories.h"
#include "agent/recording/recovery.h"
#include "agent/recording/session_uplink.h"
#include "agent/uplink/nng_channel.h"
#include "agent/uplink/spool_aside.h"
#include "agent/uplink/spool_collector.h"
#include "agent/uplink/spool_quota.h"
#include "agent/uplink/uplink.h"
#include "collector-server/cli/embedded.h"
#include "proto/base/progress.h"
#include "proto/base/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { DEFAULT_WAIT_MS = 10000, FILE_WAIT_MS = 60000, POLL_MS = 100 };

/* Waits until all frames of a spool are acknowledged, at most `wait_ms`. For a database the timeout
 * begins again with each acknowledgement. Returns SJ_ETIMEDOUT after the timeout. */
static sj_status wait_for_acknowledgement(sj_uplink *uplink, uint64_t frames, bool is_database,
                                          int64_t wait_ms)
{
    sj_status status = SJ_ETIMEDOUT;
    uint64_t acknowledged = 0;
    int64_t left_ms = wait_ms;
    const sj_progress_work work = sj_progress_begin(frames);
    while (status == SJ_ETIMEDOUT && left_ms >= 0) {
        sj_uplink_status now;
        status = sj_uplink_drain(uplink, left_ms < POLL_MS ? left_ms : POLL_MS);
        sj_uplink_get_status(uplink, &now);
        left_ms =
            is_database && now.acknowledged_frames != acknowledged ? wait_ms : left_ms - POLL_MS;
        acknowledged = now.acknowledged_frames;
        sj_progress_reach(work, acknowledged);
    }
    sj_progress_end(work);
    return status;
}

/* Fails with SJ_ECORRUPT if frames of the spool were refused permanently. */
static sj_status check_refused(const char *directory, sj_error *error)
{
    sj_spool_aside aside;
    char text[SJ_ASIDE_TEXT_BYTES];
    return sj_spool_aside_read(directory, &aside)
               ? sj_fail(error, SJ_ECORRUPT, "%s", sj_spool_aside_text(&aside, directory, text))
               : SJ_OK;
}

/* Sends the frames of one spool to `url`, then deletes the spool. `file` is the database behind the
 * URL, NULL for a server. Keeps the spool on an error. */
static sj_status send_spool(const char *directory, const char *url, const char *file,
                            int64_t wait_ms, sj_error *error)
{
    const sj_spool_options options = {.directory = directory};
    sj_device device;
    sj_spool *spool = NULL;
    sj_uplink *uplink = NULL;
    SJ_TRY(sj_enrolment_device(&device, error));
    SJ_TRY(sj_spool_open(&options, &spool, error));
    const sj_session_collector collector = {.url = url, .token = getenv("SOJOURN_TOKEN")};
    const sj_session_uplink session = {
        .device = &device,
        .directory = directory,
        .collectors = &collector,
        .collector_count = 1,
        .link = {.channel = &sj_channel_nng, .window = file != NULL ? SJ_EMBEDDED_WINDOW : 0}};
    sj_status status = sj_session_uplink_start(&session, spool, &uplink, error);
    if (status == SJ_OK) {
        sj_uplink_status reported;
        sj_spool_counters counters;
        sj_spool_get_counters(spool, &counters);
        status = wait_for_acknowledgement(uplink, counters.pending_frames, file != NULL, wait_ms);
        sj_uplink_get_status(uplink, &reported);
        sj_uplink_stop(uplink);
        if (status != SJ_OK) {
            sj_fail(error, status, "%s has not accepted everything: %s", file != NULL ? file : url,
                    reported.message[0] != '\0' ? reported.message : "no answer");
        }
    }
    if (status == SJ_OK) {
        status = sj_spool_remove(spool, error);
        if (status == SJ_OK) {
            return SJ_OK;
        }
    }
    sj_spool_close(spool);
    return status;
}

/* Sends the frames of one spool to a destination: a URL, or "file " and the path of a database. */
static sj_status send_to_destination(const char *directory, const char *destination,
                                     int64_t wait_ms, sj_error *error)
{
    static const char file_prefix[] = "file ";
    sj_embedded *embedded = NULL;
    if (strncmp(destination, file_prefix, sizeof(file_prefix) - 1) != 0) {
        return send_spool(directory, destination, NULL,
                          wait_ms != SJ_FLUSH_USUAL_WAIT ? wait_ms : DEFAULT_WAIT_MS, error);
    }
    SJ_TRY(sj_embedded_start(destination + sizeof(file_prefix) - 1, &embedded, error));
    const sj_status status =
        send_spool(directory, sj_embedded_url(embedded), destination + sizeof(file_prefix) - 1,
                   wait_ms != SJ_FLUSH_USUAL_WAIT ? wait_ms : FILE_WAIT_MS, error);
    sj_embedded_stop(embedded, false);
    return status;
}

/* Delivers a spool. Fails with SJ_ECORRUPT if frames were permanently refused; all other frames are
 * then delivered. */
static sj_status deliver_spool(const char *directory, const char *destination, int64_t wait_ms,
                               sj_error *error)
{
    /* An empty spool: an earlier delivery left at most refused frames. */
    if (sj_spool_directory_bytes(directory) == 0) {
        SJ_TRY(check_refused(directory, error));
    }
    SJ_TRY(send_to_destination(directory, destination, wait_ms, error));
    return check_refused(directory, error);
}

/* Reports processes whose shared memory recovery could not read. */
static void report_unreadable(const sj_flush_request *request, const sj_recovery_claim *claim,
                              const sj_recovery_result *result)
{
    if (result->unreadable_processes != 0) {
        (void)sj_command_error(request->command, SJ_EXIT_FAILED,
                               "%s: the records of %s are lost: another version of Sojourn wrote "
                               "them, or they are damaged; finish the sessions of a version before "
                               "you replace it",
                               claim->spool_directory,
                               SJ_COUNTED(result->unreadable_processes, "process"));
    }
}

/* Delivers the session whose destination is in the file `path`. */
static void flush_session(const char *path, const sj_flush_request *request,
                          sj_flush_totals *totals)
{
    const char *destination = request->collector;
    char chosen[SJ_SPOOL_COLLECTOR_BYTES];
    sj_recovery_claim claim;
    sj_recovery_result salvaged;
    sj_error error = {0};
    bool delivered = false;
    const sj_status claimed = sj_recovery_claim_session(path, &claim);
    if (claimed != SJ_OK) {
        totals->in_use += claimed == SJ_EAGAIN;
        return;
    }
    if (request->only_for != NULL && strcmp(claim.destination, request->only_for) != 0) {
        sj_recovery_release(&claim, false);
        return;
    }
    if (destination == NULL && sj_spool_collector_read(claim.spool_directory, chosen)) {
        destination =
            chosen; /* the collector to which a device with several collectors sent the session */
    }
    sj_status status = sj_recovery_session(&claim, &salvaged, &error);
    totals->salvaged += salvaged.recovered;
    report_unreadable(request, &claim, &salvaged);
    if (status == SJ_OK && claim.destination[0] == '\0' && destination == NULL) {
        /* Its recorder died before it had frames to send. */
        delivered = true;
    } else if (status == SJ_OK) {
        status = deliver_spool(claim.spool_directory,
                               destination != NULL ? destination : claim.destination,
                               request->wait_ms, &error);
        delivered = status == SJ_OK;
        totals->delivered += delivered;
    }
    if (status != SJ_OK) {
        totals->kept += status != SJ_ECORRUPT;
        totals->refused += status == SJ_ECORRUPT;
        (void)sj_command_error(request->command, SJ_EXIT_FAILED, "%s: %s", claim.spool_directory,
                               error.text);
    }
    sj_recovery_release(&claim, delivered);
}

static uint64_t count_sessions(DIR *directory)
{
    uint64_t count = 0;
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        count += sj_recovery_is_claim_name(entry->d_name);
    }
    rewinddir(directory);
    return count;
}

sj_status sj_flush_spool(const sj_flush_request *request, sj_flush_totals *totals, sj_error *error)
{
    DIR *directory = opendir(request->root);
    *totals = (sj_flush_totals){0};
    if (directory == NULL) {
        return sj_fail(error, SJ_ENOTFOUND, "%s: %s", request->root, strerror(errno));
    }
    const sj_progress_work work = sj_progress_begin_list(count_sessions(directory));
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char path[PATH_MAX];
        if (!sj_recovery_is_claim_name(entry->d_name)) {
            continue;
        }
        const int written = snprintf(path, sizeof(path), "%s/%s", request->root, entry->d_name);
        if (written > 0 && (size_t)written < sizeof(path)) {
            flush_session(path, request, totals);
        }
        sj_progress_step(work);
    }
    sj_progress_end(work);
    closedir(directory);
    return SJ_OK;
}
