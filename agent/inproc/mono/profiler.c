/* Design notes
 *
 * Hot path: compiled code calls sj_mono_on_enter and on_leave with the MonoMethod*. These read the
 * clock, find the method by one probe of a hash table, reserve a record and write it by two stores.
 * Mono may stop all threads at any instruction of this code, so it never waits for Mono.
 *
 * A stack overflow in a callback would end the program. So the entry callback first accesses the
 * stack as far down as callbacks need it. A fault there is reported to Mono as a fault of the
 * method (core/mono_overflow.h).
 *
 * Mono also reports exits by exception of methods that were compiled ahead of time or before the
 * agent came. Such a method has recorded calls only if its code is patched. The assembler knows
 * whether a call is open. */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/hooks/lasting.h"
#include "agent/inproc/recorder/write.h"

/* MonoProfilerCallInstrumentationFlags. */
enum {
    ENTER = 1 << 1,
    ENTER_CONTEXT = 1 << 2,
    LEAVE = 1 << 3,
    LEAVE_CONTEXT = 1 << 4,
    TAIL_CALL = 1 << 5,
    EXCEPTION_LEAVE = 1 << 6
};

/* "SJMONO1". Agents of other versions search for it. */
#define LASTING_MAGIC UINT64_C(0x314f4e4f4d4a53)
#define TICKS48_MASK ((UINT64_C(1) << 48) - 1)

static char self; /* Its address is the context that the runtime passes to callbacks. */
static void *profiler;
static _Atomic uint32_t enabled;
_Atomic uint64_t sj_mono_enter_caller;
/* True in an attached process: code that calls us may have been compiled for an earlier recording.
 */
static bool asks_at_entry;
static bool prefers_in_place;
static sj_lasting *lasting; /* Only in an attached process. Its `kept` word is the profiler. */

static inline void write_words(uint64_t address, uint32_t tag, uint64_t stack, uint64_t ticks)
{
    *(volatile uint64_t *)address = (ticks & TICKS48_MASK) | stack << 48;
    /* A tag other than 0, in the upper half of this word, means that the record is complete. */
    atomic_store_explicit((_Atomic uint64_t *)(address + 8), (uint64_t)tag << 32,
                          memory_order_release);
}

static __attribute__((noinline)) void write_slowly(uint32_t tag, uint64_t stack, uint64_t ticks)
{
    write_words(sj_recorder_slow(tag), tag, stack, ticks);
}

static inline void write_record(uint32_t function, sj_record_kind kind, uint64_t stack,
                                uint64_t ticks)
{
    const uint32_t tag = (uint32_t)kind << SJ_RECORD_FUNCTION_BITS | function;
    const uint64_t address = sj_arch_reserve(&sj_recorder_self.cursor, SJ_RECORD_BYTES);
    if (!sj_recorder_usable(address)) {
        write_slowly(tag, stack, ticks);
        return;
    }
    write_words(address, tag, stack, ticks);
}

/* Records the values of a call. Only methods whose values are recorded have a context. */
static void record_values(void *method, const sj_mono_method *entry, const void *context,
                          bool at_entry)
{
    const sj_mono_recipe *recipe =
        sj_recorder_is_armed() ? sj_mono_find_recipe(method, entry) : NULL;
    if (recipe != NULL) {
        sj_mono_record_values(method, recipe, context, at_entry);
    }
}

/* True if the method's code has to be patched. A runtime that started before the agent was attached
 * passes no call contexts to callbacks. */
static bool needs_hooks(const sj_mono_selection *selection)
{
    return selection->in_place || (prefers_in_place && sj_mono_may_hook_more()) ||
           (asks_at_entry && selection->descriptors != 0);
}

/* Returns the method's entry in the table; asks the recorder unless its code is patched. Returns
 * NULL if the recorder cannot be asked, if the table is full, or if the method is not recorded in a
 * launched program. */
static sj_mono_method *find_or_ask(void *method)
{
    if (atomic_load_explicit(&enabled, memory_order_relaxed) == 0 || !sj_recorder_is_armed() ||
        !sj_recorder_may_call()) {
        return NULL;
    }
    sj_mono_method *known = sj_mono_find_method(method);
    if (known != NULL && atomic_load(&known->state) == SJ_MONO_IS_PATCHED) {
        return known;
    }
    const sj_mono_selection selection = sj_mono_selection_of(method);
    if (selection.function == 0 && !asks_at_entry) {
        sj_mono_forget_method(method); /* Another method may have had this address. */
        return NULL;
    }
    if (!sj_mono_set_method(method, selection.function)) {
        atomic_fetch_add(&sj_mono_refused, 1);
        return NULL;
    }
    sj_mono_method *entry = sj_mono_find_method(method);
    sj_mono_set_wanted_values(entry, selection.descriptors);
    if (needs_hooks(&selection) && sj_mono_can_hook(method)) {
        uint32_t state = SJ_MONO_NEVER_ENTERED;
        (void)atomic_compare_exchange_strong(&entry->state, &state, SJ_MONO_TO_BE_PATCHED);
    }
    return entry;
}

static bool is_hooked(uint32_t state)
{
    return state == SJ_MONO_IS_PATCHED || state == SJ_MONO_TO_BE_PATCHED;
}

/* Returns which callbacks Mono has to call for a method. Mono asks when it compiles a method, when
 * it might inline it, and when an exception unwinds it. */
static uint32_t choose_calls(void *ours, void *method)
{
    (void)ours;
    const sj_mono_method *entry = find_or_ask(method);
    if (entry == NULL || atomic_load(&entry->function) == 0) {
        return 0;
    }
    if (is_hooked(atomic_load(&entry->state))) {
        return EXCEPTION_LEAVE; /* This flag adds no code, and the method is not inlined. */
    }
    const uint32_t calls = ENTER | LEAVE | TAIL_CALL | EXCEPTION_LEAVE;
    return sj_mono_has_values(entry) ? calls | ENTER_CONTEXT | LEAVE_CONTEXT : calls;
}

/* Records an entry in the rare cases: a new method, a method that is not recorded, or values. It is
 * a separate function, so that the common path saves no registers. */
static __attribute__((noinline)) void enter_slowly(void *method, void *context, uint64_t ticks)
{
    sj_mono_method *entry = sj_mono_find_method(method);
    if (entry == NULL) {
        entry = asks_at_entry ? find_or_ask(method) : NULL;
        if (entry == NULL) {
            return;
        }
    }
    const uint32_t function = atomic_load_explicit(&entry->function, memory_order_relaxed);
    const uint32_t state = atomic_load_explicit(&entry->state, memory_order_relaxed);
    if (function == 0 || is_hooked(state)) {
        return;
    }
    if (state == SJ_MONO_NEVER_ENTERED) {
        atomic_store_explicit(&entry->state, SJ_MONO_WAS_ENTERED, memory_order_relaxed);
    }
    if (context != NULL) {
        record_values(method, entry, context, true);
    }
    write_record(function, SJ_RECORD_ENTER, SJ_MANAGED_CALL, ticks);
}

/* Returns the function id of a method that was entered before and is at the first index of its
 * hash. Returns 0 in all other cases; then the slow path decides. */
static inline uint32_t find_entered(const void *method)
{
    const sj_mono_method *entry = &sj_mono_methods[sj_mono_place_of((uint64_t)(uintptr_t)method)];
    /* Pairs with the release store in sj_mono_set_method. */
    const bool is_same =
        atomic_load_explicit(&entry->method, memory_order_acquire) == (uint64_t)(uintptr_t)method;
    return is_same &&
                   atomic_load_explicit(&entry->state, memory_order_relaxed) == SJ_MONO_WAS_ENTERED
               ? atomic_load_explicit(&entry->function, memory_order_relaxed)
               : 0;
}

void sj_mono_on_enter(void *ours, void *method, void *context)
{
    const uint64_t ticks = sj_arch_ticks();
    const uint32_t function = find_entered(method);
    (void)ours;
    if (function == 0 || context != NULL) {
        atomic_store_explicit(&sj_mono_enter_caller,
                              (uint64_t)(uintptr_t)__builtin_return_address(0),
                              memory_order_relaxed);
        enter_slowly(method, context, ticks);
        return;
    }
    write_record(function, SJ_RECORD_ENTER, SJ_MANAGED_CALL, ticks);
}

static inline void record_leave(const void *method, sj_managed_stack how, uint64_t ticks)
{
    const sj_mono_method *entry = sj_mono_find_method(method);
    if (entry == NULL ||
        atomic_load_explicit(&entry->state, memory_order_relaxed) != SJ_MONO_WAS_ENTERED) {
        return;
    }
    const uint32_t function = atomic_load_explicit(&entry->function, memory_order_relaxed);
    if (function != 0) {
        write_record(function, SJ_RECORD_LEAVE, how, ticks);
    }
}

static __attribute__((noinline)) void leave_slowly(void *method, void *context)
{
    if (context != NULL) {
        const sj_mono_method *entry = sj_mono_find_method(method);
        if (entry != NULL) {
            record_values(method, entry, context, false);
        }
    }
    record_leave(method, SJ_MANAGED_CALL, sj_arch_ticks());
}

static void on_leave(void *ours, void *method, void *context)
{
    const uint32_t function = find_entered(method);
    (void)ours;
    if (function == 0 || context != NULL) {
        leave_slowly(method, context);
        return;
    }
    write_record(function, SJ_RECORD_LEAVE, SJ_MANAGED_CALL, sj_arch_ticks());
}

static void on_tail_call(void *ours, void *method, void *target)
{
    (void)ours;
    (void)target;
    record_leave(method, SJ_MANAGED_CALL, sj_arch_ticks());
}

/* Records an exit by exception. The entries of patched code were not recorded by callbacks; the
 * record says so (SJ_MANAGED_PASSED). */
static void on_exception_leave(void *ours, void *method, void *exception)
{
    const uint64_t ticks = sj_arch_ticks();
    const uint64_t stack = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    const sj_mono_method *entry = sj_mono_find_method(method);
    const uint32_t function = entry != NULL ? atomic_load(&entry->function) : 0;
    (void)ours;
    (void)exception; /* Mono passes NULL. */
    if (function == 0) {
        return;
    }
    const bool is_interrupted = sj_recorder_is_armed() && sj_mono_record_thrown(function, stack);
    const bool reports_entries = atomic_load(&entry->state) == SJ_MONO_WAS_ENTERED;
    const sj_managed_stack how = !reports_entries ? SJ_MANAGED_PASSED
                                 : is_interrupted ? SJ_MANAGED_INTERRUPTED
                                                  : SJ_MANAGED_THROWN;
    write_record(function, SJ_RECORD_LEAVE, how, ticks);
}

static void on_exception_throw(void *ours, void *exception)
{
    (void)ours;
    sj_mono_note_throw(exception, (uint64_t)(uintptr_t)__builtin_frame_address(0));
}

static void on_method_free(void *ours, void *method)
{
    (void)ours;
    sj_mono_forget_method(method);
}

static void on_image_unloading(void *ours, void *image)
{
    (void)ours;
    sj_mono_forget_image(image);
}

/* Adds an assembly (sj_mono_add_assembly). Mono calls it before it runs any code of the assembly.
 */
static void on_assembly_loaded(void *ours, void *assembly)
{
    (void)ours;
    if (atomic_load(&enabled) != 0 && sj_recorder_is_armed() && sj_recorder_may_call()) {
        sj_mono_add_assembly(assembly);
    }
}

static void on_initialized(void *ours)
{
    (void)ours;
    sj_mono_restore_environment();
    sj_mono_report_no_lines();
}

static void on_code_buffer(void *ours, const void *code, uint64_t bytes, int32_t type,
                           const void *data)
{
    enum { METHOD = 0 }; /* MonoProfilerCodeBufferType */
    (void)ours;
    if (type == METHOD && data != NULL && atomic_load(&enabled) != 0) {
        sj_mono_hook_compiled((void *)(uintptr_t)data, code, bytes);
    }
}

static uint64_t callback_address(uint32_t callback)
{
    switch (callback) {
    case SJ_MONO_ENTER:
        return (uint64_t)(uintptr_t)sj_arch_mono_enter;
    case SJ_MONO_LEAVE:
        return (uint64_t)(uintptr_t)on_leave;
    case SJ_MONO_TAIL_CALL:
        return (uint64_t)(uintptr_t)on_tail_call;
    case SJ_MONO_EXCEPTION_LEAVE:
        return (uint64_t)(uintptr_t)on_exception_leave;
    case SJ_MONO_EXCEPTION_THROW:
        return (uint64_t)(uintptr_t)on_exception_throw;
    case SJ_MONO_METHOD_FREE:
        return (uint64_t)(uintptr_t)on_method_free;
    case SJ_MONO_IMAGE_UNLOADING:
        return (uint64_t)(uintptr_t)on_image_unloading;
    case SJ_MONO_INITIALIZED:
        return (uint64_t)(uintptr_t)on_initialized;
    case SJ_MONO_ASSEMBLY_LOADED:
        return (uint64_t)(uintptr_t)on_assembly_loaded;
    case SJ_MONO_CODE_BUFFER:
        return (uint64_t)(uintptr_t)on_code_buffer;
    default:
        return (uint64_t)(uintptr_t)choose_calls;
    }
}

/* Finds or creates trampolines that stay in the process. When the agent is unloaded, a thread may
 * have read a callback's address and not called it yet. */
static bool has_lasting(void)
{
    if (lasting == NULL) {
        lasting = sj_lasting_find(LASTING_MAGIC);
    }
    if (lasting == NULL) {
        lasting = sj_lasting_new(LASTING_MAGIC, SJ_MONO_CALLBACKS);
    }
    return lasting != NULL;
}

/* Creates the profiler, or uses the profiler of an earlier agent: Mono cannot remove a profiler. */
static void create_profiler(bool is_attached)
{
    if (profiler == NULL && is_attached) {
        profiler = (void *)(uintptr_t)lasting->kept;
    }
    if (profiler == NULL) {
        profiler = sj_mono_runtime.profiler_create(is_attached ? (void *)lasting : &self);
    }
    if (is_attached) {
        lasting->kept = (uint64_t)(uintptr_t)profiler;
    }
}

void sj_mono_prefer_in_place(void)
{
    prefers_in_place = true;
}

void *sj_mono_profiler(void)
{
    return profiler;
}

bool sj_mono_is_registered(void)
{
    return profiler != NULL;
}

sj_status sj_mono_start(bool is_attached)
{
    if (sj_mono_find_api() != NULL) {
        return SJ_ENOTFOUND;
    }
    if (is_attached && sj_mono_runtime.is_shutting_down() != 0) {
        return SJ_OK; /* A runtime that shuts down has freed its profilers. */
    }
    if (is_attached && !has_lasting()) {
        return SJ_ENOMEM;
    }
    create_profiler(is_attached);
    asks_at_entry = is_attached;
    prefers_in_place = prefers_in_place || is_attached;
    atomic_store(&enabled, 1);
    for (uint32_t i = 0; i < SJ_MONO_CALLBACKS; i++) {
        uint64_t address = callback_address(i);
        if (is_attached) {
            sj_lasting_open(lasting, i, address);
            address = sj_lasting_address(lasting, i);
        }
        sj_mono_runtime.set_callback[i](profiler, address);
    }
    return SJ_OK;
}

void sj_mono_stop(void)
{
    if (atomic_exchange(&enabled, 0) == 0) {
        return;
    }
    for (uint32_t i = SJ_MONO_CALLBACKS; i-- > 0 && !sj_mono_runtime.is_shutting_down();) {
        sj_mono_runtime.set_callback[i](profiler, 0);
    }
    if (lasting != NULL) {
        sj_lasting_close(lasting, SJ_MONO_CALLBACKS);
    }
}
