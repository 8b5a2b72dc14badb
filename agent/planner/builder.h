/* A builder holds a plan while the planner makes it. The planner adds patches, stubs and operations
 * for one function after the other. If it cannot hook a function, it removes what it added for that
 * function. A builder is not thread-safe. */
#ifndef SJ_AGENT_PLANNER_BUILDER_H
#define SJ_AGENT_PLANNER_BUILDER_H

#include "agent/planner/exits.h"
#include "agent/planner/module.h"

/* Bytes that a patch replaces: whole instructions, and the padding after the last one. */
typedef struct sj_window {
    uint32_t first; /* indexes in module->codes */
    uint32_t last;
    uint32_t start;  /* offset in the text */
    uint32_t length; /* bytes of the instructions */
    uint32_t space;  /* bytes that may be overwritten, padding included */
    /* only the first byte is overwritten; the second byte stays and is the jump's distance */
    bool is_pun;
} sj_window;

/* Bytes of the text that a function's patches use. */
typedef struct sj_claim {
    uint32_t start;
    uint32_t bytes;
} sj_claim;

/* Where an operation contains the number of a stub. sj_builder_append changes these numbers. */
typedef struct sj_stub_use {
    size_t at; /* offset in sj_builder.operations */
    uint32_t stub;
} sj_stub_use;

typedef struct sj_builder {
    sj_module *module;
    sj_plan_function *functions; /* one per range, with the same index */
    sj_plan_patch *patches;
    size_t patch_count;
    size_t patch_capacity;
    sj_plan_stub *stubs;
    size_t stub_count;
    size_t stub_capacity;
    uint8_t *operations;
    size_t operations_bytes;
    size_t operations_capacity;
    sj_stub_use *uses; /* sorted by offset */
    size_t use_count;
    size_t use_capacity;
    sj_claim *claims; /* claims of the current function */
    size_t claim_count;
    size_t claim_capacity;
    uint32_t function; /* index of the current function */
    uint32_t stub_code_bytes;
    /* Offset in the text of the instruction that the next code of the open stub replaces. */
    uint32_t place;
    bool allows_short;  /* patches may use short jumps */
    bool folds_exits;   /* a jump to an exit is patched instead of the exit, where possible */
    bool allows_others; /* islands may lie in the code of other functions */
    sj_skip reason;     /* why the current function cannot be hooked */
    /* Not SJ_OK after an addition has failed. Later additions then do nothing. */
    sj_status status;
} sj_builder;

/* Allocates a plan function for each code range. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_builder_start(sj_builder *builder);

/* Appends the patches and stubs of `other`, another builder for the same module and the same array
 * of functions. They belong to the functions `first` to `last` - 1. Stub and patch numbers are
 * adjusted. Returns other->status if it is not SJ_OK, and SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_builder_append(sj_builder *builder, const sj_builder *other,
                                          uint32_t first, uint32_t last);

/* Tries to hook every function, with one technique (sj_technique) after the other. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_builder_hook(sj_builder *builder);

/* Appends the imports of the module to the functions and plans their stubs. Call it after
 * sj_builder_hook. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_plan_library_calls(sj_builder *builder);

/* Computes stub_code_bytes, the code size of all stubs. Call it last. Returns SJ_ELIMIT if the size
 * exceeds 4 GiB. */
SJ_MUST_CHECK sj_status sj_builder_sum(sj_builder *builder);

void sj_builder_free(sj_builder *builder);

/* Removes all claims of the current function. */
void sj_claims_give_up(sj_builder *builder);

/* Claims bytes of the text for the current function, so that no other patch uses them. */
void sj_claim_bytes(sj_builder *builder, uint32_t start, uint32_t bytes);

/* Adds the patch that makes a claimed window jump to a stub. `island` is an offset in the text, or
 * SJ_CODE_RANGE_NONE. With an island, the window jumps to the island, and a second patch makes the
 * island jump to the stub. */
void sj_patch_window(sj_builder *builder, const sj_window *window, uint32_t island, uint32_t stub);

/* Adds the patch that makes a claimed 32-bit jump lead to a stub. */
void sj_patch_distance(sj_builder *builder, const sj_code *code, uint32_t stub);

/* Adds the patch that replaces a claimed instruction of AArch64 by a branch to a stub. */
void sj_patch_branch(sj_builder *builder, const sj_code *code, uint32_t stub);

/* Adds the patch that writes a stub's address into an import's slot. `slot` is the module
 * offset of the slot. */
void sj_patch_slot(sj_builder *builder, uint64_t slot, uint32_t stub);

/* Opens a stub and returns its number. The caller adds operations and closes the stub with
 * sj_stub_end. */
uint32_t sj_stub_begin(sj_builder *builder);
void sj_stub_end(sj_builder *builder);

/* These functions add an operation (sj_plan_operation) to the open stub. `at`, `target` and
 * `address` are offsets in the text. `label` is the number of a label of the stub. The code after
 * sj_emit_place replaces the instruction at `at`. A probe with `has_dead_flags` may change the
 * status flags. */
void sj_emit_place(sj_builder *builder, uint32_t at);
void sj_emit_probe(sj_builder *builder, sj_plan_operation operation, bool has_dead_flags);
void sj_emit_enter(sj_builder *builder); /* the probe at the entry of the current function */
/* Adds an exit by a jump to the start of another function. `callee` is the index of a range of the
 * module. */
void sj_emit_tail_call(sj_builder *builder, uint32_t callee);
/* Both add the probe of an exit by a jump (SJ_OPERATION_JUMP_LEAVE). The target of the jump is in a
 * register, or the code in `bytes` stores it. `field` is as in sj_emit_relative; 0: none. */
void sj_emit_jump_leave(sj_builder *builder, uint32_t jump_register);
void sj_emit_stored_jump_leave(sj_builder *builder, const uint8_t *bytes, uint8_t size,
                               uint8_t field, int64_t target);
void sj_emit_jump(sj_builder *builder, int64_t target);
void sj_emit_label(sj_builder *builder, uint32_t label);
/* `condition` is an x86 condition code. */
void sj_emit_jump_if_stub(sj_builder *builder, uint8_t condition, uint32_t stub);

/* sj_emit_copy adds code unchanged. sj_emit_relative and sj_emit_copy_to_label add code that refers
 * to a target or a label. The agent sets the displacement at the offset `field` in `bytes`.
 * AArch64: `bytes` is one instruction, `field` is 0. */
void sj_emit_copy(sj_builder *builder, const uint8_t *bytes, uint8_t size);
void sj_emit_relative(sj_builder *builder, const uint8_t *bytes, uint8_t size, uint8_t field,
                      int64_t target);
void sj_emit_copy_to_label(sj_builder *builder, const uint8_t *bytes, uint8_t size, uint8_t field,
                           uint32_t label);
void sj_emit_push_return(sj_builder *builder, int64_t address);
void sj_emit_jump_stub(sj_builder *builder, uint32_t stub);

/* Makes the stub of the current import and returns the stub's number. */
uint32_t sj_emit_dispatch_stub(sj_builder *builder);

#endif
