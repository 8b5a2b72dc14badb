/* The machine of a spool loses power. Writes that were not synced are kept, lost or torn, in any
 * combination. The spool returns the frames that the disk kept, and never a frame that was not
 * appended.
 *
 * The linker redirects the spool's calls here. They are executed and noted. For a crash after any
 * of them, the test builds a folder that the disk may then contain. */
#include "agent/uplink/spool.h"

#include "tests/support/check.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FRAMES = 24,
    PAYLOAD_BYTES = 900,
    FRAME_BYTES = PAYLOAD_BYTES + 64,
    SEGMENT_BYTES = 4000,
    STEPS = 400,
    FILES = 32,
    DESCRIPTORS = 256,
    NAME_BYTES = 32
};

typedef enum step_kind { CREATE, WRITE, CUT, UNLINK, SYNC } step_kind;

typedef struct step {
    step_kind kind;
    unsigned file;
    int frame; /* frame that a WRITE appends; -1: none */
    uint64_t offset;
    size_t size;
    uint8_t bytes[FRAME_BYTES];
} step;

/* The effect of a step on the disk. */
typedef enum outcome { KEPT, LOST, TORN, EMPTY } outcome;

static step steps[STEPS];
static size_t step_count;
static char files[FILES][NAME_BYTES];
static unsigned file_count;
static unsigned file_of[DESCRIPTORS];
static bool is_noting;
static int appended = -1; /* The frame that is being appended. */
static size_t
    acknowledged_at[FRAMES]; /* The step before which a frame was acknowledged. 0: never. */
static char folder[64], image[64];

static unsigned find_file(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    for (unsigned i = 0; i < file_count; i++) {
        if (strcmp(files[i], name) == 0) {
            return i;
        }
    }
    assert_true(file_count < FILES && strlen(name) < NAME_BYTES);
    strcpy(files[file_count], name);
    return file_count++;
}

static step *note(step_kind kind, unsigned file)
{
    assert_true(step_count < STEPS);
    steps[step_count] = (step){.kind = kind, .file = file, .frame = -1};
    return &steps[step_count++];
}

int __real_open(const char *path, int flags, ...);
ssize_t __real_pwrite(int file, const void *bytes, size_t size, off_t offset);
int __real_ftruncate(int file, off_t size);
int __real_unlink(const char *path);
int __real_fdatasync(int file);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_pwrite(int file, const void *bytes, size_t size, off_t offset);
int __wrap_ftruncate(int file, off_t size);
int __wrap_unlink(const char *path);
int __wrap_fdatasync(int file);

int __wrap_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    const bool is_there = access(path, F_OK) == 0;
    const int file = __real_open(path, flags, mode);
    if (is_noting && file >= 0) {
        assert_true(file < DESCRIPTORS);
        file_of[file] = find_file(path);
        if (!is_there) {
            note(CREATE, file_of[file]);
        }
    }
    return file;
}

ssize_t __wrap_pwrite(int file, const void *bytes, size_t size, off_t offset)
{
    if (is_noting) {
        step *made = note(WRITE, file_of[file]);
        assert_true(size <= sizeof(made->bytes));
        made->frame = appended;
        made->offset = (uint64_t)offset;
        made->size = size;
        memcpy(made->bytes, bytes, size);
    }
    return __real_pwrite(file, bytes, size, offset);
}

int __wrap_ftruncate(int file, off_t size)
{
    if (is_noting) {
        note(CUT, file_of[file])->offset = (uint64_t)size;
    }
    return __real_ftruncate(file, size);
}

int __wrap_unlink(const char *path)
{
    const int result = __real_unlink(path);
    if (is_noting && result == 0) {
        note(UNLINK, find_file(path));
    }
    return result;
}

int __wrap_fdatasync(int file)
{
    if (is_noting) {
        note(SYNC, file_of[file]);
    }
    return __real_fdatasync(file);
}

static void clean(const char *path)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf %s", path);
    assert_int_equal(system(command), 0);
}

static sj_slice make_frame(uint8_t number)
{
    static uint8_t payload[PAYLOAD_BYTES];
    static uint8_t frame[FRAME_BYTES];
    size_t size = 0;
    memset(payload, number, sizeof(payload));
    assert_int_equal(sj_frame_write(SJ_FRAME_BLOCK, (sj_slice){0},
                                    (sj_slice){.data = payload, .size = sizeof(payload)}, frame,
                                    sizeof(frame), &size),
                     SJ_OK);
    return (sj_slice){.data = frame, .size = size};
}

static sj_spool *open_spool(const char *path)
{
    sj_spool *spool = NULL;
    sj_error error = {0};
    const sj_spool_options options = {
        .directory = path, .reserve_bytes = 1, .segment_bytes = SEGMENT_BYTES};
    if (sj_spool_open(&options, &spool, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    return spool;
}

static void append(sj_spool *spool, uint8_t number)
{
    sj_error error;
    const sj_slice frame = make_frame(number);
    appended = number < FRAMES ? number : -1;
    assert_int_equal(sj_spool_append(spool, frame, &error), SJ_OK);
    appended = -1;
}

/* Returns the number of the next frame, or -1 if there is none. Damaged frames are skipped. */
static int next_number(sj_spool *spool, uint64_t *position)
{
    sj_slice bytes;
    sj_frame_view frame;
    sj_status status;
    do {
        status = sj_spool_next(spool, &bytes, position);
    } while (status == SJ_ECORRUPT);
    if (status == SJ_EAGAIN) {
        return -1;
    }
    assert_int_equal(status, SJ_OK);
    assert_int_equal(sj_frame_read(bytes, &frame), SJ_OK);
    assert_int_equal(frame.payload.size, PAYLOAD_BYTES);
    const uint8_t number = frame.payload.data[0];
    const sj_slice same = make_frame(number);
    assert_memory_equal(bytes.data, same.data, same.size);
    return number;
}

/* Reads two frames. The collector acknowledges the second one first. */
static void acknowledge_two(sj_spool *spool)
{
    uint64_t positions[2];
    int numbers[2];
    for (int i = 0; i < 2; i++) {
        numbers[i] = next_number(spool, &positions[i]);
    }
    for (int i = 1; i >= 0; i--) {
        acknowledged_at[numbers[i]] = step_count + 1;
        assert_int_equal(sj_spool_acknowledge(spool, positions[i]), SJ_OK);
    }
}

static size_t count_steps(step_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < step_count; i++) {
        count += steps[i].kind == kind;
    }
    return count;
}

static void record_steps(void)
{
    is_noting = true;
    sj_spool *spool = open_spool(folder);
    for (uint8_t i = 0; i < FRAMES; i++) {
        append(spool, i);
        if (i % 3 == 2) {
            acknowledge_two(spool);
        }
    }
    is_noting = false;
    sj_spool_close(spool);
}

/* True if a later sync made the step durable. */
static bool is_synced(size_t at, size_t crash)
{
    for (size_t i = at + 1; i < crash && steps[at].kind != UNLINK; i++) {
        if (steps[i].kind == SYNC && steps[i].file == steps[at].file) {
            return true;
        }
    }
    return false;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

static void put(const char *path, const void *bytes, size_t size, uint64_t offset)
{
    const int file = __real_open(path, O_WRONLY);
    assert_int_equal(__real_pwrite(file, bytes, size, (off_t)offset), size);
    close(file);
}

/* Applies a step to the image. Returns false if the step's file is missing. */
static bool apply(const step *done, outcome what)
{
    static const uint8_t zeros[FRAME_BYTES];
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", image, files[done->file]);
    if (done->kind == CREATE) {
        const int file = __real_open(path, O_CREAT | O_WRONLY, 0600);
        return file >= 0 && close(file) == 0;
    }
    if (access(path, F_OK) != 0) {
        return false;
    }
    if (done->kind == UNLINK) {
        assert_int_equal(__real_unlink(path), 0);
    } else if (done->kind == CUT) {
        assert_int_equal(truncate(path, (off_t)done->offset), 0);
    } else if (done->kind == WRITE) {
        put(path, what == EMPTY ? zeros : done->bytes, what == TORN ? done->size / 2 : done->size,
            done->offset);
    }
    return true;
}

/* Builds the image of a crash after `crash` steps. Seed 0 keeps all writes. Writes to `is_whole`
 * which frames are whole. */
static void make_image(size_t crash, uint32_t seed, bool *is_whole)
{
    uint32_t random = seed * 7919 + (uint32_t)crash;
    clean(image);
    assert_int_equal(mkdir(image, 0700), 0);
    for (size_t i = 0; i < crash; i++) {
        const bool is_sure = seed == 0 || is_synced(i, crash);
        const outcome drawn = (outcome)(next_random(&random) % 4);
        const outcome what = is_sure ? KEPT : steps[i].kind != WRITE && drawn > LOST ? KEPT : drawn;
        const bool is_done = what != LOST && apply(&steps[i], what);
        if (steps[i].frame >= 0) {
            is_whole[steps[i].frame] = is_done && what == KEPT;
        }
    }
}

/* Checks that all whole frames that were not acknowledged are returned in order. */
static void check_frames(sj_spool *spool, size_t crash, const bool *is_whole)
{
    uint64_t position;
    int last = -1;
    bool came[FRAMES] = {false};
    for (int number = next_number(spool, &position); number >= 0;
         number = next_number(spool, &position)) {
        assert_true(number > last && number < FRAMES);
        came[number] = true;
        last = number;
    }
    for (int i = 0; i < FRAMES; i++) {
        const bool is_acknowledged = acknowledged_at[i] != 0 && acknowledged_at[i] <= crash;
        if (is_whole[i] && !is_acknowledged && !came[i]) {
            fail_msg("frame %d is missing after %zu steps", i, crash);
        }
    }
}

/* Checks that a frame that is appended after the crash is returned, also after the spool was opened
 * again. */
static void check_next(sj_spool *spool)
{
    uint64_t position;
    append(spool, FRAMES);
    assert_int_equal(next_number(spool, &position), FRAMES);
    sj_spool_close(spool);
    spool = open_spool(image);
    int number = next_number(spool, &position);
    while (number >= 0 && number != FRAMES) {
        number = next_number(spool, &position);
    }
    assert_int_equal(number, FRAMES);
    sj_spool_close(spool);
}

static void a_loss_of_power_loses_only_the_writes_that_the_disk_lost(void **state)
{
    const uint32_t seeds = getenv("SJ_LONG") != NULL ? 60 : 4;
    (void)state;
    snprintf(folder, sizeof(folder), "/dev/shm/spool_power.%d", (int)getpid());
    snprintf(image, sizeof(image), "/dev/shm/spool_power.%d.image", (int)getpid());
    record_steps();
    assert_true(count_steps(WRITE) > FRAMES && count_steps(UNLINK) > 2 && count_steps(SYNC) > 2);
    for (size_t crash = 1; crash <= step_count; crash++) {
        for (uint32_t seed = 0; seed < seeds; seed++) {
            bool is_whole[FRAMES] = {false};
            make_image(crash, seed, is_whole);
            sj_spool *spool = open_spool(image);
            check_frames(spool, crash, is_whole);
            check_next(spool);
        }
    }
    clean(folder);
    clean(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loss_of_power_loses_only_the_writes_that_the_disk_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
