#include "collector-server/store/device_quota.h"

#include "proto/base/array.h"
#include "proto/base/units.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DAY_S = 86400 };

sj_status sj_device_quotas_begin(sj_device_quotas *quotas, sj_statements *sql, int64_t realtime_ns,
                                 sj_error *error)
{
    int64_t any = 0;
    quotas->count = 0;
    quotas->current = NULL;
    quotas->day = realtime_ns / (DAY_S * INT64_C(1000000000));
    SJ_TRY(sj_get_quota_any(sql, &any, error));
    quotas->are_in_use = any != 0 || quotas->usual.bytes != 0 || quotas->usual.sessions != 0;
    return SJ_OK;
}

void sj_device_quotas_deinit(sj_device_quotas *quotas)
{
    free(quotas->use);
}

static uint64_t limit_of(bool has_own, int64_t own, uint64_t usual)
{
    return has_own ? (uint64_t)own : usual;
}

/* Reads the quota of a device and its use today. A device that is not stored yet has the usual
 * quota. */
static sj_status read_use(const sj_device_quotas *quotas, sj_statements *sql,
                          const sj_sender *sender, sj_quota_use *use, sj_error *error)
{
    sj_quota_read_row row = {0};
    const sj_slice uuid = {.data = sender->device, .size = sizeof(sender->device)};
    const sj_status status =
        SJ_FIND(sql, quota_read, &row, error, .uuid = uuid, .day = quotas->day);
    if (status != SJ_OK && status != SJ_ENOTFOUND) {
        return status;
    }
    *use = (sj_quota_use){
        .limit = {.bytes = limit_of(row.has_bytes_limit, row.bytes_limit, quotas->usual.bytes),
                  .sessions =
                      limit_of(row.has_sessions_limit, row.sessions_limit, quotas->usual.sessions)},
        .used = {.bytes = row.bytes, .sessions = row.sessions},
        .refusals = row.refusals};
    memcpy(use->device, sender->device, sizeof(use->device));
    return SJ_OK;
}

static sj_status find_use(sj_device_quotas *quotas, sj_statements *sql, const sj_sender *sender,
                          sj_quota_use **use, sj_error *error)
{
    for (size_t i = quotas->count; i > 0; --i) {
        *use = &quotas->use[i - 1];
        if (memcmp((*use)->device, sender->device, sizeof(sender->device)) == 0) {
            return SJ_OK;
        }
    }
    SJ_TRY(
        sj_array_reserve(&quotas->use, &quotas->capacity, quotas->count, 1, sizeof(*quotas->use)));
    *use = &quotas->use[quotas->count];
    SJ_TRY(read_use(quotas, sql, sender, *use, error));
    quotas->count++;
    return SJ_OK;
}

static sj_status refuse(sj_device_quotas *quotas, uint64_t limit, const char *noun, sj_error *error)
{
    char when[32] = "";
    struct tm moment;
    const time_t end = (time_t)((quotas->day + 1) * DAY_S);
    if (gmtime_r(&end, &moment) != NULL) {
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", &moment);
    }
    quotas->current->refusals++;
    quotas->current->has_changed = true;
    return sj_fail(error, SJ_EQUOTA,
                   "the device's quota of %s a day is used up: the device keeps its records until "
                   "%s, when the collector stores them",
                   SJ_COUNTED(limit, noun), when);
}

static bool is_used_up(uint64_t used, uint64_t limit)
{
    return limit != 0 && used >= limit;
}

sj_status sj_device_quotas_check(sj_device_quotas *quotas, sj_statements *sql,
                                 const sj_frame_view *frame, const sj_sender *sender,
                                 sj_error *error)
{
    sj_quota_use *use = NULL;
    quotas->current = NULL;
    if (!quotas->are_in_use || sender == NULL || frame->type == SJ_FRAME_HELLO ||
        frame->type == SJ_FRAME_DEVICE_CLOCK) {
        return SJ_OK;
    }
    SJ_TRY(find_use(quotas, sql, sender, &use, error));
    if (use->limit.bytes == 0 && use->limit.sessions == 0) {
        return SJ_OK;
    }
    quotas->current = use;
    return is_used_up(use->used.bytes, use->limit.bytes)
               ? refuse(quotas, use->limit.bytes, "byte", error)
               : SJ_OK;
}

sj_status sj_device_quotas_check_session(sj_device_quotas *quotas, sj_error *error)
{
    const sj_quota_use *use = quotas->current;
    return use != NULL && is_used_up(use->used.sessions, use->limit.sessions)
               ? refuse(quotas, use->limit.sessions, "session", error)
               : SJ_OK;
}

void sj_device_quotas_count(sj_device_quotas *quotas, uint64_t bytes, bool is_new_session)
{
    if (quotas->current != NULL) {
        quotas->current->used.bytes += bytes;
        quotas->current->used.sessions += is_new_session;
        quotas->current->has_changed = true;
    }
}

sj_status sj_device_quotas_write(sj_device_quotas *quotas, sj_statements *sql, sj_error *error)
{
    for (size_t i = 0; i < quotas->count; ++i) {
        const sj_quota_use *use = &quotas->use[i];
        const sj_slice uuid = {.data = use->device, .size = sizeof(use->device)};
        if (use->has_changed) {
            SJ_TRY(SJ_RUN(sql, quota_note, error, .uuid = uuid, .day = quotas->day,
                          .bytes = use->used.bytes, .sessions = use->used.sessions,
                          .bytes_limit = use->limit.bytes, .sessions_limit = use->limit.sessions,
                          .refusals = use->refusals));
        }
    }
    return SJ_OK;
}
