/* Describes machines by their number in ELF files, whichever machine this code runs on. Each folder
 * of arch/ defines one descriptor. */
#ifndef SJ_AGENT_OBJFILE_ELF_MACHINE_H
#define SJ_AGENT_OBJFILE_ELF_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_elf_machine {
    uint16_t number;   /* e_machine */
    const char *name;  /* for messages to the user */
    const char *key;   /* value that databases store */
    uint32_t relative; /* relocation type: load address plus addend */
    uint32_t absolute; /* relocation type: symbol address plus addend */
    /* QEMU's user-mode emulator of the machine; NULL: its programs are not recorded in an
     * emulator */
    const char *emulator;
    const char *sysroot; /* folder of Debian's cross libraries, for the emulator */
    const char *agent;   /* file name of the agent for programs in the emulator */
    /* Callers pass the address of a result in memory as the first argument. */
    bool passes_result_address;
} sj_elf_machine;

/* Returns the descriptor of an e_machine, or NULL. */
const sj_elf_machine *sj_elf_machine_of(uint16_t number);

/* Returns the name of a machine for messages, also for machines without a descriptor. */
const char *sj_elf_machine_name(uint16_t number);

extern const sj_elf_machine sj_elf_x86_64;
extern const sj_elf_machine sj_elf_aarch64;

#endif
