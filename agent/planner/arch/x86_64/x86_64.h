/* Functions that the files in arch/x86_64 share. Only one thread may use a builder. */
#ifndef SJ_AGENT_PLANNER_ARCH_X86_64_X86_64_H
#define SJ_AGENT_PLANNER_ARCH_X86_64_X86_64_H

#include "agent/planner/builder.h"
#include "agent/planner/machine.h"

#include <Zydis/Zydis.h>

/* Functions of the descriptor. machine.h describes them and their errors. */
sj_status sj_x86_64_open_decoder(sj_decoder *decoder);
void sj_x86_64_close_decoder(sj_decoder *decoder);
void sj_x86_64_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
                      sj_code *code, uint64_t *immediate);
/* Returns the sj_flag_effect of an instruction. */
uint8_t sj_x86_64_flag_effect(const ZydisDecodedInstruction *decoded);
uint32_t sj_x86_64_entry(const sj_module *module, const sj_code_range *range);
sj_switch_shape sj_x86_64_find_switch(const sj_module *module, const sj_code_range *range,
                                      const sj_code *jump);

/* Implements find_tables of machine.h. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_x86_64_find_tables(const sj_module *module, uint32_t range,
                                              sj_jump_tables *tables);

/* Returns the condition code of a conditional jump. */
uint8_t sj_x86_64_jump_condition(const sj_module *module, const sj_code *jump);

/* Plans patches for the entry and every exit of the current function. Returns false and sets
 * builder->reason if a place cannot be patched. */
bool sj_hook_in_place(sj_builder *builder);

/* Plans a jump from the entry of a function that makes no calls to a copy of the function. The copy
 * has probes at its exits. Returns false if the function cannot be copied. */
bool sj_hook_by_copy(sj_builder *builder);

/* Returns the exit for which an instruction of the current function must be patched. That is the
 * instruction itself, or, if exits are folded, the exit that it jumps to. Returns NULL if the
 * instruction stays in the function. `exit` is the result of sj_exit_of. */
const sj_code *sj_leaving_code(const sj_builder *builder, const sj_code *code, sj_exit exit);

/* True if an instruction is an exit that only jumps of the current function reach, and each of
 * these jumps became an exit itself. So its own bytes need not stay a valid target. */
bool sj_is_folded(const sj_builder *builder, const sj_code *code);

/* Makes a window of the instructions `first` to `last` of a range. Returns false if the window has
 * fewer than `need` bytes or is too long for a patch. Also returns false if control may arrive
 * inside of it, or if an instruction cannot be moved or is claimed already. */
bool sj_window_make(const sj_builder *builder, const sj_code_range *range, uint32_t first,
                    uint32_t last, uint32_t need, sj_window *window);

/* Finds the window at the function's entry. Returns false and sets builder->reason if there is
 * none. */
bool sj_window_entry(sj_builder *builder, uint32_t need, sj_window *window);

/* Finds the window that contains an exit. Returns false and sets builder->reason if there is
 * none. */
bool sj_window_exit(sj_builder *builder, const sj_code_range *range, uint32_t exit, uint32_t need,
                    sj_window *window);

/* Returns the number of unclaimed padding bytes from an offset on, at most `limit`. */
uint32_t sj_free_padding(const sj_module *module, uint32_t at, uint32_t limit);

/* Makes and claims the window of an exit, or of the entry if `is_at_entry`. The window has at least
 * five bytes, or two bytes and a branch island. If allows_others, the window of an exit may also be
 * a pun (sj_window). Sets `*island` to the island's offset, or to SJ_CODE_RANGE_NONE if there is
 * none. Returns false and sets builder->reason if there is no window. */
bool sj_claim_window(sj_builder *builder, const sj_code_range *range, uint32_t exit,
                     bool is_at_entry, sj_window *window, uint32_t *island);

/* Emits code with the effect of an instruction at its original address. The instruction must not be
 * an exit. */
void sj_emit_moved(sj_builder *builder, const sj_code *code);

/* Emits a probe and an unconditional exit. */
void sj_emit_exit(sj_builder *builder, const sj_code *code);

/* Makes a stub for a jump that is an exit or leads to one (sj_leaving_code): a probe and that exit.
 * Returns the stub's number. */
uint32_t sj_emit_leave_stub(sj_builder *builder, const sj_code *jump, const sj_code *exit);

/* Makes the stub of a window. Returns the stub's number. */
uint32_t sj_emit_window(sj_builder *builder, const sj_code_range *range, const sj_window *window,
                        bool is_at_entry);

/* Emits a branch of the function as a branch to a label of the open stub. */
void sj_emit_to_label(sj_builder *builder, const sj_code *code, uint32_t label);

/* See machine.h. */
sj_frame_step sj_x86_64_frame_step(const uint8_t *bytes, uint32_t length);

/* True if an instruction divides, or accesses memory other than the stack frame and the function's
 * constants. */
bool sj_x86_64_may_fault(const ZydisDecodedInstruction *decoded);

/* See machine.h. */
void sj_x86_64_mask_addresses(const sj_module *module, const sj_code *code, uint8_t *bytes,
                              uint32_t *pages);

#endif
