/* Design notes
 *
 * The stub of an allocating function decrements a thread-local counter. The stub of a freeing
 * function compares the address with the pool. Only for a sampled or guarded block does the stub
 * jump to a function of the agent. That function has the signature of the patched function; it
 * returns to the program itself, and calls the original function if needed. */
#include "agent/inproc/heap_guard/internal.h"

#include <string.h>

enum { CALL_BYTES = 13 };

bool sj_entries_supported(void)
{
    return true;
}

/* Emits a jump to a function: movabs $function, %r11; jmp *%r11 */
static void emit_jump_to(sj_code_emitter *emitter, uint64_t function)
{
    uint8_t code[CALL_BYTES] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};
    memcpy(code + 2, &function, sizeof(function));
    sj_code_emit_bytes(emitter, code, sizeof(code));
}

enum { SUBTRACT = 0x2c, COMPARE = 0x3c };

/* Emits a jump to `function` for the case that the sampling countdown ends: subq $1, %fs:countdown;
 * jg over the jump. An entry that calls another allocating entry uses cmpq, because the other entry
 * subtracts. */
static void emit_countdown(sj_code_emitter *emitter, uint64_t function, uint8_t operation)
{
    uint8_t code[] = {0x64, 0x48, 0x83, operation, 0x25, 0, 0, 0, 0, 1, 0x7f, CALL_BYTES};
    const char *thread = __builtin_thread_pointer();
    const int32_t offset = (int32_t)((const char *)&sj_sampling_countdown - thread);
    memcpy(code + 5, &offset, sizeof(offset));
    sj_code_emit_bytes(emitter, code, sizeof(code));
    emit_jump_to(emitter, function);
}

/* Emits a jump to the address in `*place`: movabs $place, %r11; jmp *(%r11). The code has
 * CALL_BYTES bytes, like the code of emit_jump_to. */
static void emit_jump_through(sj_code_emitter *emitter, const uint64_t *place)
{
    uint8_t code[CALL_BYTES] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0x23};
    const uint64_t address = (uint64_t)(uintptr_t)place;
    memcpy(code + 2, &address, sizeof(address));
    sj_code_emit_bytes(emitter, code, sizeof(code));
}

/* Operand bytes of mov %rdi, %rax and mov %rsi, %rax */
enum { MOVE_FIRST = 0xf8, MOVE_SECOND = 0xf0 };

/* Emits a jump to the entry's handler for the case that the argument lies in the pool: movabs
 * $pool, %r11; mov %rdi, %rax (%rsi if the address is the second argument); sub %r11, %rax; shr
 * $shift, %rax; jne over the jump */
static void emit_range(sj_code_emitter *emitter, sj_heap_entry entry)
{
    uint8_t code[] = {0x49, 0xbb, 0,    0,    0,    0,    0,    0,    0, 0,    0x48,
                      0x89, 0xf8, 0x4c, 0x29, 0xd8, 0x48, 0xc1, 0xe8, 0, 0x75, CALL_BYTES};
    memcpy(code + 2, &sj_heap_pool.base, sizeof(sj_heap_pool.base));
    code[12] = entry >= SJ_ENTRY_READ ? MOVE_SECOND : MOVE_FIRST;
    code[19] = (uint8_t)sj_heap_pool.shift;
    sj_code_emit_bytes(emitter, code, sizeof(code));
    emit_jump_through(emitter, &sj_residue_now->block_handlers[entry]);
}

/* Emits a jump to the address in `*place`, unless it is 0: movabs $place, %r11; mov (%r11), %r11;
 * test %r11, %r11; je over the jump; jmp *%r11 */
static void emit_jump_if_set(sj_code_emitter *emitter, const _Atomic uint64_t *place)
{
    uint8_t code[] = {0x49, 0xbb, 0,    0,    0,    0,    0, 0,    0,    0,   0x4d,
                      0x8b, 0x1b, 0x4d, 0x85, 0xdb, 0x74, 3, 0x41, 0xff, 0xe3};
    const uint64_t address = (uint64_t)(uintptr_t)place;
    memcpy(code + 2, &address, sizeof(address));
    sj_code_emit_bytes(emitter, code, sizeof(code));
}

/* Emits the jump to the counting function. It is emitted even if counting is off now, because a
 * stub cannot change later. counting_handlers turns it on and off. */
static void emit_counting(sj_code_emitter *emitter, const sj_zombie_region *region,
                          sj_heap_entry entry)
{
    if (sj_residue_now->has_counting != 0 && sj_counting_entry(region, entry) != 0) {
        emit_jump_if_set(emitter, &sj_residue_now->counting_handlers[entry]);
        if (!emitter->measuring) {
            sj_residue_now->uncounted[entry] = emitter->at;
        }
    }
}

static void emit_entry(sj_code_emitter *emitter, const sj_zombie_region *region,
                       sj_heap_entry entry)
{
    emit_counting(emitter, region, entry);
    if (entry < SJ_ENTRY_FREE) {
        emit_countdown(emitter, (uint64_t)(uintptr_t)sj_allocation_handler(entry),
                       region->is_forwarding[entry] != 0 ? COMPARE : SUBTRACT);
    } else if (entry == SJ_ENTRY_SIGACTION || entry == SJ_ENTRY_SIGMASK ||
               entry >= SJ_ENTRY_READV) {
        emit_jump_through(emitter, &sj_residue_now->block_handlers[entry]);
    } else {
        emit_range(emitter, entry);
        if (sj_delayed_free_entry(region, entry) != 0) {
            emit_jump_if_set(emitter, &sj_residue_now->delay_handlers[entry]);
        }
    }
}

/* Several functions may have the same address: they share one stub. */
void sj_entries_emit(void *context, sj_code_emitter *emitter, uint32_t index)
{
    const sj_entries_context *heap_entries = context;
    const sj_zombie_region *region = heap_entries->region;
    bool is_emitted = false;
    for (uint32_t entry = 0; entry < SJ_HEAP_ENTRIES; entry++) {
        if (region->heap_entries[entry] == index + 1 &&
            region->parts[entry] == heap_entries->part) {
            if (!is_emitted) {
                emit_entry(emitter, region, (sj_heap_entry)entry);
                is_emitted = true;
            }
            if (!emitter->measuring) {
                sj_heap_originals[entry] = emitter->at;
            }
        }
    }
}
