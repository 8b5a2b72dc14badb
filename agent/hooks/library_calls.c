/* Design notes
 *
 * A call into a library goes through a slot that the loader fills when it relocates the calling
 * module. Each recorded slot gets the address of a stub that enters the call through dispatch.h:
 * the return address is kept beside the stack, where unwinders find it.
 * Programs are relocated when the agent starts. A module that is loaded later is seen before it is
 * relocated, so its initialisation function is replaced in its dynamic section until it runs. */
#include "agent/hooks/definition.h"
#include "agent/hooks/dynamic_view.h"
#include "agent/hooks/internal.h"
#include "agent/hooks/rebind.h"
#include "agent/planner/planner.h"
#include "agent/recorder/record.h"
#include "agent/recorder/sys.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, SLOT_BYTES = 8 };

/* What one pass over the slots of a module carries along. */
typedef struct bind_run {
    sj_hooked_module *module;
    void *handle;                      /* of the module, for dlsym */
    bool (*may_call)(uint64_t target); /* the program runs: changes are prepared only */
} bind_run;

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
    sj_library_calls *calls =
        sj_sys_map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sj_sys_failed(calls)) {
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
    if (module->calls->init_stub != NULL) {
        (void)sj_sys_unmap(module->calls->init_stub, PAGE);
    }
    (void)sj_sys_unmap(module->calls, module->calls->bytes);
    module->calls = NULL;
}

bool sj_emit_dispatch(const sj_application *application, sj_emitter *emitter, uint32_t index)
{
    uint8_t code[SJ_DISPATCH_STUB_BYTES];
    const sj_library_calls *calls = application->calls;
    if (calls == NULL || index < calls->first) {
        return false;
    }
    sj_arch_write_stub(code, &calls->items[index - calls->first].record);
    sj_emit_bytes(emitter, code, sizeof(code));
    return true;
}

void sj_library_calls_add(sj_hooked_module *module, uint32_t index, uint64_t slot, uint64_t stub)
{
    sj_library_call *call = &module->calls->items[index - module->calls->first];
    const uint32_t id = module->first_function + index;
    *call = (sj_library_call){
        .record = {.entry = sj_arch_dispatch_entry,
                   .enter_tag = (uint32_t)SJ_RECORD_ENTER << SJ_RECORD_FUNCTION_BITS | id,
                   .leave_tag = (uint32_t)SJ_RECORD_LEAVE << SJ_RECORD_FUNCTION_BITS | id},
        .slot = slot,
        .stub = stub,
        .function = id};
}

static sj_library_call *find_call(sj_library_calls *calls, uint64_t slot)
{
    uint32_t low = 0;
    uint32_t high = calls->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (calls->items[middle].slot < slot) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < calls->count && calls->items[low].slot == slot ? &calls->items[low] : NULL;
}

static uint64_t look_up(void *scope, const char *name, const char *version)
{
    const void *found = version != NULL ? dlvsym(scope, name, version) : dlsym(scope, name);
    return (uint64_t)(uintptr_t)found;
}

/* Does what the loader would do at the first call: the global scope, then that of the module. A
 * fixed program may have given its own linkage stub out as the address of the function: that is
 * none for a slot, and the next one after the program (and the agent, which follows it) is meant.
 */
static uint64_t bind_now(const bind_run *run, const sj_dynamic_view *view, uint32_t index)
{
    const ElfW(Sym) *symbol = &view->symbols[index];
    const char *name = view->strings + symbol->st_name;
    const char *version = sj_symbol_version(view, index);
    if (ELF64_ST_BIND(symbol->st_info) == STB_WEAK || run->handle == NULL) {
        return 0; /* there may be none, which is no error */
    }
    const uint64_t first = look_up(RTLD_DEFAULT, name, version);
    const uint64_t next = look_up(RTLD_NEXT, name, version);
    if (first != 0 && (first == next || first == sj_rebind_find(name))) {
        return first;
    }
    return next != 0 ? next : look_up(run->handle, name, version);
}

/* As bind_now, where other threads run, who may be loading this very module: what is not relocated
 * yet holds no address of code. */
static uint64_t find_definition(const sj_dynamic_view *view, uint32_t index, uint64_t held,
                                bool is_lazy)
{
    const ElfW(Sym) *symbol = &view->symbols[index];
    if (!is_lazy) {
        return sj_definition_is_code(held) ? held : 0;
    }
    return ELF64_ST_BIND(symbol->st_info) == STB_WEAK
               ? 0
               : sj_definition_find(view->strings + symbol->st_name,
                                    sj_symbol_version(view, index));
}

static uint64_t find_target(const bind_run *run, const sj_dynamic_view *view, uint32_t index,
                            uint64_t held)
{
    const bool is_lazy = held >= view->text_low && held < view->text_high;
    if (run->may_call != NULL) {
        const uint64_t target = find_definition(view, index, held, is_lazy);
        return target != 0 && run->may_call(target) ? target : 0;
    }
    return is_lazy ? bind_now(run, view, index) : held;
}

static void bind_slot(const bind_run *run, const sj_dynamic_view *view,
                      const ElfW(Rela) * relocation)
{
    const uint32_t type = (uint32_t)ELF64_R_TYPE(relocation->r_info);
    const uint32_t index = (uint32_t)ELF64_R_SYM(relocation->r_info);
    const uint64_t slot = view->bias + relocation->r_offset;
    if ((type != SJ_SLOT_JUMP && type != SJ_SLOT_DATA) ||
        view->symbols[index].st_shndx != SHN_UNDEF) {
        return;
    }
    sj_library_call *call = find_call(run->module->calls, slot);
    if (call == NULL || call->record.entry == NULL || call->record.target != 0) {
        return;
    }
    const uint64_t held = *(const volatile uint64_t *)slot;
    const uint64_t target = find_target(run, view, index, held);
    if (target == 0) {
        return;
    }
    call->record.target = target;
    sj_hook_change *change = sj_keep_change(run->module, slot, (const uint8_t *)&target,
                                            (const uint8_t *)&call->stub, SLOT_BYTES);
    change->function = call->function;
    change->is_slot = 1;
    if (run->may_call == NULL) {
        change->written = sj_slot_write(view, slot, call->stub) ? 1 : 0;
    } else if (held != target) {
        (void)sj_slot_write(view, slot, target); /* or its first call would write over the stub */
    }
}

static void bind_slots(const bind_run *run, const sj_dynamic_view *view)
{
    for (uint32_t t = 0; t < 2; t++) {
        for (size_t i = 0; i < view->table_bytes[t] / sizeof(ElfW(Rela)); i++) {
            bind_slot(run, view, &view->tables[t][i]);
        }
    }
}

static int bind_module(struct dl_phdr_info *info, size_t size, void *context)
{
    bind_run *run = context;
    sj_dynamic_view view;
    Dl_info known;
    (void)size;
    if (info->dlpi_addr != run->module->bias || !sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    if (dladdr1(view.dynamic, &known, &run->handle, RTLD_DL_LINKMAP) == 0) {
        run->handle = NULL;
    }
    sj_library_calls *calls = run->module->calls;
    if (calls->init_place != 0) {
        (void)sj_slot_write(&view, calls->init_place, calls->init.target - view.bias);
        calls->init_place = 0;
    }
    bind_slots(run, &view);
    return 1;
}

void sj_library_calls_bind(sj_hooked_module *module)
{
    bind_run run = {.module = module};
    if (module->calls == NULL) {
        return;
    }
    (void)dl_iterate_phdr(bind_module, &run);
    (void)dlerror(); /* what was not in the first scope is no error of the program's */
}

static int prepare_module(struct dl_phdr_info *info, size_t size, void *context)
{
    const bind_run *run = context;
    sj_dynamic_view view;
    (void)size;
    if (info->dlpi_addr != run->module->bias || !sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    bind_slots(run, &view);
    return 1;
}

void sj_library_calls_prepare(sj_hooked_module *module, bool (*may_call)(uint64_t target),
                              sj_hooks_report *report)
{
    bind_run run = {.module = module, .may_call = may_call};
    const sj_library_calls *calls = module->calls;
    if (calls == NULL) {
        return;
    }
    (void)dl_iterate_phdr(prepare_module, &run);
    for (uint32_t i = 0; i < calls->count; i++) {
        const sj_library_call *call = &calls->items[i];
        if (call->record.entry != NULL && call->record.target == 0) {
            sj_report_failure(report, call->function - module->first_function, SJ_SKIP_NOT_BOUND);
            report->hooked--;
        }
    }
}

/* Leads the loader to `stub` in place of the module's own initialisation function. */
static int replace_initialisation(struct dl_phdr_info *info, size_t size, void *context)
{
    sj_hooked_module *module = context;
    sj_library_calls *calls = module->calls;
    sj_dynamic_view view;
    (void)size;
    if (info->dlpi_addr != module->bias || !sj_dynamic_view_read(info, &view)) {
        return 0;
    }
    ElfW(Dyn) *entry = view.dynamic;
    while (entry->d_tag != DT_NULL && entry->d_tag != DT_INIT) {
        entry++;
    }
    if (entry->d_tag == DT_INIT && view.dynamic_is_writable) {
        calls->init.target = view.bias + entry->d_un.d_ptr;
        calls->init_place = (uint64_t)(uintptr_t)&entry->d_un.d_ptr;
        entry->d_un.d_ptr = (uint64_t)(uintptr_t)calls->init_stub - view.bias;
    }
    return 1;
}

void sj_library_calls_defer(sj_hooked_module *module)
{
    sj_library_calls *calls = module->calls;
    if (calls == NULL) {
        return;
    }
    uint8_t *stub =
        sj_sys_map(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sj_sys_failed(stub)) {
        return;
    }
    calls->init_stub = stub;
    calls->init.entry = sj_arch_init_entry;
    sj_arch_write_stub(stub, &calls->init);
    if (sj_sys_protect(stub, PAGE, PROT_READ | PROT_EXEC) == 0) {
        (void)dl_iterate_phdr(replace_initialisation, module);
    }
}

bool sj_library_calls_is_deferred(const sj_hooked_module *module)
{
    return module->calls != NULL && module->calls->init_place != 0;
}
