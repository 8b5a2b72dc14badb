/* A module under planning: its text, its code ranges, its instructions and what is known of
 * each byte of text. Filled step by step: sj_module_load, sj_module_find_ranges,
 * sj_module_find_targets; the techniques read it and claim bytes. One thread per module, which has
 * others do parts of a step. */
#ifndef SJ_AGENT_PLANNER_MODULE_H
#define SJ_AGENT_PLANNER_MODULE_H

#include "agent/abi/plan.h"
#include "agent/objfile/eh_frame.h"
#include "agent/objfile/elf_view.h"
#include "agent/objfile/symbols.h"
#include "agent/planner/decoder.h"
#include "agent/planner/planner.h"

#include <stdatomic.h>

enum { SJ_CODE_RANGE_NONE = UINT32_MAX };

/* A contiguous range of code: a function, or a cold part that belongs to one. */
typedef struct sj_code_range {
    uint32_t start; /* offset from the start of the text */
    uint32_t size;
    uint32_t entry; /* offset of the first instruction behind marks of branch targets (endbr64, bti,
                     * paciasp), which have to stay where they are */
    uint32_t first_code;
    uint32_t code_count;
    uint32_t parent; /* own index for functions */
    uint32_t next_part;
    uint32_t part_count; /* of a function: cold parts */
    const char *name;
    const sj_fde *frame; /* that the start lies in; NULL: none */
    uint8_t source;      /* sj_symbol_source */
    uint8_t receiver;
    uint8_t skip; /* sj_skip that was found before any technique was tried */
    bool is_cold;
    bool is_undecodable;
    bool has_call;
    bool has_indirect;
    bool has_table;   /* its instructions name the jump table of a switch */
    bool is_arm;      /* an arm of a switch begins at its start or entry */
    bool has_frame;   /* somewhere the stack is not as at the entry */
    bool has_labels;  /* labels inside whose address is taken */
    bool has_entries; /* the same of labels that are entries of a jump table that code names */
    bool dead_flags_at_entry; /* the status flags are overwritten before anything reads them */
    bool dead_flags_at_return;
} sj_code_range;

typedef struct sj_module {
    const sj_machine *machine;
    sj_elf elf;
    sj_elf debug;
    sj_elf mini;
    char *map_names;
    struct sj_kept_name *kept_names; /* list */
    char debug_path[512];            /* "" when there is no debug file */
    sj_symbols symbols;
    sj_eh_frame unwind;
    uint32_t threads; /* that may plan it, the caller's among them; 0: that one */
    uint64_t text_low;
    uint32_t text_bytes;
    const uint8_t *text;
    uint8_t *own_text; /* of generated code; else NULL */
    bool is_go;
    bool follows_flags;    /* their readers are looked for, also between ranges; not of Go */
    bool is_generated;     /* a runtime made the code, and knows places in it (generated.h) */
    sj_code_range *ranges; /* sorted by start */
    size_t range_count;
    size_t range_capacity;
    uint32_t *ranges_before; /* by block of text: how many ranges start before it */
    sj_code *codes;          /* by address; of ranges and, where flags matter, between them */
    size_t code_count;
    size_t code_capacity;
    uint32_t *first_codes; /* by word of code_starts: number of its first instruction */
    /* One bit per byte of text. */
    uint64_t *code_starts;   /* an instruction begins here */
    uint64_t *targets;       /* control may arrive here: branches, returns, labels, entries */
    uint64_t *pinned;        /* ... by other ways than the jumps of the code itself */
    uint64_t *addressed;     /* the address is taken by data or code */
    uint64_t *called;        /* a direct call leads here */
    uint64_t *padding;       /* never executed: may be overwritten when not claimed */
    uint64_t *claimed;       /* belongs to a patch of the plan */
    uint64_t *table_entries; /* targets of jump tables (kept for the tests' truth check) */
    uint64_t *switch_tables; /* sorted: tables of addresses that belong to a switch */
    size_t switch_count;
} sj_module;

typedef const sj_machine *(*sj_machine_finder)(uint16_t elf_machine);

/* sj_module_load opens the module and reads symbols, debug files, the map file and unwind tables.
 * `find_machine` is sj_machine_of: passed, so that no machine stands below the module.
 * SJ_ENOTFOUND, SJ_EUNSUPPORTED, SJ_ECORRUPT, SJ_ENOMEM. Release with sj_module_close, also after a
 * failure. */
SJ_MUST_CHECK sj_status sj_module_load(const sj_planner_options *options,
                                       sj_machine_finder find_machine, sj_module *module,
                                       sj_error *error);

/* sj_module_find_ranges turns symbols and FDEs into code ranges, with the reasons to leave
 * some alone. */
SJ_MUST_CHECK sj_status sj_module_find_ranges(sj_module *module);

/* sj_module_find_targets disassembles every range, marks everything that control may reach other
 * than by falling through, joins cold parts with their functions and finds padding. */
SJ_MUST_CHECK sj_status sj_module_find_targets(sj_module *module);

/* sj_module_keep_name copies a name, for as long as the module is open. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_module_keep_name(sj_module *module, const char *name, const char **kept);

void sj_module_close(sj_module *module);

/* sj_module_skip_notifiers excludes what calls the agent when Mono enters or leaves a method: its
 * calls would lie around the beginning, or the end, of the method's. They have no names in a
 * stripped runtime, and lie behind functions that have. The ranges are sorted. */
void sj_module_skip_notifiers(sj_module *module);

/* sj_module_index_ranges prepares the two below, once all ranges are sorted. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_module_index_ranges(sj_module *module);

/* sj_module_ranges_before counts the ranges that start at an offset or before. */
uint32_t sj_module_ranges_before(const sj_module *module, int64_t offset);

/* sj_module_range_at returns the index of the range that holds an offset, or SJ_CODE_RANGE_NONE. */
uint32_t sj_module_range_at(const sj_module *module, int64_t offset);

/* sj_name_part returns where a compiler's suffix for a part of a function begins in `name` (".cold"
 * or, of a basic block section, ".__part."). NULL: it names a whole function. Borrowed. */
const char *sj_name_part(const char *name);

/* sj_name_is_runtime returns whether a function belongs to the start files or the linker. */
bool sj_name_is_runtime(const char *name);

static inline bool sj_bit_get(const uint64_t *bits, uint32_t at)
{
    const _Atomic uint64_t *word = (const _Atomic uint64_t *)&bits[at >> 6];
    return (atomic_load_explicit(word, memory_order_relaxed) >> (at & 63) & 1) != 0;
}

static inline void sj_bit_set(uint64_t *bits, uint32_t at)
{
    bits[at >> 6] |= UINT64_C(1) << (at & 63);
}

/* sj_bit_mark and sj_bit_unmark set and clear a bit whose neighbours other threads change. */
static inline void sj_bit_mark(uint64_t *bits, uint32_t at)
{
    _Atomic uint64_t *word = (_Atomic uint64_t *)&bits[at >> 6];
    const uint64_t bit = UINT64_C(1) << (at & 63);
    if ((atomic_load_explicit(word, memory_order_relaxed) & bit) == 0) {
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    }
}

static inline void sj_bit_unmark(uint64_t *bits, uint32_t at)
{
    _Atomic uint64_t *word = (_Atomic uint64_t *)&bits[at >> 6];
    atomic_fetch_and_explicit(word, ~(UINT64_C(1) << (at & 63)), memory_order_relaxed);
}

/* sj_module_index_code makes an instruction of module->codes known to sj_any_code_at; instructions
 * are indexed by rising address. */
static inline void sj_module_index_code(sj_module *module, const sj_code *code)
{
    const uint32_t word = code->at >> 6;
    if (module->code_starts[word] == 0) {
        module->first_codes[word] = (uint32_t)(code - module->codes);
    }
    sj_bit_set(module->code_starts, code->at);
}

static inline bool sj_module_holds(const sj_module *module, int64_t offset)
{
    return offset >= 0 && offset < (int64_t)module->text_bytes;
}

static inline uint64_t sj_module_address(const sj_module *module, int64_t offset)
{
    return module->text_low + (uint64_t)offset;
}

#endif
