/* Dispatch hooks record a call where it is dispatched, if its target is not patched.
 *
 * A dispatcher (objc_msg_lookup, objc_msgSend) is replaced by agent code. That code finds the
 * record of the message and jumps to sj_arch_dispatch_entry. This records the entry, replaces the
 * return address by sj_arch_return_thunk and jumps to the target. A table, indexed by the address
 * of the return slot, keeps the true return address. The thunk's unwind information reads that
 * table, so exceptions, forced unwinding, backtrace() and debuggers work without help. A slot
 * belongs to a stack address and not to a thread, so longjmp, coroutines and signal stacks need no
 * help either. */
#ifndef SJ_AGENT_INPROC_HOOKS_DISPATCH_H
#define SJ_AGENT_INPROC_HOOKS_DISPATCH_H

#include "agent/abi/return_slots.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One dispatched function, which its stub enters. The assembly knows the offsets. */
typedef struct sj_dispatch_record {
    void (*entry)(void); /* sj_arch_dispatch_entry */
    uint64_t target;     /* address of the called function */
    uint32_t enter_tag;  /* tag of the entry record, see sj_record */
    uint32_t leave_tag;
} sj_dispatch_record;

enum { SJ_DISPATCH_STUB_BYTES = 32 };

extern sj_return_slot *sj_return_regions[SJ_RETURN_REGIONS] __attribute__((visibility("hidden")));

/* Reserves the region for return slots near `stack`. It reserves address space only; pages are
 * mapped at first use. Returns false if out of memory. Async-signal-safe, thread-safe. */
bool sj_return_slots_reserve(uint64_t stack);

/* Unmaps all regions. The caller ensures that no call returns through a slot and that no other
 * thread runs. */
void sj_return_slots_release(void);

/* Returns the program's return address for `word`, which lies at the address `at` of a stack. If
 * the word is the thunk's address, that is the address in the slot, else the word itself. On
 * AArch64, where slots are indexed differently, it is always the word itself. Async-signal-safe,
 * thread-safe. */
uint64_t sj_return_slots_true_address(uint64_t at, uint64_t word);

/* Returns the return address in the slot of the word at `at`, or 0 if there is none.
 * Async-signal-safe, thread-safe. */
uint64_t sj_return_slots_kept(uint64_t at);

/* Replaces each thunk address in `count` words, copied from the stack at `at`, by the true return
 * address. */
void sj_return_slots_put_back(uint64_t at, uint64_t *words, size_t count);

/* Stubs jump to it in the state of a call's first instruction. The machine's scratch register holds
 * the record (x86-64: %r11; AArch64: x16). It keeps every other register. On AArch64 it also loses
 * x9 to x15 and x17, in which no call passes anything. Without a slot the call is not recorded. */
void sj_arch_dispatch_entry(void);

/* Recorded calls return to this address. */
void sj_arch_return_thunk(void);

/* Start of the code that shares one description in the unwind table with the thunk. From
 * sj_arch_return_thunk_restored on, the description gives the caller as usual. Never called. */
void sj_arch_return_block(void);
void sj_arch_return_thunk_restored(void);

/* Writes SJ_DISPATCH_STUB_BYTES of code at `stub` that enter `record`. */
void sj_arch_write_stub(uint8_t *stub, const sj_dispatch_record *record);

#endif
