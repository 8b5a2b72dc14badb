#include "collector-server/import/session_store.h"

#include <stdlib.h>
#include <zstd.h>

enum { FRAMES_A_COMMIT = 64, COMPRESSION_LEVEL = 3 };

sj_status sj_session_store_open(sj_session_store *target, const char *path, sj_error *error)
{
    *target = (sj_session_store){.error = error};
    target->frame = malloc(SJ_FRAME_MAX_BYTES);
    target->header = malloc(SJ_FRAME_MAX_HEADER_BYTES);
    if (target->frame == NULL || target->header == NULL) {
        return SJ_ENOMEM;
    }
    const sj_store_options options = {.path = path, .create = true};
    return sj_store_open(&options, &target->store, error);
}

sj_status sj_session_store_commit(sj_session_store *target)
{
    if (!target->is_open) {
        return SJ_OK;
    }
    target->is_open = false;
    target->uncommitted = 0;
    return sj_store_commit(target->store, target->error);
}

sj_status sj_session_store_put(sj_session_store *target, sj_frame_type type,
                               const ProtobufCMessage *message, sj_slice payload)
{
    sj_slice header = {.data = target->header};
    if (message != NULL) {
        header.size = protobuf_c_message_get_packed_size(message);
        if (header.size > SJ_FRAME_MAX_HEADER_BYTES) {
            return sj_fail(target->error, SJ_ELIMIT, "a text of the file is too long");
        }
        (void)protobuf_c_message_pack(message, target->header);
    }
    size_t size = 0;
    sj_frame_view view;
    SJ_TRY(sj_frame_write(type, header, payload, target->frame, SJ_FRAME_MAX_BYTES, &size));
    SJ_TRY(sj_frame_read((sj_slice){.data = target->frame, .size = size}, &view));
    if (!target->is_open) {
        SJ_TRY(sj_store_begin(target->store, target->error));
        target->is_open = true;
    }
    bool duplicate = false;
    SJ_TRY(sj_store_apply(target->store, &view, NULL, &duplicate, target->error));
    return ++target->uncommitted >= FRAMES_A_COMMIT ? sj_session_store_commit(target) : SJ_OK;
}

sj_status sj_session_store_put_packed(sj_session_store *target, sj_frame_type type,
                                      const ProtobufCMessage *message, sj_slice raw)
{
    const size_t bound = ZSTD_compressBound(raw.size);
    uint8_t *packed = malloc(bound);
    if (packed == NULL) {
        return SJ_ENOMEM;
    }
    const size_t size = ZSTD_compress(packed, bound, raw.data, raw.size, COMPRESSION_LEVEL);
    const sj_status status =
        ZSTD_isError(size)
            ? SJ_ENOMEM
            : sj_session_store_put(target, type, message, (sj_slice){.data = packed, .size = size});
    free(packed);
    return status;
}

void sj_session_store_close(sj_session_store *target)
{
    if (target->is_open) {
        sj_store_rollback(target->store);
    }
    if (target->store != NULL) {
        sj_store_close(target->store);
    }
    free(target->frame);
    free(target->header);
    *target = (sj_session_store){0};
}
