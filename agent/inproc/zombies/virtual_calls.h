/* Virtual tables for C++ objects in quarantine: what calls a virtual function of one is reported,
 * and gets zero. */
#ifndef SJ_AGENT_INPROC_ZOMBIES_VIRTUAL_CALLS_H
#define SJ_AGENT_INPROC_ZOMBIES_VIRTUAL_CALLS_H

#include <stdbool.h>
#include <stdint.h>

enum { SJ_VIRTUAL_WORDS = 16 }; /* of an object, in which pointers to tables are looked for */

/* sj_virtual_open maps the room for tables; without memory none is replaced. One thread. */
void sj_virtual_open(void);

/* sj_virtual_replace puts our tables in the place of those of the object that `words` are, if it
 * begins with one that has type information: its address is written to `*type`. Returns a bit for
 * each word that was replaced. */
uint64_t sj_virtual_replace(uint64_t *words, uint64_t count, uint64_t *type);

/* sj_virtual_answer is what every stub calls (arch/<machine>/virtual_stubs.S): the first arguments
 * of the call as integers, the function's place in the table, where it returns to. */
uint64_t sj_virtual_answer(uint64_t first, uint64_t second, uint64_t number, uint64_t site)
    __attribute__((used, visibility("hidden")));

/* sj_virtual_is_table: a word points to one of our tables. */
bool sj_virtual_is_table(uint64_t word);

#endif
