/* What hooks/ needs to know about a machine: one folder per architecture implements this. */
#ifndef SJ_AGENT_HOOKS_ARCH_H
#define SJ_AGENT_HOOKS_ARCH_H

#include <stdbool.h>
#include <stdint.h>

/* How far jumps reach, less room for what lies between; the end of the address space; what every
 * page size divides; four bytes of code that return. */
#if defined(__aarch64__)
#define SJ_ARCH_REACH_BYTES ((UINT64_C(1) << 27) - (UINT64_C(1) << 20))
#define SJ_ARCH_ADDRESS_END (UINT64_C(1) << 48)
#define SJ_ARCH_PAGE_MULTIPLE UINT64_C(65536)
#define SJ_ARCH_RETURN_CODE UINT32_C(0xd65f03c0) /* ret */
#else
#define SJ_ARCH_REACH_BYTES (UINT64_C(0x7fffffff) - (UINT64_C(1) << 20))
#define SJ_ARCH_ADDRESS_END (UINT64_C(1) << 47)
#define SJ_ARCH_PAGE_MULTIPLE UINT64_C(4096)
#define SJ_ARCH_RETURN_CODE UINT32_C(0xccccccc3) /* ret */
#endif

/* What probes share where they can call it without losing a register (x86-64). */
typedef enum sj_shared_part {
    SJ_SHARED_ENTER,
    SJ_SHARED_LEAVE,
    SJ_SHARED_ENTER_FREE_FLAGS,
    SJ_SHARED_LEAVE_FREE_FLAGS,
    SJ_SHARED_FIRST_RECEIVER,
    SJ_SHARED_SECOND_RECEIVER,
    SJ_SHARED_TAIL_CALL,
    SJ_SHARED_PARTS
} sj_shared_part;

/* Writes machine code. Addresses are those that the code will run at, which is where it is written:
 * the memory is made executable afterwards. A measuring emitter only counts. */
typedef struct sj_emitter {
    uint64_t at;      /* next byte of the main line */
    uint64_t cold_at; /* next byte of the probes' slow parts */
    uint64_t gate;    /* address of the gate to the slow path */
    uint64_t values_gate;
    uint64_t jump_gate; /* to sj_arch_jump_entry */
    uint64_t thunk;     /* entries look whether they were jumped to by a call that returns here; 0:
                         * there are none (sj_hooks_meet_dispatch) */
    uint64_t shared[SJ_SHARED_PARTS]; /* from sj_emit_shared */
    bool measuring;
    bool frees_flags; /* the status flags need not be kept by the next probe (x86-64) */
    bool too_far;     /* a displacement did not fit */
    bool lacks_label; /* a label further on was needed */
} sj_emitter;

/* The door of a function: where exits by a jump to its start lead. */
typedef struct sj_door {
    uint32_t enter_tag;
    uint8_t patch[4]; /* what the bytes at `head` begin with while they are patched */
    uint64_t head;
    uint64_t stub;  /* where the patch leads: a stub that begins with a plain probe */
    uint64_t start; /* of the function: `head`, or in front of it a landing mark */
} sj_door;

/* sj_arch_machine is the ELF e_machine of the plans that this code applies. */
uint16_t sj_arch_machine(void);

/* sj_emit_bytes copies bytes as they are. */
void sj_emit_bytes(sj_emitter *emitter, const uint8_t *bytes, uint32_t count);

/* sj_emit_gate emits a jump to `target`, at any distance. */
void sj_emit_gate(sj_emitter *emitter, uint64_t target);

/* sj_emit_shared emits the code that the probes share (nothing on aarch64), before any of them: the
 * gates, the thunk and cold_at must be set. */
void sj_emit_shared(sj_emitter *emitter);

/* sj_emit_probe emits the recording of one record with `tag`: all registers are kept, and the flags
 * unless emitter->frees_flags; the red zone below the stack pointer must be dead; the stack pointer
 * must hold the return address's address. That of an entry ends a dispatched call that jumps here
 * first (emitter->thunk). */
void sj_emit_probe(sj_emitter *emitter, uint32_t tag);

/* sj_arch_has_doors tells whether functions may have doors: not on aarch64, and not while entries
 * look who called (emitter->thunk). */
bool sj_arch_has_doors(const sj_emitter *emitter);

/* sj_emit_to_door emits the exit with this tag through a door: the flags are not kept. */
void sj_emit_to_door(sj_emitter *emitter, uint32_t leave_tag, uint64_t door);

/* sj_emit_door emits a door. It records the exit and the function's entry as one moment and goes on
 * behind the stub's probe. Where the running code finds that the head is not patched, or that
 * somebody else has written to the mark, or has no room at hand for both records, it records the
 * exit alone and goes on at the function's start. */
void sj_emit_door(sj_emitter *emitter, const sj_door *door);

/* sj_emit_receiver_probe does as sj_emit_probe, the flags kept always, for the entry of `function`
 * and, in front of it, records the first word of the object that argument number `receiver` (from
 * 1) is, unless that cannot be one (0, or not a multiple of 8). */
void sj_emit_receiver_probe(sj_emitter *emitter, uint32_t function, uint8_t receiver);

/* sj_emit_values emits a call of sj_recorder_values, with every register and flag kept, where a
 * probe may be. */
void sj_emit_values(sj_emitter *emitter, uint32_t function, uint32_t descriptors);

/* sj_arch_is_return tells whether an instruction is a function's return to its caller. */
bool sj_arch_is_return(const uint8_t *bytes, uint32_t count);

/* sj_emit_jump, sj_emit_jump_if (machine condition code) and sj_emit_push_return (flags and
 * registers kept) emit what their names say. */
void sj_emit_jump(sj_emitter *emitter, uint64_t target);
void sj_emit_jump_if(sj_emitter *emitter, uint32_t condition, uint64_t target);
void sj_emit_push_return(sj_emitter *emitter, uint64_t address);

/* sj_emit_relative copies `count` bytes and sets the 32-bit field at `position` so that it leads to
 * `target` from the end of the bytes. On aarch64 the bytes are one instruction, which becomes as
 * many as it takes to reach `target`. */
void sj_emit_relative(sj_emitter *emitter, const uint8_t *bytes, uint32_t count, uint32_t position,
                      uint64_t target);

/* sj_arch_patch_bytes makes the `count` bytes to write at `address` for a patch of `kind`
 * (sj_patch_kind) that leads to `target`, from the original bytes. False when this kind is not
 * possible here or the target out of reach (`*too_far`). */
bool sj_arch_patch_bytes(uint32_t kind, uint64_t address, uint64_t target, const uint8_t *original,
                         uint32_t count, uint8_t *bytes, bool *too_far);

/* sj_arch_find_return finds the return instruction of an empty function: bytes from `address` to
 * it, or -1 when the function does something or less than SJ_RETURN_ROOM_BYTES can be replaced
 * there. */
#if defined(__aarch64__)
enum { SJ_RETURN_ROOM_BYTES = 4, SJ_ARCH_JUMP_PATCH = 5 /* SJ_PATCH_BRANCH26 */ };
#else
enum { SJ_RETURN_ROOM_BYTES = 5, SJ_ARCH_JUMP_PATCH = 1 /* SJ_PATCH_JUMP32 */ };
#endif

int32_t sj_arch_find_return(uint64_t address);

/* sj_arch_sync_code makes the processor run what was written at `address`. */
void sj_arch_sync_code(uint64_t address, uint64_t bytes);

/* sj_arch_find_system_call finds the instruction that loads the number of a system call at the very
 * start of a function: bytes from `address` to it, or -1 when the function begins otherwise. Its
 * SJ_RETURN_ROOM_BYTES can be replaced. */
int32_t sj_arch_find_system_call(uint64_t address, uint32_t number);

/* sj_arch_slow_entry is where the gate of the stubs leads: calls sj_recorder_slow with every
 * register kept. sj_arch_state_entry replaces the loader's debug hook: calls
 * sj_modules_on_loader_event with every register kept. Never called from C. */
void sj_arch_slow_entry(void);
void sj_arch_values_entry(void); /* likewise, to sj_recorder_values */
void sj_arch_state_entry(void);

/* sj_arch_jump_entry is where the gate of the probes leads when a dispatched call has jumped to a
 * function that is patched itself: records that the call leaves and gives the return address back,
 * with every register kept. Never called from C. */
void sj_arch_jump_entry(void);

/* sj_arch_exec_entry stands in front of libc's execve: calls sj_exec_try with its arguments, then
 * goes on as execve does, at sj_arch_exec_resume. Never called from C. */
void sj_arch_exec_entry(void);
extern __attribute__((visibility("hidden"))) uint64_t sj_arch_exec_resume;

#endif
