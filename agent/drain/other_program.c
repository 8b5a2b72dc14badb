/* Design notes
 *
 * The agent announces the programs that libc executes. An exec by a direct system call is detected
 * from outside: afterwards the process's memory no longer has the arena. If the program ends
 * between two checks, the kernel's mark of forked processes shows it, until the parent has waited
 * for the process. */
#include "agent/drain/other_program.h"

#include "agent/abi/arena.h"
#include "proto/base/array.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

typedef struct sj_other_program {
    uint64_t number;
    uint64_t ended_ticks; /* when the recorded program ended */
    sj_tracked_process tracked;
} sj_other_program;

typedef enum memory_owner { MEMORY_UNKNOWN, MEMORY_OWN, MEMORY_OTHER } memory_owner;

/* Checks whether the process still has its arena at the address where the agent mapped it. */
static memory_owner find_memory_owner(const sj_process_drain *process,
                                      const sj_arena_header *header)
{
    sj_arena_header seen;
    const size_t bytes = offsetof(sj_arena_header, attach_realtime_ns);
    const struct iovec local = {.iov_base = &seen, .iov_len = bytes};
    const struct iovec remote = {.iov_base = (void *)(uintptr_t)header->own_address, /* NOLINT */
                                 .iov_len = bytes};
    const ssize_t got = process_vm_readv(process->tracked.pid, &local, 1, &remote, 1, 0);
    if (got < 0 && errno != EFAULT) {
        return MEMORY_UNKNOWN; /* the process has no memory, or it may not be read */
    }
    return got == (ssize_t)bytes && seen.magic == header->magic &&
                   seen.attach_ticks == header->attach_ticks && seen.pid == header->pid
               ? MEMORY_OWN
               : MEMORY_OTHER;
}

/* True if the kernel says that the process has executed a program. Required if the process was
 * never seen with its arena: its memory may then belong to another process, to another container,
 * or to an emulator. */
static bool is_known_to_execute(const sj_tracked_process *tracked)
{
    return sj_tracked_process_has_executed(tracked) || sj_tracked_process_is_replaced(tracked);
}

bool sj_other_program_runs(sj_process_drain *process)
{
    if (!process->is_open || process->shared->options.threadless) {
        return false;
    }
    const sj_arena_header *header = sj_arena_view_header(&process->view);
    const memory_owner owner =
        header->own_address != 0 ? find_memory_owner(process, header) : MEMORY_UNKNOWN;
    process->was_seen = process->was_seen || owner == MEMORY_OWN;
    /* After reading the memory: the agent announces before it executes, and ends before it
     * unmaps. */
    return owner == MEMORY_OTHER && (process->was_seen || is_known_to_execute(&process->tracked)) &&
           sj_arena_execs_that_join(atomic_load(&header->own_execs)) == 0 &&
           atomic_load(&header->state) == SJ_ARENA_RECORDING;
}

/* True if the program that the process executed last has joined. */
static bool has_successor(const sj_process_drain *process)
{
    uint64_t number = 0;
    return sj_registry_find_process(process->shared->options.registry, process->tracked.pid,
                                    &number) == SJ_OK &&
           number != process->number;
}

bool sj_other_program_has_run(sj_process_drain *process)
{
    if (!process->is_open || process->shared->options.salvage) {
        return false;
    }
    const sj_arena_header *header = sj_arena_view_header(&process->view);
    const uint32_t announced = atomic_load(&header->own_execs);
    return atomic_load(&header->state) == SJ_ARENA_RECORDING && !has_successor(process) &&
           (announced != 0 || sj_tracked_process_has_executed(&process->tracked));
}

void sj_other_program_count(const sj_process_drain *process)
{
    const uint32_t announced = atomic_load(&sj_arena_view_header(&process->view)->own_execs);
    if (announced == 0) {
        process->shared->ended.unrecorded[SJ_UNRECORDED_UNSEEN]++;
    } else if (sj_arena_execs_counted(announced) == 0) {
        process->shared->ended.unrecorded[SJ_UNRECORDED_UNKNOWN]++;
    }
}

void sj_other_programs_add(sj_other_programs *programs, sj_process_drain *process)
{
    if (sj_array_reserve(&programs->items, &programs->capacity, programs->count, 1,
                         sizeof(*programs->items)) != SJ_OK) {
        return;
    }
    programs->items[programs->count++] = (sj_other_program){.number = process->number,
                                                            .ended_ticks = process->ended_ticks,
                                                            .tracked = process->tracked};
    process->tracked.pidfd = -1;
}

sj_status sj_other_programs_poll(sj_other_programs *programs, sj_registry *registry)
{
    for (size_t i = programs->count; i-- > 0;) {
        sj_other_program *item = &programs->items[i];
        sj_process_end end = {.ended_ticks = item->ended_ticks};
        if (!sj_tracked_process_has_ended(&item->tracked)) {
            continue;
        }
        end.has_status = sj_tracked_process_find_status(&item->tracked, &end.wait_status);
        const uint64_t number = item->number;
        sj_tracked_process_close(&item->tracked);
        *item = programs->items[--programs->count];
        SJ_TRY(end.has_status ? sj_registry_end_process(registry, number, &end) : SJ_OK);
    }
    return SJ_OK;
}

void sj_other_programs_deinit(sj_other_programs *programs)
{
    for (size_t i = 0; i < programs->count; i++) {
        sj_tracked_process_close(&programs->items[i].tracked);
    }
    free(programs->items);
    *programs = (sj_other_programs){0};
}
