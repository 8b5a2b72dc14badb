/* Declarations that the files of hooks/ share. */
#ifndef SJ_AGENT_INPROC_HOOKS_INTERNAL_H
#define SJ_AGENT_INPROC_HOOKS_INTERNAL_H

#include "agent/abi/record.h"
#include "agent/inproc/hooks/arch.h"
#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/hooks/initialisation.h"

enum { SJ_LABELS_PER_STUB = 4096 };

/* State while one plan is applied. The arrays lie in one scratch mapping. */
typedef struct sj_application {
    const sj_plan_header *plan;
    uint64_t bias;
    uint32_t first_function;
    uint64_t *stub_addresses;    /* [stub_count] */
    uint64_t *tail_call_entries; /* [function_count] addresses; 0: no exit needs the entry */
    /* [SJ_LABELS_PER_STUB] addresses of the labels of the current stub; 0: unknown */
    uint64_t *labels;
    uint64_t place;    /* address of the program's instruction that the next operation replaces; 0:
                          unknown */
    uint32_t function; /* function of the current stub */
    bool has_left;     /* the next operation is an exit whose probe is already emitted */
    uint32_t label_limit;    /* all labels from this index on are 0 */
    uint8_t *function_skips; /* [function_count] sj_skip; SJ_SKIP_NONE: to be hooked */
    void *scratch;
    uint64_t scratch_bytes;
    bool prepare_only;
    bool is_movable;      /* only the stubs' trampolines contain absolute addresses */
    uint64_t patch_count; /* number of patches of the functions to be hooked */
    const sj_hooks_entries *heap_entries; /* NULL: calls are recorded */
    struct sj_library_calls *calls;       /* NULL: the plan has no imports */
} sj_application;

/* Returns the recording's id of function `index` of the plan. */
static inline uint32_t sj_function_id(const sj_application *application, uint32_t index)
{
    const sj_plan_function *function = sj_plan_functions(application->plan) + index;
    return function->source == SJ_SYMBOL_GENERATED ? function->name & SJ_RECORD_FUNCTION_MASK
                                                   : application->first_function + index;
}

/* True if the plan is for code that a language runtime has generated. */
static inline bool sj_is_generated(const sj_application *application)
{
    return application->plan->function_count != 0 &&
           sj_plan_functions(application->plan)->source == SJ_SYMBOL_GENERATED;
}

/* An import of a module. Assembly code reads `record`. */
typedef struct sj_library_call {
    sj_dispatch_record record; /* if `entry` is NULL, calls are not recorded */
    uint64_t slot;             /* address of the import slot */
    uint64_t stub;
    uint32_t function; /* function id */
    uint32_t reserved;
} sj_library_call;

typedef struct sj_library_calls {
    uint64_t bytes; /* size of this mapping */
    sj_initialisation init;
    uint32_t count; /* number of items; they are sorted by slot */
    uint32_t first; /* index in the plan of the first import's function */
    sj_library_call items[];
} sj_library_calls;

/* Returns the descriptors of the values that are recorded at the exit of a dispatched call of the
 * function. Each byte is one descriptor, from the lowest byte on. Unused bytes are 0. Sets `*fits`
 * to false if some did not fit. */
uint32_t sj_exit_values(const sj_plan_function *function, bool *fits);

/* Maps the data for the imports of a plan, if it has any. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_library_calls_new(const sj_plan_header *plan, sj_hooked_module *module);

/* Initializes the import that is function `index` of the plan. */
void sj_library_calls_add(sj_hooked_module *module, uint32_t index, uint64_t slot, uint64_t stub);

/* Emits the code that records calls of the import that is function `index`. Returns false if that
 * function is not an import. */
bool sj_code_emit_dispatch(const sj_application *application, sj_code_emitter *emitter,
                           uint32_t index);

void sj_library_calls_free(sj_hooked_module *module);

/* Emits the trampolines at the start of a stub area and stores their addresses in the emitter. Only
 * trampolines contain addresses of the agent. */
void sj_stubs_emit_trampolines(sj_code_emitter *emitter);

/* Writes the patched bytes of a change into the text, which must be writable, and sets
 * change->written. */
void sj_hooks_write_change(sj_hook_change *change);

/* True if this process needs stubs of its own, so it neither uses nor saves ready stubs (ready.h).
 * This is so if entries run code of sj_hooks_apply_entries, patches may not cross pages, or
 * dispatched calls are recorded. */
bool sj_hooks_are_special(void);

/* Appends a change of `count` bytes at `address` to the module's changes and returns it. The caller
 * has reserved the space. */
sj_hook_change *sj_changes_add(sj_hooked_module *module, uint64_t address, const uint8_t *original,
                               const uint8_t *patched, uint8_t count);

/* Reports that function `function` of a plan is not hooked. */
void sj_report_failure(sj_hooks_report *report, uint32_t function, sj_skip skip);

/* Emits an exit of function `index` by a jump to the start of function `callee`: the code that
 * records it, and the jump. `callee` must be less than function_count. */
void sj_code_emit_tail_call(const sj_application *application, sj_code_emitter *emitter,
                            uint32_t index, uint32_t callee);

/* Emits the tail-call entries that the stubs need. Called after all stubs are emitted. When
 * measuring, assigns the addresses of the entries. */
void sj_code_emit_tail_call_entries(const sj_application *application, sj_code_emitter *emitter);

/* Returns writable memory that a jump from any address in [low, high) can reach, or NULL if there
 * is none. Cuts the memory from a larger mapping, for the stubs of methods that are compiled one by
 * one. `bytes` must be whole pages. The caller unmaps each result; sj_near_release (hooks.h) unmaps
 * the unused rest. Not thread-safe. */
void *sj_near_allocate(uint64_t low, uint64_t high, uint64_t bytes);

/* Measures, maps and generates the stubs of a plan and makes them executable. Fills stub_addresses.
 * Sets function_skips of functions whose stubs cannot be made. Returns SJ_ENOMEM if out of
 * memory. */
SJ_MUST_CHECK sj_status sj_stubs_build(sj_application *application, sj_hooked_module *module);

/* Pages that are writable now, with the protection that they had. */
enum { SJ_TEXT_PARTS = 16 };

typedef struct sj_text {
    uint32_t count;
    struct {
        uint64_t low;
        uint64_t high;
        int protection;
    } parts[SJ_TEXT_PARTS];
} sj_text;

/* Makes the pages of [low, high) writable. If the system forbids pages that are writable and
 * executable, they are not executable until sj_text_close. Returns SJ_EPERM, and changes nothing,
 * if the system refuses or if the range consists of more than SJ_TEXT_PARTS mappings. */
SJ_MUST_CHECK sj_status sj_text_open(sj_text *text, uint64_t low, uint64_t high);

/* Restores the saved protection of the pages. */
void sj_text_close(sj_text *text);

/* True if every page of [low, high) is already writable. Writes the first byte of each page with
 * its own value, so no other thread may write it meanwhile. Returns false also if the check
 * fails. */
bool sj_text_is_open(uint64_t low, uint64_t high);

/* Makes the kernel copy all pages of an open text with one call for each part. Useful if most of
 * the pages are about to be written. */
void sj_text_populate(const sj_text *text);

#endif
