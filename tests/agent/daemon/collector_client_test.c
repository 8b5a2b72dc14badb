/* Tests that a frame's type is changed only if nothing of the frame is lost. */
#include "agent/daemon/collector_client.h"
#include "tests/support/check.h"

#include <string.h>

enum { FRAME_BYTES = 256 };

static size_t write_frame(uint8_t *frame, const char *payload)
{
    static const uint8_t header[] = "header";
    size_t size = 0;
    assert_int_equal(
        sj_frame_write(SJ_FRAME_HELLO, (sj_slice){.data = header, .size = sizeof(header)},
                       (sj_slice){.data = (const uint8_t *)payload, .size = strlen(payload)}, frame,
                       FRAME_BYTES, &size),
        SJ_OK);
    return size;
}

static void a_frame_without_payload_changes_its_type(void **state)
{
    uint8_t frame[FRAME_BYTES];
    sj_frame_view view;
    const size_t size = write_frame(frame, "");
    (void)state;
    assert_int_equal(sj_server_client_retype(frame, size, SJ_FRAME_ENROL), SJ_OK);
    assert_int_equal(sj_frame_read((sj_slice){.data = frame, .size = size}, &view), SJ_OK);
    assert_int_equal(view.type, SJ_FRAME_ENROL);
    assert_string_equal((const char *)view.header.data, "header");
}

static void a_frame_with_payload_is_refused_unchanged(void **state)
{
    uint8_t frame[FRAME_BYTES];
    sj_frame_view view;
    const size_t size = write_frame(frame, "payload");
    (void)state;
    assert_int_equal(sj_server_client_retype(frame, size, SJ_FRAME_ENROL), SJ_EINVAL);
    assert_int_equal(sj_frame_read((sj_slice){.data = frame, .size = size}, &view), SJ_OK);
    assert_int_equal(view.type, SJ_FRAME_HELLO);
    assert_int_equal(view.payload.size, strlen("payload"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_without_payload_changes_its_type),
        cmocka_unit_test(a_frame_with_payload_is_refused_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
