/* Tests what is written when text is patched: only the bytes that change, and no other page. All
 * other pages still belong to the file, which all processes share. Other changes in a page
 * meanwhile are kept. */
#include "agent/ptrace/text_patch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, PAGES = 6, BYTES = 5, FILL = 0x90, OTHER = 0xcc, ASYNC = 0x42 };

/* Two patches are in page 0, one is in page 2, and one in page 4 finds unexpected bytes. */
enum { FIRST = 600, SECOND = 900, THIRD = 2 * PAGE + 8, REFUSED = 4 * PAGE + 100, PATCHES = 4 };

/* Bytes that another process changes after the patcher has read a page and before it writes to the
 * page. */
enum { BEFORE = FIRST - 1, BEHIND = SECOND + BYTES, BEFORE_THIRD = THIRD - 1 };

typedef struct victim {
    pid_t pid;
    uint64_t text;
    sj_tracee target;
} victim;

static bool disturbs;
static uint64_t disturbed_text;

/* The linker redirects writes here. Before the first write, this changes the bytes above. */
sj_status __real_sj_tracee_write(const sj_tracee *target, uint64_t address, const void *bytes,
                                 size_t count);
sj_status __wrap_sj_tracee_write(const sj_tracee *target, uint64_t address, const void *bytes,
                                 size_t count);
sj_status __wrap_sj_tracee_write(const sj_tracee *target, uint64_t address, const void *bytes,
                                 size_t count)
{
    static const uint32_t places[] = {BEFORE, BEHIND, BEFORE_THIRD};
    static const uint8_t byte = ASYNC;
    for (size_t i = 0; disturbs && i < sizeof(places) / sizeof(places[0]); i++) {
        assert_int_equal(__real_sj_tracee_write(target, disturbed_text + places[i], &byte, 1),
                         SJ_OK);
    }
    disturbs = false;
    return __real_sj_tracee_write(target, address, bytes, count);
}

/* Maps the text from a file, as a loader does. The victim only waits. */
static int start(void **state)
{
    static victim made;
    uint8_t text[PAGES * PAGE];
    char path[] = "/tmp/sj_text_XXXXXX";
    memset(text, FILL, sizeof(text));
    memset(text + REFUSED, OTHER, BYTES);
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, sizeof(text)), sizeof(text));
    unlink(path);
    uint8_t *mapped = mmap(NULL, sizeof(text), PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    close(file);
    made.text = (uint64_t)(uintptr_t)mapped;
    made.pid = fork();
    while (made.pid == 0) {
        pause();
    }
    munmap(mapped, sizeof(text));
    disturbs = false;
    disturbed_text = made.text;
    *state = &made;
    return made.pid > 0 && sj_tracee_open(made.pid, &made.target, NULL) == SJ_OK ? 0 : -1;
}

static int stop(void **state)
{
    victim *self = *state;
    sj_tracee_close(&self->target);
    kill(self->pid, SIGKILL);
    return waitpid(self->pid, NULL, 0) == self->pid ? 0 : -1;
}

static void apply(victim *self, bool is_removal)
{
    static const uint32_t places[PATCHES] = {FIRST, SECOND, THIRD, REFUSED};
    sj_text_patch *patches = calloc(PATCHES, sizeof(*patches));
    sj_text_patch_report report = {0};
    sj_text_change change;
    assert_non_null(patches);
    for (uint32_t i = 0; i < PATCHES; i++) {
        patches[i] = (sj_text_patch){.address = self->text + places[i],
                                     .group = i,
                                     .bytes = BYTES,
                                     .window = BYTES,
                                     .is_removal = is_removal};
        memset(is_removal ? patches[i].wanted : patches[i].expected, FILL, BYTES);
        memset(is_removal ? patches[i].expected : patches[i].wanted, 0x0f, BYTES);
    }
    assert_int_equal(sj_text_change_init(&self->target, patches, PATCHES, &change), SJ_OK);
    assert_int_equal(sj_tracee_stop_all(&self->target, NULL), SJ_OK);
    assert_int_equal(sj_text_change_clear(&self->target, &(sj_signal_returns){0}, &change, &report),
                     SJ_OK);
    assert_int_equal(sj_text_change_apply(&self->target, &change, &report), SJ_OK);
    sj_tracee_resume_all(&self->target);
    sj_text_change_deinit(&change);
    assert_int_equal(report.changed, PATCHES - 1);
    assert_int_equal(report.refused, 1);
}

/* True if the page was copied, so that it is no longer a page of the file
 * (Documentation/admin-guide/mm/pagemap). */
static bool is_private(const victim *self, size_t page)
{
    const uint64_t present = UINT64_C(1) << 63;
    const uint64_t is_of_file = UINT64_C(1) << 61;
    char path[64];
    uint64_t entry = 0;
    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)self->pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0);
    const off_t at = (off_t)((self->text / PAGE + page) * sizeof(entry));
    assert_int_equal(pread(file, &entry, sizeof(entry), at), sizeof(entry));
    close(file);
    return (entry & present) != 0 && (entry & is_of_file) == 0;
}

static void expect_private_pages(const victim *self)
{
    for (size_t page = 0; page < PAGES; page++) {
        assert_int_equal(is_private(self, page), page == FIRST / PAGE || page == THIRD / PAGE);
    }
}

static void test_pages_that_do_not_change_stay_the_files(void **state)
{
    victim *self = *state;
    for (size_t page = 0; page < PAGES; page++) {
        uint8_t byte;
        assert_int_equal(sj_tracee_read(&self->target, self->text + page * PAGE, &byte, 1), SJ_OK);
        assert_false(is_private(self, page));
    }
    apply(self, false);
    expect_private_pages(self);
    apply(self, true);
    expect_private_pages(self);
}

static void test_bytes_beside_the_patches_of_a_page_are_not_written(void **state)
{
    victim *self = *state;
    uint8_t text[PAGES * PAGE];
    uint8_t wanted[PAGES * PAGE];
    disturbs = true;
    apply(self, false);
    memset(wanted, FILL, sizeof(wanted));
    memset(wanted + REFUSED, OTHER, BYTES);
    memset(wanted + FIRST, 0x0f, BYTES);
    memset(wanted + SECOND, 0x0f, BYTES);
    memset(wanted + THIRD, 0x0f, BYTES);
    wanted[BEFORE] = wanted[BEHIND] = wanted[BEFORE_THIRD] = ASYNC;
    assert_int_equal(sj_tracee_read(&self->target, self->text, text, sizeof(text)), SJ_OK);
    assert_memory_equal(text, wanted, sizeof(text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pages_that_do_not_change_stay_the_files, start, stop),
        cmocka_unit_test_setup_teardown(test_bytes_beside_the_patches_of_a_page_are_not_written,
                                        start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
