/* Names and bounds of code, collected from symbol tables, debug files and map files. */
#ifndef SJ_AGENT_OBJFILE_SYMBOLS_H
#define SJ_AGENT_OBJFILE_SYMBOLS_H

#include "agent/abi/plan.h"
#include "agent/objfile/elf_view.h"

typedef enum sj_symbol_kind {
    SJ_SYMBOL_LABEL = 0, /* a name inside code that is not marked as a function */
    SJ_SYMBOL_FUNCTION = 1,
    SJ_SYMBOL_RESOLVER = 2 /* IFUNC: the symbol's code chooses an implementation */
} sj_symbol_kind;

typedef struct sj_symbol {
    uint64_t address;
    uint64_t size;    /* 0: not known */
    const char *name; /* borrowed from what was read */
    uint8_t source;   /* sj_symbol_source */
    uint8_t kind;     /* sj_symbol_kind */
    uint8_t receiver; /* of a method: as sj_plan_function says */
    bool is_local;
} sj_symbol;

typedef struct sj_symbols {
    sj_symbol *items;
    size_t count;
    size_t capacity;
} sj_symbols;

/* sj_symbols_add appends one symbol. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_symbols_add(sj_symbols *symbols, sj_symbol symbol);

/* sj_symbols_read appends the code symbols of one table (SHT_SYMTAB or SHT_DYNSYM) of a file. The
 * names are borrowed from the view. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_symbols_read(const sj_elf *elf, uint32_t section_type,
                                        sj_symbol_source source, sj_symbols *symbols);

/* sj_symbols_sort sorts by address and merges symbols of one address: the function before the
 * label, a runtime's name before any other, the better source before the worse, the global before
 * the local. */
void sj_symbols_sort(sj_symbols *symbols);

void sj_symbols_free(sj_symbols *symbols);

#endif
