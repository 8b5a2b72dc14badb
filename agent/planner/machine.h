/* Descriptors of machines: everything that common code of the planner knows about a machine. There
 * is one for each ELF e_machine. */
#ifndef SJ_AGENT_PLANNER_MACHINE_H
#define SJ_AGENT_PLANNER_MACHINE_H

#include "agent/planner/builder.h"
#include "agent/planner/targets.h"

typedef enum sj_frame_step {
    SJ_FRAME_KEPT,    /* does not change the stack pointer */
    SJ_FRAME_MADE,    /* moves the stack pointer down */
    SJ_FRAME_REMOVED, /* moves the stack pointer up: the stack is as at the entry, now or after the
                         next instructions */
    SJ_FRAME_RESTORED /* loads the stack pointer from memory, at the end of an exception handler */
} sj_frame_step;

struct sj_machine {
    uint16_t elf_machine;
    uint32_t relocation_relative;
    uint32_t relocation_absolute;
    uint32_t relocation_resolver;
    uint32_t relocation_slot; /* relocation type of slots that are only called; 0: imports are not
                                 recorded */
    uint32_t relocation_data; /* relocation type of slots that are used in any way */
    bool shows_loads;         /* the decoder sets SJ_CODE_RELATIVE for loads of such slots */
    bool shows_flags;         /* the decoder sets sj_code.flag_effect */
    bool scans_in_order;      /* finish_range needs the marks that earlier ranges set, so one thread
                                 scans the text */

    /* Implement sj_decoder_open, sj_decoder_close (NULL: nothing to do) and sj_decode. */
    sj_status (*open_decoder)(sj_decoder *decoder);
    void (*close_decoder)(sj_decoder *decoder);
    void (*decode)(const sj_decoder *decoder, const uint8_t *bytes, size_t size, uint32_t at,
                   sj_code *code, uint64_t *immediate);

    /* finish_range sets properties of a disassembled range that depend on several instructions; it
     * may be NULL. find_tables adds the possible jump tables of a range, and returns SJ_ENOMEM if
     * out of memory. */
    void (*finish_range)(sj_module *module, sj_code_range *range);
    sj_status (*find_tables)(const sj_module *module, uint32_t range, sj_jump_tables *tables);

    /* entry returns the offset of a range's first instruction that may be patched. find_switch
     * returns the shape of the code before a jump through a register. */
    uint32_t (*entry)(const sj_module *module, const sj_code_range *range);
    sj_switch_shape (*find_switch)(const sj_module *module, const sj_code_range *range,
                                   const sj_code *jump);

    /* frame_step returns how an instruction of generated code changes the stack frame. It is NULL
     * if generated code of this machine is not planned. */
    sj_frame_step (*frame_step)(const uint8_t *bytes, uint32_t length);

    /* ends_before returns true if the eight bytes before `code` may be the end of a function, or
     * filler after one. */
    bool (*ends_before)(const uint8_t *code);

    /* mask_addresses clears the bits of an address or distance in a copy of an instruction's bytes.
     * `*pages` keeps state from one instruction of a function to the next. It is 0 at the first
     * instruction. */
    void (*mask_addresses)(const sj_module *module, const sj_code *code, uint8_t *bytes,
                           uint32_t *pages);

    /* hook tries one technique on the current function. On failure it returns false and sets
     * builder->reason. */
    bool (*hook)(sj_builder *builder, sj_technique technique);
};

/* Returns the descriptor of an e_machine, or NULL. */
const sj_machine *sj_machine_of(uint16_t elf_machine);

/* One descriptor for each folder of arch/. */
extern const sj_machine sj_machine_x86_64;
extern const sj_machine sj_machine_aarch64;

#endif
