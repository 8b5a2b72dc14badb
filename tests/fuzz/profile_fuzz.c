/* Decodes arbitrary bytes as a profile, without zstd, which would stop a fuzzer. If bit 0 of the
 * first byte is set, the sums of the frame do not match; the rest is the profile. The profile is
 * then stored in a session that has a module. */
#include "collector-server/store/store.h"
#include "proto/callgraph/profile.h"
#include "tests/collector-server/store/frame_maker.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool apply(sj_store *store, sj_slice frame)
{
    sj_frame_view view;
    bool duplicate = false;
    sj_error error = {0};
    if (sj_frame_read(frame, &view) != SJ_OK) {
        abort();
    }
    const sj_status status = sj_store_apply(store, &view, NULL, &duplicate, &error);
    if (status == SJ_EIO || status == SJ_ENOMEM || status == SJ_EFULL) {
        fprintf(stderr, "a lying profile was taken for a failing disk: %s\n", error.text);
        abort();
    }
    return status == SJ_OK;
}

/* Returns the sums for the profile's frame. Aborts if the decoded profile breaks a promise. */
static sj_block_header check_profile(const sj_profile *profile)
{
    sj_block_header sums = {.first_ticks = FRAME_MAKER_STARTED_TICKS,
                            .last_ticks = FRAME_MAKER_STARTED_TICKS + 1000};
    for (uint32_t i = 0; i < profile->count; i++) {
        if (profile->nodes[i].parent > i) {
            abort();
        }
        sums.call_count += profile->nodes[i].calls;
    }
    for (uint32_t i = 0; i < profile->open_count; i++) {
        if (profile->open_calls[i].stream == 0 || profile->open_calls[i].start_ticks > INT64_MAX) {
            abort();
        }
    }
    return sums;
}

static void store(sj_slice raw, const sj_block_header *sums)
{
    static frame_maker maker;
    sj_error error = {0};
    sj_store *opened = NULL;
    const sj_store_options options = {.path = ":memory:", .create = true};
    if (maker.encoder == NULL) {
        frame_maker_init(&maker, 1);
    }
    if (sj_store_open(&options, &opened, &error) != SJ_OK ||
        sj_store_begin(opened, &error) != SJ_OK || !apply(opened, frame_maker_session(&maker)) ||
        !apply(opened, frame_maker_module(&maker))) {
        abort();
    }
    (void)apply(opened, frame_maker_profile(&maker, 1, sums, raw));
    if (sj_store_commit(opened, &error) != SJ_OK) {
        fprintf(stderr, "the batch was lost: %s\n", error.text);
        abort();
    }
    sj_store_close(opened);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sj_profile profile = {0};
    if (size < 1) {
        return 0;
    }
    const sj_slice raw = {.data = data + 1, .size = size - 1};
    if (sj_profile_decode(raw, &profile) != SJ_OK) {
        return 0;
    }
    sj_block_header sums = check_profile(&profile);
    sums.call_count += data[0] & 1;
    sj_profile_deinit(&profile);
    store(raw, &sums);
    return 0;
}
