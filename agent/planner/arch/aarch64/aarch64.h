/* Functions of the AArch64 descriptor. machine.h describes them and their errors. */
#ifndef SJ_AGENT_PLANNER_ARCH_AARCH64_AARCH64_H
#define SJ_AGENT_PLANNER_ARCH_AARCH64_AARCH64_H

#include "agent/planner/machine.h"

sj_status sj_aarch64_open_decoder(sj_decoder *decoder);
void sj_aarch64_close_decoder(sj_decoder *decoder);
void sj_aarch64_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
                       sj_code *code, uint64_t *immediate);
void sj_aarch64_finish_range(sj_module *module, sj_code_range *range);
sj_status sj_aarch64_find_tables(const sj_module *module, uint32_t range, sj_jump_tables *tables);
uint32_t sj_aarch64_entry(const sj_module *module, const sj_code_range *range);
sj_switch_shape sj_aarch64_find_switch(const sj_module *module, const sj_code_range *range,
                                       const sj_code *jump);
bool sj_aarch64_hook(sj_builder *builder, sj_technique technique);

void sj_aarch64_mask_addresses(const sj_module *module, const sj_code *code, uint8_t *bytes,
                               uint32_t *pages);

#endif
