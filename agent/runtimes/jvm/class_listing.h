/* What a JVM tells of a loaded class, whose file is not at hand: its name and its methods. */
#ifndef SJ_AGENT_RUNTIMES_JVM_CLASS_LISTING_H
#define SJ_AGENT_RUNTIMES_JVM_CLASS_LISTING_H

#include "agent/runtimes/jvm/class_file.h"

/* sj_class_listing_read reads `bytes` (sj_link_class of a traced class), which the caller keeps
 * alive, as far as a class file can be made of them: `name` and of each method name, descriptor and
 * whether there is code. Release with sj_class_file_deinit, also after a failure. SJ_ECORRUPT,
 * SJ_ELIMIT too many methods, SJ_ENOMEM. Any thread. */
SJ_MUST_CHECK sj_status sj_class_listing_read(sj_slice bytes, sj_class_file *file, sj_error *error);

#endif
