/* Machine-specific interface of hooks/. One folder per architecture implements it. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_H

#include "agent/abi/machine.h"
#include "agent/inproc/recorder/values.h"

#include <stdbool.h>
#include <stdint.h>

/* Each limits.h defines:
 *   SJ_ARCH_REACH_BYTES          distance that jumps reach, minus a reserve for the code in between
 *   SJ_ARCH_PAGE_MULTIPLE        a multiple of every page size of the machine
 *   SJ_ARCH_RETURN_ZERO_CODE     eight bytes of code that return 0
 *   SJ_RETURN_PATCH_BYTES        bytes of the patch that replaces a return
 *   SJ_ARCH_JUMP_PATCH           kind of the patch that replaces a return (sj_patch_kind)
 *   SJ_ARCH_MOVED_KIND           the sj_stub_kind of moved code that contains a displacement
 *   SJ_ARCH_NUMBERED_CALL_BYTES  bytes of a system call and of the load of its number */
#include SJ_ARCH_FILE(hooks, limits.h)

#define SJ_ARCH_ADDRESS_END (UINT64_C(1) << SJ_MACHINE_ADDRESS_BITS)

/* Parts of code that probes share and call. AArch64 emits some of these parts, and only if calls
 * are counted. */
typedef enum sj_shared_part {
    SJ_SHARED_ENTER,
    SJ_SHARED_LEAVE,
    SJ_SHARED_ENTER_FREE_FLAGS,
    SJ_SHARED_LEAVE_FREE_FLAGS,
    SJ_SHARED_FIRST_RECEIVER,
    SJ_SHARED_SECOND_RECEIVER,
    SJ_SHARED_TAIL_CALL,
    SJ_SHARED_TAIL_LEAVE, /* Does not keep the flags. */
    SJ_SHARED_JUMP_LEAVE,
    /* Parts for functions whose calls may be counted: */
    SJ_SHARED_COUNTED_ENTER,
    SJ_SHARED_COUNTED_LEAVE,
    SJ_SHARED_COUNTED_ENTER_FREE_FLAGS,
    SJ_SHARED_COUNTED_LEAVE_FREE_FLAGS,
    SJ_SHARED_COUNTED_TAIL_CALL, /* Does not keep the flags. */
    SJ_SHARED_COUNTED_TAIL_LEAVE,
    SJ_SHARED_COUNTED_JUMP_LEAVE,
    SJ_SHARED_PARTS
} sj_shared_part;

/* Writes machine code at the addresses where the code will run. The memory is made executable
 * afterwards. An emitter with `measuring` counts bytes without writing. */
typedef struct sj_code_emitter {
    uint64_t at;                /* next byte of the main lines */
    uint64_t cold_at;           /* next byte of the probes' slow parts */
    uint64_t slow_trampoline;   /* address of the trampoline to sj_arch_slow_entry */
    uint64_t values_trampoline; /* address of the trampoline to sj_arch_values_entry */
    uint64_t jump_trampoline;   /* address of the trampoline to sj_arch_jump_entry */
    /* Address of the thunk that dispatched calls return to, or 0. With a thunk, each entry checks
     * whether a dispatched call has jumped to it (sj_hooks_expect_dispatch). */
    uint64_t thunk;
    bool counts_calls;                /* short records are written (sj_recorder_counts_calls) */
    uint64_t shared[SJ_SHARED_PARTS]; /* addresses of the parts, set by sj_code_emit_shared */
    bool measuring;
    bool is_inline;       /* x86-64: probes without a thunk contain their code: faster but larger */
    bool frees_flags;     /* x86-64: the next probe need not keep the status flags */
    bool too_far;         /* a displacement did not fit */
    bool lacks_label;     /* a label was used before its address was known */
    bool holds_addresses; /* the emitted code contains addresses of this process */
    struct sj_stub_notes *notes; /* notes for the map of the stubs; NULL: no map is written */
} sj_code_emitter;

/* The tail-call entry of a function. Exits that jump to the function's start jump to this code
 * instead. */
typedef struct sj_tail_call_entry {
    uint32_t enter_tag;
    uint8_t patch[4]; /* the first bytes at `entry` while the function is patched */
    uint64_t entry;   /* the patched instruction */
    uint64_t stub;    /* target of the patch: a stub that begins with a plain probe */
    uint64_t start;   /* start of the function: `entry`, or the landing instruction before it */
} sj_tail_call_entry;

/* Returns the ELF e_machine of the plans that this code can apply. */
uint16_t sj_arch_machine(void);

void sj_code_emit_bytes(sj_code_emitter *emitter, const uint8_t *bytes, uint32_t count);

/* Emits a jump to `target` at any distance. */
void sj_code_emit_trampoline(sj_code_emitter *emitter, uint64_t target);

/* Emits the parts that the probes share. Call it before emitting any probe, and after setting the
 * trampolines, the thunk and cold_at. On AArch64 it emits nothing unless calls are counted. */
void sj_code_emit_shared(sj_code_emitter *emitter);

/* Emits a probe that writes one record with `tag`. The probe keeps all registers. It keeps the
 * flags unless emitter->frees_flags. At the probe, the red zone must be dead, and the stack pointer
 * must hold the address of the return address. With emitter->thunk, the probe of an entry first
 * ends a dispatched call that has jumped to the function. */
void sj_code_emit_probe(sj_code_emitter *emitter, uint32_t tag);

/* Like sj_code_emit_probe, for an exit by a jump whose target is known only at run time
 * (SJ_OPERATION_JUMP_LEAVE). The probe marks the exit as a tail call if the target's entry is
 * patched. Inline probes on x86-64 do not mark the exit. */
void sj_code_emit_jump_leave(sj_code_emitter *emitter, uint32_t tag, uint32_t jump_register);

/* True if functions may have tail-call entries. False in three cases:
 *   * the machine is AArch64
 *   * entries check for dispatched calls (emitter->thunk)
 *   * probes are inline */
bool sj_arch_has_tail_call_entries(const sj_code_emitter *emitter);

/* Emits an exit with `leave_tag` that jumps to a tail-call entry. Does not keep the flags. */
void sj_code_emit_tail_call_exit(sj_code_emitter *emitter, uint32_t leave_tag, uint64_t entry);

/* Emits an exit with `leave_tag` and a jump to a function that may be patched but has no tail-call
 * entry. The function's own probe records its entry. The code marks the exit as a tail call if the
 * function is patched when the code runs. It does not keep the flags. */
void sj_code_emit_tail_call_alone(sj_code_emitter *emitter, uint32_t leave_tag,
                                  const sj_tail_call_entry *entry);

/* Emits a tail-call entry. The code records the exit and the function's entry with one clock
 * reading, and continues after the stub's probe. In three cases it records only the exit and jumps
 * to the function's start:
 *   * the function is not patched
 *   * its landing instruction was overwritten, for example by a breakpoint
 *   * the chunk cannot hold both records */
void sj_code_emit_tail_call_entry(sj_code_emitter *emitter, const sj_tail_call_entry *entry);

/* Like sj_code_emit_probe for the entry of `function`, but the probe always keeps the flags. Before
 * the entry, it records the first word of the object that is argument number `receiver` (from 1).
 * It skips values that cannot be an object: 0, and values that are not a multiple of 8. AArch64
 * records the object for the first argument only. */
void sj_code_emit_receiver_probe(sj_code_emitter *emitter, uint32_t function, uint8_t receiver);

/* Emits a call of sj_recorder_values. The code keeps every register and flag, and may stand where a
 * probe may stand. */
void sj_code_emit_values(sj_code_emitter *emitter, uint32_t function, uint32_t descriptors);

/* Emits code that records values of a function without calling C. The code keeps every register,
 * and the flags unless emitter->frees_flags. It may stand where a probe may stand. Returns false,
 * and emits nothing, on machines that do not support such code. */
bool sj_code_emit_plain_values(sj_code_emitter *emitter, uint32_t function,
                               const sj_plain_value *values, uint32_t count);

/* True if the instruction returns from a function to its caller. */
bool sj_arch_is_return(const uint8_t *bytes, uint32_t count);

/* sj_code_emit_jump and sj_code_emit_jump_if emit a jump and a conditional jump; `condition` is a
 * machine condition code. sj_code_emit_push_return emits a push of a return address, which keeps
 * the flags and registers. */
void sj_code_emit_jump(sj_code_emitter *emitter, uint64_t target);
void sj_code_emit_jump_if(sj_code_emitter *emitter, uint32_t condition, uint64_t target);
void sj_code_emit_push_return(sj_code_emitter *emitter, uint64_t address);

/* Copies `count` bytes and sets the 32-bit field at `position`, so that the instruction leads to
 * `target`. The distance counts from the end of the bytes. On AArch64 the bytes are one
 * instruction. The emitter replaces it by as many instructions as are needed to reach `target`. */
void sj_code_emit_relative(sj_code_emitter *emitter, const uint8_t *bytes, uint32_t count,
                           uint32_t position, uint64_t target);

/* Makes the `count` bytes of a patch of `kind` (sj_patch_kind) at `address` that leads to `target`.
 * `original` has the bytes that the patch replaces. Returns false if the machine lacks this kind,
 * or if the target is out of reach (`*too_far`). */
bool sj_arch_patch_bytes(uint32_t kind, uint64_t address, uint64_t target, const uint8_t *original,
                         uint32_t count, uint8_t *bytes, bool *too_far);

/* Returns the offset of the recorder's thread data from the thread pointer. */
uint32_t sj_arch_thread_offset(void);

/* Finds the return instruction of an empty function. Returns its offset from `address` in bytes.
 * Returns -1 if the function is not empty, or if fewer than SJ_RETURN_PATCH_BYTES can be replaced
 * there. */
int32_t sj_arch_find_return(uint64_t address);

/* Makes code that was written at `address` visible to the processor's instruction fetch. */
void sj_arch_sync_code(uint64_t address, uint64_t bytes);

/* Finds the instruction that loads the number of a system call, at the very start of a function or
 * after a landing instruction there. Returns its offset from `address` in bytes, or -1 if the
 * function begins differently. SJ_RETURN_PATCH_BYTES can be replaced there. */
int32_t sj_arch_find_system_call(uint64_t address, uint32_t number);

/* Like sj_arch_find_system_call, but searches the first SJ_LATER_CALL_BYTES of a function. At the
 * found instruction all arguments are in their registers. */
enum { SJ_LATER_CALL_BYTES = 128 };
int32_t sj_arch_find_later_system_call(uint64_t address, uint32_t number);

/* Finds the instruction before the system call in libc's prctl or syscall. In prctl it loads the
 * call's number, in syscall the sixth argument. Returns the instruction's offset from `address` in
 * bytes. Returns -1 if there is no such instruction of SJ_RETURN_PATCH_BYTES, and always on
 * AArch64. */
int32_t sj_arch_find_inner_call(uint64_t address, bool is_prctl);

/* Finds the instruction that loads the number of prlimit64 in libc's setrlimit or prlimit. At this
 * instruction all arguments are in their registers, except setrlimit's process. Returns the
 * instruction's offset from `address` in bytes, or -1 if there is none. SJ_RETURN_PATCH_BYTES can
 * be replaced there. */
int32_t sj_arch_find_limit_call(uint64_t address);

/* Finds a system call in the C library's code near the function at `address`. Returns the address
 * of the SJ_ARCH_NUMBERED_CALL_BYTES that load `number` and make the call. Returns 0 if there is
 * none. */
uint64_t sj_arch_find_call_near(uint64_t address, uint32_t number);

/* Target of a stub's slow trampoline. Calls sj_recorder_slow and keeps every register. C code must
 * not call it. */
void sj_arch_slow_entry(void);
void sj_arch_values_entry(void); /* like sj_arch_slow_entry, for sj_recorder_values */

/* Target of the jump trampoline. An entry probe calls it if a dispatched call has jumped to the
 * probe's function. It records the exit of the dispatched call and restores the return address. It
 * keeps every register. C code must not call it. */
void sj_arch_jump_entry(void);

#endif
