#include "agent/daemon/shipper.h"

#include "agent/daemon/session_list.h"
#include "agent/recording/recovery.h"
#include "agent/uplink/nng_channel.h"
#include "agent/uplink/spool_aside.h"
#include "agent/uplink/spool_collector.h"
#include "agent/uplink/uplink.h"
#include "proto/base/log.h"
#include "proto/base/units.h"
#include "proto/wire/ack_status.h"

#include <string.h>

/* A round ends after MOST_OVER_QUOTA sessions that a quota kept back, because each try costs a
 * connection. */
enum { SLICE_MS = 200, STALLED_SLICES = 50, MOST_OVER_QUOTA = 8 };

typedef struct shipping {
    sj_shipper *shipper;
    unsigned kept;
    /* Collectors that did not reply in this round. */
    bool is_away[SJ_COLLECTORS_MAX];
    unsigned over_quota; /* Sessions of this round that a quota kept back. */
    bool are_all_away;   /* No collector replied for a session that may go to any. */
} shipping;

/* Returns the `is_away` flag of the collector that the session belongs to. Returns NULL if the
 * session may go to any collector. */
static bool *collector_of(shipping *all, const char *directory)
{
    char url[SJ_SPOOL_COLLECTOR_BYTES];
    const sj_enrolment *enrolment = all->shipper->enrolment;
    const bool is_chosen = sj_spool_collector_read(directory, url);
    for (size_t i = 0; is_chosen && i < enrolment->count; ++i) {
        if (strcmp(enrolment->collectors[i].url, url) == 0) {
            return &all->is_away[i];
        }
    }
    return NULL;
}

/* True if the session's collector, or every collector, did not reply earlier in this round. */
static bool is_in_vain(shipping *all, const char *directory)
{
    const bool *is_away = collector_of(all, directory);
    return all->are_all_away || (is_away != NULL && *is_away);
}

/* Notes after a timeout which collector is away. If the session may go to any, or if there is only
 * one, all are away. */
static void note_away(shipping *all, const char *directory)
{
    bool *is_away = collector_of(all, directory);
    if (is_away != NULL && all->shipper->enrolment->count > 1) {
        *is_away = true;
    } else {
        all->are_all_away = true;
    }
}

/* Waits while the collector accepts frames. Returns SJ_OK if all were delivered. Returns
 * SJ_ETIMEDOUT if the collector refuses or stalls or the daemon ends, and SJ_EQUOTA if the device's
 * quota is used up. */
static sj_status wait_for_delivery(const sj_shipper *shipper, sj_uplink *uplink, sj_error *error)
{
    uint64_t last = 0;
    unsigned stalled = 0;
    while (!atomic_load(&shipper->stop) && stalled < STALLED_SLICES) {
        sj_uplink_status now;
        const sj_status status = sj_uplink_drain(uplink, SLICE_MS);
        sj_uplink_get_status(uplink, &now);
        if (status == SJ_OK) {
            return SJ_OK;
        }
        if (status == SJ_EPERM) {
            sj_log(SJ_LOG_ERROR, "refused", "the collector refuses: %s", now.message);
            return SJ_ETIMEDOUT;
        }
        if (now.is_over_quota) {
            return sj_fail(error, SJ_EQUOTA, "%s", now.message);
        }
        stalled = now.acknowledged_frames == last ? stalled + 1 : 0;
        last = now.acknowledged_frames;
    }
    return SJ_ETIMEDOUT;
}

static sj_status deliver(const sj_shipper *shipper, const char *directory, sj_error *error)
{
    const sj_spool_options options = {.directory = directory};
    sj_spool *spool = NULL;
    sj_uplink *uplink = NULL;
    SJ_TRY(sj_spool_open(&options, &spool, error));
    const sj_session_uplink session = {.device = shipper->device,
                                       .directory = directory,
                                       .collectors = shipper->enrolment->collectors,
                                       .collector_count = shipper->enrolment->count,
                                       .is_chosen_once = true,
                                       .link = {.channel = &sj_channel_nng}};
    sj_status status = sj_session_uplink_start(&session, spool, &uplink, error);
    if (status == SJ_OK) {
        status = wait_for_delivery(shipper, uplink, error);
        sj_uplink_stop(uplink);
    }
    if (status == SJ_OK && sj_spool_remove(spool, error) == SJ_OK) {
        return SJ_OK;
    }
    sj_spool_close(spool);
    return status != SJ_OK ? status : SJ_ETIMEDOUT;
}

/* Logs frames of a session that the collector finally refused. Returns false if there are none. */
static bool was_refused(const sj_listed_session *session, const char *directory)
{
    sj_spool_aside aside;
    char text[SJ_ASIDE_TEXT_BYTES];
    if (!sj_spool_aside_read(directory, &aside)) {
        return false;
    }
    sj_log(SJ_LOG_ERROR, "refused", "session %s: %s", session->session,
           sj_spool_aside_text(&aside, directory, text));
    return true;
}

/* Logs why a session was kept. A quota keeps sessions for hours: it is logged once. */
static void log_undelivered(sj_shipper *shipper, const sj_listed_session *session, sj_status status,
                            const sj_error *error)
{
    if (status != SJ_EQUOTA) {
        sj_log(SJ_LOG_ERROR, "undelivered", "session %s: %s", session->session, error->text);
    } else if (strcmp(shipper->quota.text, error->text) != 0) {
        shipper->quota = *error;
        sj_log(SJ_LOG_WARN, "quota", "%s", error->text);
    }
}

static bool ship_session(void *context, const sj_listed_session *session)
{
    shipping *all = context;
    sj_recovery_claim claim;
    sj_recovery_result salvaged;
    sj_error error = {0};
    if (session->is_recording || session->is_set_aside ||
        sj_recovery_claim_session(session->path, &claim) != SJ_OK) {
        return true;
    }
    sj_status status = sj_recovery_session(&claim, &salvaged, &error);
    if (salvaged.recovered) {
        sj_log(SJ_LOG_WARN, "salvaged", "finished session %s, whose recorder was killed",
               session->session);
    }
    if (salvaged.unreadable_processes != 0) {
        sj_log(SJ_LOG_WARN, "unreadable",
               "session %s: the records of %s are lost: another version of Sojourn "
               "wrote them, or they are damaged",
               session->session, SJ_COUNTED(salvaged.unreadable_processes, "process"));
    }
    if (status == SJ_OK) {
        status = is_in_vain(all, claim.spool_directory)
                     ? SJ_ETIMEDOUT
                     : deliver(all->shipper, claim.spool_directory, &error);
    }
    if (status == SJ_ETIMEDOUT) {
        note_away(all, claim.spool_directory);
    }
    if (status != SJ_OK) {
        all->kept++;
        all->over_quota += status == SJ_EQUOTA;
        if (error.text[0] != '\0') {
            log_undelivered(all->shipper, session, status, &error);
        }
    }
    const bool is_over = status == SJ_OK && !was_refused(session, claim.spool_directory);
    sj_recovery_release(&claim, is_over);
    /* If no collector replies, the other sessions would wait as long without success. */
    return !all->are_all_away && all->over_quota < MOST_OVER_QUOTA &&
           !atomic_load(&all->shipper->stop);
}

unsigned sj_shipper_round(sj_shipper *shipper)
{
    shipping all = {.shipper = shipper};
    sj_error error = {0};
    if (sj_session_list(shipper->spool_root, ship_session, &all, &error) != SJ_OK) {
        sj_log(SJ_LOG_ERROR, "spool", "%s", error.text);
    }
    return all.kept;
}
