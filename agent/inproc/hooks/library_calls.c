/* Design notes
 *
 * A call into a library goes through an import slot that the loader fills when it relocates the
 * calling module. The agent replaces the address in each recorded slot by the address of a stub.
 * The stub records the call through dispatch.h, which keeps the return address in a return slot for
 * unwinders.
 *
 * Programs are already relocated when the agent starts. The agent sees a later module before the
 * loader relocates it, and binds it when its initialisation begins (initialisation.h). */
#include "agent/abi/plan_check.h"
#include "agent/abi/record.h"
#include "agent/inproc/hooks/definition.h"
#include "agent/inproc/hooks/dynamic_view.h"
#include "agent/inproc/hooks/internal.h"
#include "agent/inproc/hooks/libc_calls.h"
#include "agent/inproc/hooks/module_walk.h"
#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/recorder/sys.h"
#include "proto/base/bisect.h"

#include <string.h>

enum { SLOT_BYTES = 8 };

/* State of one pass over the slots of a module. */
typedef struct bind_run {
    sj_hooked_module *module;
    /* NULL: stubs are written now. Otherwise the program is running: the stubs are only prepared,
     * for the targets that this function accepts. */
    bool (*may_dispatch_to)(uint64_t target);
    sj_hooks_report *report; /* NULL: unbound imports are not reported */
    bool is_deferred;
    void (*entry)(void); /* the loader calls it before the initialisers of a deferred module */
} bind_run;

typedef void slot_visit(const bind_run *run, const sj_dynamic_view *view, sj_library_call *call,
                        uint32_t symbol);

sj_status sj_library_calls_new(const sj_plan_header *plan, sj_hooked_module *module)
{
    uint32_t first = plan->function_count;
    while (first > 0 && sj_plan_functions(plan)[first - 1].source == SJ_SYMBOL_IMPORT) {
        first--;
    }
    const uint32_t count = plan->function_count - first;
    if (count == 0) {
        return SJ_OK;
    }
    const uint64_t bytes = sizeof(sj_library_calls) + (uint64_t)count * sizeof(sj_library_call);
    sj_library_calls *calls = sj_sys_allocate(bytes);
    if (calls == NULL) {
        return SJ_ENOMEM;
    }
    calls->bytes = bytes;
    calls->first = first;
    calls->count = count;
    for (uint32_t i = 0; i < count; i++) {
        calls->items[i].slot = module->bias + sj_plan_functions(plan)[first + i].offset;
    }
    module->calls = calls;
    return SJ_OK;
}

void sj_library_calls_free(sj_hooked_module *module)
{
    if (module->calls == NULL) {
        return;
    }
    sj_initialisation_deinit(&module->calls->init);
    (void)sj_sys_unmap(module->calls, module->calls->bytes);
    module->calls = NULL;
}

bool sj_code_emit_dispatch(const sj_application *application, sj_code_emitter *emitter,
                           uint32_t index)
{
    uint8_t code[SJ_DISPATCH_STUB_BYTES];
    const sj_library_calls *calls = application->calls;
    if (calls == NULL || index < calls->first) {
        return false;
    }
    sj_arch_write_stub(code, &calls->items[index - calls->first].record);
    sj_code_emit_bytes(emitter, code, sizeof(code));
    return true;
}

void sj_library_calls_add(sj_hooked_module *module, uint32_t index, uint64_t slot, uint64_t stub)
{
    sj_library_call *call = &module->calls->items[index - module->calls->first];
    const uint32_t id = module->first_function + index;
    *call = (sj_library_call){.record = {.entry = sj_arch_dispatch_entry,
                                         .enter_tag = sj_record_make_tag(SJ_RECORD_ENTER, id),
                                         .leave_tag = sj_record_make_tag(SJ_RECORD_LEAVE, id)},
                              .slot = slot,
                              .stub = stub,
                              .function = id};
}

static sj_library_call *find_call(sj_library_calls *calls, uint64_t slot)
{
    const uint32_t low = SJ_BISECT(0, calls->count, i, calls->items[i].slot < slot);
    return low < calls->count && calls->items[low].slot == slot ? &calls->items[low] : NULL;
}

static uint64_t find_symbol(void *scope, const char *name, const char *version)
{
    const void *found =
        version != NULL && dlvsym != NULL ? dlvsym(scope, name, version) : dlsym(scope, name);
    return (uint64_t)(uintptr_t)found;
}

static bool is_weak(const sj_dynamic_view *view, uint32_t symbol)
{
    return ELF64_ST_BIND(view->symbols[symbol].st_info) == STB_WEAK;
}

/* Resolves a lazily bound symbol as the loader would at the first call. If the module names no
 * version, tries the oldest version first.
 *
 * A position-dependent program may define its own PLT entry as a function's address, which a slot
 * must not hold. The definition after the program and the agent is then the right one.
 *
 * If the global scope lacks a symbol that is not weak, searches the modules' tables. dlsym would
 * read the module's own scope, which most modules do not have yet. */
static uint64_t bind_now(const sj_dynamic_view *view, uint32_t index)
{
    const char *name = view->strings + view->symbols[index].st_name;
    const char *version = sj_symbol_version(view, index);
    const uint64_t oldest = version == NULL ? sj_definition_oldest(name) : 0;
    if (oldest != 0) {
        return oldest;
    }
    const uint64_t first = find_symbol(RTLD_DEFAULT, name, version);
    const uint64_t next = find_symbol(RTLD_NEXT, name, version);
    if (first != 0 && (first == next || first == sj_rebind_find(name))) {
        return first;
    }
    return next != 0 || is_weak(view, index) ? next : sj_definition_find(name, version);
}

/* Returns the target of a slot while other threads run, or 0 if the target is unknown. Another
 * thread may be loading this module: a slot that is not relocated yet holds no address of code.
 * Does not resolve lazily bound weak symbols, because their only definition may be out of scope. */
static uint64_t find_definition(const sj_dynamic_view *view, uint32_t index, uint64_t held,
                                bool is_lazy)
{
    if (!is_lazy) {
        return sj_definition_is_code(held) ? held : 0;
    }
    return is_weak(view, index) ? 0
                                : sj_definition_find(view->strings + view->symbols[index].st_name,
                                                     sj_symbol_version(view, index));
}

static uint64_t find_target(const bind_run *run, const sj_dynamic_view *view, uint32_t index,
                            uint64_t held)
{
    const bool is_lazy = held >= view->text_low && held < view->text_high;
    if (run->may_dispatch_to != NULL) {
        const uint64_t target = find_definition(view, index, held, is_lazy);
        return target != 0 && run->may_dispatch_to(target) ? target : 0;
    }
    if (is_lazy) {
        return bind_now(view, index);
    }
    const bool is_function = ELF64_ST_TYPE(view->symbols[index].st_info) == STT_FUNC;
    return is_function || sj_definition_is_code(held) ? held : 0;
}

static void bind_slot(const bind_run *run, const sj_dynamic_view *view, sj_library_call *call,
                      uint32_t symbol)
{
    const uint64_t held = *(const volatile uint64_t *)call->slot;
    const uint64_t target = find_target(run, view, symbol, held);
    if (target == 0) {
        return;
    }
    call->record.target = target;
    sj_hook_change *change = sj_changes_add(run->module, call->slot, (const uint8_t *)&target,
                                            (const uint8_t *)&call->stub, SLOT_BYTES);
    change->function = call->function;
    change->is_slot = 1;
    if (run->may_dispatch_to == NULL) {
        change->written = sj_slot_write(view, call->slot, call->stub) ? 1 : 0;
    } else if (held != target) {
        /* Bind the slot now: lazy binding at the first call would overwrite the stub. */
        (void)sj_slot_write(view, call->slot, target);
    }
}

static void report_unbound(const bind_run *run, const sj_library_call *call, sj_skip skip)
{
    if (run->report != NULL) {
        sj_report_failure(run->report, call->function - run->module->first_function, skip);
        run->report->hooked--;
    }
}

static void report_all_unbound(const bind_run *run, sj_skip skip)
{
    const sj_library_calls *calls = run->module->calls;
    for (uint32_t i = 0; i < calls->count; i++) {
        if (calls->items[i].record.entry != NULL && calls->items[i].record.target == 0) {
            report_unbound(run, &calls->items[i], skip);
        }
    }
}

/* Reports a weak import without a definition while its module is deferred, because binding at the
 * module's initialisation reports nothing. */
static void report_missing(const bind_run *run, const sj_dynamic_view *view, sj_library_call *call,
                           uint32_t symbol)
{
    if (is_weak(view, symbol) &&
        sj_definition_is_missing(view->strings + view->symbols[symbol].st_name)) {
        report_unbound(run, call, SJ_SKIP_UNDEFINED);
    }
}

/* Visits the slots that are to be recorded and are not bound yet. */
static void visit_slots(const bind_run *run, const sj_dynamic_view *view, slot_visit *visit)
{
    for (sj_slot slot = {0}; sj_slot_next(view, &slot);) {
        if (slot.type == SJ_MACHINE_WORD || view->symbols[slot.symbol].st_shndx != SHN_UNDEF) {
            continue;
        }
        sj_library_call *call = find_call(run->module->calls, slot.address);
        if (call != NULL && call->record.entry != NULL && call->record.target == 0) {
            visit(run, view, call, slot.symbol);
        }
    }
}

static int bind_module(struct dl_phdr_info *info, size_t size, void *context)
{
    bind_run *run = context;
    sj_dynamic_view view;
    (void)size;
    if (info->dlpi_addr != run->module->bias || !sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    if (sj_initialisation_begin(&run->module->calls->init, &view)) {
        visit_slots(run, &view, bind_slot);
    }
    return 1;
}

void sj_library_calls_bind(sj_hooked_module *module, sj_hooks_report *report)
{
    bind_run run = {.module = module, .report = report};
    if (module->calls == NULL) {
        return;
    }
    (void)sj_module_walk(bind_module, &run);
    (void)dlerror(); /* clear the error of a failed lookup: the program must not see it */
    report_all_unbound(&run, SJ_SKIP_UNDEFINED);
}

static int prepare_module(struct dl_phdr_info *info, size_t size, void *context)
{
    const bind_run *run = context;
    sj_dynamic_view view;
    (void)size;
    if (info->dlpi_addr != run->module->bias || !sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    visit_slots(run, &view, bind_slot);
    return 1;
}

void sj_library_calls_prepare(sj_hooked_module *module, bool (*may_dispatch_to)(uint64_t target),
                              sj_hooks_report *report)
{
    bind_run run = {.module = module, .may_dispatch_to = may_dispatch_to, .report = report};
    if (module->calls == NULL) {
        return;
    }
    (void)sj_module_walk(prepare_module, &run);
    report_all_unbound(&run, SJ_SKIP_NOT_BOUND);
}

static int defer_module(struct dl_phdr_info *info, size_t size, void *context)
{
    bind_run *run = context;
    sj_dynamic_view view;
    (void)size;
    if (info->dlpi_addr != run->module->bias || !sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    run->is_deferred = sj_initialisation_defer(&run->module->calls->init, &view, run->entry);
    if (run->is_deferred) {
        visit_slots(run, &view, report_missing);
    }
    return 1;
}

void sj_library_calls_defer(sj_hooked_module *module, void (*entry)(void), sj_hooks_report *report)
{
    bind_run run = {.module = module, .report = report, .entry = entry};
    if (module->calls == NULL) {
        return;
    }
    (void)sj_module_walk(defer_module, &run);
    if (!run.is_deferred) {
        report_all_unbound(&run, SJ_SKIP_NOT_BOUND);
    }
}

static int release_module(struct dl_phdr_info *info, size_t size, void *context)
{
    sj_hooked_module *module = context;
    sj_dynamic_view view;
    (void)size;
    if (info->dlpi_addr != module->bias || !sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    (void)sj_initialisation_begin(&module->calls->init, &view);
    return 1;
}

void sj_library_calls_release(sj_hooked_module *module)
{
    (void)sj_module_walk(release_module, module);
}

bool sj_library_calls_is_deferred(const sj_hooked_module *module)
{
    return module->calls != NULL && module->calls->init.place != 0;
}
