/* Answers libgcc's unwinder for code in stubs. */
#ifndef SJ_AGENT_INPROC_CORE_FIND_OBJECT_H
#define SJ_AGENT_INPROC_CORE_FIND_OBJECT_H

/* sj_find_object_begin finds the loader's _dl_find_object, which answers for all other code. Before
 * the program runs, whether it is recorded or not. Takes the loader's lock. */
void sj_find_object_begin(void);

#endif
