/* Mono from inside: its methods, recorded by the runtime's own profiler interface.
 *
 * When Mono compiles a method it asks whether the method is wanted; a wanted one gets calls of ours
 * at its entry and its exits, and is never inlined; any other is compiled as ever and costs
 * nothing. Return addresses are not changed. Methods that were compiled before, or ahead of time,
 * make no calls of ours. Found by symbol, so both `mono` and programs that embed the runtime are.
 *
 * Which functions methods are is decided by container: an assembly is asked about once. A method
 * of an assembly without a file, or of none, is named by itself. */
#ifndef SJ_AGENT_INPROC_MONO_MONO_H
#define SJ_AGENT_INPROC_MONO_MONO_H

#include "agent/abi/link.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The answer about an assembly. */
typedef struct sj_mono_assembly {
    uint32_t first_function; /* of token 1; 0: the assembly is left alone */
    uint32_t count;          /* of tokens */
    uint32_t value_count;    /* of methods that record values */
    uint8_t *wanted;    /* a bit each, in sj_mono_assembly_bytes mapped for it, which become the
                           receiver's; at their end the sj_link_method_values */
    bool is_unreadable; /* no file lists its methods: each is named by itself */
    bool has_lines;     /* it is to report which instructions of its methods ran */
} sj_mono_assembly;

/* sj_mono_assembly_bytes is the size of the memory that `wanted` leads to. */
static inline size_t sj_mono_assembly_bytes(uint32_t count, uint32_t value_count)
{
    return (count + 31) / 32 * 4 + value_count * sizeof(sj_link_method_values);
}

/* Code of functions, by rising address. */
typedef struct sj_mono_code {
    sj_link_code head;
    const sj_link_code_function *functions;
    int file;       /* a memory file that holds all, as head says; -1: there is none, and the bytes
                       can be read where they are */
    bool runs;      /* something may run it: hooks are prepared for a tracer, else made at once */
    uint8_t *marks; /* a byte each, set to 1 where a function is hooked */
} sj_mono_code;

/* How functions of the session are made. Called in a thread of the app that compiles a method. */
typedef struct sj_mono_registrar {
    /* False: nobody could be asked; ask again next time. */
    bool (*add_assembly)(const char *path, const uint8_t *id, uint32_t id_bytes, bool is_main,
                         sj_mono_assembly *assembly);
    /* A method that no file lists; 0: it is not recorded. False as above. */
    bool (*add_method)(const char *container, const char *name, uint32_t *function);
    /* Plans code of functions. */
    void (*plan_code)(const sj_mono_code *code);
    /* The runtime has read its options. */
    void (*runtime_is_up)(void);
    /* Takes which instructions ran, as the words of an sj_link_lines. */
    void (*add_lines)(const uint32_t *words, uint32_t count, bool is_last);
} sj_mono_registrar;

/* sj_mono_start registers with the runtime of the process. Again after sj_mono_stop. `is_attached`:
 * the agent will leave; what the runtime keeps of it lasts (hooks/lasting.h). SJ_ENOTFOUND: there
 * is no runtime, or one that lacks what is needed; SJ_ENOMEM. One thread at a time. */
SJ_MUST_CHECK sj_status sj_mono_start(const sj_mono_registrar *registrar, bool is_attached);

/* sj_mono_is_lacking says of a runtime that sj_mono_start has not found, if there is one, what it
 * lacks, and how it tells of methods that it compiles. Runs nothing of the program. */
bool sj_mono_is_lacking(sj_link_no_methods *lacking);

/* sj_mono_prefer_in_place has the code of the first some thousand wanted methods that are compiled
 * from now on hooked in place; what cannot be is listed. The others are recorded by callbacks. */
void sj_mono_prefer_in_place(void);

/* sj_mono_watch_for_launch has `start` called, once, before the runtime of a module that was just
 * loaded initializes itself. May be called for each module, under the loader's lock, as long as
 * sj_mono_start has not succeeded. */
void sj_mono_watch_for_launch(void (*start)(void));

/* sj_mono_count_lines makes the runtime count which instructions of methods run, and tell the
 * registrar before it shuts down. It reads symbol files from then on, and shows lines in stack
 * traces. After sj_mono_start of a launched program, before its main, and only where it does not
 * read symbol files by itself, which it would end with an assertion. False: it refused. */
bool sj_mono_count_lines(void);

/* sj_mono_plan_compiled has hooks prepared of all methods that the runtime of an attached process
 * has compiled without calls of ours; once, after sj_mono_start. False: the calling thread is none
 * of the runtime's, so that nothing was done. */
bool sj_mono_plan_compiled(void);

/* sj_mono_select_anew asks about all assemblies again, and obeys: methods that are not wanted any
 * more are recorded no longer, and hooks are prepared of those that are wanted now and have been
 * compiled. Again and again, after sj_mono_start; false as above. */
bool sj_mono_select_anew(void);

/* sj_mono_stop makes the runtime call nothing of ours any more. Calls under way may still be in
 * our code. One thread at a time. */
void sj_mono_stop(void);

/* sj_arch_mono_enter is what the runtime calls when a method begins: it touches the stack as far
 * down as callbacks reach, within its first SJ_MONO_TOUCH_CODE_BYTES, and has changed nothing but
 * scratch registers until then. sj_mono_enter_caller is an address behind the runtime's call of it;
 * 0: it was not called yet. */
enum { SJ_MONO_TOUCHED_BYTES = 8192, SJ_MONO_TOUCH_CODE_BYTES = 7 };
void sj_arch_mono_enter(void *ours, void *method, void *context);
extern __attribute__((visibility("hidden"))) _Atomic uint64_t sj_mono_enter_caller;

/* sj_mono_is_here: a runtime of the process has been registered with. Async-signal-safe. */
bool sj_mono_is_here(void);

/* sj_mono_after_fork frees what another thread of the parent held. The child's only thread. */
void sj_mono_after_fork(void);

#endif
