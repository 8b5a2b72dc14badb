/* Design notes
 *
 * The agent's unwind table leads from each of its instructions to the stub that called it. The
 * table also says where the registers of callers are saved. So the slow path does not publish
 * anything, and does not become slower.
 *
 * The interrupted registers are kept in the frame of the assembly that called the C code. That
 * frame lies on the interrupted stack, so handlers may nest, and need not return.
 *
 * A dispatched call stands for its target's first instruction. The code through which it returns
 * stands for the instruction after the call. Agent code that a runtime calls has a caller with
 * unwind tables, so its place is not changed. */
#include "agent/inproc/core/agent_place.h"

#include "agent/abi/machine.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/hooks/native_frame.h"
#include "agent/inproc/hooks/stub_areas.h"

#include SJ_ARCH_FILE(core, signal_context.h)
#include SJ_ARCH_FILE(hooks, dispatch_code.h)

#include <elf.h>
#include <string.h>
#include <ucontext.h>

enum { MOST_FRAMES = 24, PUSHED_BYTES = SJ_MACHINE_CALL_PUSHES ? sizeof(uint64_t) : 0 };

/* The linker's name for the ELF header of this module. */
extern const Elf64_Ehdr own_head __asm__("__ehdr_start") __attribute__((visibility("hidden")));

/* An assembly function whose frame has space for registers: `distance` bytes below the stack
 * pointer of the place. */
typedef struct agent_frame {
    void (*function)(void);
    uint64_t distance;
} agent_frame;

static const agent_frame frames[] = {
    {sj_arch_slow_entry, SJ_ENTRY_SAVED_DISTANCE},
    {sj_arch_values_entry, SJ_ENTRY_SAVED_DISTANCE},
    {sj_arch_dispatch_entry, SJ_DISPATCH_SAVED_DISTANCE},
};

/* State of a walk from the interrupted registers to the program's. */
typedef struct agent_walk {
    sj_native_module agent;
    uint64_t registers[SJ_NATIVE_REGISTERS];
    uint64_t *saved_registers; /* space for registers; NULL: none */
    bool is_behind;            /* the program counter follows a call */
    bool is_placed;            /* the program counter is the program's */
    uint64_t function;         /* the agent's function that was left last */
} agent_walk;

static sj_native_module find_agent(void)
{
    const uint64_t low = (uint64_t)(uintptr_t)&own_head;
    const Elf64_Phdr *headers = (const Elf64_Phdr *)(uintptr_t)(low + own_head.e_phoff);
    sj_native_module agent = {.low = low, .high = low, .index = 0};
    for (uint32_t i = 0; i < own_head.e_phnum; i++) {
        const uint64_t address = low + headers[i].p_vaddr;
        const uint64_t end = address + headers[i].p_memsz;
        if (headers[i].p_type == PT_LOAD && end > agent.high) {
            agent.high = end;
        } else if (headers[i].p_type == PT_GNU_EH_FRAME) {
            agent.index = address;
        }
    }
    return agent;
}

static bool is_in_agent(const agent_walk *walk)
{
    const uint64_t at = walk->registers[SJ_NATIVE_PC] - walk->is_behind;
    return at >= walk->agent.low && at < walk->agent.high;
}

static uint64_t address_of(void (*function)(void))
{
    return (uint64_t)(uintptr_t)function;
}

static bool leave_frame(agent_walk *walk)
{
    const bool has_left = sj_native_leave(&walk->agent, walk->is_behind, walk->registers);
    walk->is_behind = true;
    return has_left;
}

/* Changes the registers at the return of a dispatched call to those at its target's first
 * instruction. */
static void enter_target(agent_walk *walk)
{
    const uint64_t record = walk->registers[SJ_NATIVE_RECORD];
    walk->registers[SJ_NATIVE_PC] = ((const sj_dispatch_record *)(uintptr_t)record)->target;
    walk->registers[SJ_NATIVE_SP] -= PUSHED_BYTES;
    walk->is_behind = false;
    walk->is_placed = true;
}

/* Changes the registers to those after the call that returns. The block of the thunk begins with
 * the call of a target. */
static bool leave_thunk(agent_walk *walk)
{
    const uint64_t pc = walk->registers[SJ_NATIVE_PC];
    if (walk->is_behind || pc >= address_of(sj_arch_return_thunk_restored)) {
        walk->is_placed = leave_frame(walk);
    } else if (pc == address_of(sj_arch_return_block)) {
        enter_target(walk);
    } else {
        const uint64_t slot = walk->registers[SJ_NATIVE_SP] - PUSHED_BYTES;
        walk->registers[SJ_NATIVE_PC] = sj_return_slots_kept(slot);
        walk->is_placed = walk->registers[SJ_NATIVE_PC] != 0;
    }
    walk->is_behind = false;
    return walk->is_placed;
}

/* Changes the registers from the frame of sj_arch_jump_entry to those in the stub where it
 * continues. */
static bool leave_jump(agent_walk *walk)
{
    const bool is_first = walk->registers[SJ_NATIVE_PC] == address_of(sj_arch_jump_entry);
    const agent_walk before = *walk;
    if (!leave_frame(walk)) {
        return false;
    }
    sj_jump_leave(walk->registers, is_first ? before.registers : NULL);
    walk->is_behind = false;
    return true;
}

static bool leave_function(agent_walk *walk, uint64_t function)
{
    if (function == address_of(sj_arch_return_block)) {
        return leave_thunk(walk);
    }
    if (function == address_of(sj_arch_jump_entry)) {
        return leave_jump(walk);
    }
    const bool has_left = leave_frame(walk);
    if (has_left && function == address_of(sj_arch_dispatch_entry)) {
        enter_target(walk);
    }
    walk->function = function;
    return has_left;
}

/* Notes the register space of the frame that was left, whose stack pointer was `sp`. It notes only
 * the first frame with register space, and only if the frame extends below that space. Before that,
 * the space may lie in a guard page, and all registers are still unchanged. */
static void note_saved(agent_walk *walk, uint64_t function, uint64_t sp)
{
    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]) && walk->saved_registers == NULL;
         i++) {
        const uint64_t saved_registers = walk->registers[SJ_NATIVE_SP] - frames[i].distance;
        if (function == address_of(frames[i].function) && sp < saved_registers) {
            walk->saved_registers =
                (uint64_t *)(uintptr_t)saved_registers; /* NOLINT(performance-no-int-to-ptr) */
        }
    }
}

static bool leave_agent(agent_walk *walk)
{
    for (uint32_t i = 0; i < MOST_FRAMES && is_in_agent(walk); i++) {
        const uint64_t sp = walk->registers[SJ_NATIVE_SP];
        const uint64_t pc = walk->registers[SJ_NATIVE_PC];
        const uint64_t function = sj_native_function(&walk->agent, pc - walk->is_behind);
        if (function == 0 || !leave_function(walk, function)) {
            return false;
        }
        note_saved(walk, function, sp);
        if (walk->is_placed) {
            return true;
        }
    }
    return !is_in_agent(walk);
}

/* Leaves the stub that called the agent. If no stub did, returns true only if the walk has found
 * the program's place, or has left sj_arch_values_entry. A rule that sets a result makes that
 * function return to the caller of the recorded function. */
static bool leave_stub(agent_walk *walk)
{
    sj_stub_state state = {.pc = walk->registers[SJ_NATIVE_PC],
                           .sp = walk->registers[SJ_NATIVE_SP],
                           .link = walk->registers[SJ_NATIVE_RETURN],
                           .is_behind = walk->is_behind};
    uint64_t bytes;
    if (sj_stub_areas_find(state.pc - state.is_behind, &bytes) == 0) {
        return walk->is_placed || walk->function == address_of(sj_arch_values_entry);
    }
    const bool has_left = sj_stubs_leave(&state);
    walk->registers[SJ_NATIVE_RETURN] = state.link;
    walk->registers[SJ_NATIVE_PC] = state.pc;
    walk->registers[SJ_NATIVE_SP] = state.sp;
    return has_left;
}

/* True if the walk has changed registers other than the program counter, the stack pointer and the
 * return address. */
static bool has_changed_others(const agent_walk *walk, const uint64_t *found)
{
    bool has_changed = false;
    for (uint32_t i = 0; i < SJ_NATIVE_REGISTERS; i++) {
        has_changed |= i != SJ_NATIVE_PC && i != SJ_NATIVE_SP && i != SJ_NATIVE_RETURN &&
                       walk->registers[i] != found[i];
    }
    return has_changed;
}

/* False if the handler runs on an alternate stack without enough space for a walk. */
static bool has_stack(const ucontext_t *context)
{
    enum { WALK_BYTES = 16 * SJ_NATIVE_REGISTERS * sizeof(uint64_t) };
    const stack_t *alternate = &context->uc_stack;
    const uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    const uint64_t left = here - (uint64_t)(uintptr_t)alternate->ss_sp;
    return left >= alternate->ss_size || left >= WALK_BYTES;
}

bool sj_agent_place_show(void *context, sj_saved_context *saved)
{
    if (!has_stack(context)) {
        return false;
    }
    uint64_t found[SJ_NATIVE_REGISTERS];
    agent_walk walk = {.agent = find_agent()};
    sj_context_get_all(context, walk.registers);
    memcpy(found, walk.registers, sizeof(found));
    if (!is_in_agent(&walk) || !leave_agent(&walk) || !leave_stub(&walk)) {
        return false;
    }
    if (walk.saved_registers != NULL) {
        memcpy(walk.saved_registers, found, sizeof(found));
    } else if (has_changed_others(&walk, found)) {
        return false;
    }
    sj_context_set_all(context, walk.registers);
    saved->saved_registers = (uint64_t)(uintptr_t)walk.saved_registers;
    saved->magic = SJ_SAVED_CONTEXT_MAGIC;
    saved->shown_pc = walk.registers[SJ_NATIVE_PC];
    saved->shown_sp = walk.registers[SJ_NATIVE_SP];
    return true;
}

void sj_agent_place_return(void *context, const sj_saved_context *saved)
{
    if (saved->saved_registers != 0) {
        sj_context_set_all(context, (const uint64_t *)(uintptr_t)saved->saved_registers);
    }
}
