/* What hooks/ needs to know about a machine: one folder per architecture implements this. */
#ifndef SJ_AGENT_INPROC_HOOKS_ARCH_H
#define SJ_AGENT_INPROC_HOOKS_ARCH_H

#include "agent/abi/machine.h"
#include "agent/inproc/recorder/values.h"

#include <stdbool.h>
#include <stdint.h>

/* How far jumps reach, less room for what lies between (SJ_ARCH_REACH_BYTES); what every page size
 * divides (SJ_ARCH_PAGE_MULTIPLE); eight bytes of code that return 0 (SJ_ARCH_RETURN_ZERO_CODE);
 * the least and the kind of a patch of a return (SJ_RETURN_ROOM_BYTES, SJ_ARCH_JUMP_PATCH); the
 * sj_stub_kind of moved code with a distance in it (SJ_ARCH_MOVED_KIND); bytes of a system call and
 * of what loads its number (SJ_ARCH_NUMBERED_CALL_BYTES). */
#include SJ_ARCH_FILE(hooks, limits.h)

#define SJ_ARCH_ADDRESS_END (UINT64_C(1) << SJ_MACHINE_ADDRESS_BITS)

/* What probes share and call (on aarch64 where calls are counted, some of these). */
typedef enum sj_shared_part {
    SJ_SHARED_ENTER,
    SJ_SHARED_LEAVE,
    SJ_SHARED_ENTER_FREE_FLAGS,
    SJ_SHARED_LEAVE_FREE_FLAGS,
    SJ_SHARED_FIRST_RECEIVER,
    SJ_SHARED_SECOND_RECEIVER,
    SJ_SHARED_TAIL_CALL,
    SJ_SHARED_TAIL_LEAVE, /* flags are free, as there */
    SJ_SHARED_JUMP_LEAVE,
    /* of functions whose calls may be counted: */
    SJ_SHARED_COUNTED_ENTER,
    SJ_SHARED_COUNTED_LEAVE,
    SJ_SHARED_COUNTED_ENTER_FREE_FLAGS,
    SJ_SHARED_COUNTED_LEAVE_FREE_FLAGS,
    SJ_SHARED_COUNTED_TAIL_CALL, /* likewise */
    SJ_SHARED_COUNTED_TAIL_LEAVE,
    SJ_SHARED_COUNTED_JUMP_LEAVE,
    SJ_SHARED_PARTS
} sj_shared_part;

/* Writes machine code. Addresses are those that the code will run at, which is where it is written:
 * the memory is made executable afterwards. A measuring emitter only counts. */
typedef struct sj_code_emitter {
    uint64_t at;                /* next byte of the main line */
    uint64_t cold_at;           /* next byte of the probes' slow parts */
    uint64_t slow_trampoline;   /* address of the trampoline to sj_arch_slow_entry */
    uint64_t values_trampoline; /* to sj_arch_values_entry */
    uint64_t jump_trampoline;   /* to sj_arch_jump_entry */
    uint64_t thunk; /* entries check whether a call that returns here has jumped to them; 0: there
                     * are no such calls (sj_hooks_expect_dispatch) */
    bool counts_calls;                /* short records are written (sj_recorder_counts_calls) */
    uint64_t shared[SJ_SHARED_PARTS]; /* from sj_code_emit_shared */
    bool measuring;
    bool is_inline;       /* probes call nothing that they share: quicker, and larger (x86-64) */
    bool frees_flags;     /* the status flags need not be kept by the next probe (x86-64) */
    bool too_far;         /* a displacement did not fit */
    bool lacks_label;     /* a label was needed before its place was known */
    bool holds_addresses; /* what was emitted behind the trampolines is for this process only */
    struct sj_stub_notes *notes; /* stub_notes.h; NULL: no map is made */
} sj_code_emitter;

/* The tail-call entry of a function: exits that jump to the function's start go there instead. */
typedef struct sj_tail_call_entry {
    uint32_t enter_tag;
    uint8_t patch[4]; /* the first bytes at `entry` while the function is patched */
    uint64_t entry;   /* the patched instruction */
    uint64_t stub;    /* where the patch leads: a stub that begins with a plain probe */
    uint64_t start;   /* of the function: `entry`, or the landing instruction in front of it */
} sj_tail_call_entry;

/* sj_arch_machine is the ELF e_machine of the plans that this code applies. */
uint16_t sj_arch_machine(void);

/* sj_code_emit_bytes copies bytes as they are. */
void sj_code_emit_bytes(sj_code_emitter *emitter, const uint8_t *bytes, uint32_t count);

/* sj_code_emit_trampoline emits a jump to `target` at any distance. */
void sj_code_emit_trampoline(sj_code_emitter *emitter, uint64_t target);

/* sj_code_emit_shared emits the code that the probes share (on aarch64 nothing unless calls are
 * counted), before any of them: the trampolines, the thunk and cold_at must be set. */
void sj_code_emit_shared(sj_code_emitter *emitter);

/* sj_code_emit_probe emits the recording of one record with `tag`: all registers are kept, and the
 * flags unless emitter->frees_flags; the red zone below the stack pointer must be dead; the stack
 * pointer must hold the return address's address. An entry's probe first
 * ends a dispatched call that has jumped here (emitter->thunk). */
void sj_code_emit_probe(sj_code_emitter *emitter, uint32_t tag);

/* sj_code_emit_jump_leave does as sj_code_emit_probe for an exit by a jump to an address that is
 * known at run time only (SJ_OPERATION_JUMP_LEAVE). The exit is marked as a tail call if the patch
 * of a function's entry is there, with and without counted calls. */
void sj_code_emit_jump_leave(sj_code_emitter *emitter, uint32_t tag, uint32_t jump_register);

/* sj_arch_has_tail_call_entries: functions may have tail-call entries: not on aarch64, and not if
 * entries check for dispatched calls (emitter->thunk), or probes are inline. */
bool sj_arch_has_tail_call_entries(const sj_code_emitter *emitter);

/* sj_code_emit_tail_call_exit emits the exit with this tag, which goes to a tail-call entry: the
 * flags are not kept. */
void sj_code_emit_tail_call_exit(sj_code_emitter *emitter, uint32_t leave_tag, uint64_t entry);

/* sj_code_emit_tail_call_alone emits the exit with this tag and a jump to a function that may be
 * patched without having a tail-call entry: its own probe records its entry. The exit is marked as
 * a tail call if the function is patched then; the flags are not kept. */
void sj_code_emit_tail_call_alone(sj_code_emitter *emitter, uint32_t leave_tag,
                                  const sj_tail_call_entry *entry);

/* sj_code_emit_tail_call_entry emits a tail-call entry. It records the exit and the function's
 * entry with one clock value and goes on behind the stub's probe. If at run time the function is
 * not patched, its landing instruction was overwritten (a breakpoint), or the chunk has no room for
 * both records, it records the exit alone and goes on at the function's start. */
void sj_code_emit_tail_call_entry(sj_code_emitter *emitter, const sj_tail_call_entry *entry);

/* sj_code_emit_receiver_probe does as sj_code_emit_probe, the flags kept always, for the entry of
 * `function` and, in front of it, records the first word of the object that argument number
 * `receiver` (from 1) is, unless that cannot be an object (0, or not a multiple of 8). */
void sj_code_emit_receiver_probe(sj_code_emitter *emitter, uint32_t function, uint8_t receiver);

/* sj_code_emit_values emits a call of sj_recorder_values, with every register and flag kept, where
 * a probe may be. */
void sj_code_emit_values(sj_code_emitter *emitter, uint32_t function, uint32_t descriptors);

/* sj_code_emit_plain_values emits the recording of values of a function by the probe itself, with
 * every register and flag kept, where a probe may be. False: not on this machine; nothing is
 * emitted. */
bool sj_code_emit_plain_values(sj_code_emitter *emitter, uint32_t function,
                               const sj_plain_value *values, uint32_t count);

/* sj_arch_is_return: an instruction is a function's return to its caller. */
bool sj_arch_is_return(const uint8_t *bytes, uint32_t count);

/* sj_code_emit_jump, sj_code_emit_jump_if (machine condition code) and sj_code_emit_push_return
 * (flags and registers kept) emit a jump, a conditional jump, and a push of a return address. */
void sj_code_emit_jump(sj_code_emitter *emitter, uint64_t target);
void sj_code_emit_jump_if(sj_code_emitter *emitter, uint32_t condition, uint64_t target);
void sj_code_emit_push_return(sj_code_emitter *emitter, uint64_t address);

/* sj_code_emit_relative copies `count` bytes and sets the 32-bit field at `position` so that it
 * leads to `target` from the end of the bytes. On aarch64 the bytes are one instruction, which
 * becomes as many as it takes to reach `target`. */
void sj_code_emit_relative(sj_code_emitter *emitter, const uint8_t *bytes, uint32_t count,
                           uint32_t position, uint64_t target);

/* sj_arch_patch_bytes makes the `count` bytes to write at `address` for a patch of `kind`
 * (sj_patch_kind) that leads to `target`, from the original bytes. False when this kind is not
 * possible here or the target out of reach (`*too_far`). */
bool sj_arch_patch_bytes(uint32_t kind, uint64_t address, uint64_t target, const uint8_t *original,
                         uint32_t count, uint8_t *bytes, bool *too_far);

/* sj_arch_thread_offset is where the recorder's data of a thread lies, from its thread pointer. */
uint32_t sj_arch_thread_offset(void);

/* sj_arch_find_return finds the return instruction of an empty function: bytes from `address` to
 * it, or -1 when the function does something or less than SJ_RETURN_ROOM_BYTES can be replaced
 * there. */
int32_t sj_arch_find_return(uint64_t address);

/* sj_arch_sync_code makes the processor see code that was written at `address`. */
void sj_arch_sync_code(uint64_t address, uint64_t bytes);

/* sj_arch_find_system_call finds the instruction that loads the number of a system call at the very
 * start of a function: bytes from `address` to it, or -1 when the function begins otherwise. Its
 * SJ_RETURN_ROOM_BYTES can be replaced. */
int32_t sj_arch_find_system_call(uint64_t address, uint32_t number);

/* sj_arch_find_later_system_call finds it in the first SJ_LATER_CALL_BYTES of a function, where all
 * arguments are in their registers. */
enum { SJ_LATER_CALL_BYTES = 128 };
int32_t sj_arch_find_later_system_call(uint64_t address, uint32_t number);

/* sj_arch_find_inner_call finds the instruction in front of the system call in libc's prctl (its
 * number is loaded there) or syscall (its sixth argument): bytes from `address` to it, or -1 when
 * there is none of SJ_RETURN_ROOM_BYTES. */
int32_t sj_arch_find_inner_call(uint64_t address, bool is_prctl);

/* sj_arch_find_limit_call finds the instruction that loads the number of prlimit64 in libc's
 * setrlimit or prlimit, where all arguments but setrlimit's process are in their registers: bytes
 * from `address` to it, or -1 when there is none of SJ_RETURN_ROOM_BYTES. */
int32_t sj_arch_find_limit_call(uint64_t address);

/* sj_arch_find_call_near finds a system call in the C library's code around the function at an
 * address: where SJ_ARCH_NUMBERED_CALL_BYTES load its number and make it. 0: there is none. */
uint64_t sj_arch_find_call_near(uint64_t address, uint32_t number);

/* sj_arch_slow_entry is the target of a stub's slow trampoline: calls sj_recorder_slow with every
 * register kept. Never called from C. */
void sj_arch_slow_entry(void);
void sj_arch_values_entry(void); /* likewise, to sj_recorder_values */

/* sj_arch_jump_entry is called by an entry probe if a dispatched call has jumped to its function:
 * records the exit of that call and restores the return address, with every register kept. Never
 * called from C. */
void sj_arch_jump_entry(void);

#endif
