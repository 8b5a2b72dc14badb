/* What is asked of a machine by its number in ELF files, whichever machine this runs on: one
 * descriptor in each folder of arch/. */
#ifndef SJ_AGENT_OBJFILE_ELF_MACHINE_H
#define SJ_AGENT_OBJFILE_ELF_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sj_elf_machine {
    uint16_t number;      /* e_machine */
    const char *name;     /* for people */
    const char *key;      /* in databases */
    uint32_t relative;    /* relocation: the address that the file is loaded at and an addend */
    uint32_t absolute;    /* relocation: a symbol's address and an addend */
    const char *emulator; /* QEMU's program for it; NULL: its programs are not recorded in one */
    const char *sysroot;  /* where Debian's cross libraries lie, for the emulator */
    const char *agent;    /* file of the agent for programs in the emulator */
    bool passes_result_address; /* of a result in memory, as the first argument */
} sj_elf_machine;

/* sj_elf_machine_of returns the descriptor of an e_machine, or NULL. */
const sj_elf_machine *sj_elf_machine_of(uint16_t number);

/* sj_elf_machine_name is for messages, also of machines that there is no descriptor of. */
const char *sj_elf_machine_name(uint16_t number);

extern const sj_elf_machine sj_elf_x86_64;
extern const sj_elf_machine sj_elf_aarch64;

#endif
