/* The module that is being planned: its text, code ranges, instructions, and facts about each byte
 * of text. Three steps fill it in: sj_module_load, sj_module_find_ranges and
 * sj_module_find_targets. Then the techniques read it and claim bytes. One thread owns a module. It
 * may let other threads do parts of a step. */
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

/* A contiguous range of code: a function, or a cold part of one. */
typedef struct sj_code_range {
    uint32_t start; /* offset in the text */
    uint32_t size;
    /* Offset of the first instruction after landing instructions (endbr64, bti, paciasp), which
     * must stay where they are. */
    uint32_t entry;
    uint32_t first_code; /* index in module->codes */
    uint32_t code_count;
    uint32_t
        parent; /* index of the function to which the range belongs; of a function: its own index */
    uint32_t next_part;  /* next cold part of the same function, or SJ_CODE_RANGE_NONE */
    uint32_t part_count; /* number of cold parts, for functions */
    const char *name;
    const sj_fde *frame; /* unwind range that contains the start; NULL: none */
    uint8_t source;      /* sj_symbol_source */
    uint8_t receiver;
    uint8_t skip; /* sj_skip that was set before any technique was tried */
    bool is_cold;
    bool is_undecodable;
    bool has_call;
    bool has_indirect;
    bool has_table;   /* its code contains the address of a switch's jump table */
    bool is_arm;      /* an entry of a switch's jump table leads to its start or entry */
    bool has_frame;   /* the stack differs from the entry's at some instruction */
    bool has_labels;  /* the address of a label inside is taken */
    bool has_entries; /* an address that is taken inside is also the target of a jump table */
    bool dead_flags_at_entry;  /* the code from the entry on overwrites the status flags before it
                                  reads them */
    bool dead_flags_at_return; /* no caller reads the status flags after the return */
} sj_code_range;

typedef struct sj_module {
    const sj_machine *machine;
    sj_elf elf;
    sj_elf debug;
    sj_elf mini;
    char *map_names;
    struct sj_kept_name *kept_names; /* a list */
    char debug_path[512];            /* "" if there is no debug file */
    sj_symbols symbols;
    sj_eh_frame unwind;
    /* number of threads that may work on the module, including the caller; 0: only the caller */
    uint32_t threads;
    uint64_t text_low;
    uint32_t text_bytes;
    const uint8_t *text;
    uint8_t *own_text; /* text of generated code; else NULL */
    bool is_go;
    bool follows_flags;    /* search readers of the flags, also between ranges; false for Go */
    bool is_generated;     /* a language runtime generated the code and knows addresses in it
                              (generated.h) */
    sj_code_range *ranges; /* sorted by start */
    size_t range_count;
    size_t range_capacity;
    uint32_t *ranges_before; /* for each block of 64 bytes of text: number of ranges that start
                                before it */
    sj_code *codes;          /* sorted by address; if follows_flags, includes code between ranges */
    size_t code_count;
    size_t code_capacity;
    uint32_t
        *first_codes; /* for each word of code_starts: index of its first instruction in `codes` */
    /* One bit per byte of text: */
    uint64_t *code_starts;   /* an instruction starts here */
    uint64_t *targets;       /* control may arrive here by a branch, return, label or entry */
    uint64_t *pinned;        /* control may arrive here other than by jumps of the code itself */
    uint64_t *addressed;     /* data or code takes the address */
    uint64_t *called;        /* a direct call leads here */
    uint64_t *padding;       /* never executed, so a patch may overwrite it */
    uint64_t *claimed;       /* used by a patch of the plan */
    uint64_t *table_entries; /* targets of jump tables (kept for tests) */
    uint64_t *switch_tables; /* addresses of tables of addresses that belong to switches, sorted */
    size_t switch_count;
} sj_module;

typedef const sj_machine *(*sj_machine_finder)(uint16_t elf_machine);

/* Opens the module and reads its symbols, debug files, map file and unwind tables. `find_machine`
 * is sj_machine_of; it is a parameter so that module.c does not depend on machines. Close the
 * module with sj_module_close, also after an error. Errors are those of sj_elf_open and
 * sj_map_evidence_check. Also returns SJ_ENOTFOUND or SJ_ECORRUPT if the map file cannot be
 * read. */
SJ_MUST_CHECK sj_status sj_module_load(const sj_planner_options *options,
                                       sj_machine_finder find_machine, sj_module *module,
                                       sj_error *error);

/* Turns symbols and FDEs into code ranges, and sets the reasons to exclude some of them. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_module_find_ranges(sj_module *module);

/* Disassembles all ranges and marks all places that control may reach other than by falling
 * through. Then joins cold parts with their functions, finds padding and excludes functions with
 * unknown exits. Returns SJ_ENOMEM, SJ_ELIMIT or an error of sj_decoder_open. */
SJ_MUST_CHECK sj_status sj_module_find_targets(sj_module *module);

/* Copies a name. The module owns `*kept`. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_module_keep_name(sj_module *module, const char *name, const char **kept);

void sj_module_close(sj_module *module);

/* Excludes Mono's functions that notify the agent when a method begins or ends: their calls would
 * enclose the method's start or end. In a stripped runtime these functions have no names, and
 * follow functions with names. The ranges must be sorted. */
void sj_module_skip_notifiers(sj_module *module);

/* Builds the index for sj_module_ranges_before and sj_module_range_at. The ranges must be sorted.
 * Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_module_index_ranges(sj_module *module);

/* Returns the number of ranges that start at or before an offset. */
uint32_t sj_module_ranges_before(const sj_module *module, int64_t offset);

/* Returns the index of the range that contains an offset, or SJ_CODE_RANGE_NONE. */
uint32_t sj_module_range_at(const sj_module *module, int64_t offset);

/* Returns the suffix in `name` by which compilers name a part of a function: ".cold", or ".__part."
 * for a basic block section. The result points into `name`. Returns NULL if it names a whole
 * function. */
const char *sj_name_part(const char *name);

/* True if a function of that name belongs to the start files or the linker. */
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

/* Set and clear a bit while other threads change bits of the same word. */
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

/* Adds an instruction of module->codes to the index of sj_any_code_at. Instructions are added in
 * ascending order of address. */
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
