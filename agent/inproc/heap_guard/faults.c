/* Design notes
 *
 * The kernel calls our handler of SIGSEGV and SIGBUS. For a fault outside the pool, our handler
 * calls the program's handler, which is stored here. The agent also patches sigaction, to store the
 * handlers that the program installs later. Each change of a handler writes the next element of
 * `kept` and then publishes its index in `latest`. So a signal handler never reads a half-written
 * element. Our handler does not change errno, because it makes its system calls without the C
 * library. */
#include "agent/inproc/heap_guard/internal.h"

#include "agent/inproc/heap_guard/trace.h"
#include "agent/inproc/hooks/stub_areas.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

enum { KEPT_ACTIONS = 64, SET_BYTES = 8, SIGNALS = 2, RESTORER_FLAG = 0x04000000 };

typedef int (*sigaction_function)(int signal, const struct sigaction *action,
                                  struct sigaction *old);
typedef int (*sigmask_function)(int how, const sigset_t *set, sigset_t *old);
typedef void (*plain_handler)(int signal);

typedef struct program_action {
    struct sigaction kept[KEPT_ACTIONS];
    _Atomic uint32_t latest; /* Index of the newest element of `kept`, modulo KEPT_ACTIONS. */
} program_action;

static const int signals[SIGNALS] = {SIGSEGV, SIGBUS};
static program_action actions[SIGNALS];

/* Our handlers are installed when the first block is guarded, not earlier. In an attached
 * process, the patch of sigaction is written long after it is prepared. Until then, the program
 * could replace our handlers. */
static _Atomic uint32_t handling;
enum { HANDLING_NONE, HANDLING_BEGINS, HANDLING_ALL, HANDLING_FAILED };

static uint32_t handled_process; /* Id of the process that may install our handlers. */

static program_action *action_of(int signal)
{
    return signal == SIGSEGV ? &actions[0] : signal == SIGBUS ? &actions[1] : NULL;
}

static void handle_fault(int signal, siginfo_t *info, void *context);

static sigaction_function real_sigaction(void)
{
    return (sigaction_function)sj_heap_originals[SJ_ENTRY_SIGACTION];
}

static bool is_our_action(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == handle_fault;
}

static int install_our_handler(int signal, int program_flags, struct sigaction *before)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_NODEFER |
                                         (program_flags & (SA_ONSTACK | SA_RESTART))};
    ours.sa_sigaction = handle_fault;
    return real_sigaction()(signal, &ours, before);
}

static void store_action(program_action *action, const struct sigaction *given)
{
    const uint32_t next = atomic_load(&action->latest) + 1;
    action->kept[next % KEPT_ACTIONS] = *given;
    atomic_store_explicit(&action->latest, next, memory_order_release);
}

static struct sigaction current_action(const program_action *action)
{
    return action->kept[atomic_load_explicit(&action->latest, memory_order_acquire) % KEPT_ACTIONS];
}

static sigset_t without_fault_signals(const sigset_t *set)
{
    sigset_t unblocked = *set;
    for (uint32_t i = 0; i < SIGNALS; i++) {
        unblocked.__val[0] &= ~(UINT64_C(1) << (signals[i] - 1));
    }
    return unblocked;
}

int sj_faults_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    const sigmask_function real = (sigmask_function)sj_heap_originals[SJ_ENTRY_SIGMASK];
    if (set == NULL || how == SIG_UNBLOCK) {
        return real(how, set, old);
    }
    const sigset_t unblocked = without_fault_signals(set);
    return real(how, &unblocked, old);
}

/* Stores the program's action as the C library's sigaction would return it. The C library adds a
 * restorer to each action, so this function copies the restorer of our own action. */
static void store_with_restorer(program_action *kept, int signal, const struct sigaction *given)
{
    struct sigaction shown = *given;
    struct sigaction ours;
    if (real_sigaction()(signal, NULL, &ours) == 0) {
        shown.sa_flags |= ours.sa_flags & RESTORER_FLAG;
        shown.sa_restorer = ours.sa_restorer;
    }
    store_action(kept, &shown);
}

/* Sets the action of a signal other than SIGSEGV and SIGBUS. Its handler may access a closed page,
 * so it must not block SIGSEGV and SIGBUS. */
static int set_other_action(int signal, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction unblocked;
    if (action == NULL) {
        return real_sigaction()(signal, action, old);
    }
    unblocked = *action;
    unblocked.sa_mask = without_fault_signals(&action->sa_mask);
    return real_sigaction()(signal, &unblocked, old);
}

int sj_faults_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    const sigaction_function real = real_sigaction();
    program_action *kept = action_of(signal);
    if (kept == NULL) {
        return set_other_action(signal, action, old);
    }
    if (atomic_load(&kept->latest) == 0) {
        return real(signal, action, old);
    }
    const struct sigaction before = current_action(kept);
    if (action != NULL) {
        const int result = install_our_handler(signal, action->sa_flags, NULL);
        if (result != 0) {
            return result;
        }
        store_with_restorer(kept, signal, action);
    }
    if (old != NULL) {
        *old = before;
    }
    return 0;
}

/* Restores the default action, so that the signal ends the program. A fault occurs again when the
 * handler returns. A signal that a process sent is sent again. */
static void restore_default(int signal, const siginfo_t *info)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    (void)real_sigaction()(signal, &usual, NULL);
    if (info->si_code <= 0) {
        (void)SJ_SYS(SYS_tgkill, sj_sys_pid(), sj_sys_tid(), signal, 0, 0, 0);
    }
}

static void call_program_handler(int signal, siginfo_t *info, void *context)
{
    program_action *kept = action_of(signal);
    const struct sigaction action = current_action(kept);
    const bool is_sent_signal = info->si_code <= 0;
    if (action.sa_handler == SIG_IGN && is_sent_signal) {
        return;
    }
    if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) {
        restore_default(signal, info);
        return;
    }
    sigset_t blocked = action.sa_mask;
    if ((action.sa_flags & SA_NODEFER) == 0) {
        blocked.__val[0] |= UINT64_C(1) << (signal - 1);
    }
    (void)SJ_SYS(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, 0, SET_BYTES, 0, 0);
    if ((action.sa_flags & (int)SA_RESETHAND) != 0) {
        struct sigaction usual = action; /* Like the kernel, resets only the handler. */
        usual.sa_handler = SIG_DFL;
        store_action(kept, &usual);
    }
    if ((action.sa_flags & SA_SIGINFO) != 0) {
        action.sa_sigaction(signal, info, context);
    } else {
        ((plain_handler)action.sa_handler)(signal);
    }
}

/* Returns the slot of the block next to an address in a guard page, or NULL. `slot` is the slot
 * after the guard page, or NULL. If blocks lie on both sides of the guard page, returns the nearer
 * one. */
static sj_pool_slot *find_neighbour(uint64_t address, sj_pool_slot *slot, sj_zombie_kind *kind)
{
    sj_pool_slot *before = address - sj_page_bytes() >= sj_heap_pool.base
                               ? sj_pool_find(address - sj_page_bytes())
                               : NULL;
    const uint64_t page = sj_page_start(address);
    const bool is_after = before != NULL && before != slot && before->address != 0 &&
                          before->address + before->size > page - sj_page_bytes();
    const bool is_before = slot != NULL && slot->address == page + sj_page_bytes();
    if (is_after && is_before &&
        slot->address - address < address - (before->address + before->size)) {
        *kind = SJ_ZOMBIE_UNDERFLOW;
        return slot;
    }
    *kind = is_after ? SJ_ZOMBIE_OVERFLOW : SJ_ZOMBIE_UNDERFLOW;
    return is_after ? before : is_before ? slot : NULL;
}

sj_pool_slot *sj_faults_classify(uint64_t address, sj_zombie_kind *kind)
{
    sj_pool_slot *slot = sj_pool_find(address);
    const bool is_guard =
        slot == NULL || (address - sj_pool_slot_start(slot)) / sj_page_bytes() == 0;
    if (is_guard) {
        slot = find_neighbour(address, slot, kind);
    } else {
        *kind = address >= slot->address ? SJ_ZOMBIE_OVERFLOW : SJ_ZOMBIE_UNDERFLOW;
    }
    if (slot == NULL || slot->address == 0) {
        *kind = SJ_ZOMBIE_WILD_ACCESS;
        return NULL;
    }
    if (sj_slot_is_freed(slot)) {
        *kind = SJ_ZOMBIE_USE_AFTER_FREE;
    }
    return slot;
}

/* If the fault is in a stub, sets the program counter and the stack pointer of `use` to the values
 * that they would have at the original instruction. */
static void move_out_of_stub(sj_zombie_trace *use)
{
    sj_stub_state state = {.pc = use->registers[SJ_TRACE_COUNTER],
                           .sp = use->registers[SJ_TRACE_STACK_POINTER]};
    if (sj_stubs_leave(&state)) {
        use->registers[SJ_TRACE_COUNTER] = state.pc;
        use->registers[SJ_TRACE_STACK_POINTER] = state.sp;
    }
}

static void report_fault(int signal, uint64_t address, const siginfo_t *info, void *context)
{
    sj_zombie_trace use = {0};
    sj_zombie_kind kind;
    sj_pool_slot *slot = sj_faults_classify(address, &kind);
    sj_trace_of_context(&use, context);
    move_out_of_stub(&use);
    if (sj_report_use(slot, kind, address, sj_context_is_write(context), &use,
                      use.registers[SJ_TRACE_COUNTER]) == SJ_ZOMBIE_STOP) {
        restore_default(signal, info);
    } else {
        sj_pool_open_pages(sj_pool_find(address), address);
    }
}

static void handle_fault(int signal, siginfo_t *info, void *context)
{
    const uint64_t address = (uint64_t)(uintptr_t)info->si_addr;
    const bool is_fault = info->si_code == SEGV_ACCERR || info->si_code == SEGV_MAPERR;
    if (is_fault && sj_pool_has(address)) {
        report_fault(signal, address, info, context);
    } else {
        call_program_handler(signal, info, context);
    }
}

/* Stores the program's handlers and installs ours. A thread may change a handler between the two
 * calls of sigaction. Then the handler that the second call replaced is stored. */
static bool install_handlers(void)
{
    for (uint32_t i = 0; i < SIGNALS; i++) {
        struct sigaction before;
        struct sigaction replaced;
        if (real_sigaction()(signals[i], NULL, &before) != 0) {
            return false;
        }
        store_action(&actions[i], &before);
        if (install_our_handler(signals[i], SA_ONSTACK | before.sa_flags, &replaced) != 0) {
            return false;
        }
        if (!is_our_action(&replaced) && replaced.sa_handler != before.sa_handler) {
            store_action(&actions[i], &replaced);
        }
    }
    return true;
}

void sj_faults_adopt(void)
{
    handled_process = sj_sys_pid();
}

bool sj_faults_are_handled(void)
{
    uint32_t none = HANDLING_NONE;
    if (atomic_load_explicit(&handling, memory_order_acquire) == HANDLING_ALL) {
        return true;
    }
    if (sj_sys_pid() != handled_process) {
        return false; /* A child of vfork shares our memory, but not our signal handlers. */
    }
    if (!atomic_compare_exchange_strong(&handling, &none, HANDLING_BEGINS)) {
        return false;
    }
    const bool is_done = install_handlers();
    atomic_store_explicit(&handling, is_done ? HANDLING_ALL : HANDLING_FAILED,
                          memory_order_release);
    return is_done;
}

void sj_faults_end(void)
{
    for (uint32_t i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        const struct sigaction before = current_action(&actions[i]);
        if (atomic_load(&actions[i].latest) != 0 && real_sigaction()(signals[i], NULL, &now) == 0 &&
            is_our_action(&now)) {
            (void)real_sigaction()(signals[i], &before, NULL);
        }
        atomic_store(&actions[i].latest, 0);
    }
    atomic_store(&handling, HANDLING_FAILED);
}
