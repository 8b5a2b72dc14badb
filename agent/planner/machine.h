/* Properties of a machine that the planner needs: one descriptor per ELF e_machine. */
#ifndef SJ_AGENT_PLANNER_MACHINE_H
#define SJ_AGENT_PLANNER_MACHINE_H

#include "agent/planner/builder.h"
#include "agent/planner/targets.h"

typedef enum sj_frame_step {
    SJ_FRAME_KEPT,
    SJ_FRAME_MADE,
    SJ_FRAME_REMOVED, /* the stack is as at the entry, now or after the next instructions */
    SJ_FRAME_RESTORED /* the stack pointer is loaded from memory: the end of a handler */
} sj_frame_step;

struct sj_machine {
    uint16_t elf_machine;
    uint32_t relocation_relative;
    uint32_t relocation_absolute;
    uint32_t relocation_resolver;
    uint32_t relocation_slot; /* imports that are only called; 0: imports are not recorded */
    uint32_t relocation_data; /* imports that are used in any way */
    bool shows_loads;         /* the code shows how it uses an import of that kind */
    bool shows_flags;         /* its decoder sets sj_code.flag_effect */
    bool scans_in_order;      /* finish_range needs the marks of the code before the range */

    /* Implement sj_decoder_open, sj_decoder_close (NULL: nothing to do) and sj_decode. */
    sj_status (*open_decoder)(sj_decoder *decoder);
    void (*close_decoder)(sj_decoder *decoder);
    void (*decode)(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
                   sj_code *code, uint64_t *immediate);

    /* finish_range completes a disassembled range by properties that need more than one
     * instruction; NULL: nothing. find_tables adds the possible jump tables of a range;
     * SJ_ENOMEM. */
    void (*finish_range)(sj_module *module, sj_code_range *range);
    sj_status (*find_tables)(const sj_module *module, uint32_t range, sj_jump_tables *tables);

    /* entry returns the offset of a range's first instruction that may be patched. find_switch
     * returns the shape of the code before a jump through a register. */
    uint32_t (*entry)(const sj_module *module, const sj_code_range *range);
    sj_switch_shape (*find_switch)(const sj_module *module, const sj_code_range *range,
                                   const sj_code *jump);

    /* frame_step returns what an instruction of generated code does to the frame; NULL: such code
     * is not planned. */
    sj_frame_step (*frame_step)(const uint8_t *bytes, uint32_t length);

    /* ends_before returns true if the eight bytes before `code` are the end of a function, or the
     * filler after one. */
    bool (*ends_before)(const uint8_t *code);

    /* mask_addresses clears the address-dependent bits in a copy of an instruction's bytes.
     * `*pages` is 0 at a function's first instruction; the machine may use it until the last. */
    void (*mask_addresses)(const sj_module *module, const sj_code *code, uint8_t *bytes,
                           uint32_t *pages);

    /* hook tries one technique on the current function; returns false with builder->reason. */
    bool (*hook)(sj_builder *builder, sj_technique technique);
};

/* Returns the descriptor of an e_machine, or NULL. */
const sj_machine *sj_machine_of(uint16_t elf_machine);

/* The machines, one per folder of arch/. */
extern const sj_machine sj_machine_x86_64;
extern const sj_machine sj_machine_aarch64;

#endif
