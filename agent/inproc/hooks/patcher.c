#include "agent/abi/page.h"
#include "agent/abi/plan_check.h"
#include "agent/abi/record.h"
#include "agent/inproc/hooks/debugger.h"
#include "agent/inproc/hooks/internal.h"
#include "agent/inproc/hooks/stub_areas.h"
#include "agent/inproc/hooks/stub_notes.h"
#include "agent/inproc/hooks/unwind_table.h"
#include "agent/inproc/recorder/callers.h"
#include "agent/inproc/recorder/changes.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"
#include "agent/inproc/recorder/values.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { SMALL_PLAN_BYTES = 4096 };

enum { CLAIMS = 256 };

static bool avoids_page_crossings;

/* Patched ranges of entries that run code of sj_hooks_apply_entries. A range is claimed even if a
 * tracer has not written its patch yet. */
static struct claim {
    uint64_t low;
    uint64_t high;
} claims[CLAIMS];
static uint32_t claim_count;

/* The caller has checked that there is space. */
static void claim(uint64_t address, uint32_t bytes)
{
    claims[claim_count++] = (struct claim){.low = address, .high = address + bytes};
}

static bool is_claimed(uint64_t address, uint32_t bytes)
{
    for (uint32_t i = 0; i < claim_count; i++) {
        if (address < claims[i].high && claims[i].low < address + bytes) {
            return true;
        }
    }
    return false;
}

void sj_hooks_avoid_page_crossings(void)
{
    avoids_page_crossings = true;
}

bool sj_hooks_are_special(void)
{
    return claim_count != 0 || avoids_page_crossings || sj_hooks_expects_dispatch();
}

static bool crosses_page(uint64_t address, uint32_t bytes)
{
    return sj_page_start(address) != sj_page_start(address + bytes - 1);
}

/* Memory for plans of one or two methods. Runtimes compile thousands of methods one by one. */
static _Alignas(16) uint8_t
    small_scratch[(SJ_LABELS_PER_STUB + 1) * sizeof(uint64_t) + SMALL_PLAN_BYTES];
static _Atomic uint32_t is_scratch_used;

static void *allocate_scratch(uint64_t bytes)
{
    if (bytes > sizeof(small_scratch) || atomic_exchange(&is_scratch_used, 1) != 0) {
        return sj_sys_allocate(bytes);
    }
    memset(small_scratch, 0, bytes);
    return small_scratch;
}

static void close_application(const sj_application *application)
{
    if (application->scratch == (void *)small_scratch) {
        atomic_store(&is_scratch_used, 0);
    } else {
        (void)sj_sys_unmap(application->scratch, application->scratch_bytes);
    }
}

/* Allocates the arrays that are used while a plan is applied. */
static sj_status open_application(sj_application *application)
{
    const sj_plan_header *plan = application->plan;
    const uint64_t addresses = (uint64_t)plan->stub_count * sizeof(uint64_t);
    const uint64_t entries = (uint64_t)plan->function_count * sizeof(uint64_t);
    const uint64_t labels = (SJ_LABELS_PER_STUB + 1) * sizeof(uint64_t);
    application->scratch_bytes = addresses + entries + labels + plan->function_count + 1;
    application->scratch = allocate_scratch(application->scratch_bytes);
    if (application->scratch == NULL) {
        return SJ_ENOMEM;
    }
    application->stub_addresses = application->scratch;
    application->tail_call_entries = application->stub_addresses + plan->stub_count;
    application->labels = application->tail_call_entries + plan->function_count;
    application->function_skips = (uint8_t *)(application->labels + SJ_LABELS_PER_STUB + 1);
    return SJ_OK;
}

/* Writes the bytes of a patch to `bytes`. Returns the reason if the patch cannot be applied, else
 * SJ_SKIP_NONE. */
static sj_skip make_patch(const sj_application *application, const sj_plan_patch *patch,
                          uint8_t *bytes)
{
    const sj_plan_header *plan = application->plan;
    const uint64_t address = application->bias + patch->offset;
    if (patch->kind == SJ_PATCH_SLOT) { /* the slot is written after relocation */
        return SJ_SKIP_NONE;
    }
    if (patch->bytes == 0 || patch->bytes > patch->window || patch->window > SJ_PATCH_MAX_BYTES ||
        patch->offset < plan->text_low || patch->offset > plan->text_high ||
        plan->text_high - patch->offset < patch->window) {
        return SJ_SKIP_OUT_OF_TEXT;
    }
    if (memcmp((const void *)(uintptr_t)address, patch->original, patch->window) != 0 ||
        (application->heap_entries == NULL && is_claimed(address, patch->window))) {
        return SJ_SKIP_CODE_DIFFERS;
    }
    if (avoids_page_crossings && crosses_page(address, patch->bytes)) {
        return SJ_SKIP_CROSSES_PAGE;
    }
    uint64_t target = application->stub_addresses[patch->stub];
    if (patch->kind == SJ_PATCH_JUMP8) {
        target = application->bias + sj_plan_patches(plan)[patch->via].offset;
    }
    bool too_far = false;
    if (!sj_arch_patch_bytes(patch->kind, address, target, patch->original, patch->bytes, bytes,
                             &too_far)) {
        return too_far ? SJ_SKIP_STUB_TOO_FAR : SJ_SKIP_TAIL_BLOCKED;
    }
    return SJ_SKIP_NONE;
}

/* Prefetches the text of the patch that is PATCHES_AHEAD patches after `patch`. Patches are mostly
 * sorted by address, and the text does not fit the caches. */
static void prefetch_text(const sj_application *application, uint32_t patch)
{
    enum { PATCHES_AHEAD = 24 };
    const sj_plan_header *plan = application->plan;
    if (plan->patch_count - patch > PATCHES_AHEAD) {
        const sj_plan_patch *ahead = sj_plan_patches(plan) + patch + PATCHES_AHEAD;
        __builtin_prefetch((const void *)(uintptr_t)(application->bias + ahead->offset));
    }
}

/* Checks all patches of a function, so that either all are written or none. Returns the reason if
 * the function cannot be hooked, else SJ_SKIP_NONE. */
static sj_skip check_function(const sj_application *application, uint32_t index)
{
    const sj_plan_function *function = sj_plan_functions(application->plan) + index;
    const sj_plan_patch *patches = sj_plan_patches(application->plan) + function->first_patch;
    uint8_t bytes[SJ_PATCH_MAX_BYTES];
    sj_skip skip = (sj_skip)application->function_skips[index];
    for (uint32_t i = 0; i < function->patch_count && skip == SJ_SKIP_NONE; i++) {
        prefetch_text(application, function->first_patch + i);
        skip = make_patch(application, &patches[i], bytes);
    }
    return skip;
}

/* Writes code. Writes an aligned word with one store, because other threads may run it. */
static void write_bytes(uint64_t address, const uint8_t *bytes, uint32_t count)
{
    volatile uint8_t *text = (volatile uint8_t *)(uintptr_t)address;
    uint32_t word;
    if (count == sizeof(word) && address % sizeof(word) == 0) {
        memcpy(&word, bytes, sizeof(word));
        *(volatile uint32_t *)(uintptr_t)address = word;
    } else {
        for (uint32_t i = 0; i < count; i++) {
            text[i] = bytes[i];
        }
    }
    sj_arch_sync_code(address, count);
}

void sj_hooks_write_change(sj_hook_change *change)
{
    write_bytes(change->address, change->patched, change->bytes);
    change->written = 1;
}

/* Adds the changes of a function to the module's changes, and writes them unless a tracer will do
 * so. */
static void patch_function(const sj_application *application, uint32_t index,
                           sj_hooked_module *module)
{
    const sj_plan_function *function = sj_plan_functions(application->plan) + index;
    const sj_plan_patch *patches = sj_plan_patches(application->plan) + function->first_patch;
    uint8_t bytes[SJ_PATCH_MAX_BYTES];
    for (uint32_t i = 0; i < function->patch_count; i++) {
        const uint64_t address = application->bias + patches[i].offset;
        if (patches[i].kind == SJ_PATCH_SLOT) {
            bool fits;
            const uint32_t at_exit = sj_exit_values(function, &fits);
            if (!sj_return_values_set(sj_function_id(application, index), at_exit) || !fits) {
                sj_recorder_count_refused();
            }
            sj_library_calls_add(module, index, address,
                                 application->stub_addresses[patches[i].stub]);
        } else if (make_patch(application, &patches[i], bytes) == SJ_SKIP_NONE) {
            sj_hook_change *change =
                sj_changes_add(module, address, patches[i].original, bytes, patches[i].bytes);
            change->function = application->heap_entries != NULL
                                   ? application->heap_entries->function
                                   : sj_function_id(application, index);
            change->window = patches[i].window;
            memcpy(change->original, patches[i].original, patches[i].window);
            if (application->heap_entries != NULL) {
                claim(address, patches[i].window);
            }
            if (!application->prepare_only) {
                sj_hooks_write_change(change);
            }
        }
    }
}

/* True if the text has at least PATCHES_PER_PAGE patches per page on average, so that nearly every
 * page will change. */
static bool fills_pages(const sj_application *application)
{
    enum { PATCHES_PER_PAGE = 4 };
    const sj_plan_header *plan = application->plan;
    return application->patch_count / PATCHES_PER_PAGE >=
           (plan->text_high - plan->text_low) / sj_page_bytes();
}

/* Makes the text writable, unless a tracer will write it or the text of one generated method is
 * writable already. */
static sj_status open_text(const sj_application *application, sj_text *text)
{
    const sj_plan_header *plan = application->plan;
    text->count = 0;
    const uint64_t low = application->bias + plan->text_low;
    const uint64_t high = application->bias + plan->text_high;
    const bool is_one_method = sj_is_generated(application) && plan->function_count == 1;
    if (application->prepare_only || (is_one_method && sj_text_is_open(low, high))) {
        return SJ_OK;
    }
    SJ_TRY(sj_text_open(text, low, high));
    if (fills_pages(application)) {
        sj_text_populate(text);
    }
    return SJ_OK;
}

/* Checks all functions against the unchanged text first, then patches them. */
static sj_status patch_functions(sj_application *application, sj_hooked_module *module,
                                 sj_hooks_report *report)
{
    const sj_plan_header *plan = application->plan;
    const sj_plan_function *functions = sj_plan_functions(plan);
    sj_text text;
    for (uint32_t i = 0; i < plan->function_count; i++) {
        if (sj_plan_is_hooked(&functions[i])) {
            application->function_skips[i] = (uint8_t)check_function(application, i);
        }
    }
    SJ_TRY(open_text(application, &text));
    for (uint32_t i = 0; i < plan->function_count; i++) {
        if (!sj_plan_is_hooked(&functions[i])) {
            continue;
        }
        if (application->function_skips[i] == SJ_SKIP_NONE) {
            patch_function(application, i, module);
            report->hooked++;
            if (report->marks != NULL) {
                report->marks[i] = 1;
            }
        } else {
            sj_report_failure(report, i, (sj_skip)application->function_skips[i]);
        }
    }
    sj_text_close(&text);
    return SJ_OK;
}

/* Reports to the recorder the addresses of functions that rules name as callers. */
static void report_callers(const sj_application *application, const sj_hooked_module *module)
{
    const sj_plan_header *plan = application->plan;
    for (uint32_t i = 0; i < plan->function_count && application->heap_entries == NULL; i++) {
        const sj_plan_function *function = &sj_plan_functions(plan)[i];
        const uint32_t id = sj_function_id(application, i);
        if (sj_recorder_is_asked_caller(id) &&
            !sj_recorder_note_function(id, application->bias + function->offset, function->size,
                                       module)) {
            sj_recorder_count_refused();
        }
    }
}

/* Applies a plan that has passed sj_plan_check. */
static sj_status apply_checked(sj_application *application, sj_hooked_module *module,
                               sj_hooks_report *report)
{
    const sj_plan_header *plan = application->plan;
    uint64_t patch_count = 0;
    for (uint32_t i = 0; i < plan->function_count; i++) {
        const sj_plan_function *function = &sj_plan_functions(plan)[i];
        patch_count += sj_plan_is_hooked(function) ? function->patch_count : 0;
        /* A function with a skip reason gets no stubs. */
        application->function_skips[i] = function->skip;
    }
    application->patch_count = patch_count;
    if (application->heap_entries != NULL && patch_count > CLAIMS - claim_count) {
        return SJ_ELIMIT;
    }
    module->changes_bytes = sj_page_round_up(patch_count * sizeof(sj_hook_change) + 1);
    void *changes = sj_sys_map(NULL, module->changes_bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (sj_sys_failed(changes)) {
        return SJ_ENOMEM;
    }
    module->changes = changes;
    SJ_TRY(sj_library_calls_new(plan, module));
    application->calls = module->calls;
    report_callers(application, module);
    SJ_TRY(sj_stubs_build(application, module));
    report->stub_bytes = (uint32_t)module->stubs_bytes;
    report->is_movable = application->is_movable;
    return patch_functions(application, module, report);
}

static sj_status apply_plan(const void *bytes, size_t size_bytes, bool prepare_only, uint64_t bias,
                            uint32_t first_function, const sj_hooks_entries *heap_entries,
                            sj_hooked_module *module, sj_hooks_report *report)
{
    report->hooked = 0;
    report->failed = 0;
    report->stub_bytes = 0;
    SJ_TRY(sj_plan_check(bytes, size_bytes));
    sj_application application = {.plan = bytes,
                                  .bias = bias,
                                  .first_function = first_function,
                                  .prepare_only = prepare_only,
                                  .heap_entries = heap_entries};
    if (application.plan->machine != sj_arch_machine()) {
        return SJ_EUNSUPPORTED;
    }
    if (first_function == 0 ||
        first_function > SJ_RECORD_FUNCTION_MASK - application.plan->function_count) {
        return SJ_EINVAL;
    }
    *module = (sj_hooked_module){.bias = bias, .first_function = first_function};
    SJ_TRY(open_application(&application));
    const sj_status status = apply_checked(&application, module, report);
    close_application(&application);
    if (status != SJ_OK) {
        sj_hooks_forget(module);
    }
    return status;
}

sj_status sj_hooks_apply(const void *bytes, size_t size_bytes, uint64_t bias,
                         uint32_t first_function, sj_hooked_module *module, sj_hooks_report *report)
{
    return apply_plan(bytes, size_bytes, false, bias, first_function, NULL, module, report);
}

sj_status sj_hooks_apply_entries(const void *bytes, size_t size_bytes, uint64_t bias,
                                 const sj_hooks_entries *heap_entries, sj_hooked_module *module,
                                 sj_hooks_report *report)
{
    return apply_plan(bytes, size_bytes, heap_entries->prepare_only, bias, 1, heap_entries, module,
                      report);
}

sj_status sj_hooks_prepare(const void *bytes, size_t size_bytes, uint64_t bias,
                           uint32_t first_function, sj_hooked_module *module,
                           sj_hooks_report *report)
{
    return apply_plan(bytes, size_bytes, true, bias, first_function, NULL, module, report);
}

/* Writes the original bytes of all written changes. */
static sj_status restore_changes(sj_hooked_module *module)
{
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    sj_text text;
    for (uint32_t i = 0; i < module->change_count; i++) {
        const sj_hook_change *change = &module->changes[i];
        if (change->written != 0) {
            low = change->address < low ? change->address : low;
            high = change->address + change->bytes > high ? change->address + change->bytes : high;
        }
    }
    if (low < high) {
        SJ_TRY(sj_text_open(&text, low, high));
        while (module->change_count > 0) {
            const sj_hook_change *change = &module->changes[--module->change_count];
            if (change->written != 0) {
                write_bytes(change->address, change->original, change->bytes);
            }
        }
        sj_text_close(&text);
    }
    module->change_count = 0;
    return SJ_OK;
}

sj_status sj_hooks_unpatch(sj_hooked_module *module)
{
    return module->change_count == 0 ? SJ_OK : restore_changes(module);
}

void sj_hooks_forget(sj_hooked_module *module)
{
    if (module->stubs != NULL) {
        sj_stub_areas_remove(module->stubs);
        sj_debugger_remove(module->stubs);
        (void)sj_sys_unmap(module->stubs, module->stubs_bytes);
    }
    if (module->changes != NULL) {
        (void)sj_sys_unmap(module->changes, module->changes_bytes);
    }
    sj_library_calls_free(module);
    sj_recorder_forget_functions(module);
    *module = (sj_hooked_module){0};
}

/* Writes into the page `area` a jump to `target` that replaces the instruction at `address`. Writes
 * the page's map, and announces the page as a stub area. */
static void write_redirection(uint8_t *area, uint64_t address, uint64_t target)
{
    enum { MAP = SJ_STUB_AREA_OFFSET + sizeof(sj_stub_area) + SJ_UNWIND_TABLE_BYTES };
    sj_stub_notes notes = {
        .area = (uint64_t)(uintptr_t)area,
        .text = address,
        .main = {.entries = (sj_stub_entry *)(void *)(area + MAP), .capacity = 1}};
    sj_code_emitter emitter = {.at = (uint64_t)(uintptr_t)area, .notes = &notes};
    sj_code_begin_place(&emitter, SJ_STUB_FIXED, address);
    sj_code_emit_trampoline(&emitter, target);
    sj_stub_notes_finish(&notes, MAP, (uint32_t)(emitter.at - notes.area));
    sj_stub_areas_add(area, sj_page_bytes());
    sj_debugger_add(area);
    sj_arch_sync_code((uint64_t)(uintptr_t)area, sj_page_bytes());
}

sj_status sj_hooks_redirect(uint64_t address, const uint8_t *original, uint8_t bytes,
                            uint64_t target, bool prepare_only, sj_hooked_module *module)
{
    const uint64_t page = sj_page_bytes();
    uint8_t patch[SJ_PATCH_MAX_BYTES];
    bool too_far = false;
    sj_text text;
    if (memcmp((const void *)(uintptr_t)address, original, bytes) != 0) {
        return SJ_EINVAL;
    }
    if (avoids_page_crossings && crosses_page(address, bytes)) {
        return SJ_EUNSUPPORTED;
    }
    *module = (sj_hooked_module){.stubs_bytes = page, .changes_bytes = page};
    module->changes = sj_sys_allocate(page);
    module->stubs = sj_near_map(address, address + bytes, page);
    sj_status status = SJ_ENOMEM;
    if (module->stubs != NULL && module->changes != NULL) {
        write_redirection(module->stubs, address, target);
        status = sj_sys_protect(module->stubs, page, PROT_READ | PROT_EXEC) == 0 &&
                         sj_arch_patch_bytes(SJ_ARCH_JUMP_PATCH, address,
                                             (uint64_t)(uintptr_t)module->stubs, original, bytes,
                                             patch, &too_far)
                     ? SJ_OK
                     : SJ_EPERM;
    }
    if (status == SJ_OK && !prepare_only) {
        status = sj_text_open(&text, address, address + bytes);
    }
    if (status != SJ_OK) {
        sj_hooks_forget(module);
        return status;
    }
    sj_hook_change *change = sj_changes_add(module, address, original, patch, bytes);
    if (!prepare_only) {
        sj_hooks_write_change(change);
        sj_text_close(&text);
    }
    return SJ_OK;
}
