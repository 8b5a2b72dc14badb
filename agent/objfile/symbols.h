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
    uint64_t size;    /* 0: unknown */
    const char *name; /* borrowed from the file that was read */
    uint8_t source;   /* sj_symbol_source */
    uint8_t kind;     /* sj_symbol_kind */
    uint8_t receiver; /* receiver of a method, as in sj_plan_function */
    bool is_local;
} sj_symbol;

typedef struct sj_symbols {
    sj_symbol *items;
    size_t count;
    size_t capacity;
} sj_symbols;

/* Appends one symbol. Returns SJ_ENOMEM on failure. */
SJ_MUST_CHECK sj_status sj_symbols_add(sj_symbols *symbols, sj_symbol symbol);

/* Appends the code symbols of all tables of that type (SHT_SYMTAB or SHT_DYNSYM) in a file. The
 * names borrow from the view. Returns SJ_ENOMEM on failure. */
SJ_MUST_CHECK sj_status sj_symbols_read(const sj_elf *elf, uint32_t section_type,
                                        sj_symbol_source source, sj_symbols *symbols);

/* Sorts by address and merges symbols of one address. A resolver is preferred to a function, and a
 * function to a label. Then a runtime's name is preferred to other names, the better source to the
 * worse, and a global symbol to a local one. */
void sj_symbols_sort(sj_symbols *symbols);

void sj_symbols_free(sj_symbols *symbols);

#endif
