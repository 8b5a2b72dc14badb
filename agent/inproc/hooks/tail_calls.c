/* Design notes
 *
 * A jump to the start of another function ends one call and begins another at the same moment. Such
 * an exit jumps to the tail-call entry of that function. The entry records both with one reading of
 * the clock, which is the main cost of a probe. In real programs one call in ten is a tail call.
 *
 * A tracer hooks and unhooks functions one by one, at any time and from outside. It changes only
 * the text. So a tail-call entry reads the text. The function is hooked if its entry holds the
 * patch and the landing instruction before the patch is intact. Then a jump to the function would
 * lead straight to its probe. Otherwise, for example at a breakpoint, the tail-call entry jumps to
 * the function's start. The tail-call entry also jumps there if the thread had to wait for a chunk,
 * because the text may have changed meanwhile. Programs that make their text unreadable at run time
 * (execute-only, with protection keys) cannot be recorded with tail-call entries.
 *
 * A tail-call entry is written once for each function and not in each exit. So exits are short,
 * which is faster in programs whose code does not fit the caches. */
#include "agent/abi/plan_check.h"
#include "agent/abi/record.h"
#include "agent/inproc/hooks/internal.h"
#include "proto/base/cursor.h"

#include <string.h>

enum { ENTRY_ALIGNMENT = 8 };

/* True if the first operation of a stub, except FREE_FLAGS, is an entry's probe. */
static bool begins_with_plain_probe(const sj_plan_header *plan, uint32_t index)
{
    const sj_plan_stub *stub = sj_plan_stubs(plan) + index;
    sj_reader reader = sj_reader_of(
        (const uint8_t *)plan + plan->operations_offset + stub->operations, stub->operations_bytes);
    uint8_t operation = sj_read_u8(&reader);
    if (operation == SJ_OPERATION_FREE_FLAGS) {
        operation = sj_read_u8(&reader);
    }
    return operation == SJ_OPERATION_ENTER;
}

/* Returns the patch at a function's entry if it is a 32-bit jump or a 26-bit branch, which code can
 * compare with the text. Else returns NULL. The result depends only on the plan, so measuring and
 * writing agree. */
static const sj_plan_patch *find_entry_patch(const sj_plan_header *plan, uint32_t index)
{
    const sj_plan_function *function = sj_plan_functions(plan) + index;
    if (!sj_plan_is_hooked(function) || function->patch_count == 0) {
        return NULL;
    }
    const sj_plan_patch *patch_at_entry =
        sj_plan_patches(plan) + function->first_patch + function->patch_count - 1;
    return patch_at_entry->kind == SJ_PATCH_JUMP32 || patch_at_entry->kind == SJ_PATCH_BRANCH26
               ? patch_at_entry
               : NULL;
}

/* True if a function can have a tail-call entry: its entry is patched by such a jump, and its entry
 * probe records no values and no receiver. */
static bool may_have_entry(const sj_plan_header *plan, uint32_t index)
{
    const sj_plan_function *function = sj_plan_functions(plan) + index;
    const sj_plan_patch *patch = find_entry_patch(plan, index);
    bool is_plain = patch != NULL && function->receiver == 0;
    for (uint32_t i = 0; i < SJ_PLACES_PER_FUNCTION; i++) {
        is_plain = is_plain && function->values[i] == 0;
    }
    return is_plain && begins_with_plain_probe(plan, patch->stub);
}

/* Returns what the code of a tail-call entry needs to know about function `index`. */
static sj_tail_call_entry describe_entry(const sj_application *application, uint32_t index)
{
    const sj_plan_patch *patch_at_entry = find_entry_patch(application->plan, index);
    uint8_t patch[SJ_PATCH_MAX_BYTES];
    bool too_far;
    sj_tail_call_entry entry = {
        .enter_tag = sj_record_make_tag(SJ_RECORD_ENTER, sj_function_id(application, index)),
        .entry = application->bias + patch_at_entry->offset,
        .stub = application->stub_addresses[patch_at_entry->stub],
        .start = application->bias + sj_plan_functions(application->plan)[index].offset};
    if (!sj_arch_patch_bytes(patch_at_entry->kind, entry.entry, entry.stub,
                             patch_at_entry->original, patch_at_entry->bytes, patch, &too_far)) {
        memset(patch, 0, sizeof(patch)); /* The function is never patched. Zeros are not a jump, so
                                            the comparison with the text fails. */
    }
    memcpy(entry.patch, patch, sizeof(entry.patch));
    return entry;
}

void sj_code_emit_tail_call(const sj_application *application, sj_code_emitter *emitter,
                            uint32_t index, uint32_t callee)
{
    const uint32_t tag = sj_record_make_tag(SJ_RECORD_LEAVE, sj_function_id(application, index));
    if (sj_arch_has_tail_call_entries(emitter) && may_have_entry(application->plan, callee)) {
        application->tail_call_entries[callee] |= emitter->measuring;
        sj_code_emit_tail_call_exit(emitter, tag, application->tail_call_entries[callee]);
    } else if (find_entry_patch(application->plan, callee) != NULL) {
        const sj_tail_call_entry entry = describe_entry(application, callee);
        sj_code_emit_tail_call_alone(emitter, tag, &entry);
    } else {
        emitter->frees_flags = true;
        sj_code_emit_probe(emitter, tag);
        sj_code_emit_jump(emitter,
                          application->bias + sj_plan_functions(application->plan)[callee].offset);
    }
    emitter->frees_flags = false;
}

void sj_code_emit_tail_call_entries(const sj_application *application, sj_code_emitter *emitter)
{
    for (uint32_t i = 0; i < application->plan->function_count; i++) {
        if (application->tail_call_entries[i] == 0) {
            continue;
        }
        if (emitter->measuring) {
            emitter->at = (emitter->at + ENTRY_ALIGNMENT - 1) & ~(uint64_t)(ENTRY_ALIGNMENT - 1);
            application->tail_call_entries[i] = emitter->at;
        }
        emitter->at = application->tail_call_entries[i];
        const sj_tail_call_entry entry = describe_entry(application, i);
        sj_code_emit_tail_call_entry(emitter, &entry);
    }
}
