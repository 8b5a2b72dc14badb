/* Dispatch hooks: record a call where it is dispatched, when its target is not patched.
 *
 * A dispatcher (objc_msg_lookup, objc_msgSend) is replaced by code of ours that finds the record of
 * the message and goes on through sj_arch_dispatch_entry: it records the entry, replaces
 * the return address by sj_arch_return_thunk and jumps to the target. The true return
 * address is kept in a table that is indexed by the address of the return slot. The thunk's unwind
 * information reads that table, so that exceptions, forced unwinding, backtrace() and debuggers
 * pass it without help. A slot belongs to a stack address and not to a thread, so longjmp,
 * coroutines and signal stacks need no help either. */
#ifndef SJ_AGENT_INPROC_HOOKS_DISPATCH_H
#define SJ_AGENT_INPROC_HOOKS_DISPATCH_H

#include "agent/abi/return_slots.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One dispatched function, which its stub enters. The assembly knows the offsets. */
typedef struct sj_dispatch_record {
    void (*entry)(void); /* sj_arch_dispatch_entry */
    uint64_t target;     /* where the call goes on */
    uint32_t enter_tag;  /* of sj_record */
    uint32_t leave_tag;
} sj_dispatch_record;

enum { SJ_DISPATCH_STUB_BYTES = 32 };

extern sj_return_slot *sj_return_regions[SJ_RETURN_REGIONS] __attribute__((visibility("hidden")));

/* sj_return_slots_reserve reserves the region for return slots near `stack` (address space only:
 * pages come with use). False when there is no memory. Async-signal-safe; any thread. */
bool sj_return_slots_reserve(uint64_t stack);

/* sj_return_slots_release unmaps all regions. No call returns through a slot any more, and no
 * other thread runs. */
void sj_return_slots_release(void);

/* sj_return_slots_true_address returns the program's return address of the word `word`, which lies
 * at the address `at` of a stack: the one that is kept in the slot if the word is the thunk's
 * address, else the word itself. AArch64 keeps the slot elsewhere: the word itself.
 * Async-signal-safe; any thread. */
uint64_t sj_return_slots_true_address(uint64_t at, uint64_t word);

/* sj_return_slots_kept returns the return address that the slot of the word at `at` holds; 0: none.
 * Async-signal-safe; any thread. */
uint64_t sj_return_slots_kept(uint64_t at);

/* sj_return_slots_put_back does so for `count` words, copied from the stack at `at`. */
void sj_return_slots_put_back(uint64_t at, uint64_t *words, size_t count);

/* sj_arch_dispatch_entry is jumped to in the state of a call's first instruction, with the record
 * in the scratch register of the machine (x86-64: %r11; AArch64: x16). Keeps every register but
 * that one (AArch64: and x9 to x15 and x17, which no call passes anything in). Without a
 * slot the call is not recorded. */
void sj_arch_dispatch_entry(void);

/* sj_arch_return_thunk is where recorded calls return to. */
void sj_arch_return_thunk(void);

/* sj_arch_return_block begins the code that has one description in the unwind table with the thunk.
 * From sj_arch_return_thunk_restored on, that describes the caller as usual. Never called. */
void sj_arch_return_block(void);
void sj_arch_return_thunk_restored(void);

/* sj_arch_write_stub writes, at `stub`, SJ_DISPATCH_STUB_BYTES of code that enter `record`. */
void sj_arch_write_stub(uint8_t *stub, const sj_dispatch_record *record);

#endif
