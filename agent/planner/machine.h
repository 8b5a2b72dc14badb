/* What the planner needs to know about a machine: one descriptor per ELF e_machine. */
#ifndef SJ_AGENT_PLANNER_MACHINE_H
#define SJ_AGENT_PLANNER_MACHINE_H

#include "agent/planner/builder.h"
#include "agent/planner/targets.h"

struct sj_machine {
    uint16_t elf_machine;
    uint32_t relocation_relative;
    uint32_t relocation_absolute;
    uint32_t relocation_resolver;
    uint32_t relocation_slot; /* of imports, used by calls only; 0: they are not recorded */
    uint32_t relocation_data; /* of imports, used in any way */
    bool tells_loads;         /* how code uses an import of that kind is seen in the code */
    bool tells_flags;         /* its decoder tells sj_flag_effect */

    /* The machine's part of sj_decoder_open, sj_decoder_close (NULL: nothing to do), sj_decode. */
    sj_status (*open_decoder)(sj_decoder *decoder);
    void (*close_decoder)(sj_decoder *decoder);
    void (*decode)(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
                   sj_code *code, uint64_t *immediate);

    /* finish_piece completes a disassembled piece with what takes more than one instruction to
     * see; NULL: nothing. read_tables is sj_read_tables for this machine. */
    void (*finish_piece)(sj_module *module, sj_piece *piece);
    sj_status (*read_tables)(sj_module *module, uint32_t piece, sj_links *links);

    /* head tells a piece's. find_switch tells what leads to a jump through a register. */
    uint32_t (*head)(const sj_module *module, const sj_piece *piece);
    sj_switch_shape (*find_switch)(const sj_module *module, const sj_piece *piece,
                                   const sj_code *jump);

    /* hook tries one technique on the function at work; false with builder->reason. */
    bool (*hook)(sj_builder *builder, sj_technique technique);
};

/* sj_machine_of returns the descriptor of an e_machine, or NULL. */
const sj_machine *sj_machine_of(uint16_t elf_machine);

sj_status sj_x86_64_open_decoder(sj_decoder *decoder);
void sj_x86_64_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
                      sj_code *code, uint64_t *immediate);
/* sj_x86_64_flag_effect tells the sj_flag_effect of an instruction. */
uint8_t sj_x86_64_flag_effect(const ZydisDecodedInstruction *decoded);
uint32_t sj_x86_64_head(const sj_module *module, const sj_piece *piece);
sj_switch_shape sj_x86_64_find_switch(const sj_module *module, const sj_piece *piece,
                                      const sj_code *jump);
bool sj_x86_64_hook(sj_builder *builder, sj_technique technique);

sj_status sj_aarch64_open_decoder(sj_decoder *decoder);
void sj_aarch64_close_decoder(sj_decoder *decoder);
void sj_aarch64_decode(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
                       sj_code *code, uint64_t *immediate);
void sj_aarch64_finish_piece(sj_module *module, sj_piece *piece);
sj_status sj_aarch64_read_tables(sj_module *module, uint32_t piece, sj_links *links);
uint32_t sj_aarch64_head(const sj_module *module, const sj_piece *piece);
sj_switch_shape sj_aarch64_find_switch(const sj_module *module, const sj_piece *piece,
                                       const sj_code *jump);
bool sj_aarch64_hook(sj_builder *builder, sj_technique technique);

#endif
