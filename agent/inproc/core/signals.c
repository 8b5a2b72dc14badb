/* Design notes
 *
 * A program that handles a fault looks up its place: in tables of exceptions (C++, Ada), of code
 * (OCaml, runtimes), or of symbols (samplers). A place in a stub is not in these tables. So the
 * handler's context is changed to the instruction for which the stub stands (agent/abi/stub_map.h).
 * When the handler returns and has not changed it, it is changed back.
 *
 * The true place is kept in the kernel's frame, in words that the kernel does not read. So handlers
 * may nest, run on any stack, and be left by longjmp or an exception.
 *
 * A signal may have several actions over time. The gate that the kernel calls identifies the
 * action, so that a handler never runs with the flags of another action. If the program queries an
 * action, it gets its own. Other processes that share this memory (children of vfork) change only
 * their own actions, and get no gates. */
#include "agent/inproc/core/signals.h"

#include "agent/abi/agent_state.h"
#include "agent/abi/hooked_module.h"
#include "agent/abi/machine.h"
#include "agent/inproc/core/agent_place.h"
#include "agent/inproc/core/arch.h"
#include "agent/inproc/core/modules.h"
#include "agent/inproc/core/mono_overflow.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/hooks/stub_areas.h"
#include "agent/inproc/mono/mono.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include SJ_ARCH_FILE(core, signal_context.h)

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

enum { SIGNALS = 65, SET_BYTES = 8, RESTORER_FLAG = 0x04000000 };

/* The kernel's struct sigaction. */
typedef struct kernel_action {
    uint64_t handler;
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
} kernel_action;

/* An action that the program has requested. */
typedef struct program_action {
    _Atomic uint64_t handler;
    _Atomic uint64_t restorer;
    _Atomic uint64_t has_restorer;
} program_action;

static program_action actions[SIGNALS][SJ_SIGNAL_GATES];
static _Atomic uint32_t next_gate[SIGNALS];
static _Atomic uint32_t process; /* pid of the process whose handlers get gates; 0: none */
static bool is_hooked;

static long set_action(uint64_t signal, const kernel_action *action, kernel_action *old)
{
    return SJ_SYS(SYS_rt_sigaction, signal, action, old, SET_BYTES, 0, 0);
}

static bool is_handler(uint64_t handler)
{
    return handler > (uint64_t)(uintptr_t)SIG_IGN;
}

/* Returns the gate at a handler's address, or SJ_SIGNAL_GATES if it is not a gate. */
static uint32_t gate_of(uint64_t handler)
{
    const uint64_t distance = handler - (uint64_t)(uintptr_t)&sj_arch_signal_gates;
    return distance % SJ_SIGNAL_GATE_BYTES == 0 && distance / SJ_SIGNAL_GATE_BYTES < SJ_SIGNAL_GATES
               ? (uint32_t)(distance / SJ_SIGNAL_GATE_BYTES)
               : (uint32_t)SJ_SIGNAL_GATES;
}

/* Returns the action's restorer, or 0 without the flag. The C library then passes an uninitialised
 * value. */
static uint64_t restorer_of(const kernel_action *action)
{
    return (action->flags & RESTORER_FLAG) != 0 ? action->restorer : 0;
}

/* Returns the gate that already has the action's handler, else the next one. A thread may have
 * reached a gate, but not its handler yet. It finds the right handler unless SJ_SIGNAL_GATES other
 * actions were set meanwhile. */
static uint32_t choose_gate(uint64_t signal, const kernel_action *action)
{
    for (uint32_t gate = 0; gate < SJ_SIGNAL_GATES; gate++) {
        const program_action *kept = &actions[signal][gate];
        if (atomic_load(&kept->handler) == action->handler &&
            atomic_load(&kept->restorer) == restorer_of(action) &&
            atomic_load(&kept->has_restorer) == (action->flags & RESTORER_FLAG)) {
            return gate;
        }
    }
    return atomic_fetch_add(&next_gate[signal], 1) % SJ_SIGNAL_GATES;
}

/* Changes an action of the program into the one for the kernel. */
static void put_gate(uint64_t signal, kernel_action *action)
{
    const uint32_t gate = choose_gate(signal, action);
    program_action *kept = &actions[signal][gate];
    atomic_store(&kept->restorer, restorer_of(action));
    atomic_store(&kept->has_restorer, action->flags & RESTORER_FLAG);
    atomic_store(&kept->handler, action->handler);
    action->handler =
        (uint64_t)(uintptr_t)&sj_arch_signal_gates + (uint64_t)gate * SJ_SIGNAL_GATE_BYTES;
    action->restorer = (uint64_t)(uintptr_t)&sj_arch_signal_return;
    action->flags |= RESTORER_FLAG;
}

/* Changes an action from the kernel into the program's. Returns false if it has no gate. */
static bool restore_program_action(uint64_t signal, kernel_action *action)
{
    const uint32_t gate = gate_of(action->handler);
    if (gate == SJ_SIGNAL_GATES) {
        return false;
    }
    const program_action *kept = &actions[signal][gate];
    action->handler = atomic_load(&kept->handler);
    action->restorer = atomic_load(&kept->restorer);
    action->flags = (action->flags & ~(uint64_t)RESTORER_FLAG) | atomic_load(&kept->has_restorer);
    return true;
}

static bool puts_gates(void)
{
    const uint32_t of = atomic_load(&process);
    return of != 0 && sj_recorder_may_call() && sj_sys_pid() == of;
}

/* Restores the program's action in the kernel, if it has a gate. If another thread installs an
 * action meanwhile, that one is kept. */
static void remove_gate(uint64_t signal)
{
    kernel_action gate;
    kernel_action replaced;
    if (set_action(signal, NULL, &gate) != 0) {
        return;
    }
    kernel_action action = gate;
    if (restore_program_action(signal, &action) && set_action(signal, &action, &replaced) == 0 &&
        replaced.handler != gate.handler) {
        (void)set_action(signal, &replaced, NULL);
    }
}

long sj_signals_change(uint64_t signal, const void *action, void *old, uint64_t set_bytes)
{
    kernel_action changed;
    const void *given = action;
    if (signal >= SIGNALS || set_bytes != SET_BYTES) {
        return SJ_SYS(SYS_rt_sigaction, signal, action, old, set_bytes, 0, 0);
    }
    if (action != NULL) {
        memcpy(&changed, action, sizeof(changed));
        if (is_handler(changed.handler) && gate_of(changed.handler) == SJ_SIGNAL_GATES &&
            puts_gates()) {
            put_gate(signal, &changed);
            given = &changed;
        }
    }
    const long result = SJ_SYS(SYS_rt_sigaction, signal, given, old, set_bytes, 0, 0);
    if (result == 0 && old != NULL) {
        (void)restore_program_action(signal, old);
    }
    /* sj_signals_leave may have run since: a tracer had stopped this thread before the call. */
    if (given == &changed && atomic_load(&process) == 0) {
        remove_gate(signal);
    }
    return result;
}

static bool is_touch(const sj_saved_context *saved, uint64_t address)
{
    return address == saved->sp - SJ_STUB_TOUCHED_BYTES ||
           address == saved->sp - SJ_STUB_VALUES_TOUCHED_BYTES;
}

/* True if the address lies in frames of the agent, or in the frame that it was making. */
static bool is_agent_stack(const sj_saved_context *saved, uint64_t address)
{
    return address < saved->shown_sp && address >= saved->sp - SJ_STUB_VALUES_TOUCHED_BYTES;
}

/* Corrects the fault address in two cases. The first is a fault whose siginfo contains the address
 * of the instruction. The second is the end of the stack, if a stub or the agent has met it, which
 * `is_ours` decides by the address. The fault then gets the address of the function's first push.
 * Mono looks for the address among its guard pages, and the address of that push may lie above
 * them. So with Mono it stays. */
static void correct_address(uint64_t signal, siginfo_t *info, void *context,
                            const sj_saved_context *saved,
                            bool (*is_ours)(const sj_saved_context *saved, uint64_t address))
{
    const bool is_at_code = signal == SIGILL || signal == SIGFPE || signal == SIGTRAP;
    const uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    if (is_at_code && info->si_code > 0 && address == saved->pc) {
        info->si_addr = (void *)(uintptr_t)saved->shown_pc; /* NOLINT(performance-no-int-to-ptr) */
    } else if ((signal == SIGSEGV || signal == SIGBUS) && info->si_code > 0 &&
               is_ours(saved, address) && !sj_mono_is_registered()) {
        const uint64_t pushed = saved->shown_sp - sizeof(uint64_t);
        info->si_addr = (void *)(uintptr_t)pushed; /* NOLINT(performance-no-int-to-ptr) */
        sj_context_set_fault(context, pushed);
    }
}

static bool is_on(const stack_t *stack, uint64_t address)
{
    return address - (uint64_t)(uintptr_t)stack->ss_sp < stack->ss_size;
}

/* Reports a handler on an alternate stack to the recorder. The kernel's frame lies there. */
static void note_begin(const ucontext_t *context)
{
    const stack_t *alternate = &context->uc_stack;
    if (is_on(alternate, (uint64_t)(uintptr_t)context)) {
        const uint64_t low = (uint64_t)(uintptr_t)alternate->ss_sp;
        sj_recorder_begin_handler(low, low + alternate->ss_size);
    }
}

/* Reports the end of the outermost handler on an alternate stack. */
static void note_end(const ucontext_t *context)
{
    const stack_t *alternate = &context->uc_stack;
    if (is_on(alternate, (uint64_t)(uintptr_t)context) &&
        !is_on(alternate, sj_context_get(context).sp)) {
        sj_recorder_end_handler();
    }
}

uint64_t sj_signals_enter(uint64_t signal, void *info, void *context, uint32_t gate,
                          uint64_t returns_to)
{
    const uint64_t handler = atomic_load(&actions[signal % SIGNALS][gate].handler);
    /* Other code may call the gate, after it has asked the kernel for the program's handler. Then
     * there is no frame of the kernel. */
    if (returns_to != (uint64_t)(uintptr_t)&sj_arch_signal_return) {
        return handler;
    }
    note_begin(context);
    sj_saved_context *saved = sj_context_saved(context);
    if (saved == NULL) {
        return handler;
    }
    sj_stub_state state = sj_context_get(context);
    *saved = (sj_saved_context){.pc = state.pc, .sp = state.sp, .link = state.link};
    if (sj_stubs_leave(&state)) {
        saved->magic = SJ_SAVED_CONTEXT_MAGIC;
        saved->shown_pc = state.pc;
        saved->shown_sp = state.sp;
        sj_context_set(context, &state);
        correct_address(signal, info, context, saved, is_touch);
    } else if (sj_agent_place_show(context, saved)) {
        correct_address(signal, info, context, saved, is_agent_stack);
    } else {
        (void)sj_mono_overflow_show(signal, info, context, saved);
    }
    return handler;
}

/* If the handler has forked, makes the child leave the slow path that the handler interrupted. */
static void restart_slow_path(void *context, const sj_saved_context *saved)
{
    enum { RED_ZONE_BYTES = 128, ALIGNMENT = 16 };
    if (!sj_recorder_must_restart(saved->sp, saved->shown_sp)) {
        return;
    }
    const uint64_t sp = (saved->sp - RED_ZONE_BYTES) & ~(uint64_t)(ALIGNMENT - 1);
    const sj_stub_state restart = {.pc = (uint64_t)(uintptr_t)&sj_recorder_restart,
                                   .sp = sp - SJ_MACHINE_CALL_PUSHES * sizeof(uint64_t),
                                   .link = saved->link};
    sj_context_set(context, &restart);
}

/* If a handler has changed where the thread continues, that change is kept. */
void sj_signals_return(void *context)
{
    note_end(context);
    sj_saved_context *saved = sj_context_saved(context);
    if (saved == NULL || saved->magic != SJ_SAVED_CONTEXT_MAGIC) {
        return;
    }
    const sj_stub_state now = sj_context_get(context);
    if (now.pc == saved->shown_pc && now.sp == saved->shown_sp) {
        const sj_stub_state inside = {.pc = saved->pc, .sp = saved->sp, .link = saved->link};
        sj_context_set(context, &inside);
        sj_agent_place_return(context, saved);
        sj_mono_overflow_return(context, saved);
        restart_slow_path(context, saved);
    } else if (saved->saved_registers != 0) {
        sj_recorder_leave(saved->sp, saved->shown_sp);
    }
    saved->magic = 0;
}

/* Installs a gate for a signal's handler. If another thread installs a handler between the query
 * and the change, that handler is kept. */
static void adopt(uint64_t signal)
{
    kernel_action found;
    kernel_action replaced;
    if (set_action(signal, NULL, &found) != 0) {
        return;
    }
    while (is_handler(found.handler) && gate_of(found.handler) == SJ_SIGNAL_GATES) {
        kernel_action gate = found;
        put_gate(signal, &gate);
        if (set_action(signal, &gate, &replaced) != 0 || replaced.handler == found.handler) {
            return;
        }
        (void)set_action(signal, &replaced, NULL);
        found = replaced;
    }
}

void sj_signals_adopt(void)
{
    if (is_hooked && sj_recorder_may_call()) {
        atomic_store(&process, sj_sys_pid());
        for (uint64_t signal = 1; signal < SIGNALS; signal++) {
            adopt(signal);
        }
    }
}

void sj_signals_leave(void)
{
    atomic_store(&process, 0);
    for (uint64_t signal = 1; signal < SIGNALS && is_hooked; signal++) {
        remove_gate(signal);
    }
}

void sj_signals_after_fork(void)
{
    if (atomic_load(&process) != 0 && sj_recorder_may_call()) {
        atomic_store(&process, sj_sys_pid());
    }
}

/* Returns the address at which the C library makes the system call rt_sigaction, or 0 if it is not
 * found. */
static uint64_t find_call(void)
{
    static const char *const names[] = {"__libc_sigaction", "sigaction"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const uint64_t function = sj_rebind_find(names[i]);
        const uint64_t call =
            function != 0 ? sj_arch_find_call_near(function, SYS_rt_sigaction) : 0;
        if (call != 0) {
            return call;
        }
    }
    return 0;
}

sj_status sj_signals_follow(void)
{
    uint8_t original[SJ_PATCH_MAX_BYTES];
    const uint64_t address = find_call();
    if (address == 0) {
        return SJ_EUNSUPPORTED;
    }
    sj_arch_action_resume = address + SJ_ARCH_NUMBERED_CALL_BYTES;
    memcpy(original, (const void *)(uintptr_t)address, SJ_RETURN_PATCH_BYTES);
    /* A thread between the load of the number and the call loads it again, so that it meets the
     * hook. Otherwise it would install a handler without a gate. */
    SJ_TRY(sj_modules_redirect(address, original, SJ_RETURN_PATCH_BYTES,
                               SJ_ARCH_NUMBERED_CALL_BYTES,
                               (uint64_t)(uintptr_t)&sj_arch_action_entry));
    sojourn_agent_state.signal_return = (uint64_t)(uintptr_t)&sj_arch_signal_return;
    is_hooked = true;
    return SJ_OK;
}
