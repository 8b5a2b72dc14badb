/* Declarations that the files of hooks/ share. */
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
    uint64_t *tail_call_entries; /* [function_count]; 0: no exit needs one */
    uint64_t *labels;            /* [SJ_LABELS_PER_STUB] labels of the current stub; 0: unknown */
    uint64_t place;              /* address that the next operation stands for; 0: unknown */
    uint32_t function;           /* function of the current stub */
    bool has_left;               /* the next operation is an exit whose probe has run */
    uint32_t label_limit;        /* labels from this one on are 0 */
    uint8_t *function_skips;     /* [function_count] sj_skip; SJ_SKIP_NONE: to be hooked */
    void *scratch;
    uint64_t scratch_bytes;
    bool prepare_only;
    bool is_movable;                      /* only the stubs' trampolines contain addresses */
    uint64_t patch_count;                 /* patches of the functions to be hooked */
    const sj_hooks_entries *heap_entries; /* NULL: calls are recorded */
    struct sj_library_calls *calls;       /* NULL: the plan has no imports */
} sj_application;

/* Returns the id of function `index` of the plan. */
static inline uint32_t sj_function_id(const sj_application *application, uint32_t index)
{
    const sj_plan_function *function = sj_plan_functions(application->plan) + index;
    return function->source == SJ_SYMBOL_GENERATED ? function->name & SJ_RECORD_FUNCTION_MASK
                                                   : application->first_function + index;
}

/* True if the plan is for code that a runtime has generated. */
static inline bool sj_is_generated(const sj_application *application)
{
    return application->plan->function_count != 0 &&
           sj_plan_functions(application->plan)->source == SJ_SYMBOL_GENERATED;
}

/* One import of a module. The assembly reads the record. */
typedef struct sj_library_call {
    sj_dispatch_record record; /* not recorded if its `entry` is NULL */
    uint64_t slot;             /* address of the import slot */
    uint64_t stub;
    uint32_t function; /* function id */
    uint32_t reserved;
} sj_library_call;

typedef struct sj_library_calls {
    uint64_t bytes; /* size of this mapping */
    sj_initialisation init;
    uint32_t count; /* number of items, which are sorted by slot */
    uint32_t first; /* index in the plan of the first import's function */
    sj_library_call items[];
} sj_library_calls;

/* Returns which of a function's values are recorded at the exit of a dispatched call: descriptors,
 * one a byte. Includes as many as fit; `*fits` is false if some are missing. */
uint32_t sj_exit_values(const sj_plan_function *function, bool *fits);

/* Maps the data for the imports of a plan, if it has any. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_library_calls_new(const sj_plan_header *plan, sj_hooked_module *module);

/* Initializes the import that is function `index` of the plan. */
void sj_library_calls_add(sj_hooked_module *module, uint32_t index, uint64_t slot, uint64_t stub);

/* Emits the recording of the import that is function `index`. Returns false if that function is not
 * an import. */
bool sj_code_emit_dispatch(const sj_application *application, sj_code_emitter *emitter,
                           uint32_t index);

void sj_library_calls_free(sj_hooked_module *module);

/* Emits the trampolines at the start of an area and notes their addresses. Only they contain
 * addresses of the agent. */
void sj_stubs_emit_trampolines(sj_code_emitter *emitter);

/* sj_hooks_write_change writes a change into the text. sj_hooks_are_special returns true in three
 * cases: entries have code of a caller, patches may not cross pages, or calls are dispatched. */
void sj_hooks_write_change(sj_hook_change *change);
bool sj_hooks_are_special(void);

/* Appends a change of `count` bytes at an address to the module's changes. */
sj_hook_change *sj_changes_add(sj_hooked_module *module, uint64_t address, const uint8_t *original,
                               const uint8_t *patched, uint8_t count);

/* Reports that a function of a plan is not hooked. */
void sj_report_failure(sj_hooks_report *report, uint32_t function, sj_skip skip);

/* sj_code_emit_tail_call emits the recording of an exit of function `index` by a jump to the start
 * of function `callee`, and the jump. `callee` must be less than function_count.
 * sj_code_emit_tail_call_entries, called after all stubs, emits the tail-call entries that these
 * need. When measuring, it assigns their addresses. */
void sj_code_emit_tail_call(const sj_application *application, sj_code_emitter *emitter,
                            uint32_t index, uint32_t callee);
void sj_code_emit_tail_call_entries(const sj_application *application, sj_code_emitter *emitter);

/* Like sj_near_map, from memory that is mapped ahead. It is for the stubs of methods that are
 * compiled one by one. `bytes` are whole pages. Each result is unmapped by itself; sj_near_release
 * (hooks.h) unmaps the rest. Not thread-safe. */
void *sj_near_allocate(uint64_t low, uint64_t high, uint64_t bytes);

/* Measures, maps and generates the stubs of a plan and makes them executable. Fills stub_addresses.
 * Sets function_skips of functions whose stubs cannot be made. */
SJ_MUST_CHECK sj_status sj_stubs_build(sj_application *application, sj_hooked_module *module);

/* sj_text_open makes the pages of [low, high) writable and saves their protection, which
 * sj_text_close restores. Returns SJ_EPERM, and changes nothing, if the system refuses. */
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

/* True if every page of [low, high) is already writable. No thread may run or write these bytes
 * meanwhile. Returns false also if the check fails. */
bool sj_text_is_open(uint64_t low, uint64_t high);

/* Copies all pages of an open text in one go. Use it if most of the pages are about to be
 * written. */
void sj_text_populate(const sj_text *text);

#endif
