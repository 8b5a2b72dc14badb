/* What the files of hooks/ share. */
#ifndef SJ_AGENT_INPROC_HOOKS_INTERNAL_H
#define SJ_AGENT_INPROC_HOOKS_INTERNAL_H

#include "agent/abi/record.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/hooks/initialisation.h"

enum { SJ_LABELS_PER_STUB = 4096 };

/* One application of a plan, while it runs. The arrays lie in one scratch mapping. */
typedef struct sj_application {
    const sj_plan_header *plan;
    uint64_t bias;
    uint32_t first_function;
    uint64_t *stub_addresses;    /* [stub_count] */
    uint64_t *tail_call_entries; /* [function_count] 0: no exit needs one */
    uint64_t *labels;            /* [SJ_LABELS_PER_STUB] of the current stub; 0 unknown */
    uint64_t place;              /* address that the next operation stands for; 0: not known */
    uint32_t function;           /* of the current stub */
    bool has_left;               /* the next operation is an exit whose probe has run */
    uint32_t label_limit;        /* labels from here on are 0 */
    uint8_t *function_skips;     /* [function_count] sj_skip; SJ_SKIP_NONE: to be hooked */
    void *scratch;
    uint64_t scratch_bytes;
    bool prepare_only;
    bool is_movable;                /* the stubs hold no address but in their trampolines */
    uint64_t patch_count;           /* of the functions to be hooked */
    const sj_hooks_heads *heads;    /* NULL: calls are recorded */
    struct sj_library_calls *calls; /* NULL: the plan has no imports */
} sj_application;

/* sj_function_id is the id that function `index` of the plan records. */
static inline uint32_t sj_function_id(const sj_application *application, uint32_t index)
{
    const sj_plan_function *function = sj_plan_functions(application->plan) + index;
    return function->source == SJ_SYMBOL_GENERATED ? function->name & SJ_RECORD_FUNCTION_MASK
                                                   : application->first_function + index;
}

/* sj_is_generated: the plan is one of code that a runtime has made. */
static inline bool sj_is_generated(const sj_application *application)
{
    return application->plan->function_count != 0 &&
           sj_plan_functions(application->plan)->source == SJ_SYMBOL_GENERATED;
}

/* One import of a module. The assembly reads the record. */
typedef struct sj_library_call {
    sj_dispatch_record record; /* entry NULL: not recorded */
    uint64_t slot;             /* address */
    uint64_t stub;
    uint32_t function; /* id */
    uint32_t reserved;
} sj_library_call;

typedef struct sj_library_calls {
    uint64_t bytes; /* of this mapping */
    sj_initialisation init;
    uint32_t count; /* rising by slot */
    uint32_t first; /* index in the plan of the first import's function */
    sj_library_call items[];
} sj_library_calls;

/* sj_exit_values returns which of a function's values are recorded at the exit of a dispatched
 * call: descriptors, one a byte, as many as fit; `*fits` is false when that is not all. */
uint32_t sj_exit_values(const sj_plan_function *function, bool *fits);

/* sj_library_calls_new maps what belongs to the imports of a plan, if it has any. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_library_calls_new(const sj_plan_header *plan, sj_hooked_module *module);

/* sj_library_calls_add fills in the import that is function `index` of the plan. */
void sj_library_calls_add(sj_hooked_module *module, uint32_t index, uint64_t slot, uint64_t stub);

/* sj_code_emit_dispatch emits the recording of the import that is function `index`; false if that
 * is no import. */
bool sj_code_emit_dispatch(const sj_application *application, sj_code_emitter *emitter,
                           uint32_t index);

void sj_library_calls_free(sj_hooked_module *module);

/* sj_stubs_emit_trampolines emits the trampolines that an area begins with, which alone hold
 * addresses of the agent, and notes where they are. */
void sj_stubs_emit_trampolines(sj_code_emitter *emitter);

/* sj_hooks_write_change writes a change into the text. sj_hooks_are_special: entries have code of
 * somebody's own, patches may not lie just anywhere, or calls are dispatched. */
void sj_hooks_write_change(sj_hook_change *change);
bool sj_hooks_are_special(void);

/* sj_changes_add appends a change of `count` bytes at an address to what is known of a module. */
sj_hook_change *sj_changes_add(sj_hooked_module *module, uint64_t address, const uint8_t *original,
                               const uint8_t *patched, uint8_t count);

/* sj_report_failure reports that a function of a plan is not hooked. */
void sj_report_failure(sj_hooks_report *report, uint32_t function, sj_skip skip);

/* sj_code_emit_tail_call emits the recording of an exit of function `index` by a jump to the start
 * of function `callee`, and the jump. `callee` < function_count. sj_code_emit_tail_call_entries,
 * behind all stubs, emits the tail-call entries that these need; when measuring, it assigns their
 * addresses. */
void sj_code_emit_tail_call(const sj_application *application, sj_code_emitter *emitter,
                            uint32_t index, uint32_t callee);
void sj_code_emit_tail_call_entries(const sj_application *application, sj_code_emitter *emitter);

/* sj_near_map maps writable memory that lies within reach of every address of [low, high); NULL
 * when there is none. */
void *sj_near_map(uint64_t low, uint64_t high, uint64_t bytes);

/* sj_near_take does the same from memory that is mapped ahead, for the stubs of methods that come
 * one by one; whole pages. Each is unmapped by itself; sj_near_release (hooks.h) unmaps what is
 * left. One thread at a time. */
void *sj_near_take(uint64_t low, uint64_t high, uint64_t bytes);

/* sj_stubs_build measures, maps and generates the stubs of a plan and makes them executable. Fills
 * stub_addresses, and function_skips of functions whose stubs cannot be made. */
SJ_MUST_CHECK sj_status sj_stubs_build(sj_application *application, sj_hooked_module *module);

/* sj_text_open makes the pages of [low, high) writable and keeps their protection; sj_text_close
 * restores that. SJ_EPERM when not allowed; nothing is changed then. */
enum { SJ_TEXT_PARTS = 16 };

typedef struct sj_text {
    uint32_t count;
    struct {
        uint64_t low;
        uint64_t high;
        int protection;
    } parts[SJ_TEXT_PARTS];
} sj_text;

SJ_MUST_CHECK sj_status sj_text_open(sj_text *text, uint64_t low, uint64_t high);
void sj_text_close(sj_text *text);

/* sj_text_is_open: every page of [low, high), bytes that nothing runs or writes, is writable as it
 * is. False also where that cannot be found out. */
bool sj_text_is_open(uint64_t low, uint64_t high);

/* sj_text_populate copies all pages of an open text at once, for one most of whose pages are about
 * to be written. */
void sj_text_populate(const sj_text *text);

#endif
