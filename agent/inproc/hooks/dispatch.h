/* Records calls where they are dispatched, for targets that are not patched.
 *
 * A dispatcher (objc_msg_lookup, objc_msgSend) is replaced by agent code. That code finds the
 * sj_dispatch_record of the message and jumps to sj_arch_dispatch_entry. sj_arch_dispatch_entry
 * records the entry, replaces the return address by sj_arch_return_thunk and jumps to the target. A
 * table of return slots, indexed by the stack address of the call, keeps the true return address.
 * The thunk's unwind information reads that table, so exceptions, forced unwinding, backtrace() and
 * debuggers work. A slot belongs to a stack address and not to a thread, so longjmp, coroutines and
 * signal stacks work, too. */
#ifndef SJ_AGENT_INPROC_HOOKS_DISPATCH_H
#define SJ_AGENT_INPROC_HOOKS_DISPATCH_H

#include "agent/abi/return_slots.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function whose calls are recorded where they are dispatched. The assembly code uses the offsets
 * of the members. */
typedef struct sj_dispatch_record {
    void (*entry)(void); /* sj_arch_dispatch_entry */
    uint64_t target;     /* address of the called function */
    uint32_t enter_tag;  /* tag of the entry record, see sj_record */
    uint32_t leave_tag;
} sj_dispatch_record;

enum { SJ_DISPATCH_STUB_BYTES = 32 };

extern sj_return_slot *sj_return_regions[SJ_RETURN_REGIONS] __attribute__((visibility("hidden")));

/* Reserves address space for the return slots of the region that contains the stack address
 * `stack`. The kernel allocates pages at first use. Returns false if out of memory.
 * Async-signal-safe, thread-safe. */
bool sj_return_slots_reserve(uint64_t stack);

/* Unmaps all regions. The caller ensures that no call returns through a slot and that no other
 * thread runs. */
void sj_return_slots_release(void);

/* Returns the program's return address for `word`, which lies at the stack address `at`. If the
 * word is the thunk's address and its slot holds an address, returns the slot's address, else
 * `word`. On AArch64, where slots are indexed differently, always returns `word`.
 * Async-signal-safe, thread-safe. */
uint64_t sj_return_slots_true_address(uint64_t at, uint64_t word);

/* Returns the return address in the slot of the stack address `at`, or 0 if the slot is empty.
 * Async-signal-safe, thread-safe. */
uint64_t sj_return_slots_kept(uint64_t at);

/* Replaces each thunk address in `count` words, copied from the stack at `at`, by the true return
 * address. */
void sj_return_slots_put_back(uint64_t at, uint64_t *words, size_t count);

/* Stubs jump here with the registers and the stack of a function's first instruction. The machine's
 * scratch register holds the record (x86-64: %r11; AArch64: x16). The code keeps every other
 * register, except x9 to x15 and x17 on AArch64, in which no call passes anything. If no return
 * slot can be reserved, the call is not recorded. */
void sj_arch_dispatch_entry(void);

/* Recorded calls return to this address. */
void sj_arch_return_thunk(void);

/* sj_arch_return_block is the start of the code that one entry of the unwind table covers; the
 * thunk is part of that code. From sj_arch_return_thunk_restored on, the true return address is
 * restored. Nothing calls these two labels. */
void sj_arch_return_block(void);
void sj_arch_return_thunk_restored(void);

/* Writes SJ_DISPATCH_STUB_BYTES of code at `stub`. The code loads the address of `record` and jumps
 * to record->entry. */
void sj_arch_write_stub(uint8_t *stub, const sj_dispatch_record *record);

#endif
