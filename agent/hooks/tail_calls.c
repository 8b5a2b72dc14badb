/* Design notes
 *
 * A jump to the start of another function ends one call and begins another in the same moment. The
 * exit leads to the door of that function, which records both with one reading of the clock: that
 * is what a probe costs. One call in ten of real programs is made so.
 *
 * Functions are hooked and set free at any time, each by itself, from outside, by changes of the
 * text and of nothing else. So the text is what a door goes by: when the function's head is the
 * patch, and the landing mark in front of it as ever, jumping there would lead to its probe at
 * once; otherwise (a breakpoint, say) the door jumps there. So it does when a thread has to wait
 * for room: the text may have changed meanwhile. A program that makes its own text unreadable
 * while it runs (execute-only, by protection keys) cannot be recorded with doors.
 *
 * A door for each function rather than this code in each exit: exits get shorter than with a probe
 * of their own, which tells in programs whose code does not fit the caches. */
#include "agent/hooks/internal.h"
#include "agent/planner/planner.h"
#include "agent/recorder/record.h"
#include "proto/cursor.h"

#include <string.h>

enum { DOOR_ALIGNMENT = 8 };

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

/* The patch of a function's head, if the function can have a door: what the plan alone tells, so
 * that it is the same when stubs are measured and when they are written. */
static const sj_plan_patch *find_head(const sj_plan_header *plan, uint32_t index)
{
    const sj_plan_function *function = sj_plan_functions(plan) + index;
    bool is_plain = sj_plan_is_hooked(function) && function->receiver == 0;
    for (uint32_t i = 0; i < SJ_VALUES_PER_FUNCTION; i++) {
        is_plain = is_plain && function->values[i] == 0;
    }
    if (!is_plain) {
        return NULL;
    }
    const sj_plan_patch *head =
        sj_plan_patches(plan) + function->first_patch + function->patch_count - 1;
    return head->kind == SJ_PATCH_JUMP32 && begins_with_plain_probe(plan, head->stub) ? head : NULL;
}

void sj_emit_tail_call(const sj_application *application, sj_emitter *emitter, uint32_t index,
                       uint32_t callee)
{
    const uint32_t tag = (uint32_t)SJ_RECORD_LEAVE << SJ_RECORD_FUNCTION_BITS |
                         (application->first_function + index);
    if (sj_arch_has_doors(emitter) && find_head(application->plan, callee) != NULL) {
        application->doors[callee] |= emitter->measuring;
        sj_emit_to_door(emitter, tag, application->doors[callee]);
    } else {
        emitter->frees_flags = true;
        sj_emit_probe(emitter, tag);
        sj_emit_jump(emitter,
                     application->bias + sj_plan_functions(application->plan)[callee].offset);
    }
    emitter->frees_flags = false;
}

static void emit_door(const sj_application *application, sj_emitter *emitter, uint32_t index)
{
    const sj_plan_patch *head = find_head(application->plan, index);
    uint8_t patch[SJ_PATCH_MAX_BYTES];
    bool too_far;
    sj_door door = {.enter_tag = (uint32_t)SJ_RECORD_ENTER << SJ_RECORD_FUNCTION_BITS |
                                 (application->first_function + index),
                    .head = application->bias + head->offset,
                    .stub = application->stub_addresses[head->stub],
                    .start =
                        application->bias + sj_plan_functions(application->plan)[index].offset};
    if (!sj_arch_patch_bytes(head->kind, door.head, door.stub, head->original, head->bytes, patch,
                             &too_far)) {
        memset(patch, 0, sizeof(patch)); /* which is no jump: the function is never patched */
    }
    memcpy(door.patch, patch, sizeof(door.patch));
    sj_emit_door(emitter, &door);
}

void sj_emit_doors(const sj_application *application, sj_emitter *emitter)
{
    for (uint32_t i = 0; i < application->plan->function_count; i++) {
        if (application->doors[i] == 0) {
            continue;
        }
        if (emitter->measuring) {
            emitter->at = (emitter->at + DOOR_ALIGNMENT - 1) & ~(uint64_t)(DOOR_ALIGNMENT - 1);
            application->doors[i] = emitter->at;
        }
        emitter->at = application->doors[i];
        emit_door(application, emitter, i);
    }
}
