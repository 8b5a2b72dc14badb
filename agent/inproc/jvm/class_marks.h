/* What the recorder chose in each class of the JVM: by the class's name and loader, so that a class
 * has a mark before it is defined. Any thread, no lock. */
#ifndef SJ_AGENT_INPROC_JVM_CLASS_MARKS_H
#define SJ_AGENT_INPROC_JVM_CLASS_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* sj_class_marks_make makes room; again: nothing. False: there is no memory. One thread. */
bool sj_class_marks_make(void);

/* sj_class_marks_drop frees it. Nobody uses it any more. */
void sj_class_marks_drop(void);

/* sj_class_marks_key is the key of a class: its name in internal form, and a number of its loader.
 */
uint64_t sj_class_marks_key(const char *name, size_t bytes, uint64_t loader);

/* sj_class_marks_set sets the mark of a class (sj_class_selection); false: there is no room. */
bool sj_class_marks_set(uint64_t key, uint32_t mark);

/* sj_class_marks_get: SJ_CLASS_UNASKED when it was never set. */
uint32_t sj_class_marks_get(uint64_t key);

#endif
