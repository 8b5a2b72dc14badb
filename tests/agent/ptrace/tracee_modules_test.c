/* Pieces of a library that the program maps only to read them, as libbacktrace does, are not taken
 * for the library. */
#include "agent/ptrace/tracee_modules.h"

#include "agent/ptrace/unwinder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE_BYTES = 4096, FRAMES_MAX = 64, COPY_BYTES = 64 * 1024, DISTANCE = 64 * PAGE_BYTES };

typedef struct victim {
    sj_tracee target;
    int ready[2];
} victim;

/* Maps one page of the file at exactly this address. */
static void map_piece(const char *path, uint64_t address, off_t offset)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    void *wanted = (void *)(uintptr_t)address; // NOLINT(performance-no-int-to-ptr)
    if (file < 0 || mmap(wanted, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE, file,
                         offset) != wanted) {
        _exit(1);
    }
    close(file);
}

/* Maps pieces of the module's file below it and above it. */
static void map_pieces(const sj_remote_module *module, uint64_t below, uint64_t above)
{
    map_piece(module->path, below - DISTANCE, PAGE_BYTES);
    map_piece(module->path, below - 2 * DISTANCE, 0);
    map_piece(module->path, above + DISTANCE, PAGE_BYTES);
}

__attribute__((noinline)) void wait_in_program(const victim *child);
void wait_in_program(const victim *child)
{
    char byte = 0;
    (void)!write(child->ready[1], &byte, 1);
    for (;;) {
        pause();
    }
}

static void start(victim *child, const sj_remote_module *module, uint64_t below, uint64_t above)
{
    char byte = 0;
    assert_int_equal(pipe(child->ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(child->ready[0]);
        map_pieces(module, below, above);
        wait_in_program(child);
    }
    close(child->ready[1]);
    assert_int_equal(read(child->ready[0], &byte, 1), 1);
    close(child->ready[0]);
    assert_int_equal(sj_tracee_open(pid, &child->target, NULL), SJ_OK);
}

static void end(victim *child)
{
    const pid_t pid = child->target.pid;
    sj_tracee_close(&child->target);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Returns where the first mapping begins, or where the last one before the stack ends. */
static uint64_t edge_of_memory(bool is_first)
{
    char line[PATH_MAX + 128];
    uint64_t edge = 0;
    FILE *file = fopen("/proc/self/maps", "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL && strstr(line, "[stack]") == NULL &&
           (edge == 0 || !is_first)) {
        unsigned long low;
        unsigned long high;
        assert_int_equal(sscanf(line, "%lx-%lx", &low, &high), 2);
        edge = is_first ? low : high;
    }
    fclose(file);
    return edge;
}

static void the_library_is_found_among_pieces_of_its_file(void **state)
{
    sj_remote_module before;
    sj_remote_module found;
    victim child;
    Dl_info place;
    uint64_t address = 0;
    (void)state;
    assert_int_equal(sj_remote_libc_find(getpid(), &before), SJ_OK);
    assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &place), 0);
    assert_int_equal(before.low, (uint64_t)(uintptr_t)place.dli_fbase);
    start(&child, &before, edge_of_memory(true), edge_of_memory(false));
    assert_int_equal(sj_remote_libc_find(child.target.pid, &found), SJ_OK);
    assert_memory_equal(&found, &before, offsetof(sj_remote_module, path));
    assert_int_equal(sj_remote_function_find(&child.target, "gnu_get_libc_version", &address),
                     SJ_OK);
    assert_int_equal(address, (uint64_t)(uintptr_t)place.dli_saddr);
    end(&child);
}

/* True if the first thread's stack has a frame in wait_in_program. */
static bool is_walked(victim *child)
{
    static sj_native_frame frames[FRAMES_MAX];
    sj_unwinder *unwinder = NULL;
    sj_stack_copy copy;
    bool found = false;
    assert_int_equal(sj_tracee_stop_all(&child->target, NULL), SJ_OK);
    assert_int_equal(sj_unwinder_new(&child->target, &unwinder), SJ_OK);
    assert_int_equal(sj_stack_copy_read(&child->target, child->target.pid, COPY_BYTES, &copy),
                     SJ_OK);
    const size_t count = sj_unwinder_walk(unwinder, &copy, frames, FRAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        const char *name = sj_unwinder_name(unwinder, frames[i].pc);
        found = found || (name != NULL && strcmp(name, "wait_in_program") == 0);
    }
    found = found && sj_unwinder_came_to_end(unwinder);
    sj_stack_copy_deinit(&copy);
    sj_unwinder_free(unwinder);
    return found;
}

/* elfutils alone takes the piece before the program for the program's beginning. */
static void stacks_are_walked_past_pieces_of_the_program(void **state)
{
    sj_remote_module program;
    victim child;
    (void)state;
    assert_int_equal(sj_remote_module_find(getpid(), "agent.ptrace.tracee_modules", &program),
                     SJ_OK);
    start(&child, &program, program.low, edge_of_memory(false));
    assert_true(is_walked(&child));
    end(&child);
}

/* A program may keep pieces of a library's file that it has mapped to read them, after the library
 * is gone. */
static void pieces_alone_are_not_a_library(void **state)
{
    char path[] = "/tmp/sj-pieces-XXXXXX";
    sj_remote_module found;
    (void)state;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, 2 * PAGE_BYTES), 0);
    for (off_t offset = 0; offset <= PAGE_BYTES; offset += PAGE_BYTES) {
        assert_true(mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, file, offset) != MAP_FAILED);
    }
    close(file);
    assert_int_equal(sj_remote_module_find(getpid(), strrchr(path, '/') + 1, &found), SJ_ENOTFOUND);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_is_found_among_pieces_of_its_file),
        cmocka_unit_test(pieces_alone_are_not_a_library),
        cmocka_unit_test(stacks_are_walked_past_pieces_of_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
