/* What the files of the planner for x86-64 share. One thread per builder. */
#ifndef SJ_AGENT_PLANNER_ARCH_X86_64_X86_64_H
#define SJ_AGENT_PLANNER_ARCH_X86_64_X86_64_H

#include "agent/planner/builder.h"
#include "agent/planner/machine.h"

#include <Zydis/Zydis.h>

/* Steps of the descriptor (machine.h). */
sj_status sj_x86_64_open_decoder(sj_decoder *decoder);
void sj_x86_64_close_decoder(sj_decoder *decoder);
void sj_x86_64_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
                      sj_code *code, uint64_t *immediate);
/* sj_x86_64_flag_effect returns the sj_flag_effect of an instruction. */
uint8_t sj_x86_64_flag_effect(const ZydisDecodedInstruction *decoded);
uint32_t sj_x86_64_entry(const sj_module *module, const sj_code_range *range);
sj_switch_shape sj_x86_64_find_switch(const sj_module *module, const sj_code_range *range,
                                      const sj_code *jump);

/* sj_x86_64_find_tables: as machine.h says. */
SJ_MUST_CHECK sj_status sj_x86_64_find_tables(const sj_module *module, uint32_t range,
                                              sj_jump_tables *tables);

/* sj_x86_64_jump_condition is the condition code of a conditional jump of x86-64. */
uint8_t sj_x86_64_jump_condition(const sj_module *module, const sj_code *jump);

/* sj_hook_in_place patches the entry and every exit of the function at work; false (with
 * builder->reason) when a site cannot be patched. */
bool sj_hook_in_place(sj_builder *builder);

/* sj_hook_by_copy leads the entry of a call-free function to a copy with probes at its exits. */
bool sj_hook_by_copy(sj_builder *builder);

/* sj_leaving_code returns the exit that an instruction of the function at work amounts to: itself,
 * the exit that it jumps to when exits are folded, or NULL when it stays in the function. `exit` is
 * what sj_exit_of says of it. */
const sj_code *sj_leaving_code(const sj_builder *builder, const sj_code *code, sj_exit exit);

/* sj_is_folded returns whether an instruction is an exit that only the jumps of the function at
 * work lead to, which all leave by themselves: nothing has to be able to arrive at it any more. */
bool sj_is_folded(const sj_builder *builder, const sj_code *code);

/* sj_window_make fills the window of instructions `first` to `last` of a range; false when it is
 * smaller than `need` bytes, has an inner target, or cannot be moved. */
bool sj_window_make(const sj_builder *builder, const sj_code_range *range, uint32_t first,
                    uint32_t last, uint32_t need, sj_window *window);

/* sj_window_entry finds the window at the function's entry; false with builder->reason. */
bool sj_window_entry(sj_builder *builder, uint32_t need, sj_window *window);

/* sj_window_exit finds the window that holds an exit; false with builder->reason. */
bool sj_window_exit(sj_builder *builder, const sj_code_range *range, uint32_t exit, uint32_t need,
                    sj_window *window);

/* sj_free_padding counts the unclaimed bytes of padding at an offset, `most` at most. */
uint32_t sj_free_padding(const sj_module *module, uint32_t at, uint32_t most);

/* sj_take_window makes and claims the window of an exit, or of the entry: of five bytes, or of two
 * with a jump in an island near by, else SJ_CODE_RANGE_NONE. False with builder->reason. */
bool sj_take_window(sj_builder *builder, const sj_code_range *range, uint32_t exit,
                    bool is_at_entry, sj_window *window, uint32_t *island);

/* sj_emit_moved emits an instruction that does not leave the function. */
void sj_emit_moved(sj_builder *builder, const sj_code *code);

/* sj_emit_exit emits a probe and an unconditional exit. */
void sj_emit_exit(sj_builder *builder, const sj_code *code);

/* sj_emit_leave_stub makes a stub of its own for a jump that amounts to an exit (sj_leaving_code):
 * a probe, then that exit. */
uint32_t sj_emit_leave_stub(sj_builder *builder, const sj_code *jump, const sj_code *exit);

/* sj_emit_window makes the stub of a window. */
uint32_t sj_emit_window(sj_builder *builder, const sj_code_range *range, const sj_window *window,
                        bool is_at_entry);

/* sj_emit_to_label emits a branch to a label of its own stub. */
void sj_emit_to_label(sj_builder *builder, const sj_code *code, uint32_t label);

/* sj_x86_64_frame_step: as machine.h says. */
sj_frame_step sj_x86_64_frame_step(const uint8_t *bytes, uint32_t length);

/* sj_x86_64_may_fault: an instruction reads or writes memory but its frame's and constants, or
 * divides. */
bool sj_x86_64_may_fault(const ZydisDecodedInstruction *decoded);

void sj_x86_64_mask_addresses(const sj_module *module, const sj_code *code, uint8_t *bytes,
                              uint32_t *pages);

#endif
