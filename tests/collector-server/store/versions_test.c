/* Frames of other versions: golden bytes of version 1, and frames of a later minor version.
 *
 *   versions_test FILE   compares with the golden bytes in FILE; writes FILE if SJ_MAKE_GOLDEN is
 *                        set, which a new version needs */
#include "tests/collector-server/store/lab_file.h"

#include "proto/base/crc32c.h"
#include "proto/wire/sojourn.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GOLDEN_MAX_BYTES = 1 << 20, CRC_AT = 16 };

static const char *golden_path;

static void write_frame(FILE *file, sj_slice frame)
{
    assert_int_equal(fwrite(frame.data, 1, frame.size, file), frame.size);
}

static int make_golden(void)
{
    frame_maker maker;
    FILE *file = fopen(golden_path, "wb");
    if (file == NULL) {
        return 1;
    }
    frame_maker_init(&maker, 1);
    write_frame(file, frame_maker_hello(&maker));
    write_frame(file, frame_maker_session(&maker));
    write_frame(file, frame_maker_module(&maker));
    write_frame(file, frame_maker_thread(&maker));
    write_frame(file, frame_maker_block(&maker, 600, 0));
    write_frame(file, frame_maker_block(&maker, 400, SJ_BLOCK_LAST));
    write_frame(file, frame_maker_mark(&maker, 1));
    write_frame(file, frame_maker_end(&maker));
    frame_maker_deinit(&maker);
    return fclose(file);
}

static void frames_of_version_1_are_stored_as_ever(void **state)
{
    lab_file *lab = *state;
    static uint8_t bytes[GOLDEN_MAX_BYTES];
    FILE *file = fopen(golden_path, "rb");
    assert_non_null(file);
    const size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    lab_file_begin(lab);
    size_t at = 0;
    int frames = 0;
    for (; at < size; ++frames) {
        sj_frame_view view;
        bool duplicate = true;
        assert_int_equal(sj_frame_read((sj_slice){.data = bytes + at, .size = size - at}, &view),
                         SJ_OK);
        assert_int_equal(view.major, 1);
        assert_int_equal(sj_store_apply(lab->store, &view, NULL, &duplicate, &lab->error), SJ_OK);
        assert_false(duplicate);
        at += view.frame_bytes;
    }
    lab_file_commit(lab);
    assert_int_equal(frames, 8);
    lab_file_expect(lab, "SELECT name, machine FROM devices", "bench-1|x86_64|\n");
    lab_file_expect(
        lab, "SELECT stored_blocks, stored_events, stored_calls = sent_calls, state FROM sessions",
        "2|1000|1|completed|\n");
    lab_file_expect(lab, "SELECT name FROM functions WHERE function_id IN (1, 2)",
                    "function_0|\nfoo_001(int)|\n");
    lab_file_expect(
        lab,
        "SELECT (SELECT sum(calls) FROM call_paths) = (SELECT sum(event_count - call_count) "
        "FROM blocks), (SELECT count(*) FROM marks), (SELECT count(*) FROM threads)",
        "1|1|1|\n");
}

/* Returns a frame as a later minor version may send it: with its minor, and with an unknown
 * field. */
static sj_slice of_later_minor(sj_slice frame, uint8_t *output, size_t capacity)
{
    static const uint8_t unknown_field[] = {0xfa, 0x06, 3, 'n', 'e', 'w'}; /* 111: bytes */
    uint8_t header[4096];
    sj_frame_view view;
    size_t size = 0;
    assert_int_equal(sj_frame_read(frame, &view), SJ_OK);
    assert_true(view.header.size + sizeof(unknown_field) <= sizeof(header));
    memcpy(header, view.header.data, view.header.size);
    memcpy(header + view.header.size, unknown_field, sizeof(unknown_field));
    const sj_slice longer = {.data = header, .size = view.header.size + sizeof(unknown_field)};
    assert_int_equal(sj_frame_write(view.type, longer, view.payload, output, capacity, &size),
                     SJ_OK);
    output[5] = SJ_FRAME_MINOR + 7;
    const uint32_t crc = sj_crc32c(sj_crc32c(0, output, CRC_AT), output + SJ_FRAME_PREFIX_BYTES,
                                   size - SJ_FRAME_PREFIX_BYTES);
    memcpy(output + CRC_AT, &crc, sizeof(crc));
    return (sj_slice){.data = output, .size = size};
}

static void fields_of_a_later_minor_version_are_skipped(void **state)
{
    lab_file *lab = *state;
    static uint8_t output[GOLDEN_MAX_BYTES];
    lab_file_begin(lab);
    lab_file_put(lab, of_later_minor(frame_maker_hello(&lab->maker), output, sizeof(output)));
    lab_file_put(lab, of_later_minor(frame_maker_session(&lab->maker), output, sizeof(output)));
    lab_file_put(lab, of_later_minor(frame_maker_module(&lab->maker), output, sizeof(output)));
    lab_file_put(lab, frame_maker_block(&lab->maker, 500, 0));
    lab_file_put(lab, of_later_minor(frame_maker_end(&lab->maker), output, sizeof(output)));
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT stored_blocks, state FROM sessions",
                    "2|completed|\n"); /* one block ends the open calls */
}

static void frame_types_of_a_later_version_are_refused_by_name(void **state)
{
    lab_file *lab = *state;
    bool duplicate = false;
    lab_file_put_metadata(lab);
    lab_file_begin(lab);
    assert_int_equal(lab_file_apply(lab,
                                    frame_maker_wrap(&lab->maker, 31, (sj_slice){0}, (sj_slice){0}),
                                    &duplicate),
                     SJ_EUNSUPPORTED);
    assert_non_null(strstr(lab->error.text, "frame type 31"));
    lab_file_put(lab, frame_maker_block(&lab->maker, 500, 0));
    lab_file_commit(lab);
    lab_file_expect(lab, "SELECT count(*) FROM blocks", "1|\n");
}

static void another_major_version_is_reported_as_such(void **state)
{
    lab_file *lab = *state;
    static uint8_t copy[4096];
    sj_frame_view view;
    const sj_slice hello = frame_maker_hello(&lab->maker);
    memcpy(copy, hello.data, hello.size);
    copy[4] = SJ_FRAME_MAJOR + 1;
    assert_int_equal(sj_frame_read((sj_slice){.data = copy, .size = hello.size}, &view),
                     SJ_EVERSION);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        return 2;
    }
    golden_path = argv[1];
    if (getenv("SJ_MAKE_GOLDEN") != NULL) {
        return make_golden();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_of_version_1_are_stored_as_ever, lab_file_set_up,
                                        lab_file_tear_down),
        cmocka_unit_test_setup_teardown(fields_of_a_later_minor_version_are_skipped,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(frame_types_of_a_later_version_are_refused_by_name,
                                        lab_file_set_up, lab_file_tear_down),
        cmocka_unit_test_setup_teardown(another_major_version_is_reported_as_such, lab_file_set_up,
                                        lab_file_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
