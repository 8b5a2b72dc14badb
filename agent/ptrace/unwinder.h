/* The call stacks of a process's threads, read from outside with unwind information (elfutils). Use
 * an unwinder from one thread at a time. The first walk through a module reads its tables; later
 * walks are fast. */
#ifndef SJ_AGENT_PTRACE_UNWINDER_H
#define SJ_AGENT_PTRACE_UNWINDER_H

#include "agent/ptrace/arch.h"
#include "agent/ptrace/remote_stubs.h"

typedef struct sj_unwinder sj_unwinder;

/* A thread's registers and the innermost part of its stack, copied while the thread was stopped. */
typedef struct sj_stack_copy {
    pid_t tid;
    sj_registers state;
    uint64_t low; /* address of bytes[0] in the process */
    size_t size;
    uint8_t *bytes;
} sj_stack_copy;

typedef struct sj_native_frame {
    uint64_t pc;
    /* address of the stack word that holds the frame's return address, as probes record it; 0:
     * unknown */
    uint64_t stack;
    bool is_activation; /* `pc` is the next instruction to run; otherwise it is a return address */
} sj_native_frame;

/* Creates an unwinder for a running process. Reads which modules are mapped in it. Returns
 * SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_unwinder_new(const sj_tracee *target, sj_unwinder **unwinder);

/* A file that was mapped in a process. */
typedef struct sj_mapped_file {
    uint64_t bias;
    char path[256];
} sj_mapped_file;

/* Creates an unwinder for stacks that were copied earlier; their process may have ended. It reads
 * only `files`, which were mapped then, and each sj_stack_copy. If two files overlap, the later one
 * in the list counts. The errors are those of sj_unwinder_new. */
SJ_MUST_CHECK sj_status sj_unwinder_new_past(const sj_mapped_file *files, size_t count,
                                             sj_unwinder **unwinder);
void sj_unwinder_free(sj_unwinder *unwinder);

/* Copies a stopped thread's registers and at most `limit` bytes of its stack. If sj_unwinder_walk
 * needs more of the stack, it reads the memory of the process. Free with sj_stack_copy_deinit.
 * Returns SJ_ECLOSED if the thread has ended, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_stack_copy_read(const sj_tracee *target, pid_t tid, size_t limit,
                                           sj_stack_copy *copy);
void sj_stack_copy_deinit(sj_stack_copy *copy);

/* Writes the frames of a copied stack, innermost first, at most `capacity`. Returns their number.
 * If the stack cannot be unwound to its end, writes the frames up to there. */
size_t sj_unwinder_walk(sj_unwinder *unwinder, const sj_stack_copy *copy, sj_native_frame *frames,
                        size_t capacity);

/* Makes sj_unwinder_walk omit the agent's frames. For a frame in a stub, it then reports the
 * program's instruction that the stub replaces. `stubs` is borrowed until the next call of this
 * function. If `stubs` is NULL, sj_unwinder_walk shows all frames unchanged, which is the default.
 * Not for an unwinder of sj_unwinder_new_past. */
void sj_unwinder_hide_agent(sj_unwinder *unwinder, const sj_remote_stubs *stubs);

/* True if the last walk reached the end of the stack. */
bool sj_unwinder_came_to_end(const sj_unwinder *unwinder);

/* Location of an address. All texts are borrowed from the unwinder. */
typedef struct sj_code_place {
    const char *function; /* symbol name; NULL: none */
    const char *path;     /* path of the module; NULL: the address is in no file */
    uint64_t offset; /* offset in the module's file; the address itself if there is no module */
} sj_code_place;

void sj_unwinder_locate(sj_unwinder *unwinder, uint64_t pc, sj_code_place *place);

/* Returns the name of the function at `pc`, or NULL. Borrowed from the unwinder. */
const char *sj_unwinder_name(sj_unwinder *unwinder, uint64_t pc);

#endif
