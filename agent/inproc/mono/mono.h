/* Mono from inside: records its methods through the runtime's own profiler interface.
 *
 * When Mono compiles a method it asks if the method is wanted. Code of a wanted method calls us at
 * its entry and its exits, and is never inlined. Any other method is compiled as without us and
 * costs nothing. Return addresses are not changed. Methods that were compiled earlier, or ahead of
 * time, do not call us. The runtime's functions are found by symbol, so this works in `mono` and in
 * programs that embed the runtime.
 *
 * The recorder decides by container which methods are functions of the session: it is asked about
 * an assembly once. A method whose assembly has no file is named by itself, and so is a method
 * without an assembly. */
#ifndef SJ_AGENT_INPROC_MONO_MONO_H
#define SJ_AGENT_INPROC_MONO_MONO_H

#include "agent/abi/link.h"
#include "proto/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The recorder's reply about an assembly. */
typedef struct sj_mono_assembly {
    uint32_t first_function; /* Function of token 1. 0: the assembly is not recorded. */
    uint32_t count;          /* Number of tokens. */
    uint32_t value_count;    /* Number of methods that record values. */
    /* One bit for each token, then the sj_link_method_values. The memory has
     * sj_mono_assembly_bytes; the receiver unmaps it. */
    uint8_t *wanted;
    bool is_unreadable; /* No file lists its methods, so each is named by itself. */
    bool has_lines; /* True if the assembly has to report which instructions of its methods ran. */
} sj_mono_assembly;

/* Returns the size of the memory that `wanted` points to. */
static inline size_t sj_mono_assembly_bytes(uint32_t count, uint32_t value_count)
{
    return (count + 31) / 32 * 4 + value_count * sizeof(sj_link_method_values);
}

/* Code of functions, by rising address. */
typedef struct sj_mono_code {
    sj_link_code head;
    const sj_link_code_function *functions;
    /* A memory file with all of the code, as `head` says. -1: there is none, and the bytes can be
     * read at their addresses. */
    int file;
    /* True if a thread may be running the code: then hooks are prepared for a tracer, else they are
     * made at once. */
    bool runs;
    uint8_t *marks; /* One byte for each function; set to 1 if the function was hooked. */
} sj_mono_code;

/* Functions that ask the recorder. Threads of the program call them while they compile a method. */
typedef struct sj_mono_registrar {
    /* Returns false if the recorder could not be asked; then the caller asks again the next time.
     */
    bool (*add_assembly)(const char *path, const uint8_t *id, uint32_t id_bytes, bool is_main,
                         sj_mono_assembly *assembly);
    /* Asks about a method that no file lists. Writes 0 to `*function` if it is not recorded.
     * Returns false as add_assembly does. */
    bool (*add_method)(const char *container, const char *name, uint32_t *function);
    /* Asks for a plan of the code of functions. */
    void (*plan_code)(const sj_mono_code *code);
    /* The runtime has read its options. */
    void (*runtime_is_up)(void);
    /* Receives which instructions ran, in the words of an sj_link_lines. */
    void (*add_lines)(const uint32_t *words, uint32_t count, bool is_last);
} sj_mono_registrar;

/* Registers with the runtime of the process. May be called again after sj_mono_stop. With
 * `is_attached` the agent will be unloaded, so what the runtime keeps of it stays valid
 * (hooks/lasting.h). Returns SJ_ENOTFOUND if there is no runtime, or if it lacks a function that is
 * needed. Returns SJ_ENOMEM if out of memory. One thread at a time. */
SJ_MUST_CHECK sj_status sj_mono_start(const sj_mono_registrar *registrar, bool is_attached);

/* True if the process has a runtime that sj_mono_start cannot use. Writes what it lacks, and how it
 * reports methods that it compiles. Runs no code of the program. */
bool sj_mono_find_lacking(sj_link_no_methods *lacking);

/* Hooks in place the code of the first 12,000 wanted methods that are compiled from now on. Methods
 * that cannot be hooked are listed. Callbacks record all others. */
void sj_mono_prefer_in_place(void);

/* Calls `start` once, before the runtime of a module that was just loaded initialises itself. May
 * be called for each module, under the loader's lock, until sj_mono_start succeeds. */
void sj_mono_watch_for_launch(void (*start)(void));

/* Makes the runtime count which instructions of methods run, and report them before it shuts down.
 * The runtime then reads symbol files and shows lines in stack traces. Call it after sj_mono_start
 * of a launched program and before its main. Do not call it if the runtime already reads symbol
 * files: that would end the program by an assertion. Returns false if the runtime refuses. */
bool sj_mono_count_lines(void);

/* Prepares hooks of all methods that the runtime of an attached process has compiled without calls
 * of ours. Call it once after sj_mono_start. Returns false, and does nothing, if the calling thread
 * does not belong to the runtime. */
bool sj_mono_plan_compiled(void);

/* Asks about all assemblies again and follows the replies. Methods that are not wanted now are not
 * recorded any longer. Hooks of methods that are wanted now and were compiled are prepared. May be
 * called often, after sj_mono_start. Returns false as sj_mono_plan_compiled does. */
bool sj_mono_reselect(void);

/* Stops the runtime from calling us. Threads may still be in our code. One thread at a time. */
void sj_mono_stop(void);

/* The runtime calls sj_arch_mono_enter when a method begins. Its first SJ_MONO_TOUCH_CODE_BYTES
 * touch the stack as far down as callbacks need; until then only scratch registers have changed.
 * sj_mono_enter_caller is an address after the runtime's call of it; 0 before the first call. */
enum { SJ_MONO_TOUCHED_BYTES = 8192, SJ_MONO_TOUCH_CODE_BYTES = 7 };
void sj_arch_mono_enter(void *ours, void *method, void *context);
extern __attribute__((visibility("hidden"))) _Atomic uint64_t sj_mono_enter_caller;

/* True if we have registered with a runtime of the process. Async-signal-safe. */
bool sj_mono_is_registered(void);

/* Frees locks that another thread of the parent held. Call it on the child's only thread. */
void sj_mono_after_fork(void);

#endif
