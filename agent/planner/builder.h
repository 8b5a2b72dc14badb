/* Builder: the plan while it is being made. It adds patches, stubs and operations of one function,
 * and removes them if the function turns out not to be hookable. Not thread-safe. */
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
    /* only the first byte may be overwritten; the next one is the distance of the jump */
    bool is_pun;
} sj_window;

typedef struct sj_claim {
    uint32_t start;
    uint32_t bytes;
} sj_claim;

/* A stub number in the operations. */
typedef struct sj_stub_use {
    size_t at; /* offset in the operations */
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
    sj_stub_use *uses; /* of all operations, in their order */
    size_t use_count;
    size_t use_capacity;
    sj_claim *claims; /* claims of the current function */
    size_t claim_count;
    size_t claim_capacity;
    uint32_t function; /* index of the current function */
    uint32_t stub_code_bytes;
    uint32_t place;     /* place in the program of the next copied instruction of the open stub */
    bool allows_short;  /* patches may use short jumps */
    bool folds_exits;   /* a jump to an exit counts as that exit */
    bool allows_others; /* islands may lie in the code of other functions */
    sj_skip reason;     /* why the current function cannot be hooked */
    sj_status status;   /* SJ_ENOMEM once memory was missing */
} sj_builder;

/* Makes a function of each code range. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_builder_start(sj_builder *builder);

/* Appends what another builder of the same module and functions has made of the functions `first`
 * to `last` - 1. The result is as if this builder had made it. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_builder_append(sj_builder *builder, const sj_builder *made,
                                          uint32_t first, uint32_t last);

/* Tries the techniques on every function. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_builder_hook(sj_builder *builder);

/* Appends the imports of the module whose calls are recorded. Call it after sj_builder_hook.
 * SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_plan_library_calls(sj_builder *builder);

/* Computes the code size of all stubs, as the last step. Returns SJ_ELIMIT beyond 4 GiB. */
SJ_MUST_CHECK sj_status sj_builder_sum(sj_builder *builder);

void sj_builder_free(sj_builder *builder);

/* Removes all claims of the current function. */
void sj_claims_give_up(sj_builder *builder);

/* Claims bytes for the current function. */
void sj_claim_bytes(sj_builder *builder, uint32_t start, uint32_t bytes);

/* Adds the patch that makes a claimed window jump to a stub. If `island` is not SJ_CODE_RANGE_NONE,
 * also adds the jump in the island. */
void sj_patch_window(sj_builder *builder, const sj_window *window, uint32_t island, uint32_t stub);

/* Adds the patch that changes the target of a claimed 32-bit jump. */
void sj_patch_distance(sj_builder *builder, const sj_code *code, uint32_t stub);

/* Adds the patch that turns one claimed instruction of AArch64 into a branch. */
void sj_patch_branch(sj_builder *builder, const sj_code *code, uint32_t stub);

/* Adds the patch that writes a stub's address into an import's slot. */
void sj_patch_slot(sj_builder *builder, uint64_t slot, uint32_t stub);

/* sj_stub_begin starts a stub and returns its number. Add operations, then close it with
 * sj_stub_end. */
uint32_t sj_stub_begin(sj_builder *builder);
void sj_stub_end(sj_builder *builder);

/* Operations of the open stub; targets are offsets in the text. The code after sj_emit_place stands
 * for the instruction at `at`. */
void sj_emit_place(sj_builder *builder, uint32_t at);
void sj_emit_probe(sj_builder *builder, sj_plan_operation operation, bool has_dead_flags);
void sj_emit_enter(sj_builder *builder); /* the probe at the entry of the current function */
/* `callee` is a range of the module */
void sj_emit_tail_call(sj_builder *builder, uint32_t callee);
/* The probe of an exit by a jump (SJ_OPERATION_JUMP_LEAVE). The target is in a register, or is
 * stored by code with an optional field (0: none) that is set to reach a target. */
void sj_emit_jump_leave(sj_builder *builder, uint32_t jump_register);
void sj_emit_stored_jump_leave(sj_builder *builder, const uint8_t *bytes, uint8_t size,
                               uint8_t field, int64_t target);
void sj_emit_jump(sj_builder *builder, int64_t target);
void sj_emit_label(sj_builder *builder, uint32_t label);
void sj_emit_jump_if_stub(sj_builder *builder, uint8_t condition, uint32_t stub);

/* Operations for any machine: bytes unchanged, or with a field that is set to reach a target or
 * label. */
void sj_emit_copy(sj_builder *builder, const uint8_t *bytes, uint8_t size);
void sj_emit_relative(sj_builder *builder, const uint8_t *bytes, uint8_t size, uint8_t field,
                      int64_t target);
void sj_emit_copy_to_label(sj_builder *builder, const uint8_t *bytes, uint8_t size, uint8_t field,
                           uint32_t label);
void sj_emit_push_return(sj_builder *builder, int64_t address);
void sj_emit_jump_stub(sj_builder *builder, uint32_t stub);

/* Makes the stub of the current import; returns its number. */
uint32_t sj_emit_dispatch_stub(sj_builder *builder);

#endif
