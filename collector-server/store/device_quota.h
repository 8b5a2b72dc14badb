/* Limits what a device may have stored in a day, by time of receipt (UTC): bytes of frames and new
 * sessions. A frame beyond the quota is refused with SJ_EQUOTA, and the batch continues; its device
 * keeps the frame. The frame that crosses the limit of bytes is still stored.
 *
 * Quotas and their use are read when a device's first frame of a batch comes, and written by the
 * commit. So they hold across restarts, and a rollback counts nothing. */
#ifndef SJ_COLLECTOR_SERVER_STORE_DEVICE_QUOTA_H
#define SJ_COLLECTOR_SERVER_STORE_DEVICE_QUOTA_H

#include "collector-server/store/sender.h"
#include "collector-server/store/statements.h"
#include "proto/wire/ack_status.h"
#include "proto/wire/frame.h"

#include <stddef.h>

/* The most that is stored of a device in a day. 0: no limit. */
typedef struct sj_quota {
    uint64_t bytes;
    uint64_t sessions;
} sj_quota;

/* The use of a device's quota on the day of the batch. */
typedef struct sj_quota_use {
    uint8_t device[SJ_SENDER_DEVICE_BYTES];
    sj_quota limit;
    sj_quota used;
    uint64_t refusals; /* refused frames of the day */
    bool has_changed;  /* the values differ from the stored row */
} sj_quota_use;

/* Initialise with zeros, except for `usual`. */
typedef struct sj_device_quotas {
    sj_quota usual;    /* the quota of a device without a quota of its own */
    int64_t day;       /* days since the Unix epoch, UTC */
    bool are_in_use;   /* some device has a quota */
    sj_quota_use *use; /* the devices of the batch */
    size_t count, capacity;
    /* use of the sender of the current frame; NULL: the sender has no quota */
    sj_quota_use *current;
} sj_device_quotas;

/* Begins a batch at the time `realtime_ns`. Call it in a transaction. */
SJ_MUST_CHECK sj_status sj_device_quotas_begin(sj_device_quotas *quotas, sj_statements *sql,
                                               int64_t realtime_ns, sj_error *error);
void sj_device_quotas_deinit(sj_device_quotas *quotas);

/* Selects the sender of the next frame, and refuses the frame if the sender's bytes are used up. A
 * HELLO or DEVICE_CLOCK frame is never refused: a device needs HELLO to connect, and does not keep
 * DEVICE_CLOCK frames. `sender` is NULL for frames of this process, which have no quota. */
SJ_MUST_CHECK sj_status sj_device_quotas_check(sj_device_quotas *quotas, sj_statements *sql,
                                               const sj_frame_view *frame, const sj_sender *sender,
                                               sj_error *error);

/* Refuses a new session of the current sender if the sender's sessions are used up. */
SJ_MUST_CHECK sj_status sj_device_quotas_check_session(sj_device_quotas *quotas, sj_error *error);

/* Counts a frame of the current sender that was stored. */
void sj_device_quotas_count(sj_device_quotas *quotas, uint64_t bytes, bool is_new_session);

/* Writes the rows that changed in the batch. */
SJ_MUST_CHECK sj_status sj_device_quotas_write(sj_device_quotas *quotas, sj_statements *sql,
                                               sj_error *error);

#endif
