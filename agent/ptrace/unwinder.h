/* The call stacks of a process's threads, from outside, from unwind information (elfutils).
 * One thread at a time; the first walk through a module reads its tables, later ones are fast. */
#ifndef SJ_AGENT_PTRACE_UNWINDER_H
#define SJ_AGENT_PTRACE_UNWINDER_H

#include "agent/ptrace/arch.h"
#include "agent/ptrace/remote_stubs.h"

typedef struct sj_unwinder sj_unwinder;

/* A thread's registers and the top of its stack, copied while it was stopped. */
typedef struct sj_stack_copy {
    pid_t tid;
    sj_registers state;
    uint64_t low; /* address of bytes[0] */
    size_t size;
    uint8_t *bytes;
} sj_stack_copy;

typedef struct sj_native_frame {
    uint64_t pc;
    uint64_t stack;     /* address of the return address; what probes record; 0: not known */
    bool is_activation; /* `pc` is where it goes on; else it is behind a call */
} sj_native_frame;

/* sj_unwinder_new reads what is mapped in the process. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_unwinder_new(const sj_tracee *target, sj_unwinder **unwinder);

/* A file that was mapped in a process. */
typedef struct sj_mapped_file {
    uint64_t bias;
    char path[256];
} sj_mapped_file;

/* sj_unwinder_new_past makes one for stacks of a process's past: all it knows of that are the files
 * that were mapped, later ones hiding earlier ones, and what sj_stack_copy brings. The process may
 * have ended. Errors as sj_unwinder_new. */
SJ_MUST_CHECK sj_status sj_unwinder_new_past(const sj_mapped_file *files, size_t count,
                                             sj_unwinder **unwinder);
void sj_unwinder_free(sj_unwinder *unwinder);

/* sj_stack_copy_take copies a stopped thread's state and at most `limit` bytes of its stack; what
 * lies beyond is read from the living process later. Free with sj_stack_copy_deinit. */
SJ_MUST_CHECK sj_status sj_stack_copy_take(const sj_tracee *target, pid_t tid, size_t limit,
                                           sj_stack_copy *copy);
void sj_stack_copy_deinit(sj_stack_copy *copy);

/* sj_unwinder_walk lists the frames of a copied stack, innermost first, at most `capacity`; returns
 * how many. A stack that cannot be followed to its end is reported as far as it can. */
size_t sj_unwinder_walk(sj_unwinder *unwinder, const sj_stack_copy *copy, sj_native_frame *frames,
                        size_t capacity);

/* sj_unwinder_hide_agent has sj_unwinder_walk leave out the agent's frames, and show a frame in a
 * stub at the program's instruction that the stub stands for. `stubs` is borrowed until it is
 * called again; NULL: frames are shown as they are, as at first. Not of an unwinder of a process's
 * past. */
void sj_unwinder_hide_agent(sj_unwinder *unwinder, const sj_remote_stubs *stubs);

/* sj_unwinder_came_to_end returns whether the last walk did. */
bool sj_unwinder_came_to_end(const sj_unwinder *unwinder);

/* Where an address lies. All texts are borrowed from the unwinder. */
typedef struct sj_code_place {
    const char *function; /* symbol; NULL: none */
    const char *path;     /* of the module; NULL: in no file */
    uint64_t offset;      /* in the module's file; without one the address itself */
} sj_code_place;

void sj_unwinder_locate(sj_unwinder *unwinder, uint64_t pc, sj_code_place *place);

/* sj_unwinder_name gives the name of the function at `pc`, NULL when it has none. Borrowed. */
const char *sj_unwinder_name(sj_unwinder *unwinder, uint64_t pc);

#endif
