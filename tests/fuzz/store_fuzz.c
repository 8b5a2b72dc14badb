/* Applies frames with inconsistent contents after a valid session and module. The input is a list
 * of u8 type, u16 header bytes, u32 payload bytes, header, payload. The crc of a block's payload is
 * corrected, so that the checks behind it are reached. A frame may be refused, but the batch must
 * commit. */
#include "collector-server/store/store.h"
#include "proto/base/crc32c.h"
#include "proto/block/block.h"
#include "tests/collector-server/store/frame_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool apply(sj_store *store, const sj_frame_view *view)
{
    bool duplicate = false;
    sj_error error = {0};
    const sj_status status = sj_store_apply(store, view, NULL, &duplicate, &error);
    if (status == SJ_EIO || status == SJ_ENOMEM || status == SJ_EFULL) {
        fprintf(stderr, "a lying frame was taken for a failing disk: %s\n", error.text);
        abort();
    }
    return status == SJ_OK;
}

static void apply_frame(sj_store *store, sj_slice frame)
{
    sj_frame_view view;
    if (sj_frame_read(frame, &view) != SJ_OK || !apply(store, &view)) {
        abort();
    }
}

static void apply_input(sj_store *store, const uint8_t *data, size_t size)
{
    sj_reader reader = sj_reader_of(data, size);
    while (sj_reader_left(&reader) > 7) {
        sj_frame_view view = {.major = SJ_FRAME_MAJOR};
        view.type = sj_read_u8(&reader);
        view.header.size = sj_read_u16(&reader);
        view.payload.size = sj_read_u32(&reader);
        view.header.data = sj_read_bytes(&reader, view.header.size);
        const uint8_t *payload = sj_read_bytes(&reader, view.payload.size);
        if (reader.bad) {
            return;
        }
        uint8_t *copy = malloc(view.payload.size + 1);
        memcpy(copy, payload, view.payload.size);
        if (view.type == SJ_FRAME_BLOCK && view.payload.size > 4) {
            const uint32_t crc = sj_crc32c(0, copy, view.payload.size - 4);
            memcpy(copy + view.payload.size - 4, &crc, 4);
        }
        view.payload.data = copy;
        apply(store, &view);
        free(copy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static frame_maker maker;
    sj_error error = {0};
    sj_store *store = NULL;
    const sj_store_options options = {.path = ":memory:", .create = true};
    if (maker.encoder == NULL) {
        frame_maker_init(&maker, 1);
    }
    if (sj_store_open(&options, &store, &error) != SJ_OK ||
        sj_store_begin(store, &error) != SJ_OK) {
        abort();
    }
    apply_frame(store, frame_maker_session(&maker));
    apply_frame(store, frame_maker_module(&maker));
    apply_input(store, data, size);
    if (sj_store_commit(store, &error) != SJ_OK) {
        fprintf(stderr, "the batch was lost: %s\n", error.text);
        abort();
    }
    sj_store_close(store);
    return 0;
}
