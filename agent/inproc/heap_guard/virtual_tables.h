/* Virtual tables for C++ objects in quarantine: what calls a virtual function of one is reported,
 * and gets zero. */
#ifndef SJ_AGENT_INPROC_HEAP_GUARD_VIRTUAL_TABLES_H
#define SJ_AGENT_INPROC_HEAP_GUARD_VIRTUAL_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#define SJ_VIRTUAL_ADDRESS ((UINT64_C(1) << 48) - 1)

enum {
    SJ_VIRTUAL_WORDS = 16, /* of an object, in which pointers to tables are looked for */
    SJ_VIRTUAL_FUNCTIONS = 1024
};

typedef enum sj_virtual_state {
    SJ_VIRTUAL_UNKNOWN = 0, /* it is being filled */
    SJ_VIRTUAL_READY = 1,
    SJ_VIRTUAL_TOO_LARGE = 2 /* the program's has more functions than ours */
} sj_virtual_state;

/* What a program's table is replaced by. */
typedef struct sj_virtual_table {
    _Atomic uint64_t key;   /* its address, and above SJ_VIRTUAL_ADDRESS its place in the object;
                               0: not used */
    _Atomic uint32_t state; /* sj_virtual_state */
    uint32_t reserved;
    int64_t offset_to_top; /* from here on as the C++ ABI has it */
    uint64_t type;
    uint64_t functions[SJ_VIRTUAL_FUNCTIONS];
} sj_virtual_table;

/* How a type_info begins. */
typedef struct sj_type_head {
    uint64_t table;
    uint64_t name;
} sj_type_head;

/* sj_virtual_open maps the room for tables; without memory none is replaced. One thread. */
void sj_virtual_open(void);

/* sj_virtual_replace puts our tables in the place of those of the object that `words` are, if it
 * begins with one that has type information: its address is written to `*type`, and a bit for each
 * word that was replaced to `*replaced`. False, nothing is changed: one of the tables has too many
 * functions. */
bool sj_virtual_replace(uint64_t *words, uint64_t count, uint64_t *type, uint64_t *replaced);

/* sj_virtual_answer is what every stub calls (arch/<machine>/virtual_stubs.S): the first arguments
 * of the call as integers, the function's place in the table, where it returns to. */
uint64_t sj_virtual_answer(uint64_t first, uint64_t second, uint64_t number, uint64_t site)
    __attribute__((used, visibility("hidden")));

/* sj_virtual_table_of returns our table of an object at any address; NULL: it has none. */
const sj_virtual_table *sj_virtual_table_of(uint64_t object);

/* sj_virtual_read copies memory that may not be there; false: it is not. */
bool sj_virtual_read(uint64_t from, void *to, uint64_t bytes);

/* sj_virtual_is_table: a word points to one of our tables. */
bool sj_virtual_is_table(uint64_t word);

#endif
