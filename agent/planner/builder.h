/* The plan while it grows: patches, stubs and operations of one function are added, and taken back
 * when the function turns out not to be hookable. One thread. */
#ifndef SJ_AGENT_PLANNER_BUILDER_H
#define SJ_AGENT_PLANNER_BUILDER_H

#include "agent/planner/exits.h"
#include "agent/planner/module.h"

/* Bytes that a patch replaces: whole instructions, and padding behind the last. */
typedef struct sj_window {
    uint32_t first; /* instruction numbers in module->codes */
    uint32_t last;
    uint32_t start;  /* offset */
    uint32_t length; /* bytes of the instructions */
    uint32_t room;   /* with padding: what may be overwritten */
    bool is_pun;     /* only its first byte is: the one behind is the distance of the jump */
} sj_window;

typedef struct sj_claim {
    uint32_t start;
    uint32_t bytes;
} sj_claim;

/* A number of a stub in the operations. */
typedef struct sj_stub_use {
    size_t at; /* byte of the operations */
    uint32_t stub;
} sj_stub_use;

typedef struct sj_builder {
    sj_module *module;
    sj_plan_function *functions; /* one per range, same index */
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
    sj_claim *claims; /* of the function at work */
    size_t claim_count;
    size_t claim_capacity;
    uint32_t function; /* at work */
    uint32_t stub_code_bytes;
    uint32_t place;     /* that the next copy of the open stub stands for */
    bool allows_short;  /* sites may be reached by short jumps */
    bool folds_exits;   /* a jump to an exit counts as that exit */
    bool allows_others; /* islands may lie in the code of other functions */
    sj_skip reason;     /* why the function at work cannot be hooked */
    sj_status status;   /* of memory: sticky */
} sj_builder;

/* sj_builder_start makes a function of each code range. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_builder_start(sj_builder *builder);

/* sj_builder_append puts what a builder of the same module and functions has made of the functions
 * `first` to `last` - 1 behind what is there, as if it had been made here. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_builder_append(sj_builder *builder, const sj_builder *made,
                                          uint32_t first, uint32_t last);

/* sj_builder_hook tries the techniques on every function. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_builder_hook(sj_builder *builder);

/* sj_plan_library_calls appends the imports of the module, calls of which are recorded, behind its
 * functions. After sj_builder_hook. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_plan_library_calls(sj_builder *builder);

/* sj_builder_sum sums up the code of all stubs: SJ_ELIMIT past 4 GiB. The last step. */
SJ_MUST_CHECK sj_status sj_builder_sum(sj_builder *builder);

void sj_builder_free(sj_builder *builder);

/* sj_claims_give_up takes back all claims of the function at work. */
void sj_claims_give_up(sj_builder *builder);

/* sj_claim_bytes makes bytes the property of the function at work. */
void sj_claim_bytes(sj_builder *builder, uint32_t start, uint32_t bytes);

/* sj_patch_window adds the patch (and, for `island` != SJ_CODE_RANGE_NONE, the jump in padding)
 * that leads a claimed window to a stub. */
void sj_patch_window(sj_builder *builder, const sj_window *window, uint32_t island, uint32_t stub);

/* sj_patch_distance adds the patch that retargets a claimed 32-bit jump. */
void sj_patch_distance(sj_builder *builder, const sj_code *code, uint32_t stub);

/* sj_patch_branch adds the patch that makes one claimed instruction of AArch64 a branch. */
void sj_patch_branch(sj_builder *builder, const sj_code *code, uint32_t stub);

/* sj_patch_slot adds the patch that leads an import's slot, an address, to a stub. */
void sj_patch_slot(sj_builder *builder, uint64_t slot, uint32_t stub);

/* sj_stub_begin starts a stub and returns its number; operations follow; sj_stub_end closes it. */
uint32_t sj_stub_begin(sj_builder *builder);
void sj_stub_end(sj_builder *builder);

/* Operations of the open stub; targets are offsets in the text. What follows sj_emit_place stands
 * for the instruction at `at`. */
void sj_emit_place(sj_builder *builder, uint32_t at);
void sj_emit_probe(sj_builder *builder, sj_plan_operation operation, bool has_dead_flags);
void sj_emit_enter(sj_builder *builder); /* the probe of the entry of the function at work */
void sj_emit_tail_call(sj_builder *builder, uint32_t callee); /* a range of the module */
/* The probe of an exit by a jump (SJ_OPERATION_JUMP_LEAVE): to what is in a register, or is stored
 * by code with an optional field (0: none) that leads to a target. */
void sj_emit_jump_leave(sj_builder *builder, uint32_t jump_register);
void sj_emit_stored_jump_leave(sj_builder *builder, const uint8_t *bytes, uint8_t size,
                               uint8_t field, int64_t target);
void sj_emit_jump(sj_builder *builder, int64_t target);
void sj_emit_label(sj_builder *builder, uint32_t label);
void sj_emit_jump_if_stub(sj_builder *builder, uint8_t condition, uint32_t stub);

/* The same for any machine: bytes as they are, or with a field that leads to a target or label. */
void sj_emit_copy(sj_builder *builder, const uint8_t *bytes, uint8_t size);
void sj_emit_relative(sj_builder *builder, const uint8_t *bytes, uint8_t size, uint8_t field,
                      int64_t target);
void sj_emit_copy_to_label(sj_builder *builder, const uint8_t *bytes, uint8_t size, uint8_t field,
                           uint32_t label);
void sj_emit_push_return(sj_builder *builder, int64_t address);
void sj_emit_jump_stub(sj_builder *builder, uint32_t stub);

/* sj_emit_dispatch_stub makes the stub of an import, the function at work. */
uint32_t sj_emit_dispatch_stub(sj_builder *builder);

#endif
