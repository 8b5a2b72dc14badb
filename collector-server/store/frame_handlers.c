/* Design notes
 *
 * Metadata frames run in a savepoint. A frame that contradicts itself changes nothing, and the
 * batch continues. A frame of an unknown type is refused. */
#include "collector-server/store/frame_handlers.h"
#include "collector-server/store/store_internal.h"

#include <stdio.h>

typedef struct frame_handler {
    sj_frame_type type;
    const ProtobufCMessageDescriptor *descriptor; /* NULL: the header is not unpacked */
    sj_frame_apply *apply;
    bool in_savepoint;
} frame_handler;

#define HANDLER_ROW(type, message)                                                                 \
    {SJ_FRAME_##type, &sojourn__##message##__descriptor, sj_store_apply_##message, true},

static const frame_handler handlers[] = {{SJ_FRAME_BLOCK, NULL, sj_store_apply_block, false},
                                         SJ_FRAME_HANDLERS(HANDLER_ROW)};

static const frame_handler *find_handler(uint16_t type)
{
    for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); ++i) {
        if (handlers[i].type == type) {
            return &handlers[i];
        }
    }
    return NULL;
}

/* Rolls back to the savepoint, and drops the cached streams whose rows are gone. */
static sj_status roll_back_frame(sj_store *store, sj_error *error)
{
    SJ_TRY(sj_run_rollback_to(&store->sql, error));
    return store->touched != NULL
               ? sj_session_forget_new_streams(&store->sql, store->touched, error)
               : SJ_OK;
}

static sj_status apply_in_savepoint(sj_store *store, const frame_handler *handler,
                                    sj_frame_input *input, sj_error *error)
{
    sj_error problem = {0};
    SJ_TRY(sj_run_savepoint(&store->sql, error));
    const sj_status status = handler->apply(store, input, error);
    sj_status ended = status != SJ_OK ? roll_back_frame(store, &problem) : SJ_OK;
    if (ended == SJ_OK) {
        ended = sj_run_release(&store->sql, &problem);
    }
    if (ended != SJ_OK) { /* a failure of the store, not of the frame */
        *error = problem;
        return ended;
    }
    return status;
}

static sj_status apply(sj_store *store, const sj_frame_view *frame, bool *duplicate,
                       sj_error *error)
{
    const frame_handler *handler = find_handler(frame->type);
    if (handler == NULL) {
        return sj_fail(error, SJ_EUNSUPPORTED, "this collector does not know frame type %u",
                       frame->type);
    }
    sj_frame_input input = {.payload = frame->payload};
    ProtobufCAllocator allocator = sj_store_allocator(store);
    if (handler->descriptor != NULL) {
        input.message = protobuf_c_message_unpack(handler->descriptor, &allocator,
                                                  frame->header.size, frame->header.data);
        if (input.message == NULL) {
            return sj_fail(error, SJ_ECORRUPT, "the header of a frame of type %u cannot be read",
                           frame->type);
        }
    }
    store->touched = NULL;
    const sj_status status = handler->in_savepoint
                                 ? apply_in_savepoint(store, handler, &input, error)
                                 : handler->apply(store, &input, error);
    *duplicate = input.is_duplicate;
    return status == SJ_OK && store->touched != NULL
               ? sj_store_note_receipt(store, store->touched, error)
               : status;
}

/* Applies a frame unless the sender's quota is used up. If the quota refused the frame that
 * announces a session, the store does not know the session. Later frames of that session then
 * return SJ_EQUOTA, too, so that their sender keeps them. */
static sj_status apply_within_quota(sj_store *store, const sj_frame_view *frame, bool *duplicate,
                                    sj_error *error)
{
    sj_error problem = {0};
    SJ_TRY(sj_device_quotas_check(&store->quotas, &store->sql, frame, store->sender, error));
    const sj_status status = apply(store, frame, duplicate, error);
    if (status == SJ_OK && !*duplicate) {
        sj_device_quotas_count(&store->quotas, frame->frame_bytes, store->begins_session);
    }
    if (status == SJ_ENOTFOUND && store->touched == NULL &&
        sj_device_quotas_check_session(&store->quotas, &problem) != SJ_OK) {
        *error = problem;
        return SJ_EQUOTA;
    }
    return status;
}

/* Reports that the database is damaged although the frame is sound. This refuses the batch, so that
 * devices keep their frames until the database is repaired. */
static sj_status say_damage(const sj_store *store, sj_error *error)
{
    char why[sizeof(error->text)];
    snprintf(why, sizeof(why), "%s", error->text);
    return sj_fail(error, SJ_EIO,
                   "%s is damaged (%.200s), and devices keep what they have; `sojourn verify` says "
                   "where, `sojourn restore` puts a copy in place",
                   store->path, why);
}

sj_status sj_store_apply(sj_store *store, const sj_frame_view *frame, const sj_sender *sender,
                         bool *duplicate, sj_error *error)
{
    *duplicate = false;
    error->text[0] = '\0';
    if (!store->in_batch) {
        return sj_fail(error, SJ_EINVAL, "no batch is open");
    }
    store->sender = sender != NULL && sender->is_peer ? sender : NULL;
    store->foreign_session = 0;
    store->begins_session = false;
    store->sql.met_damage = false;
    sj_status status = apply_within_quota(store, frame, duplicate, error);
    store->sender = NULL;
    if (status == SJ_ECORRUPT && store->sql.met_damage) {
        status = say_damage(store, error);
    }
    if (status == SJ_EINVAL && store->foreign_session != 0) {
        const sj_slice uuid = {.data = sender->device, .size = sizeof(sender->device)};
        sj_error problem = {0};
        store->counters.foreign++;
        const sj_status noted = SJ_RUN(
            &store->sql, refused_note, &problem, .session_id = store->foreign_session,
            .sender_uuid = uuid, .reason = error->text, .now_realtime_ns = sj_store_realtime_ns());
        if (noted != SJ_OK) {
            *error = problem;
            status = noted;
        }
    }
    return sj_store_explain(status, error);
}
